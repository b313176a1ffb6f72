// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	contrib "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend takes remote write, once it is told to.
type backend struct {
	*httptest.Server
	mu       sync.Mutex
	status   int  // what it answers
	silent   bool // it does not answer
	requests int
	took     []float64 // values of the points, in the order in which they came
}

func newBackend(t *testing.T, status int) *backend {
	b := &backend{status: status}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, 0, 1<<16)
	for buf := make([]byte, 1<<12); ; {
		n, err := r.Body.Read(buf)
		if body = append(body, buf[:n]...); err != nil {
			break
		}
	}
	b.mu.Lock()
	b.requests++
	if b.silent {
		b.mu.Unlock()
		<-r.Context().Done()
		return
	}
	defer b.mu.Unlock()
	if b.status != http.StatusOK {
		w.WriteHeader(b.status)
		return
	}
	message, err := snappy.Decode(nil, body)
	var req prompb.WriteRequest
	if err == nil {
		err = req.Unmarshal(message)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, series := range req.Timeseries {
		for _, label := range series.Labels {
			if label.Name == "__name__" && label.Value == "loss" {
				b.took = append(b.took, series.Samples[0].Value)
			}
		}
	}
}

func (b *backend) set(status int, silent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status, b.silent = status, silent
}

func (b *backend) seen() (requests int, took []float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests, append([]float64(nil), b.took...)
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 5*time.Millisecond)
}

// config sends to a URL, with pauses of a test.
func config(url string) *contrib.Config {
	cfg := NewFactory().CreateDefaultConfig().(*contrib.Config)
	cfg.ClientConfig.Endpoint = url
	cfg.TargetInfo.Enabled = false
	cfg.BackOffConfig.InitialInterval = time.Millisecond
	cfg.BackOffConfig.MaxInterval = 5 * time.Millisecond
	cfg.BackOffConfig.MaxElapsedTime = 0
	return cfg
}

func setTimeout(cfg *contrib.Config, d time.Duration) {
	cfg.TimeoutSettings.Timeout, cfg.ClientConfig.Timeout = d, d // One key of the config.
}

func start(t *testing.T, cfg *contrib.Config, set exporter.Settings) exporter.Metrics {
	t.Helper()
	exp, err := NewFactory().CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, exp.Start(t.Context(), componenttest.NewNopHost()))
	return exp
}

func settings() exporter.Settings { return exportertest.NewNopSettings(NewFactory().Type()) }

func loss(value float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("loss")
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Unix(1795971377, 0).Add(time.Duration(value) * time.Second)))
	point.SetDoubleValue(value)
	return md
}

// A Prometheus that is away for longer than a send may take, that limits rates or that does not answer gets everything once it is back, in its order.
func TestNothingIsLostWhilePrometheusIsAway(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		silent bool
	}{
		{"away", http.StatusServiceUnavailable, false},
		{"limits rates", http.StatusTooManyRequests, false},
		{"silent", http.StatusOK, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBackend(t, tt.status)
			b.set(tt.status, tt.silent)
			cfg := config(b.URL)
			setTimeout(cfg, 20*time.Millisecond)
			exp := start(t, cfg, settings())
			for i := range 5 {
				require.NoError(t, exp.ConsumeMetrics(t.Context(), loss(float64(i))))
			}
			eventually(t, func() bool { requests, _ := b.seen(); return requests >= 30 })
			b.set(http.StatusOK, false)
			eventually(t, func() bool { _, took := b.seen(); return slices.Contains(took, 4) })
			require.NoError(t, exp.Shutdown(t.Context()))
			_, took := b.seen()
			require.Equal(t, []float64{0, 1, 2, 3, 4}, slices.Compact(took), "an answer that was late is a point sent twice")
		})
	}
}

// What is wrong with a request is not tried again.
func TestWhatIsRefusedIsGivenUp(t *testing.T) {
	b := newBackend(t, http.StatusBadRequest)
	exp := start(t, config(b.URL), settings())
	require.NoError(t, exp.ConsumeMetrics(t.Context(), loss(1)))
	eventually(t, func() bool { requests, _ := b.seen(); return requests == 1 })
	b.set(http.StatusOK, false)
	require.NoError(t, exp.ConsumeMetrics(t.Context(), loss(2)))
	require.NoError(t, exp.Shutdown(t.Context()))
	requests, took := b.seen()
	require.Equal(t, 2, requests)
	require.Equal(t, []float64{2}, took)
}

// At the end each request that waits is tried once, however long a send may take.
func TestTheEndDoesNotWait(t *testing.T) {
	b := newBackend(t, http.StatusServiceUnavailable)
	cfg := config(b.URL)
	setTimeout(cfg, time.Hour)
	exp := start(t, cfg, settings())
	const waiting = 50
	for i := range waiting {
		require.NoError(t, exp.ConsumeMetrics(t.Context(), loss(float64(i))))
	}
	ended := make(chan error, 1)
	go func() { ended <- exp.Shutdown(context.Background()) }()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it does not end")
	}
	requests, _ := b.seen()
	require.GreaterOrEqual(t, requests, waiting)
}

