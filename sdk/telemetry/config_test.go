// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/sdk/rank"
)

func fromEnv(s Source, env map[string]string) (Config, error) {
	s.LookupEnv = func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
	return FromEnv(s)
}

// Each row is a variable: what it does, and what is said of a bad value.
func TestEveryVariable(t *testing.T) {
	const bad = "\x00" // no bad value
	const booleans = ` is not a boolean, must be 1, true, yes, on, 0, false, no or off`
	for _, c := range []struct {
		name  string
		bare  bool
		value string
		set   func(*Config)
		bad   string
		err   string // behind the variable's name
	}{
		{"ENABLED", false, "true", func(c *Config) { c.Enabled = true }, "maybe", `"maybe"` + booleans},
		{"OTEL_SERVICE_NAME", true, "trainer", func(c *Config) { c.ServiceName = "trainer" }, bad, ""},
		{"EXPORT_STRATEGY", false, "all_ranks", func(c *Config) { c.ExportStrategy = "all_ranks" }, "odd_ranks",
			`strategy: unknown strategy "odd_ranks", must be one of all_ranks, first_rank_per_node, per_group, ranks, sampled, single_rank`},
		{"EXPORT_RANK", false, "3", func(c *Config) { c.ExportRank = 3 }, "3.5", `"3.5" is not an integer`},
		{"EXPORT_SAMPLE_RATE", false, "0.25", func(c *Config) { c.ExportSampleRate = 0.25 }, "half", `"half" is not a number`},
		{"EXPORT_SAMPLE_RATE", false, "0", func(c *Config) { c.ExportSampleRate = 0 }, "1.5", `must be in [0.0, 1.0], got 1.5`},
		{"EXPORT_SAMPLE_RATE", false, "1", func(*Config) {}, "NaN", `must be in [0.0, 1.0], got NaN`},
		{"SAMPLER_ENABLED", false, "ON", func(c *Config) { c.SamplerEnabled = true }, "2", `"2"` + booleans},
		{"TRACES_ENABLED", false, "No", func(c *Config) { c.TracesEnabled = false }, "t", `"t"` + booleans},
		{"METRICS_ENABLED", false, "0", func(c *Config) { c.MetricsEnabled = false }, "x", `"x"` + booleans},
		{"LOGS_ENABLED", false, "yes", func(c *Config) { c.LogsEnabled = true }, "x", `"x"` + booleans},
		{"SPAN_GROUPS", false, "per_step,mine", func(c *Config) { c.SpanGroups = "per_step,mine" }, bad, ""},
		{"EXPORTER", false, "console", func(c *Config) { c.Exporter = "console" }, "zipkin", `unknown exporter type "zipkin", must be otlp or console`},
		{"RUN_ID", false, "run-7", func(c *Config) { c.RunID = "run-7" }, bad, ""},
		{"USER_ID", false, "ada", func(c *Config) { c.User = "ada" }, bad, ""},
		{"WANDB_ENTITY", true, "team", func(c *Config) { c.WandbEntity = "team" }, bad, ""},
		{"WANDB_PROJECT", true, "llm", func(c *Config) { c.WandbProject = "llm" }, bad, ""},
		{"DEPLOYMENT_ENV", true, "prod", func(c *Config) { c.DeploymentEnvironment = "prod" }, bad, ""},
		{"ENVIRONMENT", true, "dev", func(c *Config) { c.DeploymentEnvironment = "dev" }, bad, ""},
		{"OTEL_METRIC_EXPORT_INTERVAL", true, "2500", func(c *Config) { c.MetricExportInterval = 2500 * time.Millisecond }, "0", `0s must be above 0`},
		{"OTEL_METRIC_EXPORT_INTERVAL", true, "1", func(c *Config) { c.MetricExportInterval = time.Millisecond }, "9223372036855", `9223372036855 is beyond 9223372036854 milliseconds`},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", true, "http/json", func(c *Config) {
			c.Traces = Target{Protocol: ProtocolJSON, Endpoint: "http://localhost:4318/v1/traces"}
			c.Metrics = Target{Protocol: ProtocolJSON, Endpoint: "http://localhost:4318/v1/metrics"}
			c.Logs = Target{Protocol: ProtocolJSON, Endpoint: "http://localhost:4318/v1/logs"}
		}, "thrift", ""},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", true, "http/protobuf", func(c *Config) {
			c.Traces = Target{Protocol: ProtocolHTTP, Endpoint: "http://localhost:4318/v1/traces"}
		}, "thrift", `unknown protocol "thrift", must be grpc, http/protobuf, http/json, console or none`},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", true, "200", func(c *Config) {
			c.Traces.Timeout, c.Metrics.Timeout, c.Logs.Timeout = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
		}, "0", ""},
		{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", true, "200", func(c *Config) { c.Traces.Timeout = 200 * time.Millisecond }, "soon", `"soon" is not an integer`},
		{"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", true, "none", func(c *Config) { c.Metrics.Protocol = ProtocolNone }, bad, ""},
		{"OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", true, "console", func(c *Config) { c.Logs.Protocol = ProtocolConsole }, bad, ""},
		{"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", true, "http/protobuf", func(c *Config) {
			c.Metrics = Target{Protocol: ProtocolHTTP, Endpoint: "http://localhost:4318/v1/metrics"}
		}, "http", `unknown protocol "http", must be grpc, http/protobuf, http/json, console or none`},
		{"OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", true, "HTTP/Protobuf", func(c *Config) { // NeMo Lens takes it in any case
			c.Logs = Target{Protocol: ProtocolHTTP, Endpoint: "http://localhost:4318/v1/logs"}
		}, "GRPCS", `unknown protocol "grpcs", must be grpc, http/protobuf, http/json, console or none`},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", true, "collector:4317", func(c *Config) { c.Traces.Endpoint = "collector:4317" }, "collector",
			`it is no endpoint, must be host:port or a URL that begins with http:// or https://`},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", true, "https://m", func(c *Config) { c.Metrics.Endpoint = "https://m" }, "ftp://user:hunter2@m",
			`it is no endpoint, must be a URL that begins with http:// or https://`},
		{"OTEL_EXPORTER_OTLP_LOGS_HEADERS", true, "a=1, b = x%2Cy ,", func(c *Config) {
			c.Logs.Headers = map[string]Secret{"a": "1", "b": "x,y"}
		}, "hunter2", `must be key=value with commas between, a comma in a value written as %2C`},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", true, "a=b=c", func(c *Config) { c.Traces.Headers = map[string]Secret{"a": "b=c"} }, "key=hunter2%zz",
			`the value of "key" is not percent-encoded, % must be written as %25`},
	} {
		t.Run(c.name+" "+c.value, func(t *testing.T) {
			for _, source := range []Source{{}, {Prefix: PrefixMegatron, Fallback: PrefixLens}, {Prefix: PrefixGym, Fallback: PrefixLens}} {
				names := []string{c.name}
				if !c.bare {
					names = []string{PrefixLens + "_" + c.name}
					if source.Prefix != "" {
						names = append(names, source.Prefix+"_"+c.name) // the fallback's, and its own
					}
				}
				for _, name := range names {
					want := Default()
					c.set(&want)
					got, err := fromEnv(source, map[string]string{name: " " + c.value + "\n"})
					require.NoError(t, err, name)
					require.Equal(t, want, got, name)
					got, err = fromEnv(source, map[string]string{name: " \t"})
					require.NoError(t, err, name)
					require.Equal(t, Default(), got, "blank is not set")
					if c.bad == bad {
						continue
					}
					_, err = fromEnv(source, map[string]string{name: c.bad})
					require.ErrorContains(t, err, name+": ", "the variable that was read")
					require.NotContains(t, err.Error(), "hunter2")
					if c.err != "" {
						require.EqualError(t, err, name+": "+c.err)
					}
				}
			}
		})
	}
}

