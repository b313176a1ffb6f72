// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package perfetto draws a run: it turns the records of an archive into a trace that https://ui.perfetto.dev opens, as Perfetto's own
// protobuf or as Chrome's JSON.
//
// Every rank is a process. Its spans lie on lanes, threads of that process, so that a slice always lies within the one that it is
// drawn below (lanes.go); links are flows (flows.go), metric points counters (counters.go), events and log records instants. Clocks
// of nodes are corrected by the ends of what ends on all ranks at once (clocks.go, internal/clocks).
//
// Memory is bounded by the number of ranks, of nodes and of spans that are open at one time, never by the length of the run: Add
// sorts the records on disk and learns what must be known beforehand, Write draws them in the order of time.
package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/internal/archive"
)

// Options say how a trace is drawn.
type Options struct {
	JSON       bool     // Chrome's trace events in place of Perfetto's protobuf
	RawClocks  bool     // clock offsets are estimated and noted, but not corrected
	ClockSpans []string // globs of names of spans that end on all ranks at once; none: the iterations of Megatron
	SortMemory int64    // bytes that sorting holds; 0: DefaultSortMemory
	SortFolder string   // of what it does not; "": the system's temporary folder

	// Progress is told how many of the records are drawn. May be nil.
	Progress func(done, total int64)
}

const (
	// DefaultSortMemory lets drawing 1,024 ranks take about 60 MB in all, beside what a large binary takes for itself.
	DefaultSortMemory = 4 << 20
	maxSortMemory     = 1 << 30 // places of items are 32 bits wide
)

// ErrNothing says that there was no record to draw.
var ErrNothing = errors.New("there is nothing to draw: no span, metric point or log record was read, or the filter kept none")

// Summary is what a trace holds.
type Summary struct {
	Ranks, Processes, Nodes int // processes: the ranks and what has no rank
	Spans, Lanes            int64
	Open, Truncated         int64 // spans that never ended, and those that were cut off
	Flows                   int64 // links whose both ends are in the trace
	Counters, Points        int64
	Events, Logs            int64
	Timeless                int64 // records without any time, which are left out
	Unnumbered              int64 // points that are no finite number, or have no sum, which are left out
	Crowded                 int64 // links and points beyond what is kept apart (maxTargets, maxSeries), which are left out
	Clocks                  Clocks
}

// Trace makes one trace.
type Trace struct {
	opts    Options
	sources sources
	clocks  stepEnds
	flows   flows
	sorter  sorter
	encoded []byte
	added   int64
	drawn   int64
	summary Summary

	out    sink
	series map[string]*series
	tracks uint64 // given so far
	args   []arg  // of the slice in hand
}

// New begins a trace.
func New(opts Options) *Trace {
	if opts.SortMemory <= 0 {
		opts.SortMemory = DefaultSortMemory
	}
	return &Trace{
		opts: opts, sources: newSources(), clocks: newStepEnds(opts.ClockSpans), flows: flows{targets: map[uint64]target{}},
		sorter: sorter{memory: int(min(opts.SortMemory, maxSortMemory)), folder: opts.SortFolder}, series: map[string]*series{},
	}
}

// Close removes what was put aside.
func (t *Trace) Close() error { return t.sorter.close() }

// Add takes a record, which must not be used afterwards.
func (t *Trace) Add(rec archive.Record) error {
	if rec.Signal == pipeline.SignalTraces && rec.Span.StartTimestamp() == 0 {
		rec.Span.SetStartTimestamp(rec.Span.EndTimestamp())
	}
	at, end := nanoseconds(rec.Time()), nanoseconds(rec.End())
	if at == 0 {
		t.summary.Timeless++
		return nil
	}
	source, scope := t.sources.of(rec.Scope)
	src := t.sources.all[source]
	src.saw(at, end)
	if rec.Signal == pipeline.SignalTraces {
		t.clocks.add(src, rec.Span)
		for _, link := range rec.Span.Links().All() {
			t.flows.add(link)
		}
	}
	t.added++
	var err error
	if t.encoded, err = encode(t.encoded[:0], rec, source, scope); err != nil {
		return fmt.Errorf("sort: %w", err)
	}
	return t.sorter.add(at, t.encoded)
}

// Write writes the trace of all that was added. It can be called once.
func (t *Trace) Write(w io.Writer) (Summary, error) {
	if t.added == 0 {
		return t.summary, ErrNothing
	}
	t.summary.Clocks = t.clocks.solve(t.sources.nodes(), !t.opts.RawClocks)
	t.sources.settle(t.summary.Clocks)
	t.tracks = uint64(len(t.sources.processes)) // A process and its first lane are told apart by the track's kind.

	buffered := bufio.NewWriterSize(w, 64<<10)
	if t.out = newProtoSink(buffered); t.opts.JSON {
		t.out = newChromeSink(buffered)
	}
	t.out.begin(t.sources.first(), t.summary.Clocks)
	for _, p := range t.sources.processes {
		t.out.process(p)
	}
	if err := t.drawAll(); err != nil {
		return t.summary, err
	}
	for _, p := range t.sources.processes {
		t.advance(p, math.MaxInt64)
		t.summary.Lanes += int64(len(p.lanes))
	}
	t.out.finish()
	if err := buffered.Flush(); err != nil {
		return t.summary, fmt.Errorf("write the trace: %w", err)
	}
	t.summarize()
	return t.summary, nil
}

func (t *Trace) summarize() {
	s := &t.summary
	s.Processes, s.Nodes = len(t.sources.processes), len(t.sources.nodes())
	for _, p := range t.sources.processes {
		if p.key.rank >= 0 {
			s.Ranks++
		}
	}
	s.Flows = t.flows.drawn
	s.Crowded += t.flows.crowded
	s.Counters = int64(len(t.series))
}

// drawAll draws the items in the order of time, those of one time in the order in which they nest.
func (t *Trace) drawAll() error {
	var same []item
	flush := func() {
		nest(same)
		for _, it := range same {
			t.draw(it)
		}
		clear(same)
		same = same[:0]
	}
	err := t.sorter.each(func(at int64, encoded []byte) error {
		it, err := t.decode(at, encoded)
		if err != nil {
			return err
		}
		if len(same) > 0 && (same[0].at != at || len(same) >= maxSameTime) {
			flush()
		}
		same = append(same, it)
		t.drawn++
		if t.opts.Progress != nil {
			t.opts.Progress(t.drawn, t.added)
		}
		return t.out.err()
	})
	flush()
	return errors.Join(err, t.out.err())
}

func (t *Trace) draw(it item) {
	src := t.sources.all[it.source]
	switch it.signal {
	case pipeline.SignalTraces:
		t.drawSpan(src, it.scope, it.span)
	case pipeline.SignalMetrics:
		t.drawPoint(src, it.metric)
	default:
		t.drawLog(src, it.at, it.log)
	}
}

// nanoseconds is a time that fits Perfetto's signed ones.
func nanoseconds(at pcommon.Timestamp) int64 { return int64(min(uint64(at), math.MaxInt64/2)) }
