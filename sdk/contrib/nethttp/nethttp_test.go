// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package nethttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/baggage"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/contrib/nethttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// environment is the last server of two: it answers with what it was told.
func environment() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/verify/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, trace.SpanContextFromContext(r.Context()).TraceID(), " ", baggage.FromContext(r.Context()))
	})
	return mux
}

// gateway passes a request on to the environment at url.
func gateway(client *http.Client, url string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := post(r.Context(), client, url+"/v1/verify/7")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprint(w, text)
	})
}

func post(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// hops are the two servers; it returns the gateway's address.
func hops(t *testing.T, client *http.Client) string {
	inner := httptest.NewServer(nethttp.Handler(environment()))
	outer := httptest.NewServer(nethttp.Handler(gateway(client, inner.URL)))
	t.Cleanup(func() {
		client.CloseIdleConnections()
		outer.Close()
		inner.Close()
	})
	return outer.URL
}

func ownClient() *http.Client { return nethttp.Client(&http.Client{Transport: &http.Transport{}}) }

func TestOneTraceOverTwoHops(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	client := ownClient()
	url := hops(t, client)

	bag, err := baggage.Parse("run=a")
	require.NoError(t, err)
	ctx, root := lens.Start(baggage.ContextWithBaggage(t.Context(), bag), "rollout")
	text, err := post(ctx, client, url)
	root.End()
	require.NoError(t, err)
	require.Equal(t, root.SpanContext().TraceID().String()+" run=a", text)

	// Each span is the parent of the next: root, client, gateway, client, environment.
	byParent := map[trace.SpanID]sdktrace.ReadOnlySpan{}
	for _, span := range recorder.Ended() {
		require.Equal(t, root.SpanContext().TraceID(), span.SpanContext().TraceID())
		byParent[span.Parent().SpanID()] = span
	}
	var names []string
	for span, ok := byParent[trace.SpanID{}]; ok; span, ok = byParent[span.SpanContext().SpanID()] {
		names = append(names, fmt.Sprint(span.SpanKind(), " ", span.Name()))
	}
	require.Equal(t, []string{"internal rollout", "client HTTP POST", "server POST", "client HTTP POST", "server POST /v1/verify/{id}"}, names)
}

func TestWithoutAProviderTheTraceGoesOn(t *testing.T) {
	client := ownClient()
	url := hops(t, client)
	ctx := lens.Extract(t.Context(), map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"})
	text, err := post(ctx, client, url)
	require.NoError(t, err)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c ", text)
}

func TestClientLeavesTheOneItIsMadeOf(t *testing.T) {
	mine := &http.Client{Timeout: 7}
	traced := nethttp.Client(mine)
	require.Nil(t, mine.Transport)
	require.Equal(t, mine.Timeout, traced.Timeout)
	require.NotNil(t, nethttp.Client(nil).Transport)
	require.Nil(t, http.DefaultClient.Transport)
}

func TestOptionsComeAfterOurs(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	handler := nethttp.Handler(environment(),
		otelhttp.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))),
		otelhttp.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/healthz" }))
	for _, path := range []string{"/healthz", "/v1/verify/1"} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, nil))
	}
	require.Len(t, recorder.Ended(), 1)
}

func Example() {
	server := httptest.NewServer(nethttp.Handler(environment()))
	defer server.Close()
	ctx := lens.Extract(context.Background(), map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"})
	client := nethttp.Client(server.Client())
	defer client.CloseIdleConnections()
	fmt.Println(post(ctx, client, server.URL+"/v1/verify/7"))
	// Output: 0af7651916cd43dd8448eb211c80319c  <nil>
}
