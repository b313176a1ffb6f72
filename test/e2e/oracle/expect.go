// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Item is one span, metric point or log record, as its line says it.
type Item struct {
	Line     Value // all keys of the line up to and with the identity
	Resource Value // keys of the resource line, without type and id
	Scope    Value // keys of the scope line, without type, id and resource
}

// Expect returns the items that the lines of this request must hold, in the order of the request.
func (r Request) Expect() []Item {
	var items []Item
	add := func(line object, res *resourcepb.Resource, resURL string, scope *commonpb.InstrumentationScope, scopeURL string) {
		line.identity(res.GetAttributes())
		items = append(items, Item{line.value(), resourceOf(res, resURL), scopeOf(scope, scopeURL)})
	}
	for _, rs := range r.Traces.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				add(spanLine(s), rs.GetResource(), rs.GetSchemaUrl(), ss.GetScope(), ss.GetSchemaUrl())
			}
		}
	}
	for _, rm := range r.Metrics.GetResourceMetrics() {
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				for _, line := range pointLines(m) {
					add(line, rm.GetResource(), rm.GetSchemaUrl(), sm.GetScope(), sm.GetSchemaUrl())
				}
			}
		}
	}
	for _, rl := range r.Logs.GetResourceLogs() {
		for _, sl := range rl.GetScopeLogs() {
			for _, l := range sl.GetLogRecords() {
				add(logLine(l), rl.GetResource(), rl.GetSchemaUrl(), sl.GetScope(), sl.GetSchemaUrl())
			}
		}
	}
	return items
}

func spanLine(s *tracepb.Span) object {
	var o object
	o.add("type", str("span"))
	o.text("name", s.GetName())
	o.id("trace_id", s.GetTraceId())
	o.id("span_id", s.GetSpanId())
	o.id("parent_id", s.GetParentSpanId())
	if kind := s.GetKind(); kind != tracepb.Span_SPAN_KIND_INTERNAL {
		o.enum("kind", int32(kind), map[int32]string{0: "unspecified", 2: "server", 3: "client", 4: "producer", 5: "consumer"})
	}
	o.add("start_ns", unsigned(s.GetStartTimeUnixNano()))
	o.duration(s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano())
	if code := s.GetStatus().GetCode(); code != tracepb.Status_STATUS_CODE_UNSET {
		o.enum("status", int32(code), map[int32]string{1: "OK", 2: "ERROR"})
	}
	o.text("status_message", s.GetStatus().GetMessage())
	o.attributes("attributes", s.GetAttributes())
	o.list("events", list(s.GetEvents(), event))
	o.list("links", list(s.GetLinks(), link))
	o.text("trace_state", s.GetTraceState())
	o.count("flags", uint64(s.GetFlags()))
	o.count("dropped_attributes", uint64(s.GetDroppedAttributesCount()))
	o.count("dropped_events", uint64(s.GetDroppedEventsCount()))
	o.count("dropped_links", uint64(s.GetDroppedLinksCount()))
	return o
}

// duration writes end − start in nanoseconds, or the end itself where that does not fit 64 bits.
func (o *object) duration(start, end uint64) {
	d := int64(end - start) // Wraps where it does not fit; then its sign is wrong.
	switch {
	case (d < 0) != (end < start):
		o.add("end_ns", unsigned(end))
	case d != 0:
		o.add("duration_ns", integer(d))
	}
}

func event(e *tracepb.Span_Event) Value {
	var o object
	o.text("name", e.GetName())
	o.add("time_ns", unsigned(e.GetTimeUnixNano()))
	o.attributes("attributes", e.GetAttributes())
	o.count("dropped_attributes", uint64(e.GetDroppedAttributesCount()))
	return o.value()
}

func link(l *tracepb.Span_Link) Value {
	var o object
	o.id("trace_id", l.GetTraceId())
	o.id("span_id", l.GetSpanId())
	o.attributes("attributes", l.GetAttributes())
	o.text("trace_state", l.GetTraceState())
	o.count("flags", uint64(l.GetFlags()))
	o.count("dropped_attributes", uint64(l.GetDroppedAttributesCount()))
	return o.value()
}

