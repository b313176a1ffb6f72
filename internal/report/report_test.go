// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/internal/archive"
	"github.com/lenscol/lenscol/internal/reckon"
	"github.com/lenscol/lenscol/internal/report"
	"github.com/lenscol/lenscol/internal/simrun"
)

var update = flag.Bool("update", false, "write the golden files")

var options = report.Options{Gap: time.Minute, Slowest: 8}

// simulated plans a run, and reports on what its ranks sent.
func simulated(t testing.TB, change func(*simrun.Config)) (report.Run, simrun.Truth) {
	cfg := simrun.Default()
	change(&cfg)
	run, err := simrun.New(cfg)
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, run.Write(&file, jsonlexporter.LayoutCompact))
	s := reportOn(t, options, &file)
	require.Len(t, s.Runs, 1)
	return s.Runs[0], run.Truth()
}

func reportOn(t testing.TB, opts report.Options, files ...io.Reader) report.Summary {
	c := report.NewCollector(opts)
	for _, file := range files {
		r, err := archive.NewReader(file, "run.jsonl")
		if err != nil {
			continue
		}
		for {
			rec, err := r.Next()
			if damage := (*archive.Damage)(nil); errors.As(err, &damage) {
				continue
			}
			if err != nil {
				break
			}
			c.Add(rec)
		}
		require.NoError(t, r.Close())
	}
	return c.Summary()
}

func requireWhole(t testing.TB, r report.Run) map[string]time.Duration {
	of, sum := map[string]time.Duration{}, int64(0)
	for _, b := range r.Buckets {
		require.GreaterOrEqual(t, b.NS, int64(0), b.Bucket)
		of[b.Bucket] = time.Duration(b.NS)
		sum += b.NS
	}
	require.Equal(t, r.WallNS, sum, "the buckets sum up to the wall time")
	require.Equal(t, r.WallNS, r.EndNS-r.BeginNS)
	g := r.Goodput
	require.InDelta(t, g.Overall, g.Scheduler*g.Runtime*g.Application, 1e-9, "goodput is the product of its factors")
	return of
}

func TestBucketsAgreeWithTheTruth(t *testing.T) {
	for name, change := range map[string]func(*simrun.Config){
		"default":           func(*simrun.Config) {},
		"new names":         func(c *simrun.Config) { c.Generation = simrun.NewNames },
		"clocks off by 5 s": func(c *simrun.Config) { c.MaxOffset = 5 * time.Second },
		"clocks off by 1 h": func(c *simrun.Config) { c.MaxOffset = time.Hour },
		"no crash":          func(c *simrun.Config) { c.Crashes = nil },
		"no saves":          func(c *simrun.Config) { c.SaveEvery = 0 },
		"three crashes":     func(c *simrun.Config) { c.Crashes = []int{3, 3, 27}; c.Generation = simrun.NewNames },
		"crash after save":  func(c *simrun.Config) { c.Crashes = []int{11} },
		"crash at the last": func(c *simrun.Config) { c.Crashes = []int{40} },
		"killed":            func(c *simrun.Config) { c.Killed = true },
		"one rank":          func(c *simrun.Config) { c.Ranks, c.SlowRank, c.FailingRank = 1, -1, 0 },
		"64 ranks":          func(c *simrun.Config) { c.Ranks, c.RanksPerNode, c.MaxOffset = 64, 8, time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			run, truth := simulated(t, change)
			of := requireWhole(t, run)

			// Of what each rank sees a bit later, up to EndSkew, and of the ends, as far as the clocks leave them open.
			within := float64(time.Duration(run.ErrorBound) + 2*simrun.Default().EndSkew)
			require.InDelta(t, truth.End.Sub(truth.Begin), run.WallNS, within)
			require.InDelta(t, truth.Startup, of[report.BucketStartup], within)
			require.InDelta(t, truth.Load, of[report.BucketLoad], within)
			require.InDelta(t, truth.Save, of[report.BucketCheckpoint], within)
			require.InDelta(t, truth.Evaluate, of[report.BucketEvaluation], within)
			require.InDelta(t, truth.Train, of[report.BucketProductive]+of[report.BucketSlow], within)
			if name == "killed" { // Nothing says of the step in the middle of which the ranks died.
				require.InDelta(t, truth.Down+truth.Lost, of[report.BucketRestart]+of[report.BucketLost], within)
				require.InDelta(t, truth.Down, of[report.BucketRestart], float64(run.Steps.Times.Max))
			} else {
				require.InDelta(t, truth.Down, of[report.BucketRestart], within)
				require.InDelta(t, truth.Lost, of[report.BucketLost], within)
			}
			require.Zero(t, of[report.BucketOverhead]+of[report.BucketIdle]+of[report.BucketQueue]+of[report.BucketAllocation])

			require.EqualValues(t, truth.LostSteps, run.Steps.Lost)
			require.Len(t, run.Attempts, len(truth.Attempts))
			for i, want := range truth.Attempts {
				got := run.Attempts[i]
				require.EqualValues(t, want.First, got.FirstStep)
				require.EqualValues(t, len(want.Steps), got.Steps)
				if want.Completed >= want.First {
					require.EqualValues(t, want.Completed, got.LastStep)
				}
				if want.Saved >= want.First {
					require.EqualValues(t, want.Saved, got.SavedStep)
				}
				require.InDelta(t, want.End.Sub(want.Begin), got.Lasting(), within+float64(run.Steps.Times.Max))
			}
			require.Equal(t, int64(truth.ErrorSpans), errorsOf(run))
			require.EqualValues(t, truth.Spans, run.Spans)
			require.EqualValues(t, truth.Points, run.Points)
		})
	}
}

