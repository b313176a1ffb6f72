// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// one is a span, a collection and a log record that hold a text, an integer and a float wherever one fits.
func one(t testing.TB, text string, n int64, f float64) ([]sdktrace.ReadOnlySpan, *metricdata.ResourceMetrics, []sdklog.Record) {
	attrs := []attribute.KeyValue{
		attribute.String(text, text), attribute.Int64("n", n), attribute.Float64("f", f), attribute.StringSlice("list", []string{text}),
		attribute.ByteSlice("bytes", []byte(text)), attribute.Map("map", attribute.Slice(text, attribute.StringValue(text))),
	}
	res := resource.NewWithAttributes(text, attrs...)
	spans := tracetest.SpanStubs{{
		Name: text, Attributes: attrs, Resource: res, StartTime: time.Unix(0, n),
		Events: []sdktrace.Event{{Name: text, Attributes: attrs}, {}}, Links: []sdktrace.Link{{Attributes: attrs}, {}},
		Status: sdktrace.Status{Description: text},
	}}.Snapshots()

	rm := &metricdata.ResourceMetrics{Resource: res, ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: []metricdata.Metrics{
		{Name: text, Data: metricdata.Gauge[float64]{DataPoints: []metricdata.DataPoint[float64]{{Attributes: attribute.NewSet(attrs...), Value: f}}}},
		{Description: text, Unit: text, Data: metricdata.Histogram[float64]{DataPoints: []metricdata.HistogramDataPoint[float64]{{
			Bounds: []float64{f}, BucketCounts: []uint64{uint64(n), 0}, Sum: f,
			Exemplars: []metricdata.Exemplar[float64]{{FilteredAttributes: attrs, Value: f, TraceID: []byte(text)}},
		}}}},
	}}}}

	keep := &records{}
	var record log.Record
	record.SetBody(log.MapValue(log.KeyValue{Key: text, Value: log.SliceValue(log.StringValue(text), log.Float64Value(f), log.BytesValue([]byte(text)))}))
	record.AddAttributes(log.String(text, text), log.Int64("n", n), log.Bool("b", true), log.Empty("none"))
	record.SetEventName(text)
	record.SetSeverityText(text)
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(res), sdklog.WithProcessor(sdklog.NewSimpleProcessor(keep)))
	provider.Logger("test").Emit(t.Context(), record)
	return spans, rm, keep.all
}

type records struct{ all []sdklog.Record }

func (r *records) Export(_ context.Context, batch []sdklog.Record) error {
	for i := range batch {
		r.all = append(r.all, batch[i].Clone())
	}
	return nil
}
func (*records) Shutdown(context.Context) error   { return nil }
func (*records) ForceFlush(context.Context) error { return nil }

// FuzzLines holds that whatever comes, each thing is one line of JSON in ASCII that reads back the same text.
func FuzzLines(f *testing.F) {
	for _, text := range []string{"", "train.step", "é\u2028\x00\x7f\"\\\n", "\xff\xc0broken", "\U0001F600", `","a": {`} {
		f.Add(text, int64(-1), 0.1)
		f.Add(text, int64(math.MaxInt64), 1e16)
	}
	f.Add("f", int64(-88), -33.5)
	f.Fuzz(func(t *testing.T, text string, n int64, number float64) {
		if math.IsNaN(number) || math.IsInf(number, 0) {
			t.Skip("stand bare, as Python writes them")
		}
		var out bytes.Buffer
		console := New(&out)
		spans, rm, records := one(t, text, n, number)
		require.NoError(t, console.Spans().ExportSpans(t.Context(), spans))
		require.NoError(t, console.Metrics().Export(t.Context(), rm))
		require.NoError(t, console.Logs().Export(t.Context(), records))
		var lines []string
		for line := range strings.Lines(out.String()) {
			lines = append(lines, line)
			require.True(t, json.Valid([]byte(line)), "%s", line)
			for i := range len(line) - 1 {
				require.True(t, line[i] >= ' ' && line[i] < '\x7f', "byte %d of %s", i, line)
			}
		}
		require.Len(t, lines, 3)
		repaired := string([]rune(text)) // U+FFFD for each bad byte
		var span struct {
			Name       string
			Attributes map[string]any
			Status     struct{ Description string }
		}
		require.NoError(t, json.Unmarshal([]byte(lines[0]), &span))
		require.Equal(t, repaired, span.Name)
		require.Equal(t, repaired, span.Status.Description)
		if text != "f" { // else the key is there for the text
			require.Equal(t, number, span.Attributes["f"])
		}
	})
}

