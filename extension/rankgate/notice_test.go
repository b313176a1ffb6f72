// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/runview"
	"github.com/lenscol/lenscol/sdk/rank"
)

// watched is what the runs look like after the gate has dropped what it drops of requests, and after they were decoded.
type watched struct {
	gate            *gate
	byGate, byPdata *runview.Model
	feeds           [ranks.Signals]runview.Feed
}

func newWatched(t testing.TB, yaml string) *watched {
	_, leave := runview.Join() // So that the gate looks.
	t.Cleanup(leave)
	g, _ := newTestGate(t, yaml)
	w := &watched{gate: g, byGate: runview.New(), byPdata: runview.New()}
	for signal := range ranks.Signals {
		w.feeds[signal] = runview.NewFeed(signal)
	}
	return w
}

// check has both see a request. The gate must drop all of it, or refuse it where pdata does.
func (w *watched) check(t testing.TB, signal ranks.Signal, request []byte) {
	_, err := decode(signal, request)
	w.gate.sift(signal, pieces(request), func(kept []byte, o outcome) {
		if err != nil {
			require.Nil(t, o.report, "%x", request)
			return
		}
		w.byGate.Apply(w.gate.feeds[signal], o.report)
		w.gate.settle(t.Context(), o, false)
	})
	if err != nil {
		return
	}
	report := runview.NewReport()
	defer report.Release()
	switch signal {
	case ranks.Traces:
		r := ptraceotlp.NewExportRequest()
		require.NoError(t, r.UnmarshalProto(request))
		report.Traces(r.Traces())
	case ranks.Metrics:
		r := pmetricotlp.NewExportRequest()
		require.NoError(t, r.UnmarshalProto(request))
		report.Metrics(r.Metrics())
	default:
		r := plogotlp.NewExportRequest()
		require.NoError(t, r.UnmarshalProto(request))
		report.Logs(r.Logs())
	}
	w.byPdata.Apply(w.feeds[signal], report)
	require.Equal(t, look(t, w.byPdata), look(t, w.byGate), "%x", request)
}

// look is all that a model shows, but for when, and that the gate dropped it.
func look(t testing.TB, m *runview.Model) []runview.RunDetail {
	details := []runview.RunDetail{}
	for _, run := range m.Runs().Runs {
		d, ok := m.Run(run.ID, runview.RecentSteps, rank.Unknown)
		require.True(t, ok)
		d.Time, d.FirstSeen, d.LastSeen, d.Dropped, d.DroppedBy = time.Time{}, time.Time{}, time.Time{}, 0, nil
		clear(d.Rows.LastSeen)
		clear(d.Rows.Dropped)
		for i := range d.Services {
			d.Services[i].LastSeen, d.Services[i].Dropped = time.Time{}, 0
		}
		for _, list := range [][]runview.Rank{d.Slowest, d.Behind, d.SilentRanks} {
			for i := range list {
				list[i].LastSeen = time.Time{}
			}
		}
		details = append(details, d)
	}
	slices.SortFunc(details, func(a, b runview.RunDetail) int { return strings.Compare(a.ID, b.ID) })
	return details
}

const dropAll = "{strategy: ranks, ranks: '2147483646', missing: drop}"

// What the gate sees in bytes is what is seen after decoding them: in real requests, in requests as no SDK makes them, and
// in steps of which fields come in any order and more than once.
func TestWhatIsDroppedIsSeenAsDecoded(t *testing.T) {
	for signal := range ranks.Signals {
		w := newWatched(t, dropAll)
		w.check(t, signal, request(t, signal, 8))
		for name, special := range special(t, signal) {
			t.Log(name)
			w.check(t, signal, special)
		}
		for _, c := range captures(t) {
			if c.signal == signal && !c.json {
				w.check(t, signal, c.body)
			}
		}
		require.NotEmpty(t, w.byGate.Runs().Runs)
	}
	w := newWatched(t, dropAll)
	steps := 0
	for _, body := range stepRequests(t) {
		w.check(t, ranks.Traces, body)
		steps++
	}
	require.Greater(t, steps, 1000)
	for _, run := range w.byGate.Runs().Runs {
		require.Positive(t, run.FrontStep)
		require.Positive(t, run.StepSeconds)
	}
}

