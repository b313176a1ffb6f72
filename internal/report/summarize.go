// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/lenscol/lenscol/internal/archive"
)

// Summary is what was added. The Collector takes nothing more afterwards.
func (c *Collector) Summary() Summary {
	s := Summary{Version: 1, Counts: c.counts, GapNS: int64(c.opts.Gap), Left: c.left, Runs: []Run{}}
	for _, r := range c.runs {
		if r.counts.Spans > 0 {
			s.Runs = append(s.Runs, c.summarize(r))
		}
	}
	slices.SortFunc(s.Runs, func(a, b Run) int { return cmp.Or(cmp.Compare(a.BeginNS, b.BeginNS), cmp.Compare(a.Run, b.Run)) })
	return s
}

// summarize works out one run.
func (c *Collector) summarize(r *run) Run {
	members := slices.SortedFunc(maps.Values(r.members), func(a, b *member) int { return a.compare(b.memberKey) })
	lives := make([][]life, len(members))
	for i, m := range members {
		lives[i] = m.lives()
	}
	hasSteps := slices.ContainsFunc(members, func(m *member) bool { return m.steps.count() > 0 })
	align(lives, hasSteps)
	r.outer.flatten()
	s := Run{Run: r.id, WorldSize: r.worldSize, Counts: r.counts, Formula: Formula, Clocks: clocksOf(lives), AsyncSpans: r.asyncSaves,
		Services: append([]string{}, slices.Sorted(maps.Keys(r.services))...), PerRank: []Rank{}, Notes: []string{}}
	offset := s.offsets()
	var places map[attemptKey]int
	s.Attempts, places = attempts(lives, offset)
	r.slurm.name(s.Attempts)
	s.BeginNS, s.EndNS = r.wall(s.Attempts, offset)
	s.WallNS = s.EndNS - s.BeginNS

	a := newAccountant(s.BeginNS, s.EndNS)
	a.outer, a.attempts, a.places, a.offset, a.gap = r.outer.segments, s.Attempts, places, offset, int64(c.opts.Gap)
	for i, m := range members {
		if !m.undrawn && (m.steps.count() > 0 || !hasSteps) && len(lives[i]) > 0 {
			a.add(m, lives[i], m.steps.quantile(pace))
		}
	}
	s.Accounted = int(a.ranks)
	if a.ranks == 0 { // SLURM alone knows of it.
		a.add(newMember(memberKey{}), nil, 0)
	}
	s.Buckets = a.buckets()
	s.Goodput, s.TimeLine = goodputOf(s.Buckets, s.WallNS), a.chart.timeLine(a.ranks)
	s.Gaps = joinGaps(a.gaps)
	s.ErrorBound = s.errorBound()
	s.rankFigures(members, c.opts.Slowest)
	s.StepTimes, s.Errors, s.Unknown = r.series.list(), r.errors.list(), r.unknown.list()
	s.longestGaps()
	s.notes(r, hasSteps)
	return s
}

// pace is the quantile of a rank's step times that a step is taken to need. NeMo Lens's report takes the fastest step, which one
// odd step decides.
const pace = 0.05

// offsets are what to take off the times of a node.
func (s *Run) offsets() func(host string) int64 {
	known := map[string]int64{}
	for _, c := range s.Clocks {
		if c.Known {
			known[c.Host] = c.OffsetNS
		}
	}
	return func(host string) int64 { return known[host] }
}

// errorBound is by how much the ends of a rank's time may be misplaced against the wall time.
func (s *Run) errorBound() int64 {
	bound := int64(0)
	for _, c := range s.Clocks {
		if c.Known {
			bound = max(bound, 2*c.Residual)
		}
	}
	return bound
}

// wall is when the run began and ended: its ranks, its other processes, and its job as far as SLURM's accounting is there.
func (r *run) wall(attempts []Attempt, offset func(string) int64) (begin, end int64) {
	extend := func(from, to int64) {
		if begin == 0 || from < begin {
			begin = from
		}
		end = max(end, to)
	}
	for _, a := range attempts {
		extend(a.BeginNS, a.EndNS)
	}
	for _, m := range r.members {
		for _, s := range m.sessions {
			if s.end > 0 {
				extend(s.begin-offset(s.host), s.end-offset(s.host))
			}
		}
	}
	for host, e := range r.others {
		extend(e[0]-offset(host), e[1]-offset(host))
	}
	if n := len(r.outer.segments); n > 0 {
		extend(r.outer.segments[0].from, r.outer.segments[n-1].to)
	}
	return begin, max(begin, end)
}

