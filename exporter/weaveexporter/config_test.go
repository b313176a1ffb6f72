// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/shape"
	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

// validConfig has a key and a target, and nothing of the environment of the test.
func validConfig() *Config {
	env := map[string]string{"WANDB_API_KEY": weavetest.Key, "WANDB_ENTITY": "acme", "WANDB_PROJECT": "llm"}
	return ConfigOf(func(name string) (string, bool) { value, ok := env[name]; return value, ok })
}

// load reads YAML as the collector does: over the defaults of the environment, and validated.
func load(t *testing.T, yaml string) (*Config, error) {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	if err := conf.Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

func setEnv(t *testing.T, env map[string]string) {
	for _, name := range []string{"WANDB_API_KEY", "WANDB_ENTITY", "WANDB_PROJECT", "WANDB_RUN_ID", "WF_TRACE_SERVER_URL", "WANDB_BASE_URL"} {
		t.Setenv(name, env[name])
	}
}

func TestEnvironmentAlone(t *testing.T) {
	setEnv(t, map[string]string{"WANDB_API_KEY": weavetest.Key + "\n", "WANDB_ENTITY": "acme", "WANDB_PROJECT": "llm", "WANDB_RUN_ID": "3f9k2q", "WF_TRACE_SERVER_URL": "https://acme.wandb.io/traces"})
	cfg, err := load(t, "")
	require.NoError(t, err)
	require.Equal(t, weavetest.Key, string(cfg.APIKey))
	require.Equal(t, "acme", cfg.Entity)
	require.Equal(t, "llm", cfg.Project)
	require.Equal(t, "3f9k2q", cfg.Run.ID)
	base, err := cfg.baseURL()
	require.NoError(t, err)
	require.Equal(t, "https://acme.wandb.io/traces", base)

	cfg, err = load(t, "{entity: other, host: wandb.corp, run: {id: z, from_attribute: nemo.run.id}, api_key: "+weavetest.Key[:39]+"a}")
	require.NoError(t, err)
	require.Equal(t, "other", cfg.Entity)
	require.Equal(t, "llm", cfg.Project)
	require.Equal(t, RunConfig{"z", []string{"nemo.run.id"}}, cfg.Run)
	base, err = cfg.baseURL()
	require.NoError(t, err)
	require.Equal(t, "https://wandb.corp/traces", base)
}

// The address is that of Weave's SDK in the same environment: a dedicated instance's key goes to no other.
func TestAddressOfTheEnvironment(t *testing.T) {
	for _, tt := range []struct{ weave, wandb, want string }{
		{"", "", "https://trace.wandb.ai"},
		{"", "https://api.wandb.ai/", "https://trace.wandb.ai"},
		{"", "https://wandb.ai", "https://trace.wandb.ai"},
		{"", "https://acme.wandb.io", "https://acme.wandb.io/traces"},
		{"", " https://wandb.corp:8080/ ", "https://wandb.corp:8080/traces"},
		{"", "https://wandb.corp/traces", "https://wandb.corp/traces"},
		{"https://weave.corp/traces", "https://acme.wandb.io", "https://weave.corp/traces"},
	} {
		t.Run(tt.weave+tt.wandb, func(t *testing.T) {
			setEnv(t, map[string]string{"WANDB_API_KEY": weavetest.Key, "WF_TRACE_SERVER_URL": tt.weave, "WANDB_BASE_URL": tt.wandb})
			cfg, err := load(t, "")
			require.NoError(t, err)
			base, err := cfg.baseURL()
			require.NoError(t, err)
			require.Equal(t, tt.want, base)
		})
	}
	setEnv(t, map[string]string{"WANDB_API_KEY": weavetest.Key, "WANDB_BASE_URL": "wandb.corp"})
	_, err := load(t, "")
	require.ErrorContains(t, err, `base_url: "wandb.corp/traces" is no http or https URL`)
}

// With default settings a span is sent within 2 s of its arrival: it waits for its batch half of that at most.
func TestDefaultsSendWithinTwoSeconds(t *testing.T) {
	setEnv(t, map[string]string{"WANDB_API_KEY": weavetest.Key})
	for _, yaml := range []string{"", "sending_queue: {storage: file_storage}"} { // The second is that of configs/weave.yaml.
		cfg, err := load(t, yaml)
		require.NoError(t, err)
		require.LessOrEqual(t, cfg.QueueConfig.Get().Batch.Get().FlushTimeout, time.Second)
		require.Zero(t, cfg.QueueConfig.Get().Batch.Get().MaxSize)
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct{ name, yaml, want string }{
		{"empty key", `api_key: ""`, "api_key: is empty; set it, or the variable WANDB_API_KEY"},
		{"key with a line break", `api_key: "s3cr3t\ns3cr3t"`, "api_key: holds a blank or a line break"},
		{"auth style", "auth_style: bearer", `auth_style: "bearer" is not one of ["header" "basic"]`},
		{"entity with project", "entity: acme/llm", `entity: "acme/llm" holds a slash`},
		{"project with a line break", "project: \"llm\\n\"", `project: "llm\n" holds a slash, a colon or a line break`},
		{"project with entity", "project: acme/llm", `project: "acme/llm" holds a slash, a colon or a line break; of acme/llm, the entity is acme and the project is llm`},
		{"mode", "mode: all", "mode"},
		{"run with a path", "run: {id: acme/llm/3f9k2q}", "run::id"},
		{"step", "step: {offset: -1}", "step::offset"},
		{"template", "display_name: '{nam}'", "display_name"},
		{"small spans", "limits: {span_bytes: 16383}", "limits::span_bytes is 16383: must be at least 16384"},
		{"small requests", "limits: {request_bytes: 32767}", "limits::request_bytes is 32767: must be at least 32768"},
		{"endpoint", "endpoint: https://trace.wandb.ai", "endpoint: is not a setting here; use base_url"},
		{"queue that drops", "sending_queue: {batch: {sizer: bytes, max_size: 3000000}}", "sending_queue::batch::max_size: must be 0 where batches are measured in bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setEnv(t, map[string]string{"WANDB_API_KEY": weavetest.Key})
			_, err := load(t, tt.yaml)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "s3cr3t")
			require.NotContains(t, err.Error(), weavetest.Key)
		})
	}
	setEnv(t, nil)
	_, err := load(t, "auth: {authenticator: basicauth}")
	require.NoError(t, err, "an extension may have the key")
}

