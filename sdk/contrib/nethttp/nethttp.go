// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package nethttp is what NeMo Lens's contrib.fastapi and contrib.aiohttp are, for net/http: spans of a server and of a client, by
// otelhttp, with the trace carried as Lens carries it, whatever the global propagator is.
//
//	http.ListenAndServe(address, nethttp.Handler(mux))
//
//	client := nethttp.Client(nil)
//	request, err := http.NewRequestWithContext(ctx, …)
//
// Where no tracer provider is set, no span is made, and the trace of the caller still goes on to the next. The name of
// the service is not given here: it is that of the process, OTEL_SERVICE_NAME. (Lens's functions take one and do not
// use it.)
package nethttp // import "github.com/lenscol/lenscol/sdk/contrib/nethttp"

import (
	"net/http"
	"slices"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	lens "github.com/lenscol/lenscol/sdk"
)

// Handler is h within a span of the server for each request, a child of the caller's, named by method and the pattern that an
// [http.ServeMux] below finds: "POST /v1/verify". Options of otelhttp come after ours.
func Handler(h http.Handler, opts ...otelhttp.Option) http.Handler {
	return otelhttp.NewHandler(h, "", withPropagator(opts)...)
}

// Transport is base, or [http.DefaultTransport] for nil, within a span of the client for each request, which the server is told.
func Transport(base http.RoundTripper, opts ...otelhttp.Option) http.RoundTripper {
	return otelhttp.NewTransport(base, withPropagator(opts)...)
}

// Client is a copy of client, or of [http.DefaultClient] for nil, with a [Transport]. A span ends when the body of the answer
// has been read to its end or is closed.
func Client(client *http.Client, opts ...otelhttp.Option) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	traced := *client
	traced.Transport = Transport(client.Transport, opts...)
	return &traced
}

func withPropagator(opts []otelhttp.Option) []otelhttp.Option {
	return slices.Concat([]otelhttp.Option{otelhttp.WithPropagators(lens.Propagator())}, opts)
}
