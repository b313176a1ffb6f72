// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package ranks is the part that rankfilter and rankgate share: one set of settings, one decision about a resource, one
// way to count it. The rule itself stands in sdk/rank.
package ranks // import "github.com/lenscol/lenscol/internal/ranks"

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/lenscol/lenscol/sdk/rank"
)

// Config says which ranks' telemetry goes on.
type Config struct {
	// Rule holds for every signal and every run that none of the settings below names.
	Rule RuleConfig `mapstructure:",squash"`
	// Traces, Metrics and Logs each replace Rule for one signal. Default: none.
	Traces  configoptional.Optional[RuleConfig] `mapstructure:"traces"`
	Metrics configoptional.Optional[RuleConfig] `mapstructure:"metrics"`
	Logs    configoptional.Optional[RuleConfig] `mapstructure:"logs"`
	// Overrides replace all of these for the runs or services that they name; the first that matches holds.
	Overrides []OverrideConfig `mapstructure:"overrides"`

	// WorldSize is the number of ranks where a resource does not say it. Default 0: unknown.
	WorldSize int `mapstructure:"world_size"`
	// RanksPerNode gives the local rank, rank modulo it, where a resource has none (NeMo Lens up to 0.2 sends none).
	// Default 0: unknown.
	RanksPerNode int `mapstructure:"ranks_per_node"`
	// Missing is what becomes of a resource without a rank, or without what the rule needs to decide: keep or drop.
	// Default keep.
	Missing MissingPolicy `mapstructure:"missing"`
	// KeepErrors lets spans with error status, and log records at error and above, pass from any rank. Default false.
	KeepErrors bool `mapstructure:"keep_errors"`
	// KeepNames are globs of span names that pass from any rank: * is any text, ? one character. Default none.
	KeepNames []string `mapstructure:"keep_names"`
}

// RuleConfig is one strategy of sdk/rank with its settings.
type RuleConfig struct {
	// Strategy is a name: all_ranks, single_rank, sampled, first_rank_per_node, ranks, per_group, or one of your own.
	// Default single_rank.
	Strategy string `mapstructure:"strategy"`
	// ExportRank is the rank of single_rank. Default -1: the last.
	ExportRank int `mapstructure:"export_rank"`
	// Rate is the share of ranks of sampled, 0 to 1. Default 1.
	Rate float64 `mapstructure:"rate"`
	// AtLeastOne lets sampled never come out empty where the world size is known. Default false.
	AtLeastOne bool `mapstructure:"at_least_one"`
	// Ranks is the list of ranks: "0,8-15,-1", "0-1023/64".
	Ranks string `mapstructure:"ranks"`
	// Group is the split of the world for per_group.
	Group GroupConfig `mapstructure:"group"`
}

// GroupConfig is how the world is split, and which groups export.
type GroupConfig struct {
	// Per names the dimensions of which every index exports once: [pp] is one rank of each pipeline stage.
	Per []string `mapstructure:"per"`
	// Order lists the dimensions, the fastest running first. Default tp-cp-dp-pp.
	Order string `mapstructure:"order"`
	// Sizes of the dimensions: one that is not named has size 1, except dp, which is the rest of the world.
	Sizes map[string]int `mapstructure:"sizes"`
}

// OverrideConfig is a rule for some runs or services, by globs. Where both are given, both must match.
type OverrideConfig struct {
	Run     string     `mapstructure:"run"`
	Service string     `mapstructure:"service"`
	Rule    RuleConfig `mapstructure:",squash"`
}

// MissingPolicy is keep or drop.
type MissingPolicy string

const (
	MissingKeep MissingPolicy = "keep"
	MissingDrop MissingPolicy = "drop"
)

var _ confmap.Unmarshaler = (*OverrideConfig)(nil)

// DefaultConfig is NeMo Lens's choice: the last rank, and what has no rank.
func DefaultConfig() Config {
	return Config{
		Rule:    defaultRule(),
		Traces:  configoptional.Default(defaultRule()),
		Metrics: configoptional.Default(defaultRule()),
		Logs:    configoptional.Default(defaultRule()),
		Missing: MissingKeep,
	}
}

func defaultRule() RuleConfig {
	o := rank.DefaultOptions()
	return RuleConfig{Strategy: rank.NameSingleRank, ExportRank: o.ExportRank, Rate: o.Rate, Group: GroupConfig{Order: o.Group.Order}}
}

