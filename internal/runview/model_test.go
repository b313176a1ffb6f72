// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/sync/errgroup"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/sdk/rank"
)

// rig is a model with a clock of the test's.
type rig struct {
	*Model
	clock  time.Time
	traces Feed
}

func newRig() *rig {
	r := &rig{Model: New(), clock: time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC), traces: NewFeed(ranks.Traces)}
	r.now = func() time.Time { return r.clock }
	return r
}

// attrs are a resource's: the run, the rank where it is not negative, and more.
func attrs(t testing.TB, run string, rank int, more map[string]any) pcommon.Map {
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(more))
	if run != "" {
		m.PutStr("nemo.run.id", run)
	}
	if rank >= 0 {
		m.PutInt("nv.dl.rank", int64(rank))
	}
	if _, ok := m.Get("service.name"); !ok {
		m.PutStr("service.name", "megatron")
	}
	return m
}

// sees has the model see that a rank did steps, each of which took as long.
func (r *rig) sees(t testing.TB, run string, rank int, took time.Duration, steps ...int) {
	r.seesFrom(t, r.traces, attrs(t, run, rank, map[string]any{"nv.dl.world_size": 8, "host.name": fmt.Sprint("node-", rank/4)}), took, steps...)
}

func (r *rig) seesFrom(t testing.TB, f Feed, resource pcommon.Map, took time.Duration, steps ...int) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	resource.CopyTo(rs.Resource().Attributes())
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for _, step := range steps {
		addStep(spans, step, r.clock, took)
	}
	r.apply(f, func(report *Report) { report.Traces(td) })
}

func (r *rig) apply(f Feed, fill func(*Report)) {
	report := NewReport()
	fill(report)
	r.Apply(f, report)
	report.Release()
}

func addStep(spans ptrace.SpanSlice, step int, end time.Time, took time.Duration) {
	span := spans.AppendEmpty()
	span.SetName("megatron.train.iteration")
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-took)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	span.Attributes().PutInt("megatron.iteration", int64(step))
}

func (r *rig) only(t testing.TB) Run {
	runs := r.Runs()
	require.Len(t, runs.Runs, 1)
	return runs.Runs[0]
}

func (r *rig) detail(t testing.TB, id string, steps int) RunDetail {
	d, ok := r.Run(id, steps, rank.Unknown)
	require.True(t, ok)
	return d
}

func TestOneSlowAndOneSilentRankAreFound(t *testing.T) {
	r := newRig()
	for step := 1; step <= 200; step++ {
		r.clock = r.clock.Add(time.Second)
		for rank := range 8 {
			switch {
			case rank == 5 && step > 50:
			case rank == 3:
				r.sees(t, "a run", rank, 1300*time.Millisecond, step*9/10)
			default:
				r.sees(t, "a run", rank, time.Second, step)
			}
		}
	}
	run := r.only(t)
	require.True(t, run.Active)
	require.Equal(t, 8, run.Ranks)
	require.Equal(t, 8, run.WorldSize)
	require.EqualValues(t, 200, run.FrontStep)
	require.EqualValues(t, 20, run.MaxLag)
	require.Equal(t, float32(1), run.StepSeconds)
	require.Equal(t, 60., run.SilentAfter)
	require.EqualValues(t, 7*200+50, run.Spans)

	require.Equal(t, 3, run.Slowest[0].Rank)
	require.Equal(t, float32(1.3), run.Slowest[0].StepSecondsMedian)
	require.Len(t, run.Slowest, 8)
	require.Equal(t, []Rank{{
		Service: "megatron", Rank: 3, Node: "node-0", Host: "node-0", LastSeen: r.clock, Step: 180, Lag: 20, StepSeconds: 1.3, StepSecondsMedian: 1.3,
	}}, run.Behind)
	require.Equal(t, 1, run.Silent)
	require.Len(t, run.SilentRanks, 1)
	require.Equal(t, 5, run.SilentRanks[0].Rank)
	require.Equal(t, r.clock.Add(-150*time.Second), run.SilentRanks[0].LastSeen)

	d := r.detail(t, "a run", 3)
	require.Equal(t, []int64{198, 199, 200}, d.Steps)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, d.Rows.Rank)
	require.Equal(t, []string{"node-0", "node-1"}, d.Nodes)
	require.Equal(t, []int{0, 0, 0, 0, 1, 1, 1, 1}, d.Rows.Node)
	require.Equal(t, []int64{200, 200, 200, 180, 200, 50, 200, 200}, d.Rows.Step)
	require.Equal(t, []int64{0, 0, 0, 20, 0, 150, 0, 0}, d.Rows.Lag)
	require.Equal(t, []float32{1, 1, 1}, d.Rows.Recent[0])
	require.Equal(t, []float32{0, 0, 0}, d.Rows.Recent[3], "it has not done them")
	require.Equal(t, []bool{false, false, false, false, false, true, false, false}, d.Rows.Silent)

	one, ok := r.Run("a run", 3, 5)
	require.True(t, ok)
	require.Equal(t, []int{5}, one.Rows.Rank)
	require.Equal(t, 8, one.Ranks, "the run is shown whole")
	_, ok = r.Run("another", 3, rank.Unknown)
	require.False(t, ok)
}