func logLine(l *logspb.LogRecord) object {
	var o object
	o.add("type", str("log"))
	o.add("time_ns", unsigned(l.GetTimeUnixNano()))
	o.count("observed_ns", l.GetObservedTimeUnixNano())
	if n := l.GetSeverityNumber(); n != 0 {
		o.add("severity_number", integer(int32(n)))
	}
	o.text("severity_text", l.GetSeverityText())
	o.text("event_name", l.GetEventName())
	if l.GetBody().GetValue() != nil {
		o.add("body", anyValue(l.GetBody(), 1))
	}
	o.id("trace_id", l.GetTraceId())
	o.id("span_id", l.GetSpanId())
	o.count("flags", uint64(l.GetFlags()))
	o.attributes("attributes", l.GetAttributes())
	o.count("dropped_attributes", uint64(l.GetDroppedAttributesCount()))
	return o
}

// pointLines returns the lines of a metric, one a point.
func pointLines(m *metricspb.Metric) []object {
	head := func(kind string, temporality metricspb.AggregationTemporality, monotonic bool) object {
		var o object
		o.add("type", str("metric"))
		o.text("name", m.GetName())
		o.add("kind", str(kind))
		o.text("unit", m.GetUnit())
		o.text("description", m.GetDescription())
		if temporality != 0 {
			o.enum("temporality", int32(temporality), map[int32]string{1: "delta", 2: "cumulative"})
		}
		if monotonic {
			o.add("monotonic", boolean(true))
		}
		return o
	}
	var lines []object
	for _, p := range m.GetGauge().GetDataPoints() {
		lines = append(lines, numberPoint(head("gauge", 0, false), p, m.GetMetadata()))
	}
	for _, p := range m.GetSum().GetDataPoints() {
		o := head("sum", m.GetSum().GetAggregationTemporality(), m.GetSum().GetIsMonotonic())
		lines = append(lines, numberPoint(o, p, m.GetMetadata()))
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		o := head("histogram", m.GetHistogram().GetAggregationTemporality(), false)
		o.times(p)
		o.add("count", unsigned(p.GetCount()))
		o.optional("sum", p.Sum)
		o.optional("min", p.Min)
		o.optional("max", p.Max)
		o.list("bounds", list(p.GetExplicitBounds(), double))
		o.list("buckets", list(p.GetBucketCounts(), unsigned[uint64]))
		o.pointTail(p, p.GetExemplars(), m.GetMetadata())
		lines = append(lines, o)
	}
	for _, p := range m.GetExponentialHistogram().GetDataPoints() {
		o := head("exponential_histogram", m.GetExponentialHistogram().GetAggregationTemporality(), false)
		o.times(p)
		o.add("count", unsigned(p.GetCount()))
		o.optional("sum", p.Sum)
		o.optional("min", p.Min)
		o.optional("max", p.Max)
		if p.GetScale() != 0 {
			o.add("scale", integer(p.GetScale()))
		}
		o.count("zero_count", p.GetZeroCount())
		if math.Float64bits(p.GetZeroThreshold()) != 0 {
			o.add("zero_threshold", double(p.GetZeroThreshold()))
		}
		o.buckets("positive", p.GetPositive())
		o.buckets("negative", p.GetNegative())
		o.pointTail(p, p.GetExemplars(), m.GetMetadata())
		lines = append(lines, o)
	}
	for _, p := range m.GetSummary().GetDataPoints() {
		o := head("summary", 0, false)
		o.times(p)
		o.add("count", unsigned(p.GetCount()))
		o.add("sum", double(p.GetSum()))
		o.list("quantiles", list(p.GetQuantileValues(), func(q *metricspb.SummaryDataPoint_ValueAtQuantile) Value {
			return Value{Kind: List, List: []Value{double(q.GetQuantile()), double(q.GetValue())}}
		}))
		o.pointTail(p, nil, m.GetMetadata())
		lines = append(lines, o)
	}
	return lines
}

func numberPoint(o object, p *metricspb.NumberDataPoint, metadata []*commonpb.KeyValue) object {
	o.times(p)
	switch v := p.GetValue().(type) {
	case *metricspb.NumberDataPoint_AsInt:
		o.add("value", integer(v.AsInt))
	case *metricspb.NumberDataPoint_AsDouble:
		o.add("value", double(v.AsDouble))
	default:
		o.add("value", Value{})
	}
	o.pointTail(p, p.GetExemplars(), metadata)
	return o
}

