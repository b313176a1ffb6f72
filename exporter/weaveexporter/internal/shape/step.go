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
func (w *worker) ownStep(attrs pcommon.Map) (step int64, ok, bad bool) {
	for key := range attrs.All() {
		if w.stepMask.has(keyBit(key)) {
			w.span.attrs = appendMap(w.span.attrs[:0], attrs)
			return w.stepIn(w.span.attrs)
		}
	}
	return 0, false, false
}

func (s *Shaper) stepIn(list []attr) (step int64, ok, bad bool) {
	list = canonical(list, "", new(Counts))
	if i := find(list, stepKey); i >= 0 {
		return list[i].val.Int(), true, false
	}
	for _, key := range s.opts.StepFrom {
		i := findMoved(list, key)
		if i < 0 {
			continue
		}
		if step, ok = stepOf(list[i].val, s.opts.StepOffset); ok {
			return step, true, false
		}
		bad = true
	}
	return 0, false, bad
}

// newStepMask are the keys that ownStep looks for.
func newStepMask(from []string) (m mask) {
	m.add(keyBit(stepKey))
	m.add(keyBit("wandb"))
	for _, key := range from {
		m.add(keyBit(key))
		m.add(keyBit(key + leafPart))
	}
	return m
}

// stepOf is the step of a value that is not in Weave's own key: an integer ≥ 0, or a float that is one.
func stepOf(v pcommon.Value, offset int64) (step int64, ok bool) {
	if v.Type() == pcommon.ValueTypeStr {
		return 0, false
	}
	whole, ok := convertStep(v)
	if !ok || whole.Int() > math.MaxInt64-offset {
		return 0, false
	}
	return whole.Int() + offset, true
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
