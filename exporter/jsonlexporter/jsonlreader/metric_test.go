// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/xpdata"
)

func TestMetric(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       func(pmetric.Metric)
	}{
		{"gauge, integer", `{"type":"metric","name":"g","kind":"gauge","start_ns":0,"time_ns":0,"value":0}`, func(m pmetric.Metric) {
			m.SetName("g")
			m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(0)
		}},
		{"gauge, double", `{"type":"metric","kind":"gauge","value":0.0}`, func(m pmetric.Metric) {
			m.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(0)
		}},
		{"gauge, not a number", `{"type":"metric","kind":"gauge","value":{"@double":"NaN"}}`, func(m pmetric.Metric) {
			m.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(quietNaN)
		}},
		{"gauge without a value", `{"type":"metric","kind":"gauge","time_ns":1,"value":null,"flags":1}`, func(m pmetric.Metric) {
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetTimestamp(1)
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}},
		{"sum, every key", `{"type":"metric","name":"tokens","kind":"sum","unit":"{token}","description":"d","temporality":"delta","monotonic":true,` +
			`"start_ns":1,"time_ns":18446744073709551615,"value":-9223372036854775808,"attributes":{"k":"v"},` +
			`"exemplars":[{"time_ns":2,"value":1.5,"trace_id":"` + traceHex + `","span_id":"` + spanHex + `","attributes":{"e":1}},{"time_ns":0,"value":7},{"time_ns":0,"value":null}],` +
			`"flags":3,"metadata":{"@pairs":[["a",1],["a",2]]},"run":"r","rank":1,"service":"s"}`,
			func(m pmetric.Metric) {
				m.SetName("tokens")
				m.SetUnit("{token}")
				m.SetDescription("d")
				s := m.SetEmptySum()
				s.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
				s.SetIsMonotonic(true)
				p := s.DataPoints().AppendEmpty()
				p.SetStartTimestamp(1)
				p.SetTimestamp(math.MaxUint64)
				p.SetIntValue(math.MinInt64)
				p.Attributes().PutStr("k", "v")
				e := p.Exemplars().AppendEmpty()
				e.SetTimestamp(2)
				e.SetDoubleValue(1.5)
				e.SetTraceID(traceID)
				e.SetSpanID(spanID)
				e.FilteredAttributes().PutInt("e", 1)
				p.Exemplars().AppendEmpty().SetIntValue(7)
				p.Exemplars().AppendEmpty()
				p.SetFlags(3)
				putTwice(m.Metadata(), "a")
			}},
		{"a temporality that OTLP does not know", `{"type":"metric","kind":"sum","temporality":5,"value":1}`, func(m pmetric.Metric) {
			m.SetEmptySum().SetAggregationTemporality(5)
			m.Sum().DataPoints().AppendEmpty().SetIntValue(1)
		}},
		{"histogram, every key", `{"type":"metric","kind":"histogram","temporality":"cumulative","start_ns":1,"time_ns":2,` +
			`"count":18446744073709551615,"sum":1.5,"min":-0.0,"max":{"@double":"Infinity"},"bounds":[0.5,1.0,{"@double":"NaN"}],"buckets":[0,1,18446744073709551615,2],` +
			`"exemplars":[{"time_ns":1,"value":2.0}],"flags":1}`,
			func(m pmetric.Metric) {
				h := m.SetEmptyHistogram()
				h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				p := h.DataPoints().AppendEmpty()
				p.SetStartTimestamp(1)
				p.SetTimestamp(2)
				p.SetCount(math.MaxUint64)
				p.SetSum(1.5)
				p.SetMin(math.Copysign(0, -1))
				p.SetMax(math.Inf(1))
				p.ExplicitBounds().FromRaw([]float64{0.5, 1, quietNaN})
				p.BucketCounts().FromRaw([]uint64{0, 1, math.MaxUint64, 2})
				e := p.Exemplars().AppendEmpty()
				e.SetTimestamp(1)
				e.SetDoubleValue(2)
				p.SetFlags(1)
			}},
		{"histogram of nothing", `{"type":"metric","kind":"histogram","start_ns":0,"time_ns":0,"count":0}`, func(m pmetric.Metric) {
			m.SetEmptyHistogram().DataPoints().AppendEmpty()
		}},
		{"histogram with zeros that are there", `{"type":"metric","kind":"histogram","count":0,"sum":0.0,"min":0.0,"max":0.0}`, func(m pmetric.Metric) {
			p := m.SetEmptyHistogram().DataPoints().AppendEmpty()
			p.SetSum(0)
			p.SetMin(0)
			p.SetMax(0)
		}},
		{"doubles that a tool wrote as integers", `{"type":"metric","kind":"histogram","count":1,"sum":2,"bounds":[18446744073709551616]}`, func(m pmetric.Metric) {
			p := m.SetEmptyHistogram().DataPoints().AppendEmpty()
			p.SetCount(1)
			p.SetSum(2)
			p.ExplicitBounds().FromRaw([]float64{1 << 64})
		}},
		{"exponential histogram, every key", `{"type":"metric","kind":"exponential_histogram","temporality":"delta","count":9,"sum":3.0,"min":1.0,"max":2.0,` +
			`"scale":-2,"zero_count":4,"zero_threshold":0.25,"positive":{"offset":-3,"buckets":[1,2]},"negative":{"offset":1,"buckets":[2]},` +
			`"exemplars":[{"time_ns":1,"value":2.0}]}`,
			func(m pmetric.Metric) {
				h := m.SetEmptyExponentialHistogram()
				h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
				p := h.DataPoints().AppendEmpty()
				p.SetCount(9)
				p.SetSum(3)
				p.SetMin(1)
				p.SetMax(2)
				p.SetScale(-2)
				p.SetZeroCount(4)
				p.SetZeroThreshold(0.25)
				p.Positive().SetOffset(-3)
				p.Positive().BucketCounts().FromRaw([]uint64{1, 2})
				p.Negative().SetOffset(1)
				p.Negative().BucketCounts().FromRaw([]uint64{2})
				e := p.Exemplars().AppendEmpty()
				e.SetTimestamp(1)
				e.SetDoubleValue(2)
			}},
		{"exponential histogram of nothing", `{"type":"metric","kind":"exponential_histogram","count":0}`, func(m pmetric.Metric) {
			m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
		}},
		{"summary", `{"type":"metric","kind":"summary","count":2,"sum":3.5,"quantiles":[[0.5,1.0],[1.0,{"@double":"NaN"}]]}`, func(m pmetric.Metric) {
			p := m.SetEmptySummary().DataPoints().AppendEmpty()
			p.SetCount(2)
			p.SetSum(3.5)
			q := p.QuantileValues().AppendEmpty()
			q.SetQuantile(0.5)
			q.SetValue(1)
			q = p.QuantileValues().AppendEmpty()
			q.SetQuantile(1)
			q.SetValue(quietNaN)
		}},
		{"the kind behind the point", `{"value":1,"time_ns":3,"kind":"gauge","type":"metric"}`, func(m pmetric.Metric) {
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetTimestamp(3)
			p.SetIntValue(1)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requireSame(t, oneMetric(tt.want), readOne(t, tt.line+"\n"))
		})
	}
}