// Where Prometheus does not answer, the end does not wait for each request.
func TestTheEndDoesNotWaitForSilence(t *testing.T) {
	b := newBackend(t, http.StatusOK)
	b.set(http.StatusOK, true)
	cfg := config(b.URL)
	setTimeout(cfg, 20*time.Millisecond)
	exp := start(t, cfg, settings())
	for i := range 50 {
		require.NoError(t, exp.ConsumeMetrics(t.Context(), loss(float64(i))))
	}
	eventually(t, func() bool { requests, _ := b.seen(); return requests > 0 })
	before, _ := b.seen()
	require.NoError(t, exp.Shutdown(t.Context()))
	after, _ := b.seen()
	require.LessOrEqual(t, after-before, 10)
}

// A send is counted and told of once, as of every exporter.
func TestSendsAreCountedOnce(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	core, logs := observer.New(zap.InfoLevel)
	set := settings()
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	set.Logger = zap.New(core)
	b := newBackend(t, http.StatusOK)
	cfg := config(b.URL)
	exp := start(t, cfg, set)
	require.NoError(t, exp.ConsumeMetrics(t.Context(), loss(1)))
	eventually(t, func() bool { _, took := b.seen(); return len(took) == 1 })
	b.set(http.StatusBadRequest, false)
	require.NoError(t, exp.ConsumeMetrics(t.Context(), loss(2)))
	require.NoError(t, exp.Shutdown(t.Context()))
	for _, name := range []string{"otelcol_exporter_sent_metric_points", "otelcol_exporter_send_failed_metric_points"} {
		m, err := telemetry.GetMetric(name)
		require.NoError(t, err)
		points := m.Data.(metricdata.Sum[int64]).DataPoints
		require.Len(t, points, 1, name)
		require.EqualValues(t, 1, points[0].Value, name)
	}
	_, err := telemetry.GetMetric("otelcol_exporter_prometheusremotewrite_sent_batches")
	require.NoError(t, err, "what contrib counts is there")
	require.NoError(t, telemetry.Shutdown(t.Context()))

	failures := logs.FilterMessageSnippet("Exporting failed.").All()
	require.Len(t, failures, 1)
	require.Contains(t, failures[0].Message, "Dropping data")
	require.Len(t, logs.FilterMessage("failed to send WriteRequest to remote endpoint").All(), 1)
}

func TestRetryable(t *testing.T) {
	away, wrong := errors.New("remote write request failed"), consumererror.NewPermanent(errors.New("remote write request failed"))
	late := consumererror.NewPermanent(context.DeadlineExceeded)
	for _, tt := range []struct {
		name      string
		err       error
		permanent bool
	}{
		{"away", away, false},
		{"wrong", wrong, true},
		{"late", late, false},
		{"all wrong", errors.Join(wrong, wrong), true},
		{"one of them away", errors.Join(wrong, away), false},
		{"one of them late", errors.Join(late, wrong), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := retryable(tt.err)
			require.Error(t, err)
			require.Equal(t, tt.permanent, consumererror.IsPermanent(err))
		})
	}
	require.NoError(t, retryable(nil))
	require.ErrorIs(t, retryable(late), context.DeadlineExceeded, "lens_health says so")
}

// Without a queue the sender is told.
func TestWithoutQueue(t *testing.T) {
	b := newBackend(t, http.StatusServiceUnavailable)
	cfg := config(b.URL)
	cfg.RemoteWriteQueue.Enabled = false
	cfg.BackOffConfig.Enabled = false
	exp := start(t, cfg, settings())
	err := exp.ConsumeMetrics(t.Context(), loss(1))
	require.Error(t, err)
	require.False(t, consumererror.IsPermanent(err))
	b.set(http.StatusOK, false)
	require.NoError(t, exp.ConsumeMetrics(t.Context(), loss(1)))
	require.NoError(t, exp.Shutdown(t.Context()))
	require.False(t, cfg.RemoteWriteQueue.Enabled)
	_, took := b.seen()
	require.Equal(t, []float64{1}, took)
}

// With a log before the sending it is contrib's.
func TestWriteAheadLog(t *testing.T) {
	b := newBackend(t, http.StatusOK)
	cfg := config(b.URL)
	cfg.WAL = configoptional.Some(contrib.WALConfig{Directory: t.TempDir(), BufferSize: 1})
	exp := start(t, cfg, settings())
	require.NoError(t, exp.ConsumeMetrics(t.Context(), loss(1)))
	eventually(t, func() bool { _, took := b.seen(); return len(took) >= 1 })
	require.NoError(t, exp.Shutdown(t.Context()))
}

// It has the type, the older spelling, the settings and the checks of contrib's.
func TestFactory(t *testing.T) {
	own, base := NewFactory(), contrib.NewFactory()
	require.Equal(t, base.Type(), own.Type())
	require.Equal(t, "prometheusremotewrite", own.(aliased).DeprecatedAlias().String())
	require.Equal(t, base.CreateDefaultConfig(), own.CreateDefaultConfig())
	require.Equal(t, base.MetricsStability(), own.MetricsStability())

	cfg := own.CreateDefaultConfig().(*contrib.Config)
	before := *cfg
	set := settings()
	set.ID = component.MustNewID("prometheusremotewrite")
	_, err := own.CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	require.Equal(t, before, *cfg, "what a reload compares is as it was")
	set.ID = component.MustNewID("prometheus")
	_, err = own.CreateMetrics(t.Context(), set, cfg)
	require.Error(t, err)
	_, err = own.CreateTraces(t.Context(), settings(), cfg)
	require.Error(t, err)
	for i := range 3 {
		set.ID = component.MustNewIDWithName("prometheus_remote_write", strconv.Itoa(i))
		_, err = own.CreateMetrics(t.Context(), set, cfg)
		require.NoError(t, err)
	}
}