// TestFloats has what json.dumps of Python 3.13 prints.
func TestFloats(t *testing.T) {
	for _, tt := range []struct {
		f    float64
		want string
	}{
		{0, "0.0"}, {math.Copysign(0, -1), "-0.0"}, {1, "1.0"}, {-1.5, "-1.5"}, {0.1, "0.1"}, {1e15, "1000000000000000.0"},
		{9999999999999998, "9999999999999998.0"}, {1e16, "1e+16"}, {-1e16, "-1e+16"}, {12345678901234567, "1.2345678901234568e+16"},
		{math.MaxFloat64, "1.7976931348623157e+308"}, {1e-3, "0.001"}, {1e-4, "0.0001"}, {0.00012345, "0.00012345"},
		{9.999999999999999e-05, "9.999999999999999e-05"}, {1e-5, "1e-05"}, {2.5e-9, "2.5e-09"}, {math.SmallestNonzeroFloat64, "5e-324"},
		{1. / 3, "0.3333333333333333"}, {math.NaN(), "NaN"}, {math.Inf(1), "Infinity"}, {math.Inf(-1), "-Infinity"},
	} {
		require.Equal(t, tt.want, string(appendFloat(nil, tt.f)))
	}
}

// TestTimes has what the SDK's ns_to_iso_str prints.
func TestTimes(t *testing.T) {
	for nanos, want := range map[int64]string{
		0:                         "1970-01-01T00:00:00.000000Z",
		500:                       "1970-01-01T00:00:00.000000Z",
		501:                       "1970-01-01T00:00:00.000001Z",
		2500:                      "1970-01-01T00:00:00.000002Z",
		999_999_500:               "1970-01-01T00:00:01.000000Z",
		1_700_000_000_123_456_500: "2023-11-14T22:13:20.123456Z",
		1_795_957_084_850_030_783: "2026-11-29T12:58:04.850031Z",
		math.MaxInt64:             "2262-04-11T23:47:16.854776Z",
	} {
		require.Equal(t, `"`+want+`"`, string(appendTime(nil, time.Unix(0, nanos))), nanos)
	}
	require.Equal(t, "null", string(appendTime(nil, time.Time{})))
}

// TestTraceStates has what repr of TraceState.from_header prints, as JSON.
func TestTraceStates(t *testing.T) {
	for header, want := range map[string]string{
		"":                  `"[]"`,
		"vendor=a:b":        `"['{key=vendor, value=a:b}']"`,
		"a=1,b=2":           `"['{key=a, value=1}', '{key=b, value=2}']"`,
		`a=it's`:            `"[\"{key=a, value=it's}\"]"`,
		`a=it's "so"`:       `"['{key=a, value=it\\'s \"so\"}']"`,
		`a=back\slash`:      `"['{key=a, value=back\\\\slash}']"`,
		"tenant@vendor=x-y": `"['{key=tenant@vendor, value=x-y}']"`,
	} {
		state, err := trace.ParseTraceState(header)
		require.NoError(t, err)
		require.Equal(t, want, string(appendTraceState(nil, state)))
	}
}

