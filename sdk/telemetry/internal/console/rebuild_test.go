// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// OTLP back to what Go's SDK hands to exporters.

func rebuiltSpans(t *testing.T, request *coltracepb.ExportTraceServiceRequest) []sdktrace.ReadOnlySpan {
	var stubs tracetest.SpanStubs
	for _, rs := range request.ResourceSpans {
		res := rebuiltResource(rs.Resource, rs.SchemaUrl)
		for _, ss := range rs.ScopeSpans {
			for _, span := range ss.Spans {
				stub := tracetest.SpanStub{
					Name:        span.Name,
					SpanContext: spanContext(t, span.TraceId, span.SpanId, span.TraceState),
					Parent:      spanContext(t, span.TraceId, span.ParentSpanId, ""),
					SpanKind:    trace.SpanKind(span.Kind),
					StartTime:   at(span.StartTimeUnixNano),
					EndTime:     at(span.EndTimeUnixNano),
					Attributes:  attributes(span.Attributes),
					Status:      status(span.Status),
					Resource:    res,
				}
				for _, event := range span.Events {
					stub.Events = append(stub.Events, sdktrace.Event{Name: event.Name, Time: at(event.TimeUnixNano), Attributes: attributes(event.Attributes)})
				}
				for _, link := range span.Links {
					stub.Links = append(stub.Links, sdktrace.Link{
						SpanContext: spanContext(t, link.TraceId, link.SpanId, link.TraceState), Attributes: attributes(link.Attributes),
					})
				}
				stubs = append(stubs, stub)
			}
		}
	}
	return stubs.Snapshots()
}

func status(s *tracepb.Status) sdktrace.Status {
	code := codes.Unset
	switch s.GetCode() {
	case tracepb.Status_STATUS_CODE_OK:
		code = codes.Ok
	case tracepb.Status_STATUS_CODE_ERROR:
		code = codes.Error
	}
	return sdktrace.Status{Code: code, Description: s.GetMessage()}
}

func spanContext(t *testing.T, traceID, spanID []byte, state string) trace.SpanContext {
	config := trace.SpanContextConfig{}
	copy(config.TraceID[:], traceID)
	copy(config.SpanID[:], spanID)
	var err error
	config.TraceState, err = trace.ParseTraceState(state)
	require.NoError(t, err)
	return trace.NewSpanContext(config)
}

func at(nanos uint64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(nanos))
}

func rebuiltResource(res *resourcepb.Resource, schemaURL string) *resource.Resource {
	return resource.NewWithAttributes(schemaURL, attributes(res.GetAttributes())...)
}

func attributes(kvs []*commonpb.KeyValue) []attribute.KeyValue {
	var out []attribute.KeyValue
	for _, kv := range kvs {
		out = append(out, attribute.KeyValue{Key: attribute.Key(kv.Key), Value: attributeValue(kv.Value)})
	}
	return out
}

