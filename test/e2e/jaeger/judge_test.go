// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package jaeger

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/lenscol/lenscol/test/jaegertest"
)

// shown are the spans of a trace as texts that say all that Jaeger says of them.
func shown(trace jaegertest.Trace) (spans []string) {
	for _, s := range trace.Spans {
		spans = append(spans, text(s, trace.Processes[s.ProcessID]))
	}
	return spans
}

// expected is a span as Jaeger must show it: "OpenTelemetry to Jaeger Transformation" of the OTLP compatibility specification.
func expected(s *tracepb.Span, scope *commonpb.InstrumentationScope, resource *resourcepb.Resource) string {
	span := jaegertest.Span{
		TraceID: hex.EncodeToString(s.TraceId), SpanID: hex.EncodeToString(s.SpanId), OperationName: s.Name,
		StartTime: int64(s.StartTimeUnixNano / 1000), Duration: max(0, int64(s.EndTimeUnixNano-s.StartTimeUnixNano)) / 1000, // It has no negative ones.
		Tags: tags(s.Attributes),
	}
	for key, value := range map[string]string{
		"otel.scope.name": scope.GetName(), "otel.scope.version": scope.GetVersion(),
		"span.kind":               map[tracepb.Span_SpanKind]string{1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}[s.Kind],
		"w3c.tracestate":          s.TraceState,
		"otel.status_code":        map[tracepb.Status_StatusCode]string{1: "OK", 2: "ERROR"}[s.Status.GetCode()],
		"otel.status_description": s.Status.GetMessage(),
	} {
		span.Tags = withText(span.Tags, key, value)
	}
	if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		span.Tags = append(span.Tags, jaegertest.Tag{Key: "error", Type: "bool", Value: true})
	}
	if len(s.ParentSpanId) > 0 {
		span.References = append(span.References, jaegertest.Reference{RefType: "CHILD_OF", TraceID: span.TraceID, SpanID: hex.EncodeToString(s.ParentSpanId)})
	}
	for _, l := range s.Links {
		if len(s.ParentSpanId) > 0 && bytes.Equal(l.TraceId, s.TraceId) && bytes.Equal(l.SpanId, s.ParentSpanId) {
			span.References[0].RefType = "FOLLOWS_FROM" // Jaeger has one reference to a span: a link to the parent takes the parent's place.
			continue
		}
		span.References = append(span.References, jaegertest.Reference{
			RefType: "FOLLOWS_FROM", TraceID: hex.EncodeToString(l.TraceId), SpanID: hex.EncodeToString(l.SpanId)})
	}
	for _, e := range s.Events {
		span.Logs = append(span.Logs, jaegertest.Log{
			Timestamp: int64(e.TimeUnixNano / 1000),
			Fields:    withText(tags(e.Attributes), "event", e.Name),
		})
	}
	process := jaegertest.Process{Tags: tags(resource.GetAttributes())}
	process.Tags = slices.DeleteFunc(process.Tags, func(tag jaegertest.Tag) bool {
		if tag.Key == "service.name" {
			process.ServiceName = tag.Value.(string)
		}
		return tag.Key == "service.name"
	})
	return text(span, process)
}

func withText(tags []jaegertest.Tag, key, value string) []jaegertest.Tag {
	if value == "" {
		return tags
	}
	return append(tags, jaegertest.Tag{Key: key, Type: "string", Value: value})
}

func tags(attributes []*commonpb.KeyValue) (tags []jaegertest.Tag) {
	for _, kv := range attributes {
		tag := jaegertest.Tag{Key: kv.Key, Type: "string"}
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			tag.Value = v.StringValue
		case *commonpb.AnyValue_BoolValue:
			tag.Type, tag.Value = "bool", v.BoolValue
		case *commonpb.AnyValue_IntValue:
			tag.Type, tag.Value = "int64", json.Number(strconv.FormatInt(v.IntValue, 10))
			if v.IntValue > 1<<53-1 || v.IntValue < -(1<<53-1) { // What JavaScript would round is text.
				tag.Value = strconv.FormatInt(v.IntValue, 10)
			}
		case *commonpb.AnyValue_DoubleValue:
			tag.Type, tag.Value = "float64", v.DoubleValue
		case *commonpb.AnyValue_BytesValue:
			tag.Type, tag.Value = "binary", base64.StdEncoding.EncodeToString(v.BytesValue)
		case *commonpb.AnyValue_ArrayValue, *commonpb.AnyValue_KvlistValue:
			inside, err := json.Marshal(plain(kv.Value))
			if err != nil {
				panic(err) // There is no NaN and no infinity in what is sent.
			}
			tag.Value = string(inside)
		case nil:
			tag.Value = ""
		}
		tags = append(tags, tag)
	}
	return tags
}

// plain is a value as encoding/json has it.
func plain(v *commonpb.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_ArrayValue:
		list := []any{}
		for _, item := range v.ArrayValue.Values {
			list = append(list, plain(item))
		}
		return list
	case *commonpb.AnyValue_KvlistValue:
		fields := map[string]any{}
		for _, kv := range v.KvlistValue.Values {
			fields[kv.Key] = plain(kv.Value)
		}
		return fields
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue
	case *commonpb.AnyValue_IntValue:
		return v.IntValue
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonpb.AnyValue_BytesValue:
		return base64.StdEncoding.EncodeToString(v.BytesValue)
	}
	return nil
}

// text is the same for what means the same: tags stand in any order, numbers and JSON in any notation, ids have all zeros
// and empty bytes are not nil.
func text(s jaegertest.Span, process jaegertest.Process) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q trace %032s span %s at %d for %d\n", s.OperationName, s.TraceID, s.SpanID, s.StartTime, s.Duration)
	for _, ref := range s.References {
		fmt.Fprintf(&b, "  %s %032s %016s\n", ref.RefType, ref.TraceID, ref.SpanID)
	}
	fmt.Fprintf(&b, "  tags %s\n", tagText(s.Tags))
	for _, log := range s.Logs {
		fmt.Fprintf(&b, "  log at %d %s\n", log.Timestamp, tagText(log.Fields))
	}
	fmt.Fprintf(&b, "  of %q %s", process.ServiceName, tagText(process.Tags))
	return b.String()
}

func tagText(tags []jaegertest.Tag) string {
	texts := make([]string, len(tags))
	for i, tag := range tags {
		texts[i] = fmt.Sprintf("%q %s %s", tag.Key, tag.Type, valueText(tag))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

func valueText(tag jaegertest.Tag) string {
	switch v := tag.Value.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && tag.Type == "float64" {
			return fmt.Sprintf("%x", f)
		}
	case float64:
		return fmt.Sprintf("%x", v+0) // Jaeger has no -0.
	case string: // A list or a map is JSON in text.
		var inside any
		decoder := json.NewDecoder(strings.NewReader(v))
		decoder.UseNumber()
		if decoder.Decode(&inside) == nil && !decoder.More() {
			if again, err := json.Marshal(inside); err == nil {
				return string(again)
			}
		}
	}
	if tag.Type == "binary" && tag.Value == nil {
		return `""`
	}
	return fmt.Sprintf("%q", fmt.Sprint(tag.Value))
}
