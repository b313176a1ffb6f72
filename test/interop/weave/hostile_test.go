// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package weave

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// generator makes requests that hold what Weave loses, the same ones for the same seed.
type generator struct {
	*rand.Rand
	// harm is the share of choices that are hostile, from 0 to 1.
	harm float64
	next uint64 // of the ids
	own  string // project of the spans, entity/project
}

func newGenerator(seed uint64, harm float64) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 8)), harm, seed << 32, ""}
}

func (g *generator) hostile() bool { return g.Float64() < g.harm }

func pick[T any](g *generator, list []T) T { return list[g.IntN(len(list))] }

var (
	innocentKeys = []string{"dl.iteration", "dl.loss", "nemo.phase", "data.batch", "http.route", "x", "y.z"}
	hostileKeys  = []string{
		"", ".", "a", "a.b", "a.b.c", "a.0", "a.1", "rl.reward", "rl.reward.mean", "nemo.span.truncated", "nemo.span.truncated.reason",
		"input", "input.value", "inputs", "output", "output.value", "outputs", "gen_ai", "gen_ai.request", "gen_ai.request.model",
		"gen_ai.response.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.conversation.id", "gen_ai.prompt",
		"gen_ai.prompt.0.content", "llm.invocation_parameters", "llm.token_count.prompt", "weave.span.kind", "wandb", "wandb.attributes",
		"wandb.attributes.a", "wandb.attributes.a.b", "wandb.display_name", "wandb.thread_id", "wandb.is_turn", "wandb.wb_run_id",
		"wandb.wb_run_step", "wandb.wb_run_step_end", "langfuse.startTime", "service.api_key", notUTF8, "dl.iteration.x",
	}
	hostileNames = []string{
		"", " ", "/", "🚀", "a:b(c)[d]#e@f,g", "İstanbul", "हिन्दी", "学習 ステップ", "step\n\x00", notUTF8, strings.Repeat("long name ", 30),
		"trailing" + strings.Repeat(" ", 200), strings.Repeat("x", 300), strings.Repeat("é", 128), "<>", "GET /v1/models/{id}",
	}
	hostileTexts = slices.Concat(references, []string{
		"", "x", "7", "3.5", "-1", "true", "0", "e/p/run", "run:1", "abc123", notUTF8 + " tail", "\x00", `{"a":1}`, `{"a":{"b":[1,null]}}`, `["x"]`,
		`{"a"`, "[NaN]", `["\ud800"]`, `{"\udc00":"\ud83d\ude80"}`, jsonLists(100), jsonLists(300), jsonLists(700), jsonLists(3000), strings.Repeat("[", 20_000),
		"[" + strings.Repeat("9", 5000) + "]", `{"a.b":{"":1}}`, "see weave:///x", "2025-01-01T00:00:00Z", strings.Repeat("{\"a\":", 400) + "1" + strings.Repeat("}", 400),
		"weave:///" + ownProject + "/object/o:v", "weave:///" + ownProject + "/", `{"a":"weave:///` + ownProject + `/x"}`,
		` ["weave:///` + ownProject + `/object/o:v"]`, `["weave:\/\/\/` + ownProject + `/x"]`,
		`["weave-trace-internal:///x"]`, `{"a":"[\"weave:///x\"]"}`, `["weave:\/\/\/x"]`, `{"a":"\u0077eave:///x"}`,
		`["[\"weave-trace-internal:\/\/\/x\"]"]`, `{"b":"` + strings.Repeat("[", 300) + `\"see weave:///x\"` + strings.Repeat("]", 300) + `"}`,
	})
)

// references is text that Weave takes for references to its objects.
var references = []string{"weave:///e/p/op/x:y", "weave:///x", "weave-trace-internal:///x", `"weave:///x"`, ` ["weave:///x"]`}

// ownProject stands for the project that a span is for.
const ownProject = "~OWN~"

// notUTF8 stands for bytes that are not UTF-8, of the same length, since no message can be marshalled with those.
const notUTF8 = "~!NOT!~"

