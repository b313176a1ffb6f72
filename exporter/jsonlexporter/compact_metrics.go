// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var temporalities = []string{"", "delta", "cumulative"}

// addMetrics encodes one line a data point: the metric's head, the point, the metric's metadata.
func (l *compact) addMetrics(c *chunk, rm pmetric.ResourceMetrics) {
	var resource *resource
	for _, sm := range rm.ScopeMetrics().All() {
		if countPoints(sm.Metrics()) == 0 {
			continue
		}
		if resource == nil {
			resource = l.resource(&c.encoder, rm.Resource(), rm.SchemaUrl())
		}
		scope := l.scope(&c.encoder, resource, sm.Scope(), sm.SchemaUrl())
		for i := range sm.Metrics().Len() {
			c.addMetric(sm.Metrics().At(i), scope)
		}
		c.endPart(scope)
	}
}

func countPoints(metrics pmetric.MetricSlice) (n int) {
	for i := range metrics.Len() {
		switch m := metrics.At(i); m.Type() {
		case pmetric.MetricTypeGauge:
			n += m.Gauge().DataPoints().Len()
		case pmetric.MetricTypeSum:
			n += m.Sum().DataPoints().Len()
		case pmetric.MetricTypeHistogram:
			n += m.Histogram().DataPoints().Len()
		case pmetric.MetricTypeExponentialHistogram:
			n += m.ExponentialHistogram().DataPoints().Len()
		case pmetric.MetricTypeSummary:
			n += m.Summary().DataPoints().Len()
		}
	}
	return n
}

func (c *chunk) addMetric(m pmetric.Metric, scope *scope) {
	var kind string
	var temporality pmetric.AggregationTemporality
	var monotonic bool
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		kind = "gauge"
	case pmetric.MetricTypeSum:
		kind, temporality, monotonic = "sum", m.Sum().AggregationTemporality(), m.Sum().IsMonotonic()
	case pmetric.MetricTypeHistogram:
		kind, temporality = "histogram", m.Histogram().AggregationTemporality()
	case pmetric.MetricTypeExponentialHistogram:
		kind, temporality = "exponential_histogram", m.ExponentialHistogram().AggregationTemporality()
	case pmetric.MetricTypeSummary:
		kind = "summary"
	default:
		return // A metric without data has no points, so no lines.
	}
	head := append(c.scratch[:0], `{"type":"metric"`...)
	head = c.text(head, `,"name":`, m.Name())
	head = append(append(append(head, `,"kind":"`...), kind...), '"')
	head = c.text(head, `,"unit":`, m.Unit())
	head = c.text(head, `,"description":`, m.Description())
	head = enum(head, `,"temporality":`, int32(temporality), temporalities)
	if monotonic {
		head = append(head, `,"monotonic":true`...)
	}
	headLen := len(head)
	if m.Metadata().Len() > 0 {
		head = c.appendMap(append(head, `,"metadata":`...), m.Metadata(), 1)
	}
	c.scratch = head
	head, tail := head[:headLen], head[headLen:]

	switch m.Type() {
	case pmetric.MetricTypeGauge:
		c.addNumbers(m.Gauge().DataPoints(), head, tail, scope)
	case pmetric.MetricTypeSum:
		c.addNumbers(m.Sum().DataPoints(), head, tail, scope)
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			c.addPoint(head, tail, scope, func(b []byte) []byte { return c.appendHistogram(b, p) })
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			c.addPoint(head, tail, scope, func(b []byte) []byte { return c.appendExponential(b, p) })
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			c.addPoint(head, tail, scope, func(b []byte) []byte { return c.appendSummary(b, p) })
		}
	}
}

func (c *chunk) addNumbers(points pmetric.NumberDataPointSlice, head, tail []byte, scope *scope) {
	for _, p := range points.All() {
		c.addPoint(head, tail, scope, func(b []byte) []byte { return c.appendNumber(b, p) })
	}
}

func (c *chunk) addPoint(head, tail []byte, scope *scope, point func([]byte) []byte) {
	b := point(append(c.buf, head...))
	c.buf = append(append(b, tail...), scope.suffix...)
	c.endLine(scope, 1)
}

func (e *encoder) appendNumber(b []byte, p pmetric.NumberDataPoint) []byte {
	b = nanos(b, `,"start_ns":`, p.StartTimestamp())
	b = nanos(b, `,"time_ns":`, p.Timestamp())
	b = append(b, `,"value":`...)
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		b = strconv.AppendInt(b, p.IntValue(), 10)
	case pmetric.NumberDataPointValueTypeDouble:
		b = appendDouble(b, p.DoubleValue())
	default:
		b = append(b, "null"...)
	}
	b = e.attributes(b, p.Attributes())
	b = e.appendExemplars(b, p.Exemplars())
	return unsigned(b, `,"flags":`, uint64(p.Flags()))
}

