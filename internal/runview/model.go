// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview // import "github.com/lenscol/lenscol/internal/runview"

import (
	"strings"
	"sync"
	"time"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/sdk/rank"
)

// The bounds of a model. A rank takes about 1.4 KB: 14 MB for 10,000 ranks, 110 MB at most.
const (
	maxRuns     = 64
	maxRanks    = 65_536 // of all runs; a service without ranks counts as one
	maxServices = 64     // of a run
)

// establishedFor is how long what was seen is safe from newcomers. Where there is no room, the longest silent gives way;
// where none is silent, the newcomer is not taken. So no sender drives out what others still send.
const establishedFor = time.Minute

// Model is what the collector has seen of the runs. It is safe for concurrent use.
type Model struct {
	now      func() time.Time
	maxRanks int

	mu      sync.Mutex
	runs    map[string]*run
	seen    list // all entries
	ranks   int
	left    Left
	changes uint64
}

type run struct {
	id          string
	first, last int64 // Unix time in nanoseconds, by the collector's clock, as all times here
	entries     map[place]*entry
	services    map[string]int // number of entries
	droppedBy   []DroppedBy    // as many as there are strategies in the config
}

// place is where an entry stands in its run.
type place struct {
	service string
	rank    int // rank.Unknown for all resources of the service that have none
}

// entry is one rank, or a service without ranks.
type entry struct {
	run *run // nil once it is evicted
	place
	host, node           string
	localRank, worldSize int
	last                 int64
	older, newer         *entry // in Model.seen
	owners               [ranks.Signals]owner
	Items
	steps
}

// New makes an empty model.
func New() *Model { return &Model{now: time.Now, maxRanks: maxRanks, runs: map[string]*run{}} }

// Apply takes what a feed reports. Items count as seen now.
func (m *Model) Apply(f Feed, r *Report) {
	now := m.now().UnixNano()
	steps := r.steps
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range r.seen {
		s := &r.seen[i]
		e := m.find(s.source, now)
		if e != nil {
			e.update(f, s, steps[:s.steps], now)
		}
		steps = steps[s.steps:]
	}
	m.changes++
}

// find returns the entry of a source, a new one where it has none, or nil where there is no room, or nothing to show: it
// has neither run nor rank.
func (m *Model) find(s *Source, now int64) *entry {
	if s.run == "" {
		return nil
	}
	e := s.entry
	if e == nil || e.run == nil {
		r := m.runs[s.run]
		if r == nil {
			if r = m.addRun(s.run, now); r == nil {
				m.left.RefusedRuns++
				return nil
			}
		}
		at := place{s.service, s.rank}
		if e = r.entries[at]; e == nil {
			if e = m.addEntry(r, at, now); e == nil {
				m.left.RefusedRanks++
				return nil
			}
		}
		s.entry = e
	}
	e.last, e.run.last = now, now
	m.seen.moveToFront(e)
	e.describe(s)
	return e
}

func (m *Model) addRun(id string, now int64) *run {
	if len(m.runs) >= maxRuns {
		var oldest *run
		for _, r := range m.runs {
			if oldest == nil || r.last < oldest.last {
				oldest = r
			}
		}
		if now-oldest.last < int64(establishedFor) {
			return nil
		}
		for _, e := range oldest.entries {
			m.evict(e)
		}
		m.left.EvictedRuns++
	}
	r := &run{id: strings.Clone(id), first: now, last: now, entries: map[place]*entry{}, services: map[string]int{}}
	m.runs[r.id] = r
	return r
}

func (m *Model) addEntry(r *run, at place, now int64) *entry {
	if r.services[at.service] == 0 && len(r.services) >= maxServices {
		return nil
	}
	if m.ranks >= m.maxRanks {
		oldest := m.seen.back
		if now-oldest.last < int64(establishedFor) {
			m.dropIfEmpty(r)
			return nil
		}
		m.evict(oldest)
		m.left.EvictedRanks++
		m.runs[r.id] = r // Its last rank may have been the one.
	}
	at.service = strings.Clone(at.service)
	e := &entry{run: r, place: at, localRank: rank.Unknown, worldSize: rank.Unknown}
	r.entries[at] = e
	r.services[at.service]++
	m.ranks++
	return e
}

// evict forgets an entry, and its run with the last one.
func (m *Model) evict(e *entry) {
	r := e.run
	delete(r.entries, e.place)
	if r.services[e.service]--; r.services[e.service] == 0 {
		delete(r.services, e.service)
	}
	m.seen.remove(e)
	m.ranks--
	e.run, e.steps = nil, steps{} // Sources may still point to it.
	m.dropIfEmpty(r)
}

func (m *Model) dropIfEmpty(r *run) {
	if len(r.entries) == 0 {
		delete(m.runs, r.id)
	}
}

// describe takes over what the source says of itself; a restart may have put the rank elsewhere.
func (e *entry) describe(s *Source) {
	if s.host != "" && s.host != e.host {
		e.host = strings.Clone(s.host)
	}
	if s.node != "" && s.node != e.node {
		e.node = strings.Clone(s.node)
	}
	if s.localRank != rank.Unknown {
		e.localRank = s.localRank
	}
	if s.worldSize != rank.Unknown {
		e.worldSize = s.worldSize
	}
}

func (r *run) dropped(strategy string, items int64) {
	for i := range r.droppedBy {
		if r.droppedBy[i].Strategy == strategy {
			r.droppedBy[i].Items += items
			return
		}
	}
	r.droppedBy = append(r.droppedBy, DroppedBy{strategy, items})
}

func (e *entry) update(f Feed, s *seen, done []Step, now int64) {
	dropped := s.strategy != ""
	if dropped {
		e.Dropped += int64(s.items)
		e.run.dropped(s.strategy, int64(s.items))
	}
	if dropped || e.owners[f.signal].counts(f, now) {
		switch f.signal {
		case ranks.Traces:
			e.Spans += int64(s.items)
		case ranks.Metrics:
			e.Points += int64(s.items)
		case ranks.Logs:
			e.Records += int64(s.items)
		}
		e.Errors += int64(s.errors)
	}
	for _, step := range done {
		e.done(step, now)
	}
}

// list has all entries, the one seen last in front.
type list struct{ front, back *entry }

func (l *list) moveToFront(e *entry) {
	if l.front == e {
		return
	}
	l.remove(e)
	e.older = l.front
	if l.front != nil {
		l.front.newer = e
	}
	l.front = e
	if l.back == nil {
		l.back = e
	}
}

// remove takes an entry out that is in the list, or in none.
func (l *list) remove(e *entry) {
	if e.newer != nil {
		e.newer.older = e.older
	} else if l.front == e {
		l.front = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else if l.back == e {
		l.back = e.newer
	}
	e.older, e.newer = nil, nil
}