func TestBooleans(t *testing.T) {
	for text, want := range map[string]bool{"1": true, "true": true, "yes": true, "on": true, "TRUE": true,
		"0": false, "false": false, "no": false, "off": false, "Off": false} {
		c, err := fromEnv(Source{}, map[string]string{"NEMO_LENS_TRACES_ENABLED": text})
		require.NoError(t, err, text)
		require.Equal(t, want, c.TracesEnabled, text)
	}
}

// OpenTelemetry's variable switches off whatever Lens's says; by its specification nothing but true is true.
func TestSDKDisabled(t *testing.T) {
	for text, want := range map[string]bool{"true": false, " TRUE ": false, "1": true, "false": true, "": true} {
		c, err := fromEnv(Source{}, map[string]string{"NEMO_LENS_ENABLED": "1", "OTEL_SDK_DISABLED": text})
		require.NoError(t, err)
		require.Equal(t, want, c.Enabled, text)
	}
}

func TestErrorsAreOfThreeKinds(t *testing.T) {
	_, err := fromEnv(Source{Prefix: PrefixRL, Fallback: PrefixLens}, map[string]string{
		"NEMO_RL_OTEL_ENABLED": "perhaps", "NEMO_LENS_EXPORT_RANK": "x", "NEMO_LENS_EXPORT_SAMPLE_RATE": "y"})
	require.ErrorIs(t, err, ErrBoolean)
	require.ErrorIs(t, err, ErrInteger)
	require.ErrorIs(t, err, ErrFloat)
	require.EqualError(t, err, `NEMO_RL_OTEL_ENABLED: "perhaps" is not a boolean, must be 1, true, yes, on, 0, false, no or off
NEMO_LENS_EXPORT_RANK: "x" is not an integer
NEMO_LENS_EXPORT_SAMPLE_RATE: "y" is not a number`)
}

