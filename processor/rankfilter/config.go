// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter // import "github.com/lenscol/lenscol/processor/rankfilter"

import (
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/lenscol/lenscol/internal/ranks"
)

// Config is the rule, as rank_gate has it, and what only a filter can do.
type Config struct {
	// Ranks says which ranks' telemetry goes on.
	Ranks ranks.Config `mapstructure:",squash"`
	// SpanGroups lets only spans of these groups and presets of NeMo Lens go on, a list with commas as in
	// NEMO_LENS_SPAN_GROUPS. Spans whose name belongs to no known group go on and are counted. Default empty: all.
	SpanGroups string `mapstructure:"span_groups"`
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

// Unmarshal takes what an empty environment variable stands for as not set.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return ranks.Unmarshal(conf, c) }

// Validate names the key of every setting that cannot be.
func (c *Config) Validate() error {
	_, err := newSpanGroups(c.SpanGroups)
	return errors.Join(c.Ranks.Check(), err)
}
