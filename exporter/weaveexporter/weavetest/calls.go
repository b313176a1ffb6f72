// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// call is Weave's Span.to_call and what production checks of its row.
func (s *span) call(rowLimit int) (Call, error) {
	if s.depth() > storedDepth {
		return Call{}, internal("RecursionError: attributes nest too deep")
	}
	c := Call{
		Project: s.project, ID: s.id(), TraceID: s.traceID(), ParentID: s.parent(),
		Start: moment(s.pb.StartTimeUnixNano), End: moment(s.pb.EndTimeUnixNano), Status: "success",
		Useless: len(s.pb.TraceId) == 0 || len(s.pb.SpanId) == 0 || zeros(s.pb.TraceId) || zeros(s.pb.SpanId),
	}
	// The message makes the error: without one, the call is shown as a success.
	if message := s.pb.GetStatus().GetMessage(); message != "" && s.pb.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		c.Status, c.Exception = "error", message
	}
	for _, part := range []func(*Call) error{s.content, s.identity, s.steps, s.times, s.row} {
		if err := part(&c); err != nil {
			return Call{}, err
		}
	}
	c.blank(rowLimit)
	return c, nil
}

// internal is the failure of a request by an exception that Weave does not expect.
func internal(format string, args ...any) error {
	return fail(http.StatusInternalServerError, format, args...)
}

// first is the first truthy value among keys; with zero, an integer 0 counts too.
func (s *span) first(keys []string, zero bool) (string, any) {
	for _, key := range keys {
		v := lookup(s.attributes, key)
		if truthy(v) || zero && v == any(int64(0)) {
			return key, v
		}
	}
	return "", nil
}

// fields picks a value for each field of a table.
func (s *span) fields(table map[string][]string, zero bool) map[string]any {
	m := map[string]any{}
	for field, keys := range table {
		if key, v := s.first(keys, zero); key != "" {
			m[field] = listed(v)
		}
	}
	return m
}

// content fills inputs, output, usage and attributes. Attributes are those with a meaning and wandb.attributes; all of them
// where the span has nothing with a meaning.
func (s *span) content(c *Call) error {
	c.Inputs, c.Output = map[string]any{}, any(map[string]any{})
	if key, v := s.first(inputKeys, false); key != "" {
		c.Inputs = map[string]any{key: listed(v)}
		if m, ok := listed(v).(map[string]any); ok && (key == "input" || key == "inputs") {
			c.Inputs = serializable(m).(map[string]any)
		}
	}
	hasOutput := false
	if key, v := s.first(outputKeys, false); key != "" {
		hasOutput = true
		c.Output = map[string]any{key: listed(v)}
		if key == "output" || key == "outputs" {
			if f, ok := v.(float64); ok && !math.IsNaN(f) && !math.IsInf(f, 0) {
				return internal("TypeError: object of type 'float' has no len()")
			}
			c.Output = serializable(listed(v))
		}
	}
	c.Attributes = s.fields(attributeKeys, false)
	if err := s.usage(c); err != nil {
		return err
	}
	dump := len(c.Attributes) == 0 && len(c.Inputs) == 0 && !hasOutput && len(c.Usage) == 0
	if custom := lookup(s.attributes, "wandb.attributes"); truthy(custom) {
		m, ok := custom.(map[string]any)
		if _, text := custom.(string); text {
			return fail(http.StatusBadRequest, "dictionary update sequence element #0 has length 1; 2 is required")
		} else if !ok {
			return internal("TypeError: wandb.attributes is no map")
		}
		for k, v := range m {
			c.Attributes[k] = v
		}
	}
	if dump {
		c.Attributes = serializable(s.attributes).(map[string]any)
	}
	return nil
}

// usage fills token counts, and checks them and the name of the model that they are kept under.
func (s *span) usage(c *Call) error {
	c.Usage = s.fields(usageKeys, true)
	for field, v := range c.Usage {
		n, ok := integer(v, true)
		if !ok {
			return internal("ValidationError: %s should be a valid integer", field)
		}
		c.Usage[field] = n
	}
	model := c.Attributes["model"]
	if parameters := c.Attributes["model_parameters"]; model == nil && truthy(parameters) {
		m, ok := parameters.(map[string]any)
		if !ok {
			return internal("AttributeError: model parameters have no attribute 'get'")
		}
		model = m["model"]
	}
	if _, ok := model.(string); truthy(model) && !ok {
		return internal("ValidationError: the model should be a valid string")
	}
	return nil
}

