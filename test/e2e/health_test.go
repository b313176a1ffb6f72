// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"github.com/lenscol/lenscol/internal/testbed"
)

// healthConfig has a pipeline for each exporter, all at their defaults but for where they send to. Nothing of the collector's own
// telemetry is on: lens_health does not need it.
const healthConfig = `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}
exporters:
  otlp_http: {endpoint: "http://%[1]s"}
  otlp_grpc: {endpoint: "%[2]s", tls: {insecure: true}}
  kafka: {brokers: ["%[3]s"]}
  prometheus_remote_write: {endpoint: "http://%[3]s"}
  load_balancing: {protocol: {otlp: {tls: {insecure: true}}}, resolver: {static: {hostnames: ["%[3]s"]}}}
  weave: {base_url: "http://%[3]s", api_key: key, entity: acme, project: llm}
  debug:
extensions: {lens_health: {endpoint: "127.0.0.1:${env:LENSCOL_HEALTH_PORT}"}}
service:
  extensions: [lens_health]
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    traces/otlp_http: {receivers: [otlp], exporters: [otlp_http]}
    traces/otlp_grpc: {receivers: [otlp], exporters: [otlp_grpc]}
    traces/kafka: {receivers: [otlp], exporters: [kafka]}
    metrics/prometheus_remote_write: {receivers: [otlp], exporters: [prometheus_remote_write]}
    traces/load_balancing: {receivers: [otlp], exporters: [load_balancing]}
    traces/weave: {receivers: [otlp], exporters: [weave]}
    traces/debug: {receivers: [otlp], exporters: [debug]}
`

// TestHealthTruth is the truth table of /health over the built binary: backends of stock exporters with retries on are
// killed and revived, others never were there.
func TestHealthTruth(t *testing.T) {
	t.Parallel()
	overHTTP, overGRPC := &otlpHTTP{address: freeAddress(t)}, &otlpGRPC{address: freeAddress(t)}
	overHTTP.revive(t)
	overGRPC.revive(t)
	t.Cleanup(func() { overHTTP.kill(t); overGRPC.kill(t) })
	collector, h := startHealth(t, fmt.Sprintf(healthConfig, overHTTP.address, overGRPC.address, freeAddress(t)))

	require.Equal(t, 200, h.get(t), "idle: %+v", h.last)
	for _, p := range h.last.Pipelines {
		require.Equal(t, "healthy", p.Status, "%+v", p)
	}
	feed(t, collector)
	for _, name := range []string{"otlp_http", "otlp_grpc", "debug"} {
		h.becomes(t, name, "healthy", func(c component) bool { return c.LastSuccess != nil })
	}
	for _, name := range []string{"kafka", "prometheus_remote_write", "load_balancing"} {
		h.becomes(t, name, "unhealthy", nil)
	}
	h.becomes(t, "weave", "unhealthy", func(c component) bool {
		return c.Reasons[0].Code == "sends_fail" && strings.HasSuffix(c.Reasons[0].Text, "connection refused")
	})
	require.Equal(t, 503, h.get(t))

	began := time.Now()
	overHTTP.kill(t)
	overGRPC.kill(t)
	for _, name := range []string{"otlp_http", "otlp_grpc"} {
		c := h.becomes(t, name, "unhealthy", func(c component) bool { return c.Reasons[0].Code == "sends_fail" })
		t.Logf("%s: told %.1f s after the kill: %s", name, time.Since(began).Seconds(), c.Reasons[0].Text)
	}
	require.Equal(t, "healthy", h.exporter("debug").Status)

	began = time.Now()
	overHTTP.revive(t)
	overGRPC.revive(t)
	for _, name := range []string{"otlp_http", "otlp_grpc"} {
		h.becomes(t, name, "healthy", nil)
		t.Logf("%s: healthy %.1f s after the revival", name, time.Since(began).Seconds())
	}
}

