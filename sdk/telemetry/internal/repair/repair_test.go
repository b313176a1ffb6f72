// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

const bad, good = "a\xffz", "a\uFFFDz"

// kvs are attributes of every kind in which s stands.
func kvs(s string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("text", s), attribute.String(s, "key"), attribute.StringSlice("texts", []string{"é", s}),
		attribute.Slice("list", attribute.IntValue(1), attribute.StringValue(s), attribute.SliceValue(attribute.StringValue(s))),
		attribute.Map("map", attribute.String(s, s), attribute.Map("inner", attribute.String("k", s))),
		attribute.ByteSlice("bytes", []byte{0xff}), attribute.Int("int", 1),
	}
}

func TestAttributes(t *testing.T) {
	in := kvs(bad)
	got, isBad := Attributes(in)
	require.True(t, isBad)
	require.Equal(t, kvs(good), got)
	require.Equal(t, kvs(bad), in, "the list that came is as it was")

	fine := kvs("é\x00")
	got, isBad = Attributes(fine)
	require.False(t, isBad)
	require.Same(t, &fine[0], &got[0])
	_, isBad = Attributes(nil)
	require.False(t, isBad)
}

func scopeOf(s string) instrumentation.Scope {
	return instrumentation.Scope{Name: s, Version: s, SchemaURL: s, Attributes: attribute.NewSet(kvs(s)...)}
}

func spanOf(s string) tracetest.SpanStub {
	return tracetest.SpanStub{
		Name: s, Attributes: kvs(s), Status: sdktrace.Status{Code: codes.Error, Description: s}, InstrumentationScope: scopeOf(s),
		Events: []sdktrace.Event{{Name: "fine"}, {Name: s, Time: time.Unix(1, 0), Attributes: kvs(s), DroppedAttributeCount: 1}},
		Links:  []sdktrace.Link{{Attributes: kvs(s), DroppedAttributeCount: 2}}, ChildSpanCount: 3,
	}
}

func TestSpans(t *testing.T) {
	in := tracetest.SpanStubs{spanOf("fine"), spanOf(bad)}.Snapshots()
	first, second := in[0], in[1]
	got := Spans(in)
	want := tracetest.SpanStubs{spanOf("fine"), spanOf(good)}.Snapshots()
	require.Equal(t, tracetest.SpanStubsFromReadOnlySpans(want), tracetest.SpanStubsFromReadOnlySpans(got))
	require.Equal(t, first, got[0])
	require.Equal(t, second, in[1], "the batch that came is as it was")

	fine := in[:1]
	require.Same(t, &fine[0], &Spans(fine)[0])
}

// Each text of a span alone.
func TestSpansByField(t *testing.T) {
	for name, set := range map[string]func(*tracetest.SpanStub, string){
		"name":       func(s *tracetest.SpanStub, text string) { s.Name = text },
		"attributes": func(s *tracetest.SpanStub, text string) { s.Attributes = kvs(text) },
		"event":      func(s *tracetest.SpanStub, text string) { s.Events = []sdktrace.Event{{Name: text}} },
		"link":       func(s *tracetest.SpanStub, text string) { s.Links = []sdktrace.Link{{Attributes: kvs(text)}} },
		"status":     func(s *tracetest.SpanStub, text string) { s.Status.Description = text },
		"scope":      func(s *tracetest.SpanStub, text string) { s.InstrumentationScope.Version = text },
	} {
		t.Run(name, func(t *testing.T) {
			in, want := spanOf("fine"), spanOf("fine")
			set(&in, bad)
			set(&want, good)
			got := Spans([]sdktrace.ReadOnlySpan{in.Snapshot()})[0]
			require.Equal(t, tracetest.SpanStubFromReadOnlySpan(want.Snapshot()), tracetest.SpanStubFromReadOnlySpan(got))
		})
	}
}