// identity fills names, run, thread and turn.
func (s *span) identity(c *Call) (err error) {
	if c.OpName, err = opName(s.pb.Name); err != nil {
		return err
	}
	if v := lookup(s.attributes, "wandb.display_name"); truthy(v) {
		name, ok := v.(string)
		if !ok {
			return internal("TypeError: wandb.display_name is no text")
		}
		if utf8.RuneCountInString(name) >= maxDisplayName {
			if name, err = shorten(name, maxDisplayName, "...", true); err != nil {
				return err
			}
		}
		c.Display = name
	}
	if _, v := s.first(threadKeys, false); v != nil {
		thread, ok := v.(string)
		if !ok {
			return internal("ValidationError: the thread id should be a valid string")
		}
		c.Thread = thread
	}
	_, turn := s.first(turnKeys, false)
	if explicit, ok := lookup(s.attributes, "wandb.is_turn").(bool); ok {
		turn = explicit
	}
	if c.Thread != "" && truthy(turn) {
		c.Turn = c.ID
	}
	c.RunID = s.run
	if v := lookup(s.attributes, "wandb.wb_run_id"); c.RunID == "" && truthy(v) {
		switch v := v.(type) {
		case string:
			if !strings.ContainsAny(v, "/:") {
				c.RunID = v
			}
		case []any: // Formatted as Python does it, which links to no run.
			c.RunID = fmt.Sprint(v)
		default:
			return internal("TypeError: wandb.wb_run_id is no text")
		}
	}
	return nil
}

// steps fills the steps of the run. 0 counts as absent.
func (s *span) steps(c *Call) error {
	for key, into := range map[string]**int64{"wandb.wb_run_step": &c.Step, "wandb.wb_run_step_end": &c.StepEnd} {
		v := lookup(s.attributes, key)
		if !truthy(v) {
			continue
		}
		n, ok := integer(v, false)
		if !ok || n < 0 {
			return internal("ValidationError: %s should be a valid integer of 0 or more", key)
		}
		*into = &n
	}
	return nil
}

var integerText = regexp.MustCompile(`^\s*([+-]?[0-9]{1,18})(\.0*)?\s*$`)

// integer is pydantic's reading of an integer, after Python's int() where a value is cut: text of digits, whole numbers, booleans.
func integer(v any, cut bool) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	case float64:
		return int64(v), math.Abs(v) < 1<<63 && (cut || v == math.Trunc(v))
	case string:
		if m := integerText.FindStringSubmatch(v); m != nil {
			n, err := strconv.ParseInt(m[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// times applies what langfuse.* say in place of the span's own times; what is no time is ignored.
func (s *span) times(c *Call) error {
	for _, key := range []string{"langfuse.startTime", "langfuse.endTime"} {
		if f, ok := lookup(s.attributes, key).(float64); ok && (math.Abs(f) > 1<<62 || math.IsInf(f, 0)) {
			return internal("OverflowError: %s is out of range", key)
		}
	}
	return nil
}

// row checks what the database's row is checked for, and redacts it.
func (s *span) row(c *Call) error {
	for name, id := range map[string]struct{ got, want int }{
		"trace id": {len(s.pb.TraceId), 16}, "span id": {len(s.pb.SpanId), 8}, "parent id": {len(s.parent()) / 2, 8},
	} {
		if id.got != 0 && id.got != id.want { // An absent one is made up.
			return fail(http.StatusBadRequest, "Invalid %s of %d bytes", name, id.got)
		}
	}
	if holdsBytes(c.Attributes) || holdsBytes(c.Inputs) || holdsBytes(c.Output) {
		return internal("TypeError: Object of type bytes is not JSON serializable")
	}
	c.Attributes = redactKeys(c.Attributes).(map[string]any)
	c.Inputs = redactKeys(c.Inputs).(map[string]any)
	c.Dump = redactKeys(s.dump()).(map[string]any)
	c.Unreadable = s.unconverted() || !encodable(c.Attributes) || !encodable(c.Inputs) || !encodable(c.Output) || !encodable(c.Dump) || max(s.depth(), depth(c.Inputs), depth(c.Output)) > readableDepth
	return nil
}

// blank replaces the largest columns of a row that is too large, as Weave's _strip_large_values.
func (c *Call) blank(limit int) {
	sizes := map[string]int{
		"attributes": dumpedSize(c.Attributes), "inputs": dumpedSize(c.Inputs), "output": dumpedSize(c.Output), "dump": dumpedSize(c.Dump),
	}
	total := 0
	for _, size := range sizes {
		total += size
	}
	for total > limit && len(sizes) > 0 {
		largest := slices.MaxFunc(slices.Sorted(maps.Keys(sizes)), func(a, b string) int { return sizes[a] - sizes[b] })
		total -= sizes[largest]
		delete(sizes, largest)
		c.Blanked = append(c.Blanked, largest)
		marker := map[string]any{"_weave": map[string]any{"error": "<EXCEEDS_LIMITS>"}}
		switch largest {
		case "attributes":
			c.Attributes = marker
		case "inputs":
			c.Inputs = marker
		case "output":
			c.Output = marker
		case "dump":
			c.Dump = marker
		}
	}
}
