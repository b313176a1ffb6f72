// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package sampler decides by rank whether a process records its spans: all of them or none.
package sampler // import "github.com/lenscol/lenscol/sdk/telemetry/internal/sampler"

import (
	"fmt"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/lenscol/lenscol/sdk/rank"
)

// New is NeMo Lens's RankAwareSampler: it records every span where the rank's hash is below rate, as rank.Sampled has it. A
// rate from 1 on records on every rank, one of 0, below, or NaN on none. The decision of a parent does not count.
func New(r int, rate float64) sdktrace.Sampler {
	decision := sdktrace.Drop
	if keeps(r, rate) {
		decision = sdktrace.RecordAndSample
	}
	return rankAware{decision, fmt.Sprintf("RankAwareSampler(rank=%d, rate=%s)", r, pythonFloat(rate))}
}

// NewParentBased is [New] for spans without a parent; all others follow theirs.
func NewParentBased(r int, rate float64) sdktrace.Sampler { return sdktrace.ParentBased(New(r, rate)) }

func keeps(r int, rate float64) bool {
	strategy, err := rank.Sampled(rate, false)
	if err != nil { // outside [0, 1]
		return rate >= 1
	}
	return strategy.Exports(rank.Identity{Rank: r})
}

type rankAware struct {
	decision    sdktrace.SamplingDecision
	description string
}

// ShouldSample implements sdktrace.Sampler.
func (s rankAware) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return sdktrace.SamplingResult{
		Decision:   s.decision,
		Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState(),
	}
}

// Description implements sdktrace.Sampler.
func (s rankAware) Description() string { return s.description }

// pythonFloat writes a rate as Python prints it: always with a point or an exponent.
func pythonFloat(f float64) string {
	text := strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64))
	if strings.Trim(text, "-0123456789") == "" {
		text += ".0"
	}
	return text
}
