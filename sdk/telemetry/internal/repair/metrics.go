// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package repair // import "github.com/lenscol/lenscol/sdk/telemetry/internal/repair"

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Metrics makes rm UTF-8, all but its resource. It changes rm itself, which the SDK fills anew for each export.
func Metrics(rm *metricdata.ResourceMetrics) {
	for i := range rm.ScopeMetrics {
		s := &rm.ScopeMetrics[i]
		s.Scope, _ = scope(s.Scope)
		for j := range s.Metrics {
			m := &s.Metrics[j]
			m.Name, _ = Text(m.Name)
			m.Description, _ = Text(m.Description)
			m.Unit, _ = Text(m.Unit)
			mendPoints(m.Data)
		}
	}
}

func mendPoints(data metricdata.Aggregation) {
	switch data := data.(type) {
	case metricdata.Gauge[int64]:
		mendNumbers(data.DataPoints)
	case metricdata.Gauge[float64]:
		mendNumbers(data.DataPoints)
	case metricdata.Sum[int64]:
		mendNumbers(data.DataPoints)
	case metricdata.Sum[float64]:
		mendNumbers(data.DataPoints)
	case metricdata.Histogram[int64]:
		mendHistograms(data.DataPoints)
	case metricdata.Histogram[float64]:
		mendHistograms(data.DataPoints)
	case metricdata.ExponentialHistogram[int64]:
		mendExponential(data.DataPoints)
	case metricdata.ExponentialHistogram[float64]:
		mendExponential(data.DataPoints)
	case metricdata.Summary:
		for i := range data.DataPoints {
			mendSet(&data.DataPoints[i].Attributes)
		}
	}
}

func mendNumbers[N int64 | float64](points []metricdata.DataPoint[N]) {
	for i := range points {
		mendSet(&points[i].Attributes)
		mendExemplars(points[i].Exemplars)
	}
}

func mendHistograms[N int64 | float64](points []metricdata.HistogramDataPoint[N]) {
	for i := range points {
		mendSet(&points[i].Attributes)
		mendExemplars(points[i].Exemplars)
	}
}

func mendExponential[N int64 | float64](points []metricdata.ExponentialHistogramDataPoint[N]) {
	for i := range points {
		mendSet(&points[i].Attributes)
		mendExemplars(points[i].Exemplars)
	}
}

func mendExemplars[N int64 | float64](exemplars []metricdata.Exemplar[N]) {
	for i := range exemplars {
		exemplars[i].FilteredAttributes, _ = Attributes(exemplars[i].FilteredAttributes)
	}
}

func mendSet(s *attribute.Set) {
	if mended, bad := set(*s); bad {
		*s = mended
	}
}
