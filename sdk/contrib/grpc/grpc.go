// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package lensgrpc is for gRPC what contrib/nethttp is for HTTP: spans of servers and clients, by otelgrpc, with the trace carried
// as NeMo Lens carries it, whatever the global propagator is; and trace context in metadata, for programs that want no spans of
// calls.
//
//	server := grpc.NewServer(lensgrpc.ServerOption())
//	conn, err := grpc.NewClient(target, lensgrpc.DialOption(), …)
//
// Where no tracer provider is set, no span is made, and the trace of the caller still goes on to the next.
package lensgrpc // import "github.com/lenscol/lenscol/sdk/contrib/grpc"

import (
	"context"
	"slices"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	lens "github.com/lenscol/lenscol/sdk"
)

// ServerOption makes a span of the server for each call, a child of the caller's. Options of otelgrpc come after ours.
func ServerOption(opts ...otelgrpc.Option) grpc.ServerOption {
	return grpc.StatsHandler(otelgrpc.NewServerHandler(withPropagator(opts)...))
}

// DialOption makes a span of the client for each call, which the server is told.
func DialOption(opts ...otelgrpc.Option) grpc.DialOption {
	return grpc.WithStatsHandler(otelgrpc.NewClientHandler(withPropagator(opts)...))
}

func withPropagator(opts []otelgrpc.Option) []otelgrpc.Option {
	return slices.Concat([]otelgrpc.Option{otelgrpc.WithPropagators(lens.Propagator())}, opts)
}

// Inject writes the trace and baggage of ctx into md; nil takes nothing.
func Inject(ctx context.Context, md metadata.MD) {
	if md != nil {
		lens.Propagator().Inject(ctx, carrier(md))
	}
}

// Extract returns ctx with the trace and baggage of md. What is missing or not valid leaves that of ctx.
func Extract(ctx context.Context, md metadata.MD) context.Context {
	return lens.Propagator().Extract(ctx, carrier(md))
}

// Outgoing returns ctx with its trace and baggage in the metadata that a call with it sends.
func Outgoing(ctx context.Context) context.Context {
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	Inject(ctx, md)
	return metadata.NewOutgoingContext(ctx, md)
}

// Incoming returns the context of a call that came in with the trace and baggage of its metadata.
func Incoming(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	return Extract(ctx, md)
}

// carrier is metadata as propagators take it.
type carrier metadata.MD

var _ propagation.ValuesGetter = carrier{}

func (c carrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

func (c carrier) Values(key string) []string { return metadata.MD(c).Get(key) }
func (c carrier) Set(key, value string)      { metadata.MD(c).Set(key, value) }

func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}
