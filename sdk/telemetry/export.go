// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"context"
	"net/http"

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
	"github.com/lenscol/lenscol/sdk/telemetry/internal/otlphttp"
)

// The exporters read OTEL_EXPORTER_OTLP_COMPRESSION from the environment themselves. None connects before there is something to
// send. They are nil where the protocol is none.

func (h *Handle) newSpanExporter(ctx context.Context, t Target, lines *console.Console) (sdktrace.SpanExporter, error) {
	switch t.Protocol {
	case ProtocolGRPC:
		creds, err := t.credentials("TRACES")
		if err != nil {
			return nil, err
		}
		endpoint := otlptracegrpc.WithEndpointURL
		if t.isHostPort() {
			endpoint = otlptracegrpc.WithEndpoint
		}
		return otlptracegrpc.New(ctx, endpoint(t.Endpoint), otlptracegrpc.WithTLSCredentials(creds),
			otlptracegrpc.WithHeaders(t.headers()), otlptracegrpc.WithTimeout(t.timeout()))
	case ProtocolHTTP, ProtocolJSON:
		client, err := h.client(t, "TRACES", otlphttp.Traces)
		if err != nil {
			return nil, err
		}
		return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(t.Endpoint), otlptracehttp.WithHTTPClient(client),
			otlptracehttp.WithHeaders(t.headers()), otlptracehttp.WithTLSClientConfig(nil))
	case ProtocolConsole:
		return lines.Spans(), nil
	}
	return nil, nil
}

func (h *Handle) newMetricExporter(ctx context.Context, t Target, lines *console.Console) (sdkmetric.Exporter, error) {
	switch t.Protocol {
	case ProtocolGRPC:
		creds, err := t.credentials("METRICS")
		if err != nil {
			return nil, err
		}
		endpoint := otlpmetricgrpc.WithEndpointURL
		if t.isHostPort() {
			endpoint = otlpmetricgrpc.WithEndpoint
		}
		return otlpmetricgrpc.New(ctx, endpoint(t.Endpoint), otlpmetricgrpc.WithTLSCredentials(creds),
			otlpmetricgrpc.WithHeaders(t.headers()), otlpmetricgrpc.WithTimeout(t.timeout()))
	case ProtocolHTTP, ProtocolJSON:
		client, err := h.client(t, "METRICS", otlphttp.Metrics)
		if err != nil {
			return nil, err
		}
		return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(t.Endpoint), otlpmetrichttp.WithHTTPClient(client),
			otlpmetrichttp.WithHeaders(t.headers()), otlpmetrichttp.WithTLSClientConfig(nil))
	case ProtocolConsole:
		return lines.Metrics(), nil
	}
	return nil, nil
}

func (h *Handle) newLogExporter(ctx context.Context, t Target, lines *console.Console) (sdklog.Exporter, error) {
	switch t.Protocol {
	case ProtocolGRPC:
		creds, err := t.credentials("LOGS")
		if err != nil {
			return nil, err
		}
		endpoint := otlploggrpc.WithEndpointURL
		if t.isHostPort() {
			endpoint = otlploggrpc.WithEndpoint
		}
		return otlploggrpc.New(ctx, endpoint(t.Endpoint), otlploggrpc.WithTLSCredentials(creds),
			otlploggrpc.WithHeaders(t.headers()), otlploggrpc.WithTimeout(t.timeout()))
	case ProtocolHTTP, ProtocolJSON:
		client, err := h.client(t, "LOGS", otlphttp.Logs)
		if err != nil {
			return nil, err
		}
		return otlploghttp.New(ctx, otlploghttp.WithEndpointURL(t.Endpoint), otlploghttp.WithHTTPClient(client),
			otlploghttp.WithHeaders(t.headers()), otlploghttp.WithTLSClientConfig(nil))
	case ProtocolConsole:
		return lines.Logs(), nil
	}
	return nil, nil
}

// client sends a signal over HTTP. Its connections are closed with the Handle.
func (h *Handle) client(t Target, signal string, s otlphttp.Signal) (*http.Client, error) {
	config, err := t.tlsConfig(signal)
	if err != nil {
		return nil, err
	}
	client := otlphttp.Protobuf(config)
	if t.Protocol == ProtocolJSON {
		client = otlphttp.JSON(s, config)
	}
	h.undo = append(h.undo, client.CloseIdleConnections)
	return client, nil
}
