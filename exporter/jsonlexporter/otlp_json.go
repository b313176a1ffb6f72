// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"encoding/base64"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
)

// otlpJSON is the layout of one OTLP/JSON request a line (OTLP 1.10, JSON Protobuf Encoding), as contrib's file exporter
// writes it and the stock otlp_json_file receiver reads it.
//
// It does not go through pdata's marshaler: that one takes whole requests, so each resource would have to be copied first; copies
// and marshals nested values however deep they are; and writes text that is not UTF-8 as
// it is, which no JSON reader takes. A test holds the two equal.
type otlpJSON struct{}

// longLine is the size from which a request goes on in the next line: that receiver reads no line beyond 1 MiB
// (max_log_size of its default configuration) whole.
const longLine = 512 << 10

// addSpans encodes a resource's spans.
func (otlpJSON) addSpans(c *chunk, rs ptrace.ResourceSpans) {
	r := c.otlpRequest(`{"resourceSpans":[{"scopeSpans":[`, rs.Resource(), rs.SchemaUrl())
	for _, ss := range rs.ScopeSpans().All() {
		r.scope(ss.Scope(), ss.SchemaUrl(), `,"spans":[`)
		for _, span := range ss.Spans().All() {
			c.buf = c.otlpSpan(r.item(), span)
		}
	}
	r.close()
}

// addMetrics encodes a resource's data points. Metrics without any leave nothing, as in every layout.
func (otlpJSON) addMetrics(c *chunk, rm pmetric.ResourceMetrics) {
	r := c.otlpRequest(`{"resourceMetrics":[{"scopeMetrics":[`, rm.Resource(), rm.SchemaUrl())
	for _, sm := range rm.ScopeMetrics().All() {
		r.scope(sm.Scope(), sm.SchemaUrl(), `,"metrics":[`)
		for _, m := range sm.Metrics().All() {
			r.metric(m)
		}
	}
	r.close()
}

// addLogs encodes a resource's log records.
func (otlpJSON) addLogs(c *chunk, rl plog.ResourceLogs) {
	r := c.otlpRequest(`{"resourceLogs":[{"scopeLogs":[`, rl.Resource(), rl.SchemaUrl())
	for _, sl := range rl.ScopeLogs().All() {
		r.scope(sl.Scope(), sl.SchemaUrl(), `,"logRecords":[`)
		for _, record := range sl.LogRecords().All() {
			c.buf = c.otlpRecord(r.item(), record)
		}
	}
	r.close()
}

// otlpRequest is one resource's way into lines: its items stand in lists that are nested in up to three levels, the resource, a
// scope and a metric. A level is opened in a line by its first item there, so a line can end after any item.
//
// The resource stands behind its items. The stock receiver tells files apart by their first 1,000 bytes, and passes over a file that
// begins as another: rotated files of one process would, if a long resource came first.
type otlpRequest struct {
	c     *chunk
	head  string      // of the line
	ends  [levels]int // in the chunk's scratch: of the line's tail, of the heads of the other levels
	depth int         // levels that have a head
	open  int         // levels that are open in the line
	start int         // of the line
	items int         // in it
}

const (
	resourceLevel = iota
	scopeLevel
	metricLevel
	levels
)

// tails close what the heads of the levels opened.
var tails = [levels]string{scopeLevel: "]}", metricLevel: "]}}"}

func (c *chunk) otlpRequest(head string, res pcommon.Resource, schemaURL string) otlpRequest {
	r := otlpRequest{c: c, head: head, start: len(c.buf)}
	b := c.otlpResource(append(r.begin(resourceLevel), `],"resource":`...), res)
	r.headed(append(c.text(b, `,"schemaUrl":`, schemaURL), "}]}\n"...))
	return r
}

func (r *otlpRequest) scope(is pcommon.InstrumentationScope, schemaURL, list string) {
	b := r.c.otlpScope(append(r.begin(scopeLevel), `{"scope":`...), is)
	r.headed(append(r.c.text(b, `,"schemaUrl":`, schemaURL), list...))
}

// begin leaves a level, and returns the heads of those above it, for that of the next one at this level.
func (r *otlpRequest) begin(level int) []byte {
	r.leave(level)
	r.depth = level
	if level == 0 {
		return r.c.scratch[:0]
	}
	return r.c.scratch[:r.ends[level-1]]
}

