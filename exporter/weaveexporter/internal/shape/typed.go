// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Keys that Weave gives a meaning to, with the type that it insists on: another one fails the request. From
// weave/trace_server/opentelemetry/constants.py and what to_call in python_spans.py does with them (Weave 0.53.12).
type kind uint8

const (
	isText   kind = iota + 1
	isCount       // of tokens: an integer, or what int() takes
	isStep        // an integer ≥ 0
	isObject      // a map, keys below it, or a text that decodes to an object
	isOutput      // anything with a length
	isTime        // an ISO 8601 text, nanoseconds, or seconds as a float
	isTurn        // a boolean
)

const (
	displayNameKey  = "wandb.display_name"
	threadKey       = "wandb.thread_id"
	turnKey         = "wandb.is_turn"
	runKey          = "wandb.wb_run_id"
	stepKey         = "wandb.wb_run_step"
	stepEndKey      = "wandb.wb_run_step_end"
	conversationKey = "gen_ai.conversation.id"
	sessionKey      = "gcp.vertex.agent.session_id"
	agentNameKey    = "gen_ai.agent.name"
	agentIDKey      = "gen_ai.agent.id"
	operationKey    = "gen_ai.operation.name"
)

var typedKeys = map[string]kind{
	displayNameKey: isText, threadKey: isText, runKey: isText, conversationKey: isText, sessionKey: isText,
	stepKey: isStep, stepEndKey: isStep, turnKey: isTurn,
	attributesKey: isObject, "gen_ai.request": isObject, "llm.invocation_parameters": isObject,
	"gen_ai.response.model": isText, "gen_ai.request.model": isText, "llm.model_name": isText, "ai.model.id": isText,
	"llm.invocation_parameters.model": isText,

	"gen_ai.usage.input_tokens": isCount, "gen_ai.usage.output_tokens": isCount, "gen_ai.usage.prompt_tokens": isCount,
	"gen_ai.usage.completion_tokens": isCount, "llm.token_count.prompt": isCount, "llm.token_count.completion": isCount,
	"llm.token_count.total": isCount, "llm.usage.total_tokens": isCount, "ai.usage.promptTokens": isCount, "ai.usage.completionTokens": isCount,
	"gen_ai.usage.cache_creation.input_tokens": isCount, "gen_ai.usage.cache_read.input_tokens": isCount,
	"gen_ai.usage.prompt_tokens_details.cached_tokens": isCount, "gen_ai.usage.input_tokens_details.cached_tokens": isCount,
	"prompt_tokens_details.cached_tokens": isCount,

	"output": isOutput, "outputs": isOutput,
	"langfuse.startTime": isTime, "langfuse.endTime": isTime,
}

// typedPaths are the paths of typed keys: a map there holds typed keys too.
var typedPaths = func() map[string]bool {
	out := map[string]bool{attributesKey: true}
	for key := range typedKeys {
		for path := range paths(key) {
			out[path] = true
		}
	}
	return out
}()

// root is the first part of key.
func root(key string) string {
	if i := strings.IndexByte(key, '.'); i >= 0 {
		return key[:i]
	}
	return key
}

// special tells whether Weave reads something below root, or shaping puts something there. Spans without such keys need no look at types.
func special(root string) bool { return root == "wandb" || root == "lenscol" || hides(root) }

// hides tells whether Weave may stop filtering on a span's own attributes because of a key below root.
func hides(root string) bool {
	switch root {
	case "weave", "gen_ai", "llm", "ai", "input", "inputs", "output", "outputs", "mlflow", "traceloop", "gcp", "pydantic_ai", "final_result",
		"openinference", "langfuse", "prompt_tokens_details", "events", "system_prompt":
		return true
	}
	return false
}

// expanded replaces maps, and texts of objects, that stand where typed keys begin by keys with dots, which Weave reads as the same. What is below
// such a key is then seen by typed, and what is below wandb.attributes is side by side with what shaping puts there.
func expanded(list []attr, n *Counts) []attr {
	var out []attr
	for i, a := range list {
		object, ok := objectAt(a)
		if !ok {
			if out != nil {
				out = append(out, a)
			}
			continue
		}
		if out == nil {
			out = append(make([]attr, 0, len(list)+object.Len()), list[:i]...)
		}
		n[TypedKey]++
		out = appendExpanded(out, a.key, object)
	}
	if out == nil {
		return list
	}
	return cleaned(out, n)
}

func objectAt(a attr) (pcommon.Map, bool) {
	if !typedPaths[a.key] {
		return pcommon.Map{}, false
	}
	switch a.val.Type() {
	case pcommon.ValueTypeMap:
		return a.val.Map(), a.val.Map().Len() > 0
	case pcommon.ValueTypeStr:
		m, ok := parseObject(a.val.Str())
		return m, ok && m.Len() > 0
	}
	return pcommon.Map{}, false
}

