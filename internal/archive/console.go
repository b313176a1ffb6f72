// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/jx"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// objects decodes the objects of NeMo Lens's console exporter, which are those of OpenTelemetry Python's to_json, and the flat spans of
// hand-written exporters. What such an object does not carry stays at its default.
type objects struct {
	origins map[string]*jsonlreader.Scope // by the text that names resource and scope
	bytes   int                           // of the keys of origins
}

// maxOriginBytes bounds the origins that are kept so that records of one process share theirs.
const maxOriginBytes = 16 << 20

// decode turns one object into records; a metrics object holds many.
func (o *objects) decode(object []byte, layout Layout, add func(jsonlreader.Record)) error {
	isLog, isMetrics := false, false
	if layout == LayoutConsole {
		if err := jx.DecodeBytes(object).ObjBytes(func(d *jx.Decoder, key []byte) error {
			switch string(key) {
			case "resource_metrics":
				isMetrics = true
			case "observed_timestamp":
				isLog = true
			}
			return d.Skip()
		}); err != nil {
			return err
		}
	}
	d := jx.DecodeBytes(object)
	switch {
	case isMetrics:
		return o.metrics(d, add)
	case isLog:
		return o.log(d, add)
	default:
		return o.span(d, add)
	}
}

// origin is what a record's own text says of its resource (and scope); parse fills it in the first time.
func (o *objects) origin(text string, parse func(*jsonlreader.Scope) error) (*jsonlreader.Scope, error) {
	if s, ok := o.origins[text]; ok {
		return s, nil
	}
	s := &jsonlreader.Scope{InstrumentationScope: pcommon.NewInstrumentationScope(), Resource: &jsonlreader.Resource{Resource: pcommon.NewResource()}}
	if err := parse(s); err != nil {
		return nil, err
	}
	if o.bytes += len(text); o.origins == nil || o.bytes > maxOriginBytes {
		o.origins, o.bytes = map[string]*jsonlreader.Scope{}, len(text)
	}
	o.origins[text] = s
	return s, nil
}

func (o *objects) resourceOrigin(raw jx.Raw) (*jsonlreader.Scope, error) {
	return o.origin(string(raw), func(s *jsonlreader.Scope) error { return resource(raw, s.Resource) })
}

// resource reads {"attributes": {…}, "schema_url": ""}, or a flat map of attributes.
func resource(raw jx.Raw, r *jsonlreader.Resource) error {
	if len(raw) == 0 || jx.DecodeBytes(raw).Next() != jx.Object {
		return nil
	}
	nested := false
	err := jx.DecodeBytes(raw).ObjBytes(func(d *jx.Decoder, key []byte) error {
		switch {
		case string(key) == "attributes" && d.Next() == jx.Object:
			nested = true
			return attributes(d, r.Attributes())
		case string(key) == "schema_url" && d.Next() == jx.String:
			nested = true
			return put(func(s string) { r.SchemaURL = s }, d, text)
		default:
			return d.Skip()
		}
	})
	if err == nil && !nested {
		err = attributes(jx.DecodeBytes(raw), r.Attributes())
	}
	return err
}

// span reads a span of the console exporter or a flat one; their keys do not contradict each other.
func (o *objects) span(d *jx.Decoder, add func(jsonlreader.Record)) error {
	span := ptrace.NewSpan()
	span.SetKind(ptrace.SpanKindInternal)
	var origin jx.Raw
	err := object(d, func(key string) (err error) {
		switch key {
		case "name":
			return put(span.SetName, d, text)
		case "context":
			return object(d, func(key string) error {
				switch key {
				case "trace_id":
					return put(span.SetTraceID, d, traceID)
				case "span_id":
					return put(span.SetSpanID, d, spanID)
				case "trace_state":
					return put(span.TraceState().FromRaw, d, traceState)
				default:
					return d.Skip()
				}
			})
		case "trace_id":
			return put(span.SetTraceID, d, traceID)
		case "span_id":
			return put(span.SetSpanID, d, spanID)
		case "parent_id", "parent_span_id":
			return put(span.SetParentSpanID, d, spanID)
		case "kind":
			return put(span.SetKind, d, spanKind)
		case "start_time", "start_time_unix_nano":
			return put(span.SetStartTimestamp, d, timestamp)
		case "end_time", "end_time_unix_nano":
			return put(span.SetEndTimestamp, d, timestamp)
		case "status":
			return spanStatus(d, span.Status())
		case "attributes":
			return attributes(d, span.Attributes())
		case "events":
			return array(d, func() error { return event(d, span.Events().AppendEmpty()) })
		case "links":
			return array(d, func() error { return link(d, span.Links().AppendEmpty()) })
		case "resource":
			origin, err = d.Raw()
			return err
		default:
			return d.Skip()
		}
	})
	if err != nil {
		return err
	}
	scope, err := o.resourceOrigin(origin)
	if err != nil {
		return fmt.Errorf("key \"resource\": %w", err)
	}
	add(jsonlreader.Record{Signal: pipeline.SignalTraces, Span: span, Scope: scope})
	return nil
}