func (r *otlpRequest) headed(heads []byte) {
	r.c.scratch = heads
	r.ends[r.depth] = len(heads)
	r.depth++
}

// leave closes what is open from a level on.
func (r *otlpRequest) leave(level int) {
	for r.open > level {
		r.open--
		if r.open == resourceLevel {
			r.c.buf = append(r.c.buf, r.c.scratch[:r.ends[resourceLevel]]...)
		} else {
			r.c.buf = append(r.c.buf, tails[r.open]...)
		}
	}
}

// item opens what is not open, and returns the chunk's bytes for an item to be appended.
func (r *otlpRequest) item() []byte {
	if len(r.c.buf)-r.start >= longLine {
		r.endLine()
	}
	r.items++
	b := comma(r.c.buf)
	for ; r.open < r.depth; r.open++ {
		if r.open == resourceLevel {
			b = append(b, r.head...)
		} else {
			b = append(b, r.c.scratch[r.ends[r.open-1]:r.ends[r.open]]...)
		}
	}
	return b
}

func (r *otlpRequest) endLine() {
	r.leave(0)
	r.c.endLine(nil, r.items)
	r.start, r.items = len(r.c.buf), 0
}

func (r *otlpRequest) close() {
	r.endLine()
	r.c.endPart(nil)
}

// comma parts what follows from its neighbour in the list.
func comma(b []byte) []byte {
	if len(b) > 0 && b[len(b)-1] == '}' {
		return append(b, ',')
	}
	return b
}

func (e *encoder) otlpResource(b []byte, res pcommon.Resource) []byte {
	start := len(b)
	b = e.otlpAttributes(b, res.Attributes())
	b = unsigned(b, `,"droppedAttributesCount":`, uint64(res.DroppedAttributesCount()))
	if refs := entity.ResourceEntityRefs(res); refs.Len() > 0 {
		b = append(b, `,"entityRefs":[`...)
		for _, ref := range refs.All() {
			b = comma(b)
			start := len(b)
			b = e.text(b, `,"schemaUrl":`, ref.SchemaUrl())
			b = e.text(b, `,"type":`, ref.Type())
			b = e.texts(b, `,"idKeys":[`, ref.IdKeys())
			b = e.texts(b, `,"descriptionKeys":[`, ref.DescriptionKeys())
			b = closeObject(b, start)
		}
		b = append(b, ']')
	}
	return closeObject(b, start)
}

func (e *encoder) otlpScope(b []byte, is pcommon.InstrumentationScope) []byte {
	start := len(b)
	b = e.text(b, `,"name":`, is.Name())
	b = e.text(b, `,"version":`, is.Version())
	b = e.otlpAttributes(b, is.Attributes())
	b = unsigned(b, `,"droppedAttributesCount":`, uint64(is.DroppedAttributesCount()))
	return closeObject(b, start)
}

func (e *encoder) otlpSpan(b []byte, span ptrace.Span) []byte {
	start := len(b)
	b = traceID(b, `,"traceId":`, span.TraceID())
	b = spanID(b, `,"spanId":`, span.SpanID())
	b = e.text(b, `,"traceState":`, span.TraceState().AsRaw())
	b = spanID(b, `,"parentSpanId":`, span.ParentSpanID())
	b = unsigned(b, `,"flags":`, uint64(span.Flags()))
	b = e.text(b, `,"name":`, span.Name())
	b = signed(b, `,"kind":`, int64(span.Kind()))
	b = quoted(b, `,"startTimeUnixNano":`, uint64(span.StartTimestamp()))
	b = quoted(b, `,"endTimeUnixNano":`, uint64(span.EndTimestamp()))
	b = e.otlpAttributes(b, span.Attributes())
	b = unsigned(b, `,"droppedAttributesCount":`, uint64(span.DroppedAttributesCount()))
	if span.Events().Len() > 0 {
		b = append(b, `,"events":[`...)
		for _, event := range span.Events().All() {
			b = comma(b)
			start := len(b)
			b = quoted(b, `,"timeUnixNano":`, uint64(event.Timestamp()))
			b = e.text(b, `,"name":`, event.Name())
			b = e.otlpAttributes(b, event.Attributes())
			b = unsigned(b, `,"droppedAttributesCount":`, uint64(event.DroppedAttributesCount()))
			b = closeObject(b, start)
		}
		b = append(b, ']')
	}
	b = unsigned(b, `,"droppedEventsCount":`, uint64(span.DroppedEventsCount()))
	if span.Links().Len() > 0 {
		b = append(b, `,"links":[`...)
		for _, link := range span.Links().All() {
			b = comma(b)
			start := len(b)
			b = traceID(b, `,"traceId":`, link.TraceID())
			b = spanID(b, `,"spanId":`, link.SpanID())
			b = e.text(b, `,"traceState":`, link.TraceState().AsRaw())
			b = e.otlpAttributes(b, link.Attributes())
			b = unsigned(b, `,"droppedAttributesCount":`, uint64(link.DroppedAttributesCount()))
			b = unsigned(b, `,"flags":`, uint64(link.Flags()))
			b = closeObject(b, start)
		}
		b = append(b, ']')
	}
	b = unsigned(b, `,"droppedLinksCount":`, uint64(span.DroppedLinksCount()))
	b = append(b, `,"status":`...)
	status := len(b)
	b = e.text(b, `,"message":`, span.Status().Message())
	b = signed(b, `,"code":`, int64(span.Status().Code()))
	return closeObject(closeObject(b, status), start)
}

