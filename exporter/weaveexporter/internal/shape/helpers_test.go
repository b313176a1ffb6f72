// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

func options(edit ...func(*Options)) Options {
	o := DefaultOptions()
	o.Target = Target{"e", "p"}
	for _, f := range edit {
		f(&o)
	}
	return o
}

// shaped shapes td with a fresh shaper.
func shaped(t testing.TB, o Options, td ptrace.Traces) Result {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	return s.Shape(td)
}

func bodies(r Result) (out []string) {
	for i := range r.Requests {
		out = append(out, string(r.Requests[i].AppendTo(nil)))
	}
	return out
}

func marshal(t testing.TB, td ptrace.Traces) []byte {
	t.Helper()
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	return body
}

func asJSON(t testing.TB, td ptrace.Traces) string {
	t.Helper()
	body, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	return string(body)
}

// oneSpan is a batch of one span, whose attributes are raw.
func oneSpan(raw map[string]any) (ptrace.Traces, ptrace.Span) {
	td := ptrace.NewTraces()
	s := newSpan(td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty(), 1, raw)
	return td, s
}

func newSpan(ss ptrace.ScopeSpans, id byte, raw map[string]any) ptrace.Span {
	s := ss.Spans().AppendEmpty()
	s.SetName("span")
	s.SetTraceID(pcommon.TraceID{1})
	s.SetSpanID(pcommon.SpanID{id})
	s.SetStartTimestamp(1_000_000_000)
	s.SetEndTimestamp(2_000_000_000)
	put(s.Attributes(), raw)
	return s
}

// accepted shapes td, and returns what Weave stores of it: all spans, or the test fails.
func accepted(t testing.TB, o Options, td ptrace.Traces) ([]weavetest.Call, Result) {
	t.Helper()
	got := shaped(t, o, td)
	var calls []weavetest.Call
	for i := range got.Requests {
		verdict := weavetest.Judge(weavetest.CallsPath, got.Requests[i].AppendTo(nil))
		require.Empty(t, verdict.Problem())
		calls = append(calls, verdict.Calls...)
	}
	require.Len(t, calls, td.SpanCount()-got.Dropped.Sum())
	return calls, got
}

// sent returns the spans of all requests, in their order.
func sent(t testing.TB, r Result) (out []ptrace.Span) {
	t.Helper()
	for i := range r.Requests {
		td, err := r.Requests[i].Traces()
		require.NoError(t, err)
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// spanBytes are the encoded spans of r.
func spanBytes(t testing.TB, r Request) (out []string) {
	t.Helper()
	for _, g := range r.groups {
		at := 0
		for _, end := range g.ends {
			out = append(out, string(g.spans[at:end]))
			at = end
		}
	}
	return out
}

// asMap is raw as pdata returns it.
func asMap(t testing.TB, raw map[string]any) map[string]any {
	t.Helper()
	m := pcommon.NewMap()
	put(m, raw)
	return m.AsRaw()
}

func asMapOf(s ptrace.Span) map[string]any { return s.Attributes().AsRaw() }

// withoutAdded are the attributes of s besides those that the tests of other requirements look at.
func withoutAdded(s ptrace.Span) map[string]any {
	out := s.Attributes().AsRaw()
	for _, key := range []string{displayNameKey, originalPrefix + "name", scopeNameKey, scopeVersionKey, attributesUnder + scopeNameKey, attributesUnder + scopeVersionKey} {
		delete(out, key)
	}
	return out
}

func jsonOf(t testing.TB, s ptrace.Span) []byte {
	t.Helper()
	td := ptrace.NewTraces()
	s.CopyTo(td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
	return []byte(asJSON(t, td))
}

// leaves are the values in a tree, as texts.
func leaves(v any) (out []string) {
	if m, ok := v.(map[string]any); ok {
		for _, item := range m {
			out = append(out, leaves(item)...)
		}
		return out
	}
	return append(out, fmt.Sprint(v))
}

func valuesOf(raw map[string]any) (out []string) {
	for _, v := range raw {
		out = append(out, fmt.Sprint(v))
	}
	return out
}
