// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
)

const (
	traceHex = "0102030405060708090a0b0c0d0e0f10"
	spanHex  = "a1a2a3a4a5a6a7a8"
)

var (
	traceID = pcommon.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	spanID  = pcommon.SpanID{0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8}
)

func TestSpan(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       func(ptrace.Span)
	}{
		{"what is absent is the default", `{"type":"span","start_ns":0}`, func(ptrace.Span) {}},
		{"every key", `{"type":"span","name":"step","trace_id":"` + traceHex + `","span_id":"` + spanHex + `","parent_id":"a8a7a6a5a4a3a2a1",` +
			`"kind":"server","start_ns":1700000000000000001,"duration_ns":5,"status":"ERROR","status_message":"out of memory",` +
			`"attributes":{"z":1,"a":"x"},"events":[{"name":"saved","time_ns":7,"attributes":{"k":true},"dropped_attributes":3},{"time_ns":0}],` +
			`"links":[{"trace_id":"` + traceHex + `","span_id":"` + spanHex + `","attributes":{"l":1},"trace_state":"v=1","flags":257,"dropped_attributes":4},{}],` +
			`"trace_state":"a=b,c=d","flags":4294967295,"dropped_attributes":1,"dropped_events":2,"dropped_links":3,"run":"r","rank":0,"service":"s"}`,
			func(s ptrace.Span) {
				s.SetName("step")
				s.SetTraceID(traceID)
				s.SetSpanID(spanID)
				s.SetParentSpanID(pcommon.SpanID{0xa8, 0xa7, 0xa6, 0xa5, 0xa4, 0xa3, 0xa2, 0xa1})
				s.SetKind(ptrace.SpanKindServer)
				s.SetStartTimestamp(1700000000000000001)
				s.SetEndTimestamp(1700000000000000006)
				s.Status().SetCode(ptrace.StatusCodeError)
				s.Status().SetMessage("out of memory")
				s.Attributes().PutInt("z", 1)
				s.Attributes().PutStr("a", "x")
				e := s.Events().AppendEmpty()
				e.SetName("saved")
				e.SetTimestamp(7)
				e.Attributes().PutBool("k", true)
				e.SetDroppedAttributesCount(3)
				s.Events().AppendEmpty()
				l := s.Links().AppendEmpty()
				l.SetTraceID(traceID)
				l.SetSpanID(spanID)
				l.Attributes().PutInt("l", 1)
				l.TraceState().FromRaw("v=1")
				l.SetFlags(257)
				l.SetDroppedAttributesCount(4)
				s.Links().AppendEmpty()
				s.TraceState().FromRaw("a=b,c=d")
				s.SetFlags(math.MaxUint32)
				s.SetDroppedAttributesCount(1)
				s.SetDroppedEventsCount(2)
				s.SetDroppedLinksCount(3)
			}},
		{"keys in another order", `{"duration_ns":5,"kind":"client","start_ns":1,"name":"n","type":"span"}`, func(s ptrace.Span) {
			s.SetKind(ptrace.SpanKindClient)
			s.SetName("n")
			s.SetStartTimestamp(1)
			s.SetEndTimestamp(6)
		}},
		{"spaces and escapes", "  {\"t\\u0079pe\" : \"span\" ,\t\"name\":\"\\u2028\\ud83d\\ude00\\\"\\n\\u0000é\"}\r", func(s ptrace.Span) {
			s.SetName("\u2028\U0001F600\"\n\x00é")
		}},
		{"no kind in OTLP", `{"type":"span","kind":"unspecified"}`, func(s ptrace.Span) { s.SetKind(ptrace.SpanKindUnspecified) }},
		{"producer", `{"type":"span","kind":"producer"}`, func(s ptrace.Span) { s.SetKind(ptrace.SpanKindProducer) }},
		{"consumer", `{"type":"span","kind":"consumer"}`, func(s ptrace.Span) { s.SetKind(ptrace.SpanKindConsumer) }},
		{"a kind that OTLP does not know", `{"type":"span","kind":-7}`, func(s ptrace.Span) { s.SetKind(-7) }},
		{"a status that OTLP does not know", `{"type":"span","status":9}`, func(s ptrace.Span) { s.Status().SetCode(9) }},
		{"status OK", `{"type":"span","status":"OK"}`, func(s ptrace.Span) { s.Status().SetCode(ptrace.StatusCodeOk) }},
		{"no duration", `{"type":"span","start_ns":5}`, func(s ptrace.Span) {
			s.SetStartTimestamp(5)
			s.SetEndTimestamp(5)
		}},
		{"end before start", `{"type":"span","start_ns":5,"duration_ns":-5}`, func(s ptrace.Span) { s.SetStartTimestamp(5) }},
		{"the longest durations", `{"type":"span","start_ns":9223372036854775808,"duration_ns":9223372036854775807}`, func(s ptrace.Span) {
			s.SetStartTimestamp(1 << 63)
			s.SetEndTimestamp(math.MaxUint64)
		}},
		{"the longest duration back", `{"type":"span","start_ns":9223372036854775808,"duration_ns":-9223372036854775808}`, func(s ptrace.Span) {
			s.SetStartTimestamp(1 << 63)
		}},
		{"a duration that does not fit", `{"type":"span","start_ns":0,"end_ns":18446744073709551615}`, func(s ptrace.Span) {
			s.SetEndTimestamp(math.MaxUint64)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requireSame(t, oneSpan(tt.want), readOne(t, tt.line+"\n"))
		})
	}
}

