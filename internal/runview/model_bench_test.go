// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/sdk/rank"
)

// filled is a model of one run whose ranks, eight a node, have all done 100 steps.
func filled(t testing.TB, ranks int) (r *rig, sources []*Source) {
	r = newRig()
	for i := range ranks {
		source := SourceOf(attrs(t, "run", i, map[string]any{"host.name": fmt.Sprint("node-", i/8), "dl.world_size": ranks}))
		sources = append(sources, source.Clone())
	}
	for step := range RecentSteps {
		r.clock = r.clock.Add(time.Second)
		r.apply(r.traces, func(report *Report) {
			for i, source := range sources {
				end := uint64(r.clock.UnixNano())
				report.Step(Step{int64(step), end - uint64(1e9+i*12345+step*777), end})
				report.AddDropped(source, 12, 0, "single_rank")
			}
		})
	}
	return r, sources
}

// What it takes to answer for 10,000 ranks: once a second at most, while somebody asks.
func BenchmarkAnswers(b *testing.B) {
	const ranks = 10_000
	r, _ := filled(b, ranks)
	answer := func(b *testing.B, make func() any) {
		b.ReportAllocs()
		var text []byte
		for b.Loop() {
			var err error
			text, err = json.Marshal(make())
			require.NoError(b, err)
		}
		b.ReportMetric(float64(len(text)), "bytes")
	}
	b.Run("runs", func(b *testing.B) { answer(b, func() any { return r.Runs() }) })
	for _, steps := range []int{0, 32, 100} {
		b.Run(fmt.Sprint("run, ", steps, " steps"), func(b *testing.B) {
			answer(b, func() any {
				d, ok := r.Run("run", steps, rank.Unknown)
				require.True(b, ok)
				require.Len(b, d.Rows.Rank, ranks)
				return d
			})
		})
	}
}

// What it takes to report: a request of eight ranks, of which the model knows 10,000 already.
func BenchmarkApply(b *testing.B) {
	r, sources := filled(b, 10_000)
	feed := NewFeed(ranks.Traces)
	report := NewReport()
	for _, source := range sources[:8] {
		report.Step(Step{1000, 1, 2})
		report.AddDropped(source, 12, 0, "single_rank")
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Apply(feed, report)
	}
}