func event(d *jx.Decoder, e ptrace.SpanEvent) error {
	return object(d, func(key string) error {
		switch key {
		case "name":
			return put(e.SetName, d, text)
		case "timestamp", "time_unix_nano":
			return put(e.SetTimestamp, d, timestamp)
		case "attributes":
			return attributes(d, e.Attributes())
		default:
			return d.Skip()
		}
	})
}

func link(d *jx.Decoder, l ptrace.SpanLink) error {
	return object(d, func(key string) error {
		switch key {
		case "context":
			return object(d, func(key string) error {
				switch key {
				case "trace_id":
					return put(l.SetTraceID, d, traceID)
				case "span_id":
					return put(l.SetSpanID, d, spanID)
				case "trace_state":
					return put(l.TraceState().FromRaw, d, traceState)
				default:
					return d.Skip()
				}
			})
		case "attributes":
			return attributes(d, l.Attributes())
		default:
			return d.Skip()
		}
	})
}

// spanStatus reads {"status_code": "ERROR", "description": "…"}, or the code alone.
func spanStatus(d *jx.Decoder, s ptrace.Status) error {
	code := func() error {
		word, err := text(d)
		switch strings.ToUpper(strings.TrimPrefix(word, "StatusCode.")) {
		case "OK", "1", "STATUS_CODE_OK":
			s.SetCode(ptrace.StatusCodeOk)
		case "ERROR", "2", "STATUS_CODE_ERROR":
			s.SetCode(ptrace.StatusCodeError)
		default:
			if n, err := strconv.ParseInt(word, 10, 32); err == nil { // One that OTLP does not know.
				s.SetCode(ptrace.StatusCode(n))
			}
		}
		return err
	}
	if d.Next() != jx.Object {
		return code()
	}
	return object(d, func(key string) error {
		switch key {
		case "status_code", "code":
			return code()
		case "description", "message":
			return put(s.SetMessage, d, text)
		default:
			return d.Skip()
		}
	})
}

func spanKind(d *jx.Decoder) (ptrace.SpanKind, error) {
	word, err := text(d)
	name := strings.TrimPrefix(strings.TrimPrefix(strings.ToUpper(word), "SPANKIND."), "SPAN_KIND_")
	switch name {
	case "INTERNAL", "", "1":
		return ptrace.SpanKindInternal, err
	case "SERVER", "2":
		return ptrace.SpanKindServer, err
	case "CLIENT", "3":
		return ptrace.SpanKindClient, err
	case "PRODUCER", "4":
		return ptrace.SpanKindProducer, err
	case "CONSUMER", "5":
		return ptrace.SpanKindConsumer, err
	case "UNSPECIFIED", "0":
		return ptrace.SpanKindUnspecified, err
	default:
		n, noNumber := strconv.ParseInt(name, 10, 32) // One that OTLP does not know.
		if err == nil && noNumber != nil {
			err = fmt.Errorf("%q is no span kind", word)
		}
		return ptrace.SpanKind(n), err
	}
}

