// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/configs/backendtest"
)

func TestArchive(t *testing.T) {
	t.Parallel()
	collector := start(t, "archive", testbed.Options{})
	sendAll(t, collector)
	requireArchived(t, collector)
	collector.Stop()
}

// What file writes, contrib's own receiver of such files reads.
func TestFile(t *testing.T) {
	t.Parallel()
	collector := start(t, "file", testbed.Options{})
	sendAll(t, collector)
	collector.Stop()

	backend := backendtest.New(t, backendtest.Rules{Encodings: []string{""}})
	testbed.Start(t, testbed.Options{
		Env: []string{"FILES=" + filepath.Join(collector.Dir, "lens-data", "*.jsonl"), "BACKEND=" + backend.URL},
		Config: `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}
  otlp_json_file: {include: ["${env:FILES}"], start_at: beginning}
exporters:
  otlp_http: {endpoint: "${env:BACKEND}", compression: none}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp, otlp_json_file], exporters: [otlp_http]}
    metrics: {receivers: [otlp_json_file], exporters: [otlp_http]}
    logs: {receivers: [otlp_json_file], exporters: [otlp_http]}
`})
	requireTook(t, &backend.Sink, "step", "loss", "hello")
}

func TestConsoleDebug(t *testing.T) {
	t.Parallel()
	collector := start(t, "console-debug", testbed.Options{})
	sendAll(t, collector)
	eventually(t, func() bool {
		said := collector.Stderr()
		return strings.Contains(said, "Name           : step") && strings.Contains(said, "Name: loss") && strings.Contains(said, "Body: Str(hello)")
	}, "each signal on the terminal")
	collector.Stop()
	require.NoDirExists(t, filepath.Join(collector.Dir, "lens-data"), "nothing is kept")
}

// The job's environment is on every resource, the id that a process made up gives way, and Prometheus has a series a process.
func TestSidecar(t *testing.T) {
	t.Parallel()
	port := testbed.FreePort(t)
	collector := start(t, "sidecar", testbed.Options{Env: []string{"SLURM_JOB_ID=4242", "SLURM_JOB_NAME=llama", "LENSCOL_PROMETHEUS_PORT=" + port}})
	madeUp := rank(0, 2)
	madeUp["nemo.run.id"] = "0a1b2c3d4e5f"
	send(t, collector, traces(span{name: "step", resource: madeUp}), gauges("loss", rank(0, 2), rank(1, 2)), record("hello", madeUp))
	eventually(t, func() bool { return len(scrape(t, port, "loss{")) == 2 }, "two series")
	only(t, scrape(t, port, "loss{"), `rank="1"`)
	collector.Stop()
	text, err := os.ReadFile(filepath.Join(collector.Dir, "lens-data", "traces.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(text), `"slurm.job.name":"llama"`)
	require.Contains(t, string(text), `"run":"4242"`)
	require.Contains(t, string(text), `"nemo.run.id.original":"0a1b2c3d4e5f"`)
}

func TestRedact(t *testing.T) {
	t.Parallel()
	collector := start(t, "redact", testbed.Options{})
	secret := "hf_" + strings.Repeat("aB3dE6gH", 4) + "xy"
	text := "mail bob@example.com or take " + secret
	send(t, collector,
		traces(span{name: "step", resource: rank(0, 1), attrs: attributes{"prompt": "tell me all", "note": text, "nested": attributes{"list": []any{text}}}}),
		gauges("loss", attributes{"service.name": "megatron", "note": text}),
		record(text, rank(0, 1)))
	requireArchived(t, collector)
	collector.Stop()
	for _, signal := range []string{"traces", "metrics", "logs"} {
		written, err := os.ReadFile(filepath.Join(collector.Dir, "lens-data", signal+".jsonl"))
		require.NoError(t, err)
		require.Contains(t, string(written), "[REDACTED")
		for _, gone := range []string{secret, "bob@example.com", "tell me all"} {
			require.NotContains(t, string(written), gone)
		}
	}
}

func TestDropHealthChecks(t *testing.T) {
	t.Parallel()
	collector := start(t, "drop-health-checks", testbed.Options{})
	var spans []span
	for _, path := range []string{"/health", "/healthz", "/live", "/livez", "/ready", "/readyz/", "/metrics"} {
		for _, key := range []string{"url.path", "http.target", "http.route"} {
			spans = append(spans, span{name: "dropped " + key + " " + path, attrs: attributes{key: path}})
		}
	}
	spans = append(spans,
		span{name: "dropped query", attrs: attributes{"http.target": "/metrics?name=loss"}},
		span{name: "kept error", attrs: attributes{"url.path": "/health"}, failed: true},
		span{name: "kept old error", attrs: attributes{"http.target": "/health"}, failed: true},
		span{name: "kept run", attrs: attributes{"url.path": "/run"}},
		span{name: "kept longer", attrs: attributes{"url.path": "/healthy"}},
		span{name: "kept below", attrs: attributes{"http.target": "/v1/health"}},
		span{name: "kept other"})
	send(t, collector, traces(spans...))
	collector.Stop()
	require.ElementsMatch(t, []string{"kept error", "kept old error", "kept run", "kept longer", "kept below", "kept other"},
		names(archived(t, filepath.Join(collector.Dir, "lens-data"), "traces", "span")))
}

// requireTook waits until a backend has these alone, and has refused nothing.
func requireTook(t *testing.T, s *backendtest.Sink, span, point, body string) {
	t.Helper()
	list := func(s string) []string {
		if s == "" {
			return nil
		}
		return []string{s}
	}
	eventually(t, func() bool {
		spans, points, bodies := s.Took()
		return len(spans) >= len(list(span)) && len(points) >= len(list(point)) && len(bodies) >= len(list(body))
	}, "%q, %q and %q; refused: %q", span, point, body, s.Refused())
	spans, points, bodies := s.Took()
	require.Equal(t, [][]string{list(span), list(point), list(body)}, [][]string{spans, points, bodies})
	require.Empty(t, s.Refused())
}