func TestPrefixGoesBeforeFallback(t *testing.T) {
	env := map[string]string{
		"NVRX_OTEL_RUN_ID": "own", "NEMO_LENS_RUN_ID": "fallback", "NVRX_OTEL_USER_ID": " ", "NEMO_LENS_USER_ID": "ada",
		"NVRX_OTEL_SERVICE_NAME": "not read", "DEPLOYMENT_ENV": "prod", "ENVIRONMENT": "dev",
	}
	c, err := fromEnv(Source{Prefix: PrefixNVRx, Fallback: PrefixLens}, env)
	require.NoError(t, err)
	require.Equal(t, []string{"own", "ada", "nemo", "prod"}, []string{c.RunID, c.User, c.ServiceName, c.DeploymentEnvironment})
	c, err = fromEnv(Source{Prefix: PrefixNVRx}, env)
	require.NoError(t, err)
	require.Empty(t, c.User, "no fallback unless one is named")
}

func TestFromEnvReadsTheProcess(t *testing.T) {
	t.Setenv("NEMO_LENS_RUN_ID", "of this process")
	c, err := FromEnv(Source{})
	require.NoError(t, err)
	require.Equal(t, "of this process", c.RunID)
}

// The direct forms of the backends, and OpenTelemetry's rules.
func TestEndpoints(t *testing.T) {
	const all, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for _, c := range []struct {
		name, protocol string
		env            map[string]string
		traces, logs   string
	}{
		{"defaults, gRPC", "grpc", nil, "http://localhost:4317", "http://localhost:4317"},
		{"defaults, HTTP", "http/protobuf", nil, "http://localhost:4318/v1/traces", "http://localhost:4318/v1/logs"},
		{"Weave", "http/protobuf", map[string]string{own: "https://trace.wandb.ai/otel/v1/traces"},
			"https://trace.wandb.ai/otel/v1/traces", "http://localhost:4318/v1/logs"},
		{"Weave, by the variable for all", "http/protobuf", map[string]string{all: "https://trace.wandb.ai/otel"},
			"https://trace.wandb.ai/otel/v1/traces", "https://trace.wandb.ai/otel/v1/logs"},
		{"Honeycomb", "http/protobuf", map[string]string{all: "https://api.honeycomb.io"},
			"https://api.honeycomb.io/v1/traces", "https://api.honeycomb.io/v1/logs"},
		{"Honeycomb, gRPC", "grpc", map[string]string{all: "https://api.honeycomb.io:443"},
			"https://api.honeycomb.io:443", "https://api.honeycomb.io:443"},
		{"a slash at the end", "http/json", map[string]string{all: "http://collector:4318/"},
			"http://collector:4318/v1/traces", "http://collector:4318/v1/logs"},
		{"its own goes first", "http/protobuf", map[string]string{all: "http://a:1", own: "http://b:2/x"}, "http://b:2/x", "http://a:1/v1/logs"},
		{"its own without a path", "http/protobuf", map[string]string{own: "http://b:2"}, "http://b:2/", "http://localhost:4318/v1/logs"},
		{"host and port, gRPC", "grpc", map[string]string{all: "collector:4317"}, "collector:4317", "collector:4317"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": c.protocol}
			for name, value := range c.env {
				env[name] = value
			}
			got, err := fromEnv(Source{}, env)
			require.NoError(t, err)
			require.Equal(t, c.traces, got.Traces.Endpoint)
			require.Equal(t, c.logs, got.Logs.Endpoint)
		})
	}
}

