// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"math"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Rule is one thing that Weave does: an input, and what becomes of it. The request holds a good span, the neighbour, and after
// it the span of the rule, [RuleSpan], both for [RuleProject].
type Rule struct {
	Name   string
	Path   string                                          // CallsPath where empty
	Edit   func(r *tracepb.ResourceSpans, s *tracepb.Span) // makes the input of a good request
	Bytes  func(body []byte) []byte                        // changes the request's body after that, where a message cannot say it
	Status int                                             // of the answer
	Reject int                                             // spans rejected in a partial success
	Lost   int                                             // of the two spans, those that are not shown afterwards
	Shows  Shown                                           // some of what a user sees of the span afterwards
	// Unseen says why Weave's published code cannot confirm the rule, and what it rests on instead.
	Unseen string
}

// Shown are things that a user sees of a call: op_name, display_name, run, step, step_end, thread, turn, exception, status, parent,
// input, output, blanked, or attributes.<key>; nil: not there.
type Shown map[string]any

// Rules is what is known of Weave. All of it was measured with Weave's own ingest code, but where Unseen says otherwise.
var Rules = []Rule{
	{Name: "a good span", Edit: attrs("dl.iteration", 7), Status: 200, Shows: Shown{
		"op_name": "span", "display_name": nil, "run": nil, "step": nil, "thread": nil, "turn": nil, "status": "success", "exception": nil,
		"attributes.dl.iteration": 7.0,
	}},

	// Routing.
	{Name: "no project on the resource", Edit: unroute("wandb.project"), Status: 200, Lost: 2},
	{Name: "no entity on the resource", Edit: unroute("wandb.entity"), Status: 200, Lost: 2},
	{Name: "no resource", Edit: func(r *tracepb.ResourceSpans, _ *tracepb.Span) { r.Resource = nil }, Status: 200, Lost: 2},

	// The message itself.
	{Name: "text that is not UTF-8", Edit: attrs("a", "@@"), Bytes: replace("@@", "\xff\xfe"), Status: 400, Lost: 2},
	{Name: "a name that is not UTF-8", Edit: named("@@"), Bytes: replace("@@", "\xff\xfe"), Status: 400, Lost: 2},
	{Name: "a key that is not UTF-8", Edit: attrs("@@", 1), Bytes: replace("@@", "\xff\xfe"), Status: 400, Lost: 2},
	{Name: "a trace state that is not UTF-8", Edit: func(_ *tracepb.ResourceSpans, s *tracepb.Span) { s.TraceState = "@@" },
		Bytes: replace("@@", "\xff\xfe"), Status: 400, Lost: 2},
	{Name: "a schema URL that is not UTF-8", Edit: func(r *tracepb.ResourceSpans, _ *tracepb.Span) { r.SchemaUrl = "@@" },
		Bytes: replace("@@", "\xff\xfe"), Status: 400, Lost: 2},
	{Name: "a message cut short", Bytes: func(b []byte) []byte { return b[:len(b)-1] }, Status: 400, Lost: 2},
	{Name: "a value without a value", Edit: attrs("a", nil), Status: 400, Lost: 2},
	{Name: "a value without a value in a list", Edit: attrs("a", list{1, nil}), Status: 400, Lost: 2},
	{Name: "a value without a value in a map", Edit: attrs("a", object{"b", nil}), Status: 400, Lost: 2},
	{Name: "a value without a value in an event", Edit: event("a", nil), Status: 400, Lost: 2},
	{Name: "a value without a value in a link", Edit: link("a", nil), Status: 400, Lost: 2},
	{Name: "a value without a value in the resource", Edit: resource("a", nil), Status: 400, Lost: 2},
	{Name: "a value without a value in the scope", Edit: scope("a", nil), Status: 200},
	{Name: "lists 48 deep", Edit: attrs("a", nestedLists(48)), Status: 200},
	{Name: "lists 49 deep", Edit: attrs("a", nestedLists(49)), Status: 400, Lost: 2},
	{Name: "lists 47 deep in an event", Edit: event("a", nestedLists(47)), Status: 200},
	{Name: "lists 48 deep in an event", Edit: event("a", nestedLists(48)), Status: 400, Lost: 2},
	{Name: "maps 31 deep", Edit: attrs("a", nestedMaps(31)), Status: 200},
	{Name: "maps 32 deep", Edit: attrs("a", nestedMaps(32)), Status: 400, Lost: 2},
	{Name: "kind 9", Edit: func(_ *tracepb.ResourceSpans, s *tracepb.Span) { s.Kind = 9 }, Status: 400, Lost: 2},
	{Name: "kind -1", Edit: func(_ *tracepb.ResourceSpans, s *tracepb.Span) { s.Kind = -1 }, Status: 400, Lost: 2},
	{Name: "status code 7", Edit: status(7, ""), Status: 400, Lost: 2},
	{Name: "status error", Edit: status(2, "out of memory"), Status: 200, Shows: Shown{"status": "error", "exception": "out of memory"}},
	{Name: "status error without a message", Edit: status(2, ""), Status: 200, Shows: Shown{"status": "success", "exception": nil}},
	{Name: "status ok with a message", Edit: status(1, "fine"), Status: 200, Shows: Shown{"status": "success", "exception": nil}},

	// Ids.
	{Name: "no trace id", Edit: ids(nil, id(8), nil), Status: 200, Shows: Shown{"useless": true}},
	{Name: "a trace id of 8 bytes", Edit: ids(id(8), id(8), nil), Status: 400, Lost: 2},
	{Name: "a trace id of zeros", Edit: ids(make([]byte, 16), id(8), nil), Status: 200, Shows: Shown{"useless": true}},
	{Name: "no span id", Edit: ids(id(16), nil, nil), Status: 200, Shows: Shown{"useless": true}},
	{Name: "a span id of 4 bytes", Edit: ids(id(16), id(4), nil), Status: 400, Lost: 2},
	{Name: "a span id of zeros", Edit: ids(id(16), make([]byte, 8), nil), Status: 200, Shows: Shown{"useless": true}},
	{Name: "a parent of zeros", Edit: ids(id(16), id(8), make([]byte, 8)), Status: 200, Shows: Shown{"parent": nil}},
	{Name: "a parent of 4 bytes", Edit: ids(id(16), id(8), id(4)), Status: 400, Lost: 2},
	{Name: "a link without ids", Edit: func(_ *tracepb.ResourceSpans, s *tracepb.Span) { s.Links = []*tracepb.Span_Link{{}} }, Status: 200},
	{Name: "the span id of the neighbour", Edit: func(r *tracepb.ResourceSpans, s *tracepb.Span) { s.SpanId = r.ScopeSpans[0].Spans[0].SpanId },
		Status: 200, Lost: 1},

	// Keys that clash.
	{Name: "a and a.b", Edit: attrs("a", 1, "a.b", 2), Status: 200, Reject: 1, Lost: 1},
	{Name: "a.b and a", Edit: attrs("a.b", 2, "a", 1), Status: 200, Reject: 1, Lost: 1},
	{Name: "a.b and a.b.c", Edit: attrs("a.b", 2, "a.b.c", 1), Status: 200, Reject: 1, Lost: 1},
	{Name: "rl.reward and rl.reward.mean", Edit: attrs("rl.reward", 1.5, "rl.reward.mean", 1.25), Status: 200, Reject: 1, Lost: 1},
	{Name: "a and a.b in an event", Edit: event("a", 1, "a.b", 2), Status: 200, Reject: 1, Lost: 1},
	{Name: "a and a.b in a link", Edit: link("a", 1, "a.b", 2), Status: 200, Reject: 1, Lost: 1},
	{Name: "a and a.b in the scope", Edit: scope("a", 1, "a.b", 2), Status: 200},
	{Name: "a and a.b in the resource", Edit: resource("deployment.environment", "x", "deployment.environment.name", "y"), Status: 500, Lost: 2},
	{Name: "a list a and a.b", Edit: attrs("a", list{1}, "a.b", 2), Status: 200, Reject: 1, Lost: 1},
	{Name: "a list a and a.0", Edit: attrs("a", list{1}, "a.0", 2), Status: 200, Shows: Shown{"attributes.a.0": 2.0}},
	{Name: "a.0 and a list a", Edit: attrs("a.0", 2, "a", list{1}), Status: 200, Shows: Shown{"attributes.a.0": 1.0}},
	{Name: "a map a and a.b", Edit: attrs("a", object{"c", 1}, "a.b", 2), Status: 200, Shows: Shown{"attributes.a.c": 1.0, "attributes.a.b": 2.0}},
	{Name: "a map a of b and a.b.c", Edit: attrs("a", object{"b", 1}, "a.b.c", 2), Status: 200, Reject: 1, Lost: 1},
	{Name: "a JSON object a and a.b", Edit: attrs("a", `{"c":1}`, "a.b", 2), Status: 200, Shows: Shown{"attributes.a.c": 1.0, "attributes.a.b": 2.0}},
	{Name: "a JSON list a and a.b", Edit: attrs("a", `[1]`, "a.b", 2), Status: 200, Reject: 1, Lost: 1},
	{Name: "a JSON object a of b and a.b.c", Edit: attrs("a", `{"b":1}`, "a.b.c", 2), Status: 200, Reject: 1, Lost: 1},
	{Name: "text that looks like JSON and is none, and a.b", Edit: attrs("a", `{"b"`, "a.b", 2), Status: 200, Reject: 1, Lost: 1},
	{Name: "a.0 and a.1", Edit: attrs("a.0", 1, "a.1", 2), Status: 200, Shows: Shown{"attributes.a.0": 1.0, "attributes.a.1": 2.0}},
	{Name: "an empty key", Edit: attrs("", 1), Status: 200},
	{Name: "an empty key and .a", Edit: attrs("", 1, ".a", 1), Status: 200, Reject: 1, Lost: 1},
	{Name: "a..b and a trailing dot", Edit: attrs("a..b", 1, "c.", 2), Status: 200},
	{Name: "a repeated key", Edit: attrs("a", 1, "a", 2), Status: 200, Shows: Shown{"attributes.a": 2.0}},
	{Name: "a repeated key in the resource", Edit: resource("a", 1, "a", 2), Status: 200},
	{Name: "a key of 150 segments", Edit: attrs("a"+strings.Repeat(".a", 149), 1), Status: 200},
	{Name: "a key of 300 segments", Edit: attrs("a"+strings.Repeat(".a", 299), 1), Status: 200, Lost: 2},
	{Name: "a key of 600 segments", Edit: attrs("a"+strings.Repeat(".a", 599), 1), Status: 500, Lost: 2},
	{Name: "a key of 300 segments in the resource", Edit: resource("a"+strings.Repeat(".a", 299), 1), Status: 200, Lost: 2},

	// Values that have no meaning for Weave.
	{Name: "bytes", Edit: attrs("a", []byte{1, 2}), Status: 200, Shows: Shown{"attributes.a": "AQI="}},
	{Name: "NaN and infinity", Edit: attrs("a", math.NaN(), "b", math.Inf(1), "c", math.Inf(-1)), Status: 200,
		Shows: Shown{"attributes.a": "nan", "attributes.b": "inf", "attributes.c": "-inf"}},
	{Name: "the ends of 64 bits", Edit: attrs("a", math.MaxInt64, "b", math.MinInt64), Status: 200},
	{Name: "an empty list and an empty map", Edit: attrs("a", list{}, "b", object{}), Status: 200},
	{Name: "NUL in a value", Edit: attrs("a", "\x00"), Status: 200, Shows: Shown{"attributes.a": "\x00"}},
	{Name: "a 4 MB text", Edit: attrs("a", strings.Repeat("x", 4<<20)), Status: 200, Shows: Shown{"blanked": true},
		Unseen: "the database layer's limit of 3.5 MiB is not in the published path of OTLP; W&B's documentation and wandb/weave#5448"},
	{Name: "two texts of 1 MB", Edit: attrs("a", strings.Repeat("x", 1<<20), "b", strings.Repeat("x", 1<<20)), Status: 200, Shows: Shown{"blanked": true},
		Unseen: "attributes are stored twice, in a column of their own and in the dump of the span: wandb/weave#5448"},
	{Name: "a key that names a credential", Edit: attrs("openai.api_key", "sk-1", "api_keys", "x"), Status: 200,
		Shows: Shown{"attributes.openai.api_key": "REDACTED", "attributes.api_keys": "x"}},

	// Keys that have a meaning.
	{Name: "input.value hides what has no meaning", Edit: attrs("input.value", "x", "dl.iteration", 7), Status: 200,
		Shows: Shown{"attributes.dl.iteration": nil, "input": object{"input.value", "x"}.value()}},
	{Name: "wandb.attributes beside input.value", Edit: attrs("input.value", "x", "dl.iteration", 7, "wandb.attributes.dl.iteration", 7), Status: 200,
		Shows: Shown{"attributes.dl.iteration": 7.0}},
	{Name: "wandb.attributes alone", Edit: attrs("dl.iteration", 7, "wandb.attributes.x", 8), Status: 200,
		Shows: Shown{"attributes.dl.iteration": 7.0, "attributes.x": nil, "attributes.wandb.attributes.x": 8.0}},
	{Name: "a run", Edit: attrs("wandb.wb_run_id", "abc123"), Status: 200, Shows: Shown{"run": "abc123"}},
	{Name: "a run with entity and project", Edit: attrs("wandb.wb_run_id", "e/p/abc123"), Status: 200, Shows: Shown{"run": nil}},
	{Name: "a run with a colon", Edit: attrs("wandb.wb_run_id", "p:abc123"), Status: 200, Shows: Shown{"run": nil}},
	{Name: "a run on the resource", Edit: resource("wandb.wb_run_id", "abc123"), Status: 200, Shows: Shown{"run": nil}},
	{Name: "a run by its old name", Edit: attrs("wb_run_id", "abc123"), Status: 200, Shows: Shown{"run": nil}},
	{Name: "an integer run", Edit: attrs("wandb.wb_run_id", 7), Status: 500, Lost: 2},
	{Name: "a run of true", Edit: attrs("wandb.wb_run_id", true), Status: 500, Lost: 2},
	{Name: "a fractional run", Edit: attrs("wandb.wb_run_id", 1.5), Status: 500, Lost: 2},
	{Name: "a run that is a list", Edit: attrs("wandb.wb_run_id", list{"a"}), Status: 200},
	{Name: "a run of 0", Edit: attrs("wandb.wb_run_id", 0), Status: 200, Shows: Shown{"run": nil}},
	{Name: "a run that is a JSON object", Edit: attrs("wandb.wb_run_id", `{"a":1}`), Status: 500, Lost: 2},
	{Name: "step 7", Edit: attrs("wandb.wb_run_step", 7, "wandb.wb_run_step_end", 9), Status: 200, Shows: Shown{"step": 7.0, "step_end": 9.0}},
	{Name: "step 0", Edit: attrs("wandb.wb_run_step", 0), Status: 200, Shows: Shown{"step": nil}},
	{Name: "step 3.0", Edit: attrs("wandb.wb_run_step", 3.0), Status: 200, Shows: Shown{"step": 3.0}},
	{Name: `step "7"`, Edit: attrs("wandb.wb_run_step", "7"), Status: 200, Shows: Shown{"step": 7.0}},
	{Name: "step true", Edit: attrs("wandb.wb_run_step", true), Status: 200, Shows: Shown{"step": 1.0}},
	{Name: "step 2^40", Edit: attrs("wandb.wb_run_step", 1<<40), Status: 200, Shows: Shown{"step": float64(1 << 40)}},
	{Name: "step -1", Edit: attrs("wandb.wb_run_step", -1), Status: 500, Lost: 2},
	{Name: "last step -1", Edit: attrs("wandb.wb_run_step_end", -1), Status: 500, Lost: 2},
	{Name: "step 3.5", Edit: attrs("wandb.wb_run_step", 3.5), Status: 500, Lost: 2},
	{Name: `step "x"`, Edit: attrs("wandb.wb_run_step", "x"), Status: 500, Lost: 2},
	{Name: "a display name", Edit: attrs("wandb.display_name", "train_step 120 r3"), Status: 200, Shows: Shown{"display_name": "train_step 120 r3"}},
	{Name: "an integer display name", Edit: attrs("wandb.display_name", 7), Status: 500, Lost: 2},
	{Name: "a display name of 3,000 characters", Edit: attrs("wandb.display_name", strings.Repeat("x", 3000)), Status: 200,
		Shows: Shown{"display_name": strings.Repeat("x", 1021) + "..."}},
	{Name: "a display name of 1,200 characters that ends in blanks", Edit: attrs("wandb.display_name", "a"+strings.Repeat(" ", 1199)), Status: 500, Lost: 2},
	{Name: "a display name that is JSON text", Edit: attrs("wandb.display_name", `[1]`), Status: 500, Lost: 2},
	{Name: "a thread", Edit: attrs("wandb.thread_id", "t1"), Status: 200, Shows: Shown{"thread": "t1", "turn": nil}},
	{Name: "a thread and a turn", Edit: attrs("wandb.thread_id", "t1", "wandb.is_turn", true), Status: 200, Shows: Shown{"thread": "t1", "turn": RuleSpan}},
	{Name: "a thread and no turn", Edit: attrs("wandb.thread_id", "t1", "wandb.is_turn", false), Status: 200, Shows: Shown{"thread": "t1", "turn": nil}},
	{Name: "a turn without a thread", Edit: attrs("wandb.is_turn", true), Status: 200, Shows: Shown{"thread": nil, "turn": nil}},
	{Name: "a conversation", Edit: attrs("gen_ai.conversation.id", "c1", "wandb.thread_id", "t1"), Status: 200, Shows: Shown{"thread": "c1", "turn": RuleSpan}},
	{Name: "a conversation and no turn", Edit: attrs("gen_ai.conversation.id", "c1", "wandb.is_turn", false), Status: 200, Shows: Shown{"thread": "c1", "turn": nil}},
	{Name: `a turn of "false"`, Edit: attrs("wandb.thread_id", "t1", "wandb.is_turn", "false"), Status: 200, Shows: Shown{"turn": RuleSpan}},
	{Name: "an integer thread", Edit: attrs("wandb.thread_id", 7), Status: 500, Lost: 2},
	{Name: "an integer conversation", Edit: attrs("gen_ai.conversation.id", 7), Status: 500, Lost: 2},
	{Name: "wandb.attributes that is a map", Edit: attrs("input.value", "x", "wandb.attributes", object{"a", 1}), Status: 200, Shows: Shown{"attributes.a": 1.0}},
	{Name: "wandb.attributes that is a JSON object", Edit: attrs("input.value", "x", "wandb.attributes", `{"a":1}`), Status: 200, Shows: Shown{"attributes.a": 1.0}},
	{Name: "wandb.attributes that is text", Edit: attrs("wandb.attributes", "x"), Status: 400, Lost: 2},
	{Name: "wandb.attributes that is an integer", Edit: attrs("wandb.attributes", 7), Status: 500, Lost: 2},
	{Name: "wandb.attributes that is a list", Edit: attrs("wandb.attributes", list{1}), Status: 500, Lost: 2},
	{Name: "wandb.attributes with bytes", Edit: attrs("input.value", "x", "wandb.attributes.a", []byte{1}), Status: 500, Lost: 2},
	{Name: "wandb.attributes with NaN", Edit: attrs("input.value", "x", "wandb.attributes.a", math.NaN()), Status: 200},
	{Name: "wandb that is text", Edit: attrs("wandb", "x"), Status: 200, Shows: Shown{"run": nil}},
	{Name: "bytes in input.value", Edit: attrs("input.value", []byte{1}), Status: 500, Lost: 2},
	{Name: "NaN in input.value", Edit: attrs("input.value", math.NaN()), Status: 200},
	{Name: "a list in input.value", Edit: attrs("input.value", list{1, 2}), Status: 200},
	{Name: "input and input.value", Edit: attrs("input", "x", "input.value", "y"), Status: 200, Reject: 1, Lost: 1},
	{Name: "input that is a map", Edit: attrs("input", object{"a", 1}), Status: 200, Shows: Shown{"input": object{"a", 1.0}.value()}},
	{Name: "output that is text", Edit: attrs("output", "x"), Status: 200, Shows: Shown{"output": "x"}},
	{Name: "output that is a fraction", Edit: attrs("output", 1.5), Status: 500, Lost: 2},
	{Name: "output that is an integer", Edit: attrs("output", 7), Status: 200, Shows: Shown{"output": 7.0}},
	{Name: "output that is true", Edit: attrs("output", true), Status: 200},
	{Name: "outputs that is a fraction", Edit: attrs("outputs", 1.5), Status: 500, Lost: 2},
	{Name: "output.value that is a fraction", Edit: attrs("output.value", 1.5), Status: 200, Shows: Shown{"output": object{"output.value", 1.5}.value()}},
	{Name: "bytes in output", Edit: attrs("output", []byte{1}), Status: 200},
	{Name: "bytes in output.value", Edit: attrs("output.value", []byte{1}), Status: 500, Lost: 2},
	{Name: "gen_ai.request that is text", Edit: attrs("gen_ai.request", "x"), Status: 500, Lost: 2},
	{Name: "gen_ai.request that is a list", Edit: attrs("gen_ai.request", list{1}), Status: 500, Lost: 2},
	{Name: "gen_ai.request.temperature", Edit: attrs("gen_ai.request.temperature", 0.5), Status: 200},
	{Name: "gen_ai.request.model", Edit: attrs("gen_ai.request.model", "m"), Status: 200, Shows: Shown{"attributes.model": "m"}},
	{Name: "an integer model", Edit: attrs("gen_ai.request.model", 7), Status: 500, Lost: 2},
	{Name: "a model that is a list", Edit: attrs("gen_ai.request.model", list{1}), Status: 500, Lost: 2},
	{Name: "llm.invocation_parameters that is text", Edit: attrs("llm.invocation_parameters", "x"), Status: 500, Lost: 2},
	{Name: "llm.invocation_parameters that is a JSON object", Edit: attrs("llm.invocation_parameters", `{"model":"m"}`), Status: 200},
	{Name: "llm.invocation_parameters that is a JSON list", Edit: attrs("llm.invocation_parameters", `[1]`), Status: 500, Lost: 2},
	{Name: "llm.invocation_parameters with an integer model", Edit: attrs("llm.invocation_parameters", `{"model":7}`), Status: 500, Lost: 2},
	{Name: "token counts", Edit: attrs("gen_ai.usage.input_tokens", 3, "gen_ai.usage.output_tokens", "4"), Status: 200},
	{Name: "a token count that is text", Edit: attrs("gen_ai.usage.input_tokens", "x"), Status: 500, Lost: 2},
	{Name: "a token count that is fractional", Edit: attrs("gen_ai.usage.input_tokens", 3.7), Status: 200},
	{Name: "a token count that is NaN", Edit: attrs("gen_ai.usage.input_tokens", math.NaN()), Status: 500, Lost: 2},
	{Name: "a token count that is a list", Edit: attrs("gen_ai.usage.input_tokens", list{3}), Status: 500, Lost: 2},
	{Name: "a token count below zero", Edit: attrs("gen_ai.usage.input_tokens", -3), Status: 200},
	{Name: "llm.token_count.prompt that is text", Edit: attrs("llm.token_count.prompt", "x"), Status: 500, Lost: 2},
	{Name: "a span kind for Weave", Edit: attrs("weave.span.kind", "agent"), Status: 200, Shows: Shown{"attributes.kind": "agent"}},
	{Name: "an integer span kind for Weave", Edit: attrs("weave.span.kind", 7), Status: 200, Shows: Shown{"attributes.kind": 7.0}},
	{Name: "bytes in a key with a meaning", Edit: attrs("weave.span.kind", []byte{1}), Status: 500, Lost: 2},
	{Name: "langfuse.startTime", Edit: attrs("langfuse.startTime", "2025-01-01T00:00:00Z"), Status: 200},
	{Name: "langfuse.startTime beyond all time", Edit: attrs("langfuse.startTime", 1e300), Status: 500, Lost: 2},
	{Name: "langfuse.startTime that is no time", Edit: attrs("langfuse.startTime", "x", "langfuse.endTime", true), Status: 200},

	// Text that refers to Weave's objects.
	{Name: "a reference", Edit: attrs("a", "weave:///e/p/object/o:v"), Status: 404, Lost: 2},
	{Name: "a reference that is none", Edit: attrs("a", "weave:///x"), Status: 400, Lost: 2},
	{Name: "an internal reference", Edit: attrs("a", "weave-trace-internal:///abc/object/o:v"), Status: 400, Lost: 2},
	{Name: "a reference in input.value", Edit: attrs("input.value", "weave:///e/p/object/o:v"), Status: 404, Lost: 2},
	{Name: "a reference in a list", Edit: attrs("a", list{"weave:///x"}), Status: 400, Lost: 2},
	{Name: "a reference in a map", Edit: attrs("a", object{"b", "weave:///x"}), Status: 400, Lost: 2},
	{Name: "a reference in JSON text", Edit: attrs("a", `{"b":["weave:///x"]}`), Status: 400, Lost: 2},
	{Name: "a reference in JSON text in JSON text", Edit: attrs("a", `{"b":"[\"weave:///x\"]"}`), Status: 400, Lost: 2},
	{Name: "a reference in a sentence", Edit: attrs("a", "see weave:///x"), Status: 200, Shows: Shown{"attributes.a": "see weave:///x"}},
	{Name: "a reference in a key", Edit: attrs("weave:///x", 1), Status: 200},
	{Name: "a reference in weave.object_refs", Edit: attrs("weave.object_refs", list{"x", "weave:///x"}), Status: 400, Lost: 2},
	{Name: "no reference in weave.object_refs", Edit: attrs("weave.object_refs", list{"x", "weave-trace-internal:///x/y"}), Status: 200},
	{Name: "a reference in an event", Edit: event("a", "weave:///e/p/object/o:v"), Status: 200, Lost: 2},
	{Name: "a reference in a link", Edit: link("a", "weave:///e/p/object/o:v"), Status: 200, Lost: 2},
	{Name: "a reference in the resource", Edit: resource("a", "weave:///e/p/object/o:v"), Status: 200, Lost: 2},
	{Name: "a reference in the scope", Edit: scope("a", "weave:///e/p/object/o:v"), Status: 200},
	{Name: "a reference in JSON text in the resource", Edit: resource("a", `["weave:///x"]`), Status: 200, Lost: 2},
	{Name: "a reference as the status message", Edit: status(2, "weave:///x"), Status: 200, Lost: 2},
	{Name: "a reference as the name", Edit: named("weave:///x"), Status: 200, Lost: 2},
	{Name: "a reference as the trace state", Edit: func(_ *tracepb.ResourceSpans, s *tracepb.Span) { s.TraceState = "weave:///x" }, Status: 200, Lost: 2},
	{Name: "agents: a reference that is none", Path: AgentsPath, Edit: attrs("a", "weave:///x"), Status: 400, Lost: 2},
	{Name: "agents: a reference in an event", Path: AgentsPath, Edit: event("a", "weave:///x"), Status: 200},

	// Text that looks like JSON.
	{Name: "a JSON object", Edit: attrs("a", `{"b":[1,"x"]}`), Status: 200, Shows: Shown{"attributes.a.b.1": "x"}},
	{Name: "JSON text that is unclosed", Edit: attrs("a", `{"b":`), Status: 200, Shows: Shown{"attributes.a": `{"b":`}},
	{Name: "JSON text 150 deep", Edit: attrs("a", jsonLists(150)), Status: 200},
	{Name: "JSON text 300 deep", Edit: attrs("a", jsonLists(300)), Status: 200, Lost: 2},
	{Name: "JSON text 300 deep beside input.value", Edit: attrs("a", jsonLists(300), "input.value", "x"), Status: 200, Lost: 2},
	{Name: "JSON text 3,000 deep", Edit: attrs("a", jsonLists(3000)), Status: 500, Lost: 2},
	{Name: "JSON text 3,000 deep and unclosed", Edit: attrs("a", strings.Repeat("[", 3000)), Status: 200, Shows: Shown{"attributes.a": strings.Repeat("[", 3000)}},
	{Name: "JSON text 20,000 deep and unclosed", Edit: attrs("a", strings.Repeat("[", 20_000)), Status: 500, Lost: 2},
	{Name: "JSON text with an integer of 5,000 digits", Edit: attrs("a", "["+strings.Repeat("9", 5000)+"]"), Status: 400, Lost: 2},
	{Name: "JSON text with an integer of 4,300 digits", Edit: attrs("a", "["+strings.Repeat("9", 4300)+"]"), Status: 200},
	{Name: "JSON text with NaN", Edit: attrs("a", "[NaN]"), Status: 200, Shows: Shown{"attributes.a.0": "nan"}},
	{Name: "JSON text with NaN in input.value", Edit: attrs("input.value", "[NaN]"), Status: 200},
	{Name: "JSON text with half a surrogate", Edit: attrs("a", `["\ud800"]`), Status: 200},
	{Name: "JSON text in an event", Edit: event("a", jsonLists(3000)), Status: 500, Lost: 2},
	{Name: "JSON text in the resource", Edit: resource("a", jsonLists(3000)), Status: 500, Lost: 2},

	// Names.
	{Name: "an empty name", Edit: named(""), Status: 422, Lost: 2},
	{Name: "an emoji alone", Edit: named("🚀"), Status: 422, Lost: 2},
	{Name: "punctuation alone", Edit: named(":()"), Status: 422, Lost: 2},
	{Name: "a slash alone", Edit: named("/"), Status: 200, Shows: Shown{"op_name": "_"}},
	{Name: "capitals, blanks and punctuation", Edit: named("GET /a/b:c (d)[e]#f@g,<h>"), Status: 200, Shows: Shown{"op_name": "get__a_bc_defgh"}},
	{Name: "a newline", Edit: named("a\nb"), Status: 200, Shows: Shown{"op_name": "ab"}},
	{Name: "a Japanese name", Edit: named("学習"), Status: 200, Shows: Shown{"op_name": "学習"}},
	{Name: "127 characters", Edit: named(strings.Repeat("x", 127)), Status: 200, Shows: Shown{"op_name": strings.Repeat("x", 127)}},
	{Name: "128 characters", Edit: named(strings.Repeat("x", 128)), Status: 200, Shows: Shown{"op_name": strings.Repeat("x", 128)}},
	{Name: "300 characters", Edit: named(strings.Repeat("x", 300)), Status: 200, Shows: Shown{"op_name": strings.Repeat("x", 123) + "0d4e"}},
	{Name: "300 characters in words", Edit: named(strings.Repeat("ab cd.", 50)), Status: 200},
	{Name: "200 characters that end in blanks", Edit: named("a" + strings.Repeat(" ", 199)), Status: 500, Lost: 2},
	{Name: "a capital I with a dot", Edit: named("İ"), Status: 422, Lost: 2},
	{Name: "numbers that are no digits", Edit: named("x²½Ⅷ"), Status: 200, Shows: Shown{"op_name": "x²½ⅷ"}},
	{Name: "vowel signs", Edit: named("हिन्दी"), Status: 200, Shows: Shown{"op_name": "हनद"}},

	// Times.
	{Name: "an end before the start", Edit: times(2_000_000_000, 1_000_000_000), Status: 200},
	{Name: "no end", Edit: times(1_700_000_000_000_000_000, 0), Status: 200},
	{Name: "no times", Edit: times(0, 0), Status: 200},
	{Name: "the last of all times", Edit: times(math.MaxUint64, math.MaxUint64), Status: 200},
	{Name: "an event at the last of all times", Edit: func(_ *tracepb.ResourceSpans, s *tracepb.Span) {
		s.Events = []*tracepb.Span_Event{{TimeUnixNano: math.MaxUint64}}
	}, Status: 200},

	// The agents endpoint.
	{Name: "agents: a good span", Path: AgentsPath, Edit: attrs("gen_ai.operation.name", "chat", "x", 1), Status: 200},
	{Name: "agents: a and a.b", Path: AgentsPath, Edit: attrs("a", 1, "a.b", 2), Status: 200, Reject: 1, Lost: 1},
	{Name: "agents: a value without a value", Path: AgentsPath, Edit: attrs("a", nil), Status: 400, Lost: 2},
	{Name: "agents: kind 9", Path: AgentsPath, Edit: func(_ *tracepb.ResourceSpans, s *tracepb.Span) { s.Kind = 9 }, Status: 400, Lost: 2},
	{Name: "agents: a and a.b in the resource", Path: AgentsPath, Edit: resource("a", 1, "a.b", 2), Status: 500, Lost: 2},
	{Name: "agents: bytes and NaN", Path: AgentsPath, Edit: attrs("a", []byte{1}, "b", math.NaN()), Status: 200},
	{Name: "agents: no trace id", Path: AgentsPath, Edit: ids(nil, id(8), nil), Status: 200},
	{Name: "agents: an empty name", Path: AgentsPath, Edit: named(""), Status: 200},
	{Name: "agents: a token count that is text", Path: AgentsPath, Edit: attrs("gen_ai.usage.input_tokens", "x"), Status: 200},
	{Name: "agents: integers for text", Path: AgentsPath, Edit: attrs("gen_ai.conversation.id", 7, "gen_ai.agent.name", 8, "wandb.wb_run_id", 9), Status: 200},
	{Name: "agents: JSON text 3,000 deep", Path: AgentsPath, Edit: attrs("a", jsonLists(3000)), Status: 200, Reject: 1, Lost: 1},
	{Name: "agents: JSON text with an integer of 5,000 digits", Path: AgentsPath, Edit: attrs("a", "["+strings.Repeat("9", 5000)+"]"), Status: 400, Lost: 2},
	{Name: "agents: the span id of the neighbour", Path: AgentsPath, Edit: func(r *tracepb.ResourceSpans, s *tracepb.Span) {
		s.SpanId = r.ScopeSpans[0].Spans[0].SpanId
	}, Status: 200},
}
