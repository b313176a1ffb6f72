// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package prometheus has a real Prometheus pull from the shipped config lenscol:prometheus, and take what
// lenscol:prometheus-remote-write pushes: `make e2e E2E=prometheus`.
package prometheus

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/prometheustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ranks     = 8
	processes = ranks + 1 // The last one is a checkpoint worker of rank 0.
	sends     = 2
	points    = sends * processes * 3
)

// Prometheus pulls, as docs/grafana.md has it, the metrics of all ranks, and those of the collector.
func TestPull(t *testing.T) {
	t.Parallel()
	page, own := testbed.FreePort(t), testbed.FreePort(t)
	collector := start(t, "prometheus", "LENSCOL_PROMETHEUS_PORT="+page, "LENSCOL_METRICS_PORT="+own)
	prometheus := prometheustest.Start(t, fmt.Sprintf(`
global: {scrape_interval: 500ms}
scrape_configs:
  - {job_name: lens, honor_labels: true, static_configs: [{targets: ["127.0.0.1:%s"]}]}
  - {job_name: lenscol, static_configs: [{targets: ["127.0.0.1:%s"]}]}
`, page, own), "--enable-feature=exemplar-storage")
	requireAll(t, collector, prometheus)

	for metric, value := range map[string]float64{
		`up{job="lenscol"}`:                                               1,
		"sum(otelcol_receiver_accepted_metric_points)":                    points,
		`sum(otelcol_exporter_sent_metric_points{exporter="jsonl"})`:      points,
		`sum(otelcol_exporter_sent_metric_points{exporter="prometheus"})`: points,
	} {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			series := prometheus.Query(metric)
			if assert.Len(c, series, 1, metric) {
				assert.Equal(c, value, series[0].Value, metric)
			}
		}, time.Minute, 100*time.Millisecond)
	}
	collector.Stop()
}

// The collector pushes to Prometheus the metrics of all ranks.
func TestRemoteWrite(t *testing.T) {
	t.Parallel()
	prometheus := prometheustest.Start(t, "", "--web.enable-remote-write-receiver", "--enable-feature=exemplar-storage")
	collector := start(t, "prometheus-remote-write", "LENSCOL_REMOTE_WRITE="+prometheus.URL+"/api/v1/write")
	requireAll(t, collector, prometheus)
	collector.Stop()
}

func start(t *testing.T, config string, env ...string) *testbed.Collector {
	t.Helper()
	return testbed.Start(t, testbed.Options{
		Args: []string{"--config", "lenscol:" + config}, Env: append(env, "LENSCOL_HOST=127.0.0.1", "LENSCOL_HEALTH_PORT="+testbed.FreePort(t))})
}

// requireAll sends twice what the ranks measure, and each time waits until Prometheus has it, to the last bit: a series a process, of
// histograms a series a process and bucket, and the exemplars with their traces.
func requireAll(t *testing.T, collector *testbed.Collector, prometheus *prometheustest.Prometheus) {
	t.Helper()
	client := collector.Client()
	defer client.Close()
	var exemplars []string
	for n := range sends {
		m := moment{n, time.Now()}
		body, err := proto.Marshal(m.request())
		require.NoError(t, err)
		require.NoError(t, client.GRPC(t.Context(), "metrics", body, true))
		want := m.series()
		exemplars = append(exemplars, m.exemplars()...)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			got := map[string][]float64{}
			for _, s := range prometheus.Query(`{__name__=~"megatron_.*", nemo_run_id="run-1"}`) {
				key := seriesText(s.Labels)
				got[key] = append(got[key], s.Value)
			}
			assert.Equal(c, want, got)
		}, time.Minute, 200*time.Millisecond)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			var got []string
			for _, e := range prometheus.Exemplars("megatron_training_step_duration_ms_milliseconds_bucket") {
				got = append(got, exemplarText(seriesText(e.Series), e.Labels["trace_id"], e.Labels["span_id"], e.Value, e.Time))
			}
			assert.ElementsMatch(c, exemplars, got)
		}, time.Minute, 200*time.Millisecond)
	}
}

// seriesText is a series by name and the labels that docs/grafana.md promises.
func seriesText(labels map[string]string) string {
	le := labels["le"] // 1, or 1.0 where Prometheus pulled it
	if f, err := strconv.ParseFloat(le, 64); err == nil {
		le = fmt.Sprint(f)
	}
	return series(labels["__name__"], labels["rank"], labels["instance"], labels["host"], labels["job"], le)
}

func series(name, rank, instance, host, job, le string) string {
	return fmt.Sprintf("%s of rank %s, instance %q, host %q, job %q, le %q", name, rank, instance, host, job, le)
}

func exemplarText(series, trace, span string, value, seconds float64) string {
	return fmt.Sprintf("%s: trace %s span %s value %v at %.3f", series, trace, span, value, seconds)
}

// moment is what all processes measure at one time.
type moment struct {
	n  int // which one, from 0
	at time.Time
}

