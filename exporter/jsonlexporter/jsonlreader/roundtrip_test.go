// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/pdata/xpdata"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

var resourceModes = []jsonlexporter.ResourceMode{jsonlexporter.ResourceReference, jsonlexporter.ResourceInline}

// TestCapturesComeBack: every request that a real program sent is read back from the archive as it was sent.
func TestCapturesComeBack(t *testing.T) {
	var sent []jsonlreader.Batch
	root := filepath.Join("..", "..", "..", "testdata", "captures")
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, ".pb") || strings.HasSuffix(path, ".json")) {
			sent = append(sent, request(t, path))
		}
		return err
	}))
	require.Greater(t, len(sent), 50)
	for _, mode := range resourceModes {
		t.Run(string(mode), func(t *testing.T) { requireComesBack(t, mode, sent) })
	}
}

// TestRandomTelemetryComesBack does the same with telemetry that uses every field and every kind of value.
func TestRandomTelemetryComesBack(t *testing.T) {
	for seed := range uint64(10) {
		for _, mode := range resourceModes {
			t.Run(fmt.Sprintf("%s %d", mode, seed), func(t *testing.T) {
				r := random{rand.New(rand.NewPCG(seed, 0))}
				var sent []jsonlreader.Batch
				for range 20 {
					sent = append(sent, r.traces(), r.metrics(), r.logs())
				}
				requireComesBack(t, mode, sent)
			})
		}
	}
}

// requireComesBack writes all batches to one file with the exporter, and holds what is read against them.
func requireComesBack(t *testing.T, mode jsonlexporter.ResourceMode, sent []jsonlreader.Batch) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "all.jsonl")
	cfg := jsonlexporter.NewFactory().CreateDefaultConfig().(*jsonlexporter.Config)
	cfg.Path, cfg.Resource, cfg.MinFreeBytes = path, mode, 0
	send(t, cfg, sent)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	res := readAll(t, string(text))
	require.Empty(t, res.errs)
	require.Zero(t, res.torn)
	require.Zero(t, res.stats.UnknownKeys)
	require.Zero(t, res.stats.UnknownLines)

	var want, got [][]byte
	for _, b := range sent {
		want = append(want, records(t, b)...)
	}
	for _, b := range res.batches {
		got = append(got, records(t, b)...)
	}
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, oneNaN(want[i]), got[i], "record %d", i)
	}
}

// oneNaN puts the NaN of the reader where protobuf bytes hold the one that Go makes of OTLP/JSON: the bits of a NaN are not kept.
func oneNaN(wire []byte) []byte {
	double := func(f float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)) }
	return bytes.ReplaceAll(wire, double(math.NaN()), double(quietNaN))
}

func send(t *testing.T, cfg *jsonlexporter.Config, batches []jsonlreader.Batch) {
	t.Helper()
	f := jsonlexporter.NewFactory()
	set := exportertest.NewNopSettings(f.Type())
	tr, err := f.CreateTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	me, err := f.CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	lo, err := f.CreateLogs(t.Context(), set, cfg)
	require.NoError(t, err)
	for _, e := range []component.Component{tr, me, lo} {
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	}
	for _, b := range batches {
		require.NoError(t, consume(t, b, tr, me, lo))
	}
	for _, e := range []component.Component{tr, me, lo} {
		require.NoError(t, e.Shutdown(t.Context()))
	}
}

func consume(t *testing.T, b jsonlreader.Batch, tr exporter.Traces, me exporter.Metrics, lo exporter.Logs) error {
	switch b.Signal {
	case pipeline.SignalTraces:
		return tr.ConsumeTraces(t.Context(), b.Traces)
	case pipeline.SignalMetrics:
		return me.ConsumeMetrics(t.Context(), b.Metrics)
	default:
		return lo.ConsumeLogs(t.Context(), b.Logs)
	}
}

