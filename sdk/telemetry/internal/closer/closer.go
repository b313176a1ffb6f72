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
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// DefaultLimit is how many open spans are tracked. A span of three attributes holds about 1 KiB, which the program holds too
// unless it dropped the span without ending it.
const DefaultLimit = 1 << 17

// reason is the text that NeMo Lens writes.
const reason = "still open at telemetry shutdown"

// Closer is a span processor, to be registered before the one that exports: the SDK shuts processors down in that order.
//
// At shutdown it ends every open span, the last started first, with the attribute nemo.span.truncated and an event of that
// name that says why; the status stays as it is. Spans that start later are not tracked.
type Closer struct {
	flush func(context.Context) error
	limit int // open spans of one shard

	started atomic.Uint64 // numbers spans in the order of their start

	closed, untracked atomic.Uint64

	shards [shards]shard
}

var _ sdktrace.SpanProcessor = (*Closer)(nil)

// shards are so many that each holds few open spans, 128 at the default limit: they are searched one by one.
const shards = 1024

// shard has a cache line of its own.
type shard struct {
	mu     sync.Mutex
	closed bool
	open   []openSpan // in no order
	_      [64 - 40]byte
}

type openSpan struct {
	id     uint64
	number uint64
	span   sdktrace.ReadWriteSpan
}

// New tracks up to limit spans, a few less where their ids are not spread evenly. flush is called at shutdown after every
// few hundred ended spans, so that they do not overrun the queue of the processor that exports; nil is none.
func New(limit int, flush func(context.Context) error) *Closer {
	return &Closer{flush: flush, limit: (limit + shards - 1) / shards}
}

// Closed is how many spans were open at shutdown, and ended by it: leaks of the program, or work that was cut.
func (c *Closer) Closed() uint64 { return c.closed.Load() }

// Untracked is how many spans were started while as many as the limit were open.
func (c *Closer) Untracked() uint64 { return c.untracked.Load() }

// OnStart implements sdktrace.SpanProcessor.
func (c *Closer) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	number := c.started.Add(1)
	s, id := c.shard(span.SpanContext().SpanID())
	s.mu.Lock()
	room := len(s.open) < c.limit
	if room && !s.closed {
		s.open = append(s.open, openSpan{id, number, span})
	}
	s.mu.Unlock()
	if !room {
		c.untracked.Add(1)
	}
}

// OnEnd implements sdktrace.SpanProcessor.
func (c *Closer) OnEnd(span sdktrace.ReadOnlySpan) {
	s, id := c.shard(span.SpanContext().SpanID())
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.open) - 1
	for i := last; i >= 0; i-- {
		if s.open[i].id == id {
			s.open[i] = s.open[last]
			s.open[last] = openSpan{}
			s.open = s.open[:last]
			return
		}
	}
}

func (c *Closer) shard(spanID trace.SpanID) (*shard, uint64) {
	id := binary.LittleEndian.Uint64(spanID[:])
	return &c.shards[id%shards], id
}

// ForceFlush does nothing: open spans stay open.
func (c *Closer) ForceFlush(context.Context) error { return nil }

// flushEvery is the size of a batch of the SDK's batch processor, whose queue holds four.
const flushEvery = 512

// Shutdown ends what is open. Once ctx is over nothing is flushed between, and the error is its.
func (c *Closer) Shutdown(ctx context.Context) error {
	for i, open := range c.takeAll() {
		if i > 0 && i%flushEvery == 0 && c.flush != nil && ctx.Err() == nil {
			_ = c.flush(ctx) // the exporter's error is reported by the processor that exports
		}
		c.close(open.span)
	}
	return ctx.Err()
}

// takeAll empties the shards for good, and returns what was open, the last started first.
func (c *Closer) takeAll() []openSpan {
	var all []openSpan
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		all = append(all, s.open...)
		s.open, s.closed = nil, true
		s.mu.Unlock()
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
