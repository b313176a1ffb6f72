// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package console // import "github.com/lenscol/lenscol/sdk/telemetry/internal/console"

import (
	"math/big"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func appendMetrics(b []byte, rm *metricdata.ResourceMetrics) []byte {
	b = appendResource(append(b, `{"resource_metrics": [{"resource": `...), rm.Resource)
	b = appendList(append(b, `, "scope_metrics": `...), rm.ScopeMetrics, appendScopeMetrics)
	b = appendString(append(b, `, "schema_url": `...), rm.Resource.SchemaURL())
	return append(b, "}]}\n"...)
}

func appendScopeMetrics(b []byte, sm metricdata.ScopeMetrics) []byte {
	b = appendString(append(b, `{"scope": {"name": `...), sm.Scope.Name)
	b = appendString(append(b, `, "version": `...), sm.Scope.Version)
	b = appendString(append(b, `, "schema_url": `...), sm.Scope.SchemaURL)
	b = appendAttributesOrNull(append(b, `, "attributes": `...), sm.Scope.Attributes.ToSlice())
	b = appendList(append(b, `}, "metrics": `...), sm.Metrics, appendMetric)
	b = appendString(append(b, `, "schema_url": `...), sm.Scope.SchemaURL)
	return append(b, '}')
}

func appendMetric(b []byte, m metricdata.Metrics) []byte {
	b = appendString(append(b, `{"name": `...), m.Name)
	b = appendString(append(b, `, "description": `...), m.Description)
	b = appendString(append(b, `, "unit": `...), m.Unit)
	return append(appendData(append(b, `, "data": `...), m.Data), '}')
}

// appendData writes the points of a metric. Python's SDK has no summaries; theirs follow its form.
func appendData(b []byte, data metricdata.Aggregation) []byte {
	switch data := data.(type) {
	case metricdata.Gauge[int64]:
		b = appendPoints(b, data.DataPoints, appendGaugePoint)
	case metricdata.Gauge[float64]:
		b = appendPoints(b, data.DataPoints, appendGaugePoint)
	case metricdata.Sum[int64]:
		b = appendPoints(b, data.DataPoints, appendPoint)
		b = appendSum(b, data.Temporality, data.IsMonotonic)
	case metricdata.Sum[float64]:
		b = appendPoints(b, data.DataPoints, appendPoint)
		b = appendSum(b, data.Temporality, data.IsMonotonic)
	case metricdata.Histogram[int64]:
		b = appendTemporality(appendPoints(b, data.DataPoints, appendHistogram), data.Temporality)
	case metricdata.Histogram[float64]:
		b = appendTemporality(appendPoints(b, data.DataPoints, appendHistogram), data.Temporality)
	case metricdata.ExponentialHistogram[int64]:
		b = appendTemporality(appendPoints(b, data.DataPoints, appendExponential), data.Temporality)
	case metricdata.ExponentialHistogram[float64]:
		b = appendTemporality(appendPoints(b, data.DataPoints, appendExponential), data.Temporality)
	case metricdata.Summary:
		b = appendPoints(b, data.DataPoints, appendSummary)
	default:
		return append(b, "null"...)
	}
	return append(b, '}')
}

func appendPoints[P any](b []byte, points []P, point func([]byte, P) []byte) []byte {
	return appendList(append(b, `{"data_points": `...), points, point)
}

func appendSum(b []byte, t metricdata.Temporality, monotonic bool) []byte {
	return strconv.AppendBool(append(appendTemporality(b, t), `, "is_monotonic": `...), monotonic)
}

// appendTemporality writes OTLP's number.
func appendTemporality(b []byte, t metricdata.Temporality) []byte {
	var number byte = '0'
	switch t {
	case metricdata.DeltaTemporality:
		number = '1'
	case metricdata.CumulativeTemporality:
		number = '2'
	}
	return append(append(b, `, "aggregation_temporality": `...), number)
}

// appendGaugePoint leaves the start out: Python's gauges have none.
func appendGaugePoint[N int64 | float64](b []byte, p metricdata.DataPoint[N]) []byte {
	p.StartTime = time.Time{}
	return appendPoint(b, p)
}

func appendPoint[N int64 | float64](b []byte, p metricdata.DataPoint[N]) []byte {
	b = appendPointHead(b, p.Attributes, p.StartTime, p.Time)
	b = appendNumber(append(b, `, "value": `...), p.Value)
	return appendExemplars(b, p.Exemplars, p.Attributes)
}

func appendHistogram[N int64 | float64](b []byte, p metricdata.HistogramDataPoint[N]) []byte {
	b = appendPointHead(b, p.Attributes, p.StartTime, p.Time)
	b = strconv.AppendUint(append(b, `, "count": `...), p.Count, 10)
	b = appendNumber(append(b, `, "sum": `...), p.Sum)
	b = appendList(append(b, `, "bucket_counts": `...), p.BucketCounts, appendCount)
	b = appendList(append(b, `, "explicit_bounds": `...), p.Bounds, appendFloat)
	b = appendExtrema(append(b, `, "min": `...), p.Min)
	b = appendExtrema(append(b, `, "max": `...), p.Max)
	return appendExemplars(b, p.Exemplars, p.Attributes)
}

// appendExponential writes flags, which Python has there, as the 0 that they always are.
func appendExponential[N int64 | float64](b []byte, p metricdata.ExponentialHistogramDataPoint[N]) []byte {
	b = appendPointHead(b, p.Attributes, p.StartTime, p.Time)
	b = strconv.AppendUint(append(b, `, "count": `...), p.Count, 10)
	b = appendNumber(append(b, `, "sum": `...), p.Sum)
	b = strconv.AppendInt(append(b, `, "scale": `...), int64(p.Scale), 10)
	b = strconv.AppendUint(append(b, `, "zero_count": `...), p.ZeroCount, 10)
	b = appendBuckets(append(b, `, "positive": `...), p.PositiveBucket)
	b = appendBuckets(append(b, `, "negative": `...), p.NegativeBucket)
	b = appendExtrema(append(b, `, "flags": 0, "min": `...), p.Min)
	b = appendExtrema(append(b, `, "max": `...), p.Max)
	return appendExemplars(b, p.Exemplars, p.Attributes)
}

func appendSummary(b []byte, p metricdata.SummaryDataPoint) []byte {
	b = appendPointHead(b, p.Attributes, p.StartTime, p.Time)
	b = strconv.AppendUint(append(b, `, "count": `...), p.Count, 10)
	b = appendFloat(append(b, `, "sum": `...), p.Sum)
	b = appendList(append(b, `, "quantile_values": `...), p.QuantileValues, func(b []byte, q metricdata.QuantileValue) []byte {
		b = appendFloat(append(b, `{"quantile": `...), q.Quantile)
		return append(appendFloat(append(b, `, "value": `...), q.Value), '}')
	})
	return append(b, '}')
}

func appendPointHead(b []byte, attrs attribute.Set, start, at time.Time) []byte {
	b = appendAttributes(append(b, `{"attributes": `...), attrs.ToSlice())
	b = append(b, `, "start_time_unix_nano": `...)
	if start.IsZero() {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, start.UnixNano(), 10)
	}
	b = append(b, `, "time_unix_nano": `...)
	if at.IsZero() {
		return append(b, '0')
	}
	return strconv.AppendInt(b, at.UnixNano(), 10)
}

