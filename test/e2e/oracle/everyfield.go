// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// EveryField returns one request a signal that together use every field of OTLP and every rule of the format, beside
// spans, points and records that leave out all they can. testdata/everyfield.jsonl has their lines, written by hand.
func EveryField() []Request {
	return []Request{
		{Traces: &coltracepb.ExportTraceServiceRequest{ResourceSpans: everySpan()}},
		{Metrics: &colmetricspb.ExportMetricsServiceRequest{ResourceMetrics: everyPoint()}},
		{Logs: &collogspb.ExportLogsServiceRequest{ResourceLogs: everyRecord()}},
	}
}

func everySpan() []*tracepb.ResourceSpans {
	return []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{
			Attributes:             []*commonpb.KeyValue{textKV("service.name", "trainer"), intKV("nv.dl.rank", 3), textKV("dl.rank", "9"), textKV("nemo.run.id", "run-1")},
			DroppedAttributesCount: 2,
			EntityRefs: []*commonpb.EntityRef{
				{SchemaUrl: "https://e", Type: "service", IdKeys: []string{"service.name", "nemo.run.id"}, DescriptionKeys: []string{"nv.dl.rank"}},
				{Type: "host"},
			},
		},
		SchemaUrl: "https://r",
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{
				Name: "lens", Version: "1.2", Attributes: []*commonpb.KeyValue{textKV("@k", "v")}, DroppedAttributesCount: 1,
			},
			SchemaUrl: "https://s",
			Spans: []*tracepb.Span{
				{
					TraceId: sequence(16), SpanId: sequence(8), ParentSpanId: []byte{0xff, 1, 2, 3, 4, 5, 6, 7},
					TraceState: "a=b", Flags: 0x301, Name: "step \"1\"\n\u2028<&>",
					Kind: tracepb.Span_SPAN_KIND_SERVER, StartTimeUnixNano: 1_700_000_000_000_000_001, EndTimeUnixNano: 1_700_000_000_000_000_043,
					Attributes:             everyValue(),
					DroppedAttributesCount: 4, DroppedEventsCount: 5, DroppedLinksCount: 4294967295,
					Events: []*tracepb.Span_Event{
						{Name: "e", TimeUnixNano: 7, Attributes: []*commonpb.KeyValue{intKV("i", 1)}, DroppedAttributesCount: 1},
						{},
					},
					Links: []*tracepb.Span_Link{
						{
							TraceId: sequence(16), SpanId: sequence(8), TraceState: "c=d", Flags: 1,
							Attributes: []*commonpb.KeyValue{textKV("t", "")}, DroppedAttributesCount: 2,
						},
						{},
					},
					Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: "boom"},
				},
				{Kind: tracepb.Span_SPAN_KIND_INTERNAL, TraceId: make([]byte, 16), SpanId: make([]byte, 8)},
				{Name: "unspecified"},
				{Name: "client", Kind: tracepb.Span_SPAN_KIND_CLIENT, StartTimeUnixNano: 10, EndTimeUnixNano: 4},
				{Name: "producer", Kind: tracepb.Span_SPAN_KIND_PRODUCER, EndTimeUnixNano: math.MaxUint64},
				{Name: "consumer", Kind: tracepb.Span_SPAN_KIND_CONSUMER, StartTimeUnixNano: math.MaxUint64},
				{Name: "unknown", Kind: 17, Status: &tracepb.Status{Code: 9}},
				{Name: "ok", Kind: tracepb.Span_SPAN_KIND_INTERNAL, Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_OK}, StartTimeUnixNano: 1 << 63},
			},
		}, {
			Spans: []*tracepb.Span{{Name: "no scope", Kind: tracepb.Span_SPAN_KIND_INTERNAL}},
		}},
	}, {
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "no resource", Kind: tracepb.Span_SPAN_KIND_INTERNAL}}}},
	}}
}