// putTwice makes key stand in m twice, as 1 and 2.
func putTwice(m pcommon.Map, key string) {
	var b xpdata.MapBuilder
	b.AppendEmpty(key).SetInt(1)
	b.AppendEmpty(key).SetInt(2)
	b.UnsafeIntoMap(m)
}

// TestPointsOfAMetric shows which adjacent points are one metric.
func TestPointsOfAMetric(t *testing.T) {
	for kind, value := range map[string]string{
		"gauge": `"value":1`, "sum": `"value":1`, "histogram": `"count":1`, "exponential_histogram": `"count":1`, "summary": `"count":1,"sum":1.0`,
	} {
		t.Run(kind, func(t *testing.T) {
			same := `{"type":"metric","name":"m","kind":"` + kind + `",` + value
			b := readOne(t, same+"}\n"+same+`,"attributes":{"a":1}}`+"\n"+same+"}\n")
			metrics := b.Metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
			require.Equal(t, 3, b.Records)
			require.Equal(t, 1, metrics.Len())
			require.Equal(t, 3, b.Metrics.DataPointCount())
		})
	}
	for _, tt := range []struct{ name, one, other string }{
		{"name", `"name":"a","kind":"sum"`, `"name":"b","kind":"sum"`},
		{"kind", `"kind":"sum"`, `"kind":"gauge"`},
		{"unit", `"kind":"sum"`, `"kind":"sum","unit":"s"`},
		{"description", `"kind":"sum"`, `"kind":"sum","description":"d"`},
		{"temporality", `"kind":"sum"`, `"kind":"sum","temporality":"delta"`},
		{"monotonic", `"kind":"sum"`, `"kind":"sum","monotonic":true`},
		{"metadata", `"kind":"sum","metadata":{"a":1}`, `"kind":"sum","metadata":{"a":2}`},
		{"scope", `"kind":"sum"`, `"kind":"sum","scope":{"name":"s"}`},
	} {
		t.Run("not across another "+tt.name, func(t *testing.T) {
			one, other := `{"type":"metric","value":1,`+tt.one+"}\n", `{"type":"metric","value":1,`+tt.other+"}\n"
			require.Len(t, names(readAll(t, one+other+other+one).batches), 3)
		})
	}
}

func TestLog(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       func(plog.LogRecord)
	}{
		{"what is absent is the default", `{"type":"log","time_ns":0}`, func(plog.LogRecord) {}},
		{"every key", `{"type":"log","time_ns":1,"observed_ns":18446744073709551615,"severity_number":17,"severity_text":"ERROR","event_name":"e",` +
			`"body":{"a":[1]},"trace_id":"` + strings.ToUpper(traceHex) + `","span_id":"` + spanHex + `","flags":1,"attributes":{"k":1},"dropped_attributes":5,` +
			`"run":"r","rank":1,"service":"s"}`,
			func(l plog.LogRecord) {
				l.SetTimestamp(1)
				l.SetObservedTimestamp(math.MaxUint64)
				l.SetSeverityNumber(plog.SeverityNumberError)
				l.SetSeverityText("ERROR")
				l.SetEventName("e")
				l.Body().SetEmptyMap().PutEmptySlice("a").AppendEmpty().SetInt(1)
				l.SetTraceID(traceID)
				l.SetSpanID(spanID)
				l.SetFlags(plog.DefaultLogRecordFlags.WithIsSampled(true))
				l.Attributes().PutInt("k", 1)
				l.SetDroppedAttributesCount(5)
			}},
		{"a severity that OTLP does not know", `{"type":"log","severity_number":-1}`, func(l plog.LogRecord) { l.SetSeverityNumber(-1) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requireSame(t, oneLog(tt.want), readOne(t, tt.line+"\n"))
		})
	}
}