func errorsOf(r report.Run) (n int64) {
	for _, e := range r.Errors {
		n += e.Count
	}
	return n
}

func TestTheSlowRankIsNamed(t *testing.T) {
	for _, generation := range []simrun.Generation{simrun.OldNames, simrun.NewNames} {
		run, _ := simulated(t, func(c *simrun.Config) {
			c.Ranks, c.RanksPerNode, c.SlowRank, c.SlowBy, c.Generation = 64, 8, 17, 0.1, generation
		})
		require.True(t, run.Steps.ByWork)
		require.Equal(t, 17, run.Slowest[0].Rank)
		require.Equal(t, "node002", run.Slowest[0].Host)
		require.True(t, run.Slowest[0].Stands)
		require.InDelta(t, 0.1*0.8/0.85, run.Slowest[0].Over, 0.02, "of what is no waiting, 0.8 of 0.85 is computing")
		require.False(t, run.Slowest[1].Stands)

		var text bytes.Buffer
		require.NoError(t, report.WriteText(&text, report.Summary{Runs: []report.Run{run}}))
		require.Regexp(t, `(?m)^17 +megatron +node002 .* stands out$`, text.String())
		require.Equal(t, 1, strings.Count(text.String(), "stands out"))
	}
	run, _ := simulated(t, func(c *simrun.Config) { c.SlowRank = -1 })
	for _, s := range run.Slowest {
		require.False(t, s.Stands)
	}
}

func TestOffsetsOfClocksAreRecovered(t *testing.T) {
	run, truth := simulated(t, func(c *simrun.Config) { c.MaxOffset = 10 * time.Minute })
	require.Len(t, run.Clocks, len(truth.Nodes)-1)
	for _, c := range run.Clocks {
		require.True(t, c.Known)
		require.InDelta(t, truth.Offsets[c.Host]-truth.Offsets[truth.Nodes[0]], c.OffsetNS, float64(simrun.Default().EndSkew))
		require.Less(t, c.Residual, int64(simrun.Default().EndSkew))
	}
}

// The first rank goes on elsewhere after a restart, and its old node is not heard of any more.
func TestClocksOfNodesThatRanksMoveBetween(t *testing.T) {
	var all []string
	step := func(n, at, rank int, host, pid string) {
		all = append(all, span("megatron.train.iteration", at, at+10, rank, map[string]any{"megatron.iteration": n}, "host.name", host, "process.pid", pid))
	}
	for n := range 5 {
		step(n, 10*n, 0, "a", "1")
		step(n, 10*n+2, 1, "b", "1")
		step(5+n, 100+10*n+3, 0, "c", "2")
		step(5+n, 100+10*n+2, 1, "b", "2")
	}
	run := reportOn(t, options, lines(all...)).Runs[0]
	requireWhole(t, run)
	require.Equal(t, []report.Clock{{Host: "b", OffsetNS: 2e9, Steps: 10, Known: true}, {Host: "c", OffsetNS: 3e9, Steps: 5, Known: true}}, run.Clocks)
	require.Equal(t, 150*time.Second, time.Duration(run.WallNS))
}

// Of runs that export one rank, which each attempt has on another node, no two clocks can be compared. One note says so.
func TestClocksThatCannotBeCompared(t *testing.T) {
	var all []string
	for n := range 6 {
		all = append(all, span("megatron.train.iteration", 20*n, 20*n+10, 0, map[string]any{"megatron.iteration": n}, "host.name", fmt.Sprint("n", n)))
	}
	for nodes, want := range map[int]string{
		2: "the clock of n1 could not be compared with the others: its times are taken as they are",
		6: "the clocks of 5 nodes could not be compared with the others, that of n1 among them: their times are taken as they are",
	} {
		run := reportOn(t, options, lines(all[:nodes]...)).Runs[0]
		require.Len(t, run.Clocks, nodes-1)
		require.Equal(t, []string{want}, run.Notes)
	}
}