// Items that pass from a dropped rank are left to those who see them later, with their errors.
func TestWhatPassesIsNotReported(t *testing.T) {
	for yaml, want := range map[string]map[ranks.Signal]runview.Items{
		"{strategy: ranks, ranks: '999'}": {
			ranks.Traces: {Spans: 24, Errors: 8, Dropped: 24}, ranks.Metrics: {Points: 48, Dropped: 48}, ranks.Logs: {Records: 24, Errors: 16, Dropped: 24},
		},
		"{strategy: ranks, ranks: '999', keep_errors: true}": {
			ranks.Traces: {Spans: 16, Dropped: 16}, ranks.Logs: {Records: 8, Dropped: 8},
		},
		"{strategy: ranks, ranks: '999', keep_names: ['*checkpoint*']}": {ranks.Traces: {Spans: 16, Errors: 8, Dropped: 16}},
		"{strategy: ranks, ranks: '999', keep_names: ['backward']}":     {ranks.Traces: {Spans: 16, Dropped: 16}},
		"{strategy: ranks, ranks: '0-6'}":                               {ranks.Traces: {Spans: 3, Errors: 1, Dropped: 3}},
	} {
		for signal, want := range want {
			w := newWatched(t, yaml)
			w.gate.sift(signal, pieces(request(t, signal, 8)), func(_ []byte, o outcome) {
				w.byGate.Apply(w.gate.feeds[signal], o.report)
				w.gate.settle(t.Context(), o, false)
			})
			runs := w.byGate.Runs().Runs
			require.Len(t, runs, 1)
			require.Equal(t, want, runs[0].Items, "%s %d", yaml, signal)
			require.Equal(t, []runview.DroppedBy{{Strategy: "ranks", Items: want.Dropped}}, runs[0].DroppedBy)
		}
	}
}

// What is refused shows nothing, for it comes again; and the run is the one that run_id_enricher will give the rank.
func TestRefusedIsNotSeen(t *testing.T) {
	model, leave := runview.Join()
	defer leave()
	defer runview.SetCompleter(func(attrs pcommon.Map) { attrs.PutStr("nemo.run.id", t.Name()) })()
	g, _ := newTestGate(t, dropAll)
	for _, accepted := range []bool{false, true} {
		g.sift(ranks.Traces, pieces(request(t, ranks.Traces, 2)), func(_ []byte, o outcome) { g.settle(t.Context(), o, accepted) })
		run, seen := model.Run(t.Name(), 0, rank.Unknown)
		require.Equal(t, accepted, seen)
		if seen {
			require.Equal(t, []int64{3, 3}, run.Rows.Spans)
		}
	}
}

