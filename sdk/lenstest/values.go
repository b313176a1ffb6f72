// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenstest // import "github.com/lenscol/lenscol/sdk/lenstest"

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Attributes hold bool, int64, float64, string, and slices of these, by key.
type Attributes map[string]any

// Span is a span that has ended. Ids are hex digits; that of no parent is empty.
type Span struct {
	Name                      string
	TraceID, SpanID, ParentID string
	RemoteParent              bool   // the parent is of another process
	Kind                      string // internal, server, client, producer, consumer
	Start, End                time.Time
	Status                    codes.Code
	Description               string // of the status
	Attributes                Attributes
	Events                    []Event
	Links                     []Link
	Scope                     string
	Resource                  Attributes
}

// Event is one of a span.
type Event struct {
	Name       string
	Time       time.Time
	Attributes Attributes
}

// Link is one of a span to another.
type Link struct {
	TraceID, SpanID string
	Attributes      Attributes
}

// Event is the first event of that name, and whether there is one.
func (s Span) Event(name string) (Event, bool) {
	for _, e := range s.Events {
		if e.Name == name {
			return e, true
		}
	}
	return Event{}, false
}

func newSpan(s sdktrace.ReadOnlySpan) Span {
	out := Span{
		Name:         s.Name(),
		TraceID:      s.SpanContext().TraceID().String(),
		SpanID:       s.SpanContext().SpanID().String(),
		RemoteParent: s.Parent().IsRemote(),
		Kind:         trace.ValidateSpanKind(s.SpanKind()).String(),
		Start:        s.StartTime(),
		End:          s.EndTime(),
		Status:       s.Status().Code,
		Description:  s.Status().Description,
		Attributes:   attributes(s.Attributes()),
		Scope:        s.InstrumentationScope().Name,
		Resource:     resourceAttributes(s.Resource()),
	}
	if s.Parent().HasSpanID() {
		out.ParentID = s.Parent().SpanID().String()
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, Event{e.Name, e.Time, attributes(e.Attributes)})
	}
	for _, l := range s.Links() {
		out.Links = append(out.Links, Link{l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String(), attributes(l.Attributes)})
	}
	return out
}

// Point is a data point of a metric.
type Point struct {
	Name, Unit, Description string
	Kind                    string // gauge, sum, histogram
	Attributes              Attributes
	Value                   float64 // of a gauge or sum
	Monotonic               bool    // of a sum
	Count                   uint64  // of a histogram, as are the next
	Sum                     float64
	Bounds                  []float64
	Buckets                 []uint64 // one more than Bounds
	Scope                   string
	Resource                Attributes
}

func newPoints(metrics metricdata.ResourceMetrics) []Point {
	var points []Point
	resource := resourceAttributes(metrics.Resource)
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			base := Point{Name: m.Name, Unit: m.Unit, Description: m.Description, Scope: scope.Scope.Name, Resource: resource}
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				points = appendNumbers(points, base, "gauge", data.DataPoints)
			case metricdata.Gauge[float64]:
				points = appendNumbers(points, base, "gauge", data.DataPoints)
			case metricdata.Sum[int64]:
				base.Monotonic = data.IsMonotonic
				points = appendNumbers(points, base, "sum", data.DataPoints)
			case metricdata.Sum[float64]:
				base.Monotonic = data.IsMonotonic
				points = appendNumbers(points, base, "sum", data.DataPoints)
			case metricdata.Histogram[int64]:
				points = appendHistograms(points, base, data.DataPoints)
			case metricdata.Histogram[float64]:
				points = appendHistograms(points, base, data.DataPoints)
			}
		}
	}
	return points
}

func appendNumbers[N int64 | float64](points []Point, p Point, kind string, data []metricdata.DataPoint[N]) []Point {
	p.Kind = kind
	for _, d := range data {
		p.Attributes, p.Value = attributes(d.Attributes.ToSlice()), float64(d.Value)
		points = append(points, p)
	}
	return points
}

func appendHistograms[N int64 | float64](points []Point, p Point, data []metricdata.HistogramDataPoint[N]) []Point {
	p.Kind = "histogram"
	for _, d := range data {
		p.Attributes, p.Count, p.Sum = attributes(d.Attributes.ToSlice()), d.Count, float64(d.Sum)
		p.Bounds, p.Buckets = d.Bounds, d.BucketCounts // Collect filled new ones
		points = append(points, p)
	}
	return points
}

// Record is a log record. Its trace and span ids are empty outside a span.
type Record struct {
	Time            time.Time
	Severity        string // DEBUG, INFO, WARN, ERROR, with 2 to 4 behind them for what lies between
	Body            any    // mostly string
	EventName       string
	Attributes      Attributes // also of []any, map[string]any and []byte
	TraceID, SpanID string
	Scope           string
	Resource        Attributes
}

func newRecord(r *sdklog.Record) Record {
	out := Record{
		Time:       r.Timestamp(),
		Severity:   r.Severity().String(),
		Body:       logValue(r.Body()),
		EventName:  r.EventName(),
		Attributes: make(Attributes, r.AttributesLen()),
		Scope:      r.InstrumentationScope().Name,
		Resource:   resourceAttributes(r.Resource()),
	}
	if out.Time.IsZero() {
		out.Time = r.ObservedTimestamp()
	}
	r.WalkAttributes(func(kv log.KeyValue) bool {
		out.Attributes[kv.Key] = logValue(kv.Value)
		return true
	})
	if r.TraceID().IsValid() {
		out.TraceID = r.TraceID().String()
	}
	if r.SpanID().IsValid() {
		out.SpanID = r.SpanID().String()
	}
	return out
}

func logValue(v log.Value) any {
	switch v.Kind() {
	case log.KindBool:
		return v.AsBool()
	case log.KindInt64:
		return v.AsInt64()
	case log.KindFloat64:
		return v.AsFloat64()
	case log.KindString:
		return v.AsString()
	case log.KindBytes:
		return v.AsBytes()
	case log.KindSlice:
		var list []any
		for _, item := range v.AsSlice() {
			list = append(list, logValue(item))
		}
		return list
	case log.KindMap:
		values := map[string]any{}
		for _, kv := range v.AsMap() {
			values[kv.Key] = logValue(kv.Value)
		}
		return values
	}
	return nil
}

func attributes(kvs []attribute.KeyValue) Attributes {
	out := make(Attributes, len(kvs))
	for _, kv := range kvs {
		out[string(kv.Key)] = kv.Value.AsInterface()
	}
	return out
}

func resourceAttributes(r *sdkresource.Resource) Attributes { return attributes(r.Attributes()) }