func TestStepTimesOfRanks(t *testing.T) {
	run, truth := simulated(t, func(c *simrun.Config) { c.Steps, c.Crashes, c.EndSkew = 300, nil, 0 })
	steps := slices.Sorted(slices.Values(truth.Attempts[0].Steps))
	for _, rank := range run.PerRank {
		require.EqualValues(t, 300, rank.Steps.Count)
		for q, got := range map[float64]int64{0.50: rank.Steps.P50, 0.95: rank.Steps.P95, 0.99: rank.Steps.P99, 1: rank.Steps.Max} {
			want := float64(steps[int(q*300)-1])
			require.InDelta(t, want, got, want*run.Steps.Error+2, "within the error that is stated")
		}
	}
	require.Less(t, run.Steps.Error, 0.001)
	require.Len(t, run.StepTimes, 300)
}

// Every file of real programs gives a report whose figures hold together, printed in every form.
func TestCaptures(t *testing.T) {
	folder := filepath.Join("..", "..", "testdata", "captures")
	n := 0
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "console.jsonl" {
			return err
		}
		file, err := os.Open(path)
		require.NoError(t, err)
		defer file.Close()
		for _, run := range reportOn(t, options, file).Runs {
			requireWhole(t, run)
			n++
		}
		return nil
	}))
	require.Greater(t, n, 20)
}