func (o *objects) log(d *jx.Decoder, add func(jsonlreader.Record)) error {
	log := plog.NewLogRecord()
	var origin jx.Raw
	err := object(d, func(key string) (err error) {
		switch key {
		case "body":
			return value(d, log.Body())
		case "severity_number":
			return put(log.SetSeverityNumber, d, severity)
		case "severity_text":
			return put(log.SetSeverityText, d, text)
		case "attributes":
			return attributes(d, log.Attributes())
		case "dropped_attributes":
			return put(log.SetDroppedAttributesCount, d, (*jx.Decoder).UInt32)
		case "timestamp":
			return put(log.SetTimestamp, d, timestamp)
		case "observed_timestamp":
			return put(log.SetObservedTimestamp, d, timestamp)
		case "trace_id":
			return put(log.SetTraceID, d, traceID)
		case "span_id":
			return put(log.SetSpanID, d, spanID)
		case "trace_flags":
			return put(func(n uint32) { log.SetFlags(plog.LogRecordFlags(n)) }, d, (*jx.Decoder).UInt32)
		case "event_name":
			return put(log.SetEventName, d, text)
		case "resource":
			origin, err = d.Raw()
			return err
		default:
			return d.Skip()
		}
	})
	if err != nil {
		return err
	}
	scope, err := o.resourceOrigin(origin)
	if err != nil {
		return fmt.Errorf("key \"resource\": %w", err)
	}
	add(jsonlreader.Record{Signal: pipeline.SignalLogs, Log: log, Scope: scope})
	return nil
}

var digits = regexp.MustCompile(`-?\d+`)

// severity reads 9, or "<SeverityNumber.INFO: 9>" as older SDKs write it.
func severity(d *jx.Decoder) (plog.SeverityNumber, error) {
	word, err := text(d)
	if err != nil || word == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(digits.FindString(word), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no severity", word)
	}
	return plog.SeverityNumber(n), nil
}

func (o *objects) metrics(d *jx.Decoder, add func(jsonlreader.Record)) error {
	return object(d, func(key string) error {
		if key != "resource_metrics" {
			return d.Skip()
		}
		return array(d, func() error {
			members, err := rawMembers(d)
			if err != nil {
				return err
			}
			if len(members["scope_metrics"]) == 0 {
				return nil
			}
			scopes := jx.DecodeBytes(members["scope_metrics"])
			return array(scopes, func() error { return o.scopeMetrics(scopes, members["resource"], add) })
		})
	})
}

func (o *objects) scopeMetrics(d *jx.Decoder, ofResource jx.Raw, add func(jsonlreader.Record)) error {
	members, err := rawMembers(d)
	if err != nil || len(members["metrics"]) == 0 {
		return err
	}
	scope, err := o.origin(string(ofResource)+string(members["scope"])+string(members["schema_url"]), func(s *jsonlreader.Scope) error {
		if err := resource(ofResource, s.Resource); err != nil {
			return fmt.Errorf("key \"resource\": %w", err)
		}
		if url := members["schema_url"]; len(url) > 0 && jx.DecodeBytes(url).Next() == jx.String {
			s.SchemaURL, _ = jx.DecodeBytes(url).Str()
		}
		if len(members["scope"]) == 0 {
			return nil
		}
		d := jx.DecodeBytes(members["scope"])
		return object(d, func(key string) error {
			switch key {
			case "name":
				return put(s.SetName, d, text)
			case "version":
				return put(s.SetVersion, d, text)
			case "attributes":
				return attributes(d, s.Attributes())
			default:
				return d.Skip()
			}
		})
	})
	if err != nil {
		return err
	}
	metrics := jx.DecodeBytes(members["metrics"])
	return array(metrics, func() error {
		m, err := rawMembers(metrics)
		if err != nil {
			return err
		}
		return metric(m, func(m pmetric.Metric) {
			add(jsonlreader.Record{Signal: pipeline.SignalMetrics, Metric: m, Scope: scope})
		})
	})
}

