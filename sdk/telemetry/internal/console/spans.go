// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package console // import "github.com/lenscol/lenscol/sdk/telemetry/internal/console"

import (
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

var (
	kinds = map[trace.SpanKind]string{
		trace.SpanKindServer:   "SERVER",
		trace.SpanKindClient:   "CLIENT",
		trace.SpanKindProducer: "PRODUCER",
		trace.SpanKindConsumer: "CONSUMER",
	}
	statuses = map[codes.Code]string{codes.Unset: "UNSET", codes.Ok: "OK", codes.Error: "ERROR"}
)

func appendSpan(b []byte, span sdktrace.ReadOnlySpan) []byte {
	b = appendString(append(b, `{"name": `...), span.Name())
	b = appendContext(append(b, `, "context": `...), span.SpanContext())
	kind, ok := kinds[span.SpanKind()]
	if !ok {
		kind = "INTERNAL"
	}
	b = appendString(append(b, `, "kind": `...), "SpanKind."+kind)
	b = append(b, `, "parent_id": `...)
	if parent := span.Parent(); parent.HasSpanID() {
		id := parent.SpanID()
		b = appendID(b, id[:])
	} else {
		b = append(b, "null"...)
	}
	b = appendTime(append(b, `, "start_time": `...), span.StartTime())
	b = appendTime(append(b, `, "end_time": `...), span.EndTime())
	b = appendString(append(b, `, "status": {"status_code": `...), statuses[span.Status().Code])
	if text := span.Status().Description; text != "" {
		b = appendString(append(b, `, "description": `...), text)
	}
	b = appendAttributes(append(b, `}, "attributes": `...), span.Attributes())
	b = appendList(append(b, `, "events": `...), span.Events(), appendEvent)
	b = appendList(append(b, `, "links": `...), span.Links(), appendLink)
	b = appendResource(append(b, `, "resource": `...), span.Resource())
	return append(b, '}', '\n')
}

func appendEvent(b []byte, event sdktrace.Event) []byte {
	b = appendString(append(b, `{"name": `...), event.Name)
	b = appendTime(append(b, `, "timestamp": `...), event.Time)
	return append(appendAttributes(append(b, `, "attributes": `...), event.Attributes), '}')
}

func appendLink(b []byte, link sdktrace.Link) []byte {
	b = appendContext(append(b, `{"context": `...), link.SpanContext)
	return append(appendAttributes(append(b, `, "attributes": `...), link.Attributes), '}')
}

func appendContext(b []byte, sc trace.SpanContext) []byte {
	traceID, spanID := sc.TraceID(), sc.SpanID()
	b = appendID(append(b, `{"trace_id": `...), traceID[:])
	b = appendID(append(b, `, "span_id": `...), spanID[:])
	return append(appendTraceState(append(b, `, "trace_state": `...), sc.TraceState()), '}')
}