// request reads a captured OTLP request, NN-<transport>-<signal>.<pb|json>.
func request(t *testing.T, path string) (b jsonlreader.Batch) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	text := strings.HasSuffix(path, ".json")
	switch name := filepath.Base(path); {
	case strings.Contains(name, "-traces."):
		req := ptraceotlp.NewExportRequest()
		err = unmarshal(text, data, req.UnmarshalJSON, req.UnmarshalProto)
		b.Signal, b.Traces = pipeline.SignalTraces, req.Traces()
	case strings.Contains(name, "-metrics."):
		req := pmetricotlp.NewExportRequest()
		err = unmarshal(text, data, req.UnmarshalJSON, req.UnmarshalProto)
		b.Signal, b.Metrics = pipeline.SignalMetrics, req.Metrics()
	default:
		req := plogotlp.NewExportRequest()
		err = unmarshal(text, data, req.UnmarshalJSON, req.UnmarshalProto)
		b.Signal, b.Logs = pipeline.SignalLogs, req.Logs()
	}
	require.NoError(t, err, path)
	return b
}

func unmarshal(text bool, data []byte, fromJSON, fromProto func([]byte) error) error {
	if text {
		return fromJSON(data)
	}
	return fromProto(data)
}

// random makes telemetry from the edges of every field.
type random struct{ *rand.Rand }

func pick[T any](r random, of ...T) T { return of[r.IntN(len(of))] }

func (r random) coin() bool { return r.IntN(2) == 0 }

func (r random) times(most int, f func()) {
	for range r.IntN(most + 1) {
		f()
	}
}

func (r random) text() string {
	return pick(r, "", "a", "name", "@double", "@map", "@pairs", "@bytes", "@x", "NaN", "é\u2028\u2029\u0085\x00\x1f\x7f\"\\/\n\r\t", "\U0001F600\ufffd\ufeff", strings.Repeat("x", 300))
}

func (r random) u64() uint64 {
	return pick(r, 0, 1, 1<<53+1, 1<<63, math.MaxInt64, math.MaxUint64, r.Uint64())
}
func (r random) i64() int64 { return int64(r.u64()) }
func (r random) u32() uint32 {
	return pick(r, 0, 1, 257, math.MaxUint32, r.Uint32())
}
func (r random) i32() int32              { return int32(r.u32()) }
func (r random) time() pcommon.Timestamp { return pcommon.Timestamp(r.u64()) }

func (r random) double() float64 {
	f := math.Float64frombits(r.Uint64())
	if math.IsNaN(f) {
		f = quietNaN
	}
	return pick(r, 0, math.Copysign(0, -1), 1, -1.5, 0.1, 1e-6, 9.99e-7, 1e20, 1e21, 1<<53+2, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), quietNaN, f)
}

func (r random) traceID() (id pcommon.TraceID) {
	if r.coin() {
		id[r.IntN(len(id))] = byte(r.u32())
	}
	return id
}

func (r random) spanID() (id pcommon.SpanID) {
	if r.coin() {
		id[r.IntN(len(id))] = byte(r.u32())
	}
	return id
}

func (r random) value(v pcommon.Value, depth int) {
	kinds := 8
	if depth > 6 {
		kinds = 6
	}
	switch r.IntN(kinds) {
	case 0:
	case 1:
		v.SetStr(r.text())
	case 2:
		v.SetBool(r.coin())
	case 3:
		v.SetInt(r.i64())
	case 4:
		v.SetDouble(r.double())
	case 5:
		v.SetEmptyBytes().FromRaw([]byte(r.text()))
	case 6:
		s := v.SetEmptySlice()
		r.times(3, func() { r.value(s.AppendEmpty(), depth+1) })
	default:
		r.pairs(v.SetEmptyMap(), depth+1)
	}
}

func (r random) pairs(m pcommon.Map, depth int) {
	var b xpdata.MapBuilder
	r.times(pick(r, 1, 1, 3, 40), func() { r.value(b.AppendEmpty(pick(r, r.text(), fmt.Sprint(r.IntN(100)))), depth) })
	b.UnsafeIntoMap(m)
}

func (r random) attributes(m pcommon.Map) {
	if r.coin() {
		r.pairs(m, pick(r, 0, 5))
	}
}

