// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview // import "github.com/lenscol/lenscol/internal/runview"

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/lenscol/lenscol/internal/ranks"
)

// Report is what one request or batch of a signal shows. It is for one goroutine, and says nothing before Model.Apply.
type Report struct {
	seen  []seen
	steps []Step
	taken int // how many of steps belong to one of seen
}

// seen is one resource of it.
type seen struct {
	source        *Source
	items, errors int
	strategy      string // that dropped it; "" where it goes on
	steps         int    // how many of Report.steps are its
}

var reports = sync.Pool{New: func() any { return new(Report) }}

// NewReport is an empty report. It goes back with Release.
func NewReport() *Report { return reports.Get().(*Report) }

// Release forgets what the report says, and takes it back.
func (r *Report) Release() {
	const maxKept = 1 << 12 // elements
	if cap(r.seen) > maxKept || cap(r.steps) > maxKept {
		return
	}
	clear(r.seen)
	r.seen, r.steps, r.taken = r.seen[:0], r.steps[:0], 0
	reports.Put(r)
}

// Step adds a step to the resource that is added next.
func (r *Report) Step(s Step) { r.steps = append(r.steps, s) }

// AddDropped adds a resource of which so many items were dropped by a strategy, or for want of what it needs.
func (r *Report) AddDropped(source *Source, items, errors int, strategy string) {
	r.add(source, items, errors, strategy)
}

func (r *Report) add(source *Source, items, errors int, strategy string) {
	r.seen = append(r.seen, seen{source, items, errors, strategy, len(r.steps) - r.taken})
	r.taken = len(r.steps)
}

// Feed is one of those who report. Where the same telemetry goes through several, in pipelines that share a receiver, it
// counts once: a rank's items of a signal are counted by the feed that came first, as long as that goes on.
type Feed struct {
	id     uint32
	signal ranks.Signal
}

var (
	feeds   atomic.Uint32 // the last id
	retired atomic.Uint32 // the last id of those that are gone
)

// NewFeed is a feed of a signal.
func NewFeed(signal ranks.Signal) Feed { return Feed{feeds.Add(1), signal} }

// handover is how long the feed that counts a rank's items may say nothing until another takes its place.
const handover = time.Minute

// owner is the feed that counts a rank's items of a signal.
type owner struct {
	feed uint32
	last int64 // when it reported last, Unix time in nanoseconds
}

// counts reports whether the feed's items count.
func (o *owner) counts(f Feed, now int64) bool {
	if o.feed != f.id && o.feed > retired.Load() && now-o.last < int64(handover) {
		return false
	}
	o.feed, o.last = f.id, now
	return true
}
