// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package launch // import "github.com/lenscol/lenscol/internal/launch"

import (
	"cmp"
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"

	lens "github.com/lenscol/lenscol/sdk"
)

// Emitted is a span that was handed to the exporter.
type Emitted struct {
	Span
	Context trace.SpanContext
}

// flushEvery bounds how many spans wait in the SDK's queue, which drops what it cannot hold.
const flushEvery = 512

// Emit sends spans, parents first as [ParseSpans] has them, each root in a trace of its own, and waits until they are exported.
// The error is of the export: some of the spans, or all, did not arrive.
func Emit(ctx context.Context, s Session, spans []Span, attrs ...lens.Attr) ([]Emitted, error) {
	h, target, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	parents := make(map[string]context.Context, len(spans))
	emitted := make([]Emitted, 0, len(spans))
	var errs []error
	for i, span := range spans {
		in := ctx
		if span.Parent != "" {
			in = parents[span.Parent]
		}
		sent := lens.EmitSpanWith(in, span.Name, span.Start, span.End, span.More, attrs...).SpanContext()
		parents[span.Name] = trace.ContextWithSpanContext(ctx, sent)
		emitted = append(emitted, Emitted{span, sent})
		if (i+1)%flushEvery == 0 {
			errs = append(errs, h.ForceFlush(ctx))
		}
	}
	err = errors.Join(append(errs, h.ForceFlush(ctx))...)
	if stop := h.Shutdown(ctx); err == nil {
		err = stop // else it says the same again
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = cmp.Or(reach(target)(), err) // It does not say where nobody is.
	}
	return emitted, err
}
