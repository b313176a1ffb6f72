// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// addLogs encodes one line a log record.
func (l *compact) addLogs(c *chunk, rl plog.ResourceLogs) {
	var resource *resource
	for _, sl := range rl.ScopeLogs().All() {
		records := sl.LogRecords()
		if records.Len() == 0 {
			continue
		}
		if resource == nil {
			resource = l.resource(&c.encoder, rl.Resource(), rl.SchemaUrl())
		}
		scope := l.scope(&c.encoder, resource, sl.Scope(), sl.SchemaUrl())
		for i := range records.Len() {
			c.buf = append(c.appendRecord(c.buf, records.At(i)), scope.suffix...)
			c.endLine(scope, 1)
		}
		c.endPart(scope)
	}
}

func (e *encoder) appendRecord(b []byte, record plog.LogRecord) []byte {
	b = append(b, `{"type":"log"`...)
	b = nanos(b, `,"time_ns":`, record.Timestamp())
	b = unsigned(b, `,"observed_ns":`, uint64(record.ObservedTimestamp()))
	b = signed(b, `,"severity_number":`, int64(record.SeverityNumber()))
	b = e.text(b, `,"severity_text":`, record.SeverityText())
	b = e.text(b, `,"event_name":`, record.EventName())
	if record.Body().Type() != pcommon.ValueTypeEmpty {
		b = e.appendValue(append(b, `,"body":`...), record.Body(), 1)
	}
	b = traceID(b, `,"trace_id":`, record.TraceID())
	b = spanID(b, `,"span_id":`, record.SpanID())
	b = unsigned(b, `,"flags":`, uint64(record.Flags()))
	b = e.attributes(b, record.Attributes())
	return unsigned(b, `,"dropped_attributes":`, uint64(record.DroppedAttributesCount()))
}
