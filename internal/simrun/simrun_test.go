// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package simrun_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/internal/archive"
	"github.com/lenscol/lenscol/internal/simrun"
)

func planned(t *testing.T, change func(*simrun.Config)) *simrun.Run {
	cfg := simrun.Default()
	change(&cfg)
	run, err := simrun.New(cfg)
	require.NoError(t, err)
	return run
}

func TestTheBucketsOfTheTruthSumToTheWallClock(t *testing.T) {
	for name, change := range map[string]func(*simrun.Config){
		"default":           func(*simrun.Config) {},
		"no crash":          func(c *simrun.Config) { c.Crashes = nil },
		"no saves":          func(c *simrun.Config) { c.SaveEvery = 0 },
		"three crashes":     func(c *simrun.Config) { c.Crashes = []int{3, 3, 27} },
		"crash after save":  func(c *simrun.Config) { c.Crashes = []int{11} },
		"crash at the last": func(c *simrun.Config) { c.Crashes = []int{40} },
	} {
		t.Run(name, func(t *testing.T) {
			truth := planned(t, change).Truth()
			sum := truth.Startup + truth.Load + truth.Train + truth.Lost + truth.Save + truth.Evaluate + truth.Down
			require.Equal(t, truth.End.Sub(truth.Begin), sum)
		})
	}
}

func TestTheTruthOfTheDefaultRun(t *testing.T) {
	truth := planned(t, func(*simrun.Config) {}).Truth()
	require.Len(t, truth.Attempts, 2)
	first, second := truth.Attempts[0], truth.Attempts[1]
	require.Equal(t, []int{1, 26, 20}, []int{first.First, first.Completed, first.Saved})
	require.Equal(t, []int{21, 40, 40}, []int{second.First, second.Completed, second.Saved})
	require.Equal(t, 6, truth.LostSteps, "21 to 26")
	require.Equal(t, 60*time.Second, truth.Startup)
	require.Equal(t, 3*time.Second, truth.Load)
	require.Equal(t, 45*time.Second, truth.Down)
	require.Equal(t, 4*2*time.Second, truth.Save, "10, 20, 30 and 40")
	require.Equal(t, 2*4*time.Second, truth.Evaluate)
	require.Len(t, truth.Offsets, 4)
}

// spans are all spans by the true clock, by name.
func spans(t *testing.T, run *simrun.Run) map[string][]ptrace.Span {
	all := map[string][]ptrace.Span{}
	require.NoError(t, run.Each(func(b simrun.Batch) error {
		for _, rs := range b.Traces.ResourceSpans().All() {
			node, _ := rs.Resource().Attributes().Get("host.name")
			offset := run.Truth().Offsets[node.Str()]
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				s.SetStartTimestamp(pcommon.NewTimestampFromTime(s.StartTimestamp().AsTime().Add(-offset)))
				s.SetEndTimestamp(pcommon.NewTimestampFromTime(s.EndTimestamp().AsTime().Add(-offset)))
				s.Attributes().PutInt("test.rank", int64(b.Rank))
				all[s.Name()] = append(all[s.Name()], s)
			}
		}
		return nil
	}))
	return all
}

func TestSpansNestAndEndTogether(t *testing.T) {
	run := planned(t, func(*simrun.Config) {})
	byID, total := map[string]ptrace.Span{}, 0
	all := spans(t, run)
	for _, list := range all {
		for _, s := range list {
			byID[s.TraceID().String()+s.SpanID().String()] = s
			total++
		}
	}
	require.Len(t, byID, total, "ids are unique")
	require.Equal(t, total, run.Truth().Spans)
	for _, s := range byID {
		require.LessOrEqual(t, s.StartTimestamp(), s.EndTimestamp())
		if s.ParentSpanID().IsEmpty() {
			continue
		}
		parent, ok := byID[s.TraceID().String()+s.ParentSpanID().String()]
		require.True(t, ok, s.Name())
		require.LessOrEqual(t, parent.StartTimestamp(), s.StartTimestamp(), s.Name())
		require.GreaterOrEqual(t, parent.EndTimestamp(), s.EndTimestamp(), s.Name())
	}
	siblings := map[string][]ptrace.Span{}
	for _, s := range byID {
		rank, _ := s.Attributes().Get("test.rank")
		key := rank.AsString() + s.ParentSpanID().String()
		siblings[key] = append(siblings[key], s)
	}
	for _, of := range siblings {
		slices.SortFunc(of, func(a, b ptrace.Span) int { return cmp.Compare(a.StartTimestamp(), b.StartTimestamp()) })
		for i := range of[1:] {
			require.LessOrEqual(t, of[i].EndTimestamp(), of[i+1].StartTimestamp(), "%s and %s", of[i].Name(), of[i+1].Name())
		}
	}
	ends := map[string][]time.Time{}
	for _, s := range all["megatron.train.iteration"] {
		if _, truncated := s.Attributes().Get("nemo.span.truncated"); !truncated && s.Status().Code() == ptrace.StatusCodeUnset {
			number, _ := s.Attributes().Get("megatron.iteration")
			key := fmt.Sprint(number.Int(), s.EndTimestamp().AsTime().Sub(run.Truth().Attempts[1].Begin) > 0)
			ends[key] = append(ends[key], s.EndTimestamp().AsTime())
		}
	}
	require.Len(t, ends, 26+20)
	for key, times := range ends {
		require.Len(t, times, 16, key)
		for _, at := range times {
			require.InDelta(t, 0, at.Sub(times[0]).Seconds(), simrun.Default().EndSkew.Seconds(), key)
		}
	}
}

