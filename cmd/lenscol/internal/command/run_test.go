// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/receiver"
)

const (
	waitLimit = 20 * time.Second
	pollEvery = 5 * time.Millisecond
)

// An agent of the tests, run in the process of the test.
type testAgent struct {
	*agent
	t      *testing.T
	stderr *syncBuffer
	hangup chan os.Signal
	stop   context.CancelFunc
	done   chan error
}

func newTestAgent(t *testing.T, set otelcol.CollectorSettings, uris ...string) *testAgent {
	set.ConfigProviderSettings.ResolverSettings.URIs = uris
	hangup := make(chan os.Signal, 1)
	stderr := &syncBuffer{}
	return &testAgent{
		t: t, stderr: stderr, hangup: hangup, done: make(chan error, 1),
		agent: &agent{
			set: set, stderr: stderr, hangup: hangup, ownHangup: func() {},
			now: func() time.Time { return time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC) },
		},
	}
}

// start runs the agent and returns when it listens. The test's end stops it and wants no error.
func (a *testAgent) start() {
	ctx, stop := context.WithCancel(a.t.Context())
	a.stop = stop
	go func() { a.done <- a.run(ctx) }()
	a.waitFor("lenscol 0.0.1: ", 1)
	a.t.Cleanup(func() {
		stop()
		require.NoError(a.t, <-a.done)
	})
}

// waitFor waits until stderr has text that often.
func (a *testAgent) waitFor(text string, times int) {
	a.t.Helper()
	require.Eventually(a.t, func() bool { return strings.Count(a.stderr.String(), text) >= times }, waitLimit, pollEvery,
		"%q, %d times, in:\n%s", text, times, a.stderr)
}

func (a *testAgent) reload() { a.hangup <- syscall.SIGHUP }

// requireServes sends a span to the port and wants it acknowledged.
func requireServes(t *testing.T, port int) {
	t.Helper()
	s := &otlpSender{base: fmt.Sprintf("http://127.0.0.1:%d", port)}
	require.NoError(t, s.send(t.Context(), demoRun{id: "r", ranks: 1, steps: 1}.start(time.Now(), demoStep)[0].batch(0)))
	require.NotZero(t, s.spans)
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// occupy listens on a port until the test's end.
func occupy(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// httpConfig takes OTLP over HTTP on a port, quietly.
func httpConfig(port int) string {
	return fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}}}}
exporters: {nop: {}}
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    traces: {receivers: [otlp], exporters: [nop]}
    metrics: {receivers: [otlp], exporters: [nop]}
    logs: {receivers: [otlp], exporters: [nop]}
