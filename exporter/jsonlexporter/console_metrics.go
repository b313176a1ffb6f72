// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"math/big"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// addMetrics encodes one line a resource, as a collection of the SDK is one.
func (console) addMetrics(c *chunk, rm pmetric.ResourceMetrics) {
	points := 0
	for _, sm := range rm.ScopeMetrics().All() {
		points += countPoints(sm.Metrics())
	}
	if points == 0 {
		return
	}
	b := c.appendPyResource(append(c.buf, `{"resource_metrics": [{"resource": `...), rm.Resource(), rm.SchemaUrl())
	b = append(b, `, "scope_metrics": [`...)
	for i, sm := range rm.ScopeMetrics().All() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = c.appendPyScopeMetrics(b, sm)
	}
	b = c.appendPyString(append(b, `], "schema_url": `...), rm.SchemaUrl())
	c.buf = append(b, "}]}\n"...)
	c.endLine(nil, points)
	c.endPart(nil)
}

func (e *encoder) appendPyScopeMetrics(b []byte, sm pmetric.ScopeMetrics) []byte {
	b = e.appendPyString(append(b, `{"scope": {"name": `...), sm.Scope().Name())
	b = e.appendPyString(append(b, `, "version": `...), sm.Scope().Version())
	b = e.appendPyString(append(b, `, "schema_url": `...), sm.SchemaUrl())
	b = e.appendPyAttributesOrNull(append(b, `, "attributes": `...), sm.Scope().Attributes())
	b = append(b, `}, "metrics": [`...)
	for i, m := range sm.Metrics().All() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = e.appendPyString(append(b, `{"name": `...), m.Name())
		b = e.appendPyString(append(b, `, "description": `...), m.Description())
		b = e.appendPyString(append(b, `, "unit": `...), m.Unit())
		b = append(e.appendPyData(append(b, `, "data": `...), m), '}')
	}
	b = e.appendPyString(append(b, `], "schema_url": `...), sm.SchemaUrl())
	return append(b, '}')
}

// appendPyData writes the points of a metric. Python's SDK has no summaries; theirs follow its form.
func (e *encoder) appendPyData(b []byte, m pmetric.Metric) []byte {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		b = appendPyPoints(b, m.Gauge().DataPoints().All(), e.appendPyNumber)
	case pmetric.MetricTypeSum:
		b = appendPyPoints(b, m.Sum().DataPoints().All(), e.appendPyNumber)
		b = appendPyTemporality(b, m.Sum().AggregationTemporality())
		b = strconv.AppendBool(append(b, `, "is_monotonic": `...), m.Sum().IsMonotonic())
	case pmetric.MetricTypeHistogram:
		b = appendPyPoints(b, m.Histogram().DataPoints().All(), e.appendPyHistogram)
		b = appendPyTemporality(b, m.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		b = appendPyPoints(b, m.ExponentialHistogram().DataPoints().All(), e.appendPyExponential)
		b = appendPyTemporality(b, m.ExponentialHistogram().AggregationTemporality())
	case pmetric.MetricTypeSummary:
		b = appendPyPoints(b, m.Summary().DataPoints().All(), e.appendPySummary)
	default:
		return append(b, "null"...)
	}
	return append(b, '}')
}

func appendPyPoints[P any](b []byte, points func(func(int, P) bool), point func([]byte, P) []byte) []byte {
	b = append(b, `{"data_points": [`...)
	for i, p := range points {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(point(b, p), '}')
	}
	return append(b, ']')
}

func appendPyTemporality(b []byte, t pmetric.AggregationTemporality) []byte {
	return strconv.AppendInt(append(b, `, "aggregation_temporality": `...), int64(t), 10)
}

// pointHead is what every kind of point begins with.
type pointHead interface {
	Attributes() pcommon.Map
	StartTimestamp() pcommon.Timestamp
	Timestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}

func (e *encoder) appendPyPointHead(b []byte, p pointHead) []byte {
	b = e.appendPyAttributes(append(b, `{"attributes": `...), p.Attributes())
	b = append(b, `, "start_time_unix_nano": `...)
	if p.StartTimestamp() == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, uint64(p.StartTimestamp()), 10)
	}
	return strconv.AppendUint(append(b, `, "time_unix_nano": `...), uint64(p.Timestamp()), 10)
}

func (e *encoder) appendPyNumber(b []byte, p pmetric.NumberDataPoint) []byte {
	b = append(e.appendPyPointHead(b, p), `, "value": `...)
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		b = strconv.AppendInt(b, p.IntValue(), 10)
	case pmetric.NumberDataPointValueTypeDouble:
		b = appendPyFloat(b, p.DoubleValue())
	default:
		b = append(b, "null"...)
	}
	return e.appendPyExemplars(b, p.Exemplars(), p.Attributes())
}