func (e *encoder) otlpRecord(b []byte, record plog.LogRecord) []byte {
	start := len(b)
	b = quoted(b, `,"timeUnixNano":`, uint64(record.Timestamp()))
	b = quoted(b, `,"observedTimeUnixNano":`, uint64(record.ObservedTimestamp()))
	b = signed(b, `,"severityNumber":`, int64(record.SeverityNumber()))
	b = e.text(b, `,"severityText":`, record.SeverityText())
	b = e.otlpValue(append(b, `,"body":`...), record.Body(), 1)
	b = e.otlpAttributes(b, record.Attributes())
	b = unsigned(b, `,"droppedAttributesCount":`, uint64(record.DroppedAttributesCount()))
	b = unsigned(b, `,"flags":`, uint64(record.Flags()))
	b = traceID(b, `,"traceId":`, record.TraceID())
	b = spanID(b, `,"spanId":`, record.SpanID())
	b = e.text(b, `,"eventName":`, record.EventName())
	return closeObject(b, start)
}

// metric makes a metric the third level, and encodes its points.
func (r *otlpRequest) metric(m pmetric.Metric) {
	c := r.c
	b := r.begin(metricLevel)
	start := len(b)
	b = c.text(b, `,"name":`, m.Name())
	b = c.text(b, `,"description":`, m.Description())
	b = c.text(b, `,"unit":`, m.Unit())
	if m.Metadata().Len() > 0 {
		b = c.otlpMap(append(b, `,"metadata":`...), m.Metadata(), 1)
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		r.headed(opened(append(b, `,"gauge":{"dataPoints":[`...), start))
		otlpPoints(r, m.Gauge().DataPoints().All(), c.otlpNumber)
	case pmetric.MetricTypeSum:
		b = otlpTemporality(append(b, `,"sum":{`...), m.Sum().AggregationTemporality())
		if m.Sum().IsMonotonic() {
			b = append(b, `"isMonotonic":true,`...)
		}
		r.headed(opened(append(b, `"dataPoints":[`...), start))
		otlpPoints(r, m.Sum().DataPoints().All(), c.otlpNumber)
	case pmetric.MetricTypeHistogram:
		b = otlpTemporality(append(b, `,"histogram":{`...), m.Histogram().AggregationTemporality())
		r.headed(opened(append(b, `"dataPoints":[`...), start))
		otlpPoints(r, m.Histogram().DataPoints().All(), c.otlpHistogram)
	case pmetric.MetricTypeExponentialHistogram:
		b = otlpTemporality(append(b, `,"exponentialHistogram":{`...), m.ExponentialHistogram().AggregationTemporality())
		r.headed(opened(append(b, `"dataPoints":[`...), start))
		otlpPoints(r, m.ExponentialHistogram().DataPoints().All(), c.otlpExponential)
	case pmetric.MetricTypeSummary:
		r.headed(opened(append(b, `,"summary":{"dataPoints":[`...), start))
		otlpPoints(r, m.Summary().DataPoints().All(), c.otlpSummary)
	}
}

