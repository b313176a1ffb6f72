// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// FromJSON reads an OTLP/JSON request (OTLP 1.10, "JSON Protobuf Encoding": ids in hex, 64-bit integers as text or
// number, enums as integers). A key that it does not know is an error, so nothing that was sent goes unjudged.
func FromJSON(signal string, body []byte) (r Request, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var root any
	if err := dec.Decode(&root); err != nil {
		return Request{}, err
	}
	defer func() {
		if p := recover(); p != nil {
			badJSON, ok := p.(badJSON)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("OTLP/JSON %s: %s", signal, string(badJSON))
		}
	}()
	switch signal {
	case "traces":
		r.Traces = &coltracepb.ExportTraceServiceRequest{}
		each(root, keys{"resourceSpans": all(&r.Traces.ResourceSpans, readResourceSpans)})
	case "metrics":
		r.Metrics = &colmetricspb.ExportMetricsServiceRequest{}
		each(root, keys{"resourceMetrics": all(&r.Metrics.ResourceMetrics, readResourceMetrics)})
	case "logs":
		r.Logs = &collogspb.ExportLogsServiceRequest{}
		each(root, keys{"resourceLogs": all(&r.Logs.ResourceLogs, readResourceLogs)})
	default:
		return Request{}, fmt.Errorf("unknown signal %q", signal)
	}
	return r, nil
}

func readResourceSpans(v any) *tracepb.ResourceSpans {
	m := &tracepb.ResourceSpans{}
	each(v, keys{
		"resource":   one(&m.Resource, readResource),
		"scopeSpans": all(&m.ScopeSpans, readScopeSpans),
		"schemaUrl":  set(&m.SchemaUrl, readText),
	})
	return m
}

func readScopeSpans(v any) *tracepb.ScopeSpans {
	m := &tracepb.ScopeSpans{}
	each(v, keys{
		"scope":     one(&m.Scope, readScope),
		"spans":     all(&m.Spans, readSpan),
		"schemaUrl": set(&m.SchemaUrl, readText),
	})
	return m
}

func readSpan(v any) *tracepb.Span {
	m := &tracepb.Span{}
	each(v, keys{
		"traceId":                set(&m.TraceId, readHex),
		"spanId":                 set(&m.SpanId, readHex),
		"parentSpanId":           set(&m.ParentSpanId, readHex),
		"traceState":             set(&m.TraceState, readText),
		"flags":                  set(&m.Flags, readUint32),
		"name":                   set(&m.Name, readText),
		"kind":                   set(&m.Kind, readEnum[tracepb.Span_SpanKind]),
		"startTimeUnixNano":      set(&m.StartTimeUnixNano, readUint64),
		"endTimeUnixNano":        set(&m.EndTimeUnixNano, readUint64),
		"attributes":             all(&m.Attributes, readKeyValue),
		"droppedAttributesCount": set(&m.DroppedAttributesCount, readUint32),
		"events":                 all(&m.Events, readEvent),
		"droppedEventsCount":     set(&m.DroppedEventsCount, readUint32),
		"links":                  all(&m.Links, readLink),
		"droppedLinksCount":      set(&m.DroppedLinksCount, readUint32),
		"status":                 one(&m.Status, readStatus),
	})
	return m
}

func readStatus(v any) *tracepb.Status {
	m := &tracepb.Status{}
	each(v, keys{"code": set(&m.Code, readEnum[tracepb.Status_StatusCode]), "message": set(&m.Message, readText)})
	return m
}

func readEvent(v any) *tracepb.Span_Event {
	m := &tracepb.Span_Event{}
	each(v, keys{
		"timeUnixNano":           set(&m.TimeUnixNano, readUint64),
		"name":                   set(&m.Name, readText),
		"attributes":             all(&m.Attributes, readKeyValue),
		"droppedAttributesCount": set(&m.DroppedAttributesCount, readUint32),
	})
	return m
}

func readLink(v any) *tracepb.Span_Link {
	m := &tracepb.Span_Link{}
	each(v, keys{
		"traceId":                set(&m.TraceId, readHex),
		"spanId":                 set(&m.SpanId, readHex),
		"traceState":             set(&m.TraceState, readText),
		"flags":                  set(&m.Flags, readUint32),
		"attributes":             all(&m.Attributes, readKeyValue),
		"droppedAttributesCount": set(&m.DroppedAttributesCount, readUint32),
	})
	return m
}

func readResourceMetrics(v any) *metricspb.ResourceMetrics {
	m := &metricspb.ResourceMetrics{}
	each(v, keys{
		"resource":     one(&m.Resource, readResource),
		"scopeMetrics": all(&m.ScopeMetrics, readScopeMetrics),
		"schemaUrl":    set(&m.SchemaUrl, readText),
	})
	return m
}

