// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Limits of custom attributes at the agents endpoint: weave/shared/agents/constants.py.
const (
	maxCustom      = 1024      // of a span; the others are dropped
	maxCustomChars = 256 << 10 // of a text; longer ones are cut
)

// agent is Weave's extract_genai_span, as far as it can lose anything. An error rejects the span alone.
func (s *span) agent() (AgentSpan, error) {
	if s.depth() > storedDepth {
		return AgentSpan{}, fail(0, "Extraction failed for span %s: RecursionError", s.id())
	}
	status := map[tracepb.Status_StatusCode]string{0: "UNSET", 1: "OK", 2: "ERROR"}[s.pb.GetStatus().GetCode()]
	a := AgentSpan{
		Project: s.project, ID: s.id(), TraceID: s.traceID(), ParentID: s.parent(), Name: s.pb.Name, Status: status, RunID: s.run,
		Operation: s.operation(), Agent: s.agentName(), Conversation: s.text("conversation.id"),
		InputTokens: s.count("usage.input_tokens"), OutputTokens: s.count("usage.output_tokens"), Custom: map[string]any{},
	}
	flat := map[string]any{}
	flatten(redactKeys(s.attributes).(map[string]any), "", flat)
	if !s.writable(flat) {
		return AgentSpan{}, internal("UnicodeEncodeError: surrogates not allowed")
	}
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		if v := custom(flat[key]); v != nil && len(a.Custom) < maxCustom {
			a.Custom[key] = v
		}
	}
	return a, nil
}

// writable tells whether the database's driver can write the span: lists are JSON by then, in ASCII, but other custom attributes and what messages say are
// texts.
func (s *span) writable(custom map[string]any) bool {
	for key, v := range custom {
		if _, list := v.([]any); !utf8.ValidString(key) || !list && !encodable(v) {
			return false
		}
	}
	for _, key := range []string{"input.messages", "output.messages"} {
		all := s.column(key)
		if text, ok := all.(string); ok {
			all, _ = decodeJSON(text) // What fails is a span rejected, which an error before was.
		}
		messages, _ := all.([]any)
		for _, m := range messages {
			if m, ok := m.(map[string]any); ok && m["parts"] == nil {
				if content, ok := m["content"].(string); ok && !encodable(content) {
					return false
				}
			}
		}
	}
	return true
}

// column is the first of the two names of an agent's attribute that is there.
func (s *span) column(key string) any {
	if v := lookup(s.attributes, "weave."+key); v != nil {
		return v
	}
	return lookup(s.attributes, "gen_ai."+key)
}

func (s *span) text(key string) string {
	v := s.column(key)
	if !truthy(v) {
		return ""
	}
	return fmt.Sprint(v)
}

// count reads a number as safe_int does: 0 where it is none.
func (s *span) count(key string) int64 {
	n, ok := integer(s.column(key), true)
	if !ok {
		return 0
	}
	return n
}

// operation is gen_ai.operation.name, else told by the beginning of the span's name.
func (s *span) operation() string {
	if name := s.text("operation.name"); name != "" {
		return name
	}
	for _, prefix := range []string{
		"chat", "invoke_agent", "execute_tool", "generate_content", "text_completion", "embeddings", "create_agent", "retrieval",
	} {
		if strings.HasPrefix(strings.ToLower(s.pb.Name), prefix) {
			return prefix
		}
	}
	return ""
}

func (s *span) agentName() string {
	const prefix = "invoke_agent "
	if name := s.text("agent.name"); name != "" {
		return name
	}
	if strings.HasPrefix(strings.ToLower(s.pb.Name), prefix) {
		return strings.TrimSpace(s.pb.Name[len(prefix):])
	}
	return ""
}

// flatten collects leaves under their dotted keys, without the keys that have a column, and what lies below those.
func flatten(tree map[string]any, prefix string, into map[string]any) {
	for key, v := range tree {
		key = prefix + key
		if hasColumn(key) {
			continue
		}
		if m, ok := v.(map[string]any); ok {
			flatten(m, key+".", into)
		} else {
			into[key] = v
		}
	}
}

func hasColumn(key string) bool {
	for _, family := range []string{"gen_ai.", "weave."} {
		if rest, ok := strings.CutPrefix(key, family); ok && slices.Contains(agentKeys, rest) {
			return true
		}
	}
	return slices.Contains(otherAgentKeys, key)
}

// custom is a custom attribute as it is stored, nil where it is not. NaN and infinities are dropped.
func custom(v any) any {
	switch v := v.(type) {
	case bool, int64:
		return v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return v
	case string:
		if v == "" {
			return nil
		}
		return cut(v)
	}
	text, err := json.Marshal(serializable(v))
	if err != nil {
		panic(err) // All that serializable returns can be marshalled.
	}
	return cut(string(text))
}

func cut(text string) string {
	r := []rune(text)
	if len(r) <= maxCustomChars {
		return text
	}
	mark := fmt.Sprintf("...[truncated from %d chars]", len(r))
	return string(r[:maxCustomChars-len(mark)]) + mark
}
