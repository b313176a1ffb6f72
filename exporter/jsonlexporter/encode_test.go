// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func allIdentity() identityMembers { return identityMembers{run: true, rank: true, service: true} }

func addTraces(c *chunk, l layout, td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		l.addSpans(c, rs)
	}
}

// lines is what a file would hold: each part's definitions where they are new, then its records.
func lines(t *testing.T, inline bool, encode func(*chunk, layout)) []byte {
	t.Helper()
	c := newChunk()
	encode(c, &compact{inline: inline, members: allIdentity()})
	w := &writer{file: activeFile{generation: 1}}
	start := 0
	for _, p := range c.parts {
		w.define(p.scope)
		w.out = append(w.out, c.buf[start:p.end]...)
		start = p.end
	}
	for line := range bytes.Lines(w.out) {
		require.True(t, json.Valid(line), "%s", line)
	}
	return w.out
}

// fullTraces sets every field of a span that OTLP has, once to something and once to nothing.
func fullTraces() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.SetSchemaUrl("https://opentelemetry.io/schemas/1.29.0")
	rs.Resource().SetDroppedAttributesCount(1)
	attrs := rs.Resource().Attributes()
	attrs.PutStr("service.name", "megatron")
	attrs.PutStr("nemo.run.id", "run-7")
	attrs.PutStr("dl.rank", "3")
	ref := entity.ResourceEntityRefs(rs.Resource()).AppendEmpty()
	ref.SetSchemaUrl("https://example.com/entities")
	ref.SetType("service")
	ref.IdKeys().Append("service.name")
	ref.DescriptionKeys().Append("dl.rank", "nemo.run.id")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.SetSchemaUrl("https://example.com/scope")
	ss.Scope().SetName("nemo.lens")
	ss.Scope().SetVersion("0.2.0")
	ss.Scope().SetDroppedAttributesCount(2)
	ss.Scope().Attributes().PutBool("x", true)

	s := ss.Spans().AppendEmpty()
	s.SetName("megatron.train.iteration")
	s.SetTraceID(pcommon.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	s.SetSpanID(pcommon.SpanID{0xa1, 2, 3, 4, 5, 6, 7, 8})
	s.SetParentSpanID(pcommon.SpanID{0xb1, 2, 3, 4, 5, 6, 7, 8})
	s.SetKind(ptrace.SpanKindServer)
	s.SetStartTimestamp(1_795_969_468_000_000_001)
	s.SetEndTimestamp(1_795_969_468_000_000_003)
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage("CUDA error: \"out of memory\"\n")
	s.TraceState().FromRaw("a=1,b=2")
	s.SetFlags(0x103)
	s.SetDroppedAttributesCount(3)
	s.SetDroppedEventsCount(4)
	s.SetDroppedLinksCount(5)
	a := s.Attributes()
	a.PutInt("max", math.MaxInt64)
	a.PutInt("min", math.MinInt64)
	a.PutDouble("one", 1)
	a.PutDouble("minus zero", math.Copysign(0, -1))
	a.PutDouble("nan", math.NaN())
	a.PutDouble("inf", math.Inf(1))
	a.PutDouble("-inf", math.Inf(-1))
	a.PutBool("no", false)
	a.PutEmpty("unset")
	a.PutEmptyBytes("bytes").FromRaw([]byte{0, 255})
	a.PutStr("text", "NUL \x00 tab \t é \u2028 \u0085 \U0001F680 \x7f")
	list := a.PutEmptySlice("list")
	list.AppendEmpty().SetInt(1)
	list.AppendEmpty().SetStr("b")
	list.AppendEmpty()
	inner := a.PutEmptyMap("map")
	inner.PutEmptyMap("at").PutStr("@bytes", "not bytes")
	inner.PutEmptyMap("empty")
	inner.PutStr("@other", "two keys need no escape")
	event := s.Events().AppendEmpty()
	event.SetName("exception")
	event.SetTimestamp(1_795_969_468_000_000_002)
	event.SetDroppedAttributesCount(6)
	event.Attributes().PutStr("exception.type", "RuntimeError")
	s.Events().AppendEmpty()
	link := s.Links().AppendEmpty()
	link.SetTraceID(pcommon.TraceID{0xff})
	link.SetSpanID(pcommon.SpanID{0xee})
	link.TraceState().FromRaw("c=3")
	link.SetFlags(0x301)
	link.SetDroppedAttributesCount(7)
	link.Attributes().PutStr("why", "previous block")
	s.Links().AppendEmpty()

	for _, kind := range []ptrace.SpanKind{ptrace.SpanKindUnspecified, ptrace.SpanKindInternal, ptrace.SpanKindClient, ptrace.SpanKindProducer, ptrace.SpanKindConsumer, 9, -1} {
		ss.Spans().AppendEmpty().SetKind(kind)
	}
	odd := ss.Spans().AppendEmpty()
	odd.SetName("ends before it starts")
	odd.SetStartTimestamp(10)
	odd.SetEndTimestamp(3)
	odd.Status().SetCode(ptrace.StatusCodeOk)
	far := ss.Spans().AppendEmpty()
	far.SetName("duration beyond 64 bits")
	far.SetEndTimestamp(math.MaxUint64)
	far.Status().SetCode(7)
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("no resource, no scope")
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	return td
}

func fullMetrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "run-7-rank12")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	exemplars := func(list pmetric.ExemplarSlice) {
		x := list.AppendEmpty()
		x.SetTimestamp(5)
		x.SetDoubleValue(2)
		x.SetTraceID(pcommon.TraceID{1})
		x.SetSpanID(pcommon.SpanID{2})
		x.FilteredAttributes().PutInt("step", 3)
		list.AppendEmpty().SetIntValue(0)
		list.AppendEmpty()
	}
	gauge := metrics.AppendEmpty()
	gauge.SetName("megatron.training.loss")
	gauge.SetDescription("loss")
	gauge.SetUnit("1")
	gauge.Metadata().PutStr("prometheus.type", "gauge")
	points := gauge.SetEmptyGauge().DataPoints()
	p := points.AppendEmpty()
	p.SetTimestamp(9)
	p.SetDoubleValue(0)
	p.Attributes().PutStr("k", "v")
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	exemplars(p.Exemplars())
	points.AppendEmpty().SetIntValue(-1)
	points.AppendEmpty()
	sum := metrics.AppendEmpty()
	sum.SetName("skipped")
	sum.SetEmptySum().SetIsMonotonic(true)
	sum.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	sum.Sum().DataPoints().AppendEmpty().SetIntValue(1)
	histogram := metrics.AppendEmpty()
	histogram.SetName("duration")
	histogram.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	h := histogram.Histogram().DataPoints().AppendEmpty()
	h.SetStartTimestamp(1)
	h.SetTimestamp(2)
	h.SetCount(3)
	h.SetSum(0)
	h.SetMin(0)
	h.SetMax(1.5)
	h.ExplicitBounds().FromRaw([]float64{0, 0.5})
	h.BucketCounts().FromRaw([]uint64{1, 2, math.MaxUint64})
	exemplars(h.Exemplars())
	histogram.Histogram().DataPoints().AppendEmpty()
	exponential := metrics.AppendEmpty()
	exponential.SetEmptyExponentialHistogram().SetAggregationTemporality(9)
	e := exponential.ExponentialHistogram().DataPoints().AppendEmpty()
	e.SetCount(4)
	e.SetScale(-2)
	e.SetZeroCount(1)
	e.SetZeroThreshold(1e-9)
	e.Positive().SetOffset(-3)
	e.Positive().BucketCounts().FromRaw([]uint64{1, 0, 2})
	e.Negative().BucketCounts().FromRaw([]uint64{5})
	exponential.ExponentialHistogram().DataPoints().AppendEmpty()
	summary := metrics.AppendEmpty()
	summary.SetName("latency")
	s := summary.SetEmptySummary().DataPoints().AppendEmpty()
	s.SetCount(10)
	s.SetSum(100)
	q := s.QuantileValues().AppendEmpty()
	q.SetQuantile(0.5)
	q.SetValue(7)
	q = s.QuantileValues().AppendEmpty()
	q.SetQuantile(1)
	q.SetValue(math.NaN())
	metrics.AppendEmpty().SetName("without data")
	return md
}

func fullLogs() plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "nemo-gym/math")
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	r := records.AppendEmpty()
	r.SetTimestamp(1)
	r.SetObservedTimestamp(2)
	r.SetSeverityNumber(plog.SeverityNumberError)
	r.SetSeverityText("ERROR")
	r.SetEventName("gym.failed")
	r.Body().SetEmptyMap().PutStr("@key", "only")
	r.SetTraceID(pcommon.TraceID{1})
	r.SetSpanID(pcommon.SpanID{2})
	r.SetFlags(1)
	r.SetDroppedAttributesCount(3)
	r.Attributes().PutInt("code.line.number", 42)
	records.AppendEmpty()
	records.AppendEmpty().Body().SetStr("")
	return ld
}

