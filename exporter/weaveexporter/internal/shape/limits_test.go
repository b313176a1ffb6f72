// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/hex"
	"math/rand"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

func TestRequirement18_SplitBySize(t *testing.T) {
	const spans = 1600
	td := ptrace.NewTraces()
	random := rand.New(rand.NewSource(1))
	for i := range 4 {
		rs := td.ResourceSpans().AppendEmpty()
		put(rs.Resource().Attributes(), map[string]any{"dl.rank": i, "host.name": "node"})
		ss := rs.ScopeSpans().AppendEmpty()
		for j := range spans / 4 {
			raw := make([]byte, 32<<10)
			random.Read(raw)
			s := newSpan(ss, 1, map[string]any{"input.value": hex.EncodeToString(raw)})
			s.SetSpanID(pcommon.SpanID{byte(i + 1), byte(j >> 8), byte(j)})
		}
	}
	require.Greater(t, len(marshal(t, td)), 100<<20)

	got := shaped(t, options(), td)
	require.Len(t, got.Requests, 4)
	require.Zero(t, got.Rewritten.Sum()+got.Dropped.Sum())
	ids := map[string]int{}
	for i, r := range got.Requests {
		body := r.AppendTo(nil)
		require.Len(t, body, r.Bytes)
		require.Less(t, len(body), DefaultRequestBytes)
		if i < 3 {
			require.Greater(t, len(body), DefaultRequestBytes-(100<<10), "not filled")
		}
		verdict := weavetest.Judge(weavetest.CallsPath, body)
		require.Empty(t, verdict.Problem())
		for _, c := range verdict.Calls {
			ids[c.ID]++
		}
	}
	require.Len(t, ids, spans)
}

func TestRequirement18_Halves(t *testing.T) {
	td := megatron(2, 3)
	got := shaped(t, options(), td)
	require.Len(t, got.Requests, 1)
	want := spanBytes(t, got.Requests[0])
	require.Len(t, want, 48)

	var parts []string
	requests := 0
	var halve func(r Request)
	halve = func(r Request) {
		requests++
		verdict := weavetest.Judge(weavetest.CallsPath, r.AppendTo(nil))
		require.Empty(t, verdict.Problem())
		require.Equal(t, r.Spans, verdict.Spans)
		first, second, ok := r.Split()
		if !ok {
			parts = append(parts, spanBytes(t, r)...)
			return
		}
		halve(first)
		halve(second)
	}
	halve(got.Requests[0])
	require.Equal(t, want, parts)
	require.Equal(t, 2*48-1, requests)
}

func TestRequirement19_SpanBudget(t *testing.T) {
	prompt := strings.Repeat("Schätzung 漢字 \U0001f600 \x01\"quoted\" ", 10<<20/40)
	floats := make([]any, 200_000)
	for i := range floats {
		floats[i] = float64(i) / 3
	}
	for name, fill := range map[string]func(s ptrace.Span){
		"a prompt": func(s ptrace.Span) { s.Attributes().PutStr("input.value", prompt) },
		"bytes":    func(s ptrace.Span) { s.Attributes().PutEmptyBytes("raw").FromRaw([]byte(prompt)) },
		"numbers":  func(s ptrace.Span) { put(s.Attributes(), map[string]any{"weights": floats}) },
		"attributes": func(s ptrace.Span) {
			m := manyKeys(20_000, func(i int) string { return strings.Repeat("k", 100) + strconv.Itoa(i) })
			put(m, s.Attributes().AsRaw())
			m.MoveTo(s.Attributes())
		},
		"JSON":           func(s ptrace.Span) { s.Attributes().PutStr("tokens", "["+strings.Repeat("1,", 840_000)+"1]") },
		"JSON exponents": func(s ptrace.Span) { s.Attributes().PutStr("weights", "["+strings.Repeat("1e15,", 300_000)+"1]") },
		"a status":       func(s ptrace.Span) { s.Status().SetMessage(prompt) },
		"a trace state":  func(s ptrace.Span) { s.TraceState().FromRaw(prompt) },
		"an event":       func(s ptrace.Span) { s.Events().AppendEmpty().Attributes().PutStr("exception.stacktrace", prompt) },
		"a link":         func(s ptrace.Span) { s.Links().AppendEmpty().Attributes().PutStr("x", prompt) },
		"a conversation": func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.conversation.id", prompt) },
		"events": func(s ptrace.Span) {
			for range 20_000 {
				s.Events().AppendEmpty().SetName(strings.Repeat("e", 200))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			td, s := oneSpan(map[string]any{"megatron.iteration": 7, "small": "kept", "gen_ai.usage.input_tokens": 12})
			fill(s)
			calls, got := accepted(t, options(func(o *Options) { o.RunID = "run" }), td)
			require.Empty(t, calls[0].Blanked)
			require.LessOrEqual(t, got.Requests[0].Bytes, DefaultSpanBytes)
			out := sent(t, got)[0]
			require.Greater(t, got.Requests[0].Bytes, DefaultSpanBytes/10, "more was cut than had to be")
			require.True(t, utf8.Valid(jsonOf(t, out)))
			require.Equal(t, []any{s.SpanID(), s.TraceID(), "run", int64(7)}, []any{out.SpanID(), out.TraceID(), calls[0].RunID, *calls[0].Step})
			require.Positive(t, got.Rewritten[Truncated])
			marked := 0
			for key := range out.Attributes().All() {
				if strings.HasPrefix(key, "lenscol.truncated.") || strings.HasPrefix(key, "lenscol.dropped.") {
					marked++
				}
			}
			require.Positive(t, marked)
		})
	}
	td, _ := oneSpan(map[string]any{"input.value": prompt, "note": "kept"})
	calls, got := accepted(t, options(), td)
	out := asMapOf(sent(t, got)[0])
	require.Equal(t, int64(len(prompt)), out["lenscol.truncated.input.value"])
	require.True(t, strings.HasPrefix(prompt, out["input.value"].(string)))
	require.Equal(t, "kept", out["note"])
	require.NotEmpty(t, calls[0].Inputs)
}

