// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/runview"
)

// perStep is what eight ranks of 1,024 send of five steps at NeMo Lens's preset per_step, with the names and attributes of
// Megatron-LM of August 2026, encoded as SDKs do: twelve spans a step, and in a middle pipeline stage 4 more a microbatch.
func perStep(t testing.TB, microbatches int) (body []byte, spans int) {
	names := []string{
		"megatron.train.iteration.forward_backward", "megatron.train.iteration.optimizer", "megatron.train.iteration",
		"megatron.train.iteration_report", "megatron.train.params_norm", "megatron.train.log", "megatron.train.forward_pre_hook",
		"megatron.grad_sync.start", "megatron.grad_sync.finish",
		"megatron.checkpoint.timers_log", "megatron.checkpoint.ft_heartbeat", "megatron.checkpoint.save.finalize",
	}
	for range microbatches {
		names = append(names, "megatron.p2p.recv_forward", "megatron.p2p.send_forward", "megatron.p2p.recv_backward", "megatron.p2p.send_backward")
	}
	td := ptrace.NewTraces()
	for rank := range 8 {
		rs := td.ResourceSpans().AppendEmpty()
		identify(rs.Resource(), rank, 1024)
		for _, key := range []string{"nemo.run.id", "service.instance.id", "host.name", "slurm.job.id", "slurm.job.name", "telemetry.sdk.name"} {
			rs.Resource().Attributes().PutStr(key, "some value of it")
		}
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("nemo.lens")
		for step := range 5 {
			for i, name := range names {
				s := ss.Spans().AppendEmpty()
				s.SetName(name)
				s.SetTraceID(pcommon.TraceID{1, byte(step), byte(i)})
				s.SetSpanID(pcommon.SpanID{2, byte(step), byte(i)})
				s.SetParentSpanID(pcommon.SpanID{3})
				s.SetKind(ptrace.SpanKindInternal)
				s.SetStartTimestamp(pcommon.Timestamp(1_700_000_000_000_000_000 + step*100 + i))
				s.SetEndTimestamp(1_700_000_000_100_000_000)
				s.SetFlags(0x103)
				switch i {
				case 0:
					s.Attributes().PutInt("num_microbatches", 8)
				case 1:
					s.Attributes().PutBool("megatron.update_successful", true)
				case 2:
					s.Attributes().PutInt("megatron.iteration", int64(1000+step))
					s.Attributes().PutBool("megatron.skipped", false)
				}
			}
		}
	}
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	require.NoError(t, err)
	var request coltracepb.ExportTraceServiceRequest
	require.NoError(t, proto.Unmarshal(body, &request))
	body, err = proto.Marshal(&request)
	require.NoError(t, err)
	return body, td.SpanCount()
}

// What it costs the gate that somebody looks at the runs: gRPC requests of which all is dropped, as they come from a
// connection and until they are answered; with and without, turn by turn.
func BenchmarkWatched(b *testing.B) {
	for _, shape := range []struct {
		name         string
		microbatches int
	}{{"pipeline stages, 8 microbatches", 8}, {"no pipeline stages", 0}} {
		b.Run(shape.name, func(b *testing.B) {
			g, _ := newTestGate(b, "{}")
			c := &codec{CodecV2: encoding.GetCodecV2(grpcproto.Name), gate: g}
			calls := &callStats{codec: c}
			const frame = 16 << 10 // of HTTP/2
			var data mem.BufferSlice
			body, spans := perStep(b, shape.microbatches)
			for part := range slices.Chunk(body, frame) {
				data = append(data, mem.SliceBuffer(part))
			}
			const requests = 100
			turn := func() float64 {
				begin := time.Now()
				for range requests {
					message := reflect.New(tracesMessage.Elem()).Interface()
					ctx := calls.TagRPC(b.Context(), nil)
					require.NoError(b, c.Unmarshal(data, message))
					calls.HandleRPC(ctx, &stats.InPayload{Payload: message})
					calls.HandleRPC(ctx, &stats.End{})
				}
				return float64(time.Since(begin)) / requests / float64(spans)
			}
			without, with := math.Inf(1), math.Inf(1) // the fastest turns: nobody else disturbed them
			for b.Loop() {
				without = min(without, turn())
				_, leave := runview.Join()
				with = min(with, turn())
				leave()
			}
			b.ReportMetric(without, "ns/span")
			b.ReportMetric(with, "ns/span-watched")
			b.ReportMetric(100*(with/without-1), "%")
			b.ReportMetric(0, "ns/op")
		})
	}
}