// metric reads one metric and gives each of its points as a metric of its own.
func metric(members map[string]jx.Raw, add func(pmetric.Metric)) error {
	var name, unit, description string
	for key, to := range map[string]*string{"name": &name, "unit": &unit, "description": &description} {
		if raw := members[key]; len(raw) > 0 && jx.DecodeBytes(raw).Next() == jx.String {
			*to, _ = jx.DecodeBytes(raw).Str()
		}
	}
	if len(members["data"]) == 0 {
		return nil
	}
	data, err := rawMembers(jx.DecodeBytes(members["data"]))
	if err != nil || len(data["data_points"]) == 0 {
		return err
	}
	var temporality pmetric.AggregationTemporality
	if raw := data["aggregation_temporality"]; len(raw) > 0 {
		word, err := text(jx.DecodeBytes(raw))
		n, _ := strconv.ParseInt(digits.FindString(word), 10, 32)
		if temporality = pmetric.AggregationTemporality(n); err != nil {
			return err
		}
	}
	points := jx.DecodeBytes(data["data_points"])
	return array(points, func() error {
		p, err := rawMembers(points)
		if err != nil {
			return err
		}
		m := pmetric.NewMetric()
		m.SetName(name)
		m.SetUnit(unit)
		m.SetDescription(description)
		switch {
		case p["scale"] != nil:
			h := m.SetEmptyExponentialHistogram()
			h.SetAggregationTemporality(temporality)
			err = exponentialPoint(p, h.DataPoints().AppendEmpty())
		case p["bucket_counts"] != nil:
			h := m.SetEmptyHistogram()
			h.SetAggregationTemporality(temporality)
			err = histogramPoint(p, h.DataPoints().AppendEmpty())
		case data["is_monotonic"] != nil:
			s := m.SetEmptySum()
			s.SetAggregationTemporality(temporality)
			s.SetIsMonotonic(string(data["is_monotonic"]) == "true")
			err = numberPoint(p, s.DataPoints().AppendEmpty())
		default:
			err = numberPoint(p, m.SetEmptyGauge().DataPoints().AppendEmpty())
		}
		if err != nil {
			return fmt.Errorf("metric %q: %w", name, err)
		}
		add(m)
		return nil
	})
}

func numberPoint(members map[string]jx.Raw, p pmetric.NumberDataPoint) error {
	return fields(members, func(d *jx.Decoder, key string) error {
		if key != "value" {
			return pointField(d, key, p)
		}
		v := pcommon.NewValueEmpty()
		err := value(d, v)
		switch v.Type() {
		case pcommon.ValueTypeInt:
			p.SetIntValue(v.Int())
		case pcommon.ValueTypeDouble:
			p.SetDoubleValue(v.Double())
		}
		return err
	})
}

func histogramPoint(members map[string]jx.Raw, p pmetric.HistogramDataPoint) error {
	return fields(members, func(d *jx.Decoder, key string) error {
		switch key {
		case "count":
			return put(p.SetCount, d, (*jx.Decoder).UInt64)
		case "sum":
			return put(p.SetSum, d, double)
		case "min":
			return put(p.SetMin, d, double)
		case "max":
			return put(p.SetMax, d, double)
		case "bucket_counts":
			return array(d, func() error { return put(func(n uint64) { p.BucketCounts().Append(n) }, d, (*jx.Decoder).UInt64) })
		case "explicit_bounds":
			return array(d, func() error {
				return put(func(f float64) { p.ExplicitBounds().Append(f) }, d, double)
			})
		default:
			return pointField(d, key, p)
		}
	})
}

func exponentialPoint(members map[string]jx.Raw, p pmetric.ExponentialHistogramDataPoint) error {
	buckets := func(d *jx.Decoder, b pmetric.ExponentialHistogramDataPointBuckets) error {
		return object(d, func(key string) error {
			switch key {
			case "offset":
				return put(b.SetOffset, d, (*jx.Decoder).Int32)
			case "bucket_counts":
				return array(d, func() error { return put(func(n uint64) { b.BucketCounts().Append(n) }, d, (*jx.Decoder).UInt64) })
			default:
				return d.Skip()
			}
		})
	}
	return fields(members, func(d *jx.Decoder, key string) error {
		switch key {
		case "count":
			return put(p.SetCount, d, (*jx.Decoder).UInt64)
		case "sum":
			return put(p.SetSum, d, double)
		case "min":
			return put(p.SetMin, d, double)
		case "max":
			return put(p.SetMax, d, double)
		case "scale":
			return put(p.SetScale, d, (*jx.Decoder).Int32)
		case "zero_count":
			return put(p.SetZeroCount, d, (*jx.Decoder).UInt64)
		case "positive":
			return buckets(d, p.Positive())
		case "negative":
			return buckets(d, p.Negative())
		default:
			return pointField(d, key, p)
		}
	})
}