func TestHeadersOfASignalReplaceTheOnesForAll(t *testing.T) {
	c, err := fromEnv(Source{}, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=1,b=2", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "c=3"})
	require.NoError(t, err)
	require.Equal(t, map[string]Secret{"c": "3"}, c.Traces.Headers)
	require.Equal(t, map[string]Secret{"a": "1", "b": "2"}, c.Logs.Headers)
}

func TestValidateNamesTheField(t *testing.T) {
	require.NoError(t, Default().Validate())
	for _, c := range []struct {
		name string
		set  func(*Config)
		want string
	}{
		{"service name", func(c *Config) { c.ServiceName = "" }, "service_name: it is empty, must be the name of the service"},
		{"rate", func(c *Config) { c.ExportSampleRate = -0.1 }, "export_sample_rate: must be in [0.0, 1.0], got -0.1"},
		{"rate that is no number", func(c *Config) { c.ExportSampleRate = math.NaN() }, "export_sample_rate: must be in [0.0, 1.0], got NaN"},
		{"strategy without its options", func(c *Config) { c.ExportStrategy = rank.NameRanks }, `export_strategy: "ranks": ranks: `},
		{"rank", func(c *Config) { c.ExportRank = math.MaxInt }, `export_strategy: "single_rank": export_rank: 9223372036854775807 is beyond `},
		{"exporter", func(c *Config) { c.Exporter = "" }, `exporter: unknown exporter type "", must be otlp or console`},
		{"interval", func(c *Config) { c.MetricExportInterval = -time.Second }, "metric_export_interval: -1s must be above 0"},
		{"protocol", func(c *Config) { c.Logs.Protocol = "" }, `logs.protocol: unknown protocol "", must be grpc, http/protobuf, http/json, console or none`},
		{"timeout", func(c *Config) { c.Logs.Timeout = -1 }, "logs.timeout: -1ns must be above 0"},
		{"query", func(c *Config) { c.Metrics = Target{Protocol: ProtocolHTTP, Endpoint: "http://m/v1?key=hunter2"} },
			"metrics.endpoint: it has a query or a fragment, which exporters do not send: must be without ? and #"},
		{"header's name", func(c *Config) { c.Logs.Headers = map[string]Secret{"api key": "hunter2"} },
			`logs.headers: "api key" is no name of a header, must be letters, digits and -`},
		{"header's value", func(c *Config) { c.Logs.Headers = map[string]Secret{"key": "hunter2\n"} },
			`logs.headers: the value of "key" must be printable ASCII`},
		{"credentials before host:port", func(c *Config) { c.Traces.Endpoint = "token@host:4317" },
			`traces.endpoint: it is no endpoint, must be host:port or a URL that begins with http:// or https://`},
		{"endpoint", func(c *Config) { c.Metrics = Target{Protocol: ProtocolHTTP, Endpoint: "host:1"} },
			`metrics.endpoint: it is no endpoint, must be a URL that begins with http:// or https://`},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := Default()
			c.set(&config)
			require.ErrorContains(t, config.Validate(), c.want)
			require.NotContains(t, config.Validate().Error(), "hunter2")
		})
	}
}

