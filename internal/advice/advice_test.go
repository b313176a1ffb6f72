// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"

	"github.com/lenscol/lenscol/configs"
	"github.com/lenscol/lenscol/confmap/lenscolprovider"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"nothing", "service: {pipelines: {traces: {receivers: [otlp], processors: [memory_limiter], exporters: [jsonl]}}}", ""},
		{"no memory_limiter", "service: {pipelines: {traces: {receivers: [otlp], exporters: [jsonl]}}}", "service.pipelines.traces.processors: no memory_limiter"},
		{"nothing is held", "service: {pipelines: {traces: {receivers: [otlp], exporters: [nop]}}}", ""},
		{"behind a connector", "connectors: {forward: {}}\nservice: {pipelines: {traces: {receivers: [forward], exporters: [jsonl]}}}", ""},
		{"late memory_limiter", "service: {pipelines: {logs/a: {receivers: [otlp], processors: [batch, memory_limiter/x], exporters: [jsonl]}}}",
			"service.pipelines.logs/a.processors: memory_limiter is not the first"},
		{"batch before a fan-out", "service: {pipelines: {traces: {receivers: [otlp], processors: [memory_limiter, batch/b], exporters: [jsonl, otlp_http]}}}",
			"batch/b before 2 exporters acknowledges"},
		{"batch before one", "service: {pipelines: {traces: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [jsonl]}}}", ""},
		{"paid, in memory", "exporters: {otlp_http/h: {endpoint: 'https://api.eu1.honeycomb.io:443'}}\n" + traces("otlp_http/h"), "exporters.otlp_http/h.sending_queue: what waits for Honeycomb"},
		{"paid by gRPC", "exporters: {otlp: {endpoint: 'api.honeycomb.io:443'}}\n" + traces("otlp"), "what waits for Honeycomb"},
		{"paid by its header", "exporters: {otlp_http: {endpoint: 'https://proxy.site', headers: {DD-API-KEY: x}}}\n" + traces("otlp_http"), "what waits for Datadog"},
		{"not paid", "exporters: {otlp_http: {endpoint: 'https://honeycomb.io.example'}}\n" + traces("otlp_http"), ""},
		{"paid, on disk", "exporters: {otlp_http: {endpoint: 'https://otlp.nr-data.net', sending_queue: {storage: file_storage}}}\n" + traces("otlp_http"), ""},
		{"metrics to Weave", "exporters: {otlp_http: {metrics_endpoint: 'https://trace.wandb.ai/otel/v1/metrics', sending_queue: {storage: s}}}\n" +
			strings.ReplaceAll(traces("otlp_http"), "traces", "metrics"), "Weave takes traces alone, it refuses metrics"},
		{"metrics without a dataset", "exporters: {otlp_http: {endpoint: 'https://api.honeycomb.io', sending_queue: {storage: s}, headers: {x-honeycomb-team: k}}}\n" +
			strings.ReplaceAll(traces("otlp_http"), "traces", "metrics"), "without x-honeycomb-dataset"},
		{"metrics with one", "exporters: {otlp_http: {endpoint: 'https://api.honeycomb.io', sending_queue: {storage: s}, headers: [{name: X-Honeycomb-Dataset, value: d}]}}\n" +
			strings.ReplaceAll(traces("otlp_http"), "traces", "metrics"), ""},
		{"weave in memory", "exporters: {weave: {}}\n" + traces("weave"), "what waits for Weave"},
		{"paid, gives up", "exporters: {otlp_http: {endpoint: 'https://otlp.nr-data.net', sending_queue: {storage: s}, retry_on_failure: {enabled: true, max_elapsed_time: 5m0s}}}\n" + traces("otlp_http"),
			"exporters.otlp_http.retry_on_failure: what New Relic does not take within 5m0s is lost"},
		{"paid, does not try again", "exporters: {weave: {sending_queue: {storage: s}, retry_on_failure: {enabled: false, max_elapsed_time: 5m0s}}}\n" + traces("weave"),
			"exporters.weave.retry_on_failure: a request that Weave does not take at once is lost"},
		{"paid, tries without an end", "exporters: {weave: {sending_queue: {storage: s}, retry_on_failure: {enabled: true, max_elapsed_time: 0s}}}\n" + traces("weave"), ""},
		{"without a unit", "exporters: {jsonl: {rotation: {ages: [{every: 30ns}, 1h0m0s, 0ns]}}}\n" + traces("jsonl"),
			"exporters.jsonl.rotation.ages[0].every: is 30ns: a number without a unit is nanoseconds: write 30s for seconds"},
		{"wide", otlp("grpc: {endpoint: '0.0.0.0:4317'}"), "receivers.otlp.protocols.grpc: whoever reaches 0.0.0.0:4317 can send"},
		{"wide, by name", otlp("http: {endpoint: 'node7:4318', tls: {cert_file: c}}"), "receivers.otlp.protocols.http: whoever reaches node7:4318 can send"},
		{"wide, every address", otlp("http: {endpoint: ':4318'}"), "whoever reaches :4318 can send"},
		{"wide, with a token", otlp("grpc: {endpoint: '0.0.0.0:4317', auth: {authenticator: bearertokenauth}}, http: {endpoint: '127.0.0.1:4318'}"), ""},
		{"wide, with certificates", otlp("grpc: {endpoint: '[::]:4317', tls: {client_ca_file: ca.crt}}"), ""},
		{"loopback", otlp("grpc: {endpoint: '[::1]:4317'}, http: {endpoint: 'localhost:4318'}"), ""},
		{"loopback without a port", otlp("http: {endpoint: 127.0.0.1}"), ""},
		{"socket", otlp("grpc: {endpoint: /run/otlp.sock, transport: unix}"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			retrieved, err := confmap.NewRetrievedFromYAML([]byte(c.yaml))
			require.NoError(t, err)
			conf, err := retrieved.AsConf()
			require.NoError(t, err)
			lines := Of(conf)
			if c.want == "" {
				require.Empty(t, lines)
				return
			}
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], c.want)
		})
	}
}

