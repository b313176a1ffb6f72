// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package otlphttp

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server keeps the bodies it is sent, decompressed, and answers with answer.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	s := &server{}
	s.Server = httptest.NewServer(s.keep(t, answer))
	t.Cleanup(s.Close)
	return s
}

func (s *server) keep(t *testing.T, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			zr, err := gzip.NewReader(in)
			if err != nil {
				t.Error(err)
				return
			}
			in = zr
		}
		body, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, body)
		s.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}
}

// last is the last body, and how many there were.
func (s *server) last() (*http.Request, []byte, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.bodies)
	if n == 0 {
		return nil, nil, 0
	}
	return s.requests[n-1], s.bodies[n-1], n
}

func (s *server) target() target { return target{url: s.URL, json: true} }

var hexID = regexp.MustCompile(`("(?:traceId|spanId|parentSpanId)": ?")([0-9a-f]*)"`)

// readJSON reads a request as OTLP has it: ids in hex, all other bytes in base64.
func readJSON(t *testing.T, text []byte, request proto.Message) {
	text = hexID.ReplaceAllFunc(text, func(member []byte) []byte {
		parts := hexID.FindSubmatch(member)
		id, err := hex.DecodeString(string(parts[2]))
		require.NoError(t, err)
		return append(base64.StdEncoding.AppendEncode(parts[1], id), '"')
	})
	require.NoError(t, protojson.Unmarshal(text, request))
}

var attrs = []attribute.KeyValue{
	attribute.Bool("b", true), attribute.Int64("i", -1<<63), attribute.Float64("f", 0.5), attribute.String("s", "é\u2028\x00"),
	attribute.BoolSlice("bs", []bool{true, false}), attribute.Int64Slice("is", []int64{1, 1 << 62}),
	attribute.Float64Slice("fs", []float64{1, 2.5}), attribute.StringSlice("ss", []string{"", "traceId"}),
	attribute.ByteSlice("bytes", []byte{0, 0xff}),
}

var (
	res   = resource.NewWithAttributes("https://example.org/schema", attrs...)
	scope = instrumentation.Scope{Name: "nemo.lens", Version: "1", SchemaURL: "https://example.org/s", Attributes: attribute.NewSet(attrs...)}
	at    = time.Unix(1_795_957_084, 850_030_783)
)

func someSpans() []sdktrace.ReadOnlySpan {
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 15: 0xfe}, SpanID: trace.SpanID{2, 7: 0xab}, TraceFlags: 3, Remote: true})
	state, _ := trace.ParseTraceState("vendor=a:b")
	stubs := tracetest.SpanStubs{{Name: "plain", SpanContext: parent.WithRemote(false), Resource: res, InstrumentationScope: scope}}
	for kind := trace.SpanKindInternal; kind <= trace.SpanKindConsumer; kind++ {
		stubs = append(stubs, tracetest.SpanStub{
			Name: "all", SpanContext: parent.WithSpanID(trace.SpanID{byte(kind)}).WithTraceState(state), Parent: parent, SpanKind: kind,
			StartTime: at, EndTime: at.Add(time.Hour), Attributes: attrs,
			Events:            []sdktrace.Event{{Name: "e", Time: at, Attributes: attrs, DroppedAttributeCount: 1}},
			Links:             []sdktrace.Link{{SpanContext: parent.WithTraceState(state), Attributes: attrs, DroppedAttributeCount: 1}},
			Status:            sdktrace.Status{Code: codes.Error, Description: "lost"},
			DroppedAttributes: 1, DroppedEvents: 2, DroppedLinks: 3, Resource: res, InstrumentationScope: scope,
		})
	}
	return stubs.Snapshots()
}

func someMetrics() *metricdata.ResourceMetrics {
	set := attribute.NewSet(attrs...)
	exemplars := []metricdata.Exemplar[float64]{{FilteredAttributes: attrs, Time: at, Value: 1.5, SpanID: []byte{1, 7: 2}, TraceID: []byte{3, 15: 4}}}
	points := []metricdata.DataPoint[float64]{{Attributes: set, StartTime: at, Time: at, Value: 0.1, Exemplars: exemplars}}
	whole := []metricdata.DataPoint[int64]{{Attributes: set, StartTime: at, Time: at, Value: 1<<63 - 1}}
	buckets := metricdata.ExponentialBucket{Offset: -2, Counts: []uint64{1, 1 << 60}}
	return &metricdata.ResourceMetrics{Resource: res, ScopeMetrics: []metricdata.ScopeMetrics{{Scope: scope, Metrics: []metricdata.Metrics{
		{Name: "gauge", Description: "d", Unit: "ms", Data: metricdata.Gauge[float64]{DataPoints: points}},
		{Name: "sum", Data: metricdata.Sum[float64]{DataPoints: points, Temporality: metricdata.DeltaTemporality, IsMonotonic: true}},
		{Name: "count", Data: metricdata.Sum[int64]{DataPoints: whole, Temporality: metricdata.CumulativeTemporality}},
		{Name: "histogram", Data: metricdata.Histogram[float64]{
			Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.HistogramDataPoint[float64]{{
				Attributes: set, StartTime: at, Time: at, Count: 3, Sum: 4.5, Bounds: []float64{0, 1}, BucketCounts: []uint64{1, 1, 1},
				Min: metricdata.NewExtrema(0.), Max: metricdata.NewExtrema(3.), Exemplars: exemplars,
			}},
		}},
		{Name: "exponential", Data: metricdata.ExponentialHistogram[float64]{
			Temporality: metricdata.DeltaTemporality, DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{{
				Attributes: set, StartTime: at, Time: at, Count: 3, Sum: 4.5, Scale: -3, ZeroCount: 1, ZeroThreshold: .1,
				PositiveBucket: buckets, NegativeBucket: buckets, Exemplars: exemplars,
			}},
		}},
		{Name: "summary", Data: metricdata.Summary{DataPoints: []metricdata.SummaryDataPoint{{
			Attributes: set, StartTime: at, Time: at, Count: 3, Sum: 4.5, QuantileValues: []metricdata.QuantileValue{{Quantile: .5, Value: 1}},
		}}}},
	}}}}
}

