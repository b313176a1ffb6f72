// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

// FuzzShape shapes hostile batches. Whatever comes in, Weave takes every request and shows every span that has ids and a project.
func FuzzShape(f *testing.F) {
	for seed := range byte(40) {
		f.Add([]byte{seed, seed * 7, seed * 31, seed ^ 0x55, 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6})
	}
	f.Add([]byte("\x27\x5b\x28\x58\xe8\x75\xc5\x57\x0d\xfd\xa6\x19\x5e\x79\x88\x1f\x26\x0d\x5d\xd7\xfa\x62\xef\x6b")) // a long name that is a reference, to Agents
	f.Add([]byte("\x90\x2d\xe0\xe8\x55\x17\x37\xaa\x0b"))                                                             // a run of another project that a small budget drops
	f.Fuzz(func(t *testing.T, data []byte) {
		d := dice{data, uint64(len(data))}
		o := d.options()
		checkShape(t, o, d.traces())
	})
}

// FuzzShapeBytes does the same with batches as they come from a wire.
func FuzzShapeBytes(f *testing.F) {
	for seed := range byte(8) {
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces((&dice{[]byte{seed, 1, 2, 3, 4, 5, 6, 7}, 1}).traces())
		require.NoError(f, err)
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(body)
		if err != nil {
			t.Skip("no message of OTLP")
		}
		o := DefaultOptions()
		o.Target = Target{"e", "p"}
		checkShape(t, o, td)
	})
}

func checkShape(t *testing.T, o Options, td ptrace.Traces) {
	before := marshal(t, td)
	got := shaped(t, o, td)
	require.Equal(t, before, marshal(t, td), "the batch was changed")
	require.Equal(t, bodies(got), bodies(shaped(t, o, td)), "not deterministic")

	s, err := New(o)
	require.NoError(t, err)
	s.always = true
	require.Equal(t, bodies(got), bodies(s.Shape(td)), "the two ways differ")

	spans := got.Dropped.Sum()
	ids := map[string]bool{}
	for _, r := range got.Requests {
		spans += r.Spans
		body := r.AppendTo(nil)
		require.Len(t, body, r.Bytes)
		require.LessOrEqual(t, r.Bytes, o.RequestBytes)
		checkAccepted(t, r, body)
		checkIDs(t, o, r, ids)
		checkIdempotent(t, o, r, body)
		checkSplit(t, r)
	}
	require.Equal(t, td.SpanCount(), spans)
	require.Zero(t, got.Dropped[TooLarge])
}

func checkAccepted(t *testing.T, r Request, body []byte) {
	path := weavetest.CallsPath
	if r.Endpoint == Agents {
		path = weavetest.AgentsPath
	}
	verdict := weavetest.Judge(path, body)
	require.Equal(t, r.Spans, verdict.Spans)
	if problem := verdict.Problem(); problem != "" && !strings.Contains(problem, "overwrote") {
		require.Fail(t, problem)
	}
}

func checkIDs(t *testing.T, o Options, r Request, ids map[string]bool) {
	td, err := r.Traces()
	require.NoError(t, err)
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				id := r.Target.String() + s.SpanID().String()
				require.False(t, s.SpanID().IsEmpty() || s.TraceID().IsEmpty())
				require.False(t, ids[id] && o.DuplicateIDs == DuplicatesRewrite, "two spans with one id")
				ids[id] = true
			}
		}
	}
}

// checkIdempotent shapes r again. With two spans of one id, whose child is whose depends on what else is in the batch: ids have to be rewritten.
func checkIdempotent(t *testing.T, o Options, r Request, body []byte) {
	if o.DuplicateIDs != DuplicatesRewrite {
		return
	}
	td, err := r.Traces()
	require.NoError(t, err)
	again := shaped(t, o, td)
	require.Len(t, again.Requests, 1)
	require.Zero(t, again.Dropped.Sum())
	if string(body) != string(again.Requests[0].AppendTo(nil)) {
		td2, err := again.Requests[0].Traces()
		require.NoError(t, err)
		requireSame(t, asJSON(t, td), asJSON(t, td2))
		require.Fail(t, "not idempotent in bytes")
	}
}

// requireSame shows where two long texts part.
func requireSame(t *testing.T, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	around := func(s string) string { return s[max(0, at-200):min(len(s), at+200)] }
	require.Fail(t, "not idempotent", "once:  %q\ntwice: %q", around(want), around(got))
}

func checkSplit(t *testing.T, r Request) {
	first, second, ok := r.Split()
	require.Equal(t, r.Spans > 1, ok)
	if !ok {
		return
	}
	require.Equal(t, r.Spans, first.Spans+second.Spans)
	require.LessOrEqual(t, second.Spans-first.Spans, 1)
	whole := spanBytes(t, r)
	require.Equal(t, whole, append(spanBytes(t, first), spanBytes(t, second)...))
	require.Len(t, first.AppendTo(nil), first.Bytes)
	require.Len(t, second.AppendTo(nil), second.Bytes)
}