// manyKeys is a map of n keys, built in linear time: Put looks at all keys that are there.
func manyKeys(n int, key func(int) string) pcommon.Map {
	var b []byte
	for i := range n {
		b = appendAttrs(b, tagResAttr, []attr{integer(key(i), int64(i))})
	}
	td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(appendBytes(nil, tag(1, length), appendBytes(nil, tag(1, length), b)))
	if err != nil {
		panic(err)
	}
	return td.ResourceSpans().At(0).Resource().Attributes()
}

// Hostile attributes take time in proportion to their number: none of these would end otherwise.
func TestManyAttributes(t *testing.T) {
	const n = 50_000
	for name, key := range map[string]func(int) string{
		"one key":          func(int) string { return "same" },
		"paths":            func(i int) string { return strings.Repeat("a.", i%20) + strconv.Itoa(i/20) },
		"taken names":      func(i int) string { return "a._value" + strconv.Itoa(i) },
		"keys of Weave":    func(i int) string { return "wandb.attributes.dl." + strconv.Itoa(i) },
		"promoted":         func(i int) string { return "dl." + strconv.Itoa(i) },
		"token counts":     func(i int) string { return "gen_ai.usage.input_tokens." + strconv.Itoa(i) },
		"repeated numbers": func(i int) string { return "same" + []string{"", "_repeated" + strconv.Itoa(i)}[i%2] },
	} {
		t.Run(name, func(t *testing.T) {
			td, s := oneSpan(nil)
			manyKeys(n, key).MoveTo(s.Attributes())
			got := shaped(t, options(), td)
			require.Len(t, got.Requests, 1)
			require.LessOrEqual(t, got.Requests[0].Bytes, DefaultSpanBytes)
		})
	}
}

func TestRequirement19_LargeResource(t *testing.T) {
	td, _ := oneSpan(map[string]any{"input.value": strings.Repeat("x", 2<<20)})
	rs := td.ResourceSpans().At(0)
	put(rs.Resource().Attributes(), map[string]any{"env": strings.Repeat("y", 3<<20), "wandb.project": "q"})
	rs.ScopeSpans().At(0).Scope().Attributes().PutStr("z", strings.Repeat("z", 3<<20))
	calls, got := accepted(t, options(), td)
	require.Equal(t, "e/q", calls[0].Project)
	require.LessOrEqual(t, got.Requests[0].Bytes, DefaultSpanBytes*9/8)
}

