// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens // import "github.com/lenscol/lenscol/sdk"

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// GroupSet is what one project calls its spans' groups: the groups, and named selections of them. The preset `all` is
// every group, and is not listed.
//
// The sets of NeMo Lens and the projects around it are functions below. Of several generations, the numbers count from the
// oldest, and the newest has none. Sets with bare names share the namespace `lens`, newer ones have their own; a process
// registers the one of its kind.
type GroupSet struct {
	Namespace string
	Groups    []string
	Presets   map[string][]string
}

// Resolve reads a list of presets and groups with commas between, in any case, and returns the groups, sorted. Unlike
// [Registry.Resolve] it refuses a name that it does not know, with [ErrUnknownGroup] and the names that it does
// (NeMo Lens up to 0.2).
func (s GroupSet) Resolve(spec string) ([]string, error) {
	s = s.normal()
	var groups []string
	for _, name := range entries(spec) {
		preset, isPreset := s.Presets[name]
		switch {
		case name == presetAll:
			groups = append(groups, s.Groups...)
		case isPreset:
			groups = append(groups, preset...)
		case slices.Contains(s.Groups, name):
			groups = append(groups, name)
		default:
			valid := slices.AppendSeq(append(slices.Clone(s.Groups), presetAll), maps.Keys(s.Presets))
			return nil, fmt.Errorf("%w %q, must be one of %s", ErrUnknownGroup, name, strings.Join(sortedSet(valid), ", "))
		}
	}
	return sortedSet(groups), nil
}

// normal is a copy with all names trimmed and in lower case.
func (s GroupSet) normal() GroupSet {
	all := func(names []string) []string {
		out := make([]string, len(names))
		for i, name := range names {
			out[i] = normal(name)
		}
		return out
	}
	presets := make(map[string][]string, len(s.Presets))
	for name, groups := range s.Presets {
		presets[normal(name)] = append(presets[normal(name)], all(groups)...)
	}
	return GroupSet{Namespace: normal(s.Namespace), Groups: all(s.Groups), Presets: presets}
}

// validate checks the names of a set that is normal.
func (s GroupSet) validate() error {
	if s.Namespace == "" {
		return errors.New("the namespace is empty")
	}
	if len(s.Groups) == 0 {
		return errors.New("there are no groups")
	}
	names := slices.AppendSeq(append(slices.Clone(s.Groups), s.Namespace), maps.Keys(s.Presets))
	if slices.Contains(names, "") {
		return errors.New("the name of a group or preset is empty")
	}
	if slices.Contains(names, presetAll) {
		return errors.New(`the name "all" is every group, choose another`)
	}
	return nil
}

const base = "job checkpoint evaluate model_init load_checkpoint step forward_backward optimizer "

// BaseGroups are the groups of NeMo Lens 0.1 and 0.2 themselves.
func BaseGroups() GroupSet {
	return set("lens", base, "default", "job checkpoint evaluate", "per_step", base)
}

// MegatronGroups01 are those of Megatron-LM while NeMo Lens held them, until April 2026.
func MegatronGroups01() GroupSet {
	return set("lens", base+"microbatch layer communication activation_offload data_loading inference",
		"default", "job checkpoint evaluate inference",
		"per_step", base+"communication data_loading inference")
}

// MegatronGroups02 are those of Megatron-LM with NeMo Lens 0.2, August 2026.
func MegatronGroups02() GroupSet {
	all := base + "microbatch layer communication activation_offload data_loading first_iteration trace_region inference"
	return set("lens", all,
		"default", "job checkpoint evaluate first_iteration inference",
		"per_step", base+"communication data_loading first_iteration inference",
		"profiling", all)
}

// MegatronGroups are those of Megatron-LM since.
func MegatronGroups() GroupSet {
	coarse := "megatron.job megatron.ckpt megatron.eval megatron.inference "
	all := coarse + "megatron.train megatron.detail"
	return set("megatron", all, "default", coarse, "per_step", coarse+"megatron.train", "profiling", all)
}

// RLGroups01 are those of NeMo RL while NeMo Lens held them.
func RLGroups01() GroupSet {
	phases := "rollout generation logprob reward advantage policy_update reference_policy data_processing"
	return set("lens", base+phases,
		"default", "job checkpoint evaluate",
		"per_step", "job checkpoint evaluate step "+phases)
}

// RLGroups02 are those of NeMo RL of August and September 2026. A step of its preset per_step is a trace of its own: there is
// no job above it.
func RLGroups02() GroupSet {
	phases := "setup rollout generation logprob reward advantage policy_update reference_policy data_processing data_plane efficiency "
	return set("lens", base+phases+"per_prompt",
		"default", "job checkpoint evaluate model_init setup",
		"per_step", "checkpoint evaluate model_init step "+phases)
}

// RLGroups are those of NeMo RL since.
func RLGroups() GroupSet {
	coarse := "job checkpoint evaluate model_init setup "
	perStep := coarse + "step rollout generation logprob reward advantage policy_update data_processing data_plane efficiency "
	return set("nemo_rl", perStep+"per_prompt", "default", coarse, "per_step", perStep)
}

// GymGroups01 are those of NeMo Gym while NeMo Lens held them.
func GymGroups01() GroupSet {
	perStep := "job checkpoint evaluate server rollout_collection verify aggregate_metrics"
	return set("lens", base+"server rollout_collection verify aggregate_metrics",
		"default", "job checkpoint evaluate server", "per_step", perStep)
}

// GymGroups are those of NeMo Gym since.
func GymGroups() GroupSet {
	return set("nemo_gym", "job server http_client rollout verify agent model_call sandbox startup",
		"default", "job startup server http_client rollout",
		"per_rollout", "server http_client rollout verify agent model_call")
}

// NVRxGroups are those of the resiliency extension.
func NVRxGroups() GroupSet {
	coarse := "nvrx.job nvrx.ft nvrx.ckpt "
	all := coarse + "nvrx.ckpt.phases"
	return set("nvrx", all, "default", coarse, "per_step", all, "profiling", all)
}

// set writes lists as text: groups, then a name and its groups for each preset.
func set(namespace, groups string, presets ...string) GroupSet {
	s := GroupSet{Namespace: namespace, Groups: strings.Fields(groups), Presets: map[string][]string{}}
	for i := 0; i < len(presets); i += 2 {
		s.Presets[presets[i]] = strings.Fields(presets[i+1])
	}
	return s
}
