// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"encoding/base64"
	"strconv"

	"go.opentelemetry.io/collector/pdata/plog"
)

// addLogs encodes one line a log record.
func (console) addLogs(c *chunk, rl plog.ResourceLogs) {
	res := c.appendPyResource(c.scratch[:0], rl.Resource(), rl.SchemaUrl())
	c.scratch = res
	for _, sl := range rl.ScopeLogs().All() {
		for _, record := range sl.LogRecords().All() {
			c.buf = c.appendPyRecord(c.buf, record, res)
			c.endLine(nil, 1)
		}
	}
	c.endPart(nil)
}

func (e *encoder) appendPyRecord(b []byte, record plog.LogRecord, res []byte) []byte {
	b = e.appendPyValue(append(b, `{"body": `...), record.Body(), 1, base64.StdEncoding.AppendEncode)
	b = append(b, `, "severity_number": `...)
	if n := record.SeverityNumber(); n == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, int64(n), 10)
	}
	b = append(b, `, "severity_text": `...)
	if text := record.SeverityText(); text == "" {
		b = append(b, "null"...)
	} else {
		b = e.appendPyString(b, text)
	}
	b = e.appendPyAttributesOrNull(append(b, `, "attributes": `...), record.Attributes())
	b = strconv.AppendUint(append(b, `, "dropped_attributes": `...), uint64(record.DroppedAttributesCount()), 10)
	b = appendPyTimeOrNull(append(b, `, "timestamp": `...), record.Timestamp())
	b = appendPyTime(append(b, `, "observed_timestamp": `...), record.ObservedTimestamp())
	traceID, spanID := record.TraceID(), record.SpanID()
	b = appendPyID(append(b, `, "trace_id": `...), traceID[:])
	b = appendPyID(append(b, `, "span_id": `...), spanID[:])
	b = strconv.AppendUint(append(b, `, "trace_flags": `...), uint64(record.Flags()), 10)
	b = append(append(b, `, "resource": `...), res...)
	b = e.appendPyString(append(b, `, "event_name": `...), record.EventName())
	return append(b, '}', '\n')
}