// rankFigures fills in what the ranks say of themselves.
func (s *Run) rankFigures(members []*member, slowest int) {
	all, there := newSketch(), []int{}
	var paces []int64
	s.Steps.First, s.Steps.Last = -1, -1
	s.Steps.ByWork = len(members) > 0
	for _, m := range members {
		there = append(there, m.rank)
		all.merge(m.steps)
		s.Steps.Skipped = max(s.Steps.Skipped, m.skipped)
		if m.steps.count() > 0 {
			s.Steps.Error = max(s.Steps.Error, m.steps.relativeError())
			paces = append(paces, m.steps.quantile(pace))
			s.Steps.ByWork = s.Steps.ByWork && m.wait > 0
		}
		s.PerRank = append(s.PerRank, m.figures())
	}
	s.Steps.Times, s.Steps.PaceNS = all.quantiles(), median(paces)
	s.Steps.Error = max(s.Steps.Error, all.relativeError())
	s.Steps.ByWork = s.Steps.ByWork && len(paces) > 0
	for _, a := range s.Attempts {
		s.Steps.Kept += a.Steps - a.LostSteps
		s.Steps.Lost += a.LostSteps
		if a.FirstStep >= 0 && (s.Steps.First < 0 || a.FirstStep < s.Steps.First) {
			s.Steps.First = a.FirstStep
		}
		s.Steps.Last = max(s.Steps.Last, a.LastStep)
	}
	slices.Sort(there)
	there = slices.Compact(there)
	s.Ranks = archive.RankList(there)
	s.Missing = missing(there, s.WorldSize)
	s.Checkpoints = occasionsOf(members, func(m *member) occasion { return m.saves.whole() })
	s.Loads = occasionsOf(members, func(m *member) occasion { return m.loads.whole() })
	s.Evaluations = occasionsOf(members, func(m *member) occasion { return m.evals.whole() })
	s.Slowest = s.slowest(slowest)
}

func (m *member) figures() Rank {
	r := Rank{Service: m.service, Rank: m.rank, Spans: m.spans, Errors: m.errors, Steps: m.steps.quantiles(), Skipped: m.skipped}
	for _, session := range m.sessions {
		if session.end == 0 { // It sent no spans.
			continue
		}
		if r.BeginNS == 0 || session.begin < r.BeginNS {
			r.BeginNS = session.begin
		}
		if session.end > r.EndNS {
			r.EndNS, r.Host = session.end, cmp.Or(session.host, r.Host)
		}
	}
	if n := m.steps.count(); n > 0 {
		r.WaitNS = m.wait / n
		r.WorkNS = max(r.Steps.Mean-r.WaitNS, 0)
	}
	return r
}

// slowest compares the ranks that have steps.
func (s *Run) slowest(n int) []Slow {
	list, values := []Slow{}, []int64{}
	for _, r := range s.PerRank {
		if r.Steps.Count == 0 {
			continue
		}
		ns := r.Steps.P50
		if s.Steps.ByWork {
			ns = r.WorkNS
		}
		list = append(list, Slow{Service: r.Service, Rank: r.Rank, Host: r.Host, NS: ns})
		values = append(values, ns)
	}
	middle := median(values)
	for i, v := range values {
		values[i] = max(v-middle, middle-v)
	}
	deviation := median(values)
	for i := range list {
		over := list[i].NS - middle
		list[i].Over = ratio(float64(over), float64(middle))
		list[i].Stands = over > 4*deviation && list[i].Over > 0.05 && len(list) > 2
	}
	slices.SortStableFunc(list, func(a, b Slow) int { return cmp.Compare(b.NS, a.NS) })
	return list[:min(n, len(list))]
}

