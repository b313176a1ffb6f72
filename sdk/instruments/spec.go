// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments // import "github.com/lenscol/lenscol/sdk/instruments"

import (
	"fmt"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// Kind is what an instrument does with its values.
type Kind string

// The kinds of NeMo Lens.
const (
	Gauge         Kind = "gauge"           // the last value
	Histogram     Kind = "histogram"       // the distribution of values
	Counter       Kind = "counter"         // the sum of values, none below zero
	UpDownCounter Kind = "up_down_counter" // the sum of values
)

// Spec declares one series of a group (NeMo Lens, MetricSpec).
type Spec struct {
	Key         string // what callers name it, unique within its group
	Name        string // what is sent, in either generation's spelling
	Kind        Kind   // Gauge, unless it is set
	Unit        string // UCUM; empty for none
	Description string

	// Bounds are the upper bounds of a histogram's buckets. Without any, those of the unit: s and ms from 5 ms to an hour,
	// {token} in powers of four; the SDK's own for others.
	Bounds []float64
	// Integer says that values are whole: points hold integers, and other values are left out.
	Integer bool
	// SkipZero leaves zeros out, so that nothing is sent before something happens.
	SkipZero bool
}

func (s Spec) validate() error {
	switch {
	case s.Key == "":
		return fmt.Errorf("the series %q has no key", s.Name)
	case s.Name == "":
		return fmt.Errorf("the series %q has no name", s.Key)
	}
	switch s.Kind {
	case "", Gauge, Histogram, Counter, UpDownCounter:
		return nil
	}
	return fmt.Errorf("the series %q has the kind %q, must be gauge, histogram, counter or up_down_counter", s.Key, s.Kind)
}

// Names says in which generation's spelling series are sent that were renamed after NeMo Lens 0.2. A name that was never
// renamed is the same in all.
type Names int

// Generations of names.
const (
	NewNames  Names = iota
	OldNames        // those of NeMo Lens 0.1 and 0.2
	BothNames       // each renamed series twice
)

var (
	toNew = semconv.ToNew(semconv.Metrics())
	toOld = semconv.ToOld(semconv.Metrics())
)

// of are the spellings under which name is sent.
func (n Names) of(name string) []string {
	newer, older := name, name
	if other, ok := toNew.Rename(name); ok {
		newer = other
	}
	if other, ok := toOld.Rename(name); ok {
		older = other
	}
	switch {
	case n == OldNames:
		return []string{older}
	case n == BothNames && older != newer:
		return []string{newer, older}
	}
	return []string{newer}
}

// The SDK's own bounds end at 10,000: 10 s of milliseconds, and hours of seconds in steps of minutes at best.
var (
	// In milliseconds; from 100 on those of NeMo Gym.
	durationBounds = []float64{5, 10, 25, 50, 100, 250, 500, 1e3, 2.5e3, 5e3, 10e3, 30e3, 60e3, 120e3, 300e3, 600e3, 1.2e6, 1.8e6, 3.6e6}
	// OpenTelemetry semantic conventions, gen_ai.client.token.usage.
	tokenBounds = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

func (s Spec) bounds() []float64 {
	switch {
	case s.Bounds != nil:
		return s.Bounds
	case s.Unit == "ms":
		return durationBounds
	case s.Unit == "s":
		seconds := make([]float64, len(durationBounds))
		for i, ms := range durationBounds {
			seconds[i] = ms / 1e3
		}
		return seconds
	case s.Unit == "{token}":
		return tokenBounds
	}
	return nil
}
