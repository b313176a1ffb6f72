// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// benchTraces is a request as a rank at per-step detail sends it: one resource, one scope, 512 spans; 8 resource and 6
// span attributes.
func benchTraces() ptrace.Traces {
	const start = 1_795_969_468_000_000_000
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	for _, kv := range [][2]string{
		{semconv.ServiceName, "megatron"}, {semconv.RunID, "llama-70b-0042"}, {semconv.ServiceInstanceID, "llama-70b-0042-rank17"},
		{"host.name", "node0003"}, {"deployment.environment", "production"}, {"slurm.job.name", "llama-70b"},
	} {
		rs.Resource().Attributes().PutStr(kv[0], kv[1])
	}
	rs.Resource().Attributes().PutInt(semconv.DLRank, 17)
	rs.Resource().Attributes().PutInt(semconv.DLWorldSize, 1024)
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("nemo.lens")
	for i := range 512 {
		span := ss.Spans().AppendEmpty()
		span.SetName("megatron.train.iteration.forward_backward")
		span.SetTraceID(pcommon.TraceID{0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, byte(i >> 8), byte(i)})
		span.SetSpanID(pcommon.SpanID{0xcd, 1, 2, 3, 4, 5, byte(i >> 8), byte(i)})
		span.SetParentSpanID(pcommon.SpanID{0xef, 1, 2, 3, 4, 5, 6, byte(i)})
		span.SetKind(ptrace.SpanKindInternal)
		span.SetStartTimestamp(pcommon.Timestamp(start + i*1_000_000))
		span.SetEndTimestamp(pcommon.Timestamp(start + i*1_000_000 + 812_345))
		span.SetFlags(0x103)
		a := span.Attributes()
		a.PutInt("megatron.iteration", int64(1000+i))
		a.PutInt("num_microbatches", 16)
		a.PutDouble("megatron.loss", 2.0+float64(i)/512)
		a.PutBool("megatron.skipped", false)
		a.PutStr("lens.span_category", "goodput")
		a.PutStr("lens.group", "forward_backward")
	}
	return td
}

// BenchmarkEncode holds the whole of a request's encoding against what contrib's file exporter does with it.
func BenchmarkEncode(b *testing.B) {
	td := benchTraces()
	spans := td.SpanCount()
	run := func(name string, encode func() int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			size := encode() // warm
			for b.Loop() {
				size = encode()
			}
			perSpan := float64(b.N) * float64(spans)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/perSpan, "ns/span")
			b.ReportMetric(float64(size)/float64(spans), "B/span")
		})
	}
	layout := func(name string, l layout) {
		run(name, func() int {
			c := newChunk()
			addTraces(c, l, td)
			n := len(c.buf)
			c.release()
			return n
		})
	}
	layout("lenscol", &compact{members: identityMembers{run: true, rank: true, service: true}})
	layout("lenscol console", console{})
	layout("lenscol otlp_json", otlpJSON{})
	marshaler := &ptrace.JSONMarshaler{}
	run("contrib", func() int {
		buf, err := marshaler.MarshalTraces(td)
		if err != nil {
			b.Fatal(err)
		}
		return len(buf)
	})
}

func BenchmarkEncodeManyResources(b *testing.B) {
	td := ptrace.NewTraces()
	one := benchTraces()
	one.ResourceSpans().At(0).ScopeSpans().At(0).Spans().RemoveIf(func() func(ptrace.Span) bool {
		n := 0
		return func(ptrace.Span) bool { n++; return n > 8 }
	}())
	for i := range 64 {
		rs := td.ResourceSpans().AppendEmpty()
		one.ResourceSpans().At(0).CopyTo(rs)
		rs.Resource().Attributes().PutInt(semconv.DLRank, int64(i))
		rs.Resource().Attributes().PutStr(semconv.ServiceInstanceID, fmt.Sprintf("llama-70b-0042-rank%d", i))
	}
	scopes := &compact{members: identityMembers{run: true, rank: true, service: true}}
	b.ReportAllocs()
	for b.Loop() {
		c := newChunk()
		addTraces(c, scopes, td)
		c.release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(float64(b.N)*512), "ns/span")
}