// dice make choices of bytes, and go on by themselves when these have run out.
type dice struct {
	data  []byte
	state uint64
}

func (d *dice) roll(n int) int {
	if len(d.data) > 0 {
		d.state = d.state*31 + uint64(d.data[0])
		d.data = d.data[1:]
	}
	d.state = d.state*6364136223846793005 + 1442695040888963407
	return int(d.state >> 33 % uint64(n))
}

func pick[T any](d *dice, of ...T) T { return of[d.roll(len(of))] }

func (d *dice) options() Options {
	o := DefaultOptions()
	o.Target = pick(d, Target{"e", "p"}, Target{"e", "p"}, Target{})
	o.Mode = pick(d, ModeCalls, ModeCalls, ModeAuto, ModeAgents)
	o.RunID = pick(d, "", "run1")
	o.StepOffset = int64(d.roll(2))
	o.RunIDFrom = pick(d, []string{"wandb.run.id"}, []string{"wandb.run.id", "dl.rank", "input"})
	o.Threads = pick(d, ThreadsOff, ThreadsRun, ThreadsRank)
	o.DuplicateIDs = pick(d, DuplicatesRewrite, DuplicatesRewrite, DuplicatesCount, DuplicatesOff)
	o.DisplayName = pick(d, "", "{name} {step} r{rank} {attr:a}")
	o.TemplateNames = d.roll(2) == 0
	o.SpanBytes = pick(d, MinSpanBytes, DefaultSpanBytes)
	o.RequestBytes = pick(d, 2*MinSpanBytes, DefaultRequestBytes)
	return o
}

func (d *dice) traces() ptrace.Traces {
	td := ptrace.NewTraces()
	for range d.roll(4) {
		rs := td.ResourceSpans().AppendEmpty()
		rs.SetSchemaUrl(pick(d, "", "https://s", d.text()))
		if d.roll(4) > 0 {
			rs.Resource().Attributes().PutStr("service.name", pick(d, "a", "b"))
			rs.Resource().Attributes().PutInt("dl.rank", int64(d.roll(3)))
		}
		if d.roll(2) > 0 {
			rs.Resource().Attributes().PutStr("wandb.entity", pick(d, "e", "f"))
			rs.Resource().Attributes().PutStr("wandb.project", pick(d, "p", "q"))
		}
		d.attrs(rs.Resource().Attributes())
		for range d.roll(3) {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(d.text())
			ss.Scope().SetVersion(d.text())
			d.attrs(ss.Scope().Attributes())
			for range d.roll(6) {
				d.span(ss.Spans().AppendEmpty())
			}
		}
	}
	return repeatKeys(td)
}

func (d *dice) span(s ptrace.Span) {
	s.SetTraceID(pcommon.TraceID{byte(d.roll(3))})
	s.SetSpanID(pcommon.SpanID{byte(d.roll(8))})
	s.SetParentSpanID(pcommon.SpanID{byte(d.roll(8))})
	s.SetName(pick(d, "span", "step_12", "a:b(c)[d]#@,", "", "\U0001f600", "İ", "日本語", "POST /run", strings.Repeat("x", 300), strings.Repeat("é.", 3000), d.text()))
	s.SetKind(ptrace.SpanKind(pick(d, 0, 1, 5, 6, -1, 99)))
	s.Status().SetCode(ptrace.StatusCode(pick(d, 0, 1, 2, 3, -7)))
	s.Status().SetMessage(d.text())
	s.TraceState().FromRaw(d.text())
	s.SetStartTimestamp(pcommon.Timestamp(pick[uint64](d, 0, 5, 1<<62, math.MaxUint64)))
	s.SetEndTimestamp(pcommon.Timestamp(pick[uint64](d, 0, 3, 1<<62+1, math.MaxUint64)))
	s.SetFlags(uint32(d.roll(1000)))
	d.attrs(s.Attributes())
	for range d.roll(3) {
		e := s.Events().AppendEmpty()
		e.SetName(d.text())
		d.attrs(e.Attributes())
	}
	for range d.roll(3) {
		l := s.Links().AppendEmpty()
		l.SetTraceID(pcommon.TraceID{byte(d.roll(3))})
		l.SetSpanID(pcommon.SpanID{byte(d.roll(8))})
		d.attrs(l.Attributes())
	}
}

var hostileKeys = func() []string {
	keys := []string{
		"", ".", "a", "a.b", "a.b.c", "a.", ".a", "a..b", "a._value", "rl.reward", "rl.reward.mean", "dl.rank", "dl", "dl.iteration", "dl.iteration.x",
		"megatron.iteration", "rl.step", "wandb", "wandb.attributes", "wandb.attributes.a", "wandb.attributes.dl", "wandb.attributes.dl.rank.x",
		"wandb.run.id", "wandb.entity", "wandb.entity.x", "wandb.project", "gen_ai", "gen_ai.usage", "gen_ai.usage.input_tokens.cached", "gen_ai.agent.name",
		"gen_ai.operation.name", "gen_ai.prompt", "gen_ai.prompt.0.role", "gen_ai.input.messages", "input", "input.value", "output.value", "llm", "k\xff", "k\xfe",
		"lenscol", "lenscol.original", "lenscol.original.name", "lenscol.original.wandb.wb_run_id", "lenscol.truncated.a", "a_repeated", "nemo.run.id",
		"dl.rang", "dl.rank", "a1", "a2", "input.valuf", "wandb.wb_run_iz", "wandb.wb_run_id", "otel.scope.name", "host.name", "service.name", "service", "final_result", "weave.span.kind", strings.Repeat("d.", 200), strings.Repeat("k", 3000),
	}
	for _, key := range slices.Sorted(maps.Keys(typedKeys)) {
		keys = append(keys, key, key+".x")
	}
	return keys
}()