func TestRequirement25_NoIDs(t *testing.T) {
	td, s := oneSpan(nil)
	ss := td.ResourceSpans().At(0).ScopeSpans().At(0)
	newSpan(ss, 0, nil)
	newSpan(ss, 3, nil).SetTraceID(pcommon.TraceID{})
	calls, got := accepted(t, options(), td)
	require.Len(t, calls, 1)
	require.Equal(t, 2, got.Dropped[NoID])
	require.NotContains(t, string(got.Requests[0].AppendTo(nil)), "\x22\x08\x00\x00\x00\x00\x00\x00\x00\x00", "a parent of zeros")
	require.Equal(t, s.SpanID().String(), calls[0].ID)
}

// twoRanks sends the same ids from two ranks: a root, its child, and a span linked to the child.
func twoRanks(traces ...pcommon.TraceID) ptrace.Traces {
	td := ptrace.NewTraces()
	for rank, trace := range traces {
		rs := td.ResourceSpans().AppendEmpty()
		put(rs.Resource().Attributes(), map[string]any{"dl.rank": rank})
		ss := rs.ScopeSpans().AppendEmpty()
		for id := range byte(3) {
			s := newSpan(ss, 3-id, map[string]any{"rank": rank})
			s.SetTraceID(trace)
			if id < 2 {
				s.SetParentSpanID(pcommon.SpanID{2 - id})
			}
			if id == 0 {
				l := s.Links().AppendEmpty()
				l.SetTraceID(trace)
				l.SetSpanID(pcommon.SpanID{2})
			}
		}
	}
	return td
}

func TestRequirement25_DuplicateIDs(t *testing.T) {
	for name, td := range map[string]ptrace.Traces{
		"in two traces":   twoRanks(pcommon.TraceID{1}, pcommon.TraceID{2}),
		"in one trace":    twoRanks(pcommon.TraceID{1}, pcommon.TraceID{1}),
		"from four ranks": twoRanks(pcommon.TraceID{1}, pcommon.TraceID{1}, pcommon.TraceID{2}, pcommon.TraceID{2}),
	} {
		t.Run(name, func(t *testing.T) {
			calls, got := accepted(t, options(), td)
			require.Equal(t, td.SpanCount()-3, got.Rewritten[DuplicateID])
			ids := map[string]bool{}
			for _, c := range calls {
				ids[c.ID] = true
			}
			require.Len(t, ids, td.SpanCount())
			requireTrees(t, sent(t, got))

			counted := shaped(t, options(func(o *Options) { o.DuplicateIDs = DuplicatesCount }), td)
			require.Equal(t, got.Rewritten[DuplicateID], counted.Rewritten[DuplicateID])
			require.Equal(t, pcommon.SpanID{3}, sent(t, counted)[3].SpanID())
			off := shaped(t, options(func(o *Options) { o.DuplicateIDs = DuplicatesOff }), td)
			require.Zero(t, off.Rewritten.Sum())
		})
	}
}

// requireTrees checks that each rank's spans hang together: a root, its child, and a grandchild that is linked to its parent.
func requireTrees(t *testing.T, spans []ptrace.Span) {
	t.Helper()
	for ; len(spans) > 0; spans = spans[3:] {
		grandchild, child, root := spans[0], spans[1], spans[2]
		require.Equal(t, child.SpanID(), grandchild.ParentSpanID())
		require.Equal(t, child.SpanID(), grandchild.Links().At(0).SpanID())
		require.Equal(t, root.SpanID(), child.ParentSpanID())
		require.True(t, root.ParentSpanID().IsEmpty())
	}
}

// Children come before their parents, in batches of their own, and batches are sent twice.
func TestRequirement25_AcrossBatches(t *testing.T) {
	td := twoRanks(pcommon.TraceID{1}, pcommon.TraceID{2})
	s, err := New(options())
	require.NoError(t, err)
	var spans [2][]ptrace.Span
	again := map[pcommon.SpanID]bool{}
	for i := range 3 {
		for rank := range 2 {
			one := ptrace.NewTraces()
			td.ResourceSpans().At(rank).CopyTo(one.ResourceSpans().AppendEmpty())
			at := 0
			one.ResourceSpans().At(0).ScopeSpans().At(0).Spans().RemoveIf(func(ptrace.Span) bool { at++; return at-1 != i })
			first, second := sent(t, s.Shape(one)), sent(t, s.Shape(one))
			require.Equal(t, first[0].SpanID(), second[0].SpanID(), "a retry is no duplicate")
			require.False(t, again[first[0].SpanID()])
			again[first[0].SpanID()] = true
			spans[rank] = append(spans[rank], first...)
		}
	}
	requireTrees(t, append(spans[0], spans[1]...))
}

