// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader // import "github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// descriptor is what the points of one metric share. Points of equal descriptors that stand next to each other are one metric.
type descriptor struct {
	name, unit, description string
	kind                    pmetric.MetricType
	temporality             pmetric.AggregationTemporality
	monotonic               bool
	metadata                string // as it stands in the line
}

// point is a metric line. It is read whole before it becomes pdata, since its kind may stand anywhere in the line.
type point struct {
	desc           descriptor
	start, time    pcommon.Timestamp
	flags          pmetric.DataPointFlags
	attributes     pcommon.Map
	exemplars      pmetric.ExemplarSlice
	value          number
	count          uint64
	sum, min, max  optional
	bounds         []float64
	counts         []uint64
	scale          int32
	zeroCount      uint64
	zeroThreshold  float64
	positive       buckets
	negative       buckets
	quantiles      []quantile
	metadataOfDesc pcommon.Map
}

type optional struct {
	v  float64
	ok bool
}

func (o *optional) set(v float64) { *o = optional{v: v, ok: true} }

// to hands the value to set if there is one.
func (o optional) to(set func(float64)) {
	if o.ok {
		set(o.v)
	}
}

type buckets struct {
	offset int32
	counts []uint64
}

type quantile struct{ q, value float64 }

var metricKinds = map[string]pmetric.MetricType{
	"gauge":                 pmetric.MetricTypeGauge,
	"sum":                   pmetric.MetricTypeSum,
	"histogram":             pmetric.MetricTypeHistogram,
	"exponential_histogram": pmetric.MetricTypeExponentialHistogram,
	"summary":               pmetric.MetricTypeSummary,
}

var temporalities = map[string]pmetric.AggregationTemporality{
	"unspecified": pmetric.AggregationTemporalityUnspecified,
	"delta":       pmetric.AggregationTemporalityDelta,
	"cumulative":  pmetric.AggregationTemporalityCumulative,
}

// metric reads the metric line in hand into m, which gets one point.
func (d *decoder) metric(m pmetric.Metric) (descriptor, error) {
	p := point{
		attributes:     pcommon.NewMap(),
		exemplars:      pmetric.NewExemplarSlice(),
		metadataOfDesc: m.Metadata(),
	}
	if err := d.line(func(key []byte) error { return d.pointField(key, &p) }); err != nil {
		return descriptor{}, err
	}
	m.SetName(p.desc.name)
	m.SetUnit(p.desc.unit)
	m.SetDescription(p.desc.description)
	switch p.desc.kind {
	case pmetric.MetricTypeGauge:
		p.toNumber(m.SetEmptyGauge().DataPoints().AppendEmpty())
	case pmetric.MetricTypeSum:
		s := m.SetEmptySum()
		s.SetAggregationTemporality(p.desc.temporality)
		s.SetIsMonotonic(p.desc.monotonic)
		p.toNumber(s.DataPoints().AppendEmpty())
	case pmetric.MetricTypeHistogram:
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(p.desc.temporality)
		p.toHistogram(h.DataPoints().AppendEmpty())
	case pmetric.MetricTypeExponentialHistogram:
		h := m.SetEmptyExponentialHistogram()
		h.SetAggregationTemporality(p.desc.temporality)
		p.toExponential(h.DataPoints().AppendEmpty())
	case pmetric.MetricTypeSummary:
		p.toSummary(m.SetEmptySummary().DataPoints().AppendEmpty())
	default:
		return descriptor{}, errMissing("kind")
	}
	return p.desc, nil
}

func (d *decoder) pointField(key []byte, p *point) (err error) {
	switch string(key) {
	case "name":
		p.desc.name, err = d.name()
	case "kind":
		var name string
		if name, err = d.name(); err != nil {
			return err
		}
		var ok bool
		if p.desc.kind, ok = metricKinds[name]; !ok {
			return fmt.Errorf("%q is not known", clip([]byte(name)))
		}
	case "unit":
		p.desc.unit, err = d.name()
	case "description":
		p.desc.description, err = d.name()
	case "temporality":
		p.desc.temporality, err = enum(d, temporalities)
	case "monotonic":
		p.desc.monotonic, err = d.bool()
	case "start_ns":
		p.start, err = d.time()
	case "time_ns":
		p.time, err = d.time()
	case "value":
		p.value, err = d.number()
	case "count":
		p.count, err = d.uint64()
	case "sum":
		return put(p.sum.set, d.double)
	case "min":
		return put(p.min.set, d.double)
	case "max":
		return put(p.max.set, d.double)
	case "bounds":
		return d.array(func() error { return put(func(f float64) { p.bounds = append(p.bounds, f) }, d.double) })
	case "buckets":
		return d.counts(&p.counts)
	case "scale":
		p.scale, err = d.int32()
	case "zero_count":
		p.zeroCount, err = d.uint64()
	case "zero_threshold":
		p.zeroThreshold, err = d.double()
	case "positive":
		return d.buckets(&p.positive)
	case "negative":
		return d.buckets(&p.negative)
	case "quantiles":
		return d.array(func() error { return d.quantile(p) })
	case "attributes":
		return d.attributes(p.attributes)
	case "exemplars":
		return d.array(func() error { return d.exemplar(p.exemplars.AppendEmpty()) })
	case "flags":
		return put(func(n uint32) { p.flags = pmetric.DataPointFlags(n) }, d.uint32)
	case "metadata":
		text, err := d.rawObject()
		if err != nil {
			return err
		}
		p.desc.metadata = string(text)
		rest := d.Decoder
		d.ResetBytes(text)
		err = d.attributes(p.metadataOfDesc)
		d.Decoder = rest
		return err
	default:
		return d.originField(key)
	}
	return err
}

