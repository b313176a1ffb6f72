// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/testbed"
)

type attributes = map[string]any

// rank are the resource attributes of a rank, as NeMo Lens 0.2 sends them.
func rank(n, world int64) attributes {
	return attributes{
		"service.name": "megatron", "dl.rank": n, "dl.world_size": world, "nemo.run.id": "run-1",
		"service.instance.id": "run-1-rank" + string(rune('0'+n)),
	}
}

// span is one of a request; each gets an id of its own.
type span struct {
	name     string
	resource attributes
	attrs    attributes
	failed   bool
	trace    uint64 // 0 for a trace of its own
}

var lastID atomic.Uint64

func traces(spans ...span) ptrace.Traces {
	td := ptrace.NewTraces()
	for _, s := range spans {
		rs := td.ResourceSpans().AppendEmpty()
		fill(rs.Resource().Attributes(), s.resource)
		out := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		id := lastID.Add(1)
		if s.trace == 0 {
			s.trace = id
		}
		out.SetSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, id)))
		out.SetTraceID(pcommon.TraceID(binary.BigEndian.AppendUint64([]byte("lenscol!"), s.trace)))
		out.SetName(s.name)
		now := time.Now()
		out.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Second)))
		out.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		fill(out.Attributes(), s.attrs)
		if s.failed {
			out.Status().SetCode(ptrace.StatusCodeError)
			out.Status().SetMessage("failed")
		}
	}
	return td
}

// gauges is one point of a gauge for each resource.
func gauges(name string, resources ...attributes) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i, resource := range resources {
		rm := md.ResourceMetrics().AppendEmpty()
		fill(rm.Resource().Attributes(), resource)
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		p.SetDoubleValue(float64(i) + 0.5)
	}
	return md
}

func sum(name string, temporality pmetric.AggregationTemporality, resource attributes) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	fill(rm.Resource().Attributes(), resource)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	s := m.SetEmptySum()
	s.SetIsMonotonic(true)
	s.SetAggregationTemporality(temporality)
	p := s.DataPoints().AppendEmpty()
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(-time.Minute)))
	p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	p.SetIntValue(7)
	return md
}

func record(body string, resource attributes) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	fill(rl.Resource().Attributes(), resource)
	r := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	r.Body().SetStr(body)
	r.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	return ld
}

func fill(m pcommon.Map, attrs attributes) {
	if err := m.FromRaw(attrs); err != nil {
		panic(err)
	}
}

// message is the OTLP request of ptrace.Traces, pmetric.Metrics or plog.Logs, and its signal.
func message(t *testing.T, telemetry any) (signal string, body []byte) {
	t.Helper()
	var err error
	switch x := telemetry.(type) {
	case ptrace.Traces:
		signal = "traces"
		body, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(x)
	case pmetric.Metrics:
		signal = "metrics"
		body, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(x)
	case plog.Logs:
		signal = "logs"
		body, err = (&plog.ProtoMarshaler{}).MarshalLogs(x)
	}
	require.NoError(t, err)
	require.NotEmpty(t, signal)
	return signal, body
}

// send has each acknowledged, over HTTP and gRPC in turns.
func send(t *testing.T, collector *testbed.Collector, telemetry ...any) {
	t.Helper()
	client := collector.Client()
	defer client.Close()
	for i, item := range telemetry {
		signal, body := message(t, item)
		if i%2 == 0 {
			require.NoError(t, client.HTTP(t.Context(), signal, testbed.Protobuf, body, true))
		} else {
			require.NoError(t, client.GRPC(t.Context(), signal, body, true))
		}
	}
}

// sendAll sends one of each signal: the span "step", the point "loss" and the record "hello" of a rank.
func sendAll(t *testing.T, collector *testbed.Collector) {
	t.Helper()
	send(t, collector,
		traces(span{name: "step", resource: rank(0, 2)}), gauges("loss", rank(0, 2)), record("hello", rank(0, 2)))
}

// archived are the lines of a signal in a collector's archive that are of that type: span, point or log.
func archived(t *testing.T, folder, signal, kind string) (lines []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, signal+".jsonl"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		var object map[string]any
		if json.Unmarshal(line, &object) != nil {
			break // The last one is being written.
		}
		if object["type"] == kind {
			lines = append(lines, object)
		}
	}
	return lines
}

func names(lines []map[string]any) (names []string) {
	for _, line := range lines {
		names = append(names, line["name"].(string))
	}
	return names
}

// requireArchived waits for what sendAll sent.
func requireArchived(t *testing.T, collector *testbed.Collector) {
	t.Helper()
	folder := filepath.Join(collector.Dir, "lens-data")
	eventually(t, func() bool {
		return len(archived(t, folder, "traces", "span")) == 1 && len(archived(t, folder, "metrics", "metric")) == 1 && len(archived(t, folder, "logs", "log")) == 1
	}, "one of each signal in %s", folder)
}