`, port)
}

func writeConfig(t *testing.T, path, text string) {
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestStartLineAtEveryLogLevel(t *testing.T) {
	port := freePort(t)
	a := newTestAgent(t, testSettings(), "yaml:"+httpConfig(port))
	a.start()
	require.Equal(t, fmt.Sprintf("lenscol 0.0.1: OTLP on 127.0.0.1:%d (HTTP)\n", port), a.stderr.String())
	requireServes(t, port) // It is true when it is said.
}

func TestReloadTakesOverAGoodConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	before, after := freePort(t), freePort(t)
	writeConfig(t, file, httpConfig(before))
	a := newTestAgent(t, testSettings(), file)
	a.start()

	writeConfig(t, file, httpConfig(after))
	a.reload()
	a.waitFor(fmt.Sprintf("OTLP on 127.0.0.1:%d", after), 1)
	requireServes(t, after)
	require.ErrorContains(t, (&otlpSender{base: fmt.Sprintf("http://127.0.0.1:%d", before)}).post(t.Context(), "/v1/traces", ptraceotlp.NewExportRequest(), ptraceotlp.NewExportResponse()), "no collector listens")
}

func TestBadConfigNeverEndsTheCollector(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"not YAML", "receivers: [", "did not find expected node content"},
		{"unknown component", "receivers: {otpl: {}}", "otpl"},
		{"unknown key", strings.Replace(httpConfig(1), "endpoint", "endpiont", 1), "endpiont"},
		{"invalid value", strings.Replace(httpConfig(1), "nop: {}", "jsonl: {path: ''}, nop: {}", 1), "path: is empty"},
		{"no pipelines", "receivers: {otlp: {}}", "at least one pipeline"},
		{"empty", "", "empty configuration file; service::pipelines: service must have at least one pipeline"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			port := freePort(t)
			writeConfig(t, file, httpConfig(port))
			a := newTestAgent(t, testSettings(), file)
			a.start()

			writeConfig(t, file, tt.text)
			a.reload()
			a.waitFor("2026-03-01T03:00:00Z lenscol 0.0.1: reload: the new config is refused, the one that ran before runs on: ", 1)
			require.Contains(t, a.stderr.String(), tt.want)
			requireServes(t, port)

			after := freePort(t)
			writeConfig(t, file, httpConfig(after))
			a.reload()
			a.waitFor(fmt.Sprintf("OTLP on 127.0.0.1:%d", after), 1)
			requireServes(t, after)
		})
	}
	t.Run("file gone", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		port := freePort(t)
		writeConfig(t, file, httpConfig(port))
		a := newTestAgent(t, testSettings(), file)
		a.start()
		require.NoError(t, os.Remove(file))
		a.reload()
		a.waitFor("reload: the new config is refused", 1)
		requireServes(t, port)
	})
}

func TestReloadGoesBackWhenTheNewConfigDoesNotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	port, taken := freePort(t), occupy(t)
	writeConfig(t, file, httpConfig(port))
	a := newTestAgent(t, testSettings(), file)
	a.start()

	writeConfig(t, file, httpConfig(taken)) // Valid, but somebody else listens there.
	a.reload()
	a.waitFor(fmt.Sprintf("reload: the new config is valid but does not start, going back to the one that ran before: port %d on 127.0.0.1 (receivers.otlp.protocols.http.endpoint) is in use", taken), 1)
	a.waitFor(fmt.Sprintf("OTLP on 127.0.0.1:%d (HTTP)", port), 2)
	requireServes(t, port)
}

func TestUnchangedConfigIsNotRestarted(t *testing.T) {
	port := freePort(t)
	a := newTestAgent(t, testSettings(), "yaml:"+httpConfig(port))
	a.start()
	a.reload()
	a.waitFor("reload: the config has not changed, it runs on", 1)
	require.Equal(t, 1, strings.Count(a.stderr.String(), "OTLP on"))
	requireServes(t, port)
}

func TestRefusedReloadNamesNoSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	port := freePort(t)
	writeConfig(t, file, httpConfig(port))
	a := newTestAgent(t, testSettings(), file)
	a.start()
	withSecret := strings.Replace(httpConfig(port), `endpoint:`, `response_headers: {token: hunter2}, endpiont:`, 1)
	writeConfig(t, file, withSecret)
	a.reload()
	a.waitFor("refused", 1)
	require.NotContains(t, a.stderr.String(), "hunter2")
}

// A component that dies takes the collector with it: upstream returns nil then, and the process would end with 0.
func TestFatalErrorOfAComponentIsAnError(t *testing.T) {
	die := make(chan struct{})
	factory := receiver.NewFactory(component.MustNewType("dying"), func() component.Config { return &struct{}{} },
		receiver.WithTraces(func(context.Context, receiver.Settings, component.Config, consumer.Traces) (receiver.Traces, error) {
			return dyingReceiver{die}, nil
		}, component.StabilityLevelDevelopment))
	config := `
receivers: {dying: {}}
exporters: {nop: {}}
service:
  telemetry: {metrics: {level: none}, logs: {level: fatal}}
  pipelines: {traces: {receivers: [dying], exporters: [nop]}}
