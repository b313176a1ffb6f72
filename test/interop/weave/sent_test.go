// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package weave

import (
	"encoding/hex"
	"slices"
	"strings"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// sent is a span as the collector got it, with what docs/weave.md promises of it.
type sent struct {
	*tracepb.Span
	from     string // a capture, or a project
	resource []*commonpb.KeyValue
	scope    []*commonpb.KeyValue
	request  map[string]*tracepb.Span // all spans of the request, by id
}

func spansOf(from string, traces *coltracepb.ExportTraceServiceRequest) []sent {
	var spans []sent
	request := map[string]*tracepb.Span{}
	for _, rs := range traces.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				request[string(s.SpanId)] = s
				spans = append(spans, sent{s, from, rs.GetResource().GetAttributes(), ss.GetScope().GetAttributes(), request})
			}
		}
	}
	return spans
}

func (s sent) id() string { return hex.EncodeToString(s.SpanId) }

// innocent tells whether no key of the span, its scope or its resource says a name, a run or times to Weave.
func (s sent) innocent() bool {
	return !slices.ContainsFunc(slices.Concat(s.Attributes, s.scope, s.resource), func(kv *commonpb.KeyValue) bool {
		family, _, _ := strings.Cut(kv.Key, ".")
		return slices.Contains([]string{"wandb", "langfuse", "gen_ai"}, family) && kv.Key != "wandb.entity" && kv.Key != "wandb.project"
	})
}

var stepKeys = []string{"nv.dl.training.step", "megatron.iteration", "dl.iteration", "rl.step", "rl.iteration"}

// step is the step of the span or of its nearest ancestor in the request. It is not known where an ancestor is in another request, and
// step 0 is not kept.
func (s sent) step() (step int64, known bool) {
	for at := s.Span; at != nil; at = s.request[string(at.ParentSpanId)] {
		for _, key := range stepKeys {
			for _, kv := range at.Attributes {
				if kv.Key == key {
					return kv.Value.GetIntValue(), kv.Value.GetIntValue() > 0
				}
			}
		}
	}
	return 0, false
}

var (
	promoted         = []string{"nv.dl.", "dl.", "megatron.", "nemo.", "rl."}
	promotedResource = []string{
		"nv.dl.rank", "dl.rank", "nv.dl.world_size", "dl.world_size", "nv.dl.role", "nemo.run.id", "host.name", "service.name", "slurm.job.id", "k8s.pod.name",
	}
)

// filters are the attributes that a filter must find, by key: numbers, booleans and plain text under keys that are promoted, and
// clash with no other key.
func (s sent) filters() map[string]any {
	all := map[string]any{}
	for _, kv := range s.resource {
		if v, ok := scalar(kv.Value); ok && slices.Contains(promotedResource, kv.Key) && !clashes(kv.Key, s.resource) && !clashes(kv.Key, s.Attributes) {
			all[kv.Key] = v
		}
	}
	for _, kv := range s.Attributes {
		delete(all, kv.Key) // The span's goes first.
		below := slices.ContainsFunc(promoted, func(prefix string) bool { return strings.HasPrefix(kv.Key, prefix) })
		if v, ok := scalar(kv.Value); ok && below && !clashes(kv.Key, s.Attributes) && !clashes(kv.Key, s.resource) {
			all[kv.Key] = v
		}
	}
	return all
}

// clashes tells whether a key comes twice, lies below another, or another below it.
func clashes(key string, attributes []*commonpb.KeyValue) bool {
	same := 0
	for _, kv := range attributes {
		if kv.Key == key {
			same++
		} else if strings.HasPrefix(kv.Key, key+".") || strings.HasPrefix(key, kv.Key+".") {
			return true
		}
	}
	return same > 1
}

// scalar is a value that comes back as it was sent, or with the mark of docs/weave.md before it.
func scalar(v *commonpb.AnyValue) (any, bool) {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_IntValue:
		return v.IntValue, true
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue, true
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue, v.DoubleValue-v.DoubleValue == 0 // NaN and infinities are text for Weave.
	case *commonpb.AnyValue_StringValue:
		if slices.Contains(references, v.StringValue) || strings.HasPrefix(v.StringValue, ` ["weave:///`) {
			return "text: " + v.StringValue, true
		}
		return v.StringValue, v.StringValue != "" && !strings.ContainsAny(v.StringValue[:1], "{[") && !strings.Contains(v.StringValue, notUTF8)
	}
	return nil, false
}