// Requirement 2: no way of printing a config shows the key.
func TestRequirement02_KeyIsNotPrinted(t *testing.T) {
	cfg := validConfig()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(verb, cfg), weavetest.Key, verb)
		require.NotContains(t, fmt.Sprintf(verb, *cfg), weavetest.Key, verb)
	}
	conf := confmap.New()
	require.NoError(t, conf.Marshal(cfg))
	require.NotContains(t, fmt.Sprint(conf.ToStringMap()), weavetest.Key)
}

// Requirement 27: nothing but protobuf, gzip and none; nothing but traces.
func TestRequirement27_EncodingsAndSignals(t *testing.T) {
	setEnv(t, map[string]string{"WANDB_API_KEY": weavetest.Key})
	for _, good := range []string{"gzip", "none", `""`} {
		_, err := load(t, "compression: "+good)
		require.NoError(t, err, good)
	}
	for _, bad := range []string{"zstd", "snappy", "zlib", "deflate", "lz4", "x-snappy-framed"} {
		_, err := load(t, "compression: "+bad)
		require.ErrorContains(t, err, "it must be gzip or none", bad)
	}
	_, err := load(t, "encoding: json")
	require.ErrorContains(t, err, "encoding")

	factory := NewFactory()
	require.Equal(t, component.StabilityLevelBeta, factory.TracesStability())
	require.Equal(t, component.StabilityLevelUndefined, factory.MetricsStability())
	require.Equal(t, component.StabilityLevelUndefined, factory.LogsStability())
}

// docs/weave.md lists every setting and every reason that spans are dropped for.
func TestPageIsWhole(t *testing.T) {
	text, err := os.ReadFile("../../docs/weave.md")
	require.NoError(t, err)
	page := string(text)
	for reason := range lossLogs {
		require.Contains(t, page, "`"+reason+"`")
	}
	for r := range shape.Reasons {
		require.Contains(t, page, "`"+r.String()+"`")
	}
	conf := confmap.New()
	require.NoError(t, conf.Marshal(&Config{}))
	for key := range conf.ToStringMap() {
		if !slices.Contains([]string{"max_idle_conns", "idle_conn_timeout"}, key) { // Of confighttp, which the page names.
			require.Regexp(t, "`"+key+"[`.]", page)
		}
	}
}
