// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package simrun // import "github.com/lenscol/lenscol/internal/simrun"

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// Batch is what a rank sends at once. Either part may be empty.
type Batch struct {
	Rank    int
	Traces  ptrace.Traces
	Metrics pmetric.Metrics
}

// Each calls send with what the ranks send, in the order of time, and counts it in the truth.
func (r *Run) Each(send func(Batch) error) error {
	t := &r.truth
	t.Spans, t.ErrorSpans, t.TruncatedSpans, t.Links, t.Points = 0, 0, 0, 0, 0
	for i, a := range r.attempts {
		ranks := make([]*sender, r.cfg.Ranks)
		for rank := range ranks {
			ranks[rank] = &sender{run: r, attempt: i, plan: a, rank: rank}
		}
		for from := 0; from < len(a.steps); {
			to := from + 1
			for to < len(a.steps) && !a.steps[to-1].report {
				to++
			}
			for _, s := range ranks {
				if err := send(s.batch(a.steps[from:to])); err != nil {
					return err
				}
			}
			from = to
		}
	}
	return nil
}

// Write writes the run as the jsonl exporter does, into one file.
func (r *Run) Write(w io.Writer, layout jsonlexporter.Layout) error {
	encoder, err := jsonlexporter.NewEncoder(layout, jsonlexporter.ResourceReference)
	if err != nil {
		return err
	}
	var lines []byte
	return r.Each(func(b Batch) error {
		lines = encoder.AppendMetrics(encoder.AppendTraces(lines[:0], b.Traces), b.Metrics)
		_, err := w.Write(lines)
		return err
	})
}

// sender is one rank in one attempt.
type sender struct {
	run     *Run
	attempt int
	plan    attempt
	rank    int

	spans      ptrace.SpanSlice // of the batch in hand
	ids        int              // given so far
	started    bool
	train      span // the open root, from save to save
	trainFrom  time.Duration
	linkTo     span // the root before it
	hasTrain   bool
	steps      int // reported
	stepMillis float64
	slowest    float64
	fastest    float64
}

type span struct {
	trace pcommon.TraceID
	id    pcommon.SpanID
}

func (s *sender) batch(steps []step) Batch {
	b := Batch{Rank: s.rank, Traces: ptrace.NewTraces(), Metrics: pmetric.NewMetrics()}
	rs := b.Traces.ResourceSpans().AppendEmpty()
	s.describe(rs.Resource().Attributes())
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("megatron.training")
	s.spans = ss.Spans()
	if !s.started {
		s.started = true
		s.startup()
	}
	for _, st := range steps {
		if s.plan.crashed && st.number == s.plan.steps[len(s.plan.steps)-1].number {
			s.tear(st)
		} else {
			s.iterate(st)
		}
	}
	if last := steps[len(steps)-1]; last.report && s.steps > 0 {
		s.report(b.Metrics, last)
	}
	s.run.truth.Spans += b.Traces.SpanCount()
	s.run.truth.Points += b.Metrics.DataPointCount()
	return b
}

// describe fills in the resource as NeMo Lens 0.2 and its successor do.
func (s *sender) describe(attrs pcommon.Map) {
	cfg := &s.run.cfg
	attrs.PutStr(semconv.ServiceInstanceID, fmt.Sprintf("%s-rank%d", cfg.RunID, s.rank))
	attrs.PutStr(semconv.ServiceName, "megatron")
	attrs.PutInt(s.attribute(semconv.DLRankOld), int64(s.rank))
	attrs.PutInt(s.attribute(semconv.DLWorldSizeOld), int64(cfg.Ranks))
	attrs.PutStr(semconv.RunID, cfg.RunID)
	attrs.PutStr(semconv.HostName, s.node())
	attrs.PutInt(semconv.ProcessPID, int64(10_000+1_000*s.attempt+s.rank%cfg.RanksPerNode))
	if cfg.Generation == NewNames {
		attrs.PutInt(semconv.DLLocalRank, int64(s.rank%cfg.RanksPerNode))
		attrs.PutInt(semconv.SlurmRestartCount, int64(s.attempt))
	}
}