func attributeValue(v *commonpb.AnyValue) attribute.Value {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_BoolValue:
		return attribute.BoolValue(v.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return attribute.Int64Value(v.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return attribute.Float64Value(v.DoubleValue)
	case *commonpb.AnyValue_StringValue:
		return attribute.StringValue(v.StringValue)
	case *commonpb.AnyValue_BytesValue:
		return attribute.ByteSliceValue(v.BytesValue)
	case *commonpb.AnyValue_KvlistValue:
		return attribute.MapValue(attributes(v.KvlistValue.Values)...)
	case *commonpb.AnyValue_ArrayValue:
		var items []attribute.Value
		for _, item := range v.ArrayValue.Values {
			items = append(items, attributeValue(item))
		}
		return list(items)
	}
	return attribute.Value{}
}

// list is a list of one kind where the items are of one.
func list(items []attribute.Value) attribute.Value {
	all := func(kind attribute.Type) bool {
		return len(items) > 0 && !slices.ContainsFunc(items, func(v attribute.Value) bool { return v.Type() != kind })
	}
	switch {
	case all(attribute.BOOL):
		return attribute.BoolSliceValue(mapped(items, attribute.Value.AsBool))
	case all(attribute.INT64):
		return attribute.Int64SliceValue(mapped(items, attribute.Value.AsInt64))
	case all(attribute.FLOAT64):
		return attribute.Float64SliceValue(mapped(items, attribute.Value.AsFloat64))
	case all(attribute.STRING):
		return attribute.StringSliceValue(mapped(items, attribute.Value.AsString))
	}
	return attribute.SliceValue(items...)
}

func mapped[In, Out any](in []In, fn func(In) Out) (out []Out) {
	for _, item := range in {
		out = append(out, fn(item))
	}
	return out
}

// emitLogs sends log records through the SDK.
func emitLogs(t *testing.T, request *collogspb.ExportLogsServiceRequest, to sdklog.Exporter) {
	for _, rl := range request.ResourceLogs {
		provider := sdklog.NewLoggerProvider(sdklog.WithResource(rebuiltResource(rl.Resource, rl.SchemaUrl)),
			sdklog.WithProcessor(sdklog.NewSimpleProcessor(to)))
		for _, sl := range rl.ScopeLogs {
			for _, in := range sl.LogRecords {
				var record log.Record
				record.SetTimestamp(at(in.TimeUnixNano))
				record.SetObservedTimestamp(at(in.ObservedTimeUnixNano))
				record.SetSeverity(log.Severity(in.SeverityNumber))
				record.SetSeverityText(in.SeverityText)
				record.SetEventName(in.EventName)
				record.SetBody(logValue(in.Body))
				record.AddAttributes(logMap(in.Attributes)...)
				sc := spanContext(t, in.TraceId, in.SpanId, "").WithTraceFlags(trace.TraceFlags(in.Flags))
				provider.Logger(sl.Scope.GetName()).Emit(trace.ContextWithSpanContext(context.Background(), sc), record)
			}
		}
	}
}

func logMap(kvs []*commonpb.KeyValue) (out []log.KeyValue) {
	for _, kv := range kvs {
		out = append(out, log.KeyValue{Key: kv.Key, Value: logValue(kv.Value)})
	}
	return out
}

func logValue(v *commonpb.AnyValue) log.Value {
	switch value := v.GetValue().(type) {
	case *commonpb.AnyValue_KvlistValue:
		return log.MapValue(logMap(value.KvlistValue.Values)...)
	case *commonpb.AnyValue_ArrayValue:
		return log.SliceValue(mapped(value.ArrayValue.Values, logValue)...)
	}
	return log.ValueFromAttribute(attributeValue(v))
}

func rebuiltMetrics(t *testing.T, rm *metricspb.ResourceMetrics) *metricdata.ResourceMetrics {
	out := &metricdata.ResourceMetrics{Resource: rebuiltResource(rm.Resource, rm.SchemaUrl)}
	for _, sm := range rm.ScopeMetrics {
		scope := metricdata.ScopeMetrics{Scope: instrumentation.Scope{
			Name: sm.Scope.GetName(), Version: sm.Scope.GetVersion(), SchemaURL: sm.SchemaUrl,
			Attributes: attribute.NewSet(attributes(sm.Scope.GetAttributes())...),
		}}
		for _, m := range sm.Metrics {
			scope.Metrics = append(scope.Metrics, metricdata.Metrics{Name: m.Name, Description: m.Description, Unit: m.Unit, Data: rebuiltData(t, m)})
		}
		out.ScopeMetrics = append(out.ScopeMetrics, scope)
	}
	return out
}

func rebuiltData(t *testing.T, m *metricspb.Metric) metricdata.Aggregation {
	switch data := m.Data.(type) {
	case *metricspb.Metric_Gauge:
		if points := data.Gauge.DataPoints; integers(points) {
			return metricdata.Gauge[int64]{DataPoints: mapped(points, point[int64])}
		}
		return metricdata.Gauge[float64]{DataPoints: mapped(data.Gauge.DataPoints, point[float64])}
	case *metricspb.Metric_Sum:
		temporality, monotonic := temporality(data.Sum.AggregationTemporality), data.Sum.IsMonotonic
		if points := data.Sum.DataPoints; integers(points) {
			return metricdata.Sum[int64]{Temporality: temporality, IsMonotonic: monotonic, DataPoints: mapped(points, point[int64])}
		}
		return metricdata.Sum[float64]{Temporality: temporality, IsMonotonic: monotonic, DataPoints: mapped(data.Sum.DataPoints, point[float64])}
	case *metricspb.Metric_Histogram:
		temporality := temporality(data.Histogram.AggregationTemporality)
		if wholeNumbers(m.Name) {
			return metricdata.Histogram[int64]{Temporality: temporality, DataPoints: mapped(data.Histogram.DataPoints, histogram[int64])}
		}
		return metricdata.Histogram[float64]{Temporality: temporality, DataPoints: mapped(data.Histogram.DataPoints, histogram[float64])}
	}
	require.Fail(t, "a kind of metric that no capture has", "%v", m)
	return nil
}

// wholeNumbers names the histograms that recorded integers, which OTLP holds as doubles.
func wholeNumbers(name string) bool {
	return name == "gen_ai.client.token.usage" ||
		strings.HasPrefix(name, "http.") && (strings.HasSuffix(name, ".duration") || strings.HasSuffix(name, ".size"))
}

// integers reports whether all points are; Python may mix them with floats in one metric, Go may not.
func integers(points []*metricspb.NumberDataPoint) bool {
	return !slices.ContainsFunc(points, func(p *metricspb.NumberDataPoint) bool {
		_, ok := p.Value.(*metricspb.NumberDataPoint_AsInt)
		return !ok
	})
}

func temporality(t metricspb.AggregationTemporality) metricdata.Temporality {
	if t == metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA {
		return metricdata.DeltaTemporality
	}
	return metricdata.CumulativeTemporality
}

func point[N int64 | float64](p *metricspb.NumberDataPoint) metricdata.DataPoint[N] {
	return metricdata.DataPoint[N]{
		Attributes: attribute.NewSet(attributes(p.Attributes)...),
		StartTime:  at(p.StartTimeUnixNano), Time: at(p.TimeUnixNano), Value: number[N](p), Exemplars: exemplars[N](p.Exemplars),
	}
}

func exemplars[N int64 | float64](in []*metricspb.Exemplar) []metricdata.Exemplar[N] {
	return mapped(in, func(x *metricspb.Exemplar) metricdata.Exemplar[N] {
		return metricdata.Exemplar[N]{
			FilteredAttributes: attributes(x.FilteredAttributes), Time: at(x.TimeUnixNano), Value: number[N](x), SpanID: x.SpanId, TraceID: x.TraceId,
		}
	})
}

// number is the one of the two that is set: the other is zero.
func number[N int64 | float64](v interface {
	GetAsInt() int64
	GetAsDouble() float64
}) N {
	return N(v.GetAsInt()) + N(v.GetAsDouble())
}

func histogram[N int64 | float64](p *metricspb.HistogramDataPoint) metricdata.HistogramDataPoint[N] {
	return metricdata.HistogramDataPoint[N]{
		Attributes: attribute.NewSet(attributes(p.Attributes)...),
		StartTime:  at(p.StartTimeUnixNano), Time: at(p.TimeUnixNano),
		Count: p.Count, Sum: N(p.GetSum()), Bounds: p.ExplicitBounds, BucketCounts: p.BucketCounts,
		Min: metricdata.NewExtrema(N(p.GetMin())), Max: metricdata.NewExtrema(N(p.GetMax())),
		Exemplars: exemplars[N](p.Exemplars),
	}
}