// everyValue has every kind of value with its edges; the repeated key makes all of it a list of pairs.
func everyValue() []*commonpb.KeyValue {
	nested := kvlist(
		&commonpb.KeyValue{Key: "empty map", Value: kvlist()},
		&commonpb.KeyValue{Key: "empty list", Value: array()},
		&commonpb.KeyValue{Key: "@marked", Value: kvlist(textKV("@double", "NaN"))},
		&commonpb.KeyValue{Key: "twice", Value: kvlist(intKV("k", 1), intKV("k", 2))},
		&commonpb.KeyValue{Key: "list", Value: array(intValue(1), &commonpb.AnyValue{}, doubleValue(1), array(kvlist(textKV("", "no key"))))},
	)
	return []*commonpb.KeyValue{
		textKV("text", "ü\x00\u2028\U0001F600\ufffd\\\"/\x7f\x1f"),
		textKV("empty", ""),
		{Key: "true", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}},
		{Key: "false", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{}}},
		intKV("max", math.MaxInt64), intKV("min", math.MinInt64), intKV("zero", 0),
		doubleKV("whole", 3), doubleKV("zero double", 0), doubleKV("minus zero", math.Copysign(0, -1)),
		doubleKV("third", 1.0/3), doubleKV("large", 1e300), doubleKV("21", 1e21), doubleKV("20", 123456789012345680000), doubleKV("small", 1e-7),
		doubleKV("largest", math.MaxFloat64), doubleKV("smallest", math.SmallestNonzeroFloat64),
		doubleKV("nan", math.NaN()), doubleKV("inf", math.Inf(1)), doubleKV("-inf", math.Inf(-1)),
		{Key: "bytes", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte{0, 255, 62, 63}}}},
		{Key: "no bytes", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{}}},
		{Key: "nil"},
		{Key: "nested", Value: nested},
		textKV("text", "again"),
	}
}

