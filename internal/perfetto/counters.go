// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"fmt"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// series is a counter: the points of one metric and one set of attributes of a process. Numbers are drawn as they are, of a
// histogram or summary the mean of what was recorded since the point before.
type series struct {
	*track
	unit  string
	start pcommon.Timestamp // of the cumulative values below
	count float64
	sum   float64
}

// maxSeries bounds the counters that are kept apart, to about 20 MB.
const maxSeries = 1 << 16

func (t *Trace) drawPoint(src *source, m pmetric.Metric) {
	t.summary.Points++
	at := int64(0)
	switch m.Type() {
	case pmetric.MetricTypeGauge, pmetric.MetricTypeSum:
		p := numberPoint(m)
		at = nanoseconds(p.Timestamp()) - src.offset
		if s := t.seriesOf(src.process, m, p.Attributes(), ""); s != nil {
			switch p.ValueType() {
			case pmetric.NumberDataPointValueTypeInt:
				t.out.count(s, at, 0, p.IntValue(), true)
			case pmetric.NumberDataPointValueTypeDouble:
				t.drawNumber(s, at, p.DoubleValue())
			default:
				t.summary.Unnumbered++
			}
		}
	case pmetric.MetricTypeHistogram:
		p := m.Histogram().DataPoints().At(0)
		t.drawMean(src, m, p.Attributes(), p, m.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		p := m.ExponentialHistogram().DataPoints().At(0)
		t.drawMean(src, m, p.Attributes(), p, m.ExponentialHistogram().AggregationTemporality())
	case pmetric.MetricTypeSummary:
		p := m.Summary().DataPoints().At(0)
		t.drawMean(src, m, p.Attributes(), p, pmetric.AggregationTemporalityCumulative)
	}
}

func numberPoint(m pmetric.Metric) pmetric.NumberDataPoint {
	if m.Type() == pmetric.MetricTypeGauge {
		return m.Gauge().DataPoints().At(0)
	}
	return m.Sum().DataPoints().At(0)
}

func (t *Trace) drawNumber(s *series, at int64, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) { // Neither format has a counter for these.
		t.summary.Unnumbered++
		return
	}
	t.out.count(s, at, value, 0, false)
}

// aggregate is a point that has a count and a sum.
type aggregate interface {
	Timestamp() pcommon.Timestamp
	StartTimestamp() pcommon.Timestamp
	Count() uint64
	Sum() float64
}

func (t *Trace) drawMean(src *source, m pmetric.Metric, attrs pcommon.Map, p aggregate, temporality pmetric.AggregationTemporality) {
	if may, ok := p.(interface{ HasSum() bool }); ok && !may.HasSum() {
		t.summary.Unnumbered++
		return
	}
	s := t.seriesOf(src.process, m, attrs, " (mean)")
	if s == nil {
		return
	}
	count, sum := float64(p.Count()), p.Sum()
	if temporality == pmetric.AggregationTemporalityCumulative {
		if p.StartTimestamp() == s.start && count >= s.count {
			count, sum = count-s.count, sum-s.sum
		}
		s.start, s.count, s.sum = p.StartTimestamp(), float64(p.Count()), p.Sum()
	}
	if count > 0 {
		t.drawNumber(s, nanoseconds(p.Timestamp())-src.offset, sum/count)
	}
}

// seriesOf is the counter of a point, nil where there are too many.
func (t *Trace) seriesOf(p *process, m pmetric.Metric, attrs pcommon.Map, suffix string) *series {
	name := m.Name() + suffix
	if attrs.Len() > 0 {
		var b strings.Builder
		for key, v := range attrs.All() {
			fmt.Fprintf(&b, ", %s=%s", key, v.AsString())
		}
		name += " {" + b.String()[2:] + "}"
	}
	key := fmt.Sprintf("%d %s", p.pid, name)
	if s, ok := t.series[key]; ok {
		return s
	}
	if len(t.series) >= maxSeries {
		t.summary.Crowded++
		return nil
	}
	s := &series{track: t.newTrack(trackCounter, p), unit: strings.Trim(m.Unit(), "{}")}
	s.name = name
	t.series[key] = s
	t.out.counterTrack(s)
	return s
}