// TestPointsThatNoCaptureHas follows the form of Python's SDK; summaries are not its.
func TestPointsThatNoCaptureHas(t *testing.T) {
	attrs := attribute.NewSet(attribute.Int("rank", 3))
	start, now := time.Unix(0, 1), time.Unix(0, 2)
	for _, tt := range []struct {
		data metricdata.Aggregation
		want string
	}{
		{
			metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{{Attributes: attrs, StartTime: start, Time: now, Value: 7}}},
			`{"data_points": [{"attributes": {"rank": 3}, "start_time_unix_nano": null, "time_unix_nano": 2, "value": 7, "exemplars": []}]}`,
		},
		{
			metricdata.ExponentialHistogram[float64]{Temporality: metricdata.DeltaTemporality, DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{{
				Attributes: attrs, StartTime: start, Time: now, Count: 3, Sum: 4.5, Scale: 20, ZeroCount: 1,
				PositiveBucket: metricdata.ExponentialBucket{Offset: -2, Counts: []uint64{1, 1}}, Min: metricdata.NewExtrema(0.5),
			}}},
			`{"data_points": [{"attributes": {"rank": 3}, "start_time_unix_nano": 1, "time_unix_nano": 2, "count": 3, "sum": 4.5, "scale": 20, "zero_count": 1, ` +
				`"positive": {"offset": -2, "bucket_counts": [1, 1]}, "negative": {"offset": 0, "bucket_counts": []}, "flags": 0, "min": 0.5, "max": null, ` +
				`"exemplars": []}], "aggregation_temporality": 1}`,
		},
		{
			metricdata.Summary{DataPoints: []metricdata.SummaryDataPoint{{
				Attributes: attrs, StartTime: start, Time: now, Count: 3, Sum: 4.5, QuantileValues: []metricdata.QuantileValue{{Quantile: .5, Value: 1}},
			}}},
			`{"data_points": [{"attributes": {"rank": 3}, "start_time_unix_nano": 1, "time_unix_nano": 2, "count": 3, "sum": 4.5, ` +
				`"quantile_values": [{"quantile": 0.5, "value": 1.0}]}]}`,
		},
		{nil, "null"},
	} {
		require.Equal(t, tt.want, string(appendData(nil, tt.data)))
	}
}

// TestNestingIsBounded nests deeper than values are followed.
func TestNestingIsBounded(t *testing.T) {
	value, body := attribute.IntValue(1), log.IntValue(1)
	for range 2 * maxDepth {
		value, body = attribute.MapValue(attribute.KeyValue{Key: "k", Value: attribute.SliceValue(value)}), log.MapValue(log.Slice("k", body))
	}
	a, b := string(appendValue(nil, value, 1)), string(appendLogValue(nil, body, 1))
	require.Equal(t, a, b)
	require.True(t, json.Valid([]byte(a)))
	require.Equal(t, maxDepth, strings.Count(a, "{")+strings.Count(strings.ReplaceAll(a, tooDeep, ""), "["))
	require.Contains(t, a, tooDeep)
}

// TestThroughTheSDK lets the SDK's own reader collect.
func TestThroughTheSDK(t *testing.T) {
	var out bytes.Buffer
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(resource.Empty()),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(New(&out).Metrics())))
	require.NoError(t, provider.ForceFlush(t.Context()))
	require.Empty(t, out.String(), "a collection without metrics has no line")
	gauge, err := provider.Meter("nemo.lens").Float64Gauge("rl.reward.mean")
	require.NoError(t, err)
	gauge.Record(t.Context(), 0.42)
	require.NoError(t, provider.Shutdown(t.Context()))
	require.Regexp(t, `^\{"resource_metrics": \[\{"resource": \{"attributes": \{\}, "schema_url": ""\}, "scope_metrics": \[\{"scope": `+
		`\{"name": "nemo.lens", "version": "", "schema_url": "", "attributes": null\}, "metrics": \[\{"name": "rl.reward.mean", "description": "", "unit": "", `+
		`"data": \{"data_points": \[\{"attributes": \{\}, "start_time_unix_nano": null, "time_unix_nano": \d+, "value": 0.42, "exemplars": \[\]\}\]\}\}\], `+
		`"schema_url": ""\}\], "schema_url": ""\}\]\}\n$`, out.String())
}