func someLogs(t *testing.T) []sdklog.Record {
	keep := &records{}
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(res), sdklog.WithProcessor(sdklog.NewSimpleProcessor(keep)))
	ctx := trace.ContextWithSpanContext(t.Context(), someSpans()[0].SpanContext())
	var record log.Record
	record.SetTimestamp(at)
	record.SetObservedTimestamp(at)
	record.SetSeverity(log.SeverityError2)
	record.SetSeverityText("ERROR")
	record.SetEventName("ckpt")
	record.SetBody(log.MapValue(log.Slice("a", log.Int64Value(1), log.Float64Value(2.5), log.Value{}), log.Bytes("b", []byte{0xff})))
	record.AddAttributes(log.String("k", "v"), log.Map("m", log.Bool("x", true)))
	logger := provider.Logger("nemo.lens", log.WithInstrumentationVersion("1"))
	logger.Emit(ctx, record)
	var empty log.Record
	empty.SetObservedTimestamp(at)
	logger.Emit(context.Background(), empty)
	return keep.all
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

// target is where exporters send to, and how.
type target struct {
	url     string
	headers map[string]string
	config  *tls.Config
	json    bool
	retry   bool
	failed  chan struct{} // is told of each request that gets no answer, where there is room
}

// telling tells of requests that get no answer.
type telling struct {
	*transport
	failed chan struct{}
}

func (r telling) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.transport.RoundTrip(req)
	if err != nil {
		select {
		case r.failed <- struct{}{}:
		default:
		}
	}
	return resp, err
}

// exporter is what is left of an exporter when its signal does not count.
type exporter struct {
	signal   string
	export   func(context.Context) error
	shutdown func(context.Context) error
}

// exporters are OpenTelemetry's with our clients, to three paths.
func exporters(t *testing.T, to target) []exporter {
	client := func(s Signal) *http.Client {
		c := Protobuf(to.config)
		if to.json {
			c = JSON(s, to.config)
		}
		t.Cleanup(c.CloseIdleConnections)
		c.Transport = telling{c.Transport.(*transport), to.failed}
		return c
	}
	spans, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(to.url+"/v1/traces"), otlptracehttp.WithHeaders(to.headers),
		otlptracehttp.WithHTTPClient(client(Traces)), otlptracehttp.WithRetry(
			otlptracehttp.RetryConfig{Enabled: to.retry, InitialInterval: time.Millisecond, MaxInterval: time.Millisecond}))
	require.NoError(t, err)
	metrics, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL(to.url+"/v1/metrics"), otlpmetrichttp.WithHeaders(to.headers),
		otlpmetrichttp.WithHTTPClient(client(Metrics)), otlpmetrichttp.WithRetry(
			otlpmetrichttp.RetryConfig{Enabled: to.retry, InitialInterval: time.Millisecond, MaxInterval: time.Millisecond}))
	require.NoError(t, err)
	logs, err := otlploghttp.New(t.Context(), otlploghttp.WithEndpointURL(to.url+"/v1/logs"), otlploghttp.WithHeaders(to.headers),
		otlploghttp.WithHTTPClient(client(Logs)), otlploghttp.WithRetry(
			otlploghttp.RetryConfig{Enabled: to.retry, InitialInterval: time.Millisecond, MaxInterval: time.Millisecond}))
	require.NoError(t, err)
	batch, rm, records := someSpans(), someMetrics(), someLogs(t)
	all := []exporter{
		{"traces", func(ctx context.Context) error { return spans.ExportSpans(ctx, batch) }, spans.Shutdown},
		{"metrics", func(ctx context.Context) error { return metrics.Export(ctx, rm) }, metrics.Shutdown},
		{"logs", func(ctx context.Context) error { return logs.Export(ctx, records) }, logs.Shutdown},
	}
	for _, e := range all {
		t.Cleanup(func() { require.NoError(t, e.shutdown(context.Background())) })
	}
	return all
}

// eachEncoding runs a test for both.
func eachEncoding(t *testing.T, run func(t *testing.T, json bool)) {
	t.Run("protobuf", func(t *testing.T) { run(t, false) })
	t.Run("JSON", func(t *testing.T) { run(t, true) })
}
