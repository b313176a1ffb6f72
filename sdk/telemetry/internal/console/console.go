// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package console writes telemetry as the lines of NeMo Lens's console exporter since 0.2: what to_json(indent=None) of
// OpenTelemetry Python's SDK writes, byte for byte, one JSON object a span, a log record, or a collection of metrics.
//
// Two things differ, since Go's SDK hands them to exporters so: the attributes of resources, scopes and points are sorted by
// key, and the values of one metric are all integers or all floats. As in Python, NaN and the infinities stand bare.
package console // import "github.com/lenscol/lenscol/sdk/telemetry/internal/console"

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Console writes whole lines to one writer, from any number of exporters.
type Console struct {
	mu  sync.Mutex
	out io.Writer
}

// New writes to out, one Write an export. out is never closed.
func New(out io.Writer) *Console { return &Console{out: out} }

// Spans is an exporter of spans.
func (c *Console) Spans() sdktrace.SpanExporter { return &spans{state{console: c}} }

// Metrics is an exporter of metrics: cumulative, and with the aggregations of the SDK.
func (c *Console) Metrics() sdkmetric.Exporter { return &metrics{state{console: c}} }

// Logs is an exporter of log records.
func (c *Console) Logs() sdklog.Exporter { return &logs{state{console: c}} }

func (c *Console) write(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.out.Write(lines); err != nil {
		return fmt.Errorf("write console lines: %w", err)
	}
	return nil
}

// state is what the exporters share. They hold nothing between exports.
type state struct {
	console *Console
	stopped atomic.Bool
}

// Shutdown makes exports do nothing.
func (s *state) Shutdown(context.Context) error {
	s.stopped.Store(true)
	return nil
}

type spans struct{ state }

// ExportSpans implements sdktrace.SpanExporter.
func (s *spans) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	if s.stopped.Load() || ctx.Err() != nil {
		return ctx.Err()
	}
	var b []byte
	for _, span := range batch {
		b = appendSpan(b, span)
	}
	return s.console.write(b)
}

type metrics struct{ state }

// Temporality implements sdkmetric.Exporter.
func (*metrics) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

// Aggregation implements sdkmetric.Exporter.
func (*metrics) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

// Export implements sdkmetric.Exporter. A collection without metrics has no line.
func (m *metrics) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	switch {
	case m.stopped.Load():
		return sdkmetric.ErrExporterShutdown
	case ctx.Err() != nil || len(rm.ScopeMetrics) == 0:
		return ctx.Err()
	}
	return m.console.write(appendMetrics(nil, rm))
}

// ForceFlush implements sdkmetric.Exporter.
func (*metrics) ForceFlush(ctx context.Context) error { return ctx.Err() }

type logs struct{ state }

// Export implements sdklog.Exporter.
func (l *logs) Export(ctx context.Context, batch []sdklog.Record) error {
	if l.stopped.Load() || ctx.Err() != nil {
		return ctx.Err()
	}
	var b []byte
	for i := range batch {
		b = appendRecord(b, &batch[i])
	}
	return l.console.write(b)
}

// ForceFlush implements sdklog.Exporter.
func (*logs) ForceFlush(ctx context.Context) error { return ctx.Err() }