// median sorts, and returns the median; 0 of none.
func median(values []int64) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// occasionsOf joins what ranks do together.
func occasionsOf(members []*member, of func(*member) occasion) Occasions {
	var o Occasions
	n, total, ranks := int64(0), float64(0), float64(0)
	for _, m := range members {
		one := of(m)
		if one.n == 0 {
			continue
		}
		o.Count, o.Failed, o.MaxNS = max(o.Count, one.n), max(o.Failed, one.failed), max(o.MaxNS, one.longest)
		n, total, ranks = n+one.n, total+float64(one.total), ranks+1
	}
	if n > 0 {
		o.MeanNS, o.TotalNS = int64(total/float64(n)), int64(total/ranks)
	}
	return o
}

// longestGaps leaves the maxGaps longest gaps, where there are more.
func (s *Run) longestGaps() {
	if n := len(s.Gaps); n > maxGaps {
		slices.SortStableFunc(s.Gaps, func(a, b Gap) int { return cmp.Compare(b.Lasting(), a.Lasting()) })
		s.Gaps = s.Gaps[:maxGaps]
		s.Notes = append(s.Notes, fmt.Sprintf("of %d gaps these are the %d longest, the longest first", n, maxGaps))
	}
}

const maxGaps = 1000

// joinGaps joins those of several ranks that overlap.
func joinGaps(gaps []gap) []Gap {
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.rank, b.rank)) })
	list, ranks := []Gap{}, map[int]struct{}{}
	for i, g := range gaps {
		n := len(list)
		if i == 0 || g.from >= list[n-1].ToNS || g.silent != list[n-1].Silent {
			list, n = append(list, Gap{FromNS: g.from, ToNS: g.to, Silent: g.silent}), n+1
			clear(ranks)
		}
		ranks[g.rank] = struct{}{}
		list[n-1].ToNS = max(list[n-1].ToNS, g.to)
		if i+1 == len(gaps) || gaps[i+1].from >= list[n-1].ToNS || gaps[i+1].silent != g.silent {
			list[n-1].Ranks = archive.RankList(slices.Sorted(maps.Keys(ranks)))
		}
	}
	return list
}

func missing(there []int, world int) string {
	if len(there) == 0 || world <= 0 {
		return ""
	}
	var absent []int
	for rank, i := 0, 0; rank < min(world, 1<<20); rank++ {
		if i < len(there) && there[i] == rank {
			i++
			continue
		}
		absent = append(absent, rank)
	}
	return archive.RankList(absent)
}

func (n nameCounts) list() []Named {
	list := []Named{}
	for name, count := range n {
		list = append(list, Named{name, count})
	}
	slices.SortFunc(list, func(a, b Named) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	return list
}

// notes say what the figures rest on, where that is not plain.
func (s *Run) notes(r *run, hasSteps bool) {
	note := func(format string, args ...any) { s.Notes = append(s.Notes, fmt.Sprintf(format, args...)) }
	if !hasSteps && s.Accounted > 0 {
		note("there are no spans of steps: what the loop holds beside checkpoints and evaluations counts as productive, and lost work cannot be told; the span group of steps is per_step")
	}
	if drawn := len(r.members); s.Accounted < drawn && s.Accounted > 0 {
		note("the buckets are those of %d of %d ranks", s.Accounted, drawn)
	}
	var alone []string
	for _, c := range s.Clocks {
		if !c.Known {
			alone = append(alone, c.Host)
		}
	}
	switch n := len(alone); {
	case n == 1:
		note("the clock of %s could not be compared with the others: its times are taken as they are", alone[0])
	case n > 1:
		note("the clocks of %d nodes could not be compared with the others, that of %s among them: their times are taken as they are", n, alone[0])
	}
	crowded := 0
	for _, m := range r.members {
		if m.crowded {
			crowded++
		}
	}
	if crowded > 0 {
		note("the last processes of %d ranks are taken for one: there is no room for more", crowded)
	}
	if r.full {
		note("the time line has no room for all of the run: what is not in it is unobserved")
	}
	if len(s.Unknown) > 0 {
		note("spans that are tagged for goodput have names that no bucket knows: their time is in whatever they stand in")
	}
}