func readScopeMetrics(v any) *metricspb.ScopeMetrics {
	m := &metricspb.ScopeMetrics{}
	each(v, keys{
		"scope":     one(&m.Scope, readScope),
		"metrics":   all(&m.Metrics, readMetric),
		"schemaUrl": set(&m.SchemaUrl, readText),
	})
	return m
}

func readMetric(v any) *metricspb.Metric {
	m := &metricspb.Metric{}
	each(v, keys{
		"name":        set(&m.Name, readText),
		"description": set(&m.Description, readText),
		"unit":        set(&m.Unit, readText),
		"metadata":    all(&m.Metadata, readKeyValue),
		"gauge": func(v any) {
			g := &metricspb.Gauge{}
			m.Data = &metricspb.Metric_Gauge{Gauge: g}
			each(v, keys{"dataPoints": all(&g.DataPoints, readNumberPoint)})
		},
		"sum": func(v any) {
			s := &metricspb.Sum{}
			m.Data = &metricspb.Metric_Sum{Sum: s}
			each(v, keys{
				"dataPoints":             all(&s.DataPoints, readNumberPoint),
				"aggregationTemporality": set(&s.AggregationTemporality, readEnum[metricspb.AggregationTemporality]),
				"isMonotonic":            set(&s.IsMonotonic, readBool),
			})
		},
		"histogram": func(v any) {
			h := &metricspb.Histogram{}
			m.Data = &metricspb.Metric_Histogram{Histogram: h}
			each(v, keys{
				"dataPoints":             all(&h.DataPoints, readHistogramPoint),
				"aggregationTemporality": set(&h.AggregationTemporality, readEnum[metricspb.AggregationTemporality]),
			})
		},
		"exponentialHistogram": func(v any) {
			h := &metricspb.ExponentialHistogram{}
			m.Data = &metricspb.Metric_ExponentialHistogram{ExponentialHistogram: h}
			each(v, keys{
				"dataPoints":             all(&h.DataPoints, readExponentialPoint),
				"aggregationTemporality": set(&h.AggregationTemporality, readEnum[metricspb.AggregationTemporality]),
			})
		},
		"summary": func(v any) {
			s := &metricspb.Summary{}
			m.Data = &metricspb.Metric_Summary{Summary: s}
			each(v, keys{"dataPoints": all(&s.DataPoints, readSummaryPoint)})
		},
	})
	return m
}

func readNumberPoint(v any) *metricspb.NumberDataPoint {
	m := &metricspb.NumberDataPoint{}
	each(v, keys{
		"attributes":        all(&m.Attributes, readKeyValue),
		"startTimeUnixNano": set(&m.StartTimeUnixNano, readUint64),
		"timeUnixNano":      set(&m.TimeUnixNano, readUint64),
		"flags":             set(&m.Flags, readUint32),
		"exemplars":         all(&m.Exemplars, readExemplar),
		"asInt":             func(v any) { m.Value = &metricspb.NumberDataPoint_AsInt{AsInt: readInt64(v)} },
		"asDouble":          func(v any) { m.Value = &metricspb.NumberDataPoint_AsDouble{AsDouble: readDouble(v)} },
	})
	return m
}

func readHistogramPoint(v any) *metricspb.HistogramDataPoint {
	m := &metricspb.HistogramDataPoint{}
	each(v, keys{
		"attributes":        all(&m.Attributes, readKeyValue),
		"startTimeUnixNano": set(&m.StartTimeUnixNano, readUint64),
		"timeUnixNano":      set(&m.TimeUnixNano, readUint64),
		"flags":             set(&m.Flags, readUint32),
		"exemplars":         all(&m.Exemplars, readExemplar),
		"count":             set(&m.Count, readUint64),
		"sum":               one(&m.Sum, readDoublePointer),
		"min":               one(&m.Min, readDoublePointer),
		"max":               one(&m.Max, readDoublePointer),
		"bucketCounts":      all(&m.BucketCounts, readUint64),
		"explicitBounds":    all(&m.ExplicitBounds, readDouble),
	})
	return m
}