func (s *sender) startup() {
	first := s.plan.steps[0].number
	from, to := s.plan.begin+s.skew(0, atBegin), s.plan.started+s.skew(first, atBegin)
	root := s.newSpan(span{})
	part := (to - from) / 4
	for i, phase := range []string{"imports", "initialize_megatron", "model_init", "dataloader"} {
		end := from + time.Duration(i+1)*part
		if i == 3 {
			end = to
		}
		s.add("megatron.startup."+phase, s.newSpan(root), root, from+time.Duration(i)*part, end)
	}
	s.add("megatron.startup", root, span{}, from, to)
	s.linkTo = root
	if s.plan.loaded > s.plan.started {
		s.add("megatron.checkpoint.load", s.newSpan(span{}), span{}, to, s.plan.loaded+s.skew(first, atBegin))
	}
}

// open opens the root of a loop pass unless it is open.
func (s *sender) open(st step) {
	if !s.hasTrain {
		s.hasTrain, s.train, s.trainFrom = true, s.newSpan(span{}), st.begin+s.skew(st.number, atBegin)
	}
}

// iterate adds the spans that end in a step: children before their parents, as they are exported.
func (s *sender) iterate(st step) {
	s.open(st)
	cfg := s.run.cfg
	begin, end := st.begin+s.skew(st.number, atBegin), st.end+s.skew(st.number+1, atBegin)
	synced := st.synced + s.skew(st.number, atSync)
	optimized := synced + s.run.of(optimizeShare)
	iteration, pass := s.newSpan(s.train), s.newSpan(s.train)

	s.add("megatron.grad_sync.finish", s.newSpan(pass), pass, begin+s.run.compute(s.attempt, st.number, s.rank), synced)
	s.add("megatron.train.iteration.forward_backward", pass, iteration, begin, synced).Attributes().PutInt(semconv.NumMicrobatches, 8)
	s.add("megatron.train.iteration.optimizer", s.newSpan(iteration), iteration, synced, optimized).
		Attributes().PutBool(s.attribute(semconv.OptimizerUpdateSuccessfulOld), true)
	if st.report {
		s.log(st, iteration, optimized)
	}
	whole := s.add("megatron.train.iteration", iteration, s.train, begin, end)
	whole.Attributes().PutInt(s.attribute(semconv.TrainingStepOld), int64(st.number))
	whole.Attributes().PutBool(s.attribute(semconv.TrainingStepSkippedOld), false)
	s.measure(end - begin)

	if st.saves {
		saved := st.saved + s.skew(st.number+1, atBegin)
		s.save(st, end, saved)
		end = saved
	}
	if st.evaluates {
		evaluated := st.evaluated + s.skew(st.number+1, atBegin)
		s.add("megatron.evaluate", s.newSpan(s.train), s.train, end, evaluated)
		end = evaluated
	}
	if st.saves || st.number == cfg.Steps {
		s.closeTrain(end)
		s.hasTrain, s.linkTo = false, s.train
	}
}

func (s *sender) closeTrain(end time.Duration) ptrace.Span {
	train := s.add("megatron.train", s.train, span{}, s.trainFrom, end)
	link := train.Links().AppendEmpty()
	link.SetTraceID(s.linkTo.trace)
	link.SetSpanID(s.linkTo.id)
	s.run.truth.Links++
	return train
}

func (s *sender) save(st step, begin, end time.Duration) {
	exposed := s.newSpan(s.train)
	save := s.newSpan(exposed)
	third := (end - begin) / 3
	for i, phase := range []string{"state_dict", "io_write", "finalize"} {
		s.add("megatron.checkpoint.save."+phase, s.newSpan(save), save, begin+time.Duration(i)*third, begin+time.Duration(i+1)*third)
	}
	s.add("megatron.checkpoint.save", save, exposed, begin, end)
	s.add("megatron.checkpoint.exposed_save", exposed, s.train, begin, end).Attributes().PutInt(s.attribute(semconv.TrainingStepOld), int64(st.number))
}

// tear adds the spans that are open when the attempt ends in the middle of a step.
func (s *sender) tear(st step) {
	s.open(st)
	if s.run.cfg.Killed {
		return
	}
	end := s.plan.end + s.skew(st.number, atSync)
	begin := st.begin + s.skew(st.number, atBegin)
	iteration := s.newSpan(s.train)
	pass := s.add("megatron.train.iteration.forward_backward", s.newSpan(iteration), iteration, begin, end)
	whole := s.add("megatron.train.iteration", iteration, s.train, begin, end)
	whole.Attributes().PutInt(s.attribute(semconv.TrainingStepOld), int64(st.number))
	for _, open := range []ptrace.Span{pass, whole, s.closeTrain(end)} {
		if s.rank == s.run.cfg.FailingRank {
			s.fail(open)
		} else {
			s.truncate(open)
		}
	}
}

