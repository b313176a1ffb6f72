// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens // import "github.com/lenscol/lenscol/sdk"

import "context"

// Managed runs fn within a span, and without one (nil) while g is off. An error of fn is recorded as an exception event and
// as the span's ERROR status, its description the error's text, and returned as it is; a panic is recorded likewise and
// goes on. The span always ends (NeMo Lens, managed_span).
func Managed(ctx context.Context, g SpanGroup, name string, fn func(context.Context, *Span) error, attrs ...Attr) (err error) {
	ctx, span := g.Start(ctx, name, attrs...)
	defer span.Finish(&err)
	return fn(ctx, span)
}

// Wrap returns fn within a span while g is on; the group is asked at each call. Errors and panics are recorded as by
// [Managed], but the description is "type: text" (NeMo Lens, trace_fn).
func Wrap(g SpanGroup, name string, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		ctx, span := startTyped(ctx, g, name)
		defer span.Finish(&err)
		return fn(ctx)
	}
}

// WrapIn is [Wrap] for a function with an argument.
func WrapIn[In any](g SpanGroup, name string, fn func(context.Context, In) error) func(context.Context, In) error {
	return func(ctx context.Context, in In) (err error) {
		ctx, span := startTyped(ctx, g, name)
		defer span.Finish(&err)
		return fn(ctx, in)
	}
}

// WrapOut is [Wrap] for a function with a result.
func WrapOut[Out any](g SpanGroup, name string, fn func(context.Context) (Out, error)) func(context.Context) (Out, error) {
	return func(ctx context.Context) (out Out, err error) {
		ctx, span := startTyped(ctx, g, name)
		defer span.Finish(&err)
		return fn(ctx)
	}
}

// WrapInOut is [Wrap] for a function with an argument and a result.
func WrapInOut[In, Out any](g SpanGroup, name string, fn func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		ctx, span := startTyped(ctx, g, name)
		defer span.Finish(&err)
		return fn(ctx, in)
	}
}

func startTyped(ctx context.Context, g SpanGroup, name string) (context.Context, *Span) {
	ctx, span := g.Start(ctx, name)
	if span != nil {
		span.typed = true
	}
	return ctx, span
}
