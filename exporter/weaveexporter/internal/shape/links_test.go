// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

func TestRequirement03_OneRequestForEachTarget(t *testing.T) {
	td := ptrace.NewTraces()
	for i, raw := range []map[string]any{
		{"wandb.entity": "a", "wandb.project": "x"}, {"wandb.project": "y"}, nil, {"wandb.entity": "a", "wandb.project": "x"}, {"wandb.entity": 5},
		{"wandb.project": "a/x"}, {"wandb.entity": "a", "wandb.project": "a/x"},
	} {
		rs := td.ResourceSpans().AppendEmpty()
		put(rs.Resource().Attributes(), raw)
		newSpan(rs.ScopeSpans().AppendEmpty(), byte(1+i), nil)
	}
	calls, got := accepted(t, options(), td)
	spans := map[Target]int{}
	for _, r := range got.Requests {
		require.Zero(t, spans[r.Target], "two requests for %s", r.Target)
		spans[r.Target] = r.Spans
	}
	require.Equal(t, map[Target]int{{"a", "x"}: 4, {"e", "y"}: 1, {"e", "p"}: 1, {"5", "p"}: 1}, spans)
	require.Len(t, calls, 7)
}

func TestRequirement04_Unroutable(t *testing.T) {
	td, _ := oneSpan(nil)
	rs := td.ResourceSpans().At(0)
	rs.Resource().Attributes().PutStr("service.name", "trainer")
	newSpan(rs.ScopeSpans().At(0), 2, nil)
	for _, target := range []Target{{}, {Entity: "e"}, {Project: "p"}, {"a/b", "c"}, {"a", "b:c"}, {"a", "b\nc"}} {
		got := shaped(t, options(func(o *Options) { o.Target = target }), td)
		require.Empty(t, got.Requests)
		require.Equal(t, 2, got.Dropped[Unroutable])
		require.Equal(t, 2, got.Dropped.Sum())
		require.Equal(t, []string{"trainer"}, got.Unroutable)
	}
}

func TestRequirement12_SpanNames(t *testing.T) {
	for name, want := range map[string]string{
		"megatron.train.iteration": "megatron.train.iteration",
		"POST /run":                "POST_run",
		"a:b(c)[d]#e@f,g":          "a_b_c_d_e_f_g",
		"<lambda>":                 "lambda",
		"\U0001f600":               "unnamed",
		"...":                      "unnamed",
		"":                         "unnamed",
		"学習 ステップ":                  "学習_ステップ",
		"İstanbul":                 "stanbul",
		strings.Repeat("x", 500):   strings.Repeat("x", 118) + "_",
	} {
		t.Run(name, func(t *testing.T) {
			td, s := oneSpan(nil)
			s.SetName(name)
			calls, got := accepted(t, options(), td)
			out := sent(t, got)[0]
			require.True(t, strings.HasPrefix(out.Name(), want), out.Name())
			require.Equal(t, strings.ToLower(out.Name()), calls[0].OpName, "the server changed more than its case")
			require.Less(t, utf8.RuneCountInString(out.Name()), 128)
			if out.Name() != name {
				require.Equal(t, name, calls[0].Display)
				require.Positive(t, got.Rewritten[SpanName])
			}
		})
	}
	td, s := oneSpan(map[string]any{"wandb.display_name": "mine"})
	s.SetName("a/b")
	calls, got := accepted(t, options(), td)
	require.Equal(t, "mine", calls[0].Display)
	require.Equal(t, "a/b", asMapOf(sent(t, got)[0])["lenscol.original.name"])

	long := strings.Repeat("é/", 2000)
	s.Attributes().Clear()
	s.SetName(long)
	calls, got = accepted(t, options(), td)
	require.Equal(t, long[:3*500], calls[0].Display)
	require.Equal(t, long, asMapOf(sent(t, got)[0])["lenscol.original.name"])
}

func TestRequirement13_NameCardinality(t *testing.T) {
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for i := range 10_000 {
		s := newSpan(ss, 1, nil)
		s.SetSpanID(pcommon.SpanID{1, byte(i >> 8), byte(i)})
		s.SetName(fmt.Sprintf("step_%d", i))
	}
	calls, got := accepted(t, options(), td)
	names := map[string]int{}
	for i, c := range calls {
		names[c.OpName]++
		require.Equal(t, fmt.Sprintf("step_%d", i), c.Display)
	}
	require.Equal(t, map[string]int{"step_n": 10_000}, names)
	require.Equal(t, 10_000, got.Rewritten[NameTemplate])

	got = shaped(t, options(func(o *Options) { o.TemplateNames = false }), td)
	require.Equal(t, "step_4711", sent(t, got)[4711].Name())
}