func TestTheSlowRankIsTheLastToArrive(t *testing.T) {
	run := planned(t, func(*simrun.Config) {})
	waits := map[int64]time.Duration{}
	for _, s := range spans(t, run)["megatron.grad_sync.finish"] {
		rank, _ := s.Attributes().Get("test.rank")
		waits[rank.Int()] += s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime())
	}
	for rank, wait := range waits {
		if rank != 5 {
			require.Greater(t, wait, 2*waits[5])
		}
	}
}

func TestACrashLeavesWhatTheWorldWouldSee(t *testing.T) {
	run := planned(t, func(*simrun.Config) {})
	require.NoError(t, run.Each(func(simrun.Batch) error { return nil }))
	require.Equal(t, 3, run.Truth().ErrorSpans)
	require.Equal(t, 3*15, run.Truth().TruncatedSpans)

	killed := planned(t, func(c *simrun.Config) { c.Killed = true })
	require.NoError(t, killed.Each(func(simrun.Batch) error { return nil }))
	require.Zero(t, killed.Truth().ErrorSpans+killed.Truth().TruncatedSpans)
	require.Equal(t, run.Truth().Spans-3*16, killed.Truth().Spans)
}

func TestTheNewGenerationHasTheNewNames(t *testing.T) {
	all := spans(t, planned(t, func(c *simrun.Config) { c.Generation = simrun.NewNames }))
	for name := range all {
		require.NotContains(t, name, "megatron.")
	}
	for _, name := range []string{"nv.dl.training.iter_block", "nv.dl.training.iteration", "nv.dl.training.iteration.optimizer_step",
		"nv.mcore.grad_sync.finish", "nv.dl.training.checkpoint.exposed_save", "nv.dl.training.evaluate", "nv.mlm.train.log"} {
		require.NotEmpty(t, all[name], name)
	}
	_, ok := all["nv.dl.training.iteration"][0].Attributes().Get("nv.dl.training.step")
	require.True(t, ok)
}

func TestTheSameConfigIsTheSameArchive(t *testing.T) {
	write := func(seed uint64) []byte {
		var b bytes.Buffer
		require.NoError(t, planned(t, func(c *simrun.Config) { c.Seed = seed }).Write(&b, jsonlexporter.LayoutCompact))
		return b.Bytes()
	}
	a := write(1)
	require.Equal(t, a, write(1))
	require.NotEqual(t, a, write(2))

	r, err := archive.NewReader(bytes.NewReader(a), "sim")
	require.NoError(t, err)
	for {
		if _, err = r.Next(); err != nil {
			break
		}
	}
	run := planned(t, func(*simrun.Config) {})
	require.NoError(t, run.Each(func(simrun.Batch) error { return nil }))
	require.EqualValues(t, run.Truth().Spans, r.Stats().Spans)
	require.EqualValues(t, run.Truth().Points, r.Stats().Points)
}

func TestAConfigThatCannotBeIsRefused(t *testing.T) {
	for want, change := range map[string]func(*simrun.Config){
		"Ranks, RanksPerNode and Steps":     func(c *simrun.Config) { c.Ranks = 0 },
		"StepTime 0s is too short":          func(c *simrun.Config) { c.StepTime = 0 },
		"EndSkew 1s is more":                func(c *simrun.Config) { c.EndSkew = time.Second },
		"Jitter must lie":                   func(c *simrun.Config) { c.Jitter = 1 },
		"Crashes [41] must be steps":        func(c *simrun.Config) { c.Crashes = []int{41} },
		"FailingRank 16 is none of the 16":  func(c *simrun.Config) { c.FailingRank = 16 },
		"Crashes [5 4] must be steps of th": func(c *simrun.Config) { c.Crashes = []int{5, 4} },
	} {
		cfg := simrun.Default()
		change(&cfg)
		_, err := simrun.New(cfg)
		require.ErrorContains(t, err, want)
	}
}
