// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var (
	spanKinds   = []string{"unspecified", "", "server", "client", "producer", "consumer"}
	statusCodes = []string{"", "OK", "ERROR"}
)

// addSpans encodes one line a span.
func (l *compact) addSpans(c *chunk, rs ptrace.ResourceSpans) {
	var resource *resource
	for _, ss := range rs.ScopeSpans().All() {
		spans := ss.Spans()
		if spans.Len() == 0 {
			continue
		}
		if resource == nil {
			resource = l.resource(&c.encoder, rs.Resource(), rs.SchemaUrl())
		}
		scope := l.scope(&c.encoder, resource, ss.Scope(), ss.SchemaUrl())
		for i := range spans.Len() {
			c.buf = append(c.appendSpan(c.buf, spans.At(i)), scope.suffix...)
			c.endLine(scope, 1)
		}
		c.endPart(scope)
	}
}

func (e *encoder) appendSpan(b []byte, span ptrace.Span) []byte {
	b = append(b, `{"type":"span"`...)
	b = e.text(b, `,"name":`, span.Name())
	b = traceID(b, `,"trace_id":`, span.TraceID())
	b = spanID(b, `,"span_id":`, span.SpanID())
	b = spanID(b, `,"parent_id":`, span.ParentSpanID())
	b = enum(b, `,"kind":`, int32(span.Kind()), spanKinds)
	b = nanos(b, `,"start_ns":`, span.StartTimestamp())
	b = appendDuration(b, span.StartTimestamp(), span.EndTimestamp())
	b = enum(b, `,"status":`, int32(span.Status().Code()), statusCodes)
	b = e.text(b, `,"status_message":`, span.Status().Message())
	b = e.attributes(b, span.Attributes())
	if span.Events().Len() > 0 {
		b = e.appendEvents(b, span.Events())
	}
	if span.Links().Len() > 0 {
		b = e.appendLinks(b, span.Links())
	}
	b = e.text(b, `,"trace_state":`, span.TraceState().AsRaw())
	b = unsigned(b, `,"flags":`, uint64(span.Flags()))
	b = unsigned(b, `,"dropped_attributes":`, uint64(span.DroppedAttributesCount()))
	b = unsigned(b, `,"dropped_events":`, uint64(span.DroppedEventsCount()))
	return unsigned(b, `,"dropped_links":`, uint64(span.DroppedLinksCount()))
}

// appendDuration writes end − start, which is negative where clocks disagree, or the end itself where the difference
// does not fit 64 bits.
func appendDuration(b []byte, start, end pcommon.Timestamp) []byte {
	d := int64(end - start)
	if (d < 0) != (end < start) {
		return nanos(b, `,"end_ns":`, end)
	}
	return signed(b, `,"duration_ns":`, d)
}

func (e *encoder) appendEvents(b []byte, events ptrace.SpanEventSlice) []byte {
	b = append(b, `,"events":[`...)
	for i, event := range events.All() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		if event.Name() != "" {
			b = append(e.appendString(append(b, `"name":`...), event.Name()), ',')
		}
		b = strconv.AppendUint(append(b, `"time_ns":`...), uint64(event.Timestamp()), 10)
		b = e.attributes(b, event.Attributes())
		b = unsigned(b, `,"dropped_attributes":`, uint64(event.DroppedAttributesCount()))
		b = append(b, '}')
	}
	return append(b, ']')
}

func (e *encoder) appendLinks(b []byte, links ptrace.SpanLinkSlice) []byte {
	b = append(b, `,"links":[`...)
	for i, link := range links.All() {
		if i > 0 {
			b = append(b, ',')
		}
		start := len(b)
		b = traceID(b, `,"trace_id":`, link.TraceID())
		b = spanID(b, `,"span_id":`, link.SpanID())
		b = e.attributes(b, link.Attributes())
		b = e.text(b, `,"trace_state":`, link.TraceState().AsRaw())
		b = unsigned(b, `,"flags":`, uint64(link.Flags()))
		b = unsigned(b, `,"dropped_attributes":`, uint64(link.DroppedAttributesCount()))
		b = closeObject(b, start)
	}
	return append(b, ']')
}

// closeObject turns the members `,"a":1,"b":2` that were appended since start into the object `{"a":1,"b":2}`.
func closeObject(b []byte, start int) []byte {
	if len(b) == start {
		return append(b, '{', '}')
	}
	b[start] = '{'
	return append(b, '}')
}