var bounds = []float64{1, 10, 100}

func (m moment) loss(process int) float64 { return float64(process+1)/3 + float64(m.n) }
func (m moment) tokens(process int) int64 { return 1<<40 + int64(process+1000*m.n) }
func (m moment) buckets(process int) []uint64 {
	return []uint64{uint64(m.n + 1), uint64(process + 1), 0, uint64(m.n + 2)}
}
func (m moment) sum(process int) float64 { return 1234.5 + float64(process) + float64(m.n) }

// ids are of the span in which an exemplar was measured, one a process, moment and bucket.
func (m moment) ids(process, bucket int) (trace, span []byte) {
	span = binary.BigEndian.AppendUint64(nil, uint64(1+process*1000+m.n*10+bucket))
	return append([]byte("lenscol!"), span...), span
}

func (m moment) request() *colmetricspb.ExportMetricsServiceRequest {
	req := &colmetricspb.ExportMetricsServiceRequest{}
	now, begin := uint64(m.at.UnixNano()), uint64(m.at.Add(-time.Minute).UnixNano())
	for process := range processes {
		exemplar := func(bucket int, value float64) *metricspb.Exemplar {
			trace, span := m.ids(process, bucket)
			return &metricspb.Exemplar{TimeUnixNano: now, TraceId: trace, SpanId: span, Value: &metricspb.Exemplar_AsDouble{AsDouble: value}}
		}
		var count uint64
		for _, n := range m.buckets(process) {
			count += n
		}
		sum := m.sum(process)
		rank, instance, _ := identity(process)
		role := "trainer"
		if process == ranks {
			role = "checkpoint"
		}
		req.ResourceMetrics = append(req.ResourceMetrics, &metricspb.ResourceMetrics{
			Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
				text("service.name", "megatron"), text("service.instance.id", instance), text("nemo.run.id", "run-1"), text("nv.dl.role", role),
				text("host.name", fmt.Sprint("node-", rank/4)), {Key: "dl.rank", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(rank)}}},
			}},
			ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: []*metricspb.Metric{
				{Name: "megatron.training.loss", Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: []*metricspb.NumberDataPoint{
					{TimeUnixNano: now, Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: m.loss(process)}},
				}}}},
				{Name: "megatron.training.tokens", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{
					AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, IsMonotonic: true,
					DataPoints: []*metricspb.NumberDataPoint{{StartTimeUnixNano: begin, TimeUnixNano: now, Value: &metricspb.NumberDataPoint_AsInt{AsInt: m.tokens(process)}}},
				}}},
				{Name: "megatron.training.step_duration_ms", Unit: "ms", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{
					AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE,
					DataPoints: []*metricspb.HistogramDataPoint{{
						StartTimeUnixNano: begin, TimeUnixNano: now, Count: count, Sum: &sum, ExplicitBounds: bounds, BucketCounts: m.buckets(process),
						Exemplars: []*metricspb.Exemplar{exemplar(1, 5), exemplar(3, 500)},
					}},
				}}},
			}}},
		})
	}
	return req
}

// series are what Prometheus must have of the moment.
func (m moment) series() map[string][]float64 {
	all := map[string][]float64{}
	for process := range processes {
		add := func(name, le string, value float64) { all[seriesOf(process, name, le)] = []float64{value} }
		add("megatron_training_loss", "", m.loss(process))
		add("megatron_training_tokens_total", "", float64(m.tokens(process)))
		add(duration+"_sum", "", m.sum(process))
		var count uint64
		for i, n := range m.buckets(process) {
			count += n
			le := "+Inf"
			if i < len(bounds) {
				le = fmt.Sprint(bounds[i])
			}
			add(duration+"_bucket", le, float64(count))
		}
		add(duration+"_count", "", float64(count))
	}
	return all
}

const duration = "megatron_training_step_duration_ms_milliseconds"

func seriesOf(process int, name, le string) string {
	rank, _, instance := identity(process)
	return series(name, strconv.Itoa(rank), instance, fmt.Sprint("node-", rank/4), "megatron", le)
}

// identity is the rank of a process, the instance id that it sends and the one that it has in Prometheus: NeMo Lens's checkpoint workers
// send that of their trainer.
func identity(process int) (rank int, sent, instance string) {
	if process == ranks {
		return 0, "run-1-rank0", "run-1-checkpoint-rank0"
	}
	sent = fmt.Sprint("run-1-rank", process)
	return process, sent, sent
}

func (m moment) exemplars() (all []string) {
	for process := range processes {
		for bucket, value := range map[int]float64{1: 5, 3: 500} {
			trace, span := m.ids(process, bucket)
			le := map[int]string{1: "10", 3: "+Inf"}[bucket]
			all = append(all, exemplarText(seriesOf(process, duration+"_bucket", le), hex.EncodeToString(trace), hex.EncodeToString(span), value,
				float64(m.at.UnixMilli())/1000))
		}
	}
	return all
}

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}
