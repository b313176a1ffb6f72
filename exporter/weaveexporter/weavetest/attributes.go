// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// failure is why Weave does not take a span, or the whole request.
type failure struct {
	status int // 0: the span alone is rejected
	reason string
}

func (f *failure) Error() string { return f.reason }

func fail(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

// conflict is AttributePathConflictError.
func conflict(key string) error { return fail(0, "invalid attribute structure at %q", key) }

// How deep attributes may lie, keys with dots, lists, maps and JSON text taken together. Weave's own bounds lie some levels higher.
const (
	storedDepth   = 480 // deeper: RecursionError
	readableDepth = 190 // deeper: stored, but no list of the project's calls can be made any more; _MAX_STRUCTURE_DEPTH
)

// expand is Weave's unflatten_key_values: keys are split at their dots, text that holds a JSON object or list is decoded.
func expand(attributes []*commonpb.KeyValue) (map[string]any, error) {
	tree := map[string]any{}
	for _, kv := range attributes {
		v, err := resolve(kv.GetValue())
		if err != nil {
			return nil, err
		}
		if text, ok := v.(string); ok && isJSON(text) {
			if v, err = decodeJSON(text); err != nil {
				return nil, err
			}
		}
		if err := set(tree, kv.Key, v); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// isJSON tells whether Weave tries to decode a text among attributes.
func isJSON(text string) bool { return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") }

// resolve is Weave's resolve_pb_any_value.
func resolve(v *commonpb.AnyValue) (any, error) {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue, nil
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue, nil
	case *commonpb.AnyValue_IntValue:
		return v.IntValue, nil
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue, nil
	case *commonpb.AnyValue_BytesValue:
		return v.BytesValue, nil
	case *commonpb.AnyValue_ArrayValue:
		list := make([]any, 0, len(v.ArrayValue.GetValues()))
		for _, e := range v.ArrayValue.GetValues() {
			r, err := resolve(e)
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
		return list, nil
	case *commonpb.AnyValue_KvlistValue:
		m := map[string]any{}
		for _, kv := range v.KvlistValue.GetValues() {
			r, err := resolve(kv.GetValue())
			if err != nil {
				return nil, err
			}
			m[kv.Key] = r
		}
		return m, nil
	}
	return nil, fail(http.StatusBadRequest, "AnyValue has no value set")
}

// set is Weave's _set_value_in_nested_dict. A list on the way becomes a map of its indexes where the next segment is a number.
func set(tree map[string]any, key string, v any) error {
	parts := strings.Split(key, ".")
	for i, part := range parts[:len(parts)-1] {
		switch next := tree[part].(type) {
		case map[string]any:
			tree = next
		case []any:
			if !digits(parts[i+1]) {
				return conflict(strings.Join(parts[:i+1], "."))
			}
			m := indexed(next)
			tree[part], tree = m, m
		default:
			if _, taken := tree[part]; taken {
				return conflict(strings.Join(parts[:i+1], "."))
			}
			m := map[string]any{}
			tree[part], tree = m, m
		}
	}
	last := parts[len(parts)-1]
	if nests(tree[last]) {
		if !nests(v) {
			return conflict(key)
		}
		v = merged(tree[last], v)
	}
	tree[last] = v
	return nil
}

func nests(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// merged is Weave's _deep_merge: later leaves win, lists merge by index.
func merged(base, override any) map[string]any {
	result := indexed(base)
	for k, v := range indexed(override) {
		if nests(result[k]) && nests(v) {
			v = merged(result[k], v)
		}
		result[k] = v
	}
	return result
}

// indexed is a copy of a map, or a map of a list's indexes.
func indexed(v any) map[string]any {
	if m, ok := v.(map[string]any); ok {
		return maps.Clone(m)
	}
	m := map[string]any{}
	for i, e := range v.([]any) {
		m[strconv.Itoa(i)] = e
	}
	return m
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// lookup is Weave's get_attribute: the value at a dotted key, nil where there is none.
func lookup(tree any, key string) any {
	for part := range strings.SplitSeq(key, ".") {
		switch at := tree.(type) {
		case map[string]any:
			tree = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			tree = at[i]
		default:
			return nil
		}
	}
	return tree
}

// listed is Weave's convert_numeric_keys_to_list: maps whose keys are 0, 1, 2 and so on become lists.
func listed(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for k, e := range m {
		m[k] = listed(e)
	}
	list := make([]any, len(m))
	for i := range list {
		e, ok := m[strconv.Itoa(i)]
		if !ok {
			return m
		}
		list[i] = e
	}
	return list
}

// serializable is Weave's to_json_serializable: bytes become base64, NaN and infinities text.
func serializable(v any) any {
	switch v := v.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)), "+")
		}
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = serializable(e)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = serializable(e)
		}
		return m
	}
	return v
}

// truthy is Python's bool().
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []byte:
		return len(v) > 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// depth is how many maps and lists lie in one another.
func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	case []any:
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	default:
		return 0
	}
	return deepest + 1
}

// holdsBytes tells whether json.dumps would refuse the value.
func holdsBytes(v any) bool {
	switch v := v.(type) {
	case []byte:
		return true
	case []any:
		for _, e := range v {
			if holdsBytes(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if holdsBytes(e) {
				return true
			}
		}
	}
	return false
}
