// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ranks // import "github.com/lenscol/lenscol/internal/ranks"

import "go.opentelemetry.io/collector/pdata/pmetric"

// PointCount is the number of data points of a resource.
func PointCount(rm pmetric.ResourceMetrics) (n int) {
	for i := range rm.ScopeMetrics().Len() {
		ms := rm.ScopeMetrics().At(i).Metrics()
		for j := range ms.Len() {
			n += metricPointCount(ms.At(j))
		}
	}
	return n
}

func metricPointCount(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	default:
		return 0
	}
}
