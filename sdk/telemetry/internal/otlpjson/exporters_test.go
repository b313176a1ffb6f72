// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjson

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
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

type retries struct{ enabled bool }

var (
	noRetry   = retries{false}
	fastRetry = retries{true}
)

func (r retries) traces() otlptracehttp.Option {
	return otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: r.enabled, InitialInterval: time.Millisecond, MaxInterval: time.Millisecond})
}

func (r retries) metrics() otlpmetrichttp.Option {
	return otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: r.enabled, InitialInterval: time.Millisecond, MaxInterval: time.Millisecond})
}

func (r retries) logs() otlploghttp.Option {
	return otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: r.enabled, InitialInterval: time.Millisecond, MaxInterval: time.Millisecond})
}

// TestJSONCarriesWhatProtobufDoes sends the same by OpenTelemetry's exporters and by ours.
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
			for i, e := range exporters(t, Target{Endpoint: ours.URL, Headers: map[string]string{"x-token": "s3cret"}}) {
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
	for _, e := range exporters(t, s.target("")) {
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
	for _, e := range exporters(t, s.target("")) {
		err := e.export(t.Context())
		require.ErrorContains(t, err, "too old", e.signal)
		require.ErrorContains(t, err, "2", e.signal)
	}
}

// TestPartialSuccessIsHandled goes through the SDK's batch processor to the error handler of the process.
func TestPartialSuccessIsHandled(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"partialSuccess": {"rejectedSpans": 1, "errorMessage": "too old"}}`)
	})
	handled := make(chan error, 1)
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { handled <- err }))
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	exporter, err := NewSpans(t.Context(), s.target("/v1/traces"))
	require.NoError(t, err)
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	_, span := tp.Tracer("test").Start(t.Context(), "step")
	span.End()
	require.NoError(t, tp.Shutdown(t.Context()))
	require.ErrorContains(t, <-handled, "too old")
}

// TestAnswersThatAreNoJSON tell nothing about a success.
func TestAnswersThatAreNoJSON(t *testing.T) {
	for _, answer := range []string{"", "{}", "ok", "<html>", `{"partialSuccess":`} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
		for _, e := range exporters(t, s.target("")) {
			require.NoError(t, e.export(t.Context()), answer)
		}
	}
}

// TestRetries has a server that is not there at first, and one that is busy.
func TestRetries(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	exporter, err := newSpans(t.Context(), Target{Endpoint: "http://" + address}, fastRetry.traces())
	require.NoError(t, err)
	defer func() { require.NoError(t, exporter.Shutdown(context.Background())) }()
	exported := make(chan error, 1)
	go func() { exported <- exporter.ExportSpans(context.Background(), someSpans()) }()

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
	require.NoError(t, <-exported)
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	require.Equal(t, len(busy)+1, requests)
}

func TestErrorsAreShortAndWithoutSecrets(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "bad key "+r.Header.Get("x-token")+" \xff"+strings.Repeat("x", 1<<20))
	})
	to := Target{Endpoint: strings.Replace(s.URL, "//", "//user:passw0rd@", 1), Headers: map[string]string{"x-token": "s3cret"}}
	for _, e := range exporters(t, to) {
		err := e.export(t.Context())
		require.ErrorContains(t, err, "401 Unauthorized")
		require.ErrorContains(t, err, "bad key [REDACTED] \uFFFD")
		require.Less(t, len(err.Error()), 2*maxErrorText)
		require.NotContains(t, err.Error(), "passw0rd")
	}
	s.Close()
	for _, e := range exporters(t, to) {
		err := e.export(t.Context())
		require.Error(t, err)
		require.NotContains(t, err.Error(), "s3cret")
		require.NotContains(t, err.Error(), "passw0rd")
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := serve(t, nil)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	for _, e := range exporters(t, Target{Endpoint: s.URL, Headers: map[string]string{"x-token": "s3cret"}}) {
		require.ErrorContains(t, e.export(t.Context()), "307")
	}
	require.Empty(t, elsewhere.bodies)
}

func TestResponsesAreBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for chunk := []byte(strings.Repeat(" ", 1<<20)); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	for _, e := range exporters(t, s.target("")) {
		require.ErrorContains(t, e.export(t.Context()), "larger than 4194304 bytes")
	}
}

// hung is a server that answers nothing, and tells when a request has come.
func hung(t *testing.T) (*server, chan struct{}) {
	came, end := make(chan struct{}, 16), make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-end:
		}
	})
	t.Cleanup(func() { close(end) })
	return s, came
}

func TestRequestsTimeOut(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "20")
	s, _ := hung(t)
	for _, e := range exporters(t, s.target("")) {
		require.ErrorIs(t, e.export(t.Context()), context.DeadlineExceeded)
	}
}

// TestShutdownEndsWhatHangs: it returns when its context is over, and the export does too.
func TestShutdownEndsWhatHangs(t *testing.T) {
	s, came := hung(t)
	for _, e := range exporters(t, s.target("")) {
		exported := make(chan error, 1)
		go func() { exported <- e.export(context.Background()) }()
		<-came
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = e.shutdown(ctx)
		require.Error(t, <-exported, e.signal)
		require.NoError(t, e.shutdown(t.Context()), "again")
	}
}

// TestShutdownEndsRetries of a server that is always busy.
func TestShutdownEndsRetries(t *testing.T) {
	came := make(chan struct{}, 1)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		select {
		case came <- struct{}{}:
		default:
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	exporter, err := newMetrics(t.Context(), s.target(""), fastRetry.metrics())
	require.NoError(t, err)
	exported := make(chan error, 1)
	go func() { exported <- exporter.Export(context.Background(), someMetrics()) }()
	<-came
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, exporter.Shutdown(ctx), context.Canceled)
	require.Error(t, <-exported)
}