func readExponentialPoint(v any) *metricspb.ExponentialHistogramDataPoint {
	m := &metricspb.ExponentialHistogramDataPoint{}
	each(v, keys{
		"attributes":        all(&m.Attributes, readKeyValue),
		"startTimeUnixNano": set(&m.StartTimeUnixNano, readUint64),
		"timeUnixNano":      set(&m.TimeUnixNano, readUint64),
		"flags":             set(&m.Flags, readUint32),
		"exemplars":         all(&m.Exemplars, readExemplar),
		"count":             set(&m.Count, readUint64),
		"sum":               one(&m.Sum, readDoublePointer),
		"min":               one(&m.Min, readDoublePointer),
		"max":               one(&m.Max, readDoublePointer),
		"scale":             set(&m.Scale, readEnum[int32]),
		"zeroCount":         set(&m.ZeroCount, readUint64),
		"zeroThreshold":     set(&m.ZeroThreshold, readDouble),
		"positive":          one(&m.Positive, readBuckets),
		"negative":          one(&m.Negative, readBuckets),
	})
	return m
}

func readBuckets(v any) *metricspb.ExponentialHistogramDataPoint_Buckets {
	m := &metricspb.ExponentialHistogramDataPoint_Buckets{}
	each(v, keys{"offset": set(&m.Offset, readEnum[int32]), "bucketCounts": all(&m.BucketCounts, readUint64)})
	return m
}

func readSummaryPoint(v any) *metricspb.SummaryDataPoint {
	m := &metricspb.SummaryDataPoint{}
	each(v, keys{
		"attributes":        all(&m.Attributes, readKeyValue),
		"startTimeUnixNano": set(&m.StartTimeUnixNano, readUint64),
		"timeUnixNano":      set(&m.TimeUnixNano, readUint64),
		"flags":             set(&m.Flags, readUint32),
		"count":             set(&m.Count, readUint64),
		"sum":               set(&m.Sum, readDouble),
		"quantileValues":    all(&m.QuantileValues, readQuantile),
	})
	return m
}

func readQuantile(v any) *metricspb.SummaryDataPoint_ValueAtQuantile {
	m := &metricspb.SummaryDataPoint_ValueAtQuantile{}
	each(v, keys{"quantile": set(&m.Quantile, readDouble), "value": set(&m.Value, readDouble)})
	return m
}

func readExemplar(v any) *metricspb.Exemplar {
	m := &metricspb.Exemplar{}
	each(v, keys{
		"timeUnixNano":       set(&m.TimeUnixNano, readUint64),
		"traceId":            set(&m.TraceId, readHex),
		"spanId":             set(&m.SpanId, readHex),
		"filteredAttributes": all(&m.FilteredAttributes, readKeyValue),
		"asInt":              func(v any) { m.Value = &metricspb.Exemplar_AsInt{AsInt: readInt64(v)} },
		"asDouble":           func(v any) { m.Value = &metricspb.Exemplar_AsDouble{AsDouble: readDouble(v)} },
	})
	return m
}

func readResourceLogs(v any) *logspb.ResourceLogs {
	m := &logspb.ResourceLogs{}
	each(v, keys{
		"resource":  one(&m.Resource, readResource),
		"scopeLogs": all(&m.ScopeLogs, readScopeLogs),
		"schemaUrl": set(&m.SchemaUrl, readText),
	})
	return m
}

func readScopeLogs(v any) *logspb.ScopeLogs {
	m := &logspb.ScopeLogs{}
	each(v, keys{
		"scope":      one(&m.Scope, readScope),
		"logRecords": all(&m.LogRecords, readLogRecord),
		"schemaUrl":  set(&m.SchemaUrl, readText),
	})
	return m
}

func readLogRecord(v any) *logspb.LogRecord {
	m := &logspb.LogRecord{}
	each(v, keys{
		"timeUnixNano":           set(&m.TimeUnixNano, readUint64),
		"observedTimeUnixNano":   set(&m.ObservedTimeUnixNano, readUint64),
		"severityNumber":         set(&m.SeverityNumber, readEnum[logspb.SeverityNumber]),
		"severityText":           set(&m.SeverityText, readText),
		"eventName":              set(&m.EventName, readText),
		"body":                   one(&m.Body, readAnyValue),
		"attributes":             all(&m.Attributes, readKeyValue),
		"droppedAttributesCount": set(&m.DroppedAttributesCount, readUint32),
		"flags":                  set(&m.Flags, readUint32),
		"traceId":                set(&m.TraceId, readHex),
		"spanId":                 set(&m.SpanId, readHex),
	})
	return m
}

func readResource(v any) *resourcepb.Resource {
	m := &resourcepb.Resource{}
	each(v, keys{
		"attributes":             all(&m.Attributes, readKeyValue),
		"droppedAttributesCount": set(&m.DroppedAttributesCount, readUint32),
		"entityRefs":             all(&m.EntityRefs, readEntityRef),
	})
	return m
}