// Unmarshal fills in the rule's defaults, which an element of a list has no other place for.
func (c *OverrideConfig) Unmarshal(conf *confmap.Conf) error {
	c.Rule = defaultRule()
	if err := fillEmpty(conf, ""); err != nil {
		return err
	}
	return conf.Unmarshal(c)
}

// Unmarshal is the Unmarshal of the configs that have Config squashed into them. Were it one of Config's own, confmap would
// let keys pass that nobody knows.
func Unmarshal(conf *confmap.Conf, into any) error {
	for _, path := range []string{"", "traces::", "metrics::", "logs::"} {
		if err := fillEmpty(conf, path); err != nil {
			return err
		}
	}
	return conf.Unmarshal(into)
}

// fillEmpty gives the settings of a rule their defaults that come from a variable which is set and empty: NeMo Lens takes it
// for one that is not set. The default in ${env:NAME:-default} is not for it, and confmap would make 0 of it: a rate of 0.
func fillEmpty(conf *confmap.Conf, path string) error {
	d := defaultRule()
	for key, value := range map[string]any{"strategy": d.Strategy, "export_rank": d.ExportRank, "rate": d.Rate} {
		if key = path + key; conf.IsSet(key) && conf.Get(key) == nil {
			if err := conf.Merge(confmap.NewFromStringMap(map[string]any{key: value})); err != nil {
				return err
			}
		}
	}
	return nil
}

// Check names the key of every setting that cannot be. It is the Validate of the configs that have this one squashed into
// them; were it a Validate itself, confmap would call it again, below a key that nobody wrote.
func (c *Config) Check() error {
	var errs []error
	if c.Missing != MissingKeep && c.Missing != MissingDrop {
		errs = append(errs, fmt.Errorf("missing: %q must be keep or drop", c.Missing))
	}
	if c.WorldSize < 0 {
		errs = append(errs, fmt.Errorf("world_size: %d must be a number of ranks, or 0 where it is not known", c.WorldSize))
	}
	if c.RanksPerNode < 0 {
		errs = append(errs, fmt.Errorf("ranks_per_node: %d must be a number of ranks, or 0 where it is not known", c.RanksPerNode))
	}
	for i, name := range c.KeepNames {
		if name == "" {
			errs = append(errs, fmt.Errorf("keep_names::%d: is empty, must be a glob of span names", i))
		}
	}
	for i, o := range c.Overrides {
		if o.Run == "" && o.Service == "" {
			errs = append(errs, fmt.Errorf("overrides::%d: names neither run nor service", i))
		}
	}
	_, err := newRules(c)
	return errors.Join(append(errs, err)...)
}

// newRule makes the strategy; path is the rule's place in the config, in front of the key that its errors name. What no
// strategy could take is refused beside every strategy, as NeMo Lens does.
func (c *Config) newRule(path string, rc RuleConfig) (rule, error) {
	o := rank.Options{
		ExportRank: rc.ExportRank,
		Rate:       rc.Rate,
		AtLeastOne: rc.AtLeastOne,
		Ranks:      rc.Ranks,
		Group:      rank.Group{Per: rc.Group.Per, Order: rc.Group.Order, Sizes: rc.Group.Sizes},
		WorldSize:  c.WorldSize,
	}
	s, err := newStrategy(path, rc.Strategy, o)
	errs := []error{err}
	o.WorldSize = rank.Unknown // matters to the strategy that is used
	for _, other := range []struct {
		name  string
		given bool
	}{
		{rank.NameSingleRank, true},
		{rank.NameSampled, true},
		{rank.NameRanks, rc.Ranks != ""},
		{rank.NamePerGroup, len(rc.Group.Per) > 0 || len(rc.Group.Sizes) > 0},
	} {
		if other.given && other.name != rc.Strategy {
			_, err := newStrategy(path, other.name, o)
			errs = append(errs, err)
		}
	}
	return rule{name: rc.Strategy, strategy: s}, errors.Join(errs...)
}

func newStrategy(path, name string, o rank.Options) (rank.Strategy, error) {
	s, err := rank.New(name, o)
	if err != nil {
		if name == rank.NamePerGroup {
			path += "group::"
		}
		return nil, fmt.Errorf("%s%w", path, err)
	}
	return s, nil
}