func (e *encoder) appendPyHistogram(b []byte, p pmetric.HistogramDataPoint) []byte {
	b = e.appendPyPointHead(b, p)
	b = strconv.AppendUint(append(b, `, "count": `...), p.Count(), 10)
	b = appendPyOptional(b, `, "sum": `, p.HasSum(), p.Sum())
	b = appendPyCounts(append(b, `, "bucket_counts": `...), p.BucketCounts())
	b = append(b, `, "explicit_bounds": [`...)
	for i, bound := range p.ExplicitBounds().All() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendPyFloat(b, bound)
	}
	b = appendPyOptional(append(b, ']'), `, "min": `, p.HasMin(), p.Min())
	b = appendPyOptional(b, `, "max": `, p.HasMax(), p.Max())
	return e.appendPyExemplars(b, p.Exemplars(), p.Attributes())
}

func (e *encoder) appendPyExponential(b []byte, p pmetric.ExponentialHistogramDataPoint) []byte {
	b = e.appendPyPointHead(b, p)
	b = strconv.AppendUint(append(b, `, "count": `...), p.Count(), 10)
	b = appendPyOptional(b, `, "sum": `, p.HasSum(), p.Sum())
	b = strconv.AppendInt(append(b, `, "scale": `...), int64(p.Scale()), 10)
	b = strconv.AppendUint(append(b, `, "zero_count": `...), p.ZeroCount(), 10)
	b = appendPyBuckets(append(b, `, "positive": `...), p.Positive())
	b = appendPyBuckets(append(b, `, "negative": `...), p.Negative())
	b = strconv.AppendUint(append(b, `, "flags": `...), uint64(p.Flags()), 10)
	b = appendPyOptional(b, `, "min": `, p.HasMin(), p.Min())
	b = appendPyOptional(b, `, "max": `, p.HasMax(), p.Max())
	return e.appendPyExemplars(b, p.Exemplars(), p.Attributes())
}

func (e *encoder) appendPySummary(b []byte, p pmetric.SummaryDataPoint) []byte {
	b = e.appendPyPointHead(b, p)
	b = strconv.AppendUint(append(b, `, "count": `...), p.Count(), 10)
	b = appendPyFloat(append(b, `, "sum": `...), p.Sum())
	b = append(b, `, "quantile_values": [`...)
	for i, q := range p.QuantileValues().All() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendPyFloat(append(b, `{"quantile": `...), q.Quantile())
		b = append(appendPyFloat(append(b, `, "value": `...), q.Value()), '}')
	}
	return append(b, ']')
}

func appendPyOptional(b []byte, key string, has bool, f float64) []byte {
	b = append(b, key...)
	if !has {
		return append(b, "null"...)
	}
	return appendPyFloat(b, f)
}

func appendPyCounts(b []byte, counts pcommon.UInt64Slice) []byte {
	b = append(b, '[')
	for i, n := range counts.All() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendUint(b, n, 10)
	}
	return append(b, ']')
}

func appendPyBuckets(b []byte, buckets pmetric.ExponentialHistogramDataPointBuckets) []byte {
	b = strconv.AppendInt(append(b, `{"offset": `...), int64(buckets.Offset()), 10)
	return append(appendPyCounts(append(b, `, "bucket_counts": `...), buckets.BucketCounts()), '}')
}

// appendPyExemplars writes the last member of a point. Ids are integers there, of 128 and 64 bits. An exemplar's attributes are
// those of its measurement that the point has not, and None where the measurement had none at all.
func (e *encoder) appendPyExemplars(b []byte, exemplars pmetric.ExemplarSlice, pointAttributes pcommon.Map) []byte {
	b = append(b, `, "exemplars": [`...)
	for i, x := range exemplars.All() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, `{"filtered_attributes": `...)
		if pointAttributes.Len() == 0 {
			b = e.appendPyAttributesOrNull(b, x.FilteredAttributes())
		} else {
			b = e.appendPyAttributes(b, x.FilteredAttributes())
		}
		b = append(b, `, "value": `...)
		switch x.ValueType() {
		case pmetric.ExemplarValueTypeInt:
			b = strconv.AppendInt(b, x.IntValue(), 10)
		case pmetric.ExemplarValueTypeDouble:
			b = appendPyFloat(b, x.DoubleValue())
		default:
			b = append(b, "null"...)
		}
		b = strconv.AppendUint(append(b, `, "time_unix_nano": `...), uint64(x.Timestamp()), 10)
		spanID, traceID := x.SpanID(), x.TraceID()
		b = appendPyInteger(append(b, `, "span_id": `...), spanID[:])
		b = append(appendPyInteger(append(b, `, "trace_id": `...), traceID[:]), '}')
	}
	return append(b, ']')
}

// appendPyInteger writes an id as an integer, or null where there is none.
func appendPyInteger(b, id []byte) []byte {
	n := new(big.Int).SetBytes(id)
	if n.Sign() == 0 {
		return append(b, "null"...)
	}
	return n.Append(b, 10)
}
