// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Against a clock that looks at every nanosecond: each is of the latest kind that covers it.
func TestFlattenKeepsTheLatestKindOfEachMoment(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var line timeline
		var all []segment
		var want [100]kind
		for i := range 1 + random.IntN(12) {
			from := random.Int64N(90)
			s := segment{from, from + random.Int64N(10), int64(i), kindStartup + kind(random.IntN(int(kindEvaluate-kindStartup)+1))}
			all = append(all, s)
			line.add(s)
			if random.IntN(4) == 0 { // Flat or not in between, the outcome is the same.
				line.flatten()
			}
			for at := s.from; at < s.to; at++ {
				want[at] = max(want[at], s.kind)
			}
		}
		line.flatten()
		var got [100]kind
		at := int64(0)
		for _, s := range line.segments {
			require.GreaterOrEqual(t, s.from, at, "sorted, none overlaps: %v", all)
			require.Less(t, s.from, s.to)
			at = s.to
			for ; s.from < s.to; s.from++ {
				got[s.from] = s.kind
			}
		}
		require.Equal(t, want, got, "%v", all)
	}
}

func TestALongTimeLineStaysSmallWhereSpansRepeat(t *testing.T) {
	var line timeline
	for i := range int64(100_000) {
		line.add(segment{i, i + 2, noStep, kindEvaluate})
	}
	require.LessOrEqual(t, len(line.segments), tidyFrom)
}

// Against sorted values: quantiles lie within the error that the sketch states.
func TestQuantilesLieWithinTheStatedError(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for name, draw := range map[string]func() float64{
		"all alike":        func() float64 { return 1e9 },
		"little spread":    func() float64 { return 1e9 * (1 + 0.02*random.Float64()) },
		"hundredfold":      func() float64 { return 1e7 * math.Pow(100, random.Float64()) },
		"a few are long":   func() float64 { return 1e9 * (1 + 60*math.Floor(random.Float64()*1.01)) },
		"from 1 ns to 1 h": func() float64 { return math.Pow(3.6e12, random.Float64()) },
		"some are zero":    func() float64 { return math.Floor(3*random.Float64()) * 1e6 },
	} {
		t.Run(name, func(t *testing.T) {
			s, other, values := newSketch(), newSketch(), []int64{}
			for i := range 10_000 {
				v := int64(draw())
				values = append(values, v)
				if i%3 == 0 {
					other.add(v)
				} else {
					s.add(v)
				}
			}
			s.merge(other)
			slices.Sort(values)
			for _, q := range []float64{0, 0.05, 0.5, 0.95, 0.99, 1} {
				want := float64(values[max(int(math.Ceil(q*10_000)), 1)-1])
				require.InDelta(t, want, s.quantile(q), want*s.relativeError()+1, "%v", q)
			}
			require.EqualValues(t, 10_000, s.count())
			if name == "hundredfold" {
				require.Less(t, s.relativeError(), 0.006, "as the page says")
			}
		})
	}
	require.Zero(t, newSketch().quantile(0.5))
}

func TestSeriesHasEveryStep(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, spread := range []int64{10, 399, 400, 401, 5000, 1 << 53} {
		var s series
		n, sum, longest := int64(0), int64(0), int64(0)
		for range 2000 {
			step, ns := 7+random.Int64N(spread), random.Int64N(1000)
			s.add(step, ns)
			n, sum, longest = n+1, sum+ns, max(longest, ns)
			p := s.points[step>>s.shift-s.base]
			require.True(t, p.n > 0 && p.min <= ns && ns <= p.max)
		}
		var all seriesPoint
		for _, p := range s.points {
			all.add(p)
		}
		require.Equal(t, [3]int64{n, sum, longest}, [3]int64{all.n, all.sum, all.max})
		list := s.list()
		for _, p := range list {
			require.GreaterOrEqual(t, p.Step, int64(0))
		}
		require.LessOrEqual(t, len(list), seriesPoints)
	}
}

// Whatever does not divide evenly, the buckets sum up to the wall time.
func TestBucketsSumUpToTheNanosecond(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		ranks, wall := 1+random.Int64N(70), random.Int64N(1<<62)
		a := newAccountant(0, wall)
		a.ranks = ranks
		left := new(big.Int).Mul(big.NewInt(wall), big.NewInt(ranks))
		for i := range a.sums[1:] {
			part := new(big.Int).Div(left, big.NewInt(1+random.Int64N(5)))
			a.sums[i+1].Set(part)
			left.Sub(left, part)
		}
		a.sums[0].Set(left)
		sum := int64(0)
		for i, b := range a.buckets() {
			exact, _ := new(big.Rat).SetFrac(a.sums[i], big.NewInt(ranks)).Float64()
			require.InEpsilon(t, exact+10, float64(b.NS)+10, 0.1)
			sum += b.NS
		}
		require.Equal(t, wall, sum)
	}
}

