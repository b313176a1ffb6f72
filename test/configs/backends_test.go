// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/configs/backendtest"
)

const key = "k3y-of-the-team"

func newHoneycomb(t *testing.T, key, dataset, metricsDataset string) *backendtest.Intake {
	return backendtest.New(t, backendtest.Honeycomb(key, dataset, metricsDataset))
}

func TestHoneycomb(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, key, dataset, metricsDataset string
		env                                []string
	}{
		{name: "environments", key: key, metricsDataset: "lens-metrics"},
		{name: "classic", key: "0123456789abcdef0123456789abcdef", dataset: "lens", metricsDataset: "numbers",
			env: []string{"HONEYCOMB_DATASET=lens", "HONEYCOMB_METRICS_DATASET=numbers"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			backend := newHoneycomb(t, tt.key, tt.dataset, tt.metricsDataset)
			collector := start(t, "honeycomb", testbed.Options{Env: append(tt.env, "HONEYCOMB_API_KEY="+tt.key, "HONEYCOMB_ENDPOINT="+backend.URL)})
			sendAll(t, collector)
			requireTook(t, &backend.Sink, "step", "loss", "hello")
			collector.Stop()
		})
	}
}

func TestGrafanaCloud(t *testing.T) {
	t.Parallel()
	backend := backendtest.New(t, backendtest.GrafanaCloud("123456", key))
	collector := start(t, "grafana-cloud", testbed.Options{
		Env: []string{"GRAFANA_CLOUD_OTLP_ENDPOINT=" + backend.URL, "GRAFANA_CLOUD_INSTANCE_ID=123456", "GRAFANA_CLOUD_API_KEY=" + key}})
	sendAll(t, collector)
	requireTook(t, &backend.Sink, "step", "loss", "hello")
	collector.Stop()
}

// What is cumulative Datadog refuses, which the log says, and it costs nothing else.
func TestDatadog(t *testing.T) {
	t.Parallel()
	backend := backendtest.New(t, backendtest.Datadog(key, "acme"))
	args := make([]string, 0, 2*len(backendtest.AllSignals))
	for _, signal := range backendtest.AllSignals {
		args = append(args, "--set", "exporters.otlp_http."+signal+"_endpoint="+backend.URL+"/v1/"+signal)
	}
	collector := start(t, "datadog", testbed.Options{Args: args, Env: []string{"DD_API_KEY=" + key, "DD_OTLP_SOURCE=acme"}})
	send(t, collector, traces(span{name: "step"}), sum("steps", pmetric.AggregationTemporalityDelta, rank(0, 1)), record("hello", nil))
	requireTook(t, &backend.Sink, "step", "steps", "hello")
	send(t, collector, sum("late", pmetric.AggregationTemporalityCumulative, rank(0, 1)))
	eventually(t, func() bool { return strings.Contains(collector.Stderr(), "HTTP Status Code 400") }, "a line in the log")
	collector.Stop()
}

func TestNewRelic(t *testing.T) {
	t.Parallel()
	backend := backendtest.New(t, backendtest.NewRelic(key))
	collector := start(t, "newrelic", testbed.Options{Env: []string{"NEW_RELIC_LICENSE_KEY=" + key, "NEW_RELIC_ENDPOINT=" + backend.URL}})
	sendAll(t, collector)
	requireTook(t, &backend.Sink, "step", "loss", "hello")
	collector.Stop()
}

func weaveEnv(weave *weavetest.Server) []string {
	return []string{"WANDB_API_KEY=" + weavetest.Key, "WANDB_ENTITY=acme", "WANDB_PROJECT=llm", "WANDB_RUN_ID=3f9k2q", "WF_TRACE_SERVER_URL=" + weave.URL}
}

func TestWeave(t *testing.T) {
	t.Parallel()
	weave := weavetest.New(t, weavetest.Options{})
	collector := start(t, "weave", testbed.Options{Env: weaveEnv(weave)})
	sendAll(t, collector)
	eventually(t, func() bool { return len(weave.Calls("acme/llm")) == 1 }, "a call")
	call := weave.Calls("acme/llm")[0]
	require.Equal(t, "3f9k2q", call.RunID)
	run, _ := call.Filter("nemo.run.id")
	of, _ := call.Filter("dl.rank")
	require.Equal(t, []any{"run-1", int64(0)}, []any{run, of}, "the filters of docs/find-a-run.md")
	require.Zero(t, weave.Stats().Refused)
	requireArchived(t, collector)
	collector.Stop()
}

// Jaeger and Tempo listen for OTLP over gRPC in clear text.
func TestJaegerAndTempo(t *testing.T) {
	t.Parallel()
	for name, variable := range map[string]string{"jaeger": "LENSCOL_JAEGER", "tempo": "LENSCOL_TEMPO"} {
		t.Run(name, func(t *testing.T) {
			backend := backendtest.NewGRPC(t, nil)
			collector := start(t, name, testbed.Options{Env: []string{variable + "=" + backend.Address}})
			sendAll(t, collector)
			requireTook(t, &backend.Sink, "step", "", "")
			requireArchived(t, collector)
			prompts := sendPrompts(t, collector)
			eventually(t, func() bool { spans, _, _ := backend.Took(); return len(spans) == 1+prompts }, "all prompts")
			collector.Stop()
		})
	}
}

