// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package ids makes trace and span ids that are random in the sense of W3C Trace Context, and says so in the trace flags.
package ids // import "github.com/lenscol/lenscol/sdk/telemetry/internal/ids"

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// New is a generator of random ids that are never zero. They come from the runtime's ChaCha8, which the OS seeds, of which
// each thread has its own without a lock, and which no program can seed: ranks that seed math/rand alike share no id
// (NeMo Lens 0.2, ID generator).
func New() sdktrace.IDGenerator { return generator{rand.Uint64} }

type generator struct{ random func() uint64 }

// NewIDs implements sdktrace.IDGenerator.
func (g generator) NewIDs(context.Context) (traceID trace.TraceID, spanID trace.SpanID) {
	binary.BigEndian.PutUint64(traceID[:8], g.random())
	binary.BigEndian.PutUint64(traceID[8:], g.nonZero())
	binary.BigEndian.PutUint64(spanID[:], g.nonZero())
	return traceID, spanID
}

// NewSpanID implements sdktrace.IDGenerator.
func (g generator) NewSpanID(context.Context, trace.TraceID) (spanID trace.SpanID) {
	binary.BigEndian.PutUint64(spanID[:], g.nonZero())
	return spanID
}

func (g generator) nonZero() uint64 {
	for {
		if n := g.random(); n != 0 {
			return n
		}
	}
}
