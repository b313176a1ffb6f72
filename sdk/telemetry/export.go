// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lenscol/lenscol/sdk/telemetry/internal/console"
	"github.com/lenscol/lenscol/sdk/telemetry/internal/otlpjson"
)

// The exporters read what a Target does not have from the environment themselves: OTEL_EXPORTER_OTLP_COMPRESSION,
// _CERTIFICATE, _CLIENT_CERTIFICATE, _CLIENT_KEY, _INSECURE. None connects before there is something to send. They are nil where
// the protocol is none.

func newSpanExporter(ctx context.Context, t Target, lines *console.Console) (sdktrace.SpanExporter, error) {
	switch t.Protocol {
	case ProtocolGRPC:
		endpoint := otlptracegrpc.WithEndpointURL
		if t.isHostPort() {
			endpoint = otlptracegrpc.WithEndpoint
		}
		return otlptracegrpc.New(ctx, endpoint(t.Endpoint), otlptracegrpc.WithHeaders(t.headers()),
			otlptracegrpc.WithTimeout(t.timeout()))
	case ProtocolHTTP:
		return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(t.Endpoint), otlptracehttp.WithHeaders(t.headers()),
			otlptracehttp.WithTimeout(t.timeout()))
	case ProtocolJSON:
		return otlpjson.NewSpans(ctx, t.json())
	case ProtocolConsole:
		return lines.Spans(), nil
	}
	return nil, nil
}

func newMetricExporter(ctx context.Context, t Target, lines *console.Console) (sdkmetric.Exporter, error) {
	switch t.Protocol {
	case ProtocolGRPC:
		endpoint := otlpmetricgrpc.WithEndpointURL
		if t.isHostPort() {
			endpoint = otlpmetricgrpc.WithEndpoint
		}
		return otlpmetricgrpc.New(ctx, endpoint(t.Endpoint), otlpmetricgrpc.WithHeaders(t.headers()),
			otlpmetricgrpc.WithTimeout(t.timeout()))
	case ProtocolHTTP:
		return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(t.Endpoint), otlpmetrichttp.WithHeaders(t.headers()),
			otlpmetrichttp.WithTimeout(t.timeout()))
	case ProtocolJSON:
		return otlpjson.NewMetrics(ctx, t.json())
	case ProtocolConsole:
		return lines.Metrics(), nil
	}
	return nil, nil
}

func newLogExporter(ctx context.Context, t Target, lines *console.Console) (sdklog.Exporter, error) {
	switch t.Protocol {
	case ProtocolGRPC:
		endpoint := otlploggrpc.WithEndpointURL
		if t.isHostPort() {
			endpoint = otlploggrpc.WithEndpoint
		}
		return otlploggrpc.New(ctx, endpoint(t.Endpoint), otlploggrpc.WithHeaders(t.headers()),
			otlploggrpc.WithTimeout(t.timeout()))
	case ProtocolHTTP:
		return otlploghttp.New(ctx, otlploghttp.WithEndpointURL(t.Endpoint), otlploghttp.WithHeaders(t.headers()),
			otlploghttp.WithTimeout(t.timeout()))
	case ProtocolJSON:
		return otlpjson.NewLogs(ctx, t.json())
	case ProtocolConsole:
		return lines.Logs(), nil
	}
	return nil, nil
}

// isHostPort reports whether the endpoint is host:port, for which OTEL_EXPORTER_OTLP_INSECURE says whether TLS is used.
func (t Target) isHostPort() bool { return !strings.Contains(t.Endpoint, "://") }

func (t Target) json() otlpjson.Target {
	return otlpjson.Target{Endpoint: t.Endpoint, Headers: t.headers()}
}