func TestGoldenForms(t *testing.T) {
	captured := func(scenario string) report.Summary {
		file, err := os.Open(filepath.Join("..", "..", "testdata", "captures", filepath.FromSlash(scenario), "grpc", "console.jsonl"))
		require.NoError(t, err)
		defer file.Close()
		return reportOn(t, options, file)
	}
	sim, _ := simulated(t, func(c *simrun.Config) { c.MaxOffset = time.Second })
	for name, s := range map[string]report.Summary{
		"ranks": captured("0.2.0/ranks"), "exception": captured("0.2.0/exception"), "pr42": captured("pr42/slurm"), "open_spans": captured("0.2.0/open_spans"),
		"simulated": {Version: 1, Runs: []report.Run{sim}},
		"slurm":     reportOn(t, options, slurmSpans(t)),
	} {
		var text bytes.Buffer
		require.NoError(t, report.WriteText(&text, s))
		golden(t, name+".txt", text.Bytes())
		asJSON, err := json.MarshalIndent(s, "", " ")
		require.NoError(t, err)
		require.NotContains(t, string(asJSON), "null", "a list of nothing is a list")
		if name != "simulated" { // Its columns and ranks are many.
			golden(t, name+".json", append(asJSON, '\n'))
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// slurmSpans is what `lenscol reckon` makes of a job that was requeued.
func slurmSpans(t testing.TB) io.Reader {
	rows, err := os.Open(filepath.Join("..", "reckon", "testdata", "requeued.sacct"))
	require.NoError(t, err)
	defer rows.Close()
	parsed, err := reckon.Parse(rows, time.UTC)
	require.NoError(t, err)
	var file bytes.Buffer
	for _, job := range reckon.Jobs(parsed, reckon.DefaultInfra) {
		td, _ := reckon.Spans(job, reckon.Layers)
		encoder, err := jsonlexporter.NewEncoder(jsonlexporter.LayoutCompact, jsonlexporter.ResourceInline)
		require.NoError(t, err)
		file.Write(encoder.AppendTraces(nil, td))
	}
	return &file
}

// The scheduler's share is that of SLURM's accounting: what `lenscol reckon` prints of the same job (docs/cli.md).
func TestTheSchedulersShareComesFromSLURM(t *testing.T) {
	s := reportOn(t, options, slurmSpans(t))
	require.Len(t, s.Runs, 1)
	of := requireWhole(t, s.Runs[0])
	require.Equal(t, 209*time.Second, time.Duration(s.Runs[0].WallNS))
	require.Equal(t, 125*time.Second, of[report.BucketQueue], "2m1s deferred, 4s queued")
	require.Equal(t, time.Second, of[report.BucketAllocation], "1s of setup")
	require.Equal(t, 83*time.Second, of[report.BucketUnobserved], "the steps, of which no rank tells")
	require.InDelta(t, 83.0/209, s.Runs[0].Goodput.Scheduler, 1e-9)
}

// Ranks in an allocation: what SLURM says holds where they say nothing.
func TestRanksInAnAllocation(t *testing.T) {
	file := lines(
		span("slurm.phase.queued", 0, 100, nil, nil),
		span("slurm.record.allocation", 100, 300, nil, nil),
		span("slurm.record.step", 110, 290, nil, map[string]any{"slurm.step.role": "workload"}),
		span("slurm.record.step", 100, 300, nil, map[string]any{"slurm.step.role": "infra"}),
		span("megatron.train.iteration", 150, 200, 0, map[string]any{"megatron.iteration": 1}),
		span("megatron.train.iteration", 200, 250, 0, map[string]any{"megatron.iteration": 2}),
	)
	run := reportOn(t, options, file).Runs[0]
	of := requireWhole(t, run)
	require.Equal(t, map[string]time.Duration{
		report.BucketQueue: 100 * time.Second, report.BucketAllocation: 20 * time.Second, report.BucketUnobserved: 80 * time.Second, report.BucketProductive: 100 * time.Second,
	}, nonZero(of))
}

func TestBucketsOfNeMoRL(t *testing.T) {
	bucket := func(name string) map[string]any { return map[string]any{"rl.bucket": name} }
	file := lines(
		span("rl.startup", 0, 10, 0, nil),
		span("rl.grpo.step", 10, 30, 0, map[string]any{"rl.step": 1}),
		span("rl.grpo.generation", 10, 18, 0, bucket("productive")),
		span("rl.grpo.policy_and_reference_logprobs", 18, 20, 0, bucket("overhead")),
		span("rl.idle.refit_bubble", 20, 21, 0, bucket("idle")),
		span("rl.something.new", 21, 23, 0, bucket("wasted")),
		span("rl.grpo.policy_training", 23, 29, 0, nil), // without the attribute, by its name
		span("rl.grpo.checkpointing", 30, 34, 0, nil),
		span("rl.grpo.evaluate", 34, 40, 0, nil),
		span("rl.grpo.job", 0, 41, 0, nil),
	)
	of := requireWhole(t, reportOn(t, options, file).Runs[0])
	require.Equal(t, map[string]time.Duration{
		report.BucketStartup: 10 * time.Second, report.BucketProductive: 15 * time.Second, report.BucketOverhead: 3 * time.Second, report.BucketIdle: time.Second,
		report.BucketLost: 2 * time.Second, report.BucketCheckpoint: 4 * time.Second, report.BucketEvaluation: 6 * time.Second,
	}, nonZero(of))
}

// A process that goes back to a checkpoint without a new process: the steps tell.
func TestARestartWithinAProcess(t *testing.T) {
	var all []string
	at := 0
	step := func(numbers ...int) {
		for _, n := range numbers {
			all = append(all, span("megatron.train.iteration", at, at+10, 0, map[string]any{"megatron.iteration": n}))
			at += 10
		}
	}
	step(1, 2, 3, 4)
	at += 5
	all = append(all, span("megatron.checkpoint.load", at, at+5, 0, nil))
	at += 5
	step(3, 4, 5)
	run := reportOn(t, options, lines(all...)).Runs[0]
	of := requireWhole(t, run)
	require.Equal(t, map[string]time.Duration{
		report.BucketProductive: 50 * time.Second, report.BucketLost: 20 * time.Second, report.BucketRestart: 5 * time.Second, report.BucketLoad: 5 * time.Second,
	}, nonZero(of))
	require.Len(t, run.Attempts, 2)
	require.EqualValues(t, 2, run.Attempts[0].LostSteps)
	require.EqualValues(t, 3, run.Attempts[1].UnsavedTail)
}

// What a rank sent in the first attempt is lost, or it took no part in it: its first life is the second of the others.
func TestARankThatIsNotInTheFirstAttempt(t *testing.T) {
	var all []string
	steps := func(rank int, pid string, at, first, last int) {
		for n := first; n <= last; n++ {
			all = append(all, span("megatron.train.iteration", at, at+10, rank, map[string]any{"megatron.iteration": n}, "process.pid", pid))
			at += 10
		}
	}
	for rank := range 3 {
		if rank > 0 {
			steps(rank, "1", 0, 1, 6)
		}
		steps(rank, "2", 160-rank, 5, 8)
	}
	run := reportOn(t, options, lines(all...)).Runs[0]
	requireWhole(t, run)
	require.Len(t, run.Attempts, 2)
	require.Equal(t, [2]int{2, 3}, [2]int{run.Attempts[0].Ranks, run.Attempts[1].Ranks})
	require.Equal(t, [2]int64{6, 4}, [2]int64{run.Attempts[0].Steps, run.Attempts[1].Steps})
	require.Equal(t, [2]int64{8, 2}, [2]int64{run.Steps.Kept, run.Steps.Lost})
	require.Equal(t, time.Minute, time.Duration(run.Attempts[0].Lasting()))
	require.Empty(t, run.Gaps)
}

// A quarter of what ranks sent of an attempt is lost, of the first rank nothing: attempts, steps and clocks are as they were.
func TestAttemptsOfWhichRanksAreMissing(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 0))
		cfg := simrun.Default()
		cfg.Seed, cfg.Crashes, cfg.Killed = seed, [][]int{{27}, {5, 17, 33}, {3, 3, 27}}[seed%3], seed%2 == 0
		run, err := simrun.New(cfg)
		require.NoError(t, err)
		encoder, err := jsonlexporter.NewEncoder(jsonlexporter.LayoutCompact, jsonlexporter.ResourceInline)
		require.NoError(t, err)
		lost, file := map[string]bool{}, []byte(nil)
		require.NoError(t, run.Each(func(b simrun.Batch) error {
			pid, _ := b.Traces.ResourceSpans().At(0).Resource().Attributes().Get("process.pid")
			process := fmt.Sprint(b.Rank, " ", pid.Int())
			if _, ok := lost[process]; !ok {
				lost[process] = b.Rank > 0 && random.IntN(4) == 0
			}
			if !lost[process] {
				file = encoder.AppendTraces(file, b.Traces)
			}
			return nil
		}))
		got, truth := reportOn(t, options, bytes.NewReader(file)).Runs[0], run.Truth()
		requireWhole(t, got)
		require.Len(t, got.Attempts, len(truth.Attempts))
		for i, want := range truth.Attempts {
			require.InDelta(t, want.End.Sub(want.Begin), got.Attempts[i].Lasting(), float64(got.Steps.Times.Max))
		}
		require.Equal(t, [2]int64{int64(cfg.Steps), int64(truth.LostSteps)}, [2]int64{got.Steps.Kept, got.Steps.Lost})
		require.Empty(t, got.Gaps)
		require.Len(t, got.Clocks, len(truth.Nodes)-1)
		for _, c := range got.Clocks {
			require.True(t, c.Known)
			require.InDelta(t, truth.Offsets[c.Host]-truth.Offsets[truth.Nodes[0]], c.OffsetNS, float64(cfg.EndSkew))
		}
	}
}