func TestRequirement13_Templates(t *testing.T) {
	for name, want := range map[string]string{
		"layer.12.forward": "layer.N.forward", "sha256": "sha256", "h100": "h100", "12": "N", "a-0-b_1.2": "a-N-b_N.N", "deadbeef": "deadbeef",
		"req-3f2a9c1e-7b1d-4e5f-8a9b-0c1d2e3f4a5b": "req-N-7b1d-4e5f-8a9b-N", "fp8.gemm": "fp8.gemm", "a.": "a.",
	} {
		require.Equal(t, want, templateName(name))
		require.Equal(t, want, templateName(want))
	}
}

func TestRequirement14_Run(t *testing.T) {
	for name, c := range map[string]struct {
		config         string
		resource, span map[string]any
		want           string
		foreign        bool
	}{
		"the config's":                          {config: "cfg", want: "cfg"},
		"none":                                  {},
		"the resource's":                        {config: "cfg", resource: map[string]any{"wandb.run.id": "res"}, want: "res"},
		"Weave's key, on the resource":          {config: "cfg", resource: map[string]any{"wandb.wb_run_id": "res"}, want: "res"},
		"the span's":                            {resource: map[string]any{"wandb.run.id": "res"}, span: map[string]any{"wandb.run.id": "own"}, want: "own"},
		"Weave's key, on the span":              {config: "cfg", span: map[string]any{"wandb.wb_run_id": "own", "wandb.run.id": "x"}, want: "own"},
		"an address":                            {resource: map[string]any{"wandb.run.id": "e/p/abc"}, want: "abc"},
		"an address with runs":                  {resource: map[string]any{"wandb.run.id": "e/p/runs/abc"}, want: "abc"},
		"an address in Weave's key":             {span: map[string]any{"wandb.wb_run_id": "e/p/abc"}, want: "abc"},
		"another project's":                     {config: "cfg", resource: map[string]any{"wandb.run.id": "e/q/abc"}, foreign: true},
		"another project's, in Weave's key":     {config: "cfg", span: map[string]any{"wandb.wb_run_id": "e/q/abc"}, foreign: true},
		"another project's, on the span":        {config: "cfg", span: map[string]any{"wandb.run.id": "f/p/abc"}, foreign: true},
		"the stored form":                       {config: "cfg", span: map[string]any{"wandb.wb_run_id": "cHJvag==:abc"}, foreign: true},
		"a number":                              {resource: map[string]any{"wandb.run.id": 4711}, want: "4711"},
		"Lens's run id, unless it is asked for": {resource: map[string]any{"nemo.run.id": "4711"}},
	} {
		t.Run(name, func(t *testing.T) {
			td, s := oneSpan(c.span)
			put(td.ResourceSpans().At(0).Resource().Attributes(), c.resource)
			newSpan(td.ResourceSpans().At(0).ScopeSpans().At(0), 2, c.span).SetParentSpanID(s.SpanID())
			calls, got := accepted(t, options(func(o *Options) { o.RunID = c.config }), td)
			for _, call := range calls {
				require.Equal(t, c.want, call.RunID)
			}
			require.Equal(t, c.foreign, len(got.ForeignRuns) > 0)
			require.Equal(t, c.foreign || strings.Contains(name, "address in"), got.Rewritten[RunID] > 0)
		})
	}
}

func TestRequirement14_RunsOfAgents(t *testing.T) {
	td, _ := oneSpan(map[string]any{"wandb.run.id": "one"})
	ss := td.ResourceSpans().At(0).ScopeSpans().At(0)
	newSpan(ss, 2, map[string]any{"wandb.run.id": "two"})
	newSpan(ss, 3, map[string]any{"wandb.run.id": "one"})
	got := shaped(t, options(func(o *Options) { o.Mode = ModeAgents }), td)
	runs := map[string]int{}
	for _, r := range got.Requests {
		require.Equal(t, Agents, r.Endpoint)
		require.True(t, weavetest.Judge(weavetest.AgentsPath, r.AppendTo(nil)).OK())
		runs[r.Run] = r.Spans
	}
	require.Equal(t, map[string]int{"one": 2, "two": 1}, runs)
}

