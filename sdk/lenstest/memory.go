// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenstest // import "github.com/lenscol/lenscol/sdk/lenstest"

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lenscol/lenscol/sdk/telemetry"
)

// Memory keeps what a process would send. It is for code that calls telemetry.Setup itself; [New] does both. Methods may be
// called by several goroutines, those that fail the test in its own only.
type Memory struct {
	tb     testing.TB
	reader *reader

	mu      sync.Mutex
	spans   []Span
	records []Record
}

// NewMemory makes an empty memory.
func NewMemory(tb testing.TB) *Memory {
	return &Memory{tb: tb, reader: &reader{ManualReader: sdkmetric.NewManualReader()}}
}

// Options make telemetry.Setup write into m and nowhere else, in a process of many tests. They are for one Setup.
func (m *Memory) Options() []telemetry.Option {
	return []telemetry.Option{
		telemetry.WithSpanProcessor(sdktrace.NewSimpleSpanProcessor(spanExporter{m})), // a batch could overflow
		telemetry.WithSpanExporter(nowhere{}),
		telemetry.WithMetricReader(m.reader),
		telemetry.WithLogProcessor(sdklog.NewSimpleProcessor(logExporter{m})),
		telemetry.WithReinit(),
	}
}

// Spans are those that have ended, in the order in which they did.
func (m *Memory) Spans() []Span {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.spans)
}

// Span is the one span of that name; none or several fail the test.
func (m *Memory) Span(name string) Span {
	m.tb.Helper()
	return one(m.tb, "span", name, m.Spans(), func(s Span) string { return s.Name })
}

// SpansNamed are those of that name, in the order in which they ended.
func (m *Memory) SpansNamed(name string) []Span {
	return named(name, m.Spans(), func(s Span) string { return s.Name })
}

// Points are those of all metrics, with the values of now; after the shutdown, those of that time.
func (m *Memory) Points() []Point {
	m.tb.Helper()
	points, err := m.reader.points(context.WithoutCancel(m.tb.Context())) // also in a cleanup
	if err != nil {
		m.tb.Errorf("lenstest: %v", err)
	}
	return points
}

// Point is the one point of the metric of that name; none or several fail the test.
func (m *Memory) Point(name string) Point {
	m.tb.Helper()
	return one(m.tb, "point", name, m.Points(), func(p Point) string { return p.Name })
}

// PointsNamed are those of the metric of that name, one for each set of attributes.
func (m *Memory) PointsNamed(name string) []Point {
	m.tb.Helper()
	return named(name, m.Points(), func(p Point) string { return p.Name })
}

// Records are all log records, in the order in which they were written.
func (m *Memory) Records() []Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records)
}

// Record is the one log record of that text; none or several fail the test.
func (m *Memory) Record(body string) Record {
	m.tb.Helper()
	return one(m.tb, "log record", body, m.Records(), func(r Record) string { return fmt.Sprint(r.Body) })
}

func named[T any](name string, items []T, nameOf func(T) string) []T {
	return slices.DeleteFunc(items, func(item T) bool { return nameOf(item) != name })
}

func one[T any](tb testing.TB, what, name string, items []T, nameOf func(T) string) T {
	tb.Helper()
	found := named(name, slices.Clone(items), nameOf)
	if len(found) != 1 {
		names := make([]string, len(items))
		for i, item := range items {
			names[i] = nameOf(item)
		}
		tb.Fatalf("lenstest: %d %ss %q, want one, of %q", len(found), what, name, names)
	}
	return found[0]
}

type spanExporter struct{ m *Memory }

func (e spanExporter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	for _, s := range spans {
		e.m.spans = append(e.m.spans, newSpan(s))
	}
	return nil
}

func (spanExporter) Shutdown(context.Context) error { return nil }

type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }

type logExporter struct{ m *Memory }

func (e logExporter) Export(_ context.Context, records []sdklog.Record) error {
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	for i := range records {
		e.m.records = append(e.m.records, newRecord(&records[i]))
	}
	return nil
}

func (logExporter) Shutdown(context.Context) error   { return nil }
func (logExporter) ForceFlush(context.Context) error { return nil }

// reader collects when it is asked, and for the last time when it is shut down.
type reader struct {
	*sdkmetric.ManualReader

	mu   sync.Mutex
	over bool
	last []Point
}

func (r *reader) points(ctx context.Context) ([]Point, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return slices.Clone(r.last), nil
	}
	return r.collect(ctx)
}

func (r *reader) collect(ctx context.Context) ([]Point, error) {
	var metrics metricdata.ResourceMetrics
	err := r.Collect(ctx, &metrics)
	if errors.Is(err, sdkmetric.ErrReaderNotRegistered) { // a process that does not export
		return nil, nil
	}
	return newPoints(metrics), err
}

func (r *reader) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return r.ManualReader.Shutdown(ctx)
	}
	last, err := r.collect(ctx)
	r.last, r.over = last, true
	return errors.Join(err, r.ManualReader.Shutdown(ctx))
}
