// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"crypto/sha256"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// batch is what has to be known of all spans of a batch before the first is written: who has which id, and the steps of ancestors.
type batch struct {
	entries []entry // in the order of the spans
	byID    map[spanID]int32
	way     []int32
	said    map[said]bool // by spans whose ids are repeated
}

// said is what a span says, and the first entry that has its ids.
type said struct {
	first int32
	sum   [sha256.Size]byte
}

// spanID is a span's id and its trace's.
type spanID struct {
	trace pcommon.TraceID
	id    pcommon.SpanID
}

// entry is one span.
type entry struct {
	spanID
	parent    pcommon.SpanID
	resource  *resource
	newID     pcommon.SpanID
	newParent pcommon.SpanID
	step      int64
	next      int32 // the next with the same spanID, of another resource; -1: none
	first     int32 // the entry that this repeats; -1: none
	repeated  bool  // by another
	state     stepState
}

func newBatch() batch { return batch{byID: map[spanID]int32{}, said: map[said]bool{}} }

func (b *batch) reset() {
	if len(b.entries) > maxKeptSpans {
		*b = newBatch()
		return
	}
	clear(b.entries)
	b.entries = b.entries[:0]
	clear(b.byID)
	clear(b.said)
}

// add notes a span. Spans without ids are noted too, so that entries and spans go side by side.
func (b *batch) add(in ptrace.Span, r *resource) *entry {
	e := entry{
		spanID: spanID{in.TraceID(), in.SpanID()}, parent: in.ParentSpanID(), resource: r,
		newID: in.SpanID(), newParent: in.ParentSpanID(), next: -1, first: -1,
	}
	i := int32(len(b.entries))
	if at, ok := b.byID[e.spanID]; !ok {
		b.byID[e.spanID] = i
	} else {
		for b.entries[at].resource.who != r.who && b.entries[at].next >= 0 {
			at = b.entries[at].next
		}
		if b.entries[at].resource.who == r.who {
			e.first = at
			b.entries[at].repeated = true
		} else {
			b.entries[at].next = i
		}
	}
	b.entries = append(b.entries, e)
	return &b.entries[i]
}

// parent is the entry of the parent of entry i, that of the same resource if there are several; -1 if it is not in the batch.
func (b *batch) parent(i int32) int32 {
	e := &b.entries[i]
	if e.parent.IsEmpty() {
		return -1
	}
	first, ok := b.byID[spanID{e.trace, e.parent}]
	if !ok {
		return -1
	}
	for at := first; at >= 0; at = b.entries[at].next {
		if b.entries[at].resource.who == e.resource.who {
			return at
		}
	}
	return first
}
