// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments // import "github.com/lenscol/lenscol/sdk/instruments"

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Registry holds groups of series that are declared once and recorded by key. It may be used by several goroutines.
type Registry struct {
	names   Names
	skipped atomic.Uint64
	unknown *report // of groups

	mu     sync.Mutex                        // of writers
	groups atomic.Pointer[map[string]*group] // never changed once it is stored
}

// NewRegistry returns a registry that knows the groups of [Families].
func NewRegistry(names Names) *Registry {
	r := &Registry{names: names}
	r.unknown = &report{skipped: &r.skipped}
	groups := make(map[string]*group)
	for name, specs := range Families() {
		groups[name] = r.group(name, specs)
	}
	r.groups.Store(&groups)
	return r
}

var defaultRegistry = NewRegistry(NewNames)

// Default is the registry of the process, with new names.
func Default() *Registry { return defaultRegistry }

// Register declares a group. With override it replaces one of that name and its instruments; without, that is an error, as are
// an empty name, no series, a series without key or name, one of an unknown kind, and a key that stands twice.
// (NeMo Lens, register_metric_group)
func (r *Registry) Register(name string, specs []Spec, override bool) error {
	if name == "" {
		return errors.New("register metric group: its name is empty")
	}
	if len(specs) == 0 {
		return fmt.Errorf("register metric group %q: it has no series", name)
	}
	keys := make(map[string]struct{}, len(specs))
	for _, spec := range specs {
		if err := spec.validate(); err != nil {
			return fmt.Errorf("register metric group %q: %w", name, err)
		}
		if _, twice := keys[spec.Key]; twice {
			return fmt.Errorf("register metric group %q: the key %q stands twice", name, spec.Key)
		}
		keys[spec.Key] = struct{}{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	groups := maps.Clone(*r.groups.Load())
	if _, taken := groups[name]; taken && !override {
		return fmt.Errorf("register metric group %q: it is registered already, override replaces it", name)
	}
	groups[name] = r.group(name, specs)
	r.groups.Store(&groups)
	r.unknown.forget(name)
	return nil
}

// Unregister removes a group. One that is not registered is an error.
func (r *Registry) Unregister(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	groups := maps.Clone(*r.groups.Load())
	if _, there := groups[name]; !there {
		return fmt.Errorf("unregister metric group %q: it is not registered", name)
	}
	delete(groups, name)
	r.groups.Store(&groups)
	return nil
}

// Groups are the series of all groups, by group.
func (r *Registry) Groups() map[string][]Spec {
	groups := *r.groups.Load()
	out := make(map[string][]Spec, len(groups))
	for name, g := range groups {
		out[name] = slices.Clone(g.specs)
	}
	return out
}

// Skipped counts the values that were left out: of groups and keys that are not registered, and bad ones.
func (r *Registry) Skipped() uint64 { return r.skipped.Load() }

// Record records values of a group on a meter. An unknown group or key, and a value that is no number or none for its
// series ([Instrument.Record]), is left out, counted, and logged once. (NeMo Lens, record_metrics)
func (r *Registry) Record(ctx context.Context, meter metric.Meter, name string, values Values, attrs ...attribute.KeyValue) {
	g, ok := (*r.groups.Load())[name]
	if !ok {
		r.unknown.many(len(values), name, "metric group is not registered", "group", name)
		return
	}
	g.record(ctx, meter, values, attrs)
}

// maxMeters bounds for how many meters a group keeps instruments: a program has one or two.
const maxMeters = 32

type group struct {
	names  Names
	specs  []Spec
	report *report

	mu     sync.Mutex                                              // of writers
	meters atomic.Pointer[map[metric.Meter]map[string]*Instrument] // never changed once it is stored
}

func (r *Registry) group(name string, specs []Spec) *group {
	g := &group{
		names:  r.names,
		specs:  slices.Clone(specs),
		report: &report{group: name, skipped: &r.skipped},
	}
	g.meters.Store(&map[metric.Meter]map[string]*Instrument{})
	return g
}

func (g *group) record(ctx context.Context, meter metric.Meter, values Values, attrs []attribute.KeyValue) {
	instruments := g.on(meter)
	for key, value := range values {
		i, known := instruments[key]
		if !known {
			g.report.once(key, "metric key is not of its group")
			continue
		}
		if !i.Enabled(ctx) {
			continue
		}
		switch number, state := toNumber(value, i.spec.Unit); state {
		case isNumber:
			i.record(ctx, number, attrs)
		case isBad:
			g.report.once(key, "metric value is no number", "metric", i.spec.Name, "type", fmt.Sprintf("%T", value), "unit", i.spec.Unit)
		}
	}
}

// on are the group's instruments on meter.
func (g *group) on(meter metric.Meter) map[string]*Instrument {
	if meter == nil {
		meter = noop.Meter{}
	}
	if !reflect.ValueOf(meter).Comparable() {
		return build(meter, g.names, g.specs, g.report)
	}
	if instruments, ok := (*g.meters.Load())[meter]; ok {
		return instruments
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	meters := *g.meters.Load()
	if instruments, ok := meters[meter]; ok {
		return instruments
	}
	if len(meters) < maxMeters {
		meters = maps.Clone(meters)
	} else { // An SDK hands out the same instruments again.
		meters = make(map[metric.Meter]map[string]*Instrument)
	}
	meters[meter] = build(meter, g.names, g.specs, g.report)
	g.meters.Store(&meters)
	return meters[meter]
}