// dataPoint is what the three kinds of points share.
type dataPoint interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
	Attributes() pcommon.Map
	Exemplars() pmetric.ExemplarSlice
}

func pointField(d *jx.Decoder, key string, p dataPoint) error {
	switch key {
	case "attributes":
		return attributes(d, p.Attributes())
	case "start_time_unix_nano":
		return put(p.SetStartTimestamp, d, timestamp)
	case "time_unix_nano":
		return put(p.SetTimestamp, d, timestamp)
	case "flags":
		return put(func(n uint32) { p.SetFlags(pmetric.DataPointFlags(n)) }, d, (*jx.Decoder).UInt32)
	case "exemplars":
		return array(d, func() error { return exemplar(d, p.Exemplars().AppendEmpty()) })
	default:
		return d.Skip()
	}
}

func exemplar(d *jx.Decoder, e pmetric.Exemplar) error {
	return object(d, func(key string) error {
		switch key {
		case "filtered_attributes":
			return attributes(d, e.FilteredAttributes())
		case "value":
			v := pcommon.NewValueEmpty()
			err := value(d, v)
			switch v.Type() {
			case pcommon.ValueTypeInt:
				e.SetIntValue(v.Int())
			case pcommon.ValueTypeDouble:
				e.SetDoubleValue(v.Double())
			}
			return err
		case "time_unix_nano":
			return put(e.SetTimestamp, d, timestamp)
		case "trace_id":
			return put(e.SetTraceID, d, traceID)
		case "span_id":
			return put(e.SetSpanID, d, spanID)
		default:
			return d.Skip()
		}
	})
}

// value reads any JSON value. {"@double": "NaN"} is what quoteBare makes of Python's NaN.
func value(d *jx.Decoder, v pcommon.Value) error {
	switch d.Next() {
	case jx.Bool:
		return put(v.SetBool, d, (*jx.Decoder).Bool)
	case jx.String:
		return put(v.SetStr, d, text)
	case jx.Number:
		n, err := d.Num()
		if err != nil {
			return err
		}
		if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
			v.SetInt(i)
			return nil
		}
		f, err := strconv.ParseFloat(string(n), 64)
		v.SetDouble(f)
		if errors.Is(err, strconv.ErrRange) {
			err = nil // The nearest double, as Python reads it.
		}
		return err
	case jx.Array:
		items := v.SetEmptySlice()
		return array(d, func() error { return value(d, items.AppendEmpty()) })
	case jx.Object:
		m := v.SetEmptyMap()
		if err := attributes(d, m); err != nil {
			return err
		}
		if m.Len() == 1 {
			if name, ok := m.Get("@double"); ok && name.Type() == pcommon.ValueTypeStr && name.Str() != "" && bareNumber([]byte(name.Str())) == name.Str() {
				f, err := strconv.ParseFloat(name.Str(), 64)
				v.SetDouble(f)
				return err
			}
		}
		return nil
	default:
		return d.Skip() // null, or what is wrong with the JSON
	}
}

// double reads a number where only one may stand.
func double(d *jx.Decoder) (float64, error) {
	v := pcommon.NewValueEmpty()
	if err := value(d, v); err != nil {
		return 0, err
	}
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return float64(v.Int()), nil
	case pcommon.ValueTypeDouble:
		return v.Double(), nil
	default:
		return 0, fmt.Errorf("%s is no number", v.AsString())
	}
}

func attributes(d *jx.Decoder, m pcommon.Map) error {
	var b xpdata.MapBuilder
	err := object(d, func(key string) error { return value(d, b.AppendEmpty(key)) })
	b.UnsafeIntoMap(m)
	return err
}

