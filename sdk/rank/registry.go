// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Options are the settings of all strategies; each reads its own. Error texts name them as YAML does.
type Options struct {
	ExportRank int     // export_rank of single_rank; negative is the last rank
	Rate       float64 // rate of sampled, 0 to 1
	AtLeastOne bool    // at_least_one of sampled
	Ranks      string  // ranks of ranks
	Group      Group   // per, order and sizes of per_group
	WorldSize  int     // where it is known beforehand, above 0: what does not fit it is refused
}

// DefaultOptions are NeMo Lens's defaults: the last rank, a rate of 1.
func DefaultOptions() Options {
	return Options{ExportRank: -1, Rate: 1, WorldSize: Unknown, Group: Group{Order: DefaultOrder}}
}

// Builder makes a strategy, or refuses the options with an error that names the one at fault.
type Builder func(Options) (Strategy, error)

var (
	// ErrUnknownStrategy is of a name that nobody registered.
	ErrUnknownStrategy = errors.New("unknown strategy")
	// ErrRegister is of a name that cannot be registered or unregistered.
	ErrRegister = errors.New("strategy registry")
)

var builtins = map[string]Builder{
	NameAllRanks: func(Options) (Strategy, error) { return AllRanks(), nil },
	NameSingleRank: func(o Options) (Strategy, error) {
		if o.ExportRank > maxRank {
			return nil, fmt.Errorf("export_rank: %d is beyond %d", o.ExportRank, maxRank)
		}
		return SingleRank(o.ExportRank), nil
	},
	NameSampled:          func(o Options) (Strategy, error) { return Sampled(o.Rate, o.AtLeastOne) },
	NameFirstRankPerNode: func(Options) (Strategy, error) { return FirstRankPerNode(), nil },
	NameRanks:            func(o Options) (Strategy, error) { return Ranks(o.Ranks) },
	NamePerGroup:         func(o Options) (Strategy, error) { return PerGroup(o.Group) },
}

var (
	mu       sync.RWMutex
	registry = maps.Clone(builtins)
)

// New makes the strategy of that name. The error of an unknown name lists the known ones.
func New(name string, o Options) (Strategy, error) {
	mu.RLock()
	build, ok := registry[name]
	mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("strategy: %w %q, must be one of %s", ErrUnknownStrategy, name, strings.Join(Names(), ", "))
	}
	s, err := build(o)
	if err != nil {
		return nil, err
	}
	if w, ok := s.(interface{ within(worldSize int) error }); ok && o.WorldSize > 0 {
		if err := w.within(o.WorldSize); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Register adds a strategy under a name of your own, or replaces it where allowOverride is true. Built-ins stay.
func Register(name string, build Builder, allowOverride bool) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("%w: a strategy needs a name", ErrRegister)
	}
	if build == nil {
		return fmt.Errorf("%w: strategy %q has no builder", ErrRegister, name)
	}
	if _, ok := builtins[name]; ok {
		return fmt.Errorf("%w: %q is built in", ErrRegister, name)
	}
	mu.Lock()
	defer mu.Unlock()
	if _, taken := registry[name]; taken && !allowOverride {
		return fmt.Errorf("%w: %q is registered already", ErrRegister, name)
	}
	registry[name] = build
	return nil
}

// Unregister takes an own strategy out again.
func Unregister(name string) error {
	if _, ok := builtins[name]; ok {
		return fmt.Errorf("%w: %q is built in", ErrRegister, name)
	}
	mu.Lock()
	_, ok := registry[name]
	delete(registry, name)
	mu.Unlock()
	if !ok {
		return fmt.Errorf("%w: %w %q, must be one of %s", ErrRegister, ErrUnknownStrategy, name, strings.Join(Names(), ", "))
	}
	return nil
}

// Names lists all strategies, sorted.
func Names() []string {
	mu.RLock()
	defer mu.RUnlock()
	return slices.Sorted(maps.Keys(registry))
}