func (e *encoder) appendHistogram(b []byte, p pmetric.HistogramDataPoint) []byte {
	b = appendTotals(b, p)
	if p.ExplicitBounds().Len() > 0 {
		b = appendDoubles(append(b, `,"bounds":`...), p.ExplicitBounds())
	}
	if p.BucketCounts().Len() > 0 {
		b = appendCounts(append(b, `,"buckets":`...), p.BucketCounts())
	}
	b = e.attributes(b, p.Attributes())
	b = e.appendExemplars(b, p.Exemplars())
	return unsigned(b, `,"flags":`, uint64(p.Flags()))
}

func (e *encoder) appendExponential(b []byte, p pmetric.ExponentialHistogramDataPoint) []byte {
	b = appendTotals(b, p)
	b = signed(b, `,"scale":`, int64(p.Scale()))
	b = unsigned(b, `,"zero_count":`, p.ZeroCount())
	if math.Float64bits(p.ZeroThreshold()) != 0 {
		b = appendDouble(append(b, `,"zero_threshold":`...), p.ZeroThreshold())
	}
	b = appendBuckets(b, `,"positive":`, p.Positive())
	b = appendBuckets(b, `,"negative":`, p.Negative())
	b = e.attributes(b, p.Attributes())
	b = e.appendExemplars(b, p.Exemplars())
	return unsigned(b, `,"flags":`, uint64(p.Flags()))
}

func (e *encoder) appendSummary(b []byte, p pmetric.SummaryDataPoint) []byte {
	b = nanos(b, `,"start_ns":`, p.StartTimestamp())
	b = nanos(b, `,"time_ns":`, p.Timestamp())
	b = strconv.AppendUint(append(b, `,"count":`...), p.Count(), 10)
	b = appendDouble(append(b, `,"sum":`...), p.Sum())
	if p.QuantileValues().Len() > 0 {
		b = append(b, `,"quantiles":[`...)
		for i, q := range p.QuantileValues().All() {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendDouble(append(b, '['), q.Quantile()), ',')
			b = append(appendDouble(b, q.Value()), ']')
		}
		b = append(b, ']')
	}
	b = e.attributes(b, p.Attributes())
	return unsigned(b, `,"flags":`, uint64(p.Flags()))
}

// totals is what both kinds of histogram points have in common.
type totals interface {
	StartTimestamp() pcommon.Timestamp
	Timestamp() pcommon.Timestamp
	Count() uint64
	HasSum() bool
	Sum() float64
	HasMin() bool
	Min() float64
	HasMax() bool
	Max() float64
}

func appendTotals[P totals](b []byte, p P) []byte {
	b = nanos(b, `,"start_ns":`, p.StartTimestamp())
	b = nanos(b, `,"time_ns":`, p.Timestamp())
	b = strconv.AppendUint(append(b, `,"count":`...), p.Count(), 10)
	if p.HasSum() {
		b = appendDouble(append(b, `,"sum":`...), p.Sum())
	}
	if p.HasMin() {
		b = appendDouble(append(b, `,"min":`...), p.Min())
	}
	if p.HasMax() {
		b = appendDouble(append(b, `,"max":`...), p.Max())
	}
	return b
}

func appendDoubles(b []byte, list pcommon.Float64Slice) []byte {
	b = append(b, '[')
	for i := range list.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendDouble(b, list.At(i))
	}
	return append(b, ']')
}

func appendCounts(b []byte, list pcommon.UInt64Slice) []byte {
	b = append(b, '[')
	for i := range list.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, list.At(i), 10)
	}
	return append(b, ']')
}

func appendBuckets(b []byte, key string, buckets pmetric.ExponentialHistogramDataPointBuckets) []byte {
	if buckets.Offset() == 0 && buckets.BucketCounts().Len() == 0 {
		return b
	}
	b = append(b, key...)
	start := len(b)
	b = signed(b, `,"offset":`, int64(buckets.Offset()))
	if buckets.BucketCounts().Len() > 0 {
		b = appendCounts(append(b, `,"buckets":`...), buckets.BucketCounts())
	}
	return closeObject(b, start)
}

func (e *encoder) appendExemplars(b []byte, exemplars pmetric.ExemplarSlice) []byte {
	if exemplars.Len() == 0 {
		return b
	}
	b = append(b, `,"exemplars":[`...)
	for i, x := range exemplars.All() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, `{"time_ns":`...), uint64(x.Timestamp()), 10)
		b = append(b, `,"value":`...)
		switch x.ValueType() {
		case pmetric.ExemplarValueTypeInt:
			b = strconv.AppendInt(b, x.IntValue(), 10)
		case pmetric.ExemplarValueTypeDouble:
			b = appendDouble(b, x.DoubleValue())
		default:
			b = append(b, "null"...)
		}
		b = traceID(b, `,"trace_id":`, x.TraceID())
		b = spanID(b, `,"span_id":`, x.SpanID())
		if x.FilteredAttributes().Len() > 0 {
			b = e.appendMap(append(b, `,"attributes":`...), x.FilteredAttributes(), 1)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
