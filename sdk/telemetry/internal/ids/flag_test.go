// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// uploads is an OTLP client that keeps what it is given.
type uploads struct{ spans []*tracepb.Span }

func (*uploads) Start(context.Context) error { return nil }
func (*uploads) Stop(context.Context) error  { return nil }
func (u *uploads) UploadTraces(_ context.Context, batch []*tracepb.ResourceSpans) error {
	for _, resource := range batch {
		for _, scope := range resource.ScopeSpans {
			u.spans = append(u.spans, scope.Spans...)
		}
	}
	return nil
}

func traced(t *testing.T, opts ...sdktrace.TracerProviderOption) (trace.Tracer, *uploads) {
	client := &uploads{}
	exporter, err := otlptrace.New(t.Context(), client)
	require.NoError(t, err)
	tp := sdktrace.NewTracerProvider(append(opts, sdktrace.WithIDGenerator(New()), sdktrace.WithSyncer(exporter))...)
	t.Cleanup(func() { require.NoError(t, tp.Shutdown(context.Background())) })
	return WithRandomFlag(tp).Tracer("test"), client
}

func traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

func TestRandomFlag(t *testing.T) {
	const parentID = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-"
	for _, tt := range []struct {
		name, parent string // of traceparent, "": none
		opts         []trace.SpanStartOption
		flags        uint32
		text         string
	}{
		{name: "root", flags: 3, text: "-03"},
		{name: "a remote parent that says it is random", parent: parentID + "03", flags: 3, text: "-03"},
		{name: "a remote parent that does not", parent: parentID + "01", flags: 1, text: "-01"},
		{name: "a new root below one that does not", parent: parentID + "01", opts: []trace.SpanStartOption{trace.WithNewRoot()}, flags: 3, text: "-03"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tracer, client := traced(t)
			ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": tt.parent})
			ctx, span := tracer.Start(ctx, "outer", tt.opts...)
			require.Equal(t, tt.text, traceparent(ctx)[52:])
			inner, child := tracer.Start(ctx, "inner")
			require.Equal(t, tt.text, traceparent(inner)[52:])
			child.End()
			span.End()
			require.Len(t, client.spans, 2)
			for _, span := range client.spans {
				require.Equal(t, tt.flags, span.Flags&0xff)
			}
			root := client.spans[1]
			require.Equal(t, root.TraceId, client.spans[0].TraceId)
			require.Equal(t, root.SpanId, client.spans[0].ParentSpanId)
			if tt.parent == "" || len(tt.opts) > 0 {
				require.Empty(t, root.ParentSpanId)
				require.NotEqual(t, tt.parent, traceparent(ctx))
			} else {
				require.Equal(t, tt.parent[3:35], span.SpanContext().TraceID().String())
			}
		})
	}
}

func TestRandomFlagOfTracesThatAreNotSampled(t *testing.T) {
	tracer, client := traced(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	ctx, span := tracer.Start(t.Context(), "root")
	span.End()
	require.Equal(t, "-02", traceparent(ctx)[52:])
	require.Empty(t, client.spans)
}

func TestNewRootKeepsItsOtherOptions(t *testing.T) {
	tracer, client := traced(t)
	ctx, parent := tracer.Start(t.Context(), "parent")
	_, span := tracer.Start(ctx, "root", trace.WithAttributes(attribute.Int("a", 1)), trace.WithNewRoot(),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithLinks(trace.Link{SpanContext: parent.SpanContext()}))
	span.End()
	got := client.spans[0]
	require.Empty(t, got.ParentSpanId)
	require.NotEqual(t, parent.SpanContext().TraceID(), span.SpanContext().TraceID())
	require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, got.Kind)
	require.Len(t, got.Attributes, 1)
	require.Len(t, got.Links, 1)
	require.EqualValues(t, 3, got.Links[0].Flags&0xff)
}

func TestNoContextIsARoot(t *testing.T) {
	tracer, _ := traced(t)
	var none context.Context // the SDK takes it
	ctx, span := tracer.Start(none, "root")
	defer span.End()
	require.Equal(t, "-03", traceparent(ctx)[52:])
}
