// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestEncoderWritesDefinitionsOnceAndBeforeTheirUse(t *testing.T) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "s")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("one")
	span := ss.Spans().AppendEmpty()
	span.SetName("\xff")
	span.SetKind(ptrace.SpanKindInternal)
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rs.Resource().CopyTo(rm.Resource())
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("two")
	sm.Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rs.Resource().CopyTo(rl.Resource())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("one")
	sl.LogRecords().AppendEmpty()

	e, err := NewEncoder(LayoutCompact, ResourceReference)
	require.NoError(t, err)
	out := e.AppendLogs(e.AppendMetrics(e.AppendTraces([]byte("before\n"), td), md), ld)
	require.Equal(t, "before\n"+`{"type":"resource","id":1,"attributes":{"service.name":"s"}}
{"type":"scope","id":1,"resource":1,"name":"one"}
{"type":"span","name":"�","start_ns":0,"service":"s","scope":1}
{"type":"scope","id":2,"resource":1,"name":"two"}
{"type":"metric","kind":"gauge","start_ns":0,"time_ns":0,"value":1,"service":"s","scope":2}
{"type":"log","time_ns":0,"service":"s","scope":1}
`, string(out))
	repaired, cut := e.Changed()
	require.Equal(t, 1, repaired)
	require.Zero(t, cut)
}

func TestEncoderNamesTheLayoutThatThereIsNot(t *testing.T) {
	_, err := NewEncoder("csv", ResourceInline)
	require.ErrorContains(t, err, `layout: "csv" is not one of`)
	_, err = NewEncoder(LayoutCompact, "twice")
	require.ErrorContains(t, err, `resource: "twice" is not one of`)
}
