// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// megatron is what ranks of Megatron-LM send per step with the preset per_step (NeMo Lens 0.2): resources with their Slurm keys, a step with its
// phases, attributes on the spans that have them.
func megatron(ranks, steps int) ptrace.Traces {
	td := ptrace.NewTraces()
	at := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	for rank := range ranks {
		rs := td.ResourceSpans().AppendEmpty()
		put(rs.Resource().Attributes(), map[string]any{
			"service.name": "megatron", "service.version": "0.2.0", "dl.rank": rank, "dl.world_size": 1024, "nemo.run.id": "4711",
			"service.instance.id": "4711-rank3", "nemo.user.id": "kim", "deployment.environment": "prod", "host.name": "node-17",
			"process.pid": 4242, "host.gpu.count": 8, "slurm.job.id": "4711", "slurm.partition": "batch", "telemetry.sdk.language": "python",
		})
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("nemo.lens")
		for step := range steps {
			trace := pcommon.TraceID{1, byte(rank), byte(step >> 8), byte(step), 5}
			id := func(i int) pcommon.SpanID { return pcommon.SpanID{7, byte(rank), byte(step >> 8), byte(step), byte(i)} }
			for i, name := range []string{
				"forward_backward", "optimizer", "log", "gc_collect", "params_norm", "iteration_report", "ft_heartbeat", "",
			} {
				s := ss.Spans().AppendEmpty()
				s.SetTraceID(trace)
				s.SetSpanID(id(i))
				s.SetKind(ptrace.SpanKindInternal)
				start := at.Add(time.Duration(step) * time.Second)
				s.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
				s.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(900 * time.Millisecond)))
				if name == "" {
					s.SetName("megatron.train.iteration")
					put(s.Attributes(), map[string]any{"megatron.iteration": step + 1, "megatron.skipped": false})
				} else {
					s.SetName("megatron.train.iteration." + name)
					s.SetParentSpanID(id(7))
					put(s.Attributes(), map[string]any{"num_microbatches": 16, "megatron.update_successful": true})
				}
				s.Attributes().PutStr("lens.group", "step")
				s.Attributes().PutBool("is_goodput_span", true)
				s.Attributes().PutEmptySlice("purpose").AppendEmpty().SetStr("goodput")
				s.Attributes().PutDouble("megatron.memory_allocated_gb", 61.25)
			}
		}
	}
	return td
}

func put(m pcommon.Map, raw map[string]any) {
	for key, v := range raw {
		if err := m.PutEmpty(key).FromRaw(v); err != nil {
			panic(err)
		}
	}
}

func benchOptions() Options {
	o := DefaultOptions()
	o.Target = Target{"team", "pretrain"}
	o.RunID = "3f9k2x1a"
	return o
}

// BenchmarkShape shapes a batch that needs no repair, encoding included, with what the defaults add: run, step, promoted attributes.
func BenchmarkShape(b *testing.B) {
	td := megatron(4, 256)
	s, err := New(benchOptions())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	start := processorTime()
	for b.Loop() {
		got := s.Shape(td)
		if got.Dropped.Sum() > 0 || got.Rewritten.Sum() > 0 {
			b.Fatal(got.Dropped, got.Rewritten)
		}
		got.Release()
	}
	spanCost(b, td, start)
}

// BenchmarkRepair is BenchmarkShape with every span on the long way.
func BenchmarkRepair(b *testing.B) {
	td := megatron(4, 256)
	s, err := New(benchOptions())
	if err != nil {
		b.Fatal(err)
	}
	s.always = true
	b.ReportAllocs()
	start := processorTime()
	for b.Loop() {
		got := s.Shape(td)
		got.Release()
	}
	spanCost(b, td, start)
}

// BenchmarkMarshal is what stock exporters do: pdata's own encoding, for comparison.
func BenchmarkMarshal(b *testing.B) {
	td := megatron(4, 256)
	var m ptrace.ProtoMarshaler
	b.ReportAllocs()
	start := processorTime()
	for b.Loop() {
		if _, err := m.MarshalTraces(td); err != nil {
			b.Fatal(err)
		}
	}
	spanCost(b, td, start)
}

// spanCost reports processor time, which other work on the machine does not change.
func spanCost(b *testing.B, td ptrace.Traces, start time.Duration) {
	b.ReportMetric(float64((processorTime()-start).Nanoseconds())/float64(b.N)/float64(td.SpanCount()), "cpu-ns/span")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
