// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait: far beyond what a busy machine needs.
const patience = time.Minute

const config = `
receivers: {otlp: {protocols: {http: {endpoint: "%s"}}}}
exporters: {otlp_http/b: {endpoint: "%s", retry_on_failure: {initial_interval: 50ms, max_interval: 100ms, enabled: %t}}}
service:
  telemetry: {%s}
  pipelines: {logs: {receivers: [otlp], exporters: [otlp_http/b]}}
`

// start runs a collector with the factory and returns what ends it, which the test's end does otherwise.
func start(t *testing.T, yaml string) (stop func()) {
	t.Helper()
	col, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "test"},
		Factories: func() (f otelcol.Factories, err error) {
			f.Telemetry = NewFactory()
			if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
				return f, err
			}
			f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](otlphttpexporter.NewFactory())
			return f, err
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{"yaml:" + yaml}, ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
		DisableGracefulShutdown: true,
	})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- col.Run(context.Background()) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			col.Shutdown()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	require.Eventually(t, func() bool { return col.GetState() == otelcol.StateRunning || len(done) > 0 }, patience, time.Millisecond)
	require.Empty(t, done, "it does not start")
	return stop
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func sendLog(t *testing.T, address string) {
	t.Helper()
	resp, err := client.Post("http://"+address+"/v1/logs", "application/json", bytes.NewBufferString(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a"}}]}]}]}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

// sum is the sum over all series of a metric, -1 where there is none.
func sum(t *testing.T, name string) int64 {
	t.Helper()
	var metrics metricdata.ResourceMetrics
	require.NoError(t, Current().Collect(t.Context(), &metrics))
	total := int64(-1)
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			data, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != name || !ok {
				continue
			}
			total = 0
			for _, point := range data.DataPoints {
				total += point.Value
			}
		}
	}
	return total
}

// Whatever the config says of the collector's own metrics, they can be read, and its readers read as before.
func TestMetricsAreReadAtEveryLevel(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/x-protobuf") }))
	defer backend.Close()
	prometheus := freeAddress(t)
	_, port, err := net.SplitHostPort(prometheus)
	require.NoError(t, err)
	reader := "readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: " + port + ", without_scope_info: true, without_type_suffix: true}}}}]"
	for name, tt := range map[string]struct {
		metrics string
		scraped bool
	}{
		"none":     {"metrics: {level: none}", false},
		"basic":    {"metrics: {level: basic, " + reader + "}", true},
		"normal":   {"metrics: {" + reader + "}", true},
		"detailed": {"metrics: {level: detailed, " + reader + "}", true},
		"views":    {"metrics: {level: detailed, " + reader + ", views: [{selector: {instrument_name: otelcol_process_uptime}, stream: {aggregation: {drop: {}}}}]}", true},
	} {
		t.Run(name, func(t *testing.T) {
			address := freeAddress(t)
			stop := start(t, fmt.Sprintf(config, address, backend.URL, true, tt.metrics))
			sendLog(t, address)
			require.Eventually(t, func() bool { return sum(t, "otelcol_exporter_sent_log_records") == 1 }, patience, 10*time.Millisecond)
			require.EqualValues(t, 1, sum(t, "otelcol_receiver_accepted_log_records"))
			require.Equal(t, name == "views", seriesOf(t, "otelcol_process_uptime") == 0, "views hold")
			require.Empty(t, Current().FailedSends())
			if tt.scraped {
				resp, err := client.Get("http://" + prometheus + "/metrics")
				require.NoError(t, err)
				defer resp.Body.Close()
				page, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Contains(t, string(page), "otelcol_exporter_sent_log_records")
				require.Contains(t, string(page), `service_name="test"`, "the resource is the service's")
			}
			stop()
			require.ErrorIs(t, Current().Collect(t.Context(), &metricdata.ResourceMetrics{}), sdkmetric.ErrReaderShutdown)
		})
	}
}

// seriesOf counts the series of a metric of floating-point numbers.
func seriesOf(t *testing.T, name string) (series int) {
	t.Helper()
	var metrics metricdata.ResourceMetrics
	require.NoError(t, Current().Collect(t.Context(), &metrics))
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			if data, ok := m.Data.(metricdata.Sum[float64]); ok && m.Name == name {
				series += len(data.DataPoints)
			}
		}
	}
	return series
}

// A reload makes another service: its telemetry is the current one, and begins anew.
func TestEveryServiceHasItsOwn(t *testing.T) {
	address := freeAddress(t)
	stop := start(t, fmt.Sprintf(config, address, "http://"+freeAddress(t), true, "metrics: {level: none}"))
	first := Current()
	sendLog(t, address)
	require.Eventually(t, func() bool { return len(first.FailedSends()) > 0 }, patience, 10*time.Millisecond)
	stop()
	start(t, fmt.Sprintf(config, freeAddress(t), "http://"+freeAddress(t), true, "metrics: {level: none}"))
	require.NotSame(t, first, Current())
	require.Empty(t, Current().FailedSends())
}