func (d *decoder) counts(to *[]uint64) error {
	return d.array(func() error { return put(func(n uint64) { *to = append(*to, n) }, d.uint64) })
}

func (d *decoder) buckets(b *buckets) error {
	return d.object(func(key []byte) (err error) {
		switch string(key) {
		case "offset":
			b.offset, err = d.int32()
			return err
		case "buckets":
			return d.counts(&b.counts)
		default:
			return d.unknown()
		}
	})
}

func (d *decoder) quantile(p *point) error {
	var pair []float64
	if err := d.array(func() error { return put(func(f float64) { pair = append(pair, f) }, d.double) }); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("%d numbers are not [quantile, value]", len(pair))
	}
	p.quantiles = append(p.quantiles, quantile{pair[0], pair[1]})
	return nil
}

func (d *decoder) exemplar(e pmetric.Exemplar) error {
	return d.object(func(key []byte) error {
		switch string(key) {
		case "time_ns":
			return put(e.SetTimestamp, d.time)
		case "value":
			n, err := d.number()
			n.to(e.SetIntValue, e.SetDoubleValue)
			return err
		case "trace_id":
			return put(e.SetTraceID, d.traceID)
		case "span_id":
			return put(e.SetSpanID, d.spanID)
		case "attributes":
			return d.attributes(e.FilteredAttributes())
		default:
			return d.unknown()
		}
	})
}

func (n number) to(setInt func(int64), setDouble func(float64)) {
	switch n.kind {
	case numberInt:
		setInt(n.i)
	case numberDouble:
		setDouble(n.f)
	}
}

// pointCommon is what the points of all kinds have.
type pointCommon interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
	Attributes() pcommon.Map
}

func (p *point) toCommon(dp pointCommon) {
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.time)
	dp.SetFlags(p.flags)
	p.attributes.MoveTo(dp.Attributes())
}

func (p *point) toNumber(dp pmetric.NumberDataPoint) {
	p.toCommon(dp)
	p.value.to(dp.SetIntValue, dp.SetDoubleValue)
	p.exemplars.MoveAndAppendTo(dp.Exemplars())
}

func (p *point) toHistogram(dp pmetric.HistogramDataPoint) {
	p.toCommon(dp)
	dp.SetCount(p.count)
	p.sum.to(dp.SetSum)
	p.min.to(dp.SetMin)
	p.max.to(dp.SetMax)
	dp.ExplicitBounds().FromRaw(p.bounds)
	dp.BucketCounts().FromRaw(p.counts)
	p.exemplars.MoveAndAppendTo(dp.Exemplars())
}

func (p *point) toExponential(dp pmetric.ExponentialHistogramDataPoint) {
	p.toCommon(dp)
	dp.SetCount(p.count)
	p.sum.to(dp.SetSum)
	p.min.to(dp.SetMin)
	p.max.to(dp.SetMax)
	dp.SetScale(p.scale)
	dp.SetZeroCount(p.zeroCount)
	dp.SetZeroThreshold(p.zeroThreshold)
	p.positive.to(dp.Positive())
	p.negative.to(dp.Negative())
	p.exemplars.MoveAndAppendTo(dp.Exemplars())
}

func (b *buckets) to(dst pmetric.ExponentialHistogramDataPointBuckets) {
	dst.SetOffset(b.offset)
	dst.BucketCounts().FromRaw(b.counts)
}

func (p *point) toSummary(dp pmetric.SummaryDataPoint) {
	p.toCommon(dp)
	dp.SetCount(p.count)
	dp.SetSum(p.sum.v)
	for _, q := range p.quantiles {
		v := dp.QuantileValues().AppendEmpty()
		v.SetQuantile(q.q)
		v.SetValue(q.value)
	}
}
