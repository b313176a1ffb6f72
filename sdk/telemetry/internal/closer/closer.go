// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package closer ends the spans that are still open when telemetry is shut down, so that they are exported
// (NeMo Lens 0.2, open-span closer).
package closer // import "github.com/lenscol/lenscol/sdk/telemetry/internal/closer"

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// DefaultLimit is how many open spans there is room for: those of 16,384 rollouts, a few each. A span of three attributes holds
// about 1 KiB, which the program holds too unless it dropped the span without ending it.
const DefaultLimit = 1 << 17

// reason is the text that NeMo Lens writes.
const reason = "still open at telemetry shutdown"

// Closer is a span processor, to be registered before the one that exports: the SDK shuts processors down in that order.
//
// At shutdown it ends every open span, the last started first, with the attribute nemo.span.truncated and an event of that
// name that says why; the status stays as it is. Spans that start later are not tracked.
type Closer struct {
	flush func(context.Context) error
	every int // ended spans from one flush to the next
	limit int

	few  table                 // stays in a processor's cache
	many atomic.Pointer[table] // made when few is full

	shut              atomic.Bool
	closed, untracked atomic.Uint64
	unsampled         atomic.Uint64 // of started

	_       [64]byte      // all write started, and none shall wait for it who reads the above
	started atomic.Uint64 // numbers spans in the order of their start
}

var _ sdktrace.SpanProcessor = (*Closer)(nil)

// New has room for limit open spans, rounded up to a power of two; a few find none before it is full. flush is called at
// shutdown after every so many ended spans, at least one, so that they do not overrun the queue of the processor that exports;
// nil is none.
func New(limit, every int, flush func(context.Context) error) *Closer {
	return &Closer{flush: flush, every: every, limit: limit, few: newTable(min(limit, 1<<10))}
}

// Closed is how many spans were open at shutdown, and ended by it: leaks of the program, or work that was cut.
func (c *Closer) Closed() uint64 { return c.closed.Load() }

// Untracked is how many spans were started while there was no room.
func (c *Closer) Untracked() uint64 { return c.untracked.Load() }

// Sampled is how many spans that are to be exported were started before the shutdown.
func (c *Closer) Sampled() uint64 { return c.started.Load() - c.unsampled.Load() }

// OnStart implements sdktrace.SpanProcessor.
func (c *Closer) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	if c.shut.Load() {
		return
	}
	open := openSpan{span, c.started.Add(1)}
	if !span.SpanContext().IsSampled() {
		c.unsampled.Add(1)
	}
	if id := idOf(span); !c.few.put(id, open) && !c.makeMany().put(id, open) {
		c.untracked.Add(1)
	}
}

func (c *Closer) makeMany() table {
	if many := c.many.Load(); many != nil {
		return *many
	}
	many := newTable(c.limit)
	if !c.many.CompareAndSwap(nil, &many) {
		return *c.many.Load()
	}
	return many
}

// OnEnd implements sdktrace.SpanProcessor.
func (c *Closer) OnEnd(span sdktrace.ReadOnlySpan) {
	if id := idOf(span); !c.few.remove(id) {
		if many := c.many.Load(); many != nil {
			many.remove(id)
		}
	}
}

func idOf(span sdktrace.ReadOnlySpan) uint64 {
	id := span.SpanContext().SpanID()
	return binary.LittleEndian.Uint64(id[:])
}

// ForceFlush does nothing: open spans stay open.
func (c *Closer) ForceFlush(context.Context) error { return nil }

// Shutdown ends what is open. Once ctx is over nothing is flushed between, and the error is its.
func (c *Closer) Shutdown(ctx context.Context) error {
	for i, open := range c.takeAll() {
		if c.flush != nil && i > 0 && i%c.every == 0 && ctx.Err() == nil {
			_ = c.flush(ctx) // the exporter's error is reported by the processor that exports
		}
		c.close(open.span)
	}
	return ctx.Err()
}

// takeAll is what is open, the last started first. Nothing is tracked any more.
func (c *Closer) takeAll() []openSpan {
	c.shut.Store(true)
	all := c.few.takeAll(nil)
	if many := c.many.Load(); many != nil {
		all = many.takeAll(all)
	}
	slices.SortFunc(all, func(a, b openSpan) int { return cmp.Compare(b.number, a.number) })
	return all
}

func (c *Closer) close(span sdktrace.ReadWriteSpan) {
	if !span.IsRecording() { // ended meanwhile
		return
	}
	span.SetAttributes(attribute.Bool(semconv.SpanTruncated, true))
	span.AddEvent(semconv.SpanTruncated, trace.WithAttributes(attribute.String(semconv.SpanTruncatedReason, reason)))
	span.End()
	c.closed.Add(1)
}
