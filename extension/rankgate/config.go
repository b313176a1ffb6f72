// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"

import (
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/lenscol/lenscol/internal/ranks"
)

// Config is the rule, as rank_filter has it, and the receiver's HTTP paths.
type Config struct {
	// Ranks says which ranks' telemetry goes on.
	Ranks ranks.Config `mapstructure:",squash"`
	// TracesURLPath, MetricsURLPath and LogsURLPath are the receiver's settings of the same names, where it has others
	// than the defaults /v1/traces, /v1/metrics and /v1/logs. Requests for other paths pass as they are.
	TracesURLPath  string `mapstructure:"traces_url_path"`
	MetricsURLPath string `mapstructure:"metrics_url_path"`
	LogsURLPath    string `mapstructure:"logs_url_path"`
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

// Unmarshal takes what an empty environment variable stands for as not set.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return ranks.Unmarshal(conf, c) }

// Validate names the key of every setting that cannot be.
func (c *Config) Validate() error {
	errs := []error{c.Ranks.Check()}
	for _, path := range []struct{ key, value string }{
		{"traces_url_path", c.TracesURLPath}, {"metrics_url_path", c.MetricsURLPath}, {"logs_url_path", c.LogsURLPath},
	} {
		if !strings.HasPrefix(path.value, "/") {
			errs = append(errs, fmt.Errorf("%s: %q must begin with /", path.key, path.value))
		}
	}
	return errors.Join(errs...)
}
