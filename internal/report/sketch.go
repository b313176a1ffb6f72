// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"math"
	"time"

	"github.com/lightstep/go-expohisto/structure"
)

// sketchBuckets bounds a sketch: some 600 bytes of a rank whose steps last about as long as each other, 4 KB at most. Where the longest duration is a hundred times
// the shortest, quantiles are within 0.6 %; where it is twice as long, within 0.1 %.
const sketchBuckets = 512

// sketch keeps quantiles of durations in bounded memory: OpenTelemetry's exponential histogram, whose buckets are as narrow as
// their number lets them be.
type sketch struct{ h structure.Float64 }

func newSketch() *sketch {
	s := new(sketch)
	s.h.Init(structure.NewConfig(structure.WithMaxSize(sketchBuckets)))
	return s
}

// add takes a duration in nanoseconds.
func (s *sketch) add(ns int64) { s.h.Update(float64(max(ns, 0))) }

func (s *sketch) merge(other *sketch) { s.h.MergeFrom(&other.h) }

func (s *sketch) count() int64 { return int64(s.h.Count()) }

func (s *sketch) mean() int64 {
	if s.h.Count() == 0 {
		return 0
	}
	return int64(s.h.Sum() / float64(s.h.Count()))
}

func (s *sketch) max() int64 { return int64(s.h.Max()) }

// quantile is the q-th quantile (nearest rank) in nanoseconds, within the error; 0 of nothing. The shortest and the longest duration are exact.
func (s *sketch) quantile(q float64) int64 {
	n := s.h.Count()
	if n == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(q*float64(n))), 1)
	if rank >= n {
		return s.max()
	}
	seen := s.h.ZeroCount()
	if rank <= seen {
		return 0
	}
	buckets := s.h.Positive()
	for i := range buckets.Len() {
		if seen += buckets.At(i); seen >= rank {
			return int64(min(max(s.middle(buckets.Offset()+int32(i)), s.h.Min()), s.h.Max()))
		}
	}
	return s.max()
}

// middle is the value of a bucket whose largest relative error is the smallest.
func (s *sketch) middle(index int32) float64 {
	lower := math.Exp2(math.Ldexp(float64(index), -int(s.h.Scale())))
	return lower * 2 * s.base() / (1 + s.base())
}

// base is the ratio of a bucket's bounds.
func (s *sketch) base() float64 { return math.Exp2(math.Ldexp(1, -int(s.h.Scale()))) }

// relativeError is what a quantile may be off by, as a share of it.
func (s *sketch) relativeError() float64 {
	if s.h.Count() == s.h.ZeroCount() {
		return 0
	}
	return (s.base() - 1) / (s.base() + 1)
}

// Quantiles describe durations, in nanoseconds.
type Quantiles struct {
	Count int64 `json:"count"`
	Mean  int64 `json:"mean_ns"`
	P50   int64 `json:"p50_ns"`
	P95   int64 `json:"p95_ns"`
	P99   int64 `json:"p99_ns"`
	Max   int64 `json:"max_ns"`
}

func (s *sketch) quantiles() Quantiles {
	return Quantiles{s.count(), s.mean(), s.quantile(0.50), s.quantile(0.95), s.quantile(0.99), s.max()}
}

func seconds(ns int64) float64 { return float64(ns) / float64(time.Second) }