// In the config of a collector that runs, durations are no texts.
func TestDurations(t *testing.T) {
	honeycomb := func(elapsed, timeout time.Duration) []string {
		return Of(confmap.NewFromStringMap(map[string]any{
			"exporters": map[string]any{"otlp_http": map[string]any{
				"endpoint": "https://api.honeycomb.io", "timeout": timeout, "sending_queue": map[string]any{"storage": "s"},
				"retry_on_failure": map[string]any{"enabled": true, "max_elapsed_time": elapsed},
			}},
			"service": map[string]any{"pipelines": map[string]any{"traces": map[string]any{
				"receivers": []any{"otlp"}, "processors": []any{"memory_limiter"}, "exporters": []any{"otlp_http"},
			}}},
		}))
	}
	require.Empty(t, honeycomb(0, 30*time.Second))
	require.Equal(t, []string{"exporters.otlp_http.timeout: is 30ns: a number without a unit is nanoseconds: write 30s for seconds"}, honeycomb(0, 30))
	require.Equal(t, []string{"exporters.otlp_http.retry_on_failure: what Honeycomb does not take within 5m0s is lost, wherever it waits: " +
		"max_elapsed_time: 0s tries without an end, and the queue bounds what waits"}, honeycomb(5*time.Minute, 0))
}

func otlp(protocols string) string {
	return "receivers: {otlp: {protocols: {" + protocols + "}}}\n" +
		"service: {pipelines: {logs: {receivers: [otlp], exporters: [nop]}, traces: {receivers: [otlp], exporters: [nop]}}}"
}

func traces(exporter string) string {
	return "service: {pipelines: {traces: {receivers: [otlp], processors: [memory_limiter], exporters: [" + exporter + "]}}}"
}

func TestNothingAboutOurOwnConfigs(t *testing.T) {
	for _, name := range configs.Names() {
		resolver, err := confmap.NewResolver(confmap.ResolverSettings{
			URIs: []string{"lenscol:" + name}, ProviderFactories: []confmap.ProviderFactory{lenscolprovider.NewFactory(), envprovider.NewFactory()},
		})
		require.NoError(t, err)
		conf, err := resolver.Resolve(t.Context())
		require.NoError(t, err)
		for range 3 { // Parts of parts: ToStringMap takes the values out of one level of expansion.
			conf = confmap.NewFromStringMap(conf.ToStringMap())
		}
		require.Empty(t, Of(conf), name)
	}
}