func TestLines(t *testing.T) {
	for _, tt := range []struct {
		name   string
		inline bool
		encode func(*chunk, layout)
	}{
		{"traces.jsonl", false, func(c *chunk, l layout) { addTraces(c, l, fullTraces()) }},
		{"traces-inline.jsonl", true, func(c *chunk, l layout) { addTraces(c, l, fullTraces()) }},
		{"metrics.jsonl", false, func(c *chunk, l layout) { l.addMetrics(c, fullMetrics().ResourceMetrics().At(0)) }},
		{"logs.jsonl", false, func(c *chunk, l layout) { l.addLogs(c, fullLogs().ResourceLogs().At(0)) }},
	} {
		t.Run(tt.name, func(t *testing.T) { golden(t, tt.name, lines(t, tt.inline, tt.encode)) })
	}
}

func TestDoubles(t *testing.T) {
	for _, tt := range []struct {
		f    float64
		want string
	}{
		{0, "0.0"}, {math.Copysign(0, -1), "-0.0"}, {1, "1.0"}, {-1.5, "-1.5"}, {0.1, "0.1"}, {1e6, "1000000.0"}, {1e-6, "0.000001"},
		{9.99e-7, "9.99e-07"}, {1e20, "100000000000000000000.0"}, {1e21, "1e+21"}, {math.MaxFloat64, "1.7976931348623157e+308"},
		{math.SmallestNonzeroFloat64, "5e-324"}, {math.NaN(), `{"@double":"NaN"}`}, {math.Inf(1), `{"@double":"Infinity"}`}, {math.Inf(-1), `{"@double":"-Infinity"}`},
	} {
		require.Equal(t, tt.want, string(appendDouble(nil, tt.f)))
	}
}

// TestRepeatedKeys sends what the wire can carry and pdata's own methods cannot make.
func TestRepeatedKeys(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		keys       []string
	}{
		{"none", `{"a":1,"b":2}`, []string{"a", "b"}},
		{"two", `{"@pairs":[["a",1],["b",2],["a",3]]}`, []string{"a", "b", "a"}},
		{"only one key, twice", `{"@pairs":[["@a",1],["@a",2]]}`, []string{"@a", "@a"}},
		{"empty", `{"@pairs":[["",1],["",2]]}`, []string{"", ""}},
		{"same bit, other key", `{"ab":1,"bb":2,"cb":3}`, []string{"ab", "bb", "cb"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := encoder{}
			require.Equal(t, tt.want, string(e.appendMap(nil, rawMap(t, tt.keys), 1)))
		})
	}
	many := make([]string, 5000)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	e := encoder{}
	require.True(t, bytes.HasPrefix(e.appendMap(nil, rawMap(t, many), 1), []byte(`{"0":1,`)))
	many[4999] = "0"
	require.True(t, bytes.HasPrefix(e.appendMap(nil, rawMap(t, many), 1), []byte(`{"@pairs":[["0",1],`)))
}

