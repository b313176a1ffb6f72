// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package reckon // import "github.com/lenscol/lenscol/internal/reckon"

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/sdk/resource"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// Layers of spans. Each covers the time of a job on its own: whoever sums durations sums those of one.
const (
	// LayerRecords are flat spans, of what sacct's rows say and of the phases between their times: slurm.job_attempt.synthesized,
	// slurm.phase.*, slurm.record.* (NeMo Lens, the reckoner's newest form).
	LayerRecords = "records"
	// LayerJob is a tree below slurm.job: slurm.job_setup, slurm.step, slurm.inter_step_gap, slurm.job_teardown, and
	// slurm.inter_attempt_gap between two attempts (NeMo Lens, the older form).
	LayerJob = "job"
)

// Layers are both.
var Layers = []string{LayerRecords, LayerJob}

// Spans are the spans of a job, a resource for each attempt. Ids follow from the cluster, the job and its rows: the spans of the
// same accounting are the same, however often they are made. What is not over has no spans yet, for it would have others
// later; the number of those attempts comes back.
func Spans(job Job, layers []string) (td ptrace.Traces, open int) {
	td = ptrace.NewTraces()
	b := builder{job: job}
	b.trace = id[pcommon.TraceID](b.key(), "trace")
	for i := range job.Attempts {
		attempt := &job.Attempts[i]
		if !attempt.Ended() {
			open++
			continue
		}
		b.begin(td, attempt)
		if slices.Contains(layers, LayerRecords) {
			b.records()
		}
	}
	if open == 0 && slices.Contains(layers, LayerJob) {
		b.tree(td)
	}
	return td, open
}

// builder writes the spans of one job.
type builder struct {
	job     Job
	trace   pcommon.TraceID
	attempt *Attempt
	spans   ptrace.SpanSlice
}

// key tells the job from all others of the cluster: SLURM begins with small ids again, one day.
func (b *builder) key() string {
	return fmt.Sprintf("%s/%s/%d", b.job.Cluster, b.job.RawID, b.job.Attempts[0].Allocation.Submit.Unix())
}

// id is made of a name, and is never zero.
func id[ID ~[16]byte | ~[8]byte](parts ...string) (id ID) {
	sum := sha256.Sum256([]byte("lenscol reckon\x00" + strings.Join(parts, "\x00")))
	switch out := any(&id).(type) {
	case *pcommon.TraceID:
		copy(out[:], sum[:])
	case *pcommon.SpanID:
		copy(out[:], sum[:])
	}
	return id
}

// begin opens the resource of an attempt.
func (b *builder) begin(td ptrace.Traces, attempt *Attempt) {
	b.attempt = attempt
	rs := td.ResourceSpans().AppendEmpty()
	b.describe(rs.Resource().Attributes())
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("nemo.lens.reckoner")
	b.spans = ss.Spans()
}

// describe writes whose spans these are: the run's, under the ids that its ranks send. The parts of a heterogeneous job are
// one run, that of its first part.
func (b *builder) describe(attrs pcommon.Map) {
	first, _, _ := strings.Cut(b.job.ID, "+")
	run := b.job.RawID
	if first != b.job.ID {
		run = first
	}
	array, task, isArray := strings.Cut(b.job.ID, "_")
	cluster, key := b.job.Cluster, first
	if cluster == "" {
		cluster = "nocluster"
	}
	if isArray {
		key = array
	}
	attrs.PutStr(semconv.ServiceName, "slurm")
	attrs.PutStr(semconv.LensEmitter, "slurm_reckoner")
	attrs.PutStr(semconv.RunID, run)
	attrs.PutStr(semconv.SlurmJobID, b.job.ID)
	attrs.PutStr(semconv.SlurmJobIDRaw, b.job.RawID)
	attrs.PutStr(semconv.SlurmJobName, b.job.Name)
	attrs.PutStr(semconv.SlurmClusterName, cluster)
	attrs.PutStr(semconv.DLJobUUID, resource.UUID5("nemo.lens.job/"+cluster+"/"+key))
	if isArray {
		attrs.PutStr(semconv.SlurmArrayJobID, array)
		attrs.PutStr(semconv.SlurmArrayTaskID, task)
		return // The run uuid of an array is one for all tasks and restarts.
	}
	attrs.PutInt(semconv.SlurmRestartCount, int64(b.attempt.restarts()))
	attrs.PutStr(semconv.DLRunUUID, resource.UUID5(fmt.Sprintf("nemo.lens.run/%s/%s/sr%d", cluster, key, b.attempt.restarts())))
}

// records writes the flat layer.
func (b *builder) records() {
	a := b.attempt
	alloc := a.Allocation
	b.span("slurm.job_attempt.synthesized", alloc.Submit, a.lastEnd(), alloc, "attempt", "synthesized")
	eligible, started := a.waiting()
	b.phase("slurm.phase.deferred", alloc.Submit, eligible)
	b.phase("slurm.phase.queued", eligible, started)
	b.record("allocation", alloc)
	for _, s := range a.Steps {
		b.record(s.Type, s.Row)
	}
	b.phase("slurm.phase.cleanup_tail", alloc.End, a.lastEnd())
}

