// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package dropin tests that the collector configs of NeMo Lens's users run here as they are. testdata holds configs of the structure and
// the components that NeMo Lens documents, in our own words.
package dropin // import "github.com/lenscol/lenscol/test/dropin"

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
	"github.com/lenscol/lenscol/internal/testbed"
)

const oneSpan = `{"resourceSpans":[{"resource":{"attributes":[{"key":"wandb.entity","value":{"stringValue":"acme"}},{"key":"wandb.project","value":{"stringValue":"llm"}}]},
	"scopeSpans":[{"spans":[{"name":"step","traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","startTimeUnixNano":"1000","endTimeUnixNano":"3500"}]}]}]}`

// start starts a config as it is, but for the addresses: a test's are on loopback and free.
func start(t *testing.T, text string, env []string, sets ...string) *testbed.Collector {
	t.Helper()
	var args []string
	for _, set := range append([]string{
		"receivers.otlp.protocols.grpc.endpoint=127.0.0.1:${env:LENSCOL_GRPC_PORT}", "receivers.otlp.protocols.http.endpoint=127.0.0.1:${env:LENSCOL_HTTP_PORT}",
		"extensions.health_check.endpoint=127.0.0.1:" + testbed.FreePort(t), "service.telemetry.metrics.level=none", "processors.batch.timeout=100ms",
	}, sets...) {
		args = append(args, "--set", set)
	}
	collector := testbed.Start(t, testbed.Options{Config: text, Args: args, Env: env})
	require.NoError(t, collector.Client().HTTP(t.Context(), "traces", testbed.JSON, []byte(oneSpan), false))
	return collector
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

func TestFile(t *testing.T) {
	folder := t.TempDir()
	collector := start(t, read(t, "otel-collector-file.yaml"), nil,
		"exporters.file/traces.path="+folder+"/traces.jsonl", "exporters.file/metrics.path="+folder+"/metrics.jsonl", "exporters.file/logs.path="+folder+"/logs.jsonl")
	requireArchive(t, collector, filepath.Join(folder, "traces.jsonl"))
}

// A node's archive, which is what contrib calls zstd, can be read with our commands.
func TestNode(t *testing.T) {
	folder := t.TempDir()
	collector := start(t, read(t, "node.yaml"), []string{"LENS_OTEL_ARCHIVE_DIR=" + folder, "SLURMD_NODENAME=node001"})
	requireArchive(t, collector, filepath.Join(folder, "node-node001.jsonl.zst"))
}

// requireArchive reads the span with lenscol jsonl cat. It lets the batch pass before it stops the collector: contrib's file exporter panics
// where one signal's shutdown comes before another's last batch (opentelemetry-collector-contrib#46871).
func requireArchive(t *testing.T, collector *testbed.Collector, file string) {
	t.Helper()
	require.Eventually(t, func() bool { info, err := os.Stat(file); return err == nil && info.Size() > 0 }, time.Minute, 20*time.Millisecond)
	collector.Stop()
	said, err := exec.Command(testbed.Binary(t), "jsonl", "cat", file).Output()
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(said), `"type":"span","name":"step"`), "%s", said)
}

func TestHoneycomb(t *testing.T) {
	got := make(chan http.Header, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		r.Header.Set("path", r.URL.Path)
		got <- r.Header
	}))
	defer server.Close()
	collector := start(t, read(t, "otel-collector-honeycomb.yaml"), []string{"HONEYCOMB_API_KEY=k", "HONEYCOMB_DATASET=lens"}, "exporters.otlphttp.endpoint="+server.URL)
	header := <-got
	require.Equal(t, []string{"/v1/traces", "k", "lens"}, []string{header.Get("path"), header.Get("x-honeycomb-team"), header.Get("x-honeycomb-dataset")})
	collector.Stop()
}

func TestWeave(t *testing.T) {
	weave := weavetest.New(t, weavetest.Options{})
	collector := start(t, read(t, "otel-collector-weave.yaml"), []string{"WANDB_API_KEY=" + weavetest.Key}, "exporters.otlphttp/weave.traces_endpoint="+weave.URL+weavetest.CallsPath)
	require.Eventually(t, func() bool { return len(weave.Calls("acme/llm")) == 1 }, time.Minute, 20*time.Millisecond)
	collector.Stop()
}

// The whole stack lacks the exporter to Elasticsearch: without it, it starts.
func TestAllInOne(t *testing.T) {
	requireExplained(t, []string{"otel-collector.yaml"}, "there is no elasticsearch exporter in lenscol: otlp_http sends to the OTLP intake of Elastic's APM Server")

	retrieved, err := confmap.NewRetrievedFromYAML([]byte(read(t, "otel-collector.yaml")))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	config := conf.ToStringMap()
	delete(config["exporters"].(map[string]any), "elasticsearch")
	pipelines := config["service"].(map[string]any)["pipelines"].(map[string]any)
	pipelines["traces"].(map[string]any)["exporters"] = []any{"otlp/jaeger"}
	pipelines["logs"].(map[string]any)["exporters"] = []any{"debug"}
	config["exporters"].(map[string]any)["debug"] = nil
	text, err := json.Marshal(config) // JSON is YAML
	require.NoError(t, err)
	collector := start(t, string(text), nil, "receivers.hostmetrics.root_path=/", "exporters.prometheus.endpoint=127.0.0.1:"+testbed.FreePort(t),
		"exporters.otlp/jaeger.endpoint=127.0.0.1:"+testbed.FreePort(t))
	collector.RequireRunning()
}

func TestRabbitMQ(t *testing.T) {
	for _, name := range []string{"otel-collector-rabbitmq.yaml", "otel-collector-rabbitmq-infra.yaml"} {
		requireExplained(t, []string{name}, "there is no rabbitmq exporter in lenscol: Kafka is in: lenscol configs show kafka-agent")
	}
}

func TestRouting(t *testing.T) {
	requireExplained(t, []string{"node.yaml", "node-honeycomb.yaml"},
		"there is no routing connector in lenscol: the forward connector with a filter behind it does that: lenscol configs show goodput-routing")
}

// requireExplained has lenscol validate, and lenscol itself, name what is not there and what does its work.
func requireExplained(t *testing.T, names []string, want string) {
	t.Helper()
	var args []string
	for _, name := range names {
		args = append(args, "--config", filepath.Join("testdata", name))
	}
	for _, command := range [][]string{append([]string{"validate"}, args...), args} {
		cmd := exec.Command(testbed.Binary(t), command...)
		cmd.Env = append(os.Environ(), "HONEYCOMB_API_KEY=k", "RABBITMQ_PASSWORD=p", "LENS_OTEL_ARCHIVE_DIR=.", "SLURMD_NODENAME=n")
		said, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 1, exit.ExitCode())
		require.Contains(t, string(said), want)
	}
}
