// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

const (
	demoStep     = 250 * time.Millisecond // a training step, where no interval is asked for
	demoStartup  = 2 * time.Second
	demoLogEvery = 5 // steps between two reports, Megatron's --log-interval
	demoNaNStep  = 7 // the step at which the last rank fails; the last step of a shorter run
	demoScope    = "megatron.training"
)

// demoRun is a small training run as Megatron of August 2026 with NeMo Lens 0.2 reports it: span names, nesting, attributes and metric names are theirs.
//
// A rank's spans: megatron.startup with its phases, then one root megatron.train from checkpoint to checkpoint, linked to the root
// before it, with megatron.train.iteration a step, forward_backward and optimizer in it. The middle of the run has a checkpoint. On
// the last rank the loss of step 7 is NaN: its forward_backward fails with an exception, the step is skipped.
type demoRun struct {
	id           string
	ranks, steps int
}

// demoBatch is what one rank sends at once.
type demoBatch struct {
	traces  ptrace.Traces
	metrics pmetric.Metrics
	logs    plog.Logs
}

// demoRank is one rank's place in the run.
type demoRank struct {
	run   demoRun
	rank  int
	begin time.Time     // of the run
	clock time.Time     // when the next step begins
	step  time.Duration // from the begin of a step to that of the next

	train     spanRef // the open megatron.train
	trainFrom time.Time
	linkTo    spanRef // the root before it
	lastSpan  spanRef // of the newest step, for the log records

	durations []float64 // of the steps so far, milliseconds
	skipped   int64
}

type spanRef struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

func newSpanRef(trace pcommon.TraceID) spanRef {
	ref := spanRef{trace: trace}
	if trace.IsEmpty() {
		_, _ = rand.Read(ref.trace[:]) // Never fails (crypto/rand).
	}
	_, _ = rand.Read(ref.span[:])
	return ref
}

// start returns the ranks of the run, which begins at begin and makes one step after the other.
func (r demoRun) start(begin time.Time, step time.Duration) []*demoRank {
	ranks := make([]*demoRank, r.ranks)
	for i := range ranks {
		ranks[i] = &demoRank{run: r, rank: i, begin: begin, clock: begin.Add(demoStartup), step: step}
	}
	return ranks
}

// batch returns what the rank sends after a step, step 0 being the startup. Steps are asked for in order.
func (r *demoRank) batch(step int) demoBatch {
	b := demoBatch{traces: ptrace.NewTraces(), metrics: pmetric.NewMetrics(), logs: plog.NewLogs()}
	rs := b.traces.ResourceSpans().AppendEmpty()
	r.describe(rs.Resource().Attributes())
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(demoScope)
	if step == 0 {
		r.startup(ss.Spans())
	} else {
		r.iterate(ss.Spans(), step)
	}
	if step > 0 && (step%demoLogEvery == 0 || step == r.run.steps) {
		r.report(b.metrics)
	}
	r.log(b.logs, step)
	return b
}

// describe fills in the resource as NeMo Lens 0.2 does, in its order.
func (r *demoRank) describe(attrs pcommon.Map) {
	attrs.PutStr(semconv.ServiceInstanceID, fmt.Sprintf("%s-rank%d", r.run.id, r.rank))
	attrs.PutStr(semconv.ServiceName, "megatron")
	attrs.PutStr(semconv.ServiceVersion, "0.2.0")
	attrs.PutInt(semconv.DLRankOld, int64(r.rank))
	attrs.PutInt(semconv.DLWorldSizeOld, int64(r.run.ranks))
	attrs.PutStr(semconv.RunID, r.run.id)
	attrs.PutStr(semconv.HostName, fmt.Sprintf("node-%d", r.rank/8)) // Eight ranks a node.
	attrs.PutInt(semconv.ProcessPID, int64(14000+r.rank%8))
}

func (r *demoRank) startup(spans ptrace.SpanSlice) {
	root := newSpanRef(pcommon.TraceID{})
	from := r.begin
	for _, phase := range []struct {
		name string
		part time.Duration // of the startup, percent
	}{{"imports", 30}, {"initialize_megatron", 25}, {"model_init", 35}, {"dataloader", 10}} {
		to := from.Add(demoStartup * phase.part / 100)
		appendSpan(spans, "megatron.startup."+phase.name, newSpanRef(root.trace), root.span, from, to)
		from = to
	}
	appendSpan(spans, "megatron.startup", root, pcommon.SpanID{}, r.begin, from)
	r.lastSpan, r.linkTo = root, root
}

