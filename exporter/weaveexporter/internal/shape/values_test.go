// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"math"
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

// The tests of this package are named after the requirements of the exporter: what Weave loses, and what has to become of it.

func TestRequirement05_ResourceKeyConflicts(t *testing.T) {
	for name, raw := range map[string]map[string]any{
		"environment": {"deployment.environment": "prod", "deployment.environment.name": "prod-eu"},
		"pod labels":  {"k8s.pod.label.app": "trainer", "k8s.pod.label.app.kubernetes.io/name": "megatron"},
		"three":       {"a": 1, "a.b": 2, "a.b.c": 3},
		"project":     {"wandb": "x", "wandb.project.x": "y"},
	} {
		t.Run(name, func(t *testing.T) {
			td, _ := oneSpan(nil)
			resource := td.ResourceSpans().At(0).Resource().Attributes()
			put(resource, raw)
			calls, got := accepted(t, options(), td)
			require.Positive(t, got.Rewritten[KeyConflict]+got.Rewritten[TypedKey])
			require.Subset(t, leaves(calls[0].Dump["resource"]), valuesOf(raw))
		})
	}
}

func TestRequirement06_KeyConflicts(t *testing.T) {
	for name, c := range map[string]struct{ in, want map[string]any }{
		"reward":       {map[string]any{"rl.reward": 0.5, "rl.reward.mean": 0.25}, map[string]any{"rl.reward._value": 0.5, "rl.reward.mean": 0.25}},
		"three levels": {map[string]any{"a": 1, "a.b": 2, "a.b.c": 3}, map[string]any{"a._value": 1, "a.b._value": 2, "a.b.c": 3}},
		"a text of an object": {
			map[string]any{"a": `{"c":1}`, "a.b": 2}, map[string]any{"a._value": `{"c":1}`, "a.b": 2},
		},
		"the name is taken": {
			map[string]any{"a": 1, "a._value": 2, "a._value2.x": 3}, map[string]any{"a._value3": 1, "a._value": 2, "a._value2.x": 3},
		},
		"empty parts": {map[string]any{"": 1, ".a": 2, ".a.": 3}, map[string]any{"._value": 1, ".a._value": 2, ".a.": 3}},
		"Lens's span": {
			map[string]any{"nemo.span.truncated": true, "nemo.span.truncated.reason": "shutdown"},
			map[string]any{"nemo.span.truncated._value": true, "nemo.span.truncated.reason": "shutdown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			td, s := oneSpan(c.in)
			put(s.Events().AppendEmpty().Attributes(), c.in)
			link := s.Links().AppendEmpty()
			link.SetTraceID(pcommon.TraceID{9})
			link.SetSpanID(pcommon.SpanID{9})
			put(link.Attributes(), c.in)

			o := options(func(o *Options) { o.Promote = nil })
			_, got := accepted(t, o, td)
			out := sent(t, got)[0]
			for where, m := range map[string]pcommon.Map{
				"span": out.Attributes(), "event": out.Events().At(0).Attributes(), "link": out.Links().At(0).Attributes(),
			} {
				require.Equal(t, asMap(t, c.want), m.AsRaw(), where)
			}
			require.Positive(t, got.Rewritten[KeyConflict])
		})
	}
}