func TestRequirement15_Steps(t *testing.T) {
	for name, c := range map[string]struct {
		raw    map[string]any
		offset int64
		want   any
		bad    bool
	}{
		"old Megatron":          {raw: map[string]any{"megatron.iteration": 7}, want: int64(7)},
		"new Megatron":          {raw: map[string]any{"nv.dl.training.step": 8, "megatron.iteration": 7}, want: int64(8)},
		"with an offset":        {raw: map[string]any{"dl.iteration": 0}, offset: 1, want: int64(1)},
		"zero":                  {raw: map[string]any{"dl.iteration": 0}},
		"a whole float":         {raw: map[string]any{"dl.iteration": 3.0}, want: int64(3)},
		"a fraction":            {raw: map[string]any{"dl.iteration": 3.5}, bad: true},
		"negative":              {raw: map[string]any{"dl.iteration": -1}, bad: true},
		"text":                  {raw: map[string]any{"dl.iteration": "7"}, bad: true},
		"a bad and a good one":  {raw: map[string]any{"megatron.iteration": "x", "dl.iteration": 5}, want: int64(5)},
		"too large to be moved": {raw: map[string]any{"dl.iteration": int64(1<<63 - 1)}, offset: 1, bad: true},
		"the user's own":        {raw: map[string]any{"dl.iteration": 5, "wandb.wb_run_step": 99}, offset: 1, want: int64(99)},
		"beside its own branch": {raw: map[string]any{"dl.iteration": 5, "dl.iteration.x": 1}, want: int64(5)},
		"none":                  {},
	} {
		t.Run(name, func(t *testing.T) {
			td, _ := oneSpan(c.raw)
			calls, got := accepted(t, options(func(o *Options) { o.StepOffset = c.offset }), td)
			if c.want == nil {
				require.Nil(t, calls[0].Step)
			} else {
				require.Equal(t, c.want, *calls[0].Step)
			}
			require.Equal(t, c.want, asMapOf(sent(t, got)[0])["wandb.wb_run_step"])
			if _, own := c.raw["wandb.wb_run_step"]; !own {
				require.Equal(t, c.want, asMapOf(sent(t, got)[0])["wandb.wb_run_step_end"])
			}
			require.Equal(t, c.bad, got.Rewritten[Step] > 0)
		})
	}
}

func TestRequirement15_Inheritance(t *testing.T) {
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	add := func(id, parent byte, raw map[string]any) ptrace.Span {
		s := newSpan(ss, id, raw)
		s.SetParentSpanID(pcommon.SpanID{parent})
		return s
	}
	add(4, 3, nil)                                                                                                   // a child of a child, before both
	add(3, 2, nil)                                                                                                   //
	add(2, 1, map[string]any{"megatron.iteration": 12})                                                              // the step
	add(1, 0, nil)                                                                                                   // its parent has none
	add(5, 3, map[string]any{"dl.iteration": 13})                                                                    // a step of its own
	add(6, 5, nil)                                                                                                   // takes the nearest
	add(7, 8, nil)                                                                                                   // parents in a circle
	add(8, 7, nil)                                                                                                   //
	add(9, 2, nil).SetTraceID(pcommon.TraceID{2})                                                                    // the same id, in another trace
	add(10, 99, nil)                                                                                                 // a parent that is not here
	add(11, 2, map[string]any{"wandb.wb_run_step_end": 20})                                                          // an end of its own
	add(12, 11, map[string]any{"dl.iteration": -1})                                                                  // a bad one takes its parent's
	newSpan(td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty(), 13, nil).SetParentSpanID(pcommon.SpanID{2}) // another process

	calls, _ := accepted(t, options(), td)
	got := map[string]int64{}
	for _, c := range calls {
		if c.Step != nil {
			got[c.ID[:2]] = *c.Step
		}
	}
	require.Equal(t, map[string]int64{"04": 12, "03": 12, "02": 12, "05": 13, "06": 13, "0b": 12, "0c": 12, "0d": 12}, got)
	require.Equal(t, int64(20), *calls[10].StepEnd)
}

func TestRequirement16_Promotion(t *testing.T) {
	for name, own := range map[string]map[string]any{
		"none of Weave's keys": {"megatron.skipped": false},
		"input.value":          {"input.value": "hi", "megatron.skipped": false},
	} {
		t.Run(name, func(t *testing.T) {
			td, _ := oneSpan(own)
			rs := td.ResourceSpans().At(0)
			put(rs.Resource().Attributes(), map[string]any{"dl.rank": 3, "host.name": "node-17", "secret": "x"})
			rs.ScopeSpans().At(0).Scope().SetName("nemo.lens")
			rs.ScopeSpans().At(0).Scope().Attributes().PutStr("nemo.run.id", "4711")
			calls, got := accepted(t, options(), td)
			for key, want := range map[string]any{
				"dl.rank": int64(3), "host.name": "node-17", "otel.scope.name": "nemo.lens", "nemo.run.id": "4711", "megatron.skipped": false,
			} {
				v, ok := calls[0].Filter(key)
				require.True(t, ok, key)
				require.Equal(t, want, v, key)
			}
			require.NotContains(t, asMapOf(sent(t, got)[0]), "secret")
			_, copied := asMapOf(sent(t, got)[0])["wandb.attributes.dl.rank"]
			require.Equal(t, name == "input.value", copied)
		})
	}
	t.Run("what the span says counts", func(t *testing.T) {
		td, _ := oneSpan(map[string]any{"dl.rank": 5, "wandb.attributes.host.name": "mine", "input.value": "x"})
		put(td.ResourceSpans().At(0).Resource().Attributes(), map[string]any{"dl.rank": 3, "host.name": "node-17"})
		calls, _ := accepted(t, options(), td)
		rank, _ := calls[0].Filter("dl.rank")
		host, _ := calls[0].Filter("host.name")
		require.Equal(t, []any{int64(5), "mine"}, []any{rank, host})
	})
	t.Run("clashes", func(t *testing.T) {
		td, _ := oneSpan(map[string]any{"host": "x", "dl.rank.x": 1, "input.value": "x"})
		put(td.ResourceSpans().At(0).Resource().Attributes(), map[string]any{"dl.rank": 3, "host.name": "node-17"})
		calls, got := accepted(t, options(), td)
		out := asMapOf(sent(t, got)[0])
		require.Equal(t, []any{"x", "node-17", int64(3), int64(1)}, []any{out["host._value"], out["host.name"], out["dl.rank._value"], out["dl.rank.x"]})
		v, _ := calls[0].Filter("dl.rank._value")
		require.Equal(t, int64(3), v)
	})
}

