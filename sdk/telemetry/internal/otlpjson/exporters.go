// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpjson exports telemetry by OTLP over HTTP as JSON (OTLP 1.10, OTLP/HTTP, JSON Protobuf encoding).
//
// OpenTelemetry's exporters for http/protobuf do the work: data model, retries with backoff, partial success, compression and
// all variables OTEL_EXPORTER_OTLP_*. Their client's transport translates each request to JSON and each response back.
package otlpjson // import "github.com/lenscol/lenscol/sdk/telemetry/internal/otlpjson"

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Target is where a signal goes.
type Target struct {
	Endpoint string            // the whole URL, its path included
	Headers  map[string]string // secrets: no error holds a value
}

// NewSpans is an exporter of spans. As for the other two, timeout, certificates and compression are read from the
// environment; an error names the variable.
func NewSpans(ctx context.Context, to Target) (sdktrace.SpanExporter, error) {
	return newSpans(ctx, to)
}

func newSpans(ctx context.Context, to Target, opts ...otlptracehttp.Option) (sdktrace.SpanExporter, error) {
	t, err := newTransport(traces, to.Headers)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, append(opts, otlptracehttp.WithEndpointURL(to.Endpoint),
		otlptracehttp.WithHeaders(to.Headers), otlptracehttp.WithHTTPClient(t.client()))...)
	if err != nil {
		return nil, err
	}
	return &spans{exporter, t}, nil
}

type spans struct {
	*otlptrace.Exporter
	transport *transport
}

// ExportSpans implements sdktrace.SpanExporter.
func (s *spans) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	ctx, cancel := s.transport.untilShutdown(ctx)
	defer cancel()
	return s.Exporter.ExportSpans(ctx, batch)
}

// Shutdown implements sdktrace.SpanExporter.
func (s *spans) Shutdown(ctx context.Context) error {
	return s.transport.shutdown(ctx, s.Exporter.Shutdown)
}

// NewMetrics is an exporter of metrics.
func NewMetrics(ctx context.Context, to Target) (sdkmetric.Exporter, error) {
	return newMetrics(ctx, to)
}

func newMetrics(ctx context.Context, to Target, opts ...otlpmetrichttp.Option) (sdkmetric.Exporter, error) {
	t, err := newTransport(metricsSignal, to.Headers)
	if err != nil {
		return nil, err
	}
	exporter, err := otlpmetrichttp.New(ctx, append(opts, otlpmetrichttp.WithEndpointURL(to.Endpoint),
		otlpmetrichttp.WithHeaders(to.Headers), otlpmetrichttp.WithHTTPClient(t.client()))...)
	if err != nil {
		return nil, err
	}
	return &metrics{exporter, t}, nil
}

type metrics struct {
	*otlpmetrichttp.Exporter
	transport *transport
}

// Export implements sdkmetric.Exporter.
func (m *metrics) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	ctx, cancel := m.transport.untilShutdown(ctx)
	defer cancel()
	return m.Exporter.Export(ctx, rm)
}

// Shutdown implements sdkmetric.Exporter.
func (m *metrics) Shutdown(ctx context.Context) error {
	return m.transport.shutdown(ctx, m.Exporter.Shutdown)
}

// NewLogs is an exporter of log records.
func NewLogs(ctx context.Context, to Target) (sdklog.Exporter, error) { return newLogs(ctx, to) }

func newLogs(ctx context.Context, to Target, opts ...otlploghttp.Option) (sdklog.Exporter, error) {
	t, err := newTransport(logsSignal, to.Headers)
	if err != nil {
		return nil, err
	}
	exporter, err := otlploghttp.New(ctx, append(opts, otlploghttp.WithEndpointURL(to.Endpoint),
		otlploghttp.WithHeaders(to.Headers), otlploghttp.WithHTTPClient(t.client()))...)
	if err != nil {
		return nil, err
	}
	return &logs{exporter, t}, nil
}

type logs struct {
	*otlploghttp.Exporter
	transport *transport
}

// Export implements sdklog.Exporter.
func (l *logs) Export(ctx context.Context, records []sdklog.Record) error {
	ctx, cancel := l.transport.untilShutdown(ctx)
	defer cancel()
	return l.Exporter.Export(ctx, records)
}

// Shutdown implements sdklog.Exporter.
func (l *logs) Shutdown(ctx context.Context) error {
	return l.transport.shutdown(ctx, l.Exporter.Shutdown)
}