func appendExpanded(out []attr, key string, object pcommon.Map) []attr {
	for part, val := range object.All() {
		below := attr{key + "." + part, val}
		if deeper, ok := objectAt(below); ok {
			out = appendExpanded(out, below.key, deeper)
		} else {
			out = append(out, below)
		}
	}
	return out
}

// typed makes values what Weave insists on. What cannot be made so moves below originalPrefix, and so does what is below a key that has to
// be a single value. Keys in list differ.
func typed(list []attr, n *Counts) []attr {
	var more []attr
	for i := range list {
		a := &list[i]
		if first := root(a.key); first != "wandb" && !hides(first) {
			continue
		}
		if belowSingle(a.key) {
			moveAside(a, n)
			continue
		}
		if k := typedKeys[a.key]; k != 0 {
			to, ok := convert(k, a.val)
			if !ok {
				moveAside(a, n)
				continue
			}
			if to != a.val {
				n[TypedKey]++
				a.val = to
			}
		}
		if a.key == displayNameKey && tooLongToShow(a.val.Str()) {
			more = append(more, *a)
			moveAside(&more[len(more)-1], n)
			a.val = pcommon.NewValueStr(cutRunes(a.val.Str(), maxDisplayRunes))
		}
		a.val = plainly(a.val, n)
	}
	return append(list, more...)
}

// tooLongToShow tells whether Weave would shorten a display name, which fails the request where blanks end it.
func tooLongToShow(name string) bool {
	return len(name) >= shortenedRunes && utf8.RuneCountInString(name) >= shortenedRunes
}

func moveAside(a *attr, n *Counts) {
	n[TypedKey]++
	a.key = originalPrefix + a.key
}

// belowSingle tells whether key is below a key that must not be a branch.
func belowSingle(key string) bool {
	for path := range paths(key) {
		if k := typedKeys[path]; k != 0 && k != isObject && k != isOutput {
			return true
		}
	}
	return false
}

// convert returns v as k wants it, v itself if it is so already. ok is false if it cannot be.
func convert(k kind, v pcommon.Value) (out pcommon.Value, ok bool) {
	switch k {
	case isText:
		return convertText(v), true
	case isCount:
		return convertCount(v)
	case isStep:
		return convertStep(v)
	case isObject:
		return v, isObjectValue(v)
	case isOutput:
		if v.Type() == pcommon.ValueTypeDouble {
			return pcommon.NewValueStr(floatText(v.Double())), true
		}
	case isTime:
		return v, v.Type() != pcommon.ValueTypeDouble || math.Abs(v.Double()) < 1e11
	case isTurn:
		return convertTurn(v)
	}
	return v, true
}

// convertText returns v as a text that Weave does not decode: it starts with neither a brace nor a bracket.
func convertText(v pcommon.Value) pcommon.Value {
	s := asText(v)
	if decoded(s) {
		return pcommon.NewValueStr(" " + s)
	}
	if v.Type() == pcommon.ValueTypeStr {
		return v
	}
	return pcommon.NewValueStr(s)
}

func convertCount(v pcommon.Value) (pcommon.Value, bool) {
	switch v.Type() {
	case pcommon.ValueTypeInt, pcommon.ValueTypeBool:
		return v, true
	case pcommon.ValueTypeDouble:
		return v, math.Abs(v.Double()) < 1<<63 // false for NaN
	case pcommon.ValueTypeStr:
		return parseWhole(v.Str())
	}
	return v, false
}

// convertStep is convertCount without what is no step: booleans, fractions, anything negative.
func convertStep(v pcommon.Value) (pcommon.Value, bool) {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return v, v.Int() >= 0
	case pcommon.ValueTypeDouble:
		return wholeFloat(v.Double())
	case pcommon.ValueTypeStr:
		out, ok := parseWhole(v.Str())
		return out, ok && out.Int() >= 0
	}
	return v, false
}

func parseWhole(s string) (pcommon.Value, bool) {
	i, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return pcommon.NewValueInt(i), err == nil
}

func wholeFloat(f float64) (pcommon.Value, bool) {
	ok := f >= 0 && f < 1<<63 && f == math.Trunc(f)
	if !ok {
		return pcommon.Value{}, false
	}
	return pcommon.NewValueInt(int64(f)), true
}

func convertTurn(v pcommon.Value) (pcommon.Value, bool) {
	switch v.Type() {
	case pcommon.ValueTypeBool:
		return v, true
	case pcommon.ValueTypeInt:
		return pcommon.NewValueBool(v.Int() != 0), true
	case pcommon.ValueTypeStr:
		b, err := strconv.ParseBool(v.Str())
		return pcommon.NewValueBool(b), err == nil
	}
	return v, false
}

// isObjectValue tells whether Weave gets a map from v. A map that is not empty has been expanded before.
func isObjectValue(v pcommon.Value) bool {
	if v.Type() == pcommon.ValueTypeStr {
		_, ok := parseObject(v.Str())
		return ok
	}
	return v.Type() == pcommon.ValueTypeMap
}