// opened is the members `,"a":1,"b":[` that were appended since start as the beginning of an object.
func opened(b []byte, start int) []byte {
	b[start] = '{'
	return b
}

func otlpTemporality(b []byte, t pmetric.AggregationTemporality) []byte {
	if t == 0 {
		return b
	}
	return append(strconv.AppendInt(append(b, `"aggregationTemporality":`...), int64(t), 10), ',')
}

func otlpPoints[P pointHead](r *otlpRequest, points func(func(int, P) bool), members func([]byte, P) []byte) {
	for _, p := range points {
		b := r.item()
		start := len(b)
		b = r.c.otlpAttributes(b, p.Attributes())
		b = quoted(b, `,"startTimeUnixNano":`, uint64(p.StartTimestamp()))
		b = quoted(b, `,"timeUnixNano":`, uint64(p.Timestamp()))
		b = unsigned(members(b, p), `,"flags":`, uint64(p.Flags()))
		r.c.buf = closeObject(b, start)
	}
}

func (e *encoder) otlpNumber(b []byte, p pmetric.NumberDataPoint) []byte {
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		b = otlpInt(append(b, `,"asInt":`...), p.IntValue())
	case pmetric.NumberDataPointValueTypeDouble:
		b = otlpDouble(append(b, `,"asDouble":`...), p.DoubleValue())
	}
	return e.otlpExemplars(b, p.Exemplars())
}

func (e *encoder) otlpHistogram(b []byte, p pmetric.HistogramDataPoint) []byte {
	b = otlpTotals(b, p)
	b = otlpCounts(b, p.BucketCounts())
	if p.ExplicitBounds().Len() > 0 {
		b = append(b, `,"explicitBounds":[`...)
		for i, bound := range p.ExplicitBounds().All() {
			if i > 0 {
				b = append(b, ',')
			}
			b = otlpDouble(b, bound)
		}
		b = append(b, ']')
	}
	return e.otlpExemplars(b, p.Exemplars())
}

func (e *encoder) otlpExponential(b []byte, p pmetric.ExponentialHistogramDataPoint) []byte {
	b = otlpTotals(b, p)
	b = signed(b, `,"scale":`, int64(p.Scale()))
	b = quoted(b, `,"zeroCount":`, p.ZeroCount())
	if math.Float64bits(p.ZeroThreshold()) != 0 {
		b = otlpDouble(append(b, `,"zeroThreshold":`...), p.ZeroThreshold())
	}
	b = otlpBuckets(append(b, `,"positive":`...), p.Positive())
	b = otlpBuckets(append(b, `,"negative":`...), p.Negative())
	return e.otlpExemplars(b, p.Exemplars())
}

func (e *encoder) otlpSummary(b []byte, p pmetric.SummaryDataPoint) []byte {
	b = quoted(b, `,"count":`, p.Count())
	if math.Float64bits(p.Sum()) != 0 {
		b = otlpDouble(append(b, `,"sum":`...), p.Sum())
	}
	if p.QuantileValues().Len() > 0 {
		b = append(b, `,"quantileValues":[`...)
		for _, q := range p.QuantileValues().All() {
			b = otlpDouble(append(comma(b), `{"quantile":`...), q.Quantile())
			b = append(otlpDouble(append(b, `,"value":`...), q.Value()), '}')
		}
		b = append(b, ']')
	}
	return b
}

func otlpTotals[P totals](b []byte, p P) []byte {
	b = quoted(b, `,"count":`, p.Count())
	if p.HasSum() {
		b = otlpDouble(append(b, `,"sum":`...), p.Sum())
	}
	if p.HasMin() {
		b = otlpDouble(append(b, `,"min":`...), p.Min())
	}
	if p.HasMax() {
		b = otlpDouble(append(b, `,"max":`...), p.Max())
	}
	return b
}

func otlpBuckets(b []byte, buckets pmetric.ExponentialHistogramDataPointBuckets) []byte {
	start := len(b)
	b = signed(b, `,"offset":`, int64(buckets.Offset()))
	return closeObject(otlpCounts(b, buckets.BucketCounts()), start)
}

func otlpCounts(b []byte, counts pcommon.UInt64Slice) []byte {
	if counts.Len() == 0 {
		return b
	}
	b = append(b, `,"bucketCounts":[`...)
	for i, n := range counts.All() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendUint(append(b, '"'), n, 10), '"')
	}
	return append(b, ']')
}