// When the run is over, its ranks are not silent but for those that were before.
func TestAfterTheEndNobodyIsSilent(t *testing.T) {
	r := newRig()
	r.sees(t, "r", 0, time.Second, 1)
	r.clock = r.clock.Add(2 * time.Minute)
	for rank := 1; rank < 4; rank++ {
		r.sees(t, "r", rank, time.Second, 1)
	}
	require.Equal(t, 1, r.only(t).Silent)
	r.clock = r.clock.Add(time.Hour)
	run := r.only(t)
	require.False(t, run.Active)
	require.Equal(t, 1, run.Silent)
	require.Equal(t, 0, run.SilentRanks[0].Rank)
	require.EqualValues(t, 1, run.FrontStep)
}

// Who takes minutes for a step says nothing for minutes.
func TestLongStepsAreNotSilence(t *testing.T) {
	r := newRig()
	r.sees(t, "r", 0, 2*time.Minute, 1)
	r.sees(t, "r", 1, 2*time.Minute, 1)
	r.clock = r.clock.Add(5 * time.Minute)
	r.sees(t, "r", 1, 2*time.Minute, 2)
	run := r.only(t)
	require.Equal(t, 360., run.SilentAfter)
	require.Zero(t, run.Silent)
	r.clock = r.clock.Add(2 * time.Minute)
	require.Equal(t, 1, r.only(t).Silent)
}

func TestSteps(t *testing.T) {
	second := time.Second
	for name, test := range map[string]struct {
		sees func(*rig)
		step int64
		last []float32 // times of the last steps
	}{
		"one after the other": {func(r *rig) {
			for step := range 5 {
				r.clock = r.clock.Add(second)
				r.sees(t, "r", 0, time.Duration(step+1)*second, step)
			}
		}, 4, []float32{1, 2, 3, 4, 5}},
		"in one batch, and again": {func(r *rig) {
			for range 2 {
				td := ptrace.NewTraces()
				rs := td.ResourceSpans().AppendEmpty()
				attrs(t, "r", 0, nil).CopyTo(rs.Resource().Attributes())
				spans := rs.ScopeSpans().AppendEmpty().Spans()
				for step := range 3 {
					addStep(spans, step, r.clock.Add(time.Duration(step-10)*second), second)
				}
				r.apply(r.traces, func(report *Report) { report.Traces(td) })
			}
		}, 2, []float32{1, 1, 1}},
		"a batch that was overtaken": {func(r *rig) {
			r.sees(t, "r", 0, second, 7)
			r.clock = r.clock.Add(-3 * second)
			r.sees(t, "r", 0, 2*second, 6)
		}, 7, []float32{0, 0, 2, 1}},
		"a restart from a checkpoint": {func(r *rig) {
			for _, step := range []int{97, 98, 99, 100, 98} {
				r.clock = r.clock.Add(second)
				r.sees(t, "r", 0, second, step)
			}
		}, 98, []float32{0, 1, 1}},
		"a clock that is ahead": {func(r *rig) {
			ahead := r.clock.Add(time.Hour)
			for step := range 3 {
				td := ptrace.NewTraces()
				rs := td.ResourceSpans().AppendEmpty()
				attrs(t, "r", 0, nil).CopyTo(rs.Resource().Attributes())
				addStep(rs.ScopeSpans().AppendEmpty().Spans(), step, ahead, second)
				r.apply(r.traces, func(report *Report) { report.Traces(td) })
				r.clock, ahead = r.clock.Add(second), ahead.Add(-second)
			}
		}, 2, []float32{1, 1, 1}},
		"a jump": {func(r *rig) {
			r.sees(t, "r", 0, second, 1, 2, 3)
			r.clock = r.clock.Add(10 * second)
			r.sees(t, "r", 0, 5*second, 1<<40+3)
		}, 1<<40 + 3, []float32{0, 0, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			test.sees(r)
			d := r.detail(t, "r", len(test.last))
			require.Equal(t, []int64{test.step}, d.Rows.Step)
			require.Equal(t, test.last, d.Rows.Recent[0])
		})
	}
}

