// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry sets up a process's telemetry, as NeMo Lens does it for Python: under the variables that NeMo Lens and
// OpenTelemetry define, so that a Go process of a training stack is set up by the same environment as its Python ranks.
//
//	config, err := telemetry.FromEnv(telemetry.Source{})
//	…
//	handle, err := telemetry.Setup(ctx, config, telemetry.WithRank(rank, worldSize))
//	…
//	defer handle.Shutdown(context.Background())
package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lenscol/lenscol/sdk/rank"
)

// Config says what a process exports, and where to. [Default] and [FromEnv] make one; fields may be changed then. It prints
// without secrets, as JSON too.
//
// Fields, variables and defaults are those of NeMo Lens 0.2; the retired export_* settings are kept. A variable is PREFIX_ and
// the name that stands here, unless it is whole.
type Config struct {
	Enabled     bool   // ENABLED, unless OTEL_SDK_DISABLED is true; false
	ServiceName string // whole: OTEL_SERVICE_NAME; "nemo"

	ExportStrategy   string  // EXPORT_STRATEGY, a name of package rank; "single_rank"
	ExportRank       int     // EXPORT_RANK of single_rank; -1, the last rank
	ExportSampleRate float64 // EXPORT_SAMPLE_RATE of sampled, 0 to 1; 1
	SamplerEnabled   bool    // SAMPLER_ENABLED: sample spans by rank, where there is one, at ExportSampleRate; false

	TracesEnabled  bool // TRACES_ENABLED; true
	MetricsEnabled bool // METRICS_ENABLED; true
	LogsEnabled    bool // LOGS_ENABLED; false

	SpanGroups string // SPAN_GROUPS, for lens.SetGroups; "default"
	Exporter   string // EXPORTER, "otlp" or "console"; "otlp"

	RunID        string // RUN_ID; empty: the process finds its own
	User         string // USER_ID
	WandbEntity  string // whole: WANDB_ENTITY
	WandbProject string // whole: WANDB_PROJECT

	DeploymentEnvironment string        // whole: DEPLOYMENT_ENV, else ENVIRONMENT
	MetricExportInterval  time.Duration // whole: OTEL_METRIC_EXPORT_INTERVAL in milliseconds; 10 s

	// Where each signal goes with the exporter otlp.
	Traces, Metrics, Logs Target
}

// Exporters.
const (
	ExporterOTLP    = "otlp"
	ExporterConsole = "console"
)

// Default is the configuration of an empty environment: disabled, gRPC to localhost.
func Default() Config {
	local := Target{Protocol: ProtocolGRPC, Endpoint: "http://localhost:4317"}
	return Config{
		ServiceName:          "nemo",
		ExportStrategy:       rank.NameSingleRank,
		ExportRank:           -1,
		ExportSampleRate:     1,
		TracesEnabled:        true,
		MetricsEnabled:       true,
		SpanGroups:           "default",
		Exporter:             ExporterOTLP,
		MetricExportInterval: 10 * time.Second,
		Traces:               local,
		Metrics:              local,
		Logs:                 local,
	}
}

// Strategy is the decision which ranks export.
func (c Config) Strategy() (rank.Strategy, error) { return c.strategy(rank.Unknown) }

// strategy refuses what a world of that size does not have.
func (c Config) strategy(worldSize int) (rank.Strategy, error) {
	o := rank.DefaultOptions()
	o.ExportRank, o.Rate, o.WorldSize = c.ExportRank, c.ExportSampleRate, worldSize
	return rank.New(c.ExportStrategy, o)
}

// Validate checks all fields, and names each that is wrong as PREFIX_ variables do, in lower case. Span groups are not
// checked: whether somebody registers them shows later.
func (c Config) Validate() error { return c.validate(func(field string) string { return field }) }

// validate checks c; name tells what the user wrote a field as.
func (c Config) validate(name func(field string) string) error {
	var errs []error
	refuse := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{name(field)}, args...)...))
	}
	if c.ServiceName == "" {
		refuse("service_name", "it is empty, must be the name of the service")
	}
	if !(c.ExportSampleRate >= 0 && c.ExportSampleRate <= 1) { // NaN is refused too
		refuse("export_sample_rate", "must be in [0.0, 1.0], got %v", c.ExportSampleRate)
	} else if _, err := c.Strategy(); errors.Is(err, rank.ErrUnknownStrategy) {
		refuse("export_strategy", "%w", err)
	} else if err != nil {
		refuse("export_strategy", "%q: %w", c.ExportStrategy, err)
	}
	if c.Exporter != ExporterOTLP && c.Exporter != ExporterConsole {
		refuse("exporter", "unknown exporter type %q, must be otlp or console", c.Exporter)
	}
	if c.MetricExportInterval <= 0 {
		refuse("metric_export_interval", "%v must be above 0", c.MetricExportInterval)
	}
	for _, signal := range signals {
		t := signal.of(&c)
		if err := validProtocol(t.Protocol); err != nil {
			refuse(signal.name+".protocol", "%w", err)
		} else if err := t.validEndpoint(); err != nil {
			refuse(signal.name+".endpoint", "%w", err)
		} else if err := t.validHeaders(); err != nil {
			refuse(signal.name+".headers", "%w", err)
		} else if t.Timeout < 0 {
			refuse(signal.name+".timeout", "%v must be above 0", t.Timeout)
		}
	}
	return errors.Join(errs...)
}

// String is c without secrets: of headers, only the names; of endpoints, neither credentials nor a query.
func (c Config) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "enabled=%t service_name=%q export_strategy=%q export_rank=%d export_sample_rate=%v sampler_enabled=%t",
		c.Enabled, c.ServiceName, c.ExportStrategy, c.ExportRank, c.ExportSampleRate, c.SamplerEnabled)
	fmt.Fprintf(&b, " traces_enabled=%t metrics_enabled=%t logs_enabled=%t span_groups=%q exporter=%q",
		c.TracesEnabled, c.MetricsEnabled, c.LogsEnabled, c.SpanGroups, c.Exporter)
	fmt.Fprintf(&b, " run_id=%q user_id=%q wandb_entity=%q wandb_project=%q deployment_environment=%q metric_export_interval=%v",
		c.RunID, c.User, c.WandbEntity, c.WandbProject, c.DeploymentEnvironment, c.MetricExportInterval)
	for _, signal := range signals {
		fmt.Fprintf(&b, " %s=(%v)", signal.name, signal.of(&c))
	}
	return b.String()
}

// GoString is String.
func (c Config) GoString() string { return c.String() }