`
	a := newTestAgent(t, testSettings(factory), "yaml:"+config)
	go func() { a.done <- a.run(t.Context()) }()
	a.waitFor("lenscol 0.0.1: no OTLP receiver", 1)
	close(die)
	require.ErrorContains(t, <-a.done, "the collector ended by itself after a fatal error of a component")
}

type dyingReceiver struct{ die chan struct{} }

func (r dyingReceiver) Start(_ context.Context, host component.Host) error {
	go func() {
		<-r.die
		componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(errors.New("dead")))
	}()
	return nil
}

func (dyingReceiver) Shutdown(context.Context) error { return nil }

func TestEndDuringStart(t *testing.T) {
	a := newTestAgent(t, testSettings(), "yaml:"+httpConfig(freePort(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, a.run(ctx))
}

// A source that hangs, as an HTTP server may, holds up neither the start's end nor the end of what runs.
func TestEndWhileASourceHangs(t *testing.T) {
	answer := make(chan struct{})
	defer close(answer)
	var hang atomic.Bool
	set := testSettings()
	resolver := &set.ConfigProviderSettings.ResolverSettings
	resolver.ProviderFactories = append(resolver.ProviderFactories, confmap.NewProviderFactory(func(confmap.ProviderSettings) confmap.Provider {
		return hangingProvider{&hang, answer}
	}))
	t.Run("at the start", func(t *testing.T) {
		hang.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		a := newTestAgent(t, set, "hang:")
		go func() { a.done <- a.run(ctx) }()
		cancel()
		require.NoError(t, <-a.done)
	})
	t.Run("at a reload", func(t *testing.T) {
		hang.Store(false)
		port := freePort(t)
		a := newTestAgent(t, set, "yaml:"+httpConfig(port), "hang:")
		a.start()
		hang.Store(true)
		a.reload()
		requireServes(t, port)
	})
}

type hangingProvider struct {
	hang   *atomic.Bool
	answer chan struct{}
}

func (p hangingProvider) Retrieve(context.Context, string, confmap.WatcherFunc) (*confmap.Retrieved, error) {
	if p.hang.Load() {
		<-p.answer
	}
	return confmap.NewRetrieved(map[string]any{})
}

func (hangingProvider) Scheme() string { return "hang" }

func (hangingProvider) Shutdown(context.Context) error { return nil }

func TestPortInUse(t *testing.T) {
	taken := occupy(t)
	other := fmt.Sprint(taken + 10000)
	if taken+10000 > 65535 {
		other = fmt.Sprint(taken - 10000)
	}
	port := fmt.Sprint(taken)
	reader := `
service:
  telemetry:
    metrics: {level: basic, readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %s}}}}]}
`
	for _, tt := range []struct {
		name string
		env  string // LENSCOL_GRPC_PORT, LENSCOL_METRICS_PORT
		uris []string
		want string
	}{
		{
			"endpoint", "", []string{"yaml:" + httpConfig(taken)},
			"port " + port + " on 127.0.0.1 (receivers.otlp.protocols.http.endpoint) is in use, perhaps by another collector: " +
				"start this one with --set receivers.otlp.protocols.http.endpoint=127.0.0.1:" + other + ": ",
		},
		{
			"endpoint from a variable", "LENSCOL_GRPC_PORT",
			[]string{"yaml:" + strings.NewReplacer("127.0.0.1:1", "127.0.0.1:${env:LENSCOL_GRPC_PORT:-4317}", "http", "grpc").Replace(httpConfig(1))},
			"port " + port + " on 127.0.0.1 (receivers.otlp.protocols.grpc.endpoint) is in use, perhaps by another collector: " +
				"start this one with --ports grpc=" + other + ", or --ports auto: ",
		},
		{
			"the collector's own metrics", "",
			[]string{"yaml:" + httpConfig(freePort(t)), "yaml:" + fmt.Sprintf(reader, port)},
			"port " + port + " on 127.0.0.1 (service.telemetry.metrics.readers[0].pull.exporter.prometheus.port) is in use, perhaps by another collector: " +
				"choose another port there in the config; --set cannot reach into a list, or go without the collector's own metrics with --set service.telemetry.metrics.level=none: ",
		},
		{
			"the collector's own metrics from a variable", "LENSCOL_METRICS_PORT",
			[]string{"yaml:" + httpConfig(freePort(t)), "yaml:" + fmt.Sprintf(reader, `"${env:LENSCOL_METRICS_PORT:-8888}"`)},
			"start this one with --ports metrics=" + other + ", or --ports auto: ",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.env != "" {
				t.Setenv(tt.env, port)
			}
			a := newTestAgent(t, testSettings(), tt.uris...)
			err := a.run(t.Context())
			require.ErrorIs(t, err, syscall.EADDRINUSE)
			require.ErrorContains(t, err, tt.want)
			require.Empty(t, a.stderr.String())
		})
	}
}
