// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	servicetelemetry "go.opentelemetry.io/collector/service/telemetry"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"

	"github.com/lenscol/lenscol/telemetry"
)

// patience bounds every wait: far beyond what a busy machine needs.
const patience = time.Minute

// runCollector runs a real collector with lens_health until the test ends. foreign is a build without package telemetry.
func runCollector(t *testing.T, yaml string, foreign bool) {
	t.Helper()
	health := NewFactory()
	factory := servicetelemetry.Factory(nil)
	if foreign {
		factory = otelconftelemetry.NewFactory()
		health = extension.NewFactory(health.Type(), health.CreateDefaultConfig,
			func(ctx context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
				h := newHealth(set, cfg.(*Config))
				h.looker.inside = func() *telemetry.Source { return nil }
				return h, nil
			}, component.StabilityLevelBeta)
	} else {
		factory = telemetry.NewFactory()
	}
	col, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "test", Version: "1.2.3"},
		Factories: func() (f otelcol.Factories, err error) {
			f.Telemetry = factory
			if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
				return f, err
			}
			if f.Processors, err = otelcol.MakeFactoryMap[processor.Factory](memorylimiterprocessor.NewFactory()); err != nil {
				return f, err
			}
			if f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](otlphttpexporter.NewFactory()); err != nil {
				return f, err
			}
			f.Extensions, err = otelcol.MakeFactoryMap(health)
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
	t.Cleanup(func() {
		col.Shutdown()
		require.NoError(t, <-done)
	})
	require.Eventually(t, func() bool { return col.GetState() == otelcol.StateRunning || len(done) > 0 }, patience, time.Millisecond)
	require.Empty(t, done, "it does not start")
}

// backend is an OTLP receiver over HTTP that can be killed and revived at its address, and can take its time.
type backend struct {
	t       *testing.T
	address string
	server  *http.Server
	delay   atomic.Int64 // of an answer
	got     atomic.Int64 // requests
}

func newBackend(t *testing.T) *backend {
	b := &backend{t: t, address: freeAddress(t)}
	b.revive()
	t.Cleanup(func() { _ = b.server.Close() })
	return b
}

func (b *backend) revive() {
	b.t.Helper()
	listener, err := net.Listen("tcp", b.address)
	require.NoError(b.t, err)
	b.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.got.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-time.After(time.Duration(b.delay.Load())):
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})}
	go func() { _ = b.server.Serve(listener) }()
}

func (b *backend) kill() { require.NoError(b.t, b.server.Close()) }

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

// fetch gets a path and holds its answer to its schema.
func fetch(t *testing.T, address, path string, into any) int {
	t.Helper()
	resp, err := client.Get("http://" + address + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, into), "%s", body)
	file := map[string]string{"/health": "health", "/api/pipelines": "pipelines"}[path]
	requireSchema(t, file, body)
	return resp.StatusCode
}

// requireSchema holds an answer to docs/*.schema.json, which has to list every key.
func requireSchema(t *testing.T, file string, answer []byte) {
	t.Helper()
	if file == "" {
		return
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", file+".schema.json"))
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	closeObjects(document)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("schema.json", document))
	schema, err := compiler.Compile("schema.json")
	require.NoError(t, err)
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(answer)))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(instance), "%s", answer)
}

// closeObjects lets no object have keys that the schema does not name. The files themselves allow them, for keys may come.
func closeObjects(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if s["type"] == "object" {
			s["additionalProperties"] = false
		}
		for _, value := range s {
			closeObjects(value)
		}
	case []any:
		for _, value := range s {
			closeObjects(value)
		}
	}
}

// sendOn sends a span now and then until the test ends.
func sendOn(t *testing.T, address string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/traces", strings.NewReader(
				`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a","traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708"}]}]}]}`))
			req.Header.Set("Content-Type", "application/json")
			if resp, err := client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
}

const collectorConfig = `
receivers: {otlp: {protocols: {http: {endpoint: "%s"}}}}
processors: {memory_limiter: {check_interval: 1s, limit_percentage: 50}}
exporters:
  otlp_http: {endpoint: "http://%s", timeout: %s, sending_queue: {batch: }, retry_on_failure: {initial_interval: 500ms, max_interval: 2s}}
extensions: {lens_health: {endpoint: "%s", window: 2s}}
service:
  extensions: [lens_health]
  telemetry: {logs: {level: error}, metrics: %s}
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp_http]}
    logs: {receivers: [otlp], exporters: [otlp_http]}
`

