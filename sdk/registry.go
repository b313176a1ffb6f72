// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens // import "github.com/lenscol/lenscol/sdk"

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// presetAll is every group there is. Nobody can register the name.
const presetAll = "all"

// ErrRegister is of a set of groups that cannot be registered or unregistered.
var ErrRegister = errors.New("span groups")

// ErrUnknownGroup is of a spec that names what a [GroupSet] does not have.
var ErrUnknownGroup = errors.New("unknown span group or preset")

// Registry knows which groups and presets there are, by the namespace that owns them. Its rules are those of NeMo Lens's
// SpanRegistry. A read sees one state of the whole registry and takes no lock.
type Registry struct {
	mu       sync.Mutex // of writers
	state    atomic.Pointer[registered]
	fallback []GroupSet // what is there while nothing is registered
	changed  func()     // called after every change, without mu
}

// registered is never changed once it is stored.
type registered struct {
	sets    map[string]GroupSet // by namespace
	owners  map[string]string   // namespace by group, one of those that share it
	presets map[string][]string // sorted, live groups only, `all` among them
}

// NewRegistry makes a registry of its own, empty.
func NewRegistry() *Registry { return newRegistry() }

// DefaultRegistry is the registry that [SetGroups] asks. While nothing is registered there, it holds [BaseGroups], which every
// NeMo Lens up to 0.2 has.
func DefaultRegistry() *Registry { return defaultRegistry }

var defaultRegistry = newRegistry(BaseGroups())

func newRegistry(fallback ...GroupSet) *Registry {
	r := &Registry{fallback: fallback, changed: func() {}}
	r.store(nil)
	return r
}

// Register adds the groups and presets of set, their names trimmed and in lower case. With allowOverride, a namespace that is
// there already is replaced as a whole, and a group that another namespace has too is of both, as `job` and `rollout` are of
// NeMo RL and NeMo Gym.
//
// The error is [ErrRegister] when the namespace, the list of groups or a name is empty, when something is named `all`, when a
// preset lists a group that nobody registered, and, without allowOverride, when the namespace is taken or another owns a
// group.
func (r *Registry) Register(set GroupSet, allowOverride bool) error {
	set = set.normal()
	if err := r.register(set, allowOverride); err != nil {
		return fmt.Errorf("%w: register namespace %q: %w", ErrRegister, set.Namespace, err)
	}
	r.changed()
	return nil
}

func (r *Registry) register(set GroupSet, allowOverride bool) error {
	if err := set.validate(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sets := maps.Clone(r.state.Load().sets)
	if _, taken := sets[set.Namespace]; taken && !allowOverride {
		return errors.New("it is taken; override it or choose another")
	}
	sets[set.Namespace] = set
	owners := make(map[string]string)
	for namespace, other := range sets {
		for _, group := range other.Groups {
			if namespace != set.Namespace && slices.Contains(set.Groups, group) && !allowOverride {
				return fmt.Errorf("group %q is owned by namespace %q; override it to share the group", group, namespace)
			}
			owners[group] = namespace
		}
	}
	for _, preset := range slices.Sorted(maps.Keys(set.Presets)) {
		for _, group := range set.Presets[preset] {
			if _, live := owners[group]; !live {
				return fmt.Errorf("preset %q: nobody registered the group %q", preset, group)
			}
		}
	}
	r.store(sets)
	return nil
}

// Unregister removes a namespace with its groups and presets. The error is [ErrRegister] when it is not there.
func (r *Registry) Unregister(namespace string) error {
	namespace = normal(namespace)
	r.mu.Lock()
	sets := maps.Clone(r.state.Load().sets)
	_, there := sets[namespace]
	if there {
		delete(sets, namespace)
		r.store(sets)
	}
	r.mu.Unlock()
	if !there {
		return fmt.Errorf("%w: unregister namespace %q: must be one of %s", ErrRegister, namespace,
			strings.Join(r.Namespaces(), ", "))
	}
	r.changed()
	return nil
}

// Clear removes all that was registered.
func (r *Registry) Clear() {
	r.mu.Lock()
	r.store(nil)
	r.mu.Unlock()
	r.changed()
}

// store publishes a new state: sets, and what follows from them.
func (r *Registry) store(sets map[string]GroupSet) {
	next := &registered{sets: sets, owners: map[string]string{}, presets: map[string][]string{}}
	if next.sets == nil {
		next.sets = map[string]GroupSet{}
	}
	live := slices.Collect(maps.Values(next.sets))
	if len(live) == 0 {
		live = r.fallback
	}
	for _, set := range live {
		for _, group := range set.Groups {
			next.owners[group] = set.Namespace
		}
	}
	for _, set := range live {
		for name, groups := range set.Presets {
			for _, group := range groups {
				if _, there := next.owners[group]; there {
					next.presets[name] = append(next.presets[name], group)
				}
			}
		}
	}
	next.presets[presetAll] = slices.Collect(maps.Keys(next.owners))
	for name, groups := range next.presets {
		next.presets[name] = sortedSet(groups)
	}
	r.state.Store(next)
}

// Groups lists all groups, sorted.
func (r *Registry) Groups() []string { return slices.Clone(r.state.Load().presets[presetAll]) }

// Namespaces lists the namespaces that were registered, sorted.
func (r *Registry) Namespaces() []string { return slices.Sorted(maps.Keys(r.state.Load().sets)) }

// Presets are the groups of each preset, sorted. A name that several namespaces use is the union of theirs; `all` is every
// group. Groups whose namespace was unregistered are not in it.
func (r *Registry) Presets() map[string][]string {
	presets := maps.Clone(r.state.Load().presets)
	for name, groups := range presets {
		presets[name] = slices.Clone(groups)
	}
	return presets
}

// Resolve reads a list of presets and groups with commas between. enabled are the groups, pending the names that nobody
// registered yet; both are sorted and without doubles.
func (r *Registry) Resolve(spec string) (enabled, pending []string) {
	state := r.state.Load()
	for _, name := range entries(spec) {
		if groups, ok := state.presets[name]; ok {
			enabled = append(enabled, groups...)
		} else if _, ok := state.owners[name]; ok {
			enabled = append(enabled, name)
		} else {
			pending = append(pending, name)
		}
	}
	return sortedSet(enabled), sortedSet(pending)
}

func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