// Jobs in a chain that send no spans of checkpoints: what a later one goes on from was saved.
func TestStepsThatALaterAttemptGoesOnFromAreSaved(t *testing.T) {
	var all []string
	for n := range 8 {
		all = append(all, span("megatron.train.iteration", 10*n+100*(n/4), 10*n+100*(n/4)+10, 0, map[string]any{"megatron.iteration": n + 1}, "process.pid", fmt.Sprint(n/4)))
	}
	attempts := reportOn(t, options, lines(all...)).Runs[0].Attempts
	require.Len(t, attempts, 2)
	require.Equal(t, [2]int64{0, 4}, [2]int64{attempts[0].UnsavedTail, attempts[1].UnsavedTail})
}

// Runs of weeks are interrupted hundreds of times.
func TestManyAttempts(t *testing.T) {
	var all []string
	for n := range 300 {
		all = append(all, span("megatron.train.iteration", 100*n, 100*n+10, 0, map[string]any{"megatron.iteration": n}, "process.pid", fmt.Sprint(n)))
	}
	run := reportOn(t, options, lines(all...)).Runs[0]
	require.Len(t, run.Attempts, 300)
	require.Equal(t, map[string]time.Duration{report.BucketProductive: 3000 * time.Second, report.BucketRestart: 299 * 90 * time.Second}, nonZero(requireWhole(t, run)))
}

// The host of a rank is the one that it was on last, in whatever order files are read. A process that sends metrics alone has no begin.
func TestTheHostAndTheTimesOfARank(t *testing.T) {
	point := `{"type":"metric","name":"loss","kind":"gauge","time_ns":1795957005000000000,"value":1,"resource":{"attributes":{"nemo.run.id":"r","nv.dl.rank":0,"host.name":"c"}}}` + "\n"
	step := func(n, at int, host, pid string) string {
		return span("megatron.train.iteration", at, at+10, 0, map[string]any{"megatron.iteration": n}, "host.name", host, "process.pid", pid)
	}
	rank := reportOn(t, options, lines(step(2, 50, "b", "2"), step(1, 0, "a", "1"), point)).Runs[0].PerRank[0]
	require.Equal(t, "b", rank.Host)
	require.Equal(t, [2]int64{base * 1e9, (base + 60) * 1e9}, [2]int64{rank.BeginNS, rank.EndNS})
}