func TestRequirement17_Threads(t *testing.T) {
	td, root := oneSpan(nil)
	ss := td.ResourceSpans().At(0).ScopeSpans().At(0)
	put(td.ResourceSpans().At(0).Resource().Attributes(), map[string]any{"dl.rank": 3})
	newSpan(ss, 2, nil).SetParentSpanID(root.SpanID())
	newSpan(ss, 3, map[string]any{"gen_ai.conversation.id": "c"}).SetParentSpanID(pcommon.SpanID{2})
	newSpan(ss, 4, map[string]any{"wandb.is_turn": true}).SetParentSpanID(pcommon.SpanID{2})
	for threads, want := range map[string][]string{
		ThreadsRun:  {"run|" + root.SpanID().String(), "run|", "c|", "run|0400000000000000"},
		ThreadsRank: {"run/rank3|" + root.SpanID().String(), "run/rank3|", "c|", "run/rank3|0400000000000000"},
		ThreadsOff:  {"|", "|", "c|", "|"},
	} {
		calls, _ := accepted(t, options(func(o *Options) { o.Threads, o.RunID = threads, "run" }), td)
		var got []string
		for _, c := range calls {
			got = append(got, c.Thread+"|"+c.Turn)
		}
		require.Equal(t, want, got, threads)
	}
}

func TestDisplayNames(t *testing.T) {
	td, _ := oneSpan(map[string]any{"megatron.iteration": 120, "x": "y"})
	ss := td.ResourceSpans().At(0).ScopeSpans().At(0)
	newSpan(ss, 2, nil).SetName("a/b")
	newSpan(ss, 3, map[string]any{"wandb.display_name": "mine"})
	put(td.ResourceSpans().At(0).Resource().Attributes(), map[string]any{"dl.rank": 3, "host.name": "node-17"})
	calls, _ := accepted(t, options(func(o *Options) { o.DisplayName = "{name} {step} r{rank} {attr:host.name}:{attr:x}" }), td)
	require.Equal(t, "span 120 r3 node-17:y", calls[0].Display)
	require.Equal(t, "a/b r3", calls[1].Display)
	require.Equal(t, "mine", calls[2].Display)

	for template, problem := range map[string]string{"{nam}": "{nam} is not known", "{attr:}": "{attr:} is not known", "r{}": "{} is not known"} {
		_, err := New(options(func(o *Options) { o.DisplayName = template }))
		require.ErrorContains(t, err, problem)
	}
}

func TestModes(t *testing.T) {
	td, _ := oneSpan(nil)
	ss := td.ResourceSpans().At(0).ScopeSpans().At(0)
	newSpan(ss, 2, map[string]any{"gen_ai.operation.name": "invoke_agent"}).SetName("invoke_agent planner")
	newSpan(ss, 3, map[string]any{"gen_ai.agent.name": "planner"})
	newSpan(ss, 4, map[string]any{"gen_ai.operation.name": "chat"})
	for mode, want := range map[string]map[Endpoint]int{ModeCalls: {Calls: 4}, ModeAgents: {Agents: 4}, ModeAuto: {Calls: 2, Agents: 2}} {
		got := map[Endpoint]int{}
		for _, r := range shaped(t, options(func(o *Options) { o.Mode = mode }), td).Requests {
			got[r.Endpoint] += r.Spans
			path := map[Endpoint]string{Calls: weavetest.CallsPath, Agents: weavetest.AgentsPath}[r.Endpoint]
			verdict := weavetest.Judge(path, r.AppendTo(nil))
			require.True(t, verdict.OK(), verdict.Problem())
			if mode == ModeAuto && r.Endpoint == Agents {
				require.Equal(t, "planner", verdict.Agents[0].Agent, "read from the name")
			}
		}
		require.Equal(t, want, got, mode)
	}
}
