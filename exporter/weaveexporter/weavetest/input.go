// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// What the request of a rule holds.
const (
	RuleProject   = "entity/project"
	RuleSpan      = "0202020202020202" // id of the rule's span, where the rule does not change it
	RuleNeighbour = "0101010101010101"
)

// Body is the request of a rule, in protobuf.
func (r Rule) Body() []byte { return r.BodyFor("entity", "project") }

// BodyFor is the request of a rule, for another project.
func (r Rule) BodyFor(entity, project string) []byte {
	span := func(n byte) *tracepb.Span {
		return &tracepb.Span{
			TraceId: bytes.Repeat([]byte{n}, 16), SpanId: bytes.Repeat([]byte{n}, 8), Name: "span",
			StartTimeUnixNano: 1_700_000_000_000_000_000, EndTimeUnixNano: 1_700_000_001_000_000_000,
		}
	}
	rs := &tracepb.ResourceSpans{
		Resource:   &resourcepb.Resource{Attributes: pairs("wandb.entity", entity, "wandb.project", project, "service.name", "trainer")},
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "lens"}, Spans: []*tracepb.Span{span(1), span(2)}}},
	}
	if r.Edit != nil {
		r.Edit(rs, rs.ScopeSpans[0].Spans[1])
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(&coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{rs}})
	if err != nil {
		panic(fmt.Sprintf("rule %q: %v", r.Name, err))
	}
	if r.Bytes != nil {
		body = r.Bytes(body)
	}
	return body
}

type edit = func(*tracepb.ResourceSpans, *tracepb.Span)

func attrs(kv ...any) edit {
	return func(_ *tracepb.ResourceSpans, s *tracepb.Span) { s.Attributes = append(s.Attributes, pairs(kv...)...) }
}

func event(kv ...any) edit {
	return func(_ *tracepb.ResourceSpans, s *tracepb.Span) {
		s.Events = append(s.Events, &tracepb.Span_Event{Name: "event", TimeUnixNano: s.StartTimeUnixNano, Attributes: pairs(kv...)})
	}
}

func link(kv ...any) edit {
	return func(_ *tracepb.ResourceSpans, s *tracepb.Span) {
		s.Links = append(s.Links, &tracepb.Span_Link{TraceId: id(16), SpanId: id(8), Attributes: pairs(kv...)})
	}
}

func resource(kv ...any) edit {
	return func(r *tracepb.ResourceSpans, _ *tracepb.Span) {
		r.Resource.Attributes = append(r.Resource.Attributes, pairs(kv...)...)
	}
}

func scope(kv ...any) edit {
	return func(r *tracepb.ResourceSpans, _ *tracepb.Span) { r.ScopeSpans[0].Scope.Attributes = pairs(kv...) }
}

// ownReference is an attribute with a reference to something of the span's project, and what stands before and behind its path.
func ownReference(key, before, tail string) edit {
	return func(r *tracepb.ResourceSpans, s *tracepb.Span) {
		entity, project := r.Resource.Attributes[0].Value.GetStringValue(), r.Resource.Attributes[1].Value.GetStringValue()
		s.Attributes = append(s.Attributes, pairs(key, before+reference+entity+"/"+project+"/"+tail)...)
	}
}

func unroute(key string) edit {
	return func(r *tracepb.ResourceSpans, _ *tracepb.Span) {
		r.Resource.Attributes = slices.DeleteFunc(r.Resource.Attributes, func(kv *commonpb.KeyValue) bool { return kv.Key == key })
	}
}

func named(name string) edit {
	return func(_ *tracepb.ResourceSpans, s *tracepb.Span) { s.Name = name }
}

func status(code int32, message string) edit {
	return func(_ *tracepb.ResourceSpans, s *tracepb.Span) {
		s.Status = &tracepb.Status{Code: tracepb.Status_StatusCode(code), Message: message}
	}
}

func ids(trace, span, parent []byte) edit {
	return func(_ *tracepb.ResourceSpans, s *tracepb.Span) {
		s.TraceId, s.SpanId, s.ParentSpanId = trace, span, parent
	}
}

func times(start, end uint64) edit {
	return func(_ *tracepb.ResourceSpans, s *tracepb.Span) { s.StartTimeUnixNano, s.EndTimeUnixNano = start, end }
}

// id is an id of n bytes, those of the rule's span.
func id(n int) []byte { return bytes.Repeat([]byte{2}, n) }

// list and object are attribute values; an object is keys and values in turn.
type (
	list   []any
	object []any
)

// value is the object as JSON reads it.
func (o object) value() map[string]any {
	m := map[string]any{}
	for i := 0; i < len(o); i += 2 {
		m[o[i].(string)] = o[i+1]
	}
	return m
}

// nestedLists is a list in a list, depth of them in all.
func nestedLists(depth int) any {
	var v any = list{}
	for range depth - 1 {
		v = list{v}
	}
	return v
}

// nestedMaps is a value in a map in a map, depth of them in all.
func nestedMaps(depth int) any {
	var v any = 1
	for range depth {
		v = object{"k", v}
	}
	return v
}

// jsonLists is the text of a list in a list, depth of them in all.
func jsonLists(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func replace(old, new string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(new)) }
}

func pairs(kv ...any) []*commonpb.KeyValue {
	var all []*commonpb.KeyValue
	for i := 0; i < len(kv); i += 2 {
		all = append(all, &commonpb.KeyValue{Key: kv[i].(string), Value: anyValue(kv[i+1])})
	}
	return all
}

func anyValue(v any) *commonpb.AnyValue {
	switch v := v.(type) {
	case nil:
		return &commonpb.AnyValue{}
	case string:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}
	case int:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(v)}}
	case float64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}}
	case []byte:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: v}}
	case list:
		values := &commonpb.ArrayValue{}
		for _, e := range v {
			values.Values = append(values.Values, anyValue(e))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: values}}
	case object:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: pairs(v...)}}}
	}
	panic(fmt.Sprintf("no attribute value: %T", v))
}