func (e *encoder) otlpExemplars(b []byte, exemplars pmetric.ExemplarSlice) []byte {
	if exemplars.Len() == 0 {
		return b
	}
	b = append(b, `,"exemplars":[`...)
	for _, x := range exemplars.All() {
		b = comma(b)
		start := len(b)
		if x.FilteredAttributes().Len() > 0 {
			b = e.otlpMap(append(b, `,"filteredAttributes":`...), x.FilteredAttributes(), 1)
		}
		b = quoted(b, `,"timeUnixNano":`, uint64(x.Timestamp()))
		switch x.ValueType() {
		case pmetric.ExemplarValueTypeInt:
			b = otlpInt(append(b, `,"asInt":`...), x.IntValue())
		case pmetric.ExemplarValueTypeDouble:
			b = otlpDouble(append(b, `,"asDouble":`...), x.DoubleValue())
		}
		b = traceID(b, `,"traceId":`, x.TraceID())
		b = spanID(b, `,"spanId":`, x.SpanID())
		b = closeObject(b, start)
	}
	return append(b, ']')
}

func (e *encoder) otlpAttributes(b []byte, m pcommon.Map) []byte {
	if m.Len() == 0 {
		return b
	}
	return e.otlpMap(append(b, `,"attributes":`...), m, 1)
}

// otlpMap writes the list of a map's pairs; values stand at depth.
func (e *encoder) otlpMap(b []byte, m pcommon.Map, depth int) []byte {
	b = append(b, '[')
	for k, v := range m.All() {
		before := e.counts
		b = e.appendString(append(comma(b), `{"key":`...), k)
		b = append(e.otlpValue(append(b, `,"value":`...), v, depth), '}')
		if e.counts != before {
			e.blame(k)
		}
	}
	return append(b, ']')
}

// otlpValue writes a value that stands at depth.
func (e *encoder) otlpValue(b []byte, v pcommon.Value, depth int) []byte {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		b = e.appendString(append(b, `{"stringValue":`...), v.Str())
	case pcommon.ValueTypeInt:
		b = otlpInt(append(b, `{"intValue":`...), v.Int())
	case pcommon.ValueTypeDouble:
		b = otlpDouble(append(b, `{"doubleValue":`...), v.Double())
	case pcommon.ValueTypeBool:
		b = strconv.AppendBool(append(b, `{"boolValue":`...), v.Bool())
	case pcommon.ValueTypeBytes:
		b = base64.StdEncoding.AppendEncode(append(b, `{"bytesValue":"`...), v.Bytes().AsRaw())
		b = append(b, '"')
	case pcommon.ValueTypeMap:
		if depth > maxDepth {
			b = e.appendCut(append(b, `{"stringValue":`...))
			break
		}
		b = append(b, `{"kvlistValue":{`...)
		if v.Map().Len() > 0 {
			b = e.otlpMap(append(b, `"values":`...), v.Map(), depth+1)
		}
		b = append(b, '}')
	case pcommon.ValueTypeSlice:
		if depth > maxDepth {
			b = e.appendCut(append(b, `{"stringValue":`...))
			break
		}
		b = append(b, `{"arrayValue":{`...)
		if v.Slice().Len() > 0 {
			b = append(b, `"values":[`...)
			for _, item := range v.Slice().All() {
				b = e.otlpValue(comma(b), item, depth+1)
			}
			b = append(b, ']')
		}
		b = append(b, '}')
	default:
		b = append(b, '{')
	}
	return append(b, '}')
}

// otlpInt writes an integer of 64 bits, which is a string in OTLP/JSON.
func otlpInt(b []byte, n int64) []byte {
	return append(strconv.AppendInt(append(b, '"'), n, 10), '"')
}

// otlpDouble writes a double: a number, or a string for what JSON has not.
func otlpDouble(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(appendPyFloat(append(b, '"'), f), '"')
	}
	return appendDouble(b, f)
}

// quoted is unsigned for an integer of 64 bits.
func quoted(b []byte, key string, n uint64) []byte {
	if n == 0 {
		return b
	}
	return append(strconv.AppendUint(append(append(b, key...), '"'), n, 10), '"')
}
