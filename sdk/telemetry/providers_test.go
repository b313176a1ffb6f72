// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Every protocol brings every signal, and headers, to the endpoint.
func TestProtocols(t *testing.T) {
	for _, protocol := range sending {
		t.Run(protocol, func(t *testing.T) {
			cleanEnv(t)
			s := newSink(t)
			cfg := to(s, protocol)
			for _, signal := range signals {
				signal.of(&cfg).Headers = map[string]Secret{"X-Team": "lens", "X-Key": "a,b=c d"}
			}
			h := setUp(t, cfg)
			one(t.Context(), h, "one")
			require.NoError(t, h.Shutdown(t.Context()))
			require.Equal(t, "lens", s.headers.Get("x-team"))
			require.Equal(t, "a,b=c d", s.headers.Get("x-key"))
			if protocol == ProtocolJSON {
				require.Len(t, s.json, 3)
				slices.Sort(s.paths)
				require.Equal(t, []string{"/v1/logs", "/v1/metrics", "/v1/traces"}, s.paths)
				return
			}
			require.Equal(t, [][]string{{"one"}, {"one"}, {"one"}}, [][]string{s.spanNames(), s.metricNames(), s.logBodies()})
		})
	}

	t.Run("gRPC to host:port", func(t *testing.T) {
		cleanEnv(t)
		t.Setenv("OTEL_EXPORTER_OTLP_INSECURE", "true")
		s := newSink(t)
		cfg := to(s, ProtocolGRPC)
		cfg.Traces.Endpoint, cfg.Metrics.Endpoint, cfg.Logs.Endpoint = s.grpc, s.grpc, s.grpc
		h := setUp(t, cfg)
		one(t.Context(), h, "one")
		require.NoError(t, h.Shutdown(t.Context()))
		require.Equal(t, [][]string{{"one"}, {"one"}, {"one"}}, [][]string{s.spanNames(), s.metricNames(), s.logBodies()})
	})

	t.Run("none", func(t *testing.T) {
		cleanEnv(t)
		s := newSink(t)
		cfg := to(s, ProtocolGRPC)
		cfg.Metrics, cfg.Logs = Target{Protocol: ProtocolNone}, Target{Protocol: ProtocolNone}
		h := setUp(t, cfg)
		one(t.Context(), h, "one")
		require.NoError(t, h.Shutdown(t.Context()))
		require.Equal(t, [][]string{{"one"}, {}, {}}, [][]string{s.spanNames(), s.metricNames(), s.logBodies()})
	})

	for _, c := range []struct {
		name string
		set  func(*Config)
	}{
		{"console, by the protocol", func(c *Config) {
			console := Target{Protocol: ProtocolConsole}
			c.Traces, c.Metrics, c.Logs = console, console, console
		}},
		{"console, by the exporter", func(c *Config) { c.Exporter = ExporterConsole }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			s := newSink(t)
			cfg := to(s, ProtocolHTTP)
			c.set(&cfg)
			var out lockedBuffer
			h := setUp(t, cfg, WithOutput(&out))
			one(t.Context(), h, "one")
			require.NoError(t, h.Shutdown(t.Context()))
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			require.Len(t, lines, 3)
			slices.Sort(lines)
			require.True(t, strings.HasPrefix(lines[0], `{"body": "one", "severity_number": `), lines[0])
			require.True(t, strings.HasPrefix(lines[1], `{"name": "one", "context": {"trace_id": "0x`), lines[1])
			require.True(t, strings.HasPrefix(lines[2], `{"resource_metrics": [{"resource": {"attributes": {`), lines[2])
			require.Zero(t, s.requests())
		})
	}
}