func jsonLists(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// marshal is the request's protobuf, with what stands for bytes replaced.
func marshal(resources ...*tracepb.ResourceSpans) []byte {
	body, err := proto.Marshal(&coltracepb.ExportTraceServiceRequest{ResourceSpans: resources})
	if err != nil {
		panic(err)
	}
	return bytes.ReplaceAll(body, []byte(notUTF8), []byte("\xff\xc0\xaf\xed\xa0\x80\xf8"))
}

// resource is the spans of one resource of a project.
func (g *generator) resource(entity, project string, spans int) *tracepb.ResourceSpans {
	g.own = entity + "/" + project
	attributes := []*commonpb.KeyValue{text("wandb.entity", entity), text("wandb.project", project), text("service.name", "trainer")}
	if g.hostile() {
		attributes = append(attributes, g.attributes(3)...)
	}
	rs := &tracepb.ResourceSpans{Resource: &resourcepb.Resource{Attributes: attributes}, ScopeSpans: []*tracepb.ScopeSpans{{
		Scope: &commonpb.InstrumentationScope{Name: "lens", Version: "1"},
	}}}
	if g.hostile() {
		rs.ScopeSpans[0].Scope.Attributes = g.attributes(3)
	}
	for range spans {
		rs.ScopeSpans[0].Spans = append(rs.ScopeSpans[0].Spans, g.span())
	}
	return rs
}

func (g *generator) id(n int) []byte {
	g.next++
	return binary.BigEndian.AppendUint64(bytes.Repeat([]byte{0xab}, n-8), g.next)
}

// span has ids of its own.
func (g *generator) span() *tracepb.Span {
	const second = 1_000_000_000
	start := 1_700_000_000*uint64(second) + g.Uint64N(second)
	s := &tracepb.Span{
		TraceId: g.id(16), SpanId: g.id(8), Name: "train_step", Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: start, EndTimeUnixNano: start + g.Uint64N(second), Attributes: g.attributes(4),
	}
	if g.hostile() {
		s.Name = pick(g, hostileNames)
	}
	if g.hostile() {
		s.Kind = pick(g, []tracepb.Span_SpanKind{-1, 0, 5, 6, 99})
	}
	if g.hostile() {
		s.Status = &tracepb.Status{Code: pick(g, []tracepb.Status_StatusCode{-1, 1, 2, 7}), Message: g.text()}
	}
	if g.hostile() {
		s.StartTimeUnixNano, s.EndTimeUnixNano = pick(g, []uint64{0, start, math.MaxUint64}), pick(g, []uint64{0, start - second, math.MaxUint64})
	}
	if g.hostile() {
		s.ParentSpanId = pick(g, [][]byte{nil, make([]byte, 8), g.id(8)})
	}
	if g.hostile() {
		s.TraceState = pick(g, []string{"a=b", notUTF8})
	}
	if g.hostile() {
		s.Events = append(s.Events, &tracepb.Span_Event{Name: "event", TimeUnixNano: start, Attributes: g.attributes(3)})
	}
	if g.hostile() {
		s.Links = append(s.Links, &tracepb.Span_Link{TraceId: g.id(16), SpanId: pick(g, [][]byte{nil, g.id(8)}), TraceState: g.text(), Attributes: g.attributes(3)})
	}
	return s
}

func (g *generator) attributes(most int) []*commonpb.KeyValue {
	var all []*commonpb.KeyValue
	for range g.IntN(most + 1) {
		key := pick(g, innocentKeys)
		if g.hostile() {
			key = pick(g, hostileKeys)
		}
		all = append(all, &commonpb.KeyValue{Key: key, Value: g.value(0)})
	}
	return all
}

func (g *generator) text() string {
	return strings.ReplaceAll(pick(g, hostileTexts), ownProject, g.own)
}

func (g *generator) value(depth int) *commonpb.AnyValue {
	if !g.hostile() {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: g.Int64N(1000)}}
	}
	switch choice := g.IntN(10); {
	case choice == 0:
		return &commonpb.AnyValue{}
	case choice == 1:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte{0, 0xff}}}
	case choice == 2:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: pick(g, []float64{0, 1.5, math.NaN(), math.Inf(1), -1e300, 3})}}
	case choice == 3:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: pick(g, []int64{0, -1, math.MaxInt64, math.MinInt64})}}
	case choice == 4:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: g.IntN(2) == 0}}
	case choice == 5 && depth < 3:
		list := &commonpb.ArrayValue{}
		for range g.IntN(3) {
			list.Values = append(list.Values, g.value(depth+1))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	case choice == 6 && depth < 3:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: g.attributes(3)}}}
	case choice == 7 && depth == 0 && g.IntN(8) == 0:
		v := &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{}}}
		for range pick(g, []int{20, 60, 100}) {
			v = &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{v}}}}
		}
		return v
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: g.text()}}
}

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}
