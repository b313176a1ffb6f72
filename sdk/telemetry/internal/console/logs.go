// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package console // import "github.com/lenscol/lenscol/sdk/telemetry/internal/console"

import (
	"strconv"

	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
)

func appendRecord(b []byte, r *sdklog.Record) []byte {
	b = appendLogValue(append(b, `{"body": `...), r.Body(), 1)
	b = append(b, `, "severity_number": `...)
	if r.Severity() == log.SeverityUndefined {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, int64(r.Severity()), 10)
	}
	b = append(b, `, "severity_text": `...)
	if r.SeverityText() == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, r.SeverityText())
	}
	b = append(b, `, "attributes": `...)
	if r.AttributesLen() == 0 {
		b = append(b, "null"...)
	} else {
		attrs := make([]log.KeyValue, 0, r.AttributesLen())
		r.WalkAttributes(func(kv log.KeyValue) bool {
			attrs = append(attrs, kv)
			return true
		})
		b = appendLogMap(b, attrs, 1)
	}
	b = strconv.AppendInt(append(b, `, "dropped_attributes": `...), int64(r.DroppedAttributes()), 10)
	b = appendTime(append(b, `, "timestamp": `...), r.Timestamp())
	b = appendTime(append(b, `, "observed_timestamp": `...), r.ObservedTimestamp())
	traceID, spanID := r.TraceID(), r.SpanID()
	b = appendID(append(b, `, "trace_id": `...), traceID[:])
	b = appendID(append(b, `, "span_id": `...), spanID[:])
	b = strconv.AppendUint(append(b, `, "trace_flags": `...), uint64(r.TraceFlags()), 10)
	b = appendResource(append(b, `, "resource": `...), r.Resource())
	b = appendString(append(b, `, "event_name": `...), r.EventName())
	return append(b, '}', '\n')
}

// appendLogValue writes a value that stands at depth.
func appendLogValue(b []byte, v log.Value, depth int) []byte {
	switch v.Kind() {
	case log.KindBool:
		return strconv.AppendBool(b, v.AsBool())
	case log.KindInt64:
		return strconv.AppendInt(b, v.AsInt64(), 10)
	case log.KindFloat64:
		return appendFloat(b, v.AsFloat64())
	case log.KindString:
		return appendString(b, v.AsString())
	case log.KindBytes:
		return appendBytes(b, v.AsBytes())
	case log.KindSlice:
		if depth > maxDepth {
			return appendString(b, tooDeep)
		}
		return appendList(b, v.AsSlice(), func(b []byte, v log.Value) []byte { return appendLogValue(b, v, depth+1) })
	case log.KindMap:
		if depth > maxDepth {
			return appendString(b, tooDeep)
		}
		return appendLogMap(b, v.AsMap(), depth+1)
	}
	return append(b, "null"...)
}

// appendLogMap writes a map whose values stand at depth.
func appendLogMap(b []byte, kvs []log.KeyValue, depth int) []byte {
	return appendMap(b, kvs, func(b []byte, kv log.KeyValue) []byte {
		return appendLogValue(append(appendString(b, kv.Key), ": "...), kv.Value, depth)
	})
}