func appendNumber[N int64 | float64](b []byte, n N) []byte {
	switch n := any(n).(type) {
	case int64:
		return strconv.AppendInt(b, n, 10)
	case float64:
		return appendFloat(b, n)
	}
	return b
}

func appendExtrema[N int64 | float64](b []byte, e metricdata.Extrema[N]) []byte {
	if n, ok := e.Value(); ok {
		return appendNumber(b, n)
	}
	return append(b, "null"...)
}

func appendCount(b []byte, n uint64) []byte { return strconv.AppendUint(b, n, 10) }

func appendBuckets(b []byte, buckets metricdata.ExponentialBucket) []byte {
	b = strconv.AppendInt(append(b, `{"offset": `...), int64(buckets.Offset), 10)
	return append(appendList(append(b, `, "bucket_counts": `...), buckets.Counts, appendCount), '}')
}

// appendExemplars writes the last member of a point. Ids are integers there, of 128 and 64 bits. An exemplar's attributes are
// those of its measurement that the point has not, and None where the measurement had none at all.
func appendExemplars[N int64 | float64](b []byte, exemplars []metricdata.Exemplar[N], point attribute.Set) []byte {
	b = appendList(append(b, `, "exemplars": `...), exemplars, func(b []byte, x metricdata.Exemplar[N]) []byte {
		b = append(b, `{"filtered_attributes": `...)
		if point.Len() == 0 {
			b = appendAttributesOrNull(b, x.FilteredAttributes)
		} else {
			b = appendAttributes(b, x.FilteredAttributes)
		}
		b = appendNumber(append(b, `, "value": `...), x.Value)
		b = strconv.AppendInt(append(b, `, "time_unix_nano": `...), x.Time.UnixNano(), 10)
		b = appendInteger(append(b, `, "span_id": `...), x.SpanID)
		return append(appendInteger(append(b, `, "trace_id": `...), x.TraceID), '}')
	})
	return append(b, '}')
}

// appendInteger writes an id as an integer, or null where there is none.
func appendInteger(b, id []byte) []byte {
	n := new(big.Int).SetBytes(id)
	if n.Sign() == 0 {
		return append(b, "null"...)
	}
	return n.Append(b, 10)
}