func readEntityRef(v any) *commonpb.EntityRef {
	m := &commonpb.EntityRef{}
	each(v, keys{
		"schemaUrl":       set(&m.SchemaUrl, readText),
		"type":            set(&m.Type, readText),
		"idKeys":          all(&m.IdKeys, readText),
		"descriptionKeys": all(&m.DescriptionKeys, readText),
	})
	return m
}

func readScope(v any) *commonpb.InstrumentationScope {
	m := &commonpb.InstrumentationScope{}
	each(v, keys{
		"name":                   set(&m.Name, readText),
		"version":                set(&m.Version, readText),
		"attributes":             all(&m.Attributes, readKeyValue),
		"droppedAttributesCount": set(&m.DroppedAttributesCount, readUint32),
	})
	return m
}

func readKeyValue(v any) *commonpb.KeyValue {
	m := &commonpb.KeyValue{}
	each(v, keys{"key": set(&m.Key, readText), "value": one(&m.Value, readAnyValue)})
	return m
}

func readAnyValue(v any) *commonpb.AnyValue {
	m := &commonpb.AnyValue{}
	each(v, keys{
		"stringValue": func(v any) { m.Value = &commonpb.AnyValue_StringValue{StringValue: readText(v)} },
		"boolValue":   func(v any) { m.Value = &commonpb.AnyValue_BoolValue{BoolValue: readBool(v)} },
		"intValue":    func(v any) { m.Value = &commonpb.AnyValue_IntValue{IntValue: readInt64(v)} },
		"doubleValue": func(v any) { m.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: readDouble(v)} },
		"bytesValue": func(v any) {
			b, err := base64.StdEncoding.DecodeString(readText(v))
			check(err)
			m.Value = &commonpb.AnyValue_BytesValue{BytesValue: b}
		},
		"arrayValue": func(v any) {
			l := &commonpb.ArrayValue{}
			m.Value = &commonpb.AnyValue_ArrayValue{ArrayValue: l}
			each(v, keys{"values": all(&l.Values, readAnyValue)})
		},
		"kvlistValue": func(v any) {
			l := &commonpb.KeyValueList{}
			m.Value = &commonpb.AnyValue_KvlistValue{KvlistValue: l}
			each(v, keys{"values": all(&l.Values, readKeyValue)})
		},
	})
	return m
}

// badJSON is what the readers below panic with; FromJSON makes it an error.
type badJSON string

func fail(format string, args ...any) { panic(badJSON(fmt.Sprintf(format, args...))) }

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// keys says what to do with the value of each key of an object.
type keys map[string]func(any)

func each(v any, do keys) {
	for key, value := range as[map[string]any](v) {
		read, ok := do[key]
		if !ok {
			fail("unknown key %q", key)
		}
		read(value)
	}
}

func set[T any](to *T, read func(any) T) func(any) { return func(v any) { *to = read(v) } }

func one[T any](to **T, read func(any) *T) func(any) { return set(to, read) }

func all[T any](to *[]T, read func(any) T) func(any) {
	return func(v any) {
		for _, item := range as[[]any](v) {
			*to = append(*to, read(item))
		}
	}
}

func as[T any](v any) T {
	t, ok := v.(T)
	if !ok {
		fail("%v is %T, not %T", v, v, t)
	}
	return t
}

func readText(v any) string { return as[string](v) }

func readBool(v any) bool { return as[bool](v) }

func readHex(v any) []byte {
	b, err := hex.DecodeString(readText(v))
	check(err)
	return b
}

func readEnum[T ~int32](v any) T {
	n, err := strconv.ParseInt(as[json.Number](v).String(), 10, 32)
	check(err)
	return T(n)
}

// digits is the text of a number, which may come as a JSON number or as text.
func digits(v any) string {
	if n, ok := v.(json.Number); ok {
		return n.String()
	}
	return readText(v)
}

func readInt64(v any) int64 {
	n, err := strconv.ParseInt(digits(v), 10, 64)
	check(err)
	return n
}

func readUint64(v any) uint64 {
	n, err := strconv.ParseUint(digits(v), 10, 64)
	check(err)
	return n
}

func readUint32(v any) uint32 {
	n, err := strconv.ParseUint(digits(v), 10, 32)
	check(err)
	return uint32(n)
}

func readDouble(v any) float64 {
	switch text := digits(v); text {
	case "NaN":
		return math.NaN()
	case "Infinity":
		return math.Inf(1)
	case "-Infinity":
		return math.Inf(-1)
	default:
		f, err := strconv.ParseFloat(text, 64)
		check(err)
		return f
	}
}

func readDoublePointer(v any) *float64 {
	f := readDouble(v)
	return &f
}