// point is what the points of all kinds have.
type point interface {
	GetStartTimeUnixNano() uint64
	GetTimeUnixNano() uint64
	GetAttributes() []*commonpb.KeyValue
	GetFlags() uint32
}

func (o *object) times(p point) {
	o.add("start_ns", unsigned(p.GetStartTimeUnixNano()))
	o.add("time_ns", unsigned(p.GetTimeUnixNano()))
}

func (o *object) pointTail(p point, exemplars []*metricspb.Exemplar, metadata []*commonpb.KeyValue) {
	o.attributes("attributes", p.GetAttributes())
	o.list("exemplars", list(exemplars, exemplar))
	o.count("flags", uint64(p.GetFlags()))
	o.attributes("metadata", metadata)
}

func (o *object) buckets(key string, b *metricspb.ExponentialHistogramDataPoint_Buckets) {
	var inner object
	if b.GetOffset() != 0 {
		inner.add("offset", integer(b.GetOffset()))
	}
	inner.list("buckets", list(b.GetBucketCounts(), unsigned[uint64]))
	o.group(key, inner.value())
}

func exemplar(e *metricspb.Exemplar) Value {
	var o object
	o.add("time_ns", unsigned(e.GetTimeUnixNano()))
	switch v := e.GetValue().(type) {
	case *metricspb.Exemplar_AsInt:
		o.add("value", integer(v.AsInt))
	case *metricspb.Exemplar_AsDouble:
		o.add("value", double(v.AsDouble))
	default:
		o.add("value", Value{})
	}
	o.id("trace_id", e.GetTraceId())
	o.id("span_id", e.GetSpanId())
	o.attributes("attributes", e.GetFilteredAttributes())
	return o.value()
}

func resourceOf(r *resourcepb.Resource, schemaURL string) Value {
	var o object
	o.attributes("attributes", r.GetAttributes())
	o.text("schema_url", schemaURL)
	o.count("dropped_attributes", uint64(r.GetDroppedAttributesCount()))
	o.list("entity_refs", list(r.GetEntityRefs(), func(e *commonpb.EntityRef) Value {
		var ref object
		ref.text("schema_url", e.GetSchemaUrl())
		ref.text("type", e.GetType())
		ref.list("id_keys", list(e.GetIdKeys(), str))
		ref.list("description_keys", list(e.GetDescriptionKeys(), str))
		return ref.value()
	}))
	return o.value()
}

func scopeOf(s *commonpb.InstrumentationScope, schemaURL string) Value {
	var o object
	o.text("name", s.GetName())
	o.text("version", s.GetVersion())
	o.attributes("attributes", s.GetAttributes())
	o.text("schema_url", schemaURL)
	o.count("dropped_attributes", uint64(s.GetDroppedAttributesCount()))
	return o.value()
}

// identity adds run, rank and service of a resource, by the rules of the format's description.
func (o *object) identity(resource []*commonpb.KeyValue) {
	o.text("run", run(resource))
	if n, ok := rank(resource); ok {
		o.add("rank", integer(n))
	}
	o.text("service", textOf(resource, "service.name"))
}

func run(resource []*commonpb.KeyValue) string {
	for _, key := range []string{"nemo.run.id", "nv.dl.run.uuid", "nv.dl.job.uuid"} {
		if v := textOf(resource, key); v != "" {
			return v
		}
	}
	job := textOf(resource, "slurm.job.id")
	array, task := textOf(resource, "slurm.array.job_id"), textOf(resource, "slurm.array.task_id")
	// A job that is no array is its own array with the task "0" to newer senders, which also put the task into the id.
	if job != "" && array != "" && array != job && task != "" && !strings.Contains(job, "_") {
		return array + "_" + task
	}
	return job
}

func rank(resource []*commonpb.KeyValue) (int64, bool) {
	for _, key := range []string{"nv.dl.rank", "dl.rank"} {
		if n, ok := rankNumber(textOf(resource, key)); ok {
			return n, true
		}
	}
	instance := textOf(resource, "service.instance.id")
	if i := strings.LastIndex(instance, "-rank"); i >= 0 {
		return rankNumber(instance[i+len("-rank"):])
	}
	return 0, false
}