func (r random) resource(res pcommon.Resource) {
	r.attributes(res.Attributes())
	res.SetDroppedAttributesCount(r.u32())
	refs := entity.ResourceEntityRefs(res)
	r.times(2, func() {
		ref := refs.AppendEmpty()
		ref.SetSchemaUrl(r.text())
		ref.SetType(r.text())
		r.times(2, func() { ref.IdKeys().Append(r.text()) })
		r.times(2, func() { ref.DescriptionKeys().Append(r.text()) })
	})
}

func (r random) scope(s pcommon.InstrumentationScope) {
	s.SetName(r.text())
	s.SetVersion(r.text())
	r.attributes(s.Attributes())
	s.SetDroppedAttributesCount(r.u32())
}

func (r random) traces() jsonlreader.Batch {
	td := ptrace.NewTraces()
	r.times(3, func() {
		rs := td.ResourceSpans().AppendEmpty()
		rs.SetSchemaUrl(r.text())
		r.resource(rs.Resource())
		r.times(3, func() {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.SetSchemaUrl(r.text())
			r.scope(ss.Scope())
			r.times(3, func() { r.span(ss.Spans().AppendEmpty()) })
		})
	})
	return jsonlreader.Batch{Signal: pipeline.SignalTraces, Traces: td}
}

func (r random) span(s ptrace.Span) {
	s.SetName(r.text())
	s.SetTraceID(r.traceID())
	s.SetSpanID(r.spanID())
	s.SetParentSpanID(r.spanID())
	s.SetKind(ptrace.SpanKind(pick(r, r.i32(), int32(r.IntN(7)))))
	s.SetStartTimestamp(r.time())
	s.SetEndTimestamp(r.time())
	s.Status().SetCode(ptrace.StatusCode(pick(r, r.i32(), int32(r.IntN(4)))))
	s.Status().SetMessage(r.text())
	r.attributes(s.Attributes())
	r.times(2, func() {
		e := s.Events().AppendEmpty()
		e.SetName(r.text())
		e.SetTimestamp(r.time())
		r.attributes(e.Attributes())
		e.SetDroppedAttributesCount(r.u32())
	})
	r.times(2, func() {
		l := s.Links().AppendEmpty()
		l.SetTraceID(r.traceID())
		l.SetSpanID(r.spanID())
		r.attributes(l.Attributes())
		l.TraceState().FromRaw(r.text())
		l.SetFlags(r.u32())
		l.SetDroppedAttributesCount(r.u32())
	})
	s.TraceState().FromRaw(r.text())
	s.SetFlags(r.u32())
	s.SetDroppedAttributesCount(r.u32())
	s.SetDroppedEventsCount(r.u32())
	s.SetDroppedLinksCount(r.u32())
}

func (r random) logs() jsonlreader.Batch {
	ld := plog.NewLogs()
	r.times(3, func() {
		rl := ld.ResourceLogs().AppendEmpty()
		rl.SetSchemaUrl(r.text())
		r.resource(rl.Resource())
		r.times(3, func() {
			sl := rl.ScopeLogs().AppendEmpty()
			sl.SetSchemaUrl(r.text())
			r.scope(sl.Scope())
			r.times(3, func() {
				l := sl.LogRecords().AppendEmpty()
				l.SetTimestamp(r.time())
				l.SetObservedTimestamp(r.time())
				l.SetSeverityNumber(plog.SeverityNumber(r.i32()))
				l.SetSeverityText(r.text())
				l.SetEventName(r.text())
				r.value(l.Body(), 0)
				l.SetTraceID(r.traceID())
				l.SetSpanID(r.spanID())
				l.SetFlags(plog.LogRecordFlags(r.u32()))
				r.attributes(l.Attributes())
				l.SetDroppedAttributesCount(r.u32())
			})
		})
	})
	return jsonlreader.Batch{Signal: pipeline.SignalLogs, Logs: ld}
}