// NeMo RL evaluates and saves within the step: what it saves then has that step.
func TestACheckpointWithinAStep(t *testing.T) {
	var all []string
	for n := range 4 {
		all = append(all, span("rl.rm.step", 20*n, 20*n+20, 0, map[string]any{"rl.iteration": n + 1}))
	}
	all = append(all, span("rl.rm.evaluate", 70, 72, 0, nil), span("rl.rm.checkpointing", 72, 79, 0, map[string]any{"rl.bucket": "overhead"}))
	run := reportOn(t, options, lines(all...)).Runs[0]
	of := requireWhole(t, run)
	require.Equal(t, 7*time.Second, of[report.BucketCheckpoint])
	require.Equal(t, [4]int64{4, 4, 4, 0}, [4]int64{run.Steps.Kept, run.Attempts[0].LastStep, run.Attempts[0].SavedStep, run.Attempts[0].UnsavedTail})
}

// One process of one rank loads a checkpoint and ends, before the training.
func TestAProcessOfOneRankBeforeTheOthers(t *testing.T) {
	all := []string{span("megatron.checkpoint.load", 0, 10, 0, nil, "process.pid", "1")}
	for rank := range 2 {
		for n := range 4 {
			all = append(all, span("megatron.train.iteration", 20+10*n, 30+10*n, rank, map[string]any{"megatron.iteration": n}, "process.pid", "2"))
		}
	}
	run := reportOn(t, options, lines(all...)).Runs[0]
	require.Equal(t, map[string]time.Duration{
		report.BucketLoad: 5 * time.Second, report.BucketRestart: 5 * time.Second, report.BucketUnobserved: 10 * time.Second, report.BucketProductive: 40 * time.Second,
	}, nonZero(requireWhole(t, run)))
	require.Equal(t, [2]int64{4, 0}, [2]int64{run.Steps.Kept, run.Steps.Lost})
}

// A server that says it is a rank, and is started anew, is no restart of the training.
func TestRestartsOfWhatTakesNoSteps(t *testing.T) {
	var all []string
	for n := range 9 {
		all = append(all, span("megatron.train.iteration", 11*n, 11*n+10, 0, map[string]any{"megatron.iteration": n}, "service.name", "trainer"))
	}
	for n := range 3 {
		all = append(all, span("gym.startup", 30*n, 30*n+10, 0, nil, "service.name", "gym", "process.pid", fmt.Sprint(n)))
	}
	run := reportOn(t, options, lines(all...)).Runs[0]
	require.Len(t, run.Attempts, 1)
	require.EqualValues(t, 9, run.Attempts[0].Steps)
	require.Equal(t, map[string]time.Duration{report.BucketProductive: 90 * time.Second, report.BucketOverhead: 8 * time.Second}, nonZero(requireWhole(t, run)))
	require.Empty(t, run.Gaps)
}

// One rank alone is started anew, and the others wait for it within a step.
func TestOneRankIsStartedAnew(t *testing.T) {
	var all []string
	for rank := range 3 {
		for n := range 6 {
			pid, at := "1", 10*n
			if n >= 3 {
				at += 30
				if rank == 2 {
					pid = "2"
				}
			}
			all = append(all, span("megatron.train.iteration", at, at+10, rank, map[string]any{"megatron.iteration": n}, "process.pid", pid))
		}
	}
	run := reportOn(t, options, lines(all...)).Runs[0]
	of := requireWhole(t, run)
	require.Equal(t, time.Minute, of[report.BucketProductive])
	require.Zero(t, of[report.BucketLost])
	require.Equal(t, [2]int64{6, 0}, [2]int64{run.Steps.Kept, run.Steps.Lost})
}

// A rank that skips a batch which fails has not ended by that.
func TestTrainingThatGoesOnAfterAnError(t *testing.T) {
	failed := func(line string) string {
		return strings.Replace(line, `"type":"span"`, `"type":"span","status":"ERROR"`, 1)
	}
	step := func(n int) string {
		return span("megatron.train.iteration", 10*n, 10*n+10, 0, map[string]any{"megatron.iteration": n})
	}
	for name, c := range map[string]struct {
		file  io.Reader
		ended string
	}{
		"goes on":      {lines(span("megatron.train", 10, 40, 0, nil), step(1), failed(step(2)), step(3)), "ended"},
		"does not":     {lines(failed(span("megatron.train", 10, 40, 0, nil)), step(1), step(2), failed(step(3))), "error"},
		"between both": {lines(failed(span("megatron.train", 10, 40, 0, nil)), step(1), step(2), step(3)), "error"},
	} {
		t.Run(name, func(t *testing.T) {
			attempts := reportOn(t, options, c.file).Runs[0].Attempts
			require.Len(t, attempts, 1)
			require.Equal(t, c.ended, attempts[0].Ended)
		})
	}
}