// The direct forms of the backends, from variables to the request. Their hosts stand for themselves; the sink has no TLS.
func TestDirectToBackends(t *testing.T) {
	for _, c := range []struct {
		name    string
		env     map[string]string
		paths   []string
		headers map[string]string
	}{
		{"Weave", map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL":         "http/protobuf",
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":  "http://HOST/otel/v1/traces",
			"OTEL_EXPORTER_OTLP_TRACES_HEADERS":   "wandb-api-key=hunter2",
			"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "none",
		}, []string{"/otel/v1/traces"}, map[string]string{"wandb-api-key": "hunter2", "content-type": "application/x-protobuf"}},
		{"Weave, by the variable for all", map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://HOST/otel",
			"OTEL_EXPORTER_OTLP_HEADERS":  "wandb-api-key=hunter2",
			"NEMO_LENS_METRICS_ENABLED":   "false",
		}, []string{"/otel/v1/traces"}, map[string]string{"wandb-api-key": "hunter2"}},
		{"Weave, self-managed", map[string]string{
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://HOST/traces/otel/v1/traces",
			"OTEL_EXPORTER_OTLP_HEADERS":         "wandb-api-key=hunter2",
			"NEMO_LENS_METRICS_ENABLED":          "false",
		}, []string{"/traces/otel/v1/traces"}, map[string]string{"wandb-api-key": "hunter2"}},
		{"Honeycomb", map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL":        "http/protobuf",
			"OTEL_EXPORTER_OTLP_ENDPOINT":        "http://HOST",
			"OTEL_EXPORTER_OTLP_HEADERS":         "x-honeycomb-team=hunter2",
			"OTEL_EXPORTER_OTLP_METRICS_HEADERS": "x-honeycomb-team=hunter2,x-honeycomb-dataset=metrics",
			"NEMO_LENS_LOGS_ENABLED":             "true",
		}, []string{"/v1/logs", "/v1/metrics", "/v1/traces"}, map[string]string{"x-honeycomb-team": "hunter2"}},
		{"credentials in the endpoint", map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://api:hunter2@HOST",
			"NEMO_LENS_METRICS_ENABLED":   "false",
		}, []string{"/v1/traces"}, map[string]string{"authorization": "Basic YXBpOmh1bnRlcjI="}},
		{"credentials in the endpoint, JSON", map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://api:hunter2@HOST/base/",
			"NEMO_LENS_METRICS_ENABLED":   "false",
		}, []string{"/base/v1/traces"}, map[string]string{"authorization": "Basic YXBpOmh1bnRlcjI=", "content-type": "application/json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			s := newSink(t)
			t.Setenv("NEMO_LENS_ENABLED", "true")
			for name, value := range c.env {
				t.Setenv(name, strings.ReplaceAll(value, "HOST", s.http))
			}
			cfg, err := FromEnv(Source{})
			require.NoError(t, err)
			h := setUp(t, cfg)
			one(t.Context(), h, "one")
			require.NoError(t, h.Shutdown(t.Context()))
			slices.Sort(s.paths)
			require.Equal(t, c.paths, s.paths)
			for name, value := range c.headers {
				require.Equal(t, value, s.headers.Get(name), name)
			}
		})
	}
}

// A server that sends the key back in its error must not make us print it.
func TestNoSecretInErrors(t *testing.T) {
	for _, protocol := range sending {
		t.Run(protocol, func(t *testing.T) {
			cleanEnv(t)
			s := newSink(t)
			s.refusal = func(headers http.Header) string {
				return "no such key: " + strings.TrimPrefix(headers.Get("Authorization"), "Bearer ") + ", " + headers.Get("X-Key") +
					strings.Repeat(" ", 2*maxError) + "the last word"
			}
			handled := handledErrors(t)
			cfg := to(s, protocol)
			for _, signal := range signals {
				signal.of(&cfg).Headers = map[string]Secret{"authorization": "Bearer hunter2", "x-key": "hunter3"}
			}
			h := setUp(t, cfg)
			one(t.Context(), h, "one")
			err := errors.Join(h.ForceFlush(t.Context()), h.Shutdown(t.Context()))
			text := err.Error() + handled() + fmt.Sprintf("%#v", err)
			require.Contains(t, text, "flush traces: ")
			require.Regexp(t, "401|Unauthenticated", text)
			require.Contains(t, text, "[REDACTED]")
			require.NotContains(t, text, "hunter")
			require.NotContains(t, text, "the last word")
		})
	}
}

