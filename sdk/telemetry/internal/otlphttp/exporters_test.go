// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package otlphttp

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestJSONCarriesWhatProtobufDoes sends the same by OpenTelemetry's exporters alone and with our clients.
func TestJSONCarriesWhatProtobufDoes(t *testing.T) {
	for _, compression := range []string{"none", "gzip"} {
		t.Run(compression, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
			stock := serve(t, nil)
			spans, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(stock.URL+"/v1/traces"))
			require.NoError(t, err)
			metrics, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL(stock.URL+"/v1/metrics"))
			require.NoError(t, err)
			logs, err := otlploghttp.New(t.Context(), otlploghttp.WithEndpointURL(stock.URL+"/v1/logs"))
			require.NoError(t, err)
			require.NoError(t, spans.ExportSpans(t.Context(), someSpans()))
			require.NoError(t, metrics.Export(t.Context(), someMetrics()))
			require.NoError(t, logs.Export(t.Context(), someLogs(t)))

			ours := serve(t, nil)
			for i, e := range exporters(t, target{url: ours.URL, json: true, headers: map[string]string{"x-token": "s3cret"}}) {
				require.NoError(t, e.export(t.Context()))
				request, text, n := ours.last()
				require.Equal(t, i+1, n)
				require.Equal(t, "/v1/"+e.signal, request.URL.Path)
				require.Equal(t, "application/json", request.Header.Get("Content-Type"))
				require.Equal(t, compression == "gzip", request.Header.Get("Content-Encoding") == "gzip")
				require.Equal(t, "s3cret", request.Header.Get("X-Token"))
				require.True(t, json.Valid(text))
				want, got := requestOf(e.signal), requestOf(e.signal)
				require.NoError(t, proto.Unmarshal(stock.bodies[i], want))
				readJSON(t, text, got)
				require.True(t, proto.Equal(want, got), "want %v\ngot %v", want, got)
			}
		})
	}
}

func requestOf(signal string) proto.Message {
	switch signal {
	case "traces":
		return &coltracepb.ExportTraceServiceRequest{}
	case "metrics":
		return &colmetricspb.ExportMetricsServiceRequest{}
	}
	return &collogspb.ExportLogsServiceRequest{}
}

// TestEncoding has the rules in which OTLP's JSON could be got wrong, in the text itself.
func TestEncoding(t *testing.T) {
	s := serve(t, nil)
	for _, e := range exporters(t, s.target()) {
		require.NoError(t, e.export(t.Context()))
	}
	text := func(i int) string { return strings.Join(strings.Fields(string(s.bodies[i])), "") }
	for _, part := range []string{
		`"traceId":"010000000000000000000000000000fe"`, `"parentSpanId":"02000000000000ab"`, // hex, in lower case
		`"kind":5`, `"code":2`, // enums are integers
		`"startTimeUnixNano":"1795957084850030783"`, `"intValue":"-9223372036854775808"`, // 64 bits are text
		`"bytesValue":"AP8="`, `"droppedAttributesCount":1`, `"flags":771`,
	} {
		require.Contains(t, text(0), part)
	}
	for _, part := range []string{
		`"asInt":"9223372036854775807"`, `"aggregationTemporality":1`, `"count":"3"`, `"traceId":"03000000000000000000000000000004"`,
	} {
		require.Contains(t, text(1), part)
	}
	for _, part := range []string{`"severityNumber":18`, `"spanId":"02000000000000ab"`, `"eventName":"ckpt"`} {
		require.Contains(t, text(2), part)
	}
}

func TestPartialSuccess(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		key := map[string]string{"/v1/traces": "rejectedSpans", "/v1/metrics": "rejectedDataPoints", "/v1/logs": "rejectedLogRecords"}[r.URL.Path]
		_, _ = io.WriteString(w, `{"partialSuccess": {"`+key+`": "2", "errorMessage": "too old"}, "unknown": [1]}`)
	})
	for _, e := range exporters(t, s.target()) {
		err := e.export(t.Context())
		require.ErrorContains(t, err, "too old", e.signal)
		require.ErrorContains(t, err, "2", e.signal)
	}
}

// TestAnswersThatAreNoJSON tell nothing about a success.
func TestAnswersThatAreNoJSON(t *testing.T) {
	for _, answer := range []string{"", "{}", "ok", "<html>", `{"partialSuccess":`} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
		for _, e := range exporters(t, s.target()) {
			require.NoError(t, e.export(t.Context()), answer)
		}
	}
}

// TestRetries has a server that is not there at first, and one that is busy.
func TestRetries(t *testing.T) {
	eachEncoding(t, func(t *testing.T, json bool) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		address := listener.Addr().String()
		require.NoError(t, listener.Close())
		failed := make(chan struct{}) // nobody listens before the first request has been refused
		for _, e := range exporters(t, target{url: "http://" + address, json: json, retry: true, failed: failed}) {
			exported := make(chan error, 1)
			go func() { exported <- e.export(context.Background()) }()
			select {
			case <-failed:
			case err := <-exported:
				require.NoError(t, err, "it gives up")
			}

			busy := []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
			listener, err = net.Listen("tcp", address)
			require.NoError(t, err)
			requests := 0
			server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if requests++; requests <= len(busy) {
					w.WriteHeader(busy[requests-1])
				}
			})}
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()
			require.NoError(t, <-exported, e.signal)
			require.NoError(t, server.Close())
			require.ErrorIs(t, <-served, http.ErrServerClosed)
			require.Equal(t, len(busy)+1, requests)
		}
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	eachEncoding(t, func(t *testing.T, json bool) {
		elsewhere := serve(t, nil)
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		})
		for _, e := range exporters(t, target{url: s.URL, json: json, headers: map[string]string{"x-token": "s3cret"}}) {
			require.ErrorContains(t, e.export(t.Context()), "307")
		}
		require.Empty(t, elsewhere.bodies)
	})
}

func TestResponsesAreBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for chunk := []byte(strings.Repeat(" ", 1<<20)); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	eachEncoding(t, func(t *testing.T, json bool) {
		for _, e := range exporters(t, target{url: s.URL, json: json}) {
			require.ErrorContains(t, e.export(t.Context()), "larger than 4194304 bytes")
		}
	})
}

func TestRequestsEndWithTheirContext(t *testing.T) {
	came, end := make(chan struct{}, 16), make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-end:
		}
	})
	t.Cleanup(func() { close(end) })
	eachEncoding(t, func(t *testing.T, json bool) {
		for _, e := range exporters(t, target{url: s.URL, json: json, retry: true}) {
			ctx, cancel := context.WithCancel(t.Context())
			exported := make(chan error, 1)
			go func() { exported <- e.export(ctx) }()
			<-came
			cancel()
			require.ErrorIs(t, <-exported, context.Canceled)
		}
	})
}
