// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package sampler

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// hashes are int(md5(str(rank)).hexdigest(), 16) % 10000 / 10000 of ranks 0 to 15, by Python.
var hashes = []float64{
	.7850, .8411, .9212, .0883, .1900, .0693, .0412, .5555, .3101, .8374, .1824, .2650, .8112, .4873, .6038, .7603,
}

func decision(s sdktrace.Sampler, parent context.Context) sdktrace.SamplingDecision {
	return s.ShouldSample(sdktrace.SamplingParameters{ParentContext: parent, TraceID: trace.TraceID{1}, Name: "step"}).Decision
}

func TestHashes(t *testing.T) {
	for rank, hash := range hashes {
		require.Equal(t, sdktrace.Drop, decision(New(rank, hash), t.Context()), rank)
		require.Equal(t, sdktrace.RecordAndSample, decision(New(rank, hash+.0001), t.Context()), rank)
	}
}

func TestRates(t *testing.T) {
	for _, tt := range []struct {
		rate        float64
		keeps       bool // rank 6, whose hash is the lowest
		description string
	}{
		{0, false, "RankAwareSampler(rank=6, rate=0.0)"},
		{-1, false, "RankAwareSampler(rank=6, rate=-1.0)"},
		{math.NaN(), false, "RankAwareSampler(rank=6, rate=nan)"},
		{1e-05, false, "RankAwareSampler(rank=6, rate=1e-05)"},
		{0.0001, false, "RankAwareSampler(rank=6, rate=0.0001)"},
		{0.25, true, "RankAwareSampler(rank=6, rate=0.25)"},
		{1, true, "RankAwareSampler(rank=6, rate=1.0)"},
		{2, true, "RankAwareSampler(rank=6, rate=2.0)"},
	} {
		s := New(6, tt.rate)
		require.Equal(t, tt.keeps, decision(s, t.Context()) == sdktrace.RecordAndSample, tt.rate)
		require.Equal(t, tt.description, s.Description())
	}
}

func TestParents(t *testing.T) {
	state, err := trace.ParseTraceState("vendor=1")
	require.NoError(t, err)
	parent := func(flags trace.TraceFlags) context.Context {
		return trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: flags, TraceState: state, Remote: true,
		}))
	}
	sampled, dropped := parent(trace.FlagsSampled), parent(0)
	for _, tt := range []struct {
		name                    string
		sampler                 sdktrace.Sampler
		sampled, dropped, alone sdktrace.SamplingDecision
	}{
		{"rank that keeps", New(6, .25), sdktrace.RecordAndSample, sdktrace.RecordAndSample, sdktrace.RecordAndSample},
		{"rank that drops", New(7, .25), sdktrace.Drop, sdktrace.Drop, sdktrace.Drop},
		{"rank that keeps, parent first", NewParentBased(6, .25), sdktrace.RecordAndSample, sdktrace.Drop, sdktrace.RecordAndSample},
		{"rank that drops, parent first", NewParentBased(7, .25), sdktrace.RecordAndSample, sdktrace.Drop, sdktrace.Drop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.sampled, decision(tt.sampler, sampled))
			require.Equal(t, tt.dropped, decision(tt.sampler, dropped))
			require.Equal(t, tt.alone, decision(tt.sampler, t.Context()))
			for _, ctx := range []context.Context{sampled, dropped} {
				require.Equal(t, state, tt.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx}).Tracestate)
			}
		})
	}
	require.Contains(t, NewParentBased(6, .25).Description(), "root:RankAwareSampler(rank=6, rate=0.25)")
}
