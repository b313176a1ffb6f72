// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package ray is NeMo Lens's contrib.ray for Go: trace context in the keyword arguments of a remote call, under _otel_carrier.
// A Go driver can call a worker that Lens's traced_remote_call wraps, and the other way round. How a call reaches the other
// process is not decided here: arguments are a map, as JSON or MessagePack carry it.
package ray // import "github.com/lenscol/lenscol/sdk/contrib/ray"

import (
	"context"
	"maps"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	lens "github.com/lenscol/lenscol/sdk"
)

// ScopeName is the instrumentation scope of the spans of remote calls, as in Lens.
const ScopeName = "nemo.lens.ray"

// InjectContext is a carrier with the trace and baggage of ctx (Lens, inject_ray_context).
func InjectContext(ctx context.Context) map[string]string {
	carrier := map[string]string{}
	lens.Inject(ctx, carrier)
	return carrier
}

// ExtractContext returns ctx with the trace and baggage of carrier. Of nil it is ctx (Lens, extract_ray_context).
func ExtractContext(ctx context.Context, carrier map[string]string) context.Context {
	return lens.Extract(ctx, carrier)
}

// Call is a remote method, seen from either side: Out is its result, or at the driver what stands for it until it is there.
type Call[Out any] = func(ctx context.Context, arguments map[string]any) (Out, error)

// Dispatch calls remote with the trace and baggage of ctx beside the arguments, which are not changed. A carrier that stands
// there already goes along instead (Lens, ray_dispatch_with_context).
func Dispatch[Out any](ctx context.Context, remote Call[Out], arguments map[string]any) (Out, error) {
	sent := maps.Clone(arguments)
	if sent == nil {
		sent = map[string]any{}
	}
	if sent[lens.CarrierKey] == nil {
		lens.InjectArguments(ctx, sent)
	}
	return remote(ctx, sent)
}

// TracedRemoteCall is method for the worker: it takes the carrier out of the arguments, and runs method, which does not see it,
// within a span of that trace, called name: in Lens the method's qualified name, Worker.generate. An error is recorded as
// by [lens.Wrap], and returned; arguments are not changed. A nil tracer is that of [ScopeName] (Lens, traced_remote_call).
func TracedRemoteCall[Out any](name string, method Call[Out], tracer trace.Tracer) Call[Out] {
	return func(ctx context.Context, arguments map[string]any) (out Out, err error) {
		arguments = maps.Clone(arguments)
		ctx = lens.ExtractArguments(ctx, arguments)
		t := tracer
		if t == nil {
			t = otel.Tracer(ScopeName) // asked for at each call: the provider may be set after this
		}
		ctx, span := lens.StartWith(ctx, name, lens.SpanOptions{Tracer: t})
		defer span.Finish(&err)
		return method(ctx, arguments)
	}
}