func (r random) metrics() jsonlreader.Batch {
	md := pmetric.NewMetrics()
	r.times(3, func() {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.SetSchemaUrl(r.text())
		r.resource(rm.Resource())
		r.times(3, func() {
			sm := rm.ScopeMetrics().AppendEmpty()
			sm.SetSchemaUrl(r.text())
			r.scope(sm.Scope())
			r.times(4, func() { r.metric(sm.Metrics().AppendEmpty()) })
		})
	})
	return jsonlreader.Batch{Signal: pipeline.SignalMetrics, Metrics: md}
}

// point is what the points of all kinds have.
type point interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
	Attributes() pcommon.Map
}

// histogram is what the points of both kinds of histograms have.
type histogram interface {
	point
	SetCount(uint64)
	SetSum(float64)
	SetMin(float64)
	SetMax(float64)
	Exemplars() pmetric.ExemplarSlice
}

func (r random) metric(m pmetric.Metric) {
	m.SetName(r.text())
	m.SetUnit(r.text())
	m.SetDescription(r.text())
	r.attributes(m.Metadata())
	temporality := pmetric.AggregationTemporality(pick(r, r.i32(), int32(r.IntN(4))))
	switch r.IntN(6) {
	case 0:
		r.times(3, func() { r.number(m.SetEmptyGauge().DataPoints().AppendEmpty()) })
	case 1:
		s := m.SetEmptySum()
		s.SetAggregationTemporality(temporality)
		s.SetIsMonotonic(r.coin())
		r.times(3, func() { r.number(s.DataPoints().AppendEmpty()) })
	case 2:
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(temporality)
		r.times(3, func() {
			p := h.DataPoints().AppendEmpty()
			r.histogram(p)
			r.times(3, func() { p.ExplicitBounds().Append(r.double()) })
			r.times(3, func() { p.BucketCounts().Append(r.u64()) })
		})
	case 3:
		h := m.SetEmptyExponentialHistogram()
		h.SetAggregationTemporality(temporality)
		r.times(3, func() {
			p := h.DataPoints().AppendEmpty()
			r.histogram(p)
			p.SetScale(r.i32())
			p.SetZeroCount(r.u64())
			p.SetZeroThreshold(r.double())
			for _, b := range []pmetric.ExponentialHistogramDataPointBuckets{p.Positive(), p.Negative()} {
				b.SetOffset(r.i32())
				r.times(3, func() { b.BucketCounts().Append(r.u64()) })
			}
		})
	case 4:
		s := m.SetEmptySummary()
		r.times(3, func() {
			p := s.DataPoints().AppendEmpty()
			r.point(p)
			p.SetCount(r.u64())
			p.SetSum(r.double())
			r.times(3, func() {
				q := p.QuantileValues().AppendEmpty()
				q.SetQuantile(r.double())
				q.SetValue(r.double())
			})
		})
	}
}

func (r random) point(p point) {
	p.SetStartTimestamp(r.time())
	p.SetTimestamp(r.time())
	p.SetFlags(pmetric.DataPointFlags(r.u32()))
	r.attributes(p.Attributes())
}

func (r random) number(p pmetric.NumberDataPoint) {
	r.point(p)
	switch r.IntN(3) {
	case 0:
		p.SetIntValue(r.i64())
	case 1:
		p.SetDoubleValue(r.double())
	}
	r.exemplars(p.Exemplars())
}

func (r random) histogram(p histogram) {
	r.point(p)
	p.SetCount(r.u64())
	for _, set := range []func(float64){p.SetSum, p.SetMin, p.SetMax} {
		if r.coin() {
			set(r.double())
		}
	}
	r.exemplars(p.Exemplars())
}

func (r random) exemplars(to pmetric.ExemplarSlice) {
	r.times(2, func() {
		e := to.AppendEmpty()
		e.SetTimestamp(r.time())
		switch r.IntN(3) {
		case 0:
			e.SetIntValue(r.i64())
		case 1:
			e.SetDoubleValue(r.double())
		}
		e.SetTraceID(r.traceID())
		e.SetSpanID(r.spanID())
		r.attributes(e.FilteredAttributes())
	})
}