func metricsOf(s string) *metricdata.ResourceMetrics {
	set := attribute.NewSet(kvs(s)...)
	ints := []metricdata.DataPoint[int64]{{Attributes: set, Exemplars: []metricdata.Exemplar[int64]{{FilteredAttributes: kvs(s)}}}}
	floats := []metricdata.DataPoint[float64]{{Attributes: set, Exemplars: []metricdata.Exemplar[float64]{{FilteredAttributes: kvs(s)}}}}
	exemplars := []metricdata.Exemplar[float64]{{FilteredAttributes: kvs(s)}}
	data := []metricdata.Aggregation{
		metricdata.Gauge[int64]{DataPoints: ints}, metricdata.Gauge[float64]{DataPoints: floats},
		metricdata.Sum[int64]{DataPoints: ints}, metricdata.Sum[float64]{DataPoints: floats},
		metricdata.Histogram[int64]{DataPoints: []metricdata.HistogramDataPoint[int64]{{Attributes: set}}},
		metricdata.Histogram[float64]{DataPoints: []metricdata.HistogramDataPoint[float64]{{Attributes: set, Exemplars: exemplars}}},
		metricdata.ExponentialHistogram[int64]{DataPoints: []metricdata.ExponentialHistogramDataPoint[int64]{{Attributes: set}}},
		metricdata.ExponentialHistogram[float64]{DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{{Attributes: set, Exemplars: exemplars}}},
		metricdata.Summary{DataPoints: []metricdata.SummaryDataPoint{{Attributes: set}}},
	}
	rm := &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Scope: scopeOf(s)}}}
	for _, d := range data {
		rm.ScopeMetrics[0].Metrics = append(rm.ScopeMetrics[0].Metrics, metricdata.Metrics{Name: s, Description: s, Unit: s, Data: d})
	}
	return rm
}

func TestMetrics(t *testing.T) {
	got := metricsOf(bad)
	Metrics(got)
	require.Equal(t, metricsOf(good), got)
}

type kept struct{ records []sdklog.Record }

func (k *kept) OnEmit(_ context.Context, r *sdklog.Record) error {
	k.records = append(k.records, r.Clone())
	return nil
}
func (*kept) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }
func (*kept) Shutdown(context.Context) error                         { return nil }
func (*kept) ForceFlush(context.Context) error                       { return nil }

// recordsOf is a record with s in each of its texts, and one each with s in one of them.
func recordsOf(t *testing.T, s string, wrap func(log.LoggerProvider) log.LoggerProvider) []sdklog.Record {
	var k kept
	logger := wrap(sdklog.NewLoggerProvider(sdklog.WithProcessor(&k))).Logger(s, log.WithInstrumentationVersion(s), log.WithSchemaURL(s),
		log.WithInstrumentationAttributes(kvs(s)...))
	fields := []func(*log.Record){
		func(r *log.Record) { r.SetBody(log.MapValue(log.String(s, s), log.Slice("l", log.StringValue(s)))) },
		func(r *log.Record) { r.SetSeverityText(s) },
		func(r *log.Record) { r.SetEventName(s) },
		func(r *log.Record) {
			for i := range 7 { // a record holds five in place
				r.AddAttributes(log.String(string(rune('a'+i)), s), log.Map("m", log.String(s, "key")), log.Bytes("b", []byte{0xff}))
			}
		},
	}
	var all log.Record
	all.SetObservedTimestamp(time.Unix(1, 0))
	for _, set := range fields {
		var r log.Record
		r.SetObservedTimestamp(time.Unix(1, 0))
		set(&r)
		set(&all)
		logger.Emit(t.Context(), r)
	}
	logger.Emit(t.Context(), all)
	return k.records
}

func same(p log.LoggerProvider) log.LoggerProvider { return p }

func TestRecords(t *testing.T) {
	in := recordsOf(t, bad, Loggers)
	require.Equal(t, recordsOf(t, good, same), Records(in))
	require.Equal(t, recordsOf(t, bad, Loggers), in, "the batch that came is as it was")

	fine := recordsOf(t, "fine", same)
	require.Same(t, &fine[0], &Records(fine)[0])
}

func BenchmarkSpans(b *testing.B) {
	batch := make(tracetest.SpanStubs, 512)
	for i := range batch {
		batch[i] = tracetest.SpanStub{Name: "train.step", Attributes: []attribute.KeyValue{
			attribute.Int("step", 7), attribute.String("phase", "warm"), attribute.Float64("loss", 0.5)}}
	}
	spans := batch.Snapshots()
	b.ReportAllocs()
	for b.Loop() {
		Spans(spans)
	}
}