// The median is of the last 100 steps, wherever in its place each of them is kept.
func TestMedian(t *testing.T) {
	for _, first := range []int{0, 1, 57, 99, 100, 1234} {
		r := newRig()
		for i := range 250 {
			r.clock = r.clock.Add(time.Hour)
			r.sees(t, "r", 0, time.Duration(i+1)*time.Second, first+i)
			from := max(0, i-RecentSteps+1) // the durations are from+1 … i+1
			require.Equal(t, float32(from+1+i+1)/2, r.detail(t, "r", 0).Rows.StepSecondsMedian[0], "%d from %d", i, first)
		}
	}
	require.Zero(t, median(nil))
	require.Equal(t, float32(2), median([]float32{9, 2, 1}))
}

func TestIsStep(t *testing.T) {
	for name, want := range map[string]bool{
		"megatron.train.iteration": true, "nv.dl.training.iteration": true, "megatron.train_step": true, "rl.grpo.step": true, "rl.sc.step": true,
		"": false, "rl.step": false, "rl..step": false, "rl.grpo.steps": false, "megatron.train.iteration.optimizer": false, "megatron.evaluate.step": false,
		"megatron.grad_sync.finish": false, "megatron.train.Iteration": false, "n": false, "p": false, "rp": false,
	} {
		require.Equal(t, want, IsStep(name), name)
		require.Equal(t, want, IsStep([]byte(name)), name)
		if want {
			require.True(t, MayBeStep([]byte(name)), name)
		}
	}
}

func TestNumberOfAStep(t *testing.T) {
	for name, test := range map[string]struct {
		attrs []any // keys and values
		want  int64 // -1: none
	}{
		"new name":               {[]any{"nv.dl.training.step", 7}, 7},
		"old name":               {[]any{"megatron.iteration", 7}, 7},
		"the first name holds":   {[]any{"rl.step", 1, "dl.iteration", 2, "megatron.iteration", 3, "nv.dl.training.step", 4}, 4},
		"the first value holds":  {[]any{"rl.step", 1, "rl.step", 2}, 1},
		"one that is none":       {[]any{"megatron.iteration", "x", "dl.iteration", 5}, 5},
		"a whole double":         {[]any{"rl.step", 3.0}, 3},
		"half a step":            {[]any{"rl.step", 3.5}, -1},
		"text":                   {[]any{"rl.step", "3"}, -1},
		"negative":               {[]any{"rl.step", -1}, -1},
		"beyond what JSON holds": {[]any{"rl.step", int64(1)<<53 + 1}, -1},
		"too large a double":     {[]any{"rl.step", 1e300}, -1},
		"outer loop":             {[]any{"rl.iteration", 9}, 9},
		"none":                   {[]any{"megatron.skipped", true}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			span.SetName("rl.grpo.step")
			for i := 0; i < len(test.attrs); i += 2 {
				one := pcommon.NewMap()
				require.NoError(t, one.FromRaw(map[string]any{"v": test.attrs[i+1]}))
				v, _ := one.Get("v")
				// A key twice: pdata's own functions would not.
				v.CopyTo(span.Attributes().PutEmpty(fmt.Sprint("key-", i)))
			}
			rename(t, span, test.attrs)
			step, ok := StepOf(span)
			require.Equal(t, test.want >= 0, ok)
			if ok {
				require.Equal(t, test.want, step.Number)
			}
			span.SetName("rl.grpo.job")
			_, ok = StepOf(span)
			require.False(t, ok)
		})
	}
}