// The names given to keys that clash do not depend on the order of the keys.
func FuzzRequirement06_Order(f *testing.F) {
	f.Add("a\na.b\na.b.c\na._value\nb", int64(1))
	f.Add("rl.reward\nrl.reward.mean\nrl.reward._value\nrl.reward._value2.x\n.\n", int64(2))
	f.Fuzz(func(t *testing.T, text string, seed int64) {
		keys := map[string]bool{}
		var list []attr
		for key := range strings.SplitSeq(text, "\n") {
			if !keys[key] {
				keys[key] = true
				list = append(list, integer(key, int64(len(list))))
			}
		}
		shuffled := append([]attr(nil), list...)
		rand.New(rand.NewSource(seed)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		once, other := byNumber(resolved(list, new(Counts))), byNumber(resolved(shuffled, new(Counts)))
		require.Equal(t, once, other)
		require.Len(t, once, len(list))

		var n Counts
		require.Equal(t, once, byNumber(resolved(list, &n)), "not idempotent")
		require.Zero(t, n.Sum())
		require.False(t, clashesMany(list))
	})
}

func byNumber(list []attr) map[int64]string {
	out := map[int64]string{}
	for _, a := range list {
		out[a.val.Int()] = a.key
	}
	return out
}

// clashesMany is clashes, said plainly.
func clashesMany(list []attr) bool {
	keys := map[string]bool{}
	for _, a := range list {
		if keys[a.key] {
			return true
		}
		keys[a.key] = true
	}
	for key := range keys {
		for i := range len(key) {
			if key[i] == '.' && keys[key[:i]] {
				return true
			}
		}
	}
	return false
}

func TestRequirement06_RepeatedKeys(t *testing.T) {
	td, s := oneSpan(map[string]any{"a1": []any{1}})
	put(s.Attributes(), map[string]any{"a2": 2, "input.valuf": "x", "input.value": "x"})
	_, got := accepted(t, options(), repeatKeys(td))
	require.Equal(t, asMap(t, map[string]any{"a2": 2, "a2_repeated": []any{1}, "input.value": "x"}), withoutAdded(sent(t, got)[0]))
	require.Equal(t, 2, got.Rewritten[RepeatedKey])
}

func TestRequirement07_EmptyValues(t *testing.T) {
	td, s := oneSpan(map[string]any{"none": nil, "list": []any{1, nil, []any{nil}}, "map": map[string]any{"a": nil, "b": 2}})
	rs := td.ResourceSpans().At(0)
	rs.Resource().Attributes().PutEmpty("none")
	rs.ScopeSpans().At(0).Scope().Attributes().PutEmpty("none")
	s.Events().AppendEmpty().Attributes().PutEmpty("none")
	s.Links().AppendEmpty().Attributes().PutEmpty("none")
	_, got := accepted(t, options(), td)
	require.Equal(t, asMap(t, map[string]any{"list": []any{1, []any{}}, "map": map[string]any{"b": 2}}), withoutAdded(sent(t, got)[0]))
	require.Equal(t, 8, got.Rewritten[EmptyValue])
}

func TestRequirement08_InvalidUTF8(t *testing.T) {
	bad := "a\xffb\xc3"
	td, s := oneSpan(map[string]any{bad: bad, "list": []any{bad}, "map": map[string]any{bad: bad}})
	rs := td.ResourceSpans().At(0)
	rs.SetSchemaUrl(bad)
	put(rs.Resource().Attributes(), map[string]any{bad: bad})
	ss := rs.ScopeSpans().At(0)
	ss.SetSchemaUrl(bad)
	ss.Scope().SetName(bad)
	ss.Scope().SetVersion(bad)
	put(ss.Scope().Attributes(), map[string]any{bad: bad})
	s.SetName(bad)
	s.TraceState().FromRaw(bad)
	s.Status().SetMessage(bad)
	e := s.Events().AppendEmpty()
	e.SetName(bad)
	put(e.Attributes(), map[string]any{bad: bad})
	l := s.Links().AppendEmpty()
	l.TraceState().FromRaw(bad)
	put(l.Attributes(), map[string]any{bad: bad})

	_, got := accepted(t, options(), td)
	require.Equal(t, 22, got.Rewritten[InvalidUTF8])
	require.True(t, utf8.Valid(jsonOf(t, sent(t, got)[0])))
	require.Equal(t, "a�b�", sent(t, got)[0].Status().Message())
}

func TestRequirement09_KindAndStatus(t *testing.T) {
	td, s := oneSpan(nil)
	s.SetKind(99)
	s.Status().SetCode(7)
	_, got := accepted(t, options(), td)
	out := sent(t, got)[0]
	require.Equal(t, ptrace.SpanKindUnspecified, out.Kind())
	require.Equal(t, ptrace.StatusCodeUnset, out.Status().Code())
	require.Equal(t, map[string]any{"lenscol.original.span.kind": int64(99), "lenscol.original.status.code": int64(7)}, withoutAdded(out))
}

func TestRequirement10_TypedKeys(t *testing.T) {
	const aside = "lenscol.original."
	for name, c := range map[string]struct{ in, want map[string]any }{
		"display name":           {map[string]any{"wandb.display_name": 7}, map[string]any{"wandb.display_name": "7"}},
		"display name of JSON":   {map[string]any{"wandb.display_name": `["a"]`}, map[string]any{"wandb.display_name": ` ["a"]`}},
		"display name, below":    {map[string]any{"wandb.display_name.x": 7}, map[string]any{aside + "wandb.display_name.x": 7}},
		"thread":                 {map[string]any{"wandb.thread_id": 3, "wandb.is_turn": true}, map[string]any{"wandb.thread_id": "3", "wandb.is_turn": true}},
		"turn":                   {map[string]any{"wandb.is_turn": "false"}, map[string]any{"wandb.is_turn": false}},
		"run":                    {map[string]any{"wandb.wb_run_id": 12}, map[string]any{"wandb.wb_run_id": "12"}},
		"a run that is true":     {map[string]any{"wandb.wb_run_id": true}, map[string]any{"wandb.wb_run_id": "true"}},
		"whole step":             {map[string]any{"wandb.wb_run_step": 3.0}, map[string]any{"wandb.wb_run_step": 3}},
		"step in text":           {map[string]any{"wandb.wb_run_step": "7"}, map[string]any{"wandb.wb_run_step": 7}},
		"step in part":           {map[string]any{"wandb.wb_run_step": 3.5}, map[string]any{aside + "wandb.wb_run_step": 3.5}},
		"step of letters":        {map[string]any{"wandb.wb_run_step_end": "x"}, map[string]any{aside + "wandb.wb_run_step_end": "x"}},
		"step below zero":        {map[string]any{"wandb.wb_run_step": -1}, map[string]any{aside + "wandb.wb_run_step": -1}},
		"tokens in text":         {map[string]any{"gen_ai.usage.input_tokens": "12"}, map[string]any{"gen_ai.usage.input_tokens": 12}},
		"tokens of letters":      {map[string]any{"gen_ai.usage.input_tokens": "many"}, map[string]any{aside + "gen_ai.usage.input_tokens": "many"}},
		"tokens, below":          {map[string]any{"llm.token_count.prompt.x": 2}, map[string]any{aside + "llm.token_count.prompt.x": 2}},
		"tokens that are NaN":    {map[string]any{"gen_ai.usage.output_tokens": math.NaN()}, nil},
		"output, a float":        {map[string]any{"output": 1.5}, map[string]any{"output": "1.5"}},
		"outputs, a float":       {map[string]any{"outputs": 0.1}, map[string]any{"outputs": "0.1"}},
		"request, a text":        {map[string]any{"gen_ai.request": "hello"}, map[string]any{aside + "gen_ai.request": "hello"}},
		"request, an object":     {map[string]any{"gen_ai.request": `{"model":5,"top":0.5}`}, map[string]any{"gen_ai.request.model": "5", "gen_ai.request.top": 0.5}},
		"invocation, no JSON":    {map[string]any{"llm.invocation_parameters": "t=1"}, map[string]any{aside + "llm.invocation_parameters": "t=1"}},
		"attributes, a text":     {map[string]any{"wandb.attributes": "x"}, map[string]any{aside + "wandb.attributes": "x"}},
		"attributes, an object":  {map[string]any{"wandb.attributes": `{"a":1}`}, map[string]any{"wandb.attributes.a": 1}},
		"attributes, a map":      {map[string]any{"wandb.attributes": map[string]any{"a": 1}}, map[string]any{"wandb.attributes.a": 1}},
		"all of wandb in a map":  {map[string]any{"wandb": map[string]any{"wb_run_step": "x"}}, map[string]any{aside + "wandb.wb_run_step": "x"}},
		"conversation, a number": {map[string]any{"gen_ai.conversation.id": 5}, map[string]any{"gen_ai.conversation.id": "5", "wandb.is_turn": true}},
		"model, a list":          {map[string]any{"gen_ai.response.model": []any{"a"}}, map[string]any{"gen_ai.response.model": ` ["a"]`}},
		"a time too far away":    {map[string]any{"langfuse.endTime": 1e300}, map[string]any{aside + "langfuse.endTime": 1e300}},
		"a time":                 {map[string]any{"langfuse.startTime": "2026-08-01T00:00:00Z"}, map[string]any{"langfuse.startTime": "2026-08-01T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			td, _ := oneSpan(c.in)
			_, got := accepted(t, options(), td)
			if c.want != nil {
				require.Equal(t, asMap(t, c.want), asMapOf(sent(t, got)[0]))
			}
		})
	}
}

func TestRequirement11_NonFiniteAndBytes(t *testing.T) {
	bytes := pcommon.NewValueBytes()
	bytes.Bytes().FromRaw([]byte("raw"))
	td, s := oneSpan(map[string]any{
		"input.value": math.NaN(), "output.value": []any{math.Inf(-1), 0.1, map[string]any{"a": math.Inf(1)}}, "wandb.attributes.b": math.Inf(1),
		"inputs": `{"loss": NaN, "text": "NaN", "low": -Infinity, "big": 1e999, "n": 1.5}`, "plain": math.Inf(1), "small": 5e-324,
	})
	bytes.CopyTo(s.Attributes().PutEmpty("wandb.attributes.raw"))
	bytes.CopyTo(s.Attributes().PutEmpty("raw"))
	calls, got := accepted(t, options(), td)
	require.Equal(t, map[string]any{
		"input.value": "NaN", "output.value": []any{"-Infinity", 0.1, map[string]any{"a": "Infinity"}}, "wandb.attributes.b": "Infinity",
		"inputs": `{"loss": "NaN", "text": "NaN", "low": "-Infinity", "big": "1e999", "n": 1.5}`, "plain": math.Inf(1), "small": 5e-324,
		"wandb.attributes.raw": "cmF3", "raw": []byte("raw"),
	}, withoutAdded(sent(t, got)[0]))
	require.Equal(t, 5, got.Rewritten[NonFinite])
	require.Equal(t, 1, got.Rewritten[BytesValue])
	_, err := json.Marshal([]any{calls[0].Inputs, calls[0].Output, calls[0].Attributes["b"]})
	require.NoError(t, err)
}

func TestRequirement26_Timestamps(t *testing.T) {
	for name, c := range map[string]struct {
		start, end, want pcommon.Timestamp
		kept             any
	}{
		"whole":               {5, 7, 7, nil},
		"end before start":    {9, 7, 9, int64(7)},
		"no end":              {9, 0, 9, int64(0)},
		"neither":             {0, 0, 0, nil},
		"the last nanosecond": {math.MaxUint64, math.MaxInt64 + 1, math.MaxUint64, "9223372036854775808"},
	} {
		t.Run(name, func(t *testing.T) {
			td, s := oneSpan(nil)
			s.SetStartTimestamp(c.start)
			s.SetEndTimestamp(c.end)
			_, got := accepted(t, options(), td)
			out := sent(t, got)[0]
			require.Equal(t, c.start, out.StartTimestamp())
			require.Equal(t, c.want, out.EndTimestamp())
			require.Equal(t, c.kept, out.Attributes().AsRaw()["lenscol.original.end_time_unix_nano"])
		})
	}
}

func TestRequirement28_JSONText(t *testing.T) {
	nested := strings.Repeat("[", 3000) + strings.Repeat("]", 3000)
	for name, c := range map[string]struct {
		text    string
		guarded bool
	}{
		"100,000 brackets":          {strings.Repeat("[", 100_000), true},
		"3,000 deep":                {nested, true},
		"3,000 deep, in quotes":     {`{"a":"` + nested + `"}`, false},
		"an integer of 5,000":       {"[" + strings.Repeat("9", 5000) + "]", true},
		"the same in quotes":        {`["` + strings.Repeat("9", 5000) + `"]`, false},
		"an integer of 4,300":       {"[" + strings.Repeat("9", 4300) + "]", false},
		"behind an escaped quote":   {`["\"", ` + strings.Repeat("[", 100) + `"`, true},
		"a prompt":                  {`[{"role":"user","content":"hi"}]`, false},
		"a log line with a bracket": {"[INFO] " + strings.Repeat("x", 100), false},
	} {
		t.Run(name, func(t *testing.T) {
			td, s := oneSpan(map[string]any{"input.value": c.text, "x": c.text, "gen_ai.input.messages": c.text})
			s.Events().AppendEmpty().Attributes().PutStr("x", c.text)
			td.ResourceSpans().At(0).Resource().Attributes().PutStr("x", c.text)
			want := c.text
			if c.guarded {
				want = "text: " + c.text
			}
			for _, mode := range []string{ModeCalls, ModeAgents} {
				got := shaped(t, options(func(o *Options) { o.Mode = mode }), td)
				path := map[string]string{ModeCalls: weavetest.CallsPath, ModeAgents: weavetest.AgentsPath}[mode]
				require.Empty(t, weavetest.Judge(path, got.Requests[0].AppendTo(nil)).Problem())
				out := sent(t, got)[0]
				for _, key := range []string{"x", "input.value", "gen_ai.input.messages"} {
					require.Equal(t, want, out.Attributes().AsRaw()[key])
				}
				require.Equal(t, c.guarded, got.Rewritten[JSONText] > 0)
			}
		})
	}
}

// Half a surrogate pair in JSON text is decoded, and hides all calls of the project.
func TestRequirement28_HalfSurrogates(t *testing.T) {
	for in, want := range map[string]string{
		`["cut: \ud83d"]`:                       `["cut: \ufffd"]`,
		`["\ude80"]`:                            `["\ufffd"]`,
		`["\uD83D\uD83D\uDE80\uDE80"]`:          `["\ufffd\uD83D\uDE80\ufffd"]`,
		`["\ud83d\n\ude80"]`:                    `["\ufffd\n\ufffd"]`,
		`{"\ud83d":["\\ud83d", "\"\ud83d"]}`:    `{"\ufffd":["\\ud83d", "\"\ufffd"]}`,
		` [{"role":"user","content":"\udce9"}]`: ` [{"role":"user","content":"\ufffd"}]`,
		`"\ud83d"`:                              `"\ufffd"`,
		`["\ud83d\ude80"]`:                      `["\ud83d\ude80"]`,
		`["\ud83d`:                              `["\ud83d`,
		`see ["\ud83d"]`:                        `see ["\ud83d"]`,
		`[\ud83d]`:                              `[\ud83d]`,
	} {
		t.Run(in, func(t *testing.T) {
			for _, mode := range []string{ModeCalls, ModeAgents} {
				td, s := oneSpan(map[string]any{"input.value": in, "x": in, "gen_ai.input.messages": in})
				s.SetName(in)
				s.Events().AppendEmpty().Attributes().PutStr("x", in)
				td.ResourceSpans().At(0).Resource().Attributes().PutStr("x", in)
				got := shaped(t, options(func(o *Options) { o.Mode = mode }), td)
				path := map[string]string{ModeCalls: weavetest.CallsPath, ModeAgents: weavetest.AgentsPath}[mode]
				require.Empty(t, weavetest.Judge(path, got.Requests[0].AppendTo(nil)).Problem())
				out := sent(t, got)[0]
				for _, key := range []string{"x", "input.value", "gen_ai.input.messages"} {
					require.Equal(t, want, out.Attributes().AsRaw()[key])
				}
				require.Equal(t, want, out.Events().At(0).Attributes().AsRaw()["x"])
				require.Equal(t, want != in, got.Rewritten[InvalidUTF8] > 0)
			}
		})
	}
}

func TestRequirement28_Depth(t *testing.T) {
	td, s := oneSpan(map[string]any{strings.Repeat("d.", 500) + "x": 1})
	v := s.Attributes().PutEmpty("deep")
	for range 60 {
		v = v.SetEmptySlice().AppendEmpty()
	}
	v.SetDouble(math.NaN())
	_, got := accepted(t, options(), td)
	require.Equal(t, 1, got.Rewritten[LongKey])
	require.Equal(t, 1, got.Rewritten[DeepValue])
	require.Contains(t, string(jsonOf(t, sent(t, got)[0])), `\"NaN\"`, "what lies deep is kept as a text")
}

func TestRequirement30_InputIsNotTouched(t *testing.T) {
	for seed := range byte(30) {
		d := dice{[]byte{seed, 3, seed}, uint64(seed)}
		td := d.traces()
		td.MarkReadOnly() // pdata panics when it is written to
		before := marshal(t, td)
		shaped(t, options(), td)
		require.Equal(t, before, marshal(t, td))
	}
}
