// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens // import "github.com/lenscol/lenscol/sdk"

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// SpanGroup is a switch that spans stand behind, read without a lock. [Group] makes it; the zero value is off for ever. It is
// a value, to be kept in a package variable and copied freely.
type SpanGroup struct{ state *groupState }

type groupState struct {
	on   atomic.Bool
	name string
}

// Group returns the group of that name, trimmed and in lower case. Groups of one name share one switch, which stands as
// the last [SetGroups] left it, off before the first. A name takes memory for as long as the process runs: names are
// constants, not data.
func Group(name string) SpanGroup { return switches.group(normal(name)) }

// Enabled reports whether spans of g are wanted: one atomic load and a bit test.
func (g SpanGroup) Enabled() bool { return g.state != nil && g.state.on.Load() }

// Name is the group's name, in lower case.
func (g SpanGroup) Name() string {
	if g.state == nil {
		return ""
	}
	return g.state.name
}

// SetGroups switches the groups that spec names on and all others off, at any time and from any goroutine. spec is a list
// of groups and presets with commas between, in any case, as NEMO_LENS_SPAN_GROUPS has it; an empty one switches all off.
//
// Names that [DefaultRegistry] does not know are returned and logged as a warning, never an error: a spec holds for a whole
// job, and each process knows only its own groups. They are switched on when somebody registers them
// (NeMo Lens, SpanRegistry).
func SetGroups(spec string) (pending []string) {
	if pending = switches.set(spec); len(pending) > 0 {
		slog.Warn("span groups that nobody registered are off until somebody does", "groups", pending,
			"known_groups", defaultRegistry.Groups(), "known_presets", slices.Sorted(maps.Keys(defaultRegistry.Presets())))
	}
	return pending
}

// EnabledGroups lists the groups that are on, sorted.
func EnabledGroups() []string {
	switches.mu.Lock()
	defer switches.mu.Unlock()
	return slices.Sorted(maps.Keys(switches.enabled))
}

// switches are all groups of the process.
var switches = &switchboard{groups: map[string]SpanGroup{}}

func init() { defaultRegistry.changed = switches.resolveAgain }

type switchboard struct {
	mu      sync.Mutex
	groups  map[string]SpanGroup
	spec    string
	enabled map[string]struct{}
}

func (s *switchboard) group(name string) SpanGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, ok := s.groups[name]; ok {
		return g
	}
	g := SpanGroup{&groupState{name: name}}
	s.groups[name] = g
	s.turn(g)
	return g
}

func (s *switchboard) set(spec string) (pending []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spec = spec
	return s.apply()
}

// resolveAgain follows a change of the default registry.
func (s *switchboard) resolveAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply()
}

func (s *switchboard) apply() (pending []string) {
	enabled, pending := defaultRegistry.Resolve(s.spec)
	s.enabled = make(map[string]struct{}, len(enabled))
	for _, name := range enabled {
		s.enabled[name] = struct{}{}
	}
	for _, g := range s.groups {
		s.turn(g)
	}
	return pending
}

func (s *switchboard) turn(g SpanGroup) {
	_, on := s.enabled[g.state.name]
	g.state.on.Store(on)
}

func normal(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// entries are the names of a spec.
func entries(spec string) []string {
	var names []string
	for name := range strings.SplitSeq(spec, ",") {
		if name = normal(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