func TestOrigin(t *testing.T) {
	want := traces(func(rs ptrace.ResourceSpans) {
		rs.Resource().Attributes().PutStr("service.name", "trainer")
		rs.Resource().Attributes().PutInt("nv.dl.rank", 3)
		rs.Resource().SetDroppedAttributesCount(2)
		rs.SetSchemaUrl("https://example.com/r")
		ref := entity.ResourceEntityRefs(rs.Resource()).AppendEmpty()
		ref.SetSchemaUrl("https://example.com/e")
		ref.SetType("service")
		ref.IdKeys().Append("service.name")
		ref.DescriptionKeys().Append("nv.dl.rank", "x")
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("lens")
		ss.Scope().SetVersion("0.2.0")
		ss.Scope().Attributes().PutBool("b", false)
		ss.Scope().SetDroppedAttributesCount(1)
		ss.SetSchemaUrl("https://example.com/s")
		for _, name := range []string{"one", "two"} {
			s := ss.Spans().AppendEmpty()
			s.SetName(name)
			s.SetKind(ptrace.SpanKindInternal)
		}
	})
	const (
		resource = `"attributes":{"service.name":"trainer","nv.dl.rank":3},"schema_url":"https://example.com/r","dropped_attributes":2,` +
			`"entity_refs":[{"schema_url":"https://example.com/e","type":"service","id_keys":["service.name"],"description_keys":["nv.dl.rank","x"]}]`
		scope = `"name":"lens","version":"0.2.0","attributes":{"b":false},"schema_url":"https://example.com/s","dropped_attributes":1`
	)
	t.Run("reference", func(t *testing.T) {
		requireSame(t, want, readOne(t, `{"type":"resource","id":4,`+resource+"}\n"+
			`{"type":"scope","id":9,"resource":4,`+scope+"}\n"+
			`{"type":"span","name":"one","start_ns":0,"scope":9}`+"\n"+
			`{"type":"span","name":"two","start_ns":0,"scope":9}`+"\n"))
	})
	t.Run("inline", func(t *testing.T) {
		end := `,"resource":{` + resource + `},"scope":{` + scope + "}}\n"
		requireSame(t, want, readOne(t, `{"type":"span","name":"one","start_ns":0`+end+`{"type":"span","name":"two","start_ns":0`+end))
	})
}

// TestOriginGroups shows which records share a resource and a scope in a batch: "2/1+2" is two resources, of one and two scopes.
func TestOriginGroups(t *testing.T) {
	const defs = `{"type":"resource","id":1,"attributes":{"run":"a"}}
{"type":"resource","id":2,"attributes":{"run":"b"}}
{"type":"scope","id":1,"resource":1}
{"type":"scope","id":2,"resource":1,"name":"s"}
{"type":"scope","id":3,"resource":2}
`
	const inlineA, inlineB = `,"resource":{"attributes":{"run":"a"}}`, `,"resource":{"attributes":{"run":"b"}}`
	span := func(name, origin string) string { return `{"type":"span","name":"` + name + `"` + origin + "}\n" }
	for _, tt := range []struct {
		name, text string
		scopes     []int // of each resource
		names      []string
	}{
		{"one scope", defs + span("x", `,"scope":1`) + span("y", `,"scope":1`), []int{1}, []string{"a/x", "a/y"}},
		{"two scopes of a resource", defs + span("x", `,"scope":1`) + span("y", `,"scope":2`), []int{2}, []string{"a/x", "a/y"}},
		{"two resources", defs + span("x", `,"scope":1`) + span("y", `,"scope":3`) + span("z", `,"scope":1`), []int{1, 1, 1}, []string{"a/x", "b/y", "a/z"}},
		{"no origin at all", span("x", "") + span("y", ""), []int{1}, []string{"x", "y"}},
		{"inline, the same", span("x", inlineA) + span("y", inlineA), []int{1}, []string{"a/x", "a/y"}},
		{"inline, another scope", span("x", inlineA) + span("y", inlineA+`,"scope":{"name":"s"}`), []int{2}, []string{"a/x", "a/y"}},
		{"inline, another resource", span("x", inlineA) + span("y", inlineB) + span("z", ""), []int{1, 1, 1}, []string{"a/x", "b/y", "z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := readOne(t, tt.text)
			var scopes []int
			for _, r := range b.Traces.ResourceSpans().All() {
				scopes = append(scopes, r.ScopeSpans().Len())
			}
			require.Equal(t, tt.scopes, scopes)
			require.Equal(t, tt.names, names(readAll(t, tt.text).batches))
		})
	}
}