// rename gives the attributes key-0, key-2 their names, on the wire, where a name may come twice.
func rename(t testing.TB, span ptrace.Span, keys []any) {
	td := ptrace.NewTraces()
	span.CopyTo(td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
	text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	for i := 0; i < len(keys); i += 2 {
		text = []byte(strings.ReplaceAll(string(text), fmt.Sprintf("%q", fmt.Sprint("key-", i)), fmt.Sprintf("%q", keys[i])))
	}
	td, err = (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(text)
	require.NoError(t, err)
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).CopyTo(span)
}

// The same telemetry through several pipelines counts once; what the gate dropped comes on top.
func TestNothingCountsTwice(t *testing.T) {
	r := newRig()
	other, gate := NewFeed(ranks.Traces), NewFeed(ranks.Traces)
	for range 10 {
		r.clock = r.clock.Add(10 * time.Second)
		r.seesFrom(t, other, attrs(t, "r", 0, nil), time.Second, 1, 2)
		r.seesFrom(t, r.traces, attrs(t, "r", 0, nil), time.Second, 1, 2)
		r.seesFrom(t, r.traces, attrs(t, "r", 1, nil), time.Second, 1)
	}
	require.EqualValues(t, 30, r.only(t).Spans)
	require.Equal(t, []int64{20, 10}, r.detail(t, "r", 1).Rows.Spans)

	source := SourceOf(attrs(t, "r", 0, nil))
	r.apply(gate, func(report *Report) { report.AddDropped(source.Clone(), 5, 1, "sampled") })
	run := r.only(t)
	require.EqualValues(t, 35, run.Spans)
	require.EqualValues(t, 5, run.Dropped)
	require.EqualValues(t, 1, run.Errors)
	require.Equal(t, []DroppedBy{{"sampled", 5}}, run.DroppedBy)

	// The pipeline that counted is gone: the other takes its place.
	r.clock = r.clock.Add(2 * handover)
	r.seesFrom(t, r.traces, attrs(t, "r", 0, nil), time.Second, 3)
	r.seesFrom(t, r.traces, attrs(t, "r", 0, nil), time.Second, 4)
	require.EqualValues(t, 37, r.only(t).Spans)
}

// With a reload of the config all who report are others. What they report counts from the first report on.
func TestReloadLosesNoCounts(t *testing.T) {
	_, leave := Join()
	r := newRig()
	sees := func(f Feed) { r.seesFrom(t, f, attrs(t, "r", 0, nil), time.Second, 1) }
	old, beside := NewFeed(ranks.Traces), NewFeed(ranks.Traces)
	sees(old)
	sees(beside)
	require.EqualValues(t, 1, r.only(t).Spans)

	leave()
	_, leave = Join()
	defer leave()
	old, beside = NewFeed(ranks.Traces), NewFeed(ranks.Traces)
	for range 2 {
		sees(old)
		sees(beside)
	}
	require.EqualValues(t, 3, r.only(t).Spans)
}

// What has no rank may go on when the ranks are done, or come much later: the run's last steps stay to be seen, and its ranks
// are not silent for having ended.
func TestWhatComesAfterTheRanks(t *testing.T) {
	r := newRig()
	for step := 1; step <= 10; step++ {
		r.clock = r.clock.Add(time.Minute)
		for rank := range 4 {
			if rank < 3 || step <= 5 {
				r.sees(t, "r", rank, time.Second, step)
			}
		}
	}
	r.clock = r.clock.Add(time.Hour)
	r.seesFrom(t, r.traces, attrs(t, "r", -1, map[string]any{"service.name": "slurm"}), 0)
	run := r.only(t)
	require.True(t, run.Active)
	require.Equal(t, 4, run.Silent)
	require.EqualValues(t, 10, run.FrontStep)
	d := r.detail(t, "r", 2)
	require.Equal(t, []int64{9, 10}, d.Steps)
	require.Equal(t, []int64{0, 0, 0, 5}, d.Rows.Lag)

	r.clock = r.clock.Add(time.Hour)
	run = r.only(t)
	require.False(t, run.Active)
	require.Equal(t, 1, run.Silent)
	require.Equal(t, 3, run.SilentRanks[0].Rank)
	require.EqualValues(t, 10, run.FrontStep)
}

func TestWhatIsCounted(t *testing.T) {
	r := newRig()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	attrs(t, "r", 0, nil).CopyTo(rs.Resource().Attributes())
	for range 2 {
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		spans.AppendEmpty().Status().SetCode(ptrace.StatusCodeError)
		spans.AppendEmpty().Status().SetCode(ptrace.StatusCodeOk)
	}
	r.apply(r.traces, func(report *Report) { report.Traces(td) })

	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	attrs(t, "r", 0, nil).CopyTo(rm.Resource().Attributes())
	ms := rm.ScopeMetrics().AppendEmpty().Metrics()
	ms.AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
	ms.AppendEmpty().SetEmptySum().DataPoints().AppendEmpty()
	ms.AppendEmpty()
	r.apply(NewFeed(ranks.Metrics), func(report *Report) { report.Metrics(md) })

	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	attrs(t, "r", 0, nil).CopyTo(rl.Resource().Attributes())
	for _, severity := range []plog.SeverityNumber{plog.SeverityNumberInfo, plog.SeverityNumberError, plog.SeverityNumberFatal} {
		rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetSeverityNumber(severity)
	}
	r.apply(NewFeed(ranks.Logs), func(report *Report) { report.Logs(ld) })

	require.Equal(t, Items{Spans: 4, Points: 2, Records: 3, Errors: 4}, r.only(t).Items)
}

// Gym servers all say rank 0 of 1; vLLM says nothing, and what has neither run nor rank is nobody's.
func TestServices(t *testing.T) {
	r := newRig()
	for _, service := range []string{"nemo-gym/math", "nemo-gym/code"} {
		r.seesFrom(t, r.traces, attrs(t, "r", 0, map[string]any{"service.name": service, "dl.world_size": 1, "k8s.node.name": "n", "host.name": "pod"}), 0)
	}
	r.seesFrom(t, r.traces, attrs(t, "r", -1, map[string]any{"service.name": "vllm"}), time.Second, 1)
	r.seesFrom(t, r.traces, attrs(t, "", -1, map[string]any{"service.name": "node_exporter"}), time.Second, 1)
	run := r.only(t)
	require.Len(t, run.Services, 3)
	require.Equal(t, "nemo-gym/code", run.Services[0].Name)
	require.Equal(t, 1, run.Services[0].Ranks)
	require.Equal(t, "vllm", run.Services[2].Name)
	require.Zero(t, run.Services[2].Ranks)
	require.EqualValues(t, 1, run.Services[2].Spans)
	require.Equal(t, 2, run.Ranks)
	require.Equal(t, 2, run.WorldSize)
	d := r.detail(t, "r", 1)
	require.Equal(t, []int{0, 1}, d.Rows.Service)
	require.Equal(t, []string{"n"}, d.Nodes)
	require.Equal(t, []string{"pod"}, d.Hosts)
	require.Equal(t, []int64{-1, -1}, d.Rows.Step)
	require.EqualValues(t, -1, d.MaxLag)

	r.seesFrom(t, r.traces, attrs(t, "", 3, nil), time.Second, 1)
	require.Equal(t, []int{3}, r.detail(t, NoRun, 1).Rows.Rank)
}

// Whatever a sender says, the model stays within its bounds, drives nobody out who still sends, and says what it left out.
func TestHostileSenders(t *testing.T) {
	r := newRig()
	r.maxRanks = 100
	keeps := func() {
		r.sees(t, "true", 0, time.Second, 1)
		_, ok := r.Run("true", 0, rank.Unknown)
		require.True(t, ok)
		require.LessOrEqual(t, r.ranks, r.maxRanks)
		require.LessOrEqual(t, len(r.runs), maxRuns)
		entries := 0
		for _, run := range r.runs {
			require.NotEmpty(t, run.entries)
			require.LessOrEqual(t, len(run.services), maxServices)
			for _, e := range run.entries {
				require.Same(t, run, e.run)
			}
			entries += len(run.entries)
		}
		require.Equal(t, entries, r.ranks)
		listed := 0
		for e := r.seen.front; e != nil; e = e.older {
			listed++
		}
		require.Equal(t, entries, listed)
	}
	keeps()
	for i := range 500 {
		r.sees(t, fmt.Sprint("many runs ", i), i, time.Second, i)
		keeps()
	}
	require.EqualValues(t, 500-maxRuns+1, r.Runs().Left.RefusedRuns)
	for i := range 500 {
		r.sees(t, "many ranks", i, time.Second, i)
		keeps()
	}
	for range 10 { // By and by the silent ones give way.
		r.clock = r.clock.Add(establishedFor)
		keeps()
		for i := range 150 {
			r.sees(t, "many ranks", i, time.Second, i)
			keeps()
		}
		for i := range 150 {
			r.seesFrom(t, r.traces, attrs(t, "many services", i%3-1, map[string]any{"service.name": fmt.Sprint("s", i)}), time.Second, i)
			keeps()
		}
	}
	left := r.Runs().Left
	require.Positive(t, left.EvictedRanks)
	require.Positive(t, left.RefusedRanks)

	r.clock = r.clock.Add(establishedFor)
	for i := range 2 * maxRuns {
		r.clock = r.clock.Add(establishedFor)
		r.sees(t, fmt.Sprint("one by one ", i), 0, time.Second, 1)
		keeps()
	}
	require.Positive(t, r.Runs().Left.EvictedRuns)
	require.Positive(t, r.Runs().Left.EvictedRanks)
}

// A source that the gate keeps finds its rank again after that was forgotten.
func TestForgottenRankComesAgain(t *testing.T) {
	r := newRig()
	r.maxRanks = 1
	first, second := SourceOf(attrs(t, "r", 0, nil)), SourceOf(attrs(t, "r", 1, nil))
	for range 3 {
		for _, source := range []*Source{&first, &second} {
			r.apply(r.traces, func(report *Report) {
				report.Step(Step{Number: 5, Start: 1, End: 2})
				report.AddDropped(source, 1, 0, "sampled")
			})
			require.Equal(t, []int{source.rank}, r.detail(t, "r", 1).Rows.Rank)
			require.Equal(t, []int64{1}, r.detail(t, "r", 1).Rows.Spans)
			r.clock = r.clock.Add(establishedFor)
		}
	}
}

// Those who report and those who look do not disturb each other, while ranks come and are forgotten.
func TestConcurrent(t *testing.T) {
	r := newRig()
	r.maxRanks = 50
	var clock atomic.Int64
	r.now = func() time.Time { return time.Unix(clock.Add(1), 0) }
	end := time.Unix(1e9, 0)
	shared := SourceOf(attrs(t, "a", 1, nil))
	var group errgroup.Group
	for i := range 4 {
		feed := NewFeed(ranks.Traces)
		group.Go(func() error {
			for n := range 200 {
				r.apply(feed, func(report *Report) {
					report.Step(Step{int64(n), uint64(end.UnixNano()), uint64(end.UnixNano()) + 1e9})
					report.AddDropped(&shared, 1, 0, "sampled")
				})
				r.seesFrom(t, feed, attrs(t, string(rune('a'+n%3)), n*i, nil), time.Second, n)
			}
			return nil
		})
		group.Go(func() error {
			for range 100 {
				for _, run := range r.Runs().Runs {
					d, ok := r.Run(run.ID, 10, rank.Unknown)
					if ok && len(d.Rows.Rank) > r.maxRanks {
						return fmt.Errorf("%d ranks", len(d.Rows.Rank))
					}
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.LessOrEqual(t, r.ranks, r.maxRanks)
}

func FuzzIdentities(f *testing.F) {
	f.Add("run", "service", "host", "node", "3", int64(8), int64(5))
	f.Add("<script>alert(1)</script>", strings.Repeat("é", 200), "\xff\xfe", "a\x00b", "-1", int64(-1), int64(1)<<62)
	f.Add("", "", "", "", "2147483647", int64(1)<<40, int64(0))
	f.Fuzz(func(t *testing.T, run, service, host, node, rankText string, world, step int64) {
		r := newRig()
		resource := pcommon.NewMap()
		resource.PutStr("nemo.run.id", run)
		resource.PutStr("service.name", service)
		resource.PutStr("host.name", host)
		resource.PutStr("k8s.node.name", node)
		resource.PutStr("dl.rank", rankText)
		resource.PutInt("dl.world_size", world)
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		resource.CopyTo(rs.Resource().Attributes())
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetName("megatron.train.iteration")
		span.SetStartTimestamp(pcommon.Timestamp(world))
		span.SetEndTimestamp(pcommon.Timestamp(step))
		span.Attributes().PutInt("megatron.iteration", step)
		for range 2 {
			r.apply(r.traces, func(report *Report) { report.Traces(td) })
		}
		runs := r.Runs()
		require.LessOrEqual(t, len(runs.Runs), 1)
		_, err := json.Marshal(runs)
		require.NoError(t, err)
		for _, shown := range runs.Runs {
			require.NotEmpty(t, shown.ID)
			require.LessOrEqual(t, len(shown.ID), maxName)
			require.True(t, utf8.ValidString(shown.ID))
			require.EqualValues(t, 2, shown.Spans)
			d, ok := r.Run(shown.ID, RecentSteps, rank.Unknown)
			require.True(t, ok)
			text, err := json.Marshal(d)
			require.NoError(t, err)
			var back RunDetail
			require.NoError(t, json.Unmarshal(text, &back))
			require.Equal(t, d.Nodes, back.Nodes, "no name changes on the way")
			require.Equal(t, d.Services[0].Name, back.Services[0].Name)
			require.LessOrEqual(t, len(text), 32<<10)
		}
	})
}