// TestHealthOfFullDisk fills the disk below the archive, and makes room again.
func TestHealthOfFullDisk(t *testing.T) {
	t.Parallel()
	folder := testbed.Tmpfs(t, "16m")
	collector, h := startHealth(t, `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}
exporters: {jsonl: {path: "`+folder+`/{signal}.jsonl", min_free_bytes: 1MiB}}
extensions: {lens_health: {endpoint: "127.0.0.1:${env:LENSCOL_HEALTH_PORT}"}}
service:
  extensions: [lens_health]
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [jsonl]}}
`)
	feed(t, collector)
	h.becomes(t, "jsonl", "healthy", func(c component) bool { return c.LastSuccess != nil })
	ballast := filepath.Join(folder, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 15<<20), 0o600))
	h.becomes(t, "jsonl", "unhealthy", func(c component) bool {
		var codes []string
		for _, reason := range c.Reasons {
			codes = append(codes, reason.Code)
		}
		return strings.Contains(strings.Join(codes, " "), "reports_error disk_full")
	})
	require.NoError(t, os.Remove(ballast))
	h.becomes(t, "jsonl", "healthy", nil)
	require.Equal(t, 200, h.get(t))
}

// TestLiveWhileDraining tells a collector to end while its backend takes its time: it is not ready from then on, and live until it has
// written out what it has.
func TestLiveWhileDraining(t *testing.T) {
	t.Parallel()
	took, goOn := make(chan struct{}, 100), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		took <- struct{}{}
		<-goOn
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer backend.Close()
	collector, h := startHealth(t, `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}
exporters: {otlp_http: {endpoint: "`+backend.URL+`", timeout: 0s}}
extensions: {lens_health: {endpoint: "127.0.0.1:${env:LENSCOL_HEALTH_PORT}"}}
service:
  extensions: [lens_health]
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}
`)
	code := func(path string) int {
		resp, err := healthClient.Get(strings.Replace(h.url, "/health", path, 1))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, 200, code("/ready"))
	sendSpan(t.Context(), collector.Client())
	<-took
	require.NoError(t, syscall.Kill(collector.Pid(), syscall.SIGTERM))
	require.Eventually(t, func() bool { return code("/ready") == 503 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, 200, code("/live"))
	require.Equal(t, 503, h.get(t))
	require.Equal(t, "stopping", h.last.Status)
	close(goOn)
	collector.Stop()
}

// TestWaitEndsTheRace starts a collector and waits for it as a job script does, and reads the table; the port of health is in use.
func TestWaitEndsTheRace(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	_, port, _ := net.SplitHostPort(busy.Addr().String())
	dir := t.TempDir()
	file := filepath.Join(dir, "collector.env")
	collector := testbed.New(t, testbed.Options{Dir: dir, Args: []string{"--port-file", file}, Env: []string{"LENSCOL_HEALTH_PORT=" + port}})
	lenscol := func(args ...string) (string, int) {
		cmd := exec.Command(testbed.Binary(t), args...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			require.IsType(t, &exec.ExitError{}, err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	waited := make(chan string, 1)
	go func() {
		out, code := lenscol("wait", "--port-file", file, "--timeout", "1m", "--for", "healthy")
		waited <- fmt.Sprintf("%d %s", code, out)
	}()
	collector.Start()
	require.Equal(t, "0 ", <-waited)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "export LENSCOL_HEALTH_ENDPOINT=http://127.0.0.1:")
	require.NotContains(t, string(text), port, "the port file names where it listens, not where it should have")
	table, code := lenscol("status", "--port-file", file)
	require.Zero(t, code, table)
	require.Regexp(t, `(?m)^traces +exporter jsonl +healthy `, table)
	require.Regexp(t, `(?m)^- +extension lens_health +healthy `, table)

	collector.Stop()
	out, code := lenscol("wait", "--port-file", file, "--timeout", "300ms")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "no such file")
	_, code = lenscol("wait", "--for", "lunch")
	require.Equal(t, 2, code)
	_, code = lenscol("status", "--endpoint", "http://"+freeAddress(t))
	require.Equal(t, 2, code)
}

// What a test reads of /health: the keys are written here again, so that none of them changes unseen.
type healthAnswer struct {
	Status    string
	Pipelines []struct {
		ID, Status string
		Components []component
	}
}

type component struct {
	Kind, ID, Status string
	LastSuccess      *time.Time `json:"last_success"`
	Reasons          []struct{ Code, Text string }
}

type healthReader struct {
	url  string
	last healthAnswer
}

func startHealth(t *testing.T, config string) (*testbed.Collector, *healthReader) {
	port := testbed.FreePort(t)
	collector := testbed.Start(t, testbed.Options{Config: config, Env: []string{"LENSCOL_HEALTH_PORT=" + port}})
	return collector, &healthReader{url: "http://127.0.0.1:" + port + "/health"}
}

var healthClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func (h *healthReader) get(t *testing.T) int {
	t.Helper()
	resp, err := healthClient.Get(h.url)
	require.NoError(t, err)
	defer resp.Body.Close()
	h.last = healthAnswer{}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&h.last))
	return resp.StatusCode
}

