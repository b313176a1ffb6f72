// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var (
	pyKinds    = []string{"UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"}
	pyStatuses = []string{"UNSET", "OK", "ERROR"}
)

// addSpans encodes one line a span.
func (console) addSpans(c *chunk, rs ptrace.ResourceSpans) {
	tail := append(c.scratch[:0], `, "resource": `...)
	tail = append(c.appendPyResource(tail, rs.Resource(), rs.SchemaUrl()), '}', '\n')
	c.scratch = tail
	for _, ss := range rs.ScopeSpans().All() {
		for _, span := range ss.Spans().All() {
			c.buf = append(c.appendPySpan(c.buf, span), tail...)
			c.endLine(nil, 1)
		}
	}
	c.endPart(nil)
}

func (e *encoder) appendPySpan(b []byte, span ptrace.Span) []byte {
	b = e.appendPyString(append(b, `{"name": `...), span.Name())
	b = e.appendPyContext(b, `, "context": `, span.TraceID(), span.SpanID(), span.TraceState())
	b = append(appendPyEnum(append(b, `, "kind": "SpanKind.`...), int32(span.Kind()), pyKinds), '"')
	b = append(b, `, "parent_id": `...)
	if parent := span.ParentSpanID(); parent.IsEmpty() {
		b = append(b, "null"...)
	} else {
		b = appendPyID(b, parent[:])
	}
	b = appendPyTimeOrNull(append(b, `, "start_time": `...), span.StartTimestamp())
	b = appendPyTimeOrNull(append(b, `, "end_time": `...), span.EndTimestamp())
	b = append(b, `, "status": {"status_code": "`...)
	b = append(appendPyEnum(b, int32(span.Status().Code()), pyStatuses), '"')
	if message := span.Status().Message(); message != "" {
		b = e.appendPyString(append(b, `, "description": `...), message)
	}
	b = e.appendPyAttributes(append(b, `}, "attributes": `...), span.Attributes())
	b = append(b, `, "events": [`...)
	for i, event := range span.Events().All() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = e.appendPyString(append(b, `{"name": `...), event.Name())
		b = appendPyTime(append(b, `, "timestamp": `...), event.Timestamp())
		b = append(e.appendPyAttributes(append(b, `, "attributes": `...), event.Attributes()), '}')
	}
	b = append(b, `], "links": [`...)
	for i, link := range span.Links().All() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = e.appendPyContext(b, `{"context": `, link.TraceID(), link.SpanID(), link.TraceState())
		b = append(e.appendPyAttributes(append(b, `, "attributes": `...), link.Attributes()), '}')
	}
	return append(b, ']')
}

func (e *encoder) appendPyContext(b []byte, key string, traceID pcommon.TraceID, spanID pcommon.SpanID, state pcommon.TraceState) []byte {
	b = appendPyID(append(append(b, key...), `{"trace_id": `...), traceID[:])
	b = appendPyID(append(b, `, "span_id": `...), spanID[:])
	return append(e.appendPyTraceState(append(b, `, "trace_state": `...), state.AsRaw()), '}')
}

// appendPyEnum writes a name without quotes, or the integer of a value that OTLP does not know.
func appendPyEnum(b []byte, value int32, names []string) []byte {
	if value < 0 || int(value) >= len(names) {
		return strconv.AppendInt(b, int64(value), 10)
	}
	return append(b, names[value]...)
}