func everyPoint() []*metricspb.ResourceMetrics {
	attributes := []*commonpb.KeyValue{textKV("phase", "warmup")}
	metadata := []*commonpb.KeyValue{textKV("m", "d")}
	f := func(v float64) *float64 { return &v }
	return []*metricspb.ResourceMetrics{{
		Resource:  &resourcepb.Resource{Attributes: []*commonpb.KeyValue{textKV("service.instance.id", "x-rank12"), intKV("slurm.job.id", 77)}},
		SchemaUrl: "https://r",
		ScopeMetrics: []*metricspb.ScopeMetrics{{
			Scope: &commonpb.InstrumentationScope{Name: "m"},
			Metrics: []*metricspb.Metric{
				{Name: "g", Unit: "1", Description: "a gauge", Metadata: metadata, Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: []*metricspb.NumberDataPoint{
					{
						StartTimeUnixNano: 1, TimeUnixNano: 2, Attributes: attributes, Flags: 1, Value: &metricspb.NumberDataPoint_AsInt{AsInt: -5},
						Exemplars: []*metricspb.Exemplar{
							{TimeUnixNano: 3, Value: &metricspb.Exemplar_AsDouble{AsDouble: 2}, TraceId: sequence(16), SpanId: sequence(8), FilteredAttributes: attributes},
							{Value: &metricspb.Exemplar_AsInt{AsInt: 2}}, {},
						},
					},
					{Value: &metricspb.NumberDataPoint_AsInt{}},
					{Value: &metricspb.NumberDataPoint_AsDouble{}},
					{Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: math.NaN()}},
					{TimeUnixNano: math.MaxUint64, Flags: 1},
				}}}},
				{Name: "s", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{
					AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, IsMonotonic: true,
					DataPoints: []*metricspb.NumberDataPoint{{Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: 2}}},
				}}},
				{Name: "s2", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{
					AggregationTemporality: 7, DataPoints: []*metricspb.NumberDataPoint{{Value: &metricspb.NumberDataPoint_AsInt{AsInt: math.MinInt64}}},
				}}},
				{Name: "h", Metadata: metadata, Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{
					AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA,
					DataPoints: []*metricspb.HistogramDataPoint{
						{
							StartTimeUnixNano: 1, TimeUnixNano: 2, Count: 6, Sum: f(12.5), Min: f(0), Max: f(math.Inf(1)),
							ExplicitBounds: []float64{0, 2.5, math.Inf(1)}, BucketCounts: []uint64{0, math.MaxUint64, 2, 0}, Attributes: attributes,
							Exemplars: []*metricspb.Exemplar{{Value: &metricspb.Exemplar_AsDouble{AsDouble: 0.1}}}, Flags: 1,
						},
						{Sum: f(0), BucketCounts: []uint64{0}},
						{},
					},
				}}},
				{Name: "x", Metadata: metadata, Data: &metricspb.Metric_ExponentialHistogram{ExponentialHistogram: &metricspb.ExponentialHistogram{
					AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA,
					DataPoints: []*metricspb.ExponentialHistogramDataPoint{
						{
							StartTimeUnixNano: 1, TimeUnixNano: 2, Count: 6, Sum: f(1), Min: f(-1), Max: f(2), Scale: -3, ZeroCount: 1, ZeroThreshold: 1e-9,
							Positive:   &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: -2, BucketCounts: []uint64{1, 2}},
							Negative:   &metricspb.ExponentialHistogramDataPoint_Buckets{BucketCounts: []uint64{3}},
							Attributes: attributes, Flags: 1, Exemplars: []*metricspb.Exemplar{{TimeUnixNano: 9, Value: &metricspb.Exemplar_AsInt{AsInt: 1}}},
						},
						{},
					},
				}}},
				{Name: "q", Metadata: metadata, Data: &metricspb.Metric_Summary{Summary: &metricspb.Summary{
					DataPoints: []*metricspb.SummaryDataPoint{
						{
							StartTimeUnixNano: 1, TimeUnixNano: 2, Count: 3, Sum: 4.5, Attributes: attributes, Flags: 1,
							QuantileValues: []*metricspb.SummaryDataPoint_ValueAtQuantile{{Quantile: 0.5, Value: 1}, {Quantile: 1, Value: math.NaN()}},
						},
						{},
					},
				}}},
			},
		}},
	}}
}

func everyRecord() []*logspb.ResourceLogs {
	return []*logspb.ResourceLogs{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
			textKV("slurm.job.id", "123456"), textKV("slurm.array.job_id", "123450"), textKV("slurm.array.task_id", "6"), textKV("dl.rank", "0"),
		}},
		ScopeLogs: []*logspb.ScopeLogs{{
			Scope: &commonpb.InstrumentationScope{Name: "l"},
			LogRecords: []*logspb.LogRecord{
				{
					TimeUnixNano: 1, ObservedTimeUnixNano: 2, SeverityNumber: 9, SeverityText: "INFO", EventName: "ev",
					Body: kvlist(textKV("msg", "hi"), intKV("n", 4)), Attributes: []*commonpb.KeyValue{intKV("pid", 42)},
					DroppedAttributesCount: 3, Flags: 1, TraceId: sequence(16), SpanId: sequence(8),
				},
				{Body: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{}}, SeverityNumber: 99},
				{Body: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{}}},
				{Body: array()},
				{Body: doubleValue(2)},
				{},
			},
		}},
	}}
}

// sequence is the bytes 1 to n.
func sequence(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return b
}

func textKV(key, v string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
}

func intKV(key string, v int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: intValue(v)}
}

func doubleKV(key string, v float64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: doubleValue(v)}
}

func intValue(v int64) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v}}
}

func doubleValue(v float64) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}}
}

func array(values ...*commonpb.AnyValue) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: values}}}
}

func kvlist(kvs ...*commonpb.KeyValue) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: kvs}}}
}