// TestBackend walks the truth table with real parts: idle, working, slow, dead, revived; in this build, where the metrics
// are off and the log is quiet, and in another's, where all that there is is a Prometheus endpoint.
func TestBackend(t *testing.T) {
	for name, foreign := range map[string]bool{"inside": false, "foreign": true} {
		t.Run(name, func(t *testing.T) {
			otlp, health, b := freeAddress(t), freeAddress(t), newBackend(t)
			metrics, timeout, source := "{level: none}", "30s", fromInside
			if foreign {
				_, port, _ := net.SplitHostPort(freeAddress(t))
				metrics, source = "{readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: "+port+"}}}}]}", fromScrape
			}
			runCollector(t, fmt.Sprintf(collectorConfig, otlp, b.address, timeout, health, metrics), foreign)

			var report Report
			require.Equal(t, 200, fetch(t, health, "/health", &report))
			require.Equal(t, Healthy, report.Status, "idle is healthy")
			require.Equal(t, source, report.Source)
			require.Equal(t, "1.2.3", report.Version)
			require.Equal(t, []string{"logs", "traces"}, []string{report.Pipelines[0].ID, report.Pipelines[1].ID})
			require.Len(t, report.Pipelines[1].Components, 3)
			require.Nil(t, report.Pipelines[1].Components[2].LastSuccess)

			becomes := func(code int, status Status, reason string) {
				t.Helper()
				require.Eventually(t, func() bool {
					report = Report{}
					got := fetch(t, health, "/health", &report)
					exporter := report.Pipelines[1].Components[2]
					return got == code && exporter.Status == status && (reason == "" && len(exporter.Reasons) == 0 || reason != "" && exporter.Reasons[0].Code == reason)
				}, patience, 50*time.Millisecond, "%+v", report)
			}
			sendOn(t, otlp)
			require.Eventually(t, func() bool {
				fetch(t, health, "/health", &report)
				return report.Pipelines[1].Components[2].LastSuccess != nil
			}, patience, 50*time.Millisecond)
			require.Equal(t, Healthy, report.Status)

			if !foreign { // There, one who is slower than the window cannot be told from one who is dead.
				b.delay.Store(int64(5 * time.Second))
				before := b.got.Load()
				require.Eventually(t, func() bool {
					fetch(t, health, "/health", &report)
					require.Equal(t, Healthy, report.Status, "slow is healthy: %+v", report)
					return b.got.Load() > before+20
				}, patience, 50*time.Millisecond)
				b.delay.Store(0)
			}

			b.kill()
			dead := map[bool]string{false: "sends_fail", true: "stalled"}[foreign]
			becomes(503, Unhealthy, dead)
			require.Equal(t, Unhealthy, report.Status)
			require.Equal(t, Unhealthy, report.Pipelines[1].Status)
			require.Equal(t, Healthy, report.Pipelines[0].Status, "the other pipeline has nothing to send")
			if !foreign {
				require.Contains(t, report.Pipelines[1].Components[2].Reasons[0].Text, "connection refused")
			}

			b.revive()
			becomes(200, Healthy, "")
			require.Equal(t, Healthy, report.Status)

			var pipelines Pipelines
			require.Equal(t, 200, fetch(t, health, "/api/pipelines", &pipelines))
			traces := pipelines.Pipelines[1]
			require.Equal(t, "traces", traces.Signal)
			require.Positive(t, traces.Receivers[0].Accepted)
			require.Positive(t, traces.Receivers[0].Rate)
			require.Positive(t, traces.Processors[0].Outgoing)
			require.Positive(t, traces.Exporters[0].Sent)
			require.EqualValues(t, 1000, traces.Exporters[0].Queue.Capacity)
			require.Equal(t, traces.Exporters[0].Sent+traces.Exporters[0].Failed, traces.Exporters[0].Received)
			require.Zero(t, traces.Exporters[0].Dropped)
			require.Zero(t, pipelines.Pipelines[0].Exporters[0].Sent)
		})
	}
}

// What cannot be read is unknown: another's build whose metrics are off.
func TestUnreadable(t *testing.T) {
	otlp, health, b := freeAddress(t), freeAddress(t), newBackend(t)
	runCollector(t, fmt.Sprintf(collectorConfig, otlp, b.address, "30s", health, "{level: none, readers: []}"), true)
	sendOn(t, otlp)
	var report Report
	require.Equal(t, 503, fetch(t, health, "/health", &report))
	require.Equal(t, Unknown, report.Status)
	require.Equal(t, fromNone, report.Source)
	require.Equal(t, "not_readable", report.Pipelines[0].Components[1].Reasons[0].Code)
	require.True(t, report.Ready)
	require.Equal(t, "memory_limiter", report.Pipelines[1].Components[1].ID)
	require.Equal(t, Healthy, report.Pipelines[1].Components[1].Status, "it reports its status itself")
}