// stepRequests are requests of one span each whose fields are drawn: in rising, falling and random order, missing, and twice.
func stepRequests(t testing.TB) (out [][]byte) {
	random := rand.New(rand.NewPCG(1, 2))
	field := func(number int, content string) []byte { return appendField(nil, number, []byte(content)) }
	fixed := func(number int, value uint64) []byte {
		return binary.LittleEndian.AppendUint64([]byte{byte(number<<3 | wireFixed64)}, value)
	}
	value := func() []byte {
		switch random.IntN(7) {
		case 0:
			return nil
		case 1:
			return field(1, "text")
		case 2:
			return fixed(fieldDouble, math.Float64bits(float64(random.IntN(50))))
		case 3:
			return append(binary.AppendUvarint([]byte{fieldInt << 3}, uint64(random.IntN(500))), field(1, "and a text")...)
		default:
			return binary.AppendUvarint([]byte{fieldInt << 3}, uint64(random.IntN(500)))
		}
	}
	attribute := func() []byte {
		key := []string{"nv.dl.training.step", "megatron.iteration", "dl.iteration", "rl.step", "rl.iteration", "megatron.skipped", "x"}[random.IntN(7)]
		parts := [][]byte{field(fieldKey, key), appendField(nil, fieldValue, value())}
		switch random.IntN(8) {
		case 0:
			slices.Reverse(parts)
		case 1:
			parts = append(parts, appendField(nil, fieldValue, value()), field(fieldKey, "megatron.iteration"))
		case 2:
			parts = parts[:1]
		}
		return field(fieldSpanAttribute, string(slices.Concat(parts...)))
	}
	name := func() []byte {
		names := []string{"megatron.train.iteration", "nv.dl.training.iteration", "megatron.train_step", "rl.grpo.step", "megatron.grad_sync.start", "", "r"}
		return field(fieldSpanName, names[min(random.IntN(12), len(names)-1)])
	}
	for i := range 6000 {
		start := uint64(1e18) + uint64(i)*1e9
		parts := [][]byte{
			field(1, "0123456789abcdef"), field(2, "01234567"), field(4, "01234567"), name(), {6 << 3, 1},
			fixed(fieldSpanStart, start), fixed(fieldSpanEnd, start+uint64(random.Int64N(2e9))), attribute(), attribute(),
			{fieldSpanStatus<<3 | wireLen, 0}, {0x85, 1, 1, 0, 0, 0},
		}
		for range random.IntN(3) {
			more := [][]byte{
				name(), attribute(), fixed(fieldSpanStart, start-3e8), fixed(fieldSpanEnd, start+5e8), {fieldSpanStatus<<3 | wireLen, 2, 0x18, byte(random.IntN(4))},
				field(11, string(field(2, "megatron.train.iteration"))), {0x98, 0x06, 0x2a}, field(3, "state"),
			}
			parts = slices.Insert(parts, random.IntN(len(parts)), more[random.IntN(len(more))])
		}
		for range random.IntN(2) {
			at := random.IntN(len(parts))
			parts = slices.Delete(parts, at, at+1)
		}
		switch random.IntN(3) {
		case 0:
			slices.Reverse(parts)
		case 1:
			random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		}
		out = append(out, ofRank(appendField(nil, fieldItem, slices.Concat(parts...))))
	}
	return out
}

// ofRank is a request of one rank with one scope.
func ofRank(scope []byte) []byte {
	resource := appendField(nil, 1, append(appendField(nil, 1, []byte("nemo.run.id")), appendField(nil, 2, appendField(nil, 1, []byte("r")))...))
	resource = append(resource, appendField(nil, 1, append(appendField(nil, 1, []byte("dl.rank")), appendField(nil, 2, []byte{0x18, 3})...))...)
	return appendField(nil, fieldResourceItems, append(appendField(nil, fieldResource, resource), appendField(nil, fieldScope, scope)...))
}

// FuzzNotice: the gate's own reader of steps, errors and counts, with pdata as its judge.
func FuzzNotice(f *testing.F) {
	for i, body := range stepRequests(f) {
		if i%300 == 0 {
			each(body, func(_ int32, _, content []byte) {
				each(content, func(number int32, _, content []byte) {
					if number == fieldScope {
						f.Add(uint8(ranks.Traces), content)
					}
				})
			})
		}
	}
	for signal := range ranks.Signals {
		each(request(f, signal, 1), func(_ int32, _, content []byte) {
			each(content, func(number int32, _, content []byte) {
				if number == fieldScope {
					f.Add(uint8(signal), content)
				}
			})
		})
	}
	f.Fuzz(func(t *testing.T, signal uint8, scope []byte) {
		w := newWatched(t, dropAll)
		w.check(t, ranks.Signal(signal)%ranks.Signals, ofRank(scope))
	})
}

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
	return inOrder(t, td), td.SpanCount()
}

// inOrder is a request whose fields are in the order of their numbers, as protobuf's own encoders write them. pdata writes the last one first.
func inOrder(t testing.TB, td ptrace.Traces) []byte {
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	require.NoError(t, err)
	var request coltracepb.ExportTraceServiceRequest
	require.NoError(t, proto.Unmarshal(body, &request))
	body, err = proto.Marshal(&request)
	require.NoError(t, err)
	return body
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
			const requests = 10 // a turn: short, so that some are not disturbed
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
