// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview // import "github.com/lenscol/lenscol/internal/runview"

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lenscol/lenscol/sdk/rank"
)

// silentAfter is how long a rank says nothing until it counts as silent, unless its steps take long.
const silentAfter = time.Minute

// worst is how many ranks of a kind a run in short has.
const worst = 8

// Changes is a number that grows when something is reported.
func (m *Model) Changes() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// Runs is the answer of /api/runs.
func (m *Model) Runs() Runs {
	now := m.now()
	m.mu.Lock()
	left := m.left
	runs := slices.Collect(maps.Values(m.runs))
	m.mu.Unlock()

	out := Runs{Schema: Schema, Time: now.UTC(), Left: left, Runs: []Run{}}
	for _, r := range runs {
		out.Runs = append(out.Runs, m.look(r, now).run())
	}
	slices.SortFunc(out.Runs, func(a, b Run) int { return cmp.Or(b.LastSeen.Compare(a.LastSeen), strings.Compare(a.ID, b.ID)) })
	return out
}

// Run is the answer of /api/runs/{id}, with the times of the last so many steps, RecentSteps at most, and with the rows of
// one rank alone where that is not rank.Unknown. It is false where there is no such run.
func (m *Model) Run(id string, steps, only int) (RunDetail, bool) {
	now := m.now()
	m.mu.Lock()
	r := m.runs[id]
	m.mu.Unlock()
	if r == nil {
		return RunDetail{}, false
	}
	l := m.look(r, now)
	d := RunDetail{Schema: Schema, Time: now.UTC(), Run: l.run(), Steps: l.window(min(steps, RecentSteps))}
	m.fill(&d, l, only)
	return d, true
}

// look is a run at one moment.
type look struct {
	now         time.Time
	id          string
	first, last int64
	droppedBy   []DroppedBy // sorted
	rows        []row       // sorted by service and rank
	active      bool
	silentAfter time.Duration
	silentFrom  int64 // ranks that were seen last before that are silent
	typical     float32
	front       int64 // -1: none has a step
}

// row is an entry at one moment. Its own copy of the steps has no times.
type row struct {
	entry
	from   *entry
	median float32
	silent bool
}

// chunk is how many entries are copied at a time, so that who reports does not wait for who looks.
const chunk = 256

func (m *Model) look(r *run, now time.Time) *look {
	l := &look{now: now, id: r.id, front: -1}
	m.mu.Lock()
	l.first, l.last, l.droppedBy = r.first, r.last, slices.Clone(r.droppedBy)
	entries := slices.Collect(maps.Values(r.entries))
	m.mu.Unlock()
	slices.SortFunc(l.droppedBy, func(a, b DroppedBy) int { return strings.Compare(a.Strategy, b.Strategy) })
	// Where an entry stands never changes.
	slices.SortFunc(entries, func(a, b *entry) int {
		return cmp.Or(strings.Compare(a.service, b.service), cmp.Compare(a.rank, b.rank))
	})

	l.rows = make([]row, 0, len(entries))
	var times []float32
	var ends [chunk]int
	for part := range slices.Chunk(entries, chunk) {
		times = times[:0]
		m.mu.Lock()
		for i, e := range part {
			l.rows = append(l.rows, row{entry: *e, from: e})
			times = e.appendRecent(times)
			ends[i] = len(times)
		}
		m.mu.Unlock()
		begin := 0
		for i, rows := 0, l.rows[len(l.rows)-len(part):]; i < len(part); i++ {
			rows[i].times = nil
			rows[i].median = median(times[begin:ends[i]])
			begin = ends[i]
		}
	}
	l.judge()
	return l
}

// judge finds out who is silent and where the front is.
func (l *look) judge() {
	medians := make([]float32, 0, len(l.rows))
	for i := range l.rows {
		if t := l.rows[i].median; t > 0 {
			medians = append(medians, t)
		}
	}
	l.typical = median(medians)
	l.silentAfter = max(silentAfter, time.Duration(min(3*float64(l.typical), 1e9)*1e9))

	l.silentFrom = l.now.Add(-l.silentAfter).UnixNano()
	l.active = l.last >= l.silentFrom
	if !l.active {
		// The run has ended, and its ranks with it: silent are only those that were before. What has no rank says nothing about
		// that, for it may go on after them, or come hours later as SLURM's accounting does.
		l.silentFrom = l.lastOf(func(r *row) bool { return r.rank != rank.Unknown }) - int64(l.silentAfter)
	}
	frontFrom := l.silentFrom
	if last := l.lastOf(func(r *row) bool { return r.known }); last < frontFrom {
		frontFrom = last - int64(l.silentAfter)
	}
	for i := range l.rows {
		row := &l.rows[i]
		row.silent = row.last < l.silentFrom
		if row.known && row.last >= frontFrom {
			l.front = max(l.front, row.number)
		}
	}
}

