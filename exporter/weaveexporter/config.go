// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/shape"
)

// Config is the configuration of the weave exporter.
type Config struct {
	// APIKey is the W&B API key. Default: the variable WANDB_API_KEY.
	APIKey configopaque.String `mapstructure:"api_key"`

	// AuthStyle is how the key is sent: `header`, the default, as wandb-api-key; `basic`, as the password of the user api.
	AuthStyle AuthStyle `mapstructure:"auth_style"`

	// Entity is the W&B entity, a user or team, of spans whose resource has no wandb.entity. Default: the variable WANDB_ENTITY.
	Entity string `mapstructure:"entity"`

	// Project is the W&B project of spans whose resource has no wandb.project. Default: the variable WANDB_PROJECT.
	Project string `mapstructure:"project"`

	// BaseURL is what stands before /otel/v1/traces. Default: the variable WF_TRACE_SERVER_URL, else that of the W&B instance in
	// WANDB_BASE_URL, as Weave's SDK has it, else https://trace.wandb.ai.
	BaseURL string `mapstructure:"base_url"`

	// Host is the host of a dedicated instance, instead of BaseURL: acme.wandb.io stands for https://acme.wandb.io/traces.
	Host string `mapstructure:"host"`

	// Mode says where spans go: `calls`, the default, to the calls (Traces view, runs, steps); `agents` to the Agents view; `auto`
	// sends gen_ai agent spans to the Agents view and the rest to the calls.
	Mode string `mapstructure:"mode"`

	// Run says which W&B run spans belong to.
	Run RunConfig `mapstructure:"run"`

	// Step says which step of the run spans belong to.
	Step StepConfig `mapstructure:"step"`

	// Promote lists keys of the span, its scope or its resource that are put where Weave can filter on them, beside where they are;
	// `x.*` is every key below x of the span. Default: the keys of NeMo Lens.
	Promote []string `mapstructure:"promote"`

	// DisplayName is a template of the name that is shown: {name}, {step}, {rank}, {attr:KEY}. Default: none, the span's name is shown.
	DisplayName string `mapstructure:"display_name"`

	// TemplateNames replaces numbers in span names by N, since Weave keeps an object for each name. Default true.
	TemplateNames bool `mapstructure:"template_names"`

	// Threads puts spans into Weave's threads: `off`, the default, `run`, one thread a run, or `rank`, one a rank of a run.
	Threads string `mapstructure:"threads"`

	// DuplicateIDs says what becomes of a span whose id another span has, which Weave would overwrite: `rewrite`, the default, gives it
	// another id, `count` counts it, `off` does not look.
	DuplicateIDs string `mapstructure:"duplicate_ids"`

	// Limits bounds what is sent.
	Limits LimitsConfig `mapstructure:"limits"`

	// Probe asks Weave at the start, by an empty request, whether it would take spans, and logs an error where not. Default false.
	Probe bool `mapstructure:"probe"`

	// ClientConfig are the settings of the HTTP client: TLS, proxy, timeout (default 30s), compression (gzip, the default, or none).
	ClientConfig confighttp.ClientConfig `mapstructure:",squash"`

	// RetryConfig repeats what may pass later. Default: after 1s to 30s, without end.
	RetryConfig configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	// QueueConfig holds what is to be sent. Default: 128 MiB, in batches of 2,048 spans or of what came within a second.
	QueueConfig configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
}

// RunConfig says which W&B run a span belongs to.
type RunConfig struct {
	// ID is the bare id of the run of spans for which no attribute says another. Default: the variable WANDB_RUN_ID.
	ID string `mapstructure:"id"`

	// FromAttribute lists keys of the span or its resource that say the id; the first that is there is taken, after
	// wandb.wb_run_id. Default wandb.run.id.
	FromAttribute []string `mapstructure:"from_attribute"`
}

// StepConfig says which step of the run a span belongs to.
type StepConfig struct {
	// FromAttribute lists keys of the step, an integer of 0 or more, of the span or its nearest ancestor in the batch. Default:
	// those of NeMo Lens.
	FromAttribute []string `mapstructure:"from_attribute"`

	// Offset is added to the step; Weave does not store step 0. Default 0.
	Offset int64 `mapstructure:"offset"`
}

// LimitsConfig bounds what is sent.
type LimitsConfig struct {
	// RequestBytes bounds a request before compression; what is larger is split. At least 32 KiB. Default 31 MiB: Weave takes 32.
	RequestBytes int `mapstructure:"request_bytes"`

	// SpanBytes bounds what Weave makes of a span; the longest texts of a larger one are cut. At most half of RequestBytes counts.
	// Default 1.7 MB: Weave blanks rows of 3.5 MiB, and stores attributes twice.
	SpanBytes int `mapstructure:"span_bytes"`
}

// AuthStyle is how the API key is sent.
type AuthStyle string

// The auth styles.
const (
	AuthHeader AuthStyle = "header"
	AuthBasic  AuthStyle = "basic"
)

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)

	errNoKey    = errors.New("api_key: is empty; set it, or the variable WANDB_API_KEY, to a key of https://wandb.ai/authorize")
	errBadKey   = errors.New("api_key: holds a blank or a line break; it must be the key alone")
	errTwoURLs  = errors.New("host: cannot stand beside base_url; set one of them")
	errNoURL    = errors.New("base_url: is empty; leave it out for " + cloudURL)
	errEndpoint = errors.New("endpoint: is not a setting here; use base_url, what stands before " + callsPath + ", or host for a dedicated instance")
	errMaxSize  = errors.New("sending_queue::batch::max_size: must be 0 where batches are measured in bytes, else the queue drops a larger span uncounted; limits::request_bytes splits requests")
)

