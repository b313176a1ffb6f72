// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lensgrpc_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/baggage"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	lens "github.com/lenscol/lenscol/sdk"
	lensgrpc "github.com/lenscol/lenscol/sdk/contrib/grpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"

// service is a server that answers Check by check.
type service struct {
	healthpb.UnimplementedHealthServer
	check func(context.Context) error
}

func (s service) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return &healthpb.HealthCheckResponse{}, s.check(ctx)
}

// serve starts a server with opts whose Check is check, and returns its Check for clients with dial.
func serve(t testing.TB, check func(context.Context) error, server []grpc.ServerOption, dial ...grpc.DialOption) func(context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer(server...)
	healthpb.RegisterHealthServer(s, service{check: check})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(listener)
	}()
	conn, err := grpc.NewClient(listener.Addr().String(), append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		s.Stop()
		<-done
	})
	return func(ctx context.Context) error {
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
}

func TestOneTraceOverTwoHops(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	server := []grpc.ServerOption{lensgrpc.ServerOption(otelgrpc.WithTracerProvider(provider))}
	dial := lensgrpc.DialOption(otelgrpc.WithTracerProvider(provider))

	bags := make(chan string, 1)
	inner := serve(t, func(ctx context.Context) error { bags <- baggage.FromContext(ctx).String(); return nil }, server, dial)
	outer := serve(t, inner, server, dial)

	bag, err := baggage.Parse("run=a")
	require.NoError(t, err)
	ctx, root := lens.StartWith(baggage.ContextWithBaggage(t.Context(), bag), "rollout", lens.SpanOptions{Tracer: provider.Tracer("test")})
	require.NoError(t, outer(ctx))
	root.End()
	require.Equal(t, "run=a", <-bags)

	// The server's span may end after its client has its answer.
	require.Eventually(t, func() bool { return len(recorder.Ended()) == 5 }, time.Minute, time.Millisecond)
	byParent := map[trace.SpanID]sdktrace.ReadOnlySpan{}
	for _, span := range recorder.Ended() {
		require.Equal(t, root.SpanContext().TraceID(), span.SpanContext().TraceID())
		byParent[span.Parent().SpanID()] = span
	}
	var names []string
	for span, ok := byParent[trace.SpanID{}]; ok; span, ok = byParent[span.SpanContext().SpanID()] {
		names = append(names, fmt.Sprint(span.SpanKind(), " ", span.Name()))
	}
	const method = "grpc.health.v1.Health/Check"
	require.Equal(t, []string{"internal rollout", "client " + method, "server " + method, "client " + method, "server " + method}, names)
}

func TestWithoutAProviderTheTraceGoesOn(t *testing.T) {
	seen := make(chan trace.SpanContext, 1)
	server := []grpc.ServerOption{lensgrpc.ServerOption()}
	inner := serve(t, func(ctx context.Context) error { seen <- trace.SpanContextFromContext(ctx); return nil }, server, lensgrpc.DialOption())
	outer := serve(t, inner, server, lensgrpc.DialOption())
	require.NoError(t, outer(lens.Extract(t.Context(), map[string]string{"traceparent": traceparent})))
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", (<-seen).TraceID().String())
}

func TestMetadataWithoutSpans(t *testing.T) {
	seen := make(chan context.Context, 1)
	check := serve(t, func(ctx context.Context) error { seen <- lensgrpc.Incoming(ctx); return nil }, nil)
	sent := metadata.MD{"mine": {"stays"}}
	ctx := lens.Extract(metadata.NewOutgoingContext(t.Context(), sent),
		map[string]string{"traceparent": traceparent, "tracestate": "vendor=1", "baggage": "run=a"})
	require.NoError(t, check(lensgrpc.Outgoing(ctx)))
	require.Equal(t, metadata.MD{"mine": {"stays"}}, sent, "the caller's is not changed")

	got := <-seen
	md, _ := metadata.FromIncomingContext(got)
	require.Equal(t, []string{"stays"}, md.Get("mine"))
	carrier := map[string]string{}
	lens.Inject(got, carrier)
	require.Equal(t, map[string]string{"traceparent": traceparent, "tracestate": "vendor=1", "baggage": "run=a"}, carrier)

	require.NoError(t, check(lensgrpc.Outgoing(t.Context())))
	require.False(t, trace.SpanContextFromContext(<-seen).IsValid())
}

func TestInjectIntoNothing(t *testing.T) {
	ctx := lens.Extract(t.Context(), map[string]string{"traceparent": traceparent})
	require.NotPanics(t, func() { lensgrpc.Inject(ctx, nil) })
}

func TestExtract(t *testing.T) {
	ctx := lensgrpc.Extract(t.Context(), metadata.Pairs("Traceparent", traceparent, "baggage", "a=1", "baggage", "b=2"))
	require.Equal(t, 2, baggage.FromContext(ctx).Len(), "of several headers")
	for name, md := range map[string]metadata.MD{"nil": nil, "empty": {}, "no value": {"traceparent": nil}, "bad": metadata.Pairs("traceparent", "00-zz", "baggage", "\xff")} {
		t.Run(name, func(t *testing.T) {
			got := lensgrpc.Extract(ctx, md)
			require.Equal(t, trace.SpanContextFromContext(ctx), trace.SpanContextFromContext(got))
		})
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(traceparent, "vendor=1", "run=a")
	f.Add("00-zz", "=", "%")
	f.Fuzz(func(t *testing.T, traceparent, tracestate, bag string) {
		got := lensgrpc.Extract(t.Context(), metadata.Pairs("traceparent", traceparent, "tracestate", tracestate, "baggage", bag))
		md := metadata.MD{}
		lensgrpc.Inject(got, md)
		again := lensgrpc.Extract(t.Context(), md)
		require.Equal(t, trace.SpanContextFromContext(got), trace.SpanContextFromContext(again))
	})
}

func Example() {
	md := metadata.MD{}
	ctx := lens.Extract(context.Background(), map[string]string{"traceparent": traceparent})
	lensgrpc.Inject(ctx, md)
	fmt.Println(md.Get("traceparent"))
	fmt.Println(trace.SpanContextFromContext(lensgrpc.Extract(context.Background(), md)).TraceID())
	// Output:
	// [00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03]
	// 0af7651916cd43dd8448eb211c80319c
}
