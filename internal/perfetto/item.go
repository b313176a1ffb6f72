// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/internal/archive"
)

// item is a record on its way through the sorter: whose it is, and itself without resource and scope.
type item struct {
	at     int64
	source int
	scope  string
	signal pipeline.Signal
	span   ptrace.Span
	metric pmetric.Metric
	log    plog.LogRecord
}

// An encoded item is its signal (a byte), the numbers of its source and of the name of its scope, and an OTLP request that holds it.

var signals = []pipeline.Signal{pipeline.SignalTraces, pipeline.SignalMetrics, pipeline.SignalLogs}

// encode appends a record, which must not be used afterwards.
func encode(b []byte, rec archive.Record, source, scope int) ([]byte, error) {
	var signal byte
	var request []byte
	var err error
	switch rec.Signal {
	case pipeline.SignalTraces:
		td := ptrace.NewTraces()
		rec.Span.MoveTo(td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
		request, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	case pipeline.SignalMetrics:
		signal = 1
		md := pmetric.NewMetrics()
		rec.Metric.MoveTo(md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty())
		request, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	default:
		signal = 2
		ld := plog.NewLogs()
		rec.Log.MoveTo(ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
		request, err = (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	}
	b = binary.AppendUvarint(binary.AppendUvarint(append(b, signal), uint64(source)), uint64(scope))
	return append(b, request...), err
}

var errItem = errors.New("a temporary file does not hold what was written to it")

func (t *Trace) decode(at int64, b []byte) (item, error) {
	if len(b) == 0 || int(b[0]) >= len(signals) {
		return item{}, errItem
	}
	it := item{at: at, signal: signals[b[0]]}
	source, n := binary.Uvarint(b[1:])
	scope, m := binary.Uvarint(b[1+max(n, 0):])
	if n <= 0 || m <= 0 || source >= uint64(len(t.sources.all)) || scope >= uint64(len(t.sources.scopes)) {
		return item{}, errItem
	}
	it.source, it.scope = int(source), t.sources.scopes[scope]
	request := b[1+n+m:]
	var err error
	switch it.signal {
	case pipeline.SignalTraces:
		var td ptrace.Traces
		if td, err = (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(request); err == nil {
			it.span = td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		}
	case pipeline.SignalMetrics:
		var md pmetric.Metrics
		if md, err = (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(request); err == nil {
			it.metric = md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
		}
	default:
		var ld plog.Logs
		if ld, err = (&plog.ProtoUnmarshaler{}).UnmarshalLogs(request); err == nil {
			it.log = ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		}
	}
	if err != nil {
		return item{}, fmt.Errorf("%w: %w", errItem, err)
	}
	return it, nil
}

// end is when an item ends; a span that never did lasts longest.
func (it *item) end() pcommon.Timestamp {
	if it.signal != pipeline.SignalTraces {
		return pcommon.Timestamp(it.at)
	}
	return it.span.EndTimestamp() - 1 // 0 is the largest.
}
