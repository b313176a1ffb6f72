// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments // import "github.com/lenscol/lenscol/sdk/instruments"

import (
	"context"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Instrument is one series on one meter. It may be used by several goroutines; on nil, methods do nothing.
type Instrument struct {
	spec    Spec
	writers []writer // one for each name that the series is sent under
	report  *report
}

// writer is an instrument of OpenTelemetry.
type writer interface {
	Enabled(ctx context.Context) bool
	write(ctx context.Context, value float64, attrs metric.MeasurementOption) // attrs may be nil
}

// Enabled reports whether anybody collects what is recorded.
func (i *Instrument) Enabled(ctx context.Context) bool {
	if i == nil {
		return false
	}
	for _, w := range i.writers {
		if w.Enabled(ctx) {
			return true
		}
	}
	return false
}

// Record records a value in the unit of the series: sets a gauge, adds to a counter. The span of ctx may become its exemplar.
//
// A counter leaves out values below zero, and counters and histograms leave out what is not finite, since one of those
// would spoil their sums for good. A gauge takes it: a loss that is not a number is what its reader looks for.
func (i *Instrument) Record(ctx context.Context, value float64, attrs ...attribute.KeyValue) {
	if i.Enabled(ctx) {
		i.record(ctx, value, attrs)
	}
}

// RecordDuration records a duration where the unit is s or ms.
func (i *Instrument) RecordDuration(ctx context.Context, d time.Duration, attrs ...attribute.KeyValue) {
	if !i.Enabled(ctx) {
		return
	}
	value, ok := inUnit(d, i.spec.Unit)
	if !ok {
		i.report.once(i.spec.Key, "metric takes no duration, its unit is neither s nor ms", "metric", i.spec.Name, "unit", i.spec.Unit)
		return
	}
	i.record(ctx, value, attrs)
}

func inUnit(d time.Duration, unit string) (value float64, ok bool) {
	switch unit {
	case "s":
		return d.Seconds(), true
	case "ms":
		return float64(d) / float64(time.Millisecond), true
	}
	return 0, false
}

func (i *Instrument) record(ctx context.Context, value float64, attrs []attribute.KeyValue) {
	if i.spec.SkipZero && value == 0 {
		return
	}
	if reason := i.spec.refuses(value); reason != "" {
		i.report.once(i.spec.Key, "metric value is left out", "metric", i.spec.Name, "value", value, "reason", reason)
		return
	}
	var opt metric.MeasurementOption
	if len(attrs) > 0 {
		opt = metric.WithAttributes(attrs...)
	}
	for _, w := range i.writers {
		w.write(ctx, value, opt)
	}
}

// refuses says why value is none for the series, or nothing.
func (s Spec) refuses(value float64) string {
	switch {
	case s.Kind == Counter && value < 0:
		return "a counter does not fall"
	case s.Kind != Gauge && (math.IsNaN(value) || math.IsInf(value, 0)):
		return "it is not finite"
	case s.Integer && (value != math.Trunc(value) || value < math.MinInt64 || value >= math.MaxInt64):
		return "it is not an integer"
	}
	return ""
}

// build makes the instruments of specs, by key. A series that the meter refuses gets one without writers.
func build(meter metric.Meter, names Names, specs []Spec, report *report) map[string]*Instrument {
	out := make(map[string]*Instrument, len(specs))
	for _, spec := range specs {
		if spec.Kind == "" {
			spec.Kind = Gauge
		}
		i := &Instrument{spec: spec, report: report}
		for _, name := range names.of(spec.Name) {
			if w, err := newWriter(meter, name, spec); err != nil {
				report.once(spec.Key, "metric cannot be made", "metric", name, "error", err)
			} else {
				i.writers = append(i.writers, w)
			}
		}
		out[spec.Key] = i
	}
	return out
}

func newWriter(meter metric.Meter, name string, s Spec) (writer, error) {
	unit, description := metric.WithUnit(s.Unit), metric.WithDescription(s.Description)
	switch {
	case s.Kind == Histogram:
		opts := []metric.Float64HistogramOption{unit, description}
		if bounds := s.bounds(); bounds != nil {
			opts = append(opts, metric.WithExplicitBucketBoundaries(bounds...))
		}
		h, err := meter.Float64Histogram(name, opts...)
		return recorder[float64]{h}, err
	case s.Kind == Counter && s.Integer:
		c, err := meter.Int64Counter(name, unit, description)
		return adder[int64]{c}, err
	case s.Kind == Counter:
		c, err := meter.Float64Counter(name, unit, description)
		return adder[float64]{c}, err
	case s.Kind == UpDownCounter && s.Integer:
		c, err := meter.Int64UpDownCounter(name, unit, description)
		return adder[int64]{c}, err
	case s.Kind == UpDownCounter:
		c, err := meter.Float64UpDownCounter(name, unit, description)
		return adder[float64]{c}, err
	case s.Integer:
		g, err := meter.Int64Gauge(name, unit, description)
		return recorder[int64]{g}, err
	}
	g, err := meter.Float64Gauge(name, unit, description)
	return recorder[float64]{g}, err
}

type recorder[N int64 | float64] struct {
	to interface {
		Enabled(ctx context.Context) bool
		Record(ctx context.Context, value N, opts ...metric.RecordOption)
	}
}

func (r recorder[N]) Enabled(ctx context.Context) bool { return r.to.Enabled(ctx) }

func (r recorder[N]) write(ctx context.Context, value float64, attrs metric.MeasurementOption) {
	if attrs == nil {
		r.to.Record(ctx, N(value))
	} else {
		r.to.Record(ctx, N(value), attrs)
	}
}

type adder[N int64 | float64] struct {
	to interface {
		Enabled(ctx context.Context) bool
		Add(ctx context.Context, value N, opts ...metric.AddOption)
	}
}

func (a adder[N]) Enabled(ctx context.Context) bool { return a.to.Enabled(ctx) }

func (a adder[N]) write(ctx context.Context, value float64, attrs metric.MeasurementOption) {
	if attrs == nil {
		a.to.Add(ctx, N(value))
	} else {
		a.to.Add(ctx, N(value), attrs)
	}
}