// iterate appends the spans that end in a step: the children before their parents, as they are exported.
func (r *demoRank) iterate(spans ptrace.SpanSlice, step int) {
	if r.train == (spanRef{}) {
		r.train, r.trainFrom = newSpanRef(pcommon.TraceID{}), r.clock
	}
	failed := r.rank == r.run.ranks-1 && step == min(demoNaNStep, r.run.steps)
	begin, end := r.clock, r.clock.Add(r.duration(step))
	computed := begin.Add(end.Sub(begin) * 7 / 10)
	iteration := newSpanRef(r.train.trace)

	forwardBackward := appendSpan(spans, "megatron.train.iteration.forward_backward", newSpanRef(iteration.trace), iteration.span, begin, computed)
	forwardBackward.Attributes().PutInt(semconv.NumMicrobatches, 8)
	if failed {
		fail(forwardBackward, computed, step)
	}
	optimizer := appendSpan(spans, "megatron.train.iteration.optimizer", newSpanRef(iteration.trace), iteration.span, computed, end)
	optimizer.Attributes().PutBool(semconv.OptimizerUpdateSuccessfulOld, !failed)
	whole := appendSpan(spans, "megatron.train.iteration", iteration, r.train.span, begin, end)
	whole.Attributes().PutInt(semconv.TrainingStepOld, int64(step))
	whole.Attributes().PutBool(semconv.TrainingStepSkippedOld, failed)

	r.lastSpan = iteration
	r.durations = append(r.durations, float64(end.Sub(begin))/float64(time.Millisecond))
	if failed {
		r.skipped++
	}
	if step == (r.run.steps+1)/2 {
		end = r.checkpoint(spans, step, end)
	}
	if step == (r.run.steps+1)/2 || step == r.run.steps {
		train := appendSpan(spans, "megatron.train", r.train, pcommon.SpanID{}, r.trainFrom, end)
		link := train.Links().AppendEmpty()
		link.SetTraceID(r.linkTo.trace)
		link.SetSpanID(r.linkTo.span)
		r.linkTo, r.train = r.train, spanRef{}
	}
	r.clock = r.clock.Add(r.step)
}

// duration is how long the rank takes for a step: a wave, and one straggler, which the archive shows.
func (r *demoRank) duration(step int) time.Duration {
	share := 0.70 + 0.04*math.Sin(float64(3*step+5*r.rank))
	if r.rank == r.run.ranks/2 && step%9 == 4 {
		share += 0.20
	}
	return time.Duration(share * float64(r.step))
}

// checkpoint appends the spans of a save that fits into the rest of the step, and returns its end.
func (r *demoRank) checkpoint(spans ptrace.SpanSlice, step int, begin time.Time) time.Time {
	third := r.step / 40
	exposed, save := newSpanRef(r.train.trace), newSpanRef(r.train.trace)
	from := begin
	for _, phase := range []string{"state_dict", "io_write", "finalize"} {
		appendSpan(spans, "megatron.checkpoint.save."+phase, newSpanRef(save.trace), save.span, from, from.Add(third))
		from = from.Add(third)
	}
	appendSpan(spans, "megatron.checkpoint.save", save, exposed.span, begin, from)
	appendSpan(spans, "megatron.checkpoint.exposed_save", exposed, r.train.span, begin, from).Attributes().PutInt(semconv.TrainingStepOld, int64(step))
	return from
}

func appendSpan(spans ptrace.SpanSlice, name string, ref spanRef, parent pcommon.SpanID, from, to time.Time) ptrace.Span {
	span := spans.AppendEmpty()
	span.SetName(name)
	span.SetKind(ptrace.SpanKindInternal)
	span.SetTraceID(ref.trace)
	span.SetSpanID(ref.span)
	span.SetParentSpanID(parent)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(from))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(to))
	span.SetFlags(3) // Sampled, and a random trace id: NeMo Lens 0.2.
	return span
}

func nanMessage(step int) string { return fmt.Sprintf("loss is NaN at iteration %d", step) }

