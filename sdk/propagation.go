// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens // import "github.com/lenscol/lenscol/sdk"

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// CarrierKey is the keyword under which NeMo Lens's helpers for Ray send a carrier beside the arguments of a call.
const CarrierKey = "_otel_carrier"

var propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// Propagator is W3C Trace Context and Baggage, what NeMo Lens sends. It serves for carriers other than maps and headers; that of
// gRPC is in contrib/grpc.
func Propagator() propagation.TextMapPropagator { return propagator }

// Inject writes the trace and baggage of ctx into carrier: traceparent, tracestate and baggage, each where there is one. A
// carrier that is nil takes nothing, as of all functions here.
func Inject(ctx context.Context, carrier map[string]string) {
	if carrier != nil {
		propagator.Inject(ctx, propagation.MapCarrier(carrier))
	}
}

// Extract returns ctx with the trace and baggage of carrier. What is missing or not valid leaves that of ctx. Keys are in
// lower case.
func Extract(ctx context.Context, carrier map[string]string) context.Context {
	return propagator.Extract(ctx, propagation.MapCarrier(carrier))
}

// InjectHeader is [Inject] into the headers of an HTTP request.
func InjectHeader(ctx context.Context, header http.Header) {
	if header != nil {
		propagator.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// ExtractHeader is [Extract] of the headers of an HTTP request.
func ExtractHeader(ctx context.Context, header http.Header) context.Context {
	return propagator.Extract(ctx, propagation.HeaderCarrier(header))
}

// LinkTo is a link to the span that carrier names, and whether it names one.
func LinkTo(carrier map[string]string) (trace.Link, bool) {
	remote := trace.SpanContextFromContext(Extract(context.Background(), carrier))
	return trace.Link{SpanContext: remote}, remote.IsValid()
}

// StartLinked is [Start] with a link to the span that carrier names, if it names one: for a stage of a pipeline, which is no
// child of the stage before (NeMo Lens, create_linked_span).
func StartLinked(ctx context.Context, name string, carrier map[string]string, attrs ...Attr) (context.Context, *Span) {
	return StartWith(ctx, name, linked(carrier), attrs...)
}

// StartLinked is [StartLinked] while g is on; while it is off, it returns ctx and nil.
func (g SpanGroup) StartLinked(ctx context.Context, name string, carrier map[string]string, attrs ...Attr) (context.Context, *Span) {
	if !g.Enabled() {
		return ctx, nil
	}
	return startWith(ctx, name, linked(carrier), attrs)
}

func linked(carrier map[string]string) (o SpanOptions) {
	if link, ok := LinkTo(carrier); ok {
		o.Links = []trace.Link{link}
	}
	return o
}

// PipelineCarrier holds the trace context of the stage before, for the spans of this one to link to. It may be stored and
// loaded by several goroutines at once. The zero value holds none.
type PipelineCarrier struct {
	carrier atomic.Pointer[map[string]string] // never changed once it is stored
}

// Store keeps a copy of carrier; nil clears it.
func (p *PipelineCarrier) Store(carrier map[string]string) {
	if carrier = maps.Clone(carrier); carrier == nil {
		p.carrier.Store(nil)
		return
	}
	p.carrier.Store(&carrier)
}

// Load returns a copy of what was stored last, nil where nothing was.
func (p *PipelineCarrier) Load() map[string]string {
	if carrier := p.carrier.Load(); carrier != nil {
		return maps.Clone(*carrier)
	}
	return nil
}

// MarshalContext writes the trace and baggage of ctx as a JSON object, to be sent beside a tensor or in any other message
// (NeMo Lens, serialize_context). Without either it is "{}".
func MarshalContext(ctx context.Context) []byte {
	carrier := map[string]string{}
	Inject(ctx, carrier)
	data, _ := json.Marshal(carrier) // a map of texts has a JSON form
	return data
}

// UnmarshalCarrier reads what [MarshalContext] and NeMo Lens write. Members that are not text are left out. It returns nil for
// what is not a JSON object (NeMo Lens, deserialize_context).
func UnmarshalCarrier(data []byte) map[string]string {
	var members map[string]any
	if json.Unmarshal(data, &members) != nil {
		return nil
	}
	return texts(members)
}

// UnmarshalContext returns ctx with the trace and baggage of data. Of bad data, it is ctx (NeMo Lens, extract_nccl_context).
func UnmarshalContext(ctx context.Context, data []byte) context.Context {
	return Extract(ctx, UnmarshalCarrier(data))
}

// InjectArguments puts the trace and baggage of ctx into the keyword arguments of a call, under [CarrierKey], as NeMo Lens's
// ray_dispatch_with_context does. The arguments may be encoded as JSON.
func InjectArguments(ctx context.Context, arguments map[string]any) {
	if arguments == nil {
		return
	}
	carrier := map[string]string{}
	Inject(ctx, carrier)
	arguments[CarrierKey] = carrier
}

// ExtractArguments takes the carrier out of the keyword arguments of a call and returns ctx with its trace and baggage, as
// NeMo Lens's traced_remote_call does. Without a carrier, or with something else in its place, it is ctx.
func ExtractArguments(ctx context.Context, arguments map[string]any) context.Context {
	value := arguments[CarrierKey]
	delete(arguments, CarrierKey)
	switch carrier := value.(type) {
	case map[string]string:
		return Extract(ctx, carrier)
	case map[string]any: // decoded JSON
		return Extract(ctx, texts(carrier))
	}
	return ctx
}

func texts(members map[string]any) map[string]string {
	if members == nil {
		return nil
	}
	out := make(map[string]string, len(members))
	for key, value := range members {
		if text, ok := value.(string); ok {
			out[key] = text
		}
	}
	return out
}