// phase writes a phase that lasted.
func (b *builder) phase(name string, from, to time.Time) {
	if to.After(from) {
		b.span(name, from, to, b.attempt.Allocation, "phase", "factual")
	}
}

// record writes a row that is over.
func (b *builder) record(kind string, row Row) {
	if row.Start.IsZero() || row.End.IsZero() {
		return
	}
	span := b.span("slurm.record."+kind, row.Start, row.End, row, kind, "factual")
	b.step(span, row)
}

// step says whose work a step is.
func (b *builder) step(span ptrace.Span, row Row) {
	for _, s := range b.attempt.Steps {
		if s.Raw != row.Raw {
			continue
		}
		role := "workload"
		if s.Infra {
			role = "infra"
		}
		span.Attributes().PutStr(semconv.SlurmStepName, row.Name)
		span.Attributes().PutStr(semconv.SlurmStepRole, role)
	}
}

// span writes a span of the attempt with the attributes that all have.
func (b *builder) span(name string, from, to time.Time, row Row, kind, confidence string) ptrace.Span {
	span := b.spans.AppendEmpty()
	span.SetName(name)
	span.SetKind(ptrace.SpanKindInternal)
	span.SetTraceID(b.trace)
	span.SetSpanID(id[pcommon.SpanID](b.key(), fmt.Sprint(b.attempt.Number), name, row.Raw, fmt.Sprint(from.Unix())))
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(from))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(to))
	attrs := span.Attributes()
	attrs.PutEmptySlice(semconv.Purpose).AppendEmpty().SetStr("goodput")
	attrs.PutStr(semconv.SlurmJobID, b.job.ID)
	attrs.PutInt(semconv.SlurmAttempt, int64(b.attempt.Number))
	attrs.PutStr(semconv.SlurmSource, "sacct")
	attrs.PutStr(semconv.SlurmConfidence, confidence)
	attrs.PutStr(semconv.SlurmRowType, kind)
	attrs.PutInt(semconv.SlurmRestarts, int64(b.attempt.restarts()))
	for _, a := range []struct{ key, value string }{
		{semconv.SlurmSLUID, b.attempt.Allocation.SLUID}, {semconv.SlurmState, row.State}, {semconv.SlurmReason, row.Reason},
		{semconv.SlurmNodelistOld, known(row.NodeList)}, {semconv.SlurmExitCode, row.ExitCode}, {semconv.SlurmDerivedExitCode, row.DerivedExitCode},
	} {
		if a.value != "" {
			attrs.PutStr(a.key, a.value)
		}
	}
	if failed(row.State) {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(strings.TrimSuffix(row.State+", exit code "+row.ExitCode, ", exit code "))
	}
	return span
}

// failed reports whether a state is an end that nobody asked for (sacct, job state codes).
func failed(state string) bool {
	word, _, _ := strings.Cut(state, " ")
	switch word {
	case "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "LAUNCH_FAILED", "RECONFIG_FAIL":
		return true
	}
	return false
}

// tree writes the layer below slurm.job. The job's span stands in the resource of the last attempt.
func (b *builder) tree(td ptrace.Traces) {
	attempts := b.job.Attempts
	first, last := &attempts[0], &attempts[len(attempts)-1]
	end := last.lastEnd()
	b.attempt, b.spans = last, td.ResourceSpans().At(len(attempts)-1).ScopeSpans().At(0).Spans()
	root := b.span("slurm.job", first.Allocation.Submit, end, last.Allocation, "job", "synthesized").SpanID()
	below := func(name string, from, to time.Time, row Row) {
		if to.After(from) {
			span := b.span(name, from, to, row, strings.TrimPrefix(name, "slurm."), "synthesized")
			span.SetParentSpanID(root)
			b.step(span, row)
		}
	}
	for i := range attempts {
		a := &attempts[i]
		b.attempt, b.spans = a, td.ResourceSpans().At(i).ScopeSpans().At(0).Spans()
		if i > 0 {
			below("slurm.inter_attempt_gap", attempts[i-1].lastEnd(), a.Allocation.Start, a.Allocation)
		}
		if a.Allocation.Start.IsZero() {
			continue
		}
		at := a.Allocation.Start
		for j, s := range a.work() {
			if gap := "slurm.inter_step_gap"; j > 0 {
				below(gap, at, s.Start, a.Allocation)
			} else {
				below("slurm.job_setup", at, s.Start, a.Allocation)
			}
			below("slurm.step", s.Start, s.End, s.Row)
			at = later(at, s.End)
		}
		if len(a.work()) > 0 {
			below("slurm.job_teardown", at, a.Allocation.End, a.Allocation)
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