// TestExporterhelperSaysSo holds the text that exporterhelper logs: each attempt that fails is noticed while no metric knows
// of it, at any level of the log, and with nothing of the error's text.
func TestExporterhelperSaysSo(t *testing.T) {
	for _, logs := range []string{"{}", "{level: debug}", "{level: warn}", "{level: error}", "{level: fatal}", "{encoding: json, sampling: {enabled: false}}", "{level: error, sampling: {enabled: true, tick: 1h, initial: 0, thereafter: 0}}"} {
		t.Run(logs, func(t *testing.T) {
			address := freeAddress(t)
			start(t, fmt.Sprintf(config, address, "http://"+freeAddress(t), true, "logs: "+logs+", metrics: {level: none}"))
			sendLog(t, address)
			exporter := Exporter{"otlp_http/b", "logs"}
			require.Eventually(t, func() bool { return Current().FailedSends()[exporter].Count >= 20 }, patience, 10*time.Millisecond, "more than sampling lets through")
			failed := Current().FailedSends()
			require.Len(t, failed, 1)
			require.Equal(t, "connection refused", failed[exporter].Reason)
			require.WithinDuration(t, time.Now(), failed[exporter].Last, patience)
			require.EqualValues(t, -1, sum(t, "otelcol_exporter_send_failed_log_records"), "no metric tells")
		})
	}
}

func TestReasons(t *testing.T) {
	for code, want := range map[int]string{http.StatusServiceUnavailable: "Unavailable", http.StatusTooManyRequests: "ResourceExhausted", http.StatusBadRequest: "InvalidArgument", http.StatusForbidden: "PermissionDenied"} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", code) }))
			defer backend.Close()
			address := freeAddress(t)
			start(t, fmt.Sprintf(config, address, backend.URL, false, "logs: {level: fatal}, metrics: {level: none}"))
			sendLog(t, address)
			exporter := Exporter{"otlp_http/b", "logs"}
			require.Eventually(t, func() bool { return Current().FailedSends()[exporter].Count > 0 }, patience, 10*time.Millisecond)
			require.Equal(t, want, Current().FailedSends()[exporter].Reason)
		})
	}
	require.Equal(t, "timed out", reason(fmt.Errorf("x: %w", context.DeadlineExceeded)))
	require.Equal(t, "name not resolved", reason(fmt.Errorf("x: %w", &net.DNSError{Name: "secret"})))
	require.Empty(t, reason(io.EOF))
	require.Empty(t, reason(nil))
}

// What goes wrong with TLS is named with the key of the config that mends it. The errors are those of real handshakes.
func TestTLSReasons(t *testing.T) {
	trusting := func(change func(*tls.Config)) func(*httptest.Server) *tls.Config {
		return func(backend *httptest.Server) *tls.Config {
			config := &tls.Config{RootCAs: backend.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
			change(config)
			return config
		}
	}
	for name, tt := range map[string]struct {
		server *tls.Config // nil for none
		client func(*httptest.Server) *tls.Config
		want   string
	}{
		"unknown authority":  {&tls.Config{}, func(*httptest.Server) *tls.Config { return nil }, "tls.ca_file"},
		"expired":            {&tls.Config{}, trusting(func(c *tls.Config) { c.Time = func() time.Time { return time.Now().AddDate(200, 0, 0) } }), "has expired"},
		"another name":       {&tls.Config{}, trusting(func(c *tls.Config) { c.ServerName = "backend.test" }), "tls.server_name_override"},
		"another address":    {&tls.Config{}, trusting(func(c *tls.Config) { c.ServerName = "192.0.2.1" }), "tls.server_name_override"},
		"client certificate": {&tls.Config{ClientAuth: tls.RequireAnyClientCert}, trusting(func(*tls.Config) {}), "tls.cert_file"},
		"old TLS":            {&tls.Config{}, trusting(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11; c.MinVersion = tls.VersionTLS10 }), "the kind of TLS"},
		"clear text":         {nil, func(*httptest.Server) *tls.Config { return nil }, "http://"},
	} {
		t.Run(name, func(t *testing.T) {
			backend := httptest.NewUnstartedServer(http.NotFoundHandler())
			backend.Config.ErrorLog = log.New(io.Discard, "", 0)
			if backend.TLS = tt.server; tt.server != nil {
				backend.StartTLS()
			} else {
				backend.Start()
			}
			defer backend.Close()
			client := http.Client{Transport: &http.Transport{TLSClientConfig: tt.client(backend), DisableKeepAlives: true}}
			_, err := client.Get("https://" + backend.Listener.Addr().String())
			require.Error(t, err)
			require.Contains(t, reason(err), tt.want, err)
			require.Contains(t, reason(status.Error(codes.Unavailable, err.Error())), tt.want, "as gRPC has it")
		})
	}
}

// Other logs of an exporter, and the same text of another component, are no failed sends; and what is written stays as it was.
func TestOnlyExportersFail(t *testing.T) {
	component := func(kind string) zap.Field {
		return zap.Inline(zapcore.ObjectMarshalerFunc(func(e zapcore.ObjectEncoder) error {
			e.AddString("otelcol.component.kind", kind)
			e.AddString("otelcol.component.id", "x")
			e.AddString("otelcol.signal", "logs")
			return nil
		}))
	}
	written, logs := observer.New(zap.WarnLevel)
	f := &failures{}
	logger := zap.New(&failureCore{Core: written, failures: f})
	logger.Error("Exporting failed. Dropping data.")
	logger.With(component("receiver")).Error("Exporting failed. Dropping data.")
	logger.With(component("exporter")).Error("Cannot connect.")
	require.Empty(t, f.all())

	ours := logger.With(component("exporter")).With(zap.String("a", "b"))
	ours.Debug("Exporting failed.")
	ours.Info("Exporting failed. Will retry the request after interval.")
	ours.Error("Exporting failed. Dropping data.", zap.Error(syscall.ECONNREFUSED))
	require.EqualValues(t, 2, f.all()[Exporter{"x", "logs"}].Count)
	require.Equal(t, 4, logs.Len(), "each at error once, and none below the level")
	require.Equal(t, 1, logs.FilterMessage("Exporting failed. Dropping data.").FilterField(zap.String("a", "b")).Len())
}