func TestStrategyFollowsTheFields(t *testing.T) {
	c := Default()
	c.ExportRank = 2
	s, err := c.Strategy()
	require.NoError(t, err)
	require.True(t, s.Exports(rank.Identity{Rank: 2, WorldSize: 8}))
	require.False(t, s.Exports(rank.Identity{Rank: 7, WorldSize: 8}))
	c.ExportStrategy, c.ExportSampleRate = rank.NameSampled, 0.25
	s, err = c.Strategy()
	require.NoError(t, err)
	var ranks []int
	for n := range 8 {
		if s.Exports(rank.Identity{Rank: n, WorldSize: 8}) {
			ranks = append(ranks, n)
		}
	}
	require.Equal(t, []int{3, 4, 5, 6}, ranks)
}

func TestStringHasNoSecrets(t *testing.T) {
	c, err := fromEnv(Source{}, map[string]string{
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://api:hunter2@trace.wandb.ai/otel/v1/traces",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS":  "wandb-api-key=hunter2",
		"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT":   "collector:4317",
		"OTEL_EXPORTER_OTLP_LOGS_TIMEOUT":    "2500",
		"NEMO_LENS_RUN_ID":                   "run-7",
	})
	require.NoError(t, err)
	require.Equal(t, Secret("hunter2"), c.Traces.Headers["wandb-api-key"])
	require.Equal(t, `enabled=false service_name="nemo" export_strategy="single_rank" export_rank=-1 export_sample_rate=1 sampler_enabled=false`+
		` traces_enabled=true metrics_enabled=true logs_enabled=false span_groups="default" exporter="otlp"`+
		` run_id="run-7" user_id="" wandb_entity="" wandb_project="" deployment_environment="" metric_export_interval=10s`+
		` traces=(http/protobuf https://trace.wandb.ai/otel/v1/traces ["wandb-api-key"] timeout=10s)`+
		` metrics=(grpc http://localhost:4317 [] timeout=10s) logs=(grpc collector:4317 [] timeout=2.5s)`, c.String())
	headers, err := json.Marshal(c.Traces.Headers)
	require.NoError(t, err)
	var lines bytes.Buffer // a log in JSON
	slog.New(slog.NewJSONHandler(&lines, nil)).Info("starts", "config", c, "target", &c.Traces)
	require.Contains(t, lines.String(), `"Traces":{"Protocol":"http/protobuf","Endpoint":"https://trace.wandb.ai/otel/v1/traces",`)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", &c), fmt.Sprintf("%#v", c), fmt.Sprintf("%#v", c.Traces),
		fmt.Sprintf("%v %#v", c.Traces.Headers, c.Traces.Headers), string(headers), lines.String()} {
		require.NotContains(t, text, "hunter2")
	}
	for _, endpoint := range []string{"hunter2", "https://trace.wandb.ai/otel?key=hunter2"} {
		c.Traces.Endpoint = endpoint
		require.NotContains(t, c.String(), "hunter2")
	}
}

func FuzzFromEnv(f *testing.F) {
	f.Add("http/protobuf", "https://trace.wandb.ai/otel", "wandb-api-key=x%2Cy", "0.5")
	f.Add("grpc", "collector:4317", "a=1,b", "NaN")
	f.Add("http/json", "http://[::1]:4318", "=", "1e400")
	f.Fuzz(func(t *testing.T, protocol, endpoint, headers, rate string) {
		c, err := fromEnv(Source{}, map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
			"OTEL_EXPORTER_OTLP_HEADERS": headers, "NEMO_LENS_EXPORT_SAMPLE_RATE": rate})
		if err == nil {
			require.NoError(t, c.Validate())
		}
		_ = c.String()
	})
}

func ExampleFromEnv() {
	env := map[string]string{"NEMO_GYM_OTEL_ENABLED": "on", "NEMO_LENS_EXPORT_SAMPLE_RATE": "150"}
	_, err := FromEnv(Source{
		Prefix: PrefixGym, Fallback: PrefixLens,
		LookupEnv: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
	})
	fmt.Println(err)
	// Output: NEMO_LENS_EXPORT_SAMPLE_RATE: must be in [0.0, 1.0], got 150
}
