// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"
)

// Request is one export request to one project and endpoint: the encoded spans, and where each ends. Halving it copies no span.
type Request struct {
	Target   Target
	Endpoint Endpoint
	// Run is the bare id of the run of all its spans. Weave reads it from the span at Calls; at Agents only from a header, so
	// requests to Agents have one run each.
	Run   string
	Spans int
	Bytes int // of the protobuf form, before compression

	groups []group
}

// group are spans of one resource and one scope.
type group struct {
	resource []byte // the fields of a ResourceSpans before and after its scopes
	scope    []byte // the fields of a ScopeSpans besides its spans
	spans    []byte // each a whole field of a ScopeSpans: tag, length, span
	ends     []int  // of each span in spans
}

// Fields of ExportTraceServiceRequest, ResourceSpans and ScopeSpans (OTLP 1.10).
const (
	fieldResourceSpans = 1
	fieldScopeSpans    = 2
	fieldSpans         = 2
)

func (g *group) scopeSpansSize() int { return len(g.scope) + len(g.spans) }

func (g *group) resourceSpansSize() int {
	return len(g.resource) + protowire.SizeTag(fieldScopeSpans) + protowire.SizeBytes(g.scopeSpansSize())
}

func (g *group) size() int {
	return protowire.SizeTag(fieldResourceSpans) + protowire.SizeBytes(g.resourceSpansSize())
}

// cut returns the first n spans of g, and the rest.
func (g *group) cut(n int) (first, rest group) {
	at := 0
	if n > 0 {
		at = g.ends[n-1]
	}
	first, rest = *g, *g
	first.spans, first.ends = g.spans[:at:at], g.ends[:n:n]
	rest.spans, rest.ends = g.spans[at:], make([]int, len(g.ends)-n)
	for i, end := range g.ends[n:] {
		rest.ends[i] = end - at
	}
	return first, rest
}

// AppendTo appends the protobuf form of r, an ExportTraceServiceRequest of r.Bytes bytes, to b.
func (r *Request) AppendTo(b []byte) []byte {
	b = slices.Grow(b, r.Bytes)
	for i := range r.groups {
		g := &r.groups[i]
		b = protowire.AppendTag(b, fieldResourceSpans, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(g.resourceSpansSize()))
		b = append(b, g.resource...)
		b = protowire.AppendTag(b, fieldScopeSpans, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(g.scopeSpansSize()))
		b = append(b, g.scope...)
		b = append(b, g.spans...)
	}
	return b
}

// Split returns the two halves of r by number of spans. A request of one span has none: ok is false.
func (r *Request) Split() (first, second Request, ok bool) {
	if r.Spans < 2 {
		return Request{}, Request{}, false
	}
	first, second = r.empty(), r.empty()
	left := r.Spans / 2
	for i := range r.groups {
		a, b := r.groups[i].cut(min(left, len(r.groups[i].ends)))
		left -= len(a.ends)
		first.add(a)
		second.add(b)
	}
	return first, second, true
}

func (r *Request) empty() Request { return Request{Target: r.Target, Endpoint: r.Endpoint, Run: r.Run} }

func (r *Request) add(g group) {
	if len(g.ends) == 0 {
		return
	}
	r.groups = append(r.groups, g)
	r.Spans += len(g.ends)
	r.Bytes += g.size()
}

// Traces decodes r, for what wants spans again: a retry by a queue, a log line about a span. Shaping what it returns gives r again.
func (r *Request) Traces() (ptrace.Traces, error) {
	td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(r.AppendTo(nil))
	if err != nil {
		return ptrace.Traces{}, fmt.Errorf("decode a shaped request: %w", err)
	}
	return td, nil
}
