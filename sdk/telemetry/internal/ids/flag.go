// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ids // import "github.com/lenscol/lenscol/sdk/telemetry/internal/ids"

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// WithRandomFlag returns tp with the random flag (02) set in the flags of every trace that begins in it, where exported spans,
// log records and `traceparent` have it from. Flags of a parent, remote or not, are kept as they came
// (W3C Trace Context level 2, random-trace-id flag).
//
// The ids of tp must be random: [New]. The result is a pointer and can be compared.
func WithRandomFlag(tp trace.TracerProvider) trace.TracerProvider { return &provider{tp} }

type provider struct{ trace.TracerProvider }

func (p *provider) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	return &tracer{p.TracerProvider.Tracer(name, opts...)}
}

type tracer struct{ trace.Tracer }

// randomRoot is a parent that has no identity, and so is none, but has flags: the SDK's tracer lets a new trace inherit them.
var randomRoot = trace.SpanFromContext(trace.ContextWithSpanContext(context.Background(),
	trace.NewSpanContext(trace.SpanContextConfig{TraceFlags: trace.FlagsRandom})))

// noParent is the span of a context without one.
var noParent = trace.SpanFromContext(context.Background())

func (t *tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if ctx == nil { // as the SDK has it
		ctx = context.Background()
	}
	if slices.ContainsFunc(opts, isNewRoot) {
		// The SDK would make the parent of a new root itself, without flags.
		opts = slices.DeleteFunc(slices.Clone(opts), isNewRoot)
		ctx = trace.ContextWithSpan(ctx, randomRoot)
	} else if parent := trace.SpanFromContext(ctx); parent == noParent || !parent.SpanContext().HasTraceID() {
		ctx = trace.ContextWithSpan(ctx, randomRoot)
	}
	return t.Tracer.Start(ctx, name, opts...)
}

// isNewRoot reports whether opt is trace.WithNewRoot.
func isNewRoot(opt trace.SpanStartOption) bool {
	if _, ok := opt.(trace.EventOption); ok { // attributes and times, which need not be copied to see that
		return false
	}
	config := trace.NewSpanStartConfig(opt)
	return config.NewRoot()
}
