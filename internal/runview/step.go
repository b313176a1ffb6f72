// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview // import "github.com/lenscol/lenscol/internal/runview"

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// Step is one step of a rank, as its span says.
type Step struct {
	Number     int64
	Start, End uint64 // Unix time in nanoseconds, by the sender's clock
}

// seconds is how long the step took: the duration of its span. It is 0 where that is not known.
func (s Step) seconds() float32 {
	if s.Start == 0 || s.End <= s.Start {
		return 0
	}
	return float32(float64(s.End-s.Start) / 1e9)
}

type text interface{ ~string | ~[]byte }

// MayBeStep rules most names out that IsStep says no to, by their last letters.
func MayBeStep(name []byte) bool {
	if len(name) < 4 {
		return false
	}
	const tion, step = 't' | 'i'<<8 | 'o'<<16 | 'n'<<24, 's' | 't'<<8 | 'e'<<16 | 'p'<<24
	end := binary.LittleEndian.Uint32(name[len(name)-4:])
	return end == tion || end == step
}

// IsStep reports whether a span of that name is a training step: Megatron-LM's iteration in both generations of names, as
// its docs call it, and rl.<algorithm>.step of NeMo RL.
func IsStep[T text](name T) bool {
	switch string(name) {
	case "megatron.train.iteration", "nv.dl.training.iteration", "megatron.train_step":
		return true
	}
	const prefix, suffix = "rl.", ".step"
	return len(name) > len(prefix)+len(suffix) && string(name[:len(prefix)]) == prefix && string(name[len(name)-len(suffix):]) == suffix
}

// MaxStep is the largest number of a step: what JavaScript can count to.
const MaxStep = 1 << 53

// NoKey is what StepKey returns for attributes that do not number a step.
const NoKey = 5

// StepKey is the place of an attribute among those that number a step, the first that is there and can be read holds: as in
// exporter weave's step::from_attribute. It is NoKey for others.
func StepKey[T text](key T) int {
	switch string(key) {
	case semconv.TrainingStep:
		return 0
	case semconv.TrainingStepOld:
		return 1
	case "dl.iteration":
		return 2
	case "rl.step":
		return 3
	case "rl.iteration":
		return 4
	default:
		return NoKey
	}
}

// StepNumber finds the number among a span's attributes. The zero value has none.
type StepNumber struct {
	number int64
	rank   int // 1 + the place of the key that it is from; 0: there is no number
	seen   [NoKey]bool
}

// Int takes the attribute of a key: of one that comes twice, the first holds.
func (n *StepNumber) Int(key int, value int64) {
	n.take(key, value, value >= 0 && value <= MaxStep)
}

// Double takes an attribute that is a whole number.
func (n *StepNumber) Double(key int, value float64) {
	if value != math.Trunc(value) || math.Abs(value) > MaxStep {
		value = -1
	}
	n.Int(key, int64(value))
}

// Other takes an attribute that is no number.
func (n *StepNumber) Other(key int) { n.take(key, 0, false) }

func (n *StepNumber) take(key int, value int64, ok bool) {
	if n.seen[key] {
		return
	}
	n.seen[key] = true
	if ok && (n.rank == 0 || key < n.rank-1) {
		n.number, n.rank = value, key+1
	}
}

// Number is the number of the step; false where there is none.
func (n *StepNumber) Number() (int64, bool) { return n.number, n.rank > 0 }

// StepOf reads a span. It is false where that is no step, or has no number.
func StepOf(span ptrace.Span) (Step, bool) {
	if !IsStep(span.Name()) {
		return Step{}, false
	}
	var n StepNumber
	for key, v := range span.Attributes().All() {
		i := StepKey(key)
		if i == NoKey {
			continue
		}
		switch v.Type() {
		case pcommon.ValueTypeInt:
			n.Int(i, v.Int())
		case pcommon.ValueTypeDouble:
			n.Double(i, v.Double())
		default:
			n.Other(i)
		}
	}
	number, ok := n.Number()
	return Step{Number: number, Start: uint64(span.StartTimestamp()), End: uint64(span.EndTimestamp())}, ok
}