func TestGaps(t *testing.T) {
	step := func(n, from, rank int) string {
		return span("megatron.train.iteration", from, from+10, rank, map[string]any{"megatron.iteration": n})
	}
	file := lines(
		span("megatron.train", 0, 400, 0, nil), span("megatron.train", 0, 400, 1, nil),
		step(1, 0, 0), step(1, 0, 1), step(2, 10, 0), step(2, 10, 1), step(3, 15+100, 0), step(3, 20+100, 1), step(4, 150, 0), step(4, 150, 1), step(5, 160, 2),
		step(6, 390, 0), step(6, 390, 1),
	)
	run := reportOn(t, options, file).Runs[0]
	requireWhole(t, run)
	var got []string
	for _, g := range run.Gaps {
		got = append(got, fmt.Sprintf("%d to %d of %s, silent %t", g.FromNS/1e9-base, g.ToNS/1e9-base, g.Ranks, g.Silent))
	}
	require.Equal(t, []string{"20 to 120 of 0-1, silent false", "160 to 390 of 0-1, silent false", "170 to 400 of 2, silent true"}, got)
}

// Without spans of steps the loop counts, and the report says so.
func TestWithoutSteps(t *testing.T) {
	run := reportOn(t, options, lines(
		span("nv.dl.training.iter_block", 0, 100, 0, nil), span("nv.dl.training.checkpoint.exposed_save", 90, 100, 0, nil),
	)).Runs[0]
	require.Equal(t, map[string]time.Duration{report.BucketProductive: 90 * time.Second, report.BucketCheckpoint: 10 * time.Second}, nonZero(requireWhole(t, run)))
	require.Contains(t, run.Notes[0], "no spans of steps")
}

// Names that are tagged for goodput, in any of the three generations of tags, and that nobody knows are named.
func TestTheOrderOfRecordsDoesNotMatter(t *testing.T) {
	run, err := simrun.New(simrun.Default())
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, run.Write(&file, jsonlexporter.LayoutOTLPJSON)) // Each line says whose it is.
	all := slices.Collect(bytes.Lines(file.Bytes()))
	want := reportOn(t, options, bytes.NewReader(file.Bytes())).Runs[0]
	for seed := range uint64(3) {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		got := reportOn(t, options, bytes.NewReader(bytes.Join(all, nil))).Runs[0]
		require.Equal(t, want.Buckets, got.Buckets)
		require.Equal(t, want.Attempts, got.Attempts)
		require.Equal(t, want.Slowest, got.Slowest)
		require.Equal(t, want.Clocks, got.Clocks)
		require.Equal(t, want.Errors, got.Errors)
		require.Equal(t, want.StepTimes, got.StepTimes)
	}
	twice := reportOn(t, options, bytes.NewReader(file.Bytes()), bytes.NewReader(file.Bytes())).Runs[0]
	require.Equal(t, want.Buckets, twice.Buckets, "what was kept twice is counted once in the wall time")
	require.Equal(t, want.Attempts, twice.Attempts)
}

// A process that has a rank and does not train, as one that stages data, is no attempt of the run.
func TestAProcessThatDoesNotTrainIsNoAttempt(t *testing.T) {
	run := reportOn(t, options, lines(
		span("stage data", 0, 50, 0, nil, "process.pid", "1"),
		span("megatron.train.iteration", 60, 70, 0, map[string]any{"megatron.iteration": 1}, "process.pid", "2"),
	)).Runs[0]
	require.Len(t, run.Attempts, 1)
	require.Equal(t, map[string]time.Duration{report.BucketUnobserved: time.Minute, report.BucketProductive: 10 * time.Second}, nonZero(requireWhole(t, run)))
}

func TestUnknownNamesAreNamed(t *testing.T) {
	run := reportOn(t, options, lines(
		span("megatron.train.iteration", 0, 10, 0, map[string]any{"purpose": []any{"goodput"}, "megatron.iteration": 1}),
		span("megatron.new_thing", 10, 11, 0, map[string]any{"purpose": []any{"goodput", "profiling"}}),
		span("megatron.other_thing", 10, 11, 0, map[string]any{"lens.span_category": "goodput"}),
		span("megatron.other_thing", 11, 12, 0, map[string]any{"is_goodput_span": true}),
		span("megatron.profiled", 11, 12, 0, map[string]any{"purpose": []any{"profiling"}}),
	)).Runs[0]
	require.Equal(t, []report.Named{{Name: "megatron.other_thing", Count: 2}, {Name: "megatron.new_thing", Count: 1}}, run.Unknown)
}