// A run of a few nanoseconds, at a time of today: each column is full.
func TestTheTimeLineOfAShortRunIsFull(t *testing.T) {
	for _, wall := range []int64{1, 100, 100_000} {
		c := newChart(1_795_957_000e9+1, 1_795_957_000e9+1+wall)
		c.add(inLoad, c.begin, c.begin+wall/2)
		c.add(inProductive, c.begin+wall/2, c.end)
		line := c.timeLine(1)
		for i := range chartColumns {
			sum := 0.0
			for _, columns := range line.Buckets {
				sum += columns[i]
			}
			require.InDelta(t, 1, sum, 1e-3, "%d of %d ns", i, wall)
		}
	}
}

// Where there is no room, the highest ranks give up their time lines, and all other figures stay.
func TestRoomIsBounded(t *testing.T) {
	c := NewCollector(Options{Gap: time.Minute, Slowest: 1})
	c.room = 1000
	r := newRun("r")
	c.runs["r"] = r
	for rank := range 20 {
		m := newMember(memberKey{"s", rank})
		r.members[m.memberKey] = m
		session := &session{trains: true}
		m.sessions = append(m.sessions, session)
		for step := range int64(200) {
			for _, k := range []kind{kindStep, kindSave} {
				span := told{kind: k, from: 1e18 + step*100 + int64(k), to: 1e18 + step*100 + 50, step: step, level: levelWhole}
				m.take(span)
				session.extend(span)
				if !m.undrawn {
					c.draw(r, m, &session.line, span.segment())
				}
			}
		}
		require.LessOrEqual(t, c.segments, c.room)
	}
	s := c.Summary()
	require.Greater(t, s.Left.TimeLines, int64(10))
	run := s.Runs
	require.Empty(t, run, "no record was added")
	r.counts.Spans = 1
	got := c.summarize(r)
	require.Less(t, got.Accounted, 6)
	require.Greater(t, got.Accounted, 0)
	require.Equal(t, "0-19", got.Ranks)
	require.EqualValues(t, 20*200, got.Steps.Times.Count)
	require.Contains(t, strings.Join(got.Notes, "\n"), fmt.Sprintf("of %d of 20 ranks", got.Accounted))
}

// Where a process goes back to a checkpoint, ranks that gave up their time lines are in both attempts all the same.
func TestAttemptsOfRanksWithoutTimeLines(t *testing.T) {
	c := NewCollector(Options{Gap: time.Minute})
	c.room = 50
	r := newRun("r")
	r.counts.Spans = 1
	for rank := range 3 {
		m := newMember(memberKey{"s", rank})
		r.members[m.memberKey] = m
		m.sessions = []*session{{}}
		for i, n := range []int64{1, 2, 3, 4, 3, 4, 5, 6} {
			at := 1e18 + int64(i)*100e9
			if i >= 4 {
				at += 1000e9
			}
			for k := range int64(5) {
				s := told{kind: kindStep, from: at + 10e9*k, to: at + 10e9*k + 1e9, step: n}
				if k > 0 {
					s.kind = kindEvaluate
				}
				m.take(s)
				m.sessions[0].extend(s)
				if !m.undrawn {
					c.runs = map[string]*run{"r": r}
					c.draw(r, m, &m.sessions[0].line, s.segment())
				}
			}
		}
	}
	require.False(t, r.members[memberKey{"s", 0}].undrawn)
	require.True(t, r.members[memberKey{"s", 2}].undrawn)
	got := c.summarize(r)
	require.Len(t, got.Attempts, 2)
	require.Equal(t, [2]int{3, 3}, [2]int{got.Attempts[0].Ranks, got.Attempts[1].Ranks})
	require.Equal(t, 341*time.Second, time.Duration(got.Attempts[0].Lasting()))
	for _, g := range got.Gaps {
		require.False(t, g.Silent)
	}
}

func TestProcessesBeyondTheRoomAreTakenForOne(t *testing.T) {
	c := NewCollector(Options{Gap: time.Minute})
	c.sessions = maxSessions - 2
	for pid := range 5 {
		resource := pcommon.NewResource()
		resource.Attributes().PutInt("nv.dl.rank", int64(pid%2))
		resource.Attributes().PutInt("process.pid", int64(pid))
		src := c.newSource(resource.Attributes())
		require.NotNil(t, src.session)
		src.run.counts.Spans++
	}
	require.Equal(t, maxSessions, c.sessions)
	require.Contains(t, strings.Join(c.Summary().Runs[0].Notes, "\n"), "the last processes of 2 ranks are taken for one")
}

// A single rank with more than there is room for stops growing, and the report says so.
func TestTheLastTimeLineStopsGrowing(t *testing.T) {
	c := NewCollector(Options{Gap: time.Minute})
	c.room = 100
	r := newRun("r")
	c.runs["r"] = r
	m := newMember(memberKey{})
	r.members[m.memberKey] = m
	m.sessions = []*session{{begin: 1, end: 1 << 40, trains: true}}
	for i := range int64(1000) {
		c.draw(r, m, &m.sessions[0].line, segment{2 * i, 2*i + 1, i, kindStep})
	}
	require.LessOrEqual(t, len(m.sessions[0].line.segments), 101)
	require.EqualValues(t, 899, c.left.Segments)
	require.Contains(t, strings.Join(c.summarize(r).Notes, "\n"), "no room for all of the run")
}