func (s *sender) fail(open ptrace.Span) {
	const message = "CUDA error: an illegal memory access was encountered"
	open.Status().SetCode(ptrace.StatusCodeError)
	open.Status().SetMessage("RuntimeError: " + message)
	event := open.Events().AppendEmpty()
	event.SetName(semconv.ExceptionEvent)
	event.SetTimestamp(open.EndTimestamp())
	event.Attributes().PutStr(semconv.ExceptionType, "RuntimeError")
	event.Attributes().PutStr(semconv.ExceptionMessage, message)
	event.Attributes().PutStr(semconv.ExceptionEscaped, "False")
	s.run.truth.ErrorSpans++
}

func (s *sender) truncate(open ptrace.Span) {
	open.Attributes().PutBool(semconv.SpanTruncated, true)
	event := open.Events().AppendEmpty()
	event.SetName(semconv.SpanTruncated)
	event.SetTimestamp(open.EndTimestamp())
	event.Attributes().PutStr(semconv.SpanTruncatedReason, "still open at telemetry shutdown")
	s.run.truth.TruncatedSpans++
}

func (s *sender) log(st step, iteration span, begin time.Duration) {
	record := s.add("megatron.train.log", s.newSpan(iteration), iteration, begin, begin+s.run.of(restShare)/2)
	if s.run.cfg.Generation == OldNames {
		return
	}
	event := record.Events().AppendEmpty()
	event.SetName("nv.dl.training.objective")
	event.SetTimestamp(record.EndTimestamp())
	event.Attributes().PutStr("nv.dl.measurement.domain", "dp_mean")
	event.Attributes().PutDouble("loss", loss(st.number))
}

func loss(step int) float64 { return 1.8 + 9*math.Exp(-float64(step)/12) }

// add appends a span with the times of the rank's clock and the names of the run's generation.
func (s *sender) add(name string, ref, parent span, from, to time.Duration) ptrace.Span {
	if s.run.cfg.Generation == NewNames {
		if renamed, ok := newSpans.Rename(name); ok {
			name = renamed
		}
	}
	added := s.spans.AppendEmpty()
	added.SetName(name)
	added.SetKind(ptrace.SpanKindInternal)
	added.SetTraceID(ref.trace)
	added.SetSpanID(ref.id)
	added.SetParentSpanID(parent.id)
	added.SetStartTimestamp(s.stamp(from))
	added.SetEndTimestamp(s.stamp(to))
	added.SetFlags(3) // Sampled, and a random trace id: NeMo Lens 0.2.
	return added
}

var (
	newSpans      = semconv.ToNew(semconv.Spans())
	newAttributes = semconv.ToNew(semconv.Attributes())
)

func (s *sender) attribute(key string) string {
	if s.run.cfg.Generation == NewNames {
		if renamed, ok := newAttributes.Rename(key); ok {
			return renamed
		}
	}
	return key
}

func (s *sender) node() string { return nodeName(s.rank / s.run.cfg.RanksPerNode) }

// stamp is a time as the rank's node shows it.
func (s *sender) stamp(at time.Duration) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(s.run.cfg.Begin.Add(at + s.run.truth.Offsets[s.node()]))
}

// The moments of a step that ranks see at slightly different times.
const (
	atBegin = iota // also the end of what comes before
	atSync
)

func (s *sender) skew(step, moment int) time.Duration {
	return time.Duration(s.run.unit(useSkew, s.attempt, step, s.rank, moment) * float64(s.run.cfg.EndSkew))
}

// newSpan gives ids for a span in the trace of another one, or of a new trace.
func (s *sender) newSpan(in span) span {
	s.ids++
	draw := func(word int) uint64 { return s.run.draw(useID, s.attempt, s.rank, s.ids, word) | 1 }
	if in.trace.IsEmpty() {
		binary.BigEndian.PutUint64(in.trace[:8], draw(0))
		binary.BigEndian.PutUint64(in.trace[8:], draw(1))
	}
	binary.BigEndian.PutUint64(in.id[:], draw(2))
	return in
}