func fail(span ptrace.Span, at time.Time, step int) {
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage("ValueError: " + nanMessage(step))
	event := span.Events().AppendEmpty()
	event.SetName(semconv.ExceptionEvent)
	event.SetTimestamp(pcommon.NewTimestampFromTime(at))
	attrs := event.Attributes()
	attrs.PutStr(semconv.ExceptionType, "ValueError")
	attrs.PutStr(semconv.ExceptionMessage, nanMessage(step))
	attrs.PutStr(semconv.ExceptionStacktrace, "Traceback (most recent call last):\n  File \"pretrain_gpt.py\", line 118, in forward_backward\n"+
		"    raise ValueError(f\"loss is NaN at iteration {iteration}\")\nValueError: "+nanMessage(step)+"\n")
	attrs.PutStr(semconv.ExceptionEscaped, "False")
}

func demoLoss(step int) float64 { return 1.8 + 9*math.Exp(-float64(step)/12) }

// demoBounds are the default bounds of OpenTelemetry's SDKs, which NeMo Lens keeps.
var demoBounds = []float64{0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000}

// report fills in the metrics of the steps so far: a gauge, a cumulative histogram, and a counter once it counts anything.
func (r *demoRank) report(metrics pmetric.Metrics) {
	rm := metrics.ResourceMetrics().AppendEmpty()
	r.describe(rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("nemo.lens")
	begin, now := pcommon.NewTimestampFromTime(r.begin), pcommon.NewTimestampFromTime(r.clock)

	loss := appendMetric(sm, "megatron.training.loss", "", "Training loss.").SetEmptyGauge().DataPoints().AppendEmpty()
	loss.SetTimestamp(now)
	loss.SetDoubleValue(demoLoss(len(r.durations)))

	histogram := appendMetric(sm, "megatron.training.step_duration_ms", "ms", "Duration of a training step in milliseconds.").SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := histogram.DataPoints().AppendEmpty()
	point.SetStartTimestamp(begin)
	point.SetTimestamp(now)
	point.ExplicitBounds().FromRaw(demoBounds)
	buckets := make([]uint64, len(demoBounds)+1)
	sum, least, most := 0.0, math.Inf(1), math.Inf(-1)
	for _, d := range r.durations {
		i := 0
		for i < len(demoBounds) && d > demoBounds[i] {
			i++
		}
		buckets[i]++
		sum, least, most = sum+d, min(least, d), max(most, d)
	}
	point.BucketCounts().FromRaw(buckets)
	point.SetCount(uint64(len(r.durations)))
	point.SetSum(sum)
	point.SetMin(least)
	point.SetMax(most)

	if r.skipped > 0 {
		counter := appendMetric(sm, "megatron.training.skipped_iters", "", "Number of skipped iterations.").SetEmptySum()
		counter.SetIsMonotonic(true)
		counter.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		skipped := counter.DataPoints().AppendEmpty()
		skipped.SetStartTimestamp(begin)
		skipped.SetTimestamp(now)
		skipped.SetIntValue(r.skipped)
	}
}

func appendMetric(sm pmetric.ScopeMetrics, name, unit, description string) pmetric.Metric {
	m := sm.Metrics().AppendEmpty()
	m.SetName(name)
	m.SetUnit(unit)
	m.SetDescription(description)
	return m
}

// log fills in what the rank logs after a step: the first rank how it goes, the last one its failure.
func (r *demoRank) log(logs plog.Logs, step int) {
	var severity plog.SeverityNumber
	var text string
	switch {
	case r.rank == r.run.ranks-1 && step == min(demoNaNStep, r.run.steps):
		severity, text = plog.SeverityNumberError, nanMessage(step)+", skipping it"
	case r.rank == 0 && step == 0:
		severity, text = plog.SeverityNumberInfo, fmt.Sprintf("starting run %s with %d ranks", r.run.id, r.run.ranks)
	case r.rank == 0 && step%demoLogEvery == 0:
		severity, text = plog.SeverityNumberInfo, fmt.Sprintf("iteration %d/%d | lm loss: %.6E", step, r.run.steps, demoLoss(step))
	default:
		return
	}
	rl := logs.ResourceLogs().AppendEmpty()
	r.describe(rl.Resource().Attributes())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(demoScope)
	record := sl.LogRecords().AppendEmpty()
	record.SetTimestamp(pcommon.NewTimestampFromTime(r.clock))
	record.SetObservedTimestamp(pcommon.NewTimestampFromTime(r.clock))
	record.SetSeverityNumber(severity)
	record.SetSeverityText(map[plog.SeverityNumber]string{plog.SeverityNumberInfo: "INFO", plog.SeverityNumberError: "ERROR"}[severity])
	record.Body().SetStr(text)
	record.SetTraceID(r.lastSpan.trace)
	record.SetSpanID(r.lastSpan.span)
	record.SetFlags(1)
}
