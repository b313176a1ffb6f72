// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// Prefixes of variables. All but the first fall back to it.
const (
	PrefixLens     = "NEMO_LENS"
	PrefixMegatron = "MEGATRON_OTEL"
	PrefixRL       = "NEMO_RL_OTEL"
	PrefixGym      = "NEMO_GYM_OTEL"
	PrefixNVRx     = "NVRX_OTEL"
)

// What is wrong with the text of a variable.
var (
	ErrBoolean = errors.New("not a boolean, must be 1, true, yes, on, 0, false, no or off")
	ErrInteger = errors.New("not an integer")
	ErrFloat   = errors.New("not a number")
)

// Source says which variables are read. The zero value is NEMO_LENS_* of this process.
type Source struct {
	Prefix    string                      // "": PrefixLens
	Fallback  string                      // read where the variable of Prefix is not set; "": none
	LookupEnv func(string) (string, bool) // nil: os.LookupEnv
}

// FromEnv reads a Config. A variable that is empty or blank is not set; blanks around a value do not count. The errors of all
// variables are joined, and each names the variable that was really read, which may be that of the fallback.
func FromEnv(s Source) (Config, error) {
	if s.Prefix == "" {
		s.Prefix = PrefixLens
	}
	if s.LookupEnv == nil {
		s.LookupEnv = os.LookupEnv
	}
	r := reader{source: s, read: map[string]string{}}
	c := Default()

	read(&r, &c.Enabled, parseBool, r.prefixed("enabled"))
	if disabled, _ := s.LookupEnv("OTEL_SDK_DISABLED"); strings.EqualFold(strings.TrimSpace(disabled), "true") {
		c.Enabled = false // as in the SDK for Python
	}
	read(&r, &c.ServiceName, parseText, variable{"service_name", []string{"OTEL_SERVICE_NAME"}})
	read(&r, &c.ExportStrategy, parseText, r.prefixed("export_strategy"))
	read(&r, &c.ExportRank, parseInt, r.prefixed("export_rank"))
	read(&r, &c.ExportSampleRate, parseFloat, r.prefixed("export_sample_rate"))
	read(&r, &c.SamplerEnabled, parseBool, r.prefixed("sampler_enabled"))
	read(&r, &c.TracesEnabled, parseBool, r.prefixed("traces_enabled"))
	read(&r, &c.MetricsEnabled, parseBool, r.prefixed("metrics_enabled"))
	read(&r, &c.LogsEnabled, parseBool, r.prefixed("logs_enabled"))
	read(&r, &c.SpanGroups, parseText, r.prefixed("span_groups"))
	read(&r, &c.Exporter, parseText, r.prefixed("exporter"))
	read(&r, &c.RunID, parseText, r.prefixed("run_id"))
	read(&r, &c.User, parseText, r.prefixed("user_id"))
	read(&r, &c.WandbEntity, parseText, variable{"wandb_entity", []string{"WANDB_ENTITY"}})
	read(&r, &c.WandbProject, parseText, variable{"wandb_project", []string{"WANDB_PROJECT"}})
	read(&r, &c.DeploymentEnvironment, parseText, variable{"deployment_environment", []string{"DEPLOYMENT_ENV", "ENVIRONMENT"}})
	read(&r, &c.MetricExportInterval, parseMillis, variable{"metric_export_interval", []string{"OTEL_METRIC_EXPORT_INTERVAL"}})
	for _, signal := range signals {
		r.target(signal.of(&c), signal.name, signal.path)
	}

	if len(r.errs) == 0 {
		r.errs = append(r.errs, c.validate(r.name))
	}
	if err := errors.Join(r.errs...); err != nil {
		return Config{}, err
	}
	return c, nil
}

// target reads where a signal goes.
func (r *reader) target(t *Target, signal, path string) {
	of := func(field string) variable {
		key := strings.ToUpper(field)
		return variable{signal + "." + field, []string{"OTEL_EXPORTER_OTLP_" + strings.ToUpper(signal) + "_" + key, "OTEL_EXPORTER_OTLP_" + key}}
	}
	read(r, &t.Protocol, parseProtocol, of("protocol"))
	read(r, &t.Headers, parseHeaders, of("headers"))
	read(r, &t.Timeout, parseTimeout, of("timeout"))
	if !t.sends() {
		return
	}
	if t.Protocol != ProtocolGRPC {
		t.Endpoint = "http://localhost:4318/" + path
	}
	own := of("endpoint")
	if !read(r, &t.Endpoint, parseText, own) || t.Protocol == ProtocolGRPC {
		return
	}
	if r.name(own.field) == own.names[0] {
		path = ""
	}
	t.Endpoint = endpoint(t.Endpoint, path)
}

// variable is a field and the variables that it is read from, the first that is set wins.
type variable struct {
	field string
	names []string
}

type reader struct {
	source Source
	read   map[string]string // the variable that a field was read from
	errs   []error
}

func (r *reader) prefixed(field string) variable {
	key := "_" + strings.ToUpper(field)
	names := []string{r.source.Prefix + key}
	if r.source.Fallback != "" {
		names = append(names, r.source.Fallback+key)
	}
	return variable{field, names}
}

// name is the variable that field was read from, else the field.
func (r *reader) name(field string) string {
	if name, ok := r.read[field]; ok {
		return name
	}
	return field
}

// read sets field to what the environment says, and reports whether it says something that can be read.
func read[T any](r *reader, field *T, parse func(string) (T, error), v variable) bool {
	for _, name := range v.names {
		text, _ := r.source.LookupEnv(name)
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		r.read[v.field] = name
		value, err := parse(text)
		if err != nil {
			r.errs = append(r.errs, fmt.Errorf("%s: %w", name, err))
			return false
		}
		*field = value
		return true
	}
	return false
}

func parseText(text string) (string, error) { return text, nil }

func parseProtocol(text string) (string, error) { return strings.ToLower(text), nil }

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is %w", text, ErrBoolean)
}

func parseInt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is %w", text, ErrInteger)
	}
	return n, nil
}

func parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is %w", text, ErrFloat)
	}
	return f, nil
}

// maxMillis keeps milliseconds within a time.Duration.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

func parseMillis(text string) (time.Duration, error) {
	n, err := parseInt(text)
	if err == nil && (int64(n) > maxMillis || int64(n) < -maxMillis) {
		err = fmt.Errorf("%d is beyond %d milliseconds", n, maxMillis)
	}
	return time.Duration(n) * time.Millisecond, err
}

// parseTimeout refuses 0, which in a Target is the default.
func parseTimeout(text string) (time.Duration, error) {
	d, err := parseMillis(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%v must be above 0", d)
	}
	return d, err
}