func rankNumber(text string) (int64, bool) {
	if strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= math.MaxInt32
}

// textOf is the text, or the integer in decimal, of the first attribute of that key; else "".
func textOf(attributes []*commonpb.KeyValue, key string) string {
	for _, kv := range attributes {
		if kv.GetKey() != key {
			continue
		}
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			return v.StringValue
		case *commonpb.AnyValue_IntValue:
			return strconv.FormatInt(v.IntValue, 10)
		}
		return ""
	}
	return ""
}

// maxDepth bounds nesting: a list or map deeper than this is replaced by cut. An attribute's value and a log record's
// body stand at depth 1.
const maxDepth = 64

var cut = str("[cut: nested deeper than 64]")

func anyValue(v *commonpb.AnyValue, depth int) Value {
	switch t := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return str(t.StringValue)
	case *commonpb.AnyValue_BoolValue:
		return boolean(t.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return integer(t.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return double(t.DoubleValue)
	case *commonpb.AnyValue_BytesValue:
		return only("@bytes", str(base64.StdEncoding.EncodeToString(t.BytesValue)))
	case *commonpb.AnyValue_ArrayValue:
		if depth > maxDepth {
			return cut
		}
		return list(t.ArrayValue.GetValues(), func(v *commonpb.AnyValue) Value { return anyValue(v, depth+1) })
	case *commonpb.AnyValue_KvlistValue:
		if depth > maxDepth {
			return cut
		}
		return keyValues(t.KvlistValue.GetValues(), depth+1)
	case nil:
		return Value{}
	}
	panic(fmt.Sprintf("the format has no rule for a value of type %T", v.GetValue()))
}

// keyValues is a JSON object, with the two ways out of what an object cannot say: keys that are repeated, or may be once
// they are repaired, and a key that looks like one of the format's own marks. The values stand at depth.
func keyValues(kvs []*commonpb.KeyValue, depth int) Value {
	plain := Value{Kind: Map}
	pairs := Value{Kind: List}
	seen := map[string]bool{} // keys that are UTF-8; others may equal any when repaired
	for _, kv := range kvs {
		v := anyValue(kv.GetValue(), depth)
		plain.Members = append(plain.Members, Member{kv.GetKey(), v})
		pairs.List = append(pairs.List, Value{Kind: List, List: []Value{str(kv.GetKey()), v}})
		if utf8.ValidString(kv.GetKey()) {
			seen[kv.GetKey()] = true
		}
	}
	switch {
	case len(seen) < len(kvs):
		return only("@pairs", pairs)
	case len(kvs) == 1 && strings.HasPrefix(kvs[0].GetKey(), "@"):
		return only("@map", plain)
	}
	return plain
}

// object is a map in the making. What is empty or zero is not added, except by add.
type object struct{ members []Member }

func (o *object) value() Value { return Value{Kind: Map, Members: o.members} }

func (o *object) add(key string, v Value) { o.members = append(o.members, Member{key, v}) }

func (o *object) text(key, s string) {
	if s != "" {
		o.add(key, str(s))
	}
}

func (o *object) count(key string, n uint64) {
	if n != 0 {
		o.add(key, unsigned(n))
	}
}

func (o *object) id(key string, id []byte) {
	if strings.Trim(string(id), "\x00") != "" {
		o.add(key, str(hex.EncodeToString(id)))
	}
}

func (o *object) enum(key string, n int32, names map[int32]string) {
	if name, ok := names[n]; ok {
		o.add(key, str(name))
		return
	}
	o.add(key, integer(n))
}

func (o *object) optional(key string, f *float64) {
	if f != nil {
		o.add(key, double(*f))
	}
}

func (o *object) list(key string, v Value) {
	if len(v.List) > 0 {
		o.add(key, v)
	}
}

func (o *object) attributes(key string, kvs []*commonpb.KeyValue) { o.group(key, keyValues(kvs, 1)) }

func (o *object) group(key string, v Value) {
	if len(v.Members) > 0 {
		o.add(key, v)
	}
}