// Spans of one trace in several processes are no duplicates, and keep their parents.
func TestRequirement25_DistributedTrace(t *testing.T) {
	td := ptrace.NewTraces()
	for rank := range byte(3) {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutInt("dl.rank", int64(rank))
		newSpan(rs.ScopeSpans().AppendEmpty(), rank+1, nil).SetParentSpanID(pcommon.SpanID{rank})
	}
	calls, got := accepted(t, options(), td)
	require.Zero(t, got.Rewritten.Sum())
	require.Equal(t, []string{"", calls[0].ID, calls[1].ID}, []string{calls[0].ParentID, calls[1].ParentID, calls[2].ParentID})
}

func TestRequirement25_RepeatedSpans(t *testing.T) {
	td, _ := oneSpan(map[string]any{"a": 1})
	ss := td.ResourceSpans().At(0).ScopeSpans().At(0)
	newSpan(ss, 1, map[string]any{"a": 1}) // sent twice
	newSpan(ss, 1, map[string]any{"a": 2}) // another span
	newSpan(ss, 1, map[string]any{"a": 2})
	calls, got := accepted(t, options(), td)
	require.Len(t, calls, 2)
	require.Equal(t, 2, got.Dropped[RepeatedSpan])
	require.Equal(t, 1, got.Rewritten[DuplicateID])
}

func TestRequirement25_MemoryIsBounded(t *testing.T) {
	s, err := New(options())
	require.NoError(t, err)
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for i := range 3 * generationSize {
		newSpan(ss, 0, nil).SetSpanID(pcommon.SpanID{1, byte(i >> 16), byte(i >> 8), byte(i)})
	}
	s.Shape(td)
	require.LessOrEqual(t, len(s.ids.young), generationSize)
	require.LessOrEqual(t, len(s.ids.old), generationSize)
}

func TestConcurrentUse(t *testing.T) {
	s, err := New(options())
	require.NoError(t, err)
	td := megatron(2, 20)
	td.MarkReadOnly()
	want := bodies(s.Shape(td))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				got := s.Shape(td)
				if b := bodies(got); len(b) != 1 || b[0] != want[0] {
					t.Error("another result")
				}
				got.Release()
			}
		})
	}
	wg.Wait()
}

func TestBadOptions(t *testing.T) {
	for problem, edit := range map[string]func(*Options){
		`mode is "x": must be one of calls, agents, auto`:               func(o *Options) { o.Mode = "x" },
		`threads is "": must be one of off, run, rank`:                  func(o *Options) { o.Threads = "" },
		`duplicate_ids is "y": must be one of rewrite, count, off`:      func(o *Options) { o.DuplicateIDs = "y" },
		`run::id is "e/p/r": give the bare id of the run`:               func(o *Options) { o.RunID = "e/p/r" },
		`step::offset is -1: must not be negative`:                      func(o *Options) { o.StepOffset = -1 },
		`limits::span_bytes is 100: must be at least 16384`:             func(o *Options) { o.SpanBytes = 100 },
		`limits::request_bytes is 100: must be at least 32768`:          func(o *Options) { o.RequestBytes = 100 },
		`display_name is "{x}": {x} is not known: use {name}, {step}, `: func(o *Options) { o.DisplayName = "{x}" },
	} {
		_, err := New(options(edit))
		require.ErrorContains(t, err, problem)
	}
}

func TestEmptyBatch(t *testing.T) {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	got := shaped(t, options(), td)
	require.Zero(t, len(got.Requests)+got.Dropped.Sum()+got.Rewritten.Sum())
	got.Release()
}

// A large span at the head of many scopes makes no room for as many as large ones.
func TestMemoryIsThatOfTheBatch(t *testing.T) {
	td := ptrace.NewTraces()
	for i := range 20 {
		spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
		for k := range 64 {
			s := spans.AppendEmpty()
			s.SetName("step")
			s.SetTraceID(pcommon.TraceID{1})
			s.SetSpanID(pcommon.SpanID{1, byte(i), byte(k)})
			if k == 0 {
				s.Attributes().PutStr("prompt", strings.Repeat("x", 100<<10))
			}
		}
	}
	s, err := New(options())
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := s.Shape(td)
	runtime.ReadMemStats(&after)
	require.Equal(t, td.SpanCount(), got.Requests[0].Spans)
	require.Less(t, int(after.TotalAlloc-before.TotalAlloc), 10*len(marshal(t, td)))
}