// lastOf is when some of the rows were seen last.
func (l *look) lastOf(those func(*row) bool) (last int64) {
	for i := range l.rows {
		if row := &l.rows[i]; those(row) {
			last = max(last, row.last)
		}
	}
	return last
}

// step is the last step of a rank, and lag how far that is behind the front; -1 where they are not known.
func (l *look) step(r *row) (step, lag int64) {
	if !r.known {
		return -1, -1
	}
	if l.front < 0 {
		return r.number, -1
	}
	return r.number, max(0, l.front-r.number)
}

// window is the numbers of the last n steps up to the front.
func (l *look) window(n int) []int64 {
	steps := []int64{}
	for step := max(0, l.front-int64(n)+1); step <= l.front; step++ {
		steps = append(steps, step)
	}
	return steps
}

// run is the run in short.
func (l *look) run() Run {
	r := Run{
		ID: l.id, Active: l.active, FirstSeen: utc(l.first), LastSeen: utc(l.last), SilentAfter: l.silentAfter.Seconds(),
		Services: []Service{}, DroppedBy: append([]DroppedBy{}, l.droppedBy...), FrontStep: l.front, MaxLag: -1, StepSeconds: rounded(l.typical),
	}
	var slowest, behind, silent top
	for i := range l.rows {
		row := &l.rows[i]
		r.add(&row.entry)
		if row.rank == rank.Unknown {
			continue
		}
		r.Ranks++
		if row.silent {
			r.Silent++
			silent.add(i, -float64(row.last))
		}
		_, lag := l.step(row)
		if !row.silent {
			r.MaxLag = max(r.MaxLag, lag)
		}
		if lag > 0 && !row.silent {
			behind.add(i, float64(lag))
		}
		if row.median > 0 {
			slowest.add(i, float64(row.median))
		}
	}
	for i := range r.Services {
		r.WorldSize += r.Services[i].WorldSize
	}
	r.Slowest, r.Behind, r.SilentRanks = l.short(slowest), l.short(behind), l.short(silent)
	return r
}

// add adds an entry to its service and to the run; entries come service by service.
func (r *Run) add(e *entry) {
	last := len(r.Services) - 1
	if last < 0 || r.Services[last].Name != e.service {
		r.Services = append(r.Services, Service{Name: e.service})
		last++
	}
	s := &r.Services[last]
	if e.rank != rank.Unknown {
		s.Ranks++
		s.WorldSize = max(s.WorldSize, e.worldSize)
	}
	if seen := utc(e.last); seen.After(s.LastSeen) {
		s.LastSeen = seen
	}
	for _, items := range []*Items{&s.Items, &r.Items} {
		items.Spans += e.Spans
		items.Points += e.Points
		items.Records += e.Records
		items.Errors += e.Errors
		items.Dropped += e.Dropped
	}
}

// top has the rows with the highest scores, the highest first; of equals the first.
type top []scored

type scored struct {
	row   int
	score float64
}

func (t *top) add(row int, score float64) {
	if len(*t) == worst && (*t)[worst-1].score >= score {
		return
	}
	at, _ := slices.BinarySearchFunc(*t, score, func(s scored, score float64) int {
		if s.score >= score {
			return -1
		}
		return 1
	})
	*t = slices.Insert(*t, at, scored{row, score})
	*t = (*t)[:min(len(*t), worst)]
}

func (l *look) short(t top) []Rank {
	out := []Rank{}
	for _, s := range t {
		row := &l.rows[s.row]
		step, lag := l.step(row)
		out = append(out, Rank{
			Service: row.service, Rank: row.rank, Node: row.node, Host: row.host, LastSeen: utc(row.last), Step: step, Lag: lag,
			StepSeconds: rounded(row.seconds), StepSecondsMedian: rounded(row.median),
		})
	}
	return out
}

func utc(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }

// rounded is a number of seconds in the digits that are shown: four, below a tenth of a second to 0.1 µs.
func rounded(seconds float32) float32 {
	digits := 1e7
	for _, step := range [...]struct {
		from   float32
		digits float64
	}{{1000, 1}, {100, 10}, {10, 100}, {1, 1e3}, {0.1, 1e4}} {
		if seconds >= step.from {
			digits = step.digits
			break
		}
	}
	return float32(math.Round(float64(seconds)*digits) / digits)
}