// rawMap decodes a map with these keys, whose values count from 1, from a request's JSON.
func rawMap(t *testing.T, keys []string) pcommon.Map {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"resourceSpans":[{"resource":{"attributes":[`)
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"key":` + strconv.Quote(k) + `,"value":{"intValue":"` + strconv.Itoa(i+1) + `"}}`)
	}
	b.WriteString(`]}}]}`)
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(b.String()))
	require.NoError(t, err)
	return td.ResourceSpans().At(0).Resource().Attributes()
}

func TestHostileValues(t *testing.T) {
	for _, tt := range []struct {
		name          string
		repaired, cut int
		key           string
		put           func(pcommon.Map)
		want          func(t *testing.T, line map[string]any)
	}{
		{name: "depth 10,000", cut: 1, key: "deep", put: func(m pcommon.Map) {
			v := m.PutEmpty("deep")
			for range 10_000 {
				v = v.SetEmptySlice().AppendEmpty()
			}
			v.SetStr("bottom")
		}, want: func(t *testing.T, line map[string]any) {
			v, depth := line["deep"], 0
			for {
				list, ok := v.([]any)
				if !ok {
					break
				}
				v, depth = list[0], depth+1
			}
			require.Equal(t, 64, depth)
			require.Equal(t, "[cut: nested deeper than 64]", v)
		}},
		{name: "depth 64 is whole", put: func(m pcommon.Map) {
			v := m.PutEmpty("deep")
			for range 64 {
				v = v.SetEmptyMap().PutEmpty("k")
			}
			v.SetStr("bottom")
		}, want: func(t *testing.T, line map[string]any) {
			v := line["deep"]
			for range 64 {
				v = v.(map[string]any)["k"]
			}
			require.Equal(t, "bottom", v)
		}},
		{name: "20 MB of text", put: func(m pcommon.Map) { m.PutStr("long", strings.Repeat("é\n", 7<<20)) }, want: func(t *testing.T, line map[string]any) {
			require.Len(t, line["long"], 3*7<<20)
		}},
		{name: "not UTF-8", repaired: 2, key: "a", put: func(m pcommon.Map) {
			m.PutStr("a", "x\xff\xfey")
			m.PutStr("b", "\xc3")
		}, want: func(t *testing.T, line map[string]any) {
			require.Equal(t, map[string]any{"a": "x\uFFFD\uFFFDy", "b": "\uFFFD"}, line)
		}},
		{name: "keys that are equal once they are repaired", repaired: 2, key: "k\xff", put: func(m pcommon.Map) {
			m.PutStr("k\xff", "1")
			m.PutStr("k\xfe", "2")
		}, want: func(t *testing.T, line map[string]any) {
			require.Equal(t, map[string]any{"@pairs": []any{[]any{"k\uFFFD", "1"}, []any{"k\uFFFD", "2"}}}, line)
		}},
		{name: "NUL in a name", put: func(m pcommon.Map) { m.PutStr("a\x00b", "\x00") }, want: func(t *testing.T, line map[string]any) {
			require.Equal(t, map[string]any{"a\x00b": "\x00"}, line)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := pcommon.NewMap()
			tt.put(m)
			e := encoder{}
			text := e.appendMap(nil, m, 1)
			require.Equal(t, tt.repaired, e.repaired)
			require.Equal(t, tt.cut, e.cut)
			require.Equal(t, tt.key, e.key)
			var line map[string]any
			require.NoError(t, json.Unmarshal(text, &line))
			tt.want(t, line)
		})
	}
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\\n\r\t\x00\x1f\x7f", "é\u2028\u2029\u0085", "\xff", "a\xc3", "\xed\xa0\x80", "\U0010FFFF"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := encoder{}
		text := e.appendString(nil, s)
		var got string
		require.NoError(t, json.Unmarshal(text, &got), "%s", text)
		want, err := json.Marshal(s)
		require.NoError(t, err)
		var repaired string
		require.NoError(t, json.Unmarshal(want, &repaired))
		require.Equal(t, repaired, got)
		require.Equal(t, !utf8.ValidString(s), e.repaired == 1)
		require.NotContains(t, string(text), "\n")
	})
}

func FuzzDouble(f *testing.F) {
	for _, x := range []float64{0, 1, 0.1, 1e21, 1e-7, math.MaxFloat64} {
		f.Add(math.Float64bits(x))
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		x := math.Float64frombits(bits)
		text := string(appendDouble(nil, x))
		require.True(t, json.Valid([]byte(text)), text)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return
		}
		require.True(t, strings.ContainsAny(text, ".e"), text)
		got, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		require.Equal(t, bits, math.Float64bits(got), text)
	})
}

// TestScopeTableIsBounded sends ever new resources.
func TestScopeTableIsBounded(t *testing.T) {
	scopes := &compact{members: allIdentity()}
	td := numbered(0, 0, 1)
	res := td.ResourceSpans().At(0).Resource().Attributes()
	var first *scope
	seen := map[string]bool{}
	for i := range 300 {
		res.PutStr("filler", strings.Repeat("x", 100<<10)+strconv.Itoa(i))
		c := newChunk()
		addTraces(c, scopes, td)
		require.LessOrEqual(t, scopes.bytes, maxTableBytes)
		line := string(c.parts[0].scope.line)
		require.False(t, seen[line], "an id was given twice")
		seen[line] = true
		if first == nil {
			first = c.parts[0].scope
		}
		c.release()
	}
	require.Contains(t, string(first.resource.line), `"id":1,`)
}

func TestEncodeAllocatesNothingOnceWarm(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and its sync.Pool drops at random")
	}
	td := benchTraces()
	scopes := &compact{members: allIdentity()}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c := newChunk()
		addTraces(c, scopes, td)
		c.release()
	}))
}
