// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// A step of the run that a span belongs to. Weave reads it from each span; Lens puts it on few. The others have that of their nearest ancestor in the
// batch. Step 0 is not sent: Weave does not store it; step::offset moves all steps up.

type stepState uint8

const (
	stepUnknown stepState = iota
	stepVisiting
	stepNone
	stepKnown
)

// ownStep is the step that attributes say: what the sender put in Weave's own key as it is, other keys with the offset, the first of the
// config that has a step. bad tells whether a value was there that is none.
func (s *Shaper) ownStep(attrs pcommon.Map) (step int64, ok, bad bool) {
	best := len(s.stepFrom)
	for key, v := range attrs.All() {
		if !s.stepMask.has(key) {
			continue
		}
		for i, from := range s.stepFrom[:best] {
			if key != from {
				continue
			}
			if n, usable := s.stepOf(i, v); usable {
				best, step, ok = i, n, true
			} else {
				bad = true
			}
			break
		}
	}
	return step, ok, bad && !ok
}

// stepSources are the keys that ownStep looks for: Weave's own, then those of the config, each also where resolved may have moved it.
func stepSources(from []string) []string {
	out := []string{stepKey}
	for _, key := range from {
		out = append(out, key, key+leafPart)
	}
	return out
}

// stepOf is the step of a value that stands under key i of stepSources: an integer ≥ 0, or a float that is one; in Weave's own key also in text.
func (s *Shaper) stepOf(i int, v pcommon.Value) (step int64, ok bool) {
	if i > 0 && v.Type() == pcommon.ValueTypeStr {
		return 0, false
	}
	whole, ok := convertStep(v)
	if !ok {
		return 0, false
	}
	if i == 0 {
		return whole.Int(), true
	}
	return whole.Int() + s.opts.StepOffset, whole.Int() <= math.MaxInt64-s.opts.StepOffset
}

// inherit gives each entry without a step that of its nearest ancestor that has one.
func (b *batch) inherit() {
	for i := range b.entries {
		b.stepAt(int32(i))
	}
}

// stepAt walks up from i to what is known, and notes the answer on the whole way: each entry is walked once. A cycle of parents has no step.
func (b *batch) stepAt(i int32) {
	way := b.way[:0]
	at := i
	for at >= 0 && b.entries[at].state == stepUnknown {
		b.entries[at].state = stepVisiting
		way = append(way, at)
		at = b.parent(at)
	}
	state, step := stepNone, int64(0)
	if at >= 0 && b.entries[at].state == stepKnown {
		state, step = stepKnown, b.entries[at].step
	}
	for _, j := range way {
		b.entries[j].state, b.entries[j].step = state, step
	}
	b.way = way
}
