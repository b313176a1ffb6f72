// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"cmp"
	"container/heap"
	"slices"
)

// segment is a stretch of time of one kind. Times are nanoseconds since 1970, from ≤ to.
type segment struct {
	from, to int64
	step     int64 // of kindStep and kindTorn, of what stands inside a step, of a whole save; else noStep
	kind     kind
}

// timeline is what one clock has of stretches, which may overlap until they are flattened.
type timeline struct {
	segments []segment
	tidyAt   int // length from which on flattening pays
}

const tidyFrom = 1 << 10

// add takes a stretch, and returns by how many segments the time line has grown, which may be negative.
func (t *timeline) add(s segment) int {
	before := len(t.segments)
	t.segments = append(t.segments, s)
	if len(t.segments) >= max(t.tidyAt, tidyFrom) {
		t.flatten()
		t.tidyAt = 2 * len(t.segments)
	}
	return len(t.segments) - before
}

// flatten sorts the segments and cuts them until none overlap: each moment keeps its latest kind, and of two of that kind the
// one that began first. What is flattened can take more segments and be flattened again.
func (t *timeline) flatten() {
	slices.SortStableFunc(t.segments, func(a, b segment) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var flat []segment
	put := func(s segment) {
		if s.to <= s.from {
			return
		}
		if n := len(flat); n > 0 && flat[n-1].kind == s.kind && flat[n-1].step == s.step && flat[n-1].to == s.from {
			flat[n-1].to = s.to
			return
		}
		flat = append(flat, s)
	}
	var open segmentHeap
	at := int64(0) // up to where it is flat
	advance := func(until int64) {
		for len(open) > 0 && at < until {
			top := open[0]
			if top.to <= at {
				heap.Pop(&open)
				continue
			}
			end := min(top.to, until)
			put(segment{at, end, open.stepAround(top), top.kind})
			at = end
		}
		at = max(at, until)
	}
	last := int64(0)
	for _, s := range t.segments {
		advance(s.from)
		heap.Push(&open, s)
		last = max(last, s.to)
	}
	advance(last)
	t.segments = slices.Clip(flat)
}

// segmentHeap has the segment that holds on top.
type segmentHeap []segment

// stepAround is the step of a segment: for what stands inside of one, that.
func (h segmentHeap) stepAround(top segment) int64 {
	if top.kind <= kindStep || top.kind > kindWasted {
		return top.step
	}
	around := segment{step: top.step}
	for _, s := range h {
		if s.kind == kindStep && s.to > top.from && s.from >= around.from {
			around = s
		}
	}
	return around.step
}

func (h segmentHeap) Len() int { return len(h) }
func (h segmentHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[j].kind, h[i].kind), cmp.Compare(h[i].from, h[j].from), cmp.Compare(h[j].step, h[i].step)) < 0
}
func (h segmentHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *segmentHeap) Push(x any)   { *h = append(*h, x.(segment)) }
func (h *segmentHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
