// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"container/heap"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// A lane is a track on which slices nest: every slice ends before, or with, the one that it began in. Perfetto's importer demands that
// of a track, and draws what lies within another slice below it, as what that one called.
//
// A span goes below its parent where the parent is the innermost open slice of its lane and outlasts it. Otherwise, a sibling runs
// beside it, or it outlives its parent, or its parent is not there, it goes to the first lane on which nothing is open. So nothing is
// ever drawn below what is not its ancestor.
type lane struct {
	track *track
	index int
	stack []*openSpan
	last  int64 // the time of what was drawn last
}

// openSpan is a slice that was begun and not ended.
type openSpan struct {
	id    pcommon.SpanID
	lane  *lane
	end   int64
	depth int
}

// place finds the lane for a span of p from at to end. What ends before it must have been drawn (advance).
func (t *Trace) place(p *process, parent pcommon.SpanID, at, end int64) *lane {
	if above, ok := p.open[parent]; ok && !parent.IsEmpty() {
		l := above.lane
		if l.stack[len(l.stack)-1] == above && end <= above.end && l.last <= at {
			return l
		}
	}
	var passed []int
	var found *lane
	for len(p.free) > 0 && found == nil {
		i := heap.Pop(&p.free).(int)
		if p.lanes[i].last <= at {
			found = p.lanes[i]
		} else { // Of a process that moved to a node with another clock.
			passed = append(passed, i)
		}
	}
	for _, i := range passed {
		heap.Push(&p.free, i)
	}
	if found == nil {
		found = t.newLane(p)
	}
	return found
}

func (t *Trace) newLane(p *process) *lane {
	l := &lane{index: len(p.lanes)}
	l.track = t.newTrack(trackLane, p)
	l.track.rank = int32(l.index)
	if l.track.name = "spans"; l.index > 0 {
		l.track.name = fmt.Sprintf("spans, lane %d", l.index+1)
	} else {
		l.track.id = uint64(p.pid) // Its main thread has the number of the process.
	}
	p.lanes = append(p.lanes, l)
	t.out.lane(l.track)
	return l
}

// begin opens a slice.
func (p *process) begin(l *lane, id pcommon.SpanID, at, end int64) {
	s := &openSpan{id: id, lane: l, end: end, depth: len(l.stack)}
	l.stack = append(l.stack, s)
	l.last = at
	if !id.IsEmpty() {
		p.open[id] = s
	}
	heap.Push(&p.pending, due{at: end, span: s, depth: s.depth, number: p.pending.next()})
}

// advance draws what ends, and what happens, up to a time.
func (t *Trace) advance(p *process, until int64) {
	for p.pending.Len() > 0 && p.pending.all[0].at <= until {
		d := heap.Pop(&p.pending).(due)
		l := d.span.lane
		l.last = max(l.last, d.at)
		if d.event != nil {
			t.out.instant(l.track, l.last, d.event)
			continue
		}
		l.stack = l.stack[:len(l.stack)-1]
		if p.open[d.span.id] == d.span {
			delete(p.open, d.span.id)
		}
		if len(l.stack) == 0 {
			heap.Push(&p.free, l.index)
		}
		t.out.end(l.track, l.last)
	}
	p.now = max(p.now, until)
}

// due is the end of a slice, or an event of it.
type due struct {
	at     int64
	span   *openSpan
	event  *slice // nil: the end
	depth  int
	number uint64 // of coming
}

// pending orders what is due by time; of one time events before ends, the end of an inner slice before that of an outer one.
type pending struct {
	all   []due
	count uint64
}

func (p *pending) next() uint64 { p.count++; return p.count }

func (p *pending) Len() int { return len(p.all) }
func (p *pending) Less(i, j int) bool {
	a, b := &p.all[i], &p.all[j]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case (a.event != nil) != (b.event != nil):
		return a.event != nil
	case a.event == nil && a.depth != b.depth:
		return a.depth > b.depth
	}
	return a.number < b.number
}
func (p *pending) Swap(i, j int) { p.all[i], p.all[j] = p.all[j], p.all[i] }
func (p *pending) Push(x any)    { p.all = append(p.all, x.(due)) }
func (p *pending) Pop() any {
	d := p.all[len(p.all)-1]
	p.all[len(p.all)-1] = due{}
	p.all = p.all[:len(p.all)-1]
	return d
}

// freeLanes are the numbers of lanes on which nothing is open, the lowest first.
type freeLanes []int

func (f freeLanes) Len() int           { return len(f) }
func (f freeLanes) Less(i, j int) bool { return f[i] < f[j] }
func (f freeLanes) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *freeLanes) Push(x any)        { *f = append(*f, x.(int)) }
func (f *freeLanes) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}