// A node whose steps do not end with those of the others has no offset.
func TestClocksThatDoNotAgreeAreTakenAsTheyAre(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	var lives [][]life
	for _, host := range []string{"a", "ahead", "odd"} {
		l := life{host: host, member: newMember(memberKey{})}
		l.member.steps.add(1000)
		for step := range int64(100) {
			at := 1000 * step
			switch host {
			case "ahead":
				at += 1_000_000 + random.Int64N(3)
			case "odd":
				at += random.Int64N(1_000_000)
			}
			l.segments = append(l.segments, segment{at, at + 1000, step, kindStep})
		}
		lives = append(lives, []life{l})
	}
	got := clocksOf(lives)
	require.Len(t, got, 2)
	require.True(t, got[0].Known)
	require.InDelta(t, 1_000_001, got[0].OffsetNS, 1)
	require.Equal(t, "odd", got[1].Host)
	require.False(t, got[1].Known)
}

func TestKindsOfNames(t *testing.T) {
	for name, want := range map[string]kind{
		"megatron.train.iteration": kindStep, "nv.dl.training.iteration": kindStep, "megatron.train_step": kindStep, "rl.grpo.step": kindStep,
		"megatron.train": kindLoop, "nv.dl.training.iter_block": kindLoop,
		"megatron.startup": kindStartup, "megatron.startup.imports": kindStartup, "nv.dl.training.startup.python": kindStartup, "pre_startup": kindStartup,
		"megatron.checkpoint.load": kindLoad, "megatron.checkpoint.load.io_read": kindLoad, "nv.dl.training.checkpoint.load": kindLoad,
		"megatron.checkpoint.exposed_save": kindSave, "megatron.checkpoint.save.io_write": kindSave, "nv.mlm.checkpoint.exit_finalize": kindSave, "megatron.save_checkpoint": kindSave,
		"megatron.checkpoint.ft_heartbeat": kindUmbrella, "megatron.evaluate": kindEvaluate, "nv.dl.training.evaluate.step": kindEvaluate,
		"megatron.p2p.recv_forward": kindWait, "nv.mcore.grad_sync.finish": kindWait, "nvrx.checkpoint.save.write": kindAsyncSave, "nv.nvrx.ckpt.save.write": kindAsyncSave,
		"nvrx.restart.rendezvous": kindOrchestration, "nv.nvrx.ftl.cycle": kindUmbrella, "slurm.phase.queued": kindQueue, "slurm.job_setup": kindAllocation,
		"rl.grpo.save_checkpoint": kindSave, "rl.sft.evaluate": kindEvaluate, "rl.grpo.collect_rollouts": kindProductive, "rl.idle.refit_bubble": kindIdle, "rl.vllm.load_model": kindStartup,
		"gym.startup.server": kindStartup, "gym.rollout": kindProductive,
		"POST /run": kindNone, "rl.": kindNone, "rl.x": kindNone, "megatron.checkpoint": kindNone, "": kindNone,
	} {
		got, _ := kindOfName(name)
		require.Equal(t, want, got, name)
	}
}

func TestSecretsDoNotReachTheReport(t *testing.T) {
	span := ptrace.NewSpan()
	span.SetName("x")
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage("401 for hf_" + strings.Repeat("aB3dE6gH", 5) + " from the hub")
	l := errorList{}
	l.span(span, tell(span), nil)
	require.Equal(t, "401 for [REDACTED] from the hub", l.list()[0].Message)
}

func TestErrorsBeyondTheRoomAreCountedTogether(t *testing.T) {
	l := errorList{}
	for i := range 3 * maxNames {
		l.add(errorKey{"span", fmt.Sprint(i), ""}, strings.Repeat("é", 500), int64(i+1), nil)
	}
	list := l.list()
	require.Len(t, list, maxNames+1)
	require.EqualValues(t, 2*maxNames, list[0].Count)
	for _, e := range list {
		require.LessOrEqual(t, len(e.Message), maxText+2)
	}
}

func TestDuration(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0s", -1: "0s", 1: "0.0µs", 162_000: "162.0µs", 49_996_400: "50.0ms", 1_150_200_000: "1.150s", 59_999_900_000: "60.000s",
		516_450_000_000: "8m36.5s", 3_599_990_000_000: "60m00.0s", 11_112_000_000_000: "3h05m12s",
	} {
		require.Equal(t, want, Duration(ns))
	}
	for seconds, want := range map[float64]string{0: "0s", 10: "10s", 0.25: "250ms", 120: "2m", 90: "1m30s", 3600: "1h", 5400: "1h30m", 36000: "10h", 72000: "20h"} {
		require.Equal(t, want, tickLabel(seconds))
	}
}
