// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Result is what a batch became. Every span of the batch is in one request, or counted in Dropped.
type Result struct {
	Requests  []Request
	Dropped   Counts // spans
	Rewritten Counts // changes
	// Unroutable are service names of resources without a project, a few of them, for a log line.
	Unroutable []string
	// ForeignRuns are run ids that cannot be linked, of another project or no ids, a few of them.
	ForeignRuns []string

	memory *memory // of the requests
}

// Shaper shapes batches. It may be used by many goroutines at once.
type Shaper struct {
	opts      Options
	endpoint  Endpoint // of spans that are of no agent
	spanBytes int
	always    bool // every span takes the long way, in tests
	display   displayTemplate
	promote   promotion
	stepMask  mask
	runFrom   []string
	runMask   mask
	ids       *ids // nil: ids are not looked at
	workers   sync.Pool
	memory    memory
}

// New returns a shaper. Its error is that of [Options.Validate].
func New(o Options) (*Shaper, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Shaper{
		opts: o, spanBytes: min(o.SpanBytes, o.RequestBytes/requestShare), promote: newPromotion(o.Promote), stepMask: newStepMask(o.StepFrom),
		runFrom: runSources(o.RunIDFrom), ids: newIDs(o.DuplicateIDs),
	}
	if o.Mode == ModeAgents {
		s.endpoint = Agents
	}
	s.display, _ = parseTemplate(o.DisplayName)
	for _, key := range o.RunIDFrom {
		s.runMask.add(keyBit(key))
		s.runMask.add(keyBit(key + leafPart))
	}
	s.workers.New = func() any { return newWorker(s) }
	return s, nil
}

// Shape turns td into requests, and does not touch it. The same batches in the same order, given to a new shaper, give the same requests.
func (s *Shaper) Shape(td ptrace.Traces) Result {
	w := s.workers.Get().(*worker)
	defer w.release()
	w.survey(td)
	w.write(td)
	w.result.Requests, w.result.memory = w.fill.finish(), &s.memory
	return w.result
}

// worker shapes one batch: it surveys the batch, then writes span by span.
type worker struct {
	*Shaper
	result    Result
	fill      filler
	batch     batch
	resources []*resource
	span      span
	encoded   []byte
	own       []attr  // of the span, without what it gets
	added     []extra // that the span gets by itself
}

func newWorker(s *Shaper) *worker {
	return &worker{Shaper: s, fill: filler{limit: s.opts.RequestBytes, memory: &s.memory}, batch: newBatch()}
}

// maxKept bounds the memory that a worker keeps for its next batch, in bytes or in spans.
const (
	maxKeptBytes = 1 << 20
	maxKeptSpans = 1 << 14
)

// release lets go of everything of the batch but memory of the worker's own.
func (w *worker) release() {
	if cap(w.encoded) > maxKeptBytes {
		w.encoded = nil
	}
	w.result, w.fill = Result{}, filler{limit: w.opts.RequestBytes, memory: &w.memory}
	w.batch.reset()
	clear(w.resources)
	w.resources = w.resources[:0]
	w.span.forget()
	w.own = nil
	w.workers.Put(w)
}

// survey reads what has to be known of the whole batch.
func (w *worker) survey(td ptrace.Traces) {
	known, unknown := false, false
	for _, rs := range td.ResourceSpans().All() {
		r := w.resource(rs, &w.result.Rewritten)
		w.resources = append(w.resources, r)
		for _, ss := range rs.ScopeSpans().All() {
			for _, in := range ss.Spans().All() {
				e := w.batch.add(in, r)
				if step, ok, bad := w.ownStep(in.Attributes()); ok {
					e.step, e.state, known = step, stepKnown, true
				} else {
					unknown = true
					if bad {
						w.result.Rewritten[Step]++
					}
				}
			}
		}
	}
	if known && unknown {
		w.batch.inherit()
	}
	if w.ids != nil {
		w.ids.assign(&w.batch, &w.result.Rewritten)
	}
}

// write shapes and encodes each span.
func (w *worker) write(td ptrace.Traces) {
	i := int32(0)
	for j, rs := range td.ResourceSpans().All() {
		r := w.resources[j]
		if !r.routable() {
			w.unroutable(rs, r)
			i += int32(spansOf(rs))
			continue
		}
		for _, ss := range rs.ScopeSpans().All() {
			sc := w.scope(ss, r, &w.result)
			for _, in := range ss.Spans().All() {
				w.writeSpan(in, sc, i)
				i++
			}
		}
	}
}

func spansOf(rs ptrace.ResourceSpans) (n int) {
	for _, ss := range rs.ScopeSpans().All() {
		n += ss.Spans().Len()
	}
	return n
}

func (w *worker) unroutable(rs ptrace.ResourceSpans, r *resource) {
	n := spansOf(rs)
	if n == 0 {
		return
	}
	w.result.Dropped[Unroutable] += n
	name := "unknown"
	if i := findMoved(r.attrs, "service.name"); i >= 0 {
		name = asText(r.attrs[i].val)
	}
	w.result.Unroutable = example(w.result.Unroutable, name)
}

func (w *worker) writeSpan(in ptrace.Span, sc *scope, i int32) {
	e := &w.batch.entries[i]
	if !e.whole() {
		w.result.Dropped[NoID]++
		return
	}
	s := &w.span
	s.load(in)
	if w.ids != nil {
		if (e.repeated || e.first >= 0) && w.isRepeated(s, sc, e, i) {
			w.result.Dropped[RepeatedSpan]++
			return
		}
		w.ids.rename(s, e)
	}
	endpoint, run, ok := w.shape(s, sc, e)
	if !ok {
		w.result.Dropped[TooLarge]++
		return
	}
	w.fill.put(sc, endpoint, run, w.encoded)
}
