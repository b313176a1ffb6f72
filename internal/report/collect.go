// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
	"github.com/lenscol/lenscol/internal/archive"
	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// The bounds of a Collector: 64 MB of time lines and, with 16,384 ranks, as much again for all else. What is left out is counted, and the Summary
// says so.
const (
	maxRuns      = 256
	maxMembers   = 1 << 14 // of all runs
	maxSegments  = 1 << 21 // of all time lines, 32 bytes each
	maxSessions  = 1 << 20 // of all ranks, maxLives of one
	maxHosts     = 1 << 14 // of a run, without ranks
	maxNames     = 100     // of errors, of unknown spans: of a run
	maxText      = 200     // bytes of a name, an id, a message
	maxResources = 1 << 12 // that are remembered at once
)

// Options say what goes into a report.
type Options struct {
	Gap     time.Duration // a time without a span from which on it is a gap
	Slowest int           // ranks that are named
}

// Collector takes records. It is for one goroutine.
type Collector struct {
	opts     Options
	runs     map[string]*run
	sources  map[*jsonlreader.Resource]source
	members  int
	sessions int
	segments int
	room     int // segments that there may be
	left     Left
	counts   Counts
}

// Counts are records that were taken.
type Counts struct {
	Spans  int64 `json:"spans"`
	Points int64 `json:"points"`
	Logs   int64 `json:"logs"`
}

// Left is what found no room. All zero: the report is whole.
type Left struct {
	Records   int64 `json:"records"`    // of runs and ranks beyond what is kept apart
	TimeLines int64 `json:"time_lines"` // ranks whose time is not in the buckets; their steps are in all other figures
	Segments  int64 `json:"segments"`   // stretches of time of the last time line of a run
}

// source is whose a resource is.
type source struct {
	run     *run // nil where there is no room
	member  *member
	session *session
	host    string
	worker  bool // a process that writes checkpoints beside the rank
}

// NewCollector makes an empty one.
func NewCollector(opts Options) *Collector {
	return &Collector{opts: opts, room: maxSegments, runs: map[string]*run{}, sources: map[*jsonlreader.Resource]source{}}
}

// Add takes a record. The order of records does not matter, but for which ranks' time lines are kept where not all can be.
func (c *Collector) Add(rec archive.Record) {
	src := c.source(rec.Scope.Resource)
	if src.run == nil {
		c.left.Records++
		return
	}
	switch rec.Signal {
	case pipeline.SignalTraces:
		c.counts.Spans++
		c.span(src, rec)
	case pipeline.SignalMetrics:
		c.counts.Points++
		src.run.counts.Points++
	default:
		c.counts.Logs++
		src.run.counts.Logs++
		src.run.errors.log(rec.Log, src.member)
	}
}

// source finds or makes whose a resource is.
func (c *Collector) source(resource *jsonlreader.Resource) source {
	s, ok := c.sources[resource]
	if !ok {
		if len(c.sources) >= maxResources {
			clear(c.sources)
		}
		s = c.newSource(resource.Attributes())
		c.sources[resource] = s
	}
	return s
}

func (c *Collector) newSource(attrs pcommon.Map) source {
	id := clip(identity.Run(attrs))
	r := c.runs[id]
	if r == nil {
		if len(c.runs) >= maxRuns {
			return source{}
		}
		r = newRun(id)
		c.runs[id] = r
	}
	s := source{run: r, host: clip(text(attrs, semconv.HostName)), worker: text(attrs, semconv.DLRole) == "ckpt_worker"}
	service := identity.Service(attrs)
	if service != "" {
		r.services.add(service)
	}
	who := identity.Of(attrs)
	r.worldSize = max(r.worldSize, who.WorldSize)
	if !who.HasRank {
		return s
	}
	key := memberKey{clip(service), who.Rank}
	m := r.members[key]
	if m == nil {
		if c.members >= maxMembers {
			return source{}
		}
		c.members++
		m = newMember(key)
		r.members[key] = m
	}
	s.member = m
	if !s.worker {
		before := len(m.sessions)
		s.session = m.session(attrs, s.host, c.sessions < maxSessions)
		c.sessions += len(m.sessions) - before
	}
	return s
}

// span takes a span into the figures of its rank, and where it says what time was spent on, into its time line.
func (c *Collector) span(src source, rec archive.Record) {
	t := tell(rec.Span)
	r := src.run
	r.counts.Spans++
	r.errors.span(rec.Span, t, src.member)
	if t.unknown {
		r.unknown.add(rec.Span.Name())
	}
	if src.worker && t.kind != kindNone {
		t.kind = kindAsyncSave
	}
	if t.kind == kindAsyncSave {
		r.asyncSaves++
	}
	if t.from == 0 { // It never began.
		return
	}
	r.slurm.take(rec.Span, t)
	if t.kind.ofRun() {
		if !t.infra {
			c.draw(r, nil, &r.outer, segment{t.from, t.to, noStep, t.kind})
		}
		return
	}
	m := src.member
	if m == nil || src.session == nil {
		r.others.extend(src.host, t)
		return
	}
	src.session.extend(t)
	m.take(t)
	if t.kind == kindStep && !t.torn() {
		r.series.add(t.step, t.to-t.from)
	}
	if t.kind.onTimeLine() && !m.undrawn {
		c.draw(r, m, &src.session.line, t.segment())
	}
}

// torn reports whether a step did not come to its end.
func (t told) torn() bool { return t.kind == kindStep && (t.failed || t.truncated) }

// segment is the span on a time line. A save that was made whole has a step, 0 where it does not say which.
func (t told) segment() segment {
	s := segment{t.from, t.to, noStep, t.kind}
	switch {
	case t.torn():
		s.kind, s.step = kindTorn, t.step
	case t.kind == kindStep:
		s.step = t.step
	case t.kind == kindSave && t.level > levelPart && !t.failed && !t.truncated:
		s.step = max(t.step, 0)
	}
	return s
}

// draw puts a segment on a time line of a run, that of a process of m or, with m nil, the run's own.
func (c *Collector) draw(r *run, m *member, line *timeline, s segment) {
	if r.full {
		c.left.Segments++
		return
	}
	grown := line.add(s)
	if m != nil {
		m.segments += grown
	}
	r.segments += grown
	c.segments += grown
	for c.segments > c.room && c.makeRoom() {
	}
}

// makeRoom has the largest run give up the time line of its highest rank. The last one stays, but grows no more.
func (c *Collector) makeRoom() bool {
	var largest *run
	for _, r := range c.runs {
		if !r.full && (largest == nil || r.segments > largest.segments) {
			largest = r
		}
	}
	if largest == nil {
		return false
	}
	freed, ok := largest.giveUp()
	if !ok {
		largest.full = true
		return true
	}
	c.segments -= freed
	c.left.TimeLines++
	return true
}

// clip bounds a text, and makes it one that can be printed.
func clip(s string) string {
	if len(s) > maxText {
		s = s[:maxText-3] + "..."
	}
	return strings.ToValidUTF8(strings.Clone(s), "\uFFFD")
}

func text(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok {
		return v.AsString()
	}
	return ""
}
