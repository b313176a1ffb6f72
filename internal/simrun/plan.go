// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package simrun // import "github.com/lenscol/lenscol/internal/simrun"

import (
	"fmt"
	"time"
)

// A step, in shares of StepTime: every rank computes for compute, waits until the slowest has, all exchange gradients for exchange,
// then comes the optimizer and the rest, in which it logs.
const (
	computeShare  = 0.80
	exchangeShare = 0.05
	optimizeShare = 0.10
	restShare     = 0.05
)

// Run is a planned run.
type Run struct {
	cfg      Config
	truth    Truth
	attempts []attempt
}

// attempt and step hold when things happen on all ranks at once, counted from the begin of the run.
type attempt struct {
	begin, started, loaded time.Duration // loaded is started where nothing is loaded
	steps                  []step        // the last one is torn where the attempt crashed
	crashed                bool
	end                    time.Duration
}

type step struct {
	number                   int
	begin, synced, end       time.Duration // synced: gradients are exchanged
	saved, evaluated         time.Duration // ends; equal to what comes before where there is none
	saves, evaluates, report bool
}

// New plans a run. Its error names what the config must not be.
func New(cfg Config) (*Run, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	r := &Run{cfg: cfg}
	r.plan()
	r.tell()
	return r, nil
}

// Truth is what was so. Its counts of what was sent are there after Each.
func (r *Run) Truth() Truth { return r.truth }

func (r *Run) plan() {
	at, saved, crashes := time.Duration(0), 0, r.cfg.Crashes
	for {
		a := attempt{begin: at, started: at + r.cfg.Startup}
		a.loaded = a.started
		if len(r.attempts) > 0 && saved > 0 {
			a.loaded += r.cfg.LoadTime
		}
		at = a.loaded
		for n := saved + 1; n <= r.cfg.Steps && !a.crashed; n++ {
			s := r.planStep(len(r.attempts), n, at)
			if len(crashes) > 0 && crashes[0] == n {
				a.crashed, crashes = true, crashes[1:]
				at += r.of(computeShare) / 2
				a.steps = append(a.steps, s)
				break
			}
			at = s.evaluated
			if s.saves {
				saved = n
			}
			a.steps = append(a.steps, s)
		}
		a.end = at
		r.attempts = append(r.attempts, a)
		if !a.crashed {
			return
		}
		at += r.cfg.RestartGap
	}
}

func (r *Run) planStep(attempt, n int, at time.Duration) step {
	slowest := time.Duration(0)
	for rank := range r.cfg.Ranks {
		slowest = max(slowest, r.compute(attempt, n, rank))
	}
	s := step{number: n, begin: at, synced: at + slowest + r.of(exchangeShare)}
	s.end = s.synced + r.of(optimizeShare+restShare)
	s.saved = s.end
	if s.saves = r.cfg.SaveEvery > 0 && n%r.cfg.SaveEvery == 0; s.saves {
		s.saved += r.cfg.SaveTime
	}
	s.evaluated = s.saved
	if s.evaluates = r.cfg.EvalEvery > 0 && n%r.cfg.EvalEvery == 0; s.evaluates {
		s.evaluated += r.cfg.EvalTime
	}
	s.report = r.cfg.LogEvery > 0 && (n%r.cfg.LogEvery == 0 || n == r.cfg.Steps)
	return s
}

// compute is how long a rank computes in a step.
func (r *Run) compute(attempt, step, rank int) time.Duration {
	share := computeShare * (1 + r.cfg.Jitter*(2*r.unit(useCompute, attempt, step, rank)-1))
	if rank == r.cfg.SlowRank {
		share *= 1 + r.cfg.SlowBy
	}
	return r.of(share)
}

func (r *Run) of(share float64) time.Duration { return time.Duration(share * float64(r.cfg.StepTime)) }

// tell writes the truth down, apart from the plan's making.
func (r *Run) tell() {
	t := &r.truth
	t.SlowRank, t.Offsets = r.cfg.SlowRank, map[string]time.Duration{}
	for node := range (r.cfg.Ranks + r.cfg.RanksPerNode - 1) / r.cfg.RanksPerNode {
		t.Nodes = append(t.Nodes, nodeName(node))
		t.Offsets[nodeName(node)] = time.Duration((2*r.unit(useOffset, node) - 1) * float64(r.cfg.MaxOffset))
	}
	t.Begin = r.cfg.Begin
	t.End = t.Begin.Add(r.attempts[len(r.attempts)-1].end)
	saved := 0
	for i, a := range r.attempts {
		told := Attempt{Begin: t.Begin.Add(a.begin), End: t.Begin.Add(a.end), First: a.steps[0].number, Completed: a.steps[0].number - 1, Crashed: a.crashed}
		for _, s := range a.steps {
			if a.crashed && s.number == a.steps[len(a.steps)-1].number {
				break
			}
			told.Completed = s.number
			told.Steps = append(told.Steps, s.end-s.begin)
			if s.saves {
				saved = s.number
			}
		}
		told.Saved = saved
		t.Startup += a.started - a.begin
		t.Load += a.loaded - a.started
		for _, s := range a.steps {
			switch {
			case s.number > told.Completed:
				t.Lost += a.end - s.begin
				continue
			case a.crashed && s.number > saved:
				t.Lost += s.end - s.begin
				t.LostSteps++
			default:
				t.Train += s.end - s.begin
			}
			t.Save += s.saved - s.end
			t.Evaluate += s.evaluated - s.saved
		}
		if i > 0 {
			t.Down += a.begin - r.attempts[i-1].end
		}
		t.Attempts = append(t.Attempts, told)
	}
}

func nodeName(node int) string { return fmt.Sprintf("node%03d", node) }

// What a number is drawn for: draws for one thing do not change those for another.
const (
	useCompute = iota
	useOffset
	useSkew
	useID
)

// unit draws from [0, 1). The same arguments give the same number.
func (r *Run) unit(use int, of ...int) float64 { return float64(r.draw(use, of...)>>11) / (1 << 53) }

// draw is SplitMix64's output function over the arguments, one after the other.
func (r *Run) draw(use int, of ...int) uint64 {
	x := mix(r.cfg.Seed + uint64(use)*0x9e3779b97f4a7c15)
	for _, n := range of {
		x = mix(x + uint64(n+1)*0x9e3779b97f4a7c15)
	}
	return x
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