// exporter is the exporter of a type in the last answer.
func (h *healthReader) exporter(name string) component {
	for _, p := range h.last.Pipelines {
		for _, c := range p.Components {
			if c.Kind == "exporter" && c.ID == name {
				return c
			}
		}
	}
	return component{}
}

// becomes waits until the exporter has the status, and more where also says so.
func (h *healthReader) becomes(t *testing.T, name, status string, also func(component) bool) component {
	t.Helper()
	require.Eventually(t, func() bool {
		h.get(t)
		c := h.exporter(name)
		return c.Status == status && (also == nil || also(c))
	}, 2*time.Minute, 100*time.Millisecond, "%s does not become %s: %+v", name, status, h.last)
	return h.exporter(name)
}

// feed sends a span and a point now and then until the test ends.
func feed(t *testing.T, collector *testbed.Collector) {
	client := collector.Client()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			sendSpan(ctx, client)
			_ = client.HTTP(ctx, "metrics", testbed.JSON, fmt.Appendf(nil, `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
				{"name":"m","gauge":{"dataPoints":[{"timeUnixNano":"%d","asDouble":1}]}}]}]}]}`, time.Now().UnixNano()), false)
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
}

// sendSpan sends one, and whether it was taken is for the test to find out.
func sendSpan(ctx context.Context, client *testbed.Client) {
	_ = client.HTTP(ctx, "traces", testbed.JSON, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[
		{"name":"a","traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","startTimeUnixNano":"1","endTimeUnixNano":"2"}]}]}]}`), false)
}

// otlpHTTP and otlpGRPC are backends that can be killed, and revived at the same address.
type otlpHTTP struct {
	address string
	server  *http.Server
}

func (b *otlpHTTP) revive(t *testing.T) {
	listener := listen(t, b.address)
	b.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	})}
	go func() { _ = b.server.Serve(listener) }()
}

func (b *otlpHTTP) kill(t *testing.T) { require.NoError(t, b.server.Close()) }

type otlpGRPC struct {
	ptraceotlp.UnimplementedGRPCServer
	address string
	server  *grpc.Server
}

func (*otlpGRPC) Export(context.Context, ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return ptraceotlp.NewExportResponse(), nil
}

func (b *otlpGRPC) revive(t *testing.T) {
	listener := listen(t, b.address)
	b.server = grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(b.server, b)
	go func() { _ = b.server.Serve(listener) }()
}

func (b *otlpGRPC) kill(*testing.T) { b.server.Stop() }

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	return listener
}

func freeAddress(t *testing.T) string { return "127.0.0.1:" + testbed.FreePort(t) }
