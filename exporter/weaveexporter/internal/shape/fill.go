// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// filler fills requests with encoded spans, one request at a time for each target, endpoint and run.
type filler struct {
	limit    int
	memory   *memory
	requests []Request
	open     []*filling
}

type filling struct {
	target   Target
	endpoint Endpoint
	run      string // of Agents; at Calls the span says it
	place    int    // in requests
	from     *scope // of group
	group    group
	closed   int // upper bound of the bytes of the groups before
}

// groupOverhead bounds the tags and lengths of a group.
const groupOverhead = 3 * (1 + protowireMaxSize)

const protowireMaxSize = 10

// put adds a span of a scope to the request that is open for it, or starts one.
func (f *filler) put(sc *scope, e Endpoint, run string, span []byte) {
	if e == Calls {
		run = ""
	}
	o := f.filling(sc.target, e, run)
	size := 1 + protowire.SizeBytes(len(span))
	if o.from != sc {
		f.closeGroup(o)
		o.from, o.group = sc, group{resource: sc.resource.bytes, scope: sc.bytes}
	}
	if o.closed+o.upper()+size > f.limit && (o.closed > 0 || len(o.group.ends) > 0) {
		f.closeGroup(o)
		o.place, o.closed = f.start(o), 0
		o.from, o.group = sc, group{resource: sc.resource.bytes, scope: sc.bytes}
	}
	g := &o.group
	if g.ends == nil {
		g.ends = make([]int, 0, sc.size)
	}
	f.reserve(g, size, sc.size)
	g.spans = appendBytes(g.spans, tagSpan, span)
	g.ends = append(g.ends, len(g.spans))
}

// reserve makes room in g for a span of size bytes: at first for two such, then for as many spans as the scope has, at the mean of those so far. The
// first alone says little of the others: it may be the one with the prompt.
func (f *filler) reserve(g *group, size, spans int) {
	need := len(g.spans) + size
	if need <= cap(g.spans) {
		return
	}
	room := 2 * size
	if n := len(g.ends); n > 0 {
		mean := need / (n + 1)
		room = max(need+need/4, min(f.limit, (mean+mean/8)*spans))
	}
	g.spans = append(f.memory.take(room), g.spans...)
}

// upper bounds the size of the open group.
func (o *filling) upper() int {
	return groupOverhead + len(o.group.resource) + len(o.group.scope) + len(o.group.spans)
}

func (f *filler) filling(t Target, e Endpoint, run string) *filling {
	for _, o := range f.open {
		if o.endpoint == e && o.target == t && o.run == run {
			return o
		}
	}
	o := &filling{target: t, endpoint: e, run: run}
	o.place = f.start(o)
	f.open = append(f.open, o)
	return o
}

func (f *filler) start(o *filling) (place int) {
	f.requests = append(f.requests, Request{Target: o.target, Endpoint: o.endpoint, Run: o.run})
	return len(f.requests) - 1
}

func (f *filler) closeGroup(o *filling) {
	if len(o.group.ends) > 0 {
		o.closed += o.upper()
		f.requests[o.place].add(o.group)
	}
	o.group = group{}
}

// finish returns all requests, in the order of their first spans.
func (f *filler) finish() []Request {
	for _, o := range f.open {
		f.closeGroup(o)
	}
	return f.requests
}

// memory lends the bytes of requests out: to take them anew for each batch is a fourth of what shaping costs.
type memory struct{ pool sync.Pool }

func (m *memory) take(size int) []byte {
	if b, ok := m.pool.Get().(*[]byte); ok && cap(*b) >= size {
		return (*b)[:0]
	}
	return make([]byte, 0, size)
}

func (m *memory) give(b []byte) { m.pool.Put(&b) }

// Release gives the memory of the requests back to the shaper. Nothing of r may be used after it, nor a half of one of its requests. Without
// it the memory is garbage as any other.
func (r *Result) Release() {
	for _, request := range r.Requests {
		for _, g := range request.groups {
			r.memory.give(g.spans)
		}
	}
	*r = Result{}
}