// sendPrompts sends spans of prompts, and returns how many. Each request is far below what a gRPC server takes at once, 4 MiB, or 8 a gateway of ours; all
// together are above.
func sendPrompts(t *testing.T, collector *testbed.Collector) int {
	t.Helper()
	const requests, each = 11, 100
	for range requests {
		var spans []span
		for range each {
			spans = append(spans, span{name: "prompt", attrs: attributes{"prompt": strings.Repeat("x", 9<<10)}})
		}
		send(t, collector, traces(spans...))
	}
	return requests * each
}

// Refinery gets traces of requests, Honeycomb those of ranks, metrics and logs.
func TestRefinery(t *testing.T) {
	t.Parallel()
	honeycomb := newHoneycomb(t, key, "", "lens-metrics")
	refinery := backendtest.NewGRPC(t, map[string]string{"x-honeycomb-team": key})
	collector := start(t, "refinery", testbed.Options{
		Env: []string{"HONEYCOMB_API_KEY=" + key, "HONEYCOMB_ENDPOINT=" + honeycomb.URL, "LENSCOL_REFINERY=" + refinery.Address}})
	sendAll(t, collector)
	gym := rank(0, 1)
	gym["service.name"] = "nemo-gym/math"
	send(t, collector, traces(span{name: "vllm", resource: attributes{"service.name": "vllm"}}, span{name: "rollout", resource: gym}, span{name: "nobody"}))
	eventually(t, func() bool { spans, _, _ := refinery.Took(); return len(spans) == 3 }, "spans at Refinery")
	spans, _, _ := refinery.Took()
	require.Equal(t, []string{"nobody", "rollout", "vllm"}, spans)
	requireTook(t, &honeycomb.Sink, "step", "loss", "hello")
	collector.Stop()
	require.Len(t, archived(t, filepath.Join(collector.Dir, "lens-data"), "traces", "span"), 4)
}

// Every tag that has meant goodput takes a span to Honeycomb; the archive has all.
func TestGoodputRouting(t *testing.T) {
	t.Parallel()
	honeycomb := newHoneycomb(t, key, "", "lens-metrics")
	collector := start(t, "goodput-routing", testbed.Options{Env: []string{"HONEYCOMB_API_KEY=" + key, "HONEYCOMB_ENDPOINT=" + honeycomb.URL}})
	tagged := map[string]attributes{
		"purpose":             {"purpose": []any{"goodput"}},
		"purposes":            {"purpose": []any{"goodput", "profiling"}},
		"purpose as text":     {"purpose": "goodput"},
		"category":            {"lens.span_category": "goodput", "lens.group": "step"},
		"flag":                {"is_goodput_span": true},
		"bucket productive":   {"rl.bucket": "productive"},
		"bucket idle":         {"rl.bucket": "idle"},
		"bucket overhead":     {"rl.bucket": "overhead"},
		"bucket wasted":       {"rl.bucket": "wasted"},
		"other: purpose":      {"purpose": []any{"profiling"}},
		"other: category":     {"lens.span_category": "profiling"},
		"other: flag":         {"is_goodput_span": false},
		"other: none":         {},
		"other: purpose text": {"purpose": "profiling"},
	}
	var spans []span
	for _, name := range slices.Sorted(maps.Keys(tagged)) {
		spans = append(spans, span{name: name, resource: rank(0, 1), attrs: tagged[name]})
	}
	send(t, collector, traces(spans...), gauges("loss", rank(0, 1)), record("hello", nil))
	goodput := []string{"bucket idle", "bucket overhead", "bucket productive", "bucket wasted", "category", "flag", "purpose", "purpose as text", "purposes"}
	eventually(t, func() bool { got, _, _ := honeycomb.Took(); return len(got) >= len(goodput) }, "spans of goodput")
	collector.Stop()
	got, points, bodies := honeycomb.Took()
	require.Equal(t, goodput, got)
	require.Empty(t, points)
	require.Empty(t, bodies)
	require.Empty(t, honeycomb.Refused())
	require.Len(t, archived(t, filepath.Join(collector.Dir, "lens-data"), "traces", "span"), len(tagged))
}

// One stream, four destinations, each span once.
func TestFanout(t *testing.T) {
	t.Parallel()
	weave := weavetest.New(t, weavetest.Options{})
	honeycomb, jaeger := newHoneycomb(t, key, "", "lens-metrics"), backendtest.NewGRPC(t, nil)
	collector := start(t, "fanout", testbed.Options{
		Env: append(weaveEnv(weave), "HONEYCOMB_API_KEY="+key, "HONEYCOMB_ENDPOINT="+honeycomb.URL, "LENSCOL_JAEGER="+jaeger.Address)})
	sendAll(t, collector)
	requireTook(t, &honeycomb.Sink, "step", "loss", "hello")
	requireTook(t, &jaeger.Sink, "step", "", "")
	eventually(t, func() bool { return weave.Stats().Spans == 1 }, "a call")
	requireArchived(t, collector)
	collector.Stop()
	require.Equal(t, 1, weave.Stats().Spans)
}