// timestamp reads 2026-11-29T12:58:08.703113Z, nanoseconds as a number or text, or null.
func timestamp(d *jx.Decoder) (pcommon.Timestamp, error) {
	word, err := text(d)
	if err != nil || word == "" {
		return 0, err
	}
	if n, err := strconv.ParseUint(word, 10, 64); err == nil {
		return pcommon.Timestamp(n), nil
	}
	t, err := time.Parse(time.RFC3339Nano, word)
	if err != nil || t.Unix() < 0 || uint64(t.Unix()) > math.MaxUint64/uint64(time.Second) {
		return 0, fmt.Errorf("%q is no time like 2026-11-29T12:58:08.703113Z and no number of nanoseconds", word)
	}
	seconds := pcommon.Timestamp(t.Unix()) * pcommon.Timestamp(time.Second)
	return seconds + min(pcommon.Timestamp(t.Nanosecond()), math.MaxUint64-seconds), nil // The last microsecond is rounded up.
}

func traceID(d *jx.Decoder) (id pcommon.TraceID, err error) {
	err = identifier(d, id[:])
	return id, err
}

func spanID(d *jx.Decoder) (id pcommon.SpanID, err error) {
	err = identifier(d, id[:])
	return id, err
}

// identifier reads hex digits with or without 0x, a decimal number as exemplars have it, or null.
func identifier(d *jx.Decoder, id []byte) error {
	if d.Next() == jx.Number {
		n, err := d.Num()
		if err != nil {
			return err
		}
		i, ok := new(big.Int).SetString(string(n), 10)
		if !ok || i.Sign() < 0 || i.BitLen() > 8*len(id) {
			return fmt.Errorf("%s is no id of %d bytes", n, len(id))
		}
		i.FillBytes(id)
		return nil
	}
	word, err := text(d)
	if err != nil || word == "" {
		return err
	}
	hexed := strings.TrimPrefix(word, "0x")
	if len(hexed) != 2*len(id) {
		return fmt.Errorf("%q is no id of %d hex digits", word, 2*len(id))
	}
	if _, err := hex.Decode(id, []byte(hexed)); err != nil {
		return fmt.Errorf("%q is no id of %d hex digits", word, 2*len(id))
	}
	return nil
}

var stateEntry = regexp.MustCompile(`'\{key=([^,]*), value=(.*?)\}'`)

// traceState reads "['{key=vendor, value=a:b}', '{key=other, value=1}']", which is Python's text for vendor=a:b,other=1.
func traceState(d *jx.Decoder) (string, error) {
	word, err := text(d)
	if err != nil || !strings.HasPrefix(word, "[") {
		return word, err
	}
	var entries []string
	for _, parts := range stateEntry.FindAllStringSubmatch(word, -1) {
		entries = append(entries, parts[1]+"="+parts[2])
	}
	return strings.Join(entries, ","), nil
}

// text reads a text, or a number as its digits; null is "".
func text(d *jx.Decoder) (string, error) {
	switch d.Next() {
	case jx.String:
		return d.Str()
	case jx.Number:
		n, err := d.Num()
		return string(n), err
	case jx.Null:
		return "", d.Null()
	default:
		_, err := d.Str() // says what stands there
		return "", err
	}
}

// object calls field at the value of every key; null is an object without keys.
func object(d *jx.Decoder, field func(key string) error) error {
	if d.Next() == jx.Null {
		return d.Null()
	}
	return d.ObjBytes(func(d *jx.Decoder, key []byte) error {
		name := string(key)
		if err := field(name); err != nil {
			return fmt.Errorf("key %q: %w", name, err)
		}
		return nil
	})
}

func array(d *jx.Decoder, item func() error) error {
	if d.Next() == jx.Null {
		return d.Null()
	}
	return d.Arr(func(*jx.Decoder) error { return item() })
}

// rawMembers are the members of an object as they stand, without those that are null.
func rawMembers(d *jx.Decoder) (map[string]jx.Raw, error) {
	members := map[string]jx.Raw{}
	return members, object(d, func(key string) error {
		raw, err := d.Raw()
		if string(raw) != "null" {
			members[key] = raw
		}
		return err
	})
}

func fields(members map[string]jx.Raw, field func(d *jx.Decoder, key string) error) error {
	for key, raw := range members {
		if err := field(jx.DecodeBytes(raw), key); err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
	}
	return nil
}

// put hands what read returns to set.
func put[T any](set func(T), d *jx.Decoder, read func(*jx.Decoder) (T, error)) error {
	v, err := read(d)
	if err == nil {
		set(v)
	}
	return err
}