func TestCheckpointWorkersHoldNothingUp(t *testing.T) {
	run := reportOn(t, options, lines(
		span("megatron.train.iteration", 0, 10, 0, map[string]any{"megatron.iteration": 1}),
		span("megatron.train.iteration", 10, 20, 0, map[string]any{"megatron.iteration": 2}),
		span("nvrx.checkpoint.save.write", 5, 25, 0, nil),
		span("megatron.checkpoint.save", 0, 20, 0, nil, "nv.dl.role", "ckpt_worker"),
	)).Runs[0]
	require.Equal(t, 20*time.Second, requireWhole(t, run)[report.BucketProductive])
	require.EqualValues(t, 2, run.AsyncSpans)
	require.Zero(t, run.Checkpoints.Count)
}

// NeMo RL's collector says that it is rank 0, as the driver does, and waits while the driver trains. A launcher ends when training has begun.
func TestProcessesBesideARankHoldNothingUp(t *testing.T) {
	driver, collector, launcher := []string{"process.pid", "1"}, []string{"process.pid", "2"}, []string{"process.pid", "3"}
	of := requireWhole(t, reportOn(t, options, lines(
		span("rl.startup", 0, 12, 0, nil, launcher...),
		span("rl.startup", 10, 20, 0, nil, driver...),
		span("rl.grpo.step", 20, 40, 0, map[string]any{"rl.step": 1}, driver...),
		span("rl.grpo.policy_training", 20, 40, 0, map[string]any{"rl.bucket": "productive"}, driver...),
		span("rl.grpo.step", 50, 70, 0, map[string]any{"rl.step": 2}, driver...),
		span("rl.grpo.policy_training", 50, 70, 0, map[string]any{"rl.bucket": "productive"}, driver...),
		span("rl.idle.generation_limit_pause", 25, 65, 0, nil, collector...),
		span("rl.grpo.generation", 15, 25, 0, nil, collector...),
	)).Runs[0])
	require.Equal(t, map[string]time.Duration{
		report.BucketStartup: 20 * time.Second, report.BucketProductive: 40 * time.Second, report.BucketOverhead: 10 * time.Second,
	}, nonZero(of))
}

// What runs beside a rank may outlive it, and be there when the rank goes on.
func TestAProcessBesideTwoLivesOfARank(t *testing.T) {
	all := []string{span("rl.idle.generation_limit_pause", 5, 75, 0, nil, "process.pid", "9")}
	for n := range 4 {
		all = append(all, span("rl.grpo.step", 10*n+40*(n/2), 10*n+40*(n/2)+10, 0, map[string]any{"rl.step": n}, "process.pid", fmt.Sprint(n/2)))
	}
	run := reportOn(t, options, lines(all...)).Runs[0]
	require.Equal(t, map[string]time.Duration{report.BucketProductive: 40 * time.Second, report.BucketRestart: 40 * time.Second}, nonZero(requireWhole(t, run)))
	require.Len(t, run.Attempts, 2)
}

func TestRunsAreReportedApart(t *testing.T) {
	file := lines(
		span("megatron.train.iteration", 20, 30, 0, map[string]any{"megatron.iteration": 1}, "nemo.run.id", "b"),
		span("megatron.train.iteration", 0, 10, 0, map[string]any{"megatron.iteration": 1}, "nemo.run.id", "a"),
	)
	names := func(s report.Summary) (names []string) {
		for _, r := range s.Runs {
			names = append(names, r.Run)
		}
		return names
	}
	require.Equal(t, []string{"a", "b"}, names(reportOn(t, options, file)))
}

const base = 1_795_957_000 // seconds: when the runs of span begin

// span is a line of the compact layout. Times are seconds; rank nil is none; resource are more attributes of it.
func span(name string, from, to int, rank any, attributes map[string]any, resource ...string) string {
	of := map[string]any{"nemo.run.id": "r"}
	if attributes == nil {
		attributes = map[string]any{}
	}
	if rank != nil {
		of["nv.dl.rank"] = rank
	}
	for i := 0; i+1 < len(resource); i += 2 {
		of[resource[i]] = resource[i+1]
	}
	line, _ := json.Marshal(map[string]any{
		"type": "span", "name": name, "start_ns": (base + int64(from)) * 1e9, "duration_ns": int64(to-from) * 1e9, "attributes": attributes, "resource": map[string]any{"attributes": of},
	})
	return string(line) + "\n"
}

func lines(all ...string) io.Reader { return strings.NewReader(strings.Join(all, "")) }

func nonZero(of map[string]time.Duration) map[string]time.Duration {
	for b, d := range of {
		if d == 0 {
			delete(of, b)
		}
	}
	return of
}