func (d *dice) attrs(m pcommon.Map) {
	n := d.roll(8)
	if d.roll(40) == 0 {
		n = 200
	}
	for range n {
		key := hostileKeys[d.roll(len(hostileKeys))]
		d.value(m.PutEmpty(key), 0)
	}
}

// repeatedKeys are keys that become others in the encoded form, of the same length: pdata writes no key twice, but reads it.
var repeatedKeys = []string{"\x07dl.rang", "\x07dl.rank", "\x02a1", "\x02a2", "\x0binput.valuf", "\x0binput.value", "\x0fwandb.wb_run_iz", "\x0fwandb.wb_run_id"}

func repeatKeys(td ptrace.Traces) ptrace.Traces {
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(repeatedKeys); i += 2 {
		body = bytes.ReplaceAll(body, []byte(repeatedKeys[i]), []byte(repeatedKeys[i+1]))
	}
	out, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(body)
	if err != nil {
		panic(err)
	}
	return out
}

func (d *dice) text() string {
	return pick(d,
		"", "x", "text", "7", "-3", "1.5", "e/p/run9", "other/p/run9", "a:b", "NaN", "\xff\xfe", "é", "日本", "\U0001f600", "\x00\x01", `{"a":1}`, `{"a":NaN}`, `[1,`,
		`[1e999, "NaN"]`, `{"model": 5, "wb_run_step": 4, "display_name": [1]}`, `{"reward":1}`, `["a\ud83d"]`, "[INFO] done", "{}", "[]",
		"weave:///e/p/object/o:v", "weave:///f/q/x", "weave-trace-internal:///x/y", "see weave:///x", `"weave:///x"`, ` ["weave:///e/p/x"]`, `["weave:///f/p/x"]`,
		`{"weave:///x":"[\"weave:///e/p/x\"]"}`, `{"a":"[\"weave:///x\"]"}`, `["weave:\/\/\/e\/p\/x"]`, `{"a":"\u0077eave:///x"}`, `["[\"weave-trace-internal:\/\/\/x\"]"]`,
		`{"b":"`+strings.Repeat("[", 300)+`\"see weave:///x\"`+strings.Repeat("]", 300)+`"}`, `["weave:///x", NaN]`, "weave:///e/p/"+strings.Repeat("x", 30000),
		strings.Repeat("[", 3000)+strings.Repeat("]", 3000), strings.Repeat("[", 100000), strings.Repeat(`{"a":`, 80)+"1"+strings.Repeat("}", 80),
		"["+strings.Repeat("9", 5000)+"]", strings.Repeat("9", 5000), " "+strings.Repeat("[", 3000)+strings.Repeat("]", 3000),
		strings.Repeat("long text ", 5000), strings.Repeat("\x01", 30000), strings.Repeat("漢", 20000), `{"x":"`+strings.Repeat("y", 40000)+`"}`,
	)
}

func (d *dice) value(v pcommon.Value, depth int) {
	switch d.roll(12) {
	case 0:
	case 1:
		v.SetBool(d.roll(2) > 0)
	case 2, 3:
		v.SetInt(pick[int64](d, 0, 1, 7, -1, math.MaxInt64, math.MinInt64))
	case 4:
		v.SetDouble(pick(d, 0, 3, 3.5, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 1e-300))
	case 5:
		v.SetEmptyBytes().FromRaw(binary.LittleEndian.AppendUint64(nil, uint64(d.roll(1<<20))))
	case 6:
		if d.roll(20) == 0 {
			v.SetEmptyBytes().FromRaw(make([]byte, 50000))
			return
		}
		list := v.SetEmptySlice()
		for range d.roll(4) {
			d.nested(list.AppendEmpty(), depth)
		}
	case 7:
		m := v.SetEmptyMap()
		for range d.roll(4) {
			key := pick(d, "a", "b", "", "k\xff", "k\xfe", "model", "wb_run_id", "wb_run_step", "display_name", "x.y", "input_tokens", "attributes", "usage")
			d.nested(m.PutEmpty(key), depth)
		}
	case 8:
		for range pick(d, 1, 10, 30, 60) {
			v = v.SetEmptySlice().AppendEmpty()
		}
		v.SetStr("deep")
	default:
		v.SetStr(d.text())
	}
}

func (d *dice) nested(v pcommon.Value, depth int) {
	if depth < 4 {
		d.value(v, depth+1)
	}
}