// handledErrors are the texts of the errors that OpenTelemetry's error handler is given from now on.
func handledErrors(t *testing.T) func() string {
	b := &lockedBuffer{}
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(b, err) }))
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	return b.String
}

func TestSamplers(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		set  func(*Config)
		opts []Option
		want []string
	}{
		{name: "default", want: []string{"one"}},
		{name: "OTEL_TRACES_SAMPLER", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, want: []string{}},
		{name: "blank", env: map[string]string{"OTEL_TRACES_SAMPLER": " ", "OTEL_TRACES_SAMPLER_ARG": ""}, want: []string{"one"}},
		{name: "OTEL_TRACES_SAMPLER_ARG", env: map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, want: []string{}},
		{name: "sampler_enabled goes before it", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_off"},
			set: func(c *Config) { c.SamplerEnabled = true }, want: []string{"one"}},
		{name: "sampler_enabled at a rate that leaves rank 0 out",
			set: func(c *Config) { c.SamplerEnabled, c.ExportSampleRate, c.ExportRank = true, 0.25, 0 }, want: []string{}},
		{name: "the option goes before all", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_on"},
			set: func(c *Config) { c.SamplerEnabled = true }, opts: []Option{WithSampler(sdktrace.NeverSample())}, want: []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			handled := handledErrors(t)
			s := newSink(t)
			cfg := to(s, ProtocolGRPC)
			if c.set != nil {
				c.set(&cfg)
			}
			h := setUp(t, cfg, append(c.opts, WithRank(0, 1))...)
			one(t.Context(), h, "one")
			require.NoError(t, h.Shutdown(t.Context()))
			require.Equal(t, c.want, s.spanNames())
			require.Empty(t, handled())
		})
	}
	t.Run("sampler_enabled without a rank", func(t *testing.T) {
		cleanEnv(t)
		s := newSink(t)
		cfg := to(s, ProtocolGRPC)
		cfg.SamplerEnabled, cfg.ExportSampleRate = true, 0.25
		h := setUp(t, cfg)
		one(t.Context(), h, "one")
		require.NoError(t, h.Shutdown(t.Context()))
		require.Equal(t, []string{"one"}, s.spanNames(), "a process that has no rank exports")
	})
	require.Equal(t, "RankAwareSampler(rank=3, rate=0.25)", RankAwareSampler(3, 0.25).Description())
	require.Contains(t, ParentBasedRankAwareSampler(3, 0.25).Description(), "ParentBased{root:RankAwareSampler(rank=3, rate=0.25)")
}

// OTEL_BSP_* hold: a queue of one span loses the others.
func TestBatchVariables(t *testing.T) {
	cleanEnv(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
	s := newSink(t)
	h := setUp(t, to(s, ProtocolGRPC))
	one(t.Context(), h, "a")
	one(t.Context(), h, "b")
	require.Eventually(t, func() bool { return slices.Equal(s.spanNames(), []string{"a", "b"}) }, time.Minute, time.Millisecond,
		"a full batch of two goes at once")
	require.NoError(t, h.Shutdown(t.Context()))
}

// OTEL_METRIC_EXPORT_INTERVAL is the Config's.
func TestMetricInterval(t *testing.T) {
	cleanEnv(t)
	s := newSink(t)
	cfg := to(s, ProtocolGRPC)
	cfg.MetricExportInterval = time.Millisecond
	h := setUp(t, cfg)
	one(t.Context(), h, "one")
	require.Eventually(t, func() bool { return len(s.metricNames()) > 0 }, time.Minute, time.Millisecond)
}
