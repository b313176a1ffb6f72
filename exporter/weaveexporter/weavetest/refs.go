// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// Text that begins so is a reference to an object of Weave. On the way in, references in attributes of spans are made those of the
// database, and one that cannot be fails the request; on the way out all of them are made readable again, and one that was not
// converted on the way in fails every list that it is in: weave/shared/trace_server_converter.py.
const (
	reference         = "weave:///"
	internalReference = "weave-trace-internal:///"
	jsonInJSON        = 8   // levels of JSON text in JSON text that are searched for references
	searchedDepth     = 200 // of maps and lists, those of JSON in JSON together; deeper: RequestTooLarge, _MAX_STRUCTURE_DEPTH
)

// checkReferences is Weave's _rewrite_otel_ref_attrs_inplace for the attributes of a span: own is the project that the span is for,
// entity/project. Weave knows other projects too; that the sender may see them is not to be relied on. It changes attributes where
// what Weave writes instead of them is read otherwise.
func checkReferences(attributes []*commonpb.KeyValue, prefix, own string) error {
	for _, kv := range attributes {
		if err := checkValue(kv.GetValue(), prefix+kv.Key, own); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(v *commonpb.AnyValue, key, own string) error {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_KvlistValue:
		return checkReferences(v.KvlistValue.GetValues(), strings.TrimPrefix(key+".", "."), own)
	case *commonpb.AnyValue_ArrayValue:
		for _, e := range v.ArrayValue.GetValues() {
			if slices.Contains([]string{"weave.content_refs", "weave.artifact_refs", "weave.object_refs"}, key) &&
				!strings.HasPrefix(e.GetStringValue(), reference) {
				continue
			}
			if err := checkValue(e, "", own); err != nil {
				return err
			}
		}
	case *commonpb.AnyValue_StringValue:
		rewritten := false
		in := search{visit: func(ref string, embedded bool) error {
			rewritten = rewritten || embedded
			return checkReference(ref, own)
		}}
		err := in.text(v.StringValue, 0)
		if rewritten {
			v.StringValue = strings.Trim(v.StringValue, jsonSpace) // Weave writes the JSON anew.
		}
		return err
	}
	return nil
}

func checkReference(ref, own string) error {
	rest, external := strings.CutPrefix(ref, reference)
	switch parts := strings.SplitN(rest, "/", 3); {
	case !external:
		return fail(http.StatusBadRequest, "Encountered unexpected internal ref format.")
	case len(parts) < 3:
		return fail(http.StatusBadRequest, "Invalid URI: %s", ref)
	case parts[0]+"/"+parts[1] != own:
		return fail(http.StatusNotFound, "project %s/%s not found", parts[0], parts[1])
	}
	return nil
}

// readable tells whether text that was not converted on the way in can be on the way out.
func readable(ref string, embedded bool) error {
	rest, internal := strings.CutPrefix(ref, internalReference)
	if internal && !strings.Contains(rest, "/") || !internal && !embedded {
		return fail(http.StatusBadRequest, "Encountered unexpected ref format.")
	}
	return nil
}

// search visits references: texts that are one, and those that JSON in texts holds, and JSON in that.
type search struct {
	visit func(ref string, embedded bool) error
	level int // of JSON in JSON
}

func mentions(text string) bool {
	return strings.Contains(text, reference) || strings.Contains(text, internalReference)
}

// text searches a text that lies in depth maps and lists.
func (s search) text(text string, depth int) error {
	switch {
	case strings.HasPrefix(text, reference) || strings.HasPrefix(text, internalReference):
		return s.visit(text, s.level > 0)
	case s.level == jsonInJSON || !mentions(text):
		return nil
	}
	v, err := decodeJSON(text)
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusInternalServerError {
		return err
	}
	if again, same := v.(string); err != nil || same && again == text {
		return nil // No JSON.
	}
	s.level++
	return s.value(v, depth)
}

// value searches the texts in a value, but for the keys of maps.
func (s search) value(v any, depth int) error {
	if depth > searchedDepth {
		return fail(http.StatusRequestEntityTooLarge, "Request payload nesting exceeds the maximum supported depth of %d.", searchedDepth)
	}
	switch v := v.(type) {
	case string:
		return s.text(v, depth)
	case []any:
		for _, e := range v {
			if err := s.value(e, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := s.value(e, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// unconverted tells whether the span holds a reference where none is converted on the way in, which no list can show: outside of
// attributes, and in JSON text that hides it behind escapes.
func (s *span) unconverted() bool {
	all := []any{s.pb.Name, s.pb.TraceState, s.pb.GetStatus().GetMessage(), s.events, s.links, s.resource}
	for _, kv := range s.pb.Attributes {
		if text := kv.GetValue().GetStringValue(); isJSON(text) && !mentions(text) {
			v, _ := decodeJSON(text) // expand has done it before.
			all = append(all, v)
		}
	}
	out := search{visit: readable}
	return slices.ContainsFunc(all, func(v any) bool { return out.value(v, searchedDepth-readableDepth) != nil })
}
