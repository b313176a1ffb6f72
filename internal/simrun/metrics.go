// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package simrun // import "github.com/lenscol/lenscol/internal/simrun"

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const tokensPerStep = 8 * 4096

func (s *sender) measure(took time.Duration) {
	ms := float64(took) / float64(time.Millisecond)
	if s.steps == 0 {
		s.fastest = ms
	}
	s.steps++
	s.stepMillis += ms
	s.fastest, s.slowest = min(s.fastest, ms), max(s.slowest, ms)
}

// report fills in the metrics of the steps so far: of the old generation a gauge and a cumulative histogram, of the new one a counter.
func (s *sender) report(metrics pmetric.Metrics, st step) {
	rm := metrics.ResourceMetrics().AppendEmpty()
	s.describe(rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("nemo.lens")
	begin, now := s.stamp(s.plan.begin), s.stamp(st.end)
	add := func(name, unit string) pmetric.Metric {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		return m
	}
	if s.run.cfg.Generation == NewNames {
		tokens := add("nv.dl.training.tokens.processed", "{token}").SetEmptySum()
		tokens.SetIsMonotonic(true)
		tokens.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		point := tokens.DataPoints().AppendEmpty()
		stampPoint(point, begin, now)
		point.SetIntValue(int64(s.steps) * tokensPerStep)
		return
	}
	point := add("megatron.training.loss", "").SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(now)
	point.SetDoubleValue(loss(st.number))

	histogram := add("megatron.training.step_duration_ms", "ms").SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	steps := histogram.DataPoints().AppendEmpty()
	stampPoint(steps, begin, now)
	steps.SetCount(uint64(s.steps))
	steps.SetSum(s.stepMillis)
	steps.SetMin(s.fastest)
	steps.SetMax(s.slowest)
}

func stampPoint(p interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
}, begin, now pcommon.Timestamp) {
	p.SetStartTimestamp(begin)
	p.SetTimestamp(now)
}