func createDefaultConfig() component.Config { return ConfigOf(os.LookupEnv) }

// ConfigOf is the default config in an environment: key, target, address and run are its variables' (WANDB_API_KEY, WANDB_ENTITY,
// WANDB_PROJECT, WF_TRACE_SERVER_URL, WANDB_BASE_URL, WANDB_RUN_ID).
func ConfigOf(lookupEnv func(name string) (string, bool)) *Config {
	env := func(name string) string {
		value, _ := lookupEnv(name)
		return strings.TrimSpace(value)
	}
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 30 * time.Second
	client.Compression = configcompression.TypeGzip
	client.CompressionParams.Level = gzip.BestSpeed // Spans are alike: three times faster for a few more bytes (BenchmarkAllIn).
	client.WriteBufferSize = 512 << 10              // As otlp_http.

	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval = time.Second
	retry.MaxElapsedTime = 0 // The queue bounds what waits.

	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Sizer, queue.QueueSize = exporterhelper.RequestSizerTypeBytes, 128<<20
	queue.Batch = configoptional.Some(exporterhelper.BatchConfig{
		FlushTimeout: time.Second, // A span is on its way within 2 s.
		// Not bytes: the helper would encode the whole batch anew with every request that joins it, a sixth of all CPU time.
		Sizer:   exporterhelper.RequestSizerTypeItems,
		MinSize: 2048,
	})

	o := shape.DefaultOptions()
	return &Config{
		APIKey:        configopaque.String(env("WANDB_API_KEY")),
		AuthStyle:     AuthHeader,
		Entity:        env("WANDB_ENTITY"),
		Project:       env("WANDB_PROJECT"),
		BaseURL:       cmp.Or(env("WF_TRACE_SERVER_URL"), weaveOf(env("WANDB_BASE_URL"))),
		Mode:          o.Mode,
		Run:           RunConfig{ID: env("WANDB_RUN_ID"), FromAttribute: o.RunIDFrom},
		Step:          StepConfig{FromAttribute: o.StepFrom, Offset: o.StepOffset},
		Promote:       o.Promote,
		DisplayName:   o.DisplayName,
		TemplateNames: o.TemplateNames,
		Threads:       o.Threads,
		DuplicateIDs:  o.DuplicateIDs,
		Limits:        LimitsConfig{RequestBytes: o.RequestBytes, SpanBytes: o.SpanBytes},
		ClientConfig:  client,
		RetryConfig:   retry,
		QueueConfig:   configoptional.Some(queue),
	}
}

// Unmarshal takes the default of base_url back where there is a host.
func (cfg *Config) Unmarshal(conf *confmap.Conf) error {
	if conf.IsSet("host") && !conf.IsSet("base_url") {
		cfg.BaseURL = ""
	}
	return conf.Unmarshal(cfg)
}

// Validate checks what can be checked without asking Weave. No error of it holds the key.
func (cfg *Config) Validate() error {
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	switch key := string(cfg.APIKey); {
	case key == "" && !cfg.ClientConfig.Auth.HasValue():
		add(errNoKey)
	case strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		add(errBadKey)
	}
	if cfg.AuthStyle != AuthHeader && cfg.AuthStyle != AuthBasic {
		add(fmt.Errorf("auth_style: %q is not one of %q", cfg.AuthStyle, []AuthStyle{AuthHeader, AuthBasic}))
	}
	add(validateName("entity", cfg.Entity))
	add(validateName("project", cfg.Project))
	_, err := cfg.baseURL()
	add(err)
	if cfg.ClientConfig.Endpoint != "" {
		add(errEndpoint)
	}
	if c := cfg.ClientConfig.Compression; c.IsCompressed() && c != configcompression.TypeGzip {
		add(fmt.Errorf("compression: Weave does not say that it takes %s; it must be gzip or none", c))
	}
	if queue := cfg.QueueConfig.Get(); queue != nil {
		if batch := queue.Batch.Get(); batch != nil && batch.Sizer == exporterhelper.RequestSizerTypeBytes && batch.MaxSize > 0 {
			add(errMaxSize)
		}
	}
	o := cfg.shapeOptions()
	add(o.Validate())
	return errors.Join(errs...)
}

// validateName refuses what is a path: entity/project is what most of W&B's pages show.
func validateName(key, name string) error {
	if !shape.IsName(name) {
		return fmt.Errorf("%s: %q holds a slash, a colon or a line break; of acme/llm, the entity is acme and the project is llm", key, name)
	}
	return nil
}

// baseURL is what stands before the paths of Weave, without a slash at its end.
func (cfg *Config) baseURL() (string, error) {
	switch {
	case cfg.Host != "" && cfg.BaseURL != "":
		return "", errTwoURLs
	case cfg.Host != "":
		return parseHost(cfg.Host)
	case cfg.BaseURL == "":
		return "", errNoURL
	}
	return parseBaseURL("base_url", cfg.BaseURL)
}

func (cfg *Config) shapeOptions() shape.Options {
	return shape.Options{
		Target:        shape.Target{Entity: cfg.Entity, Project: cfg.Project},
		Mode:          cfg.Mode,
		RunID:         cfg.Run.ID,
		RunIDFrom:     cfg.Run.FromAttribute,
		StepFrom:      cfg.Step.FromAttribute,
		StepOffset:    cfg.Step.Offset,
		Promote:       cfg.Promote,
		DisplayName:   cfg.DisplayName,
		TemplateNames: cfg.TemplateNames,
		Threads:       cfg.Threads,
		DuplicateIDs:  cfg.DuplicateIDs,
		RequestBytes:  cfg.Limits.RequestBytes,
		SpanBytes:     cfg.Limits.SpanBytes,
	}
}
