// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPresetsOfEveryGeneration(t *testing.T) {
	const baseSorted = "checkpoint evaluate forward_backward job load_checkpoint model_init optimizer step"
	for _, c := range []struct {
		name    string
		set     GroupSet
		groups  int
		presets map[string]string
	}{
		{"base", BaseGroups(), 8, map[string]string{"default": "checkpoint evaluate job", "per_step": baseSorted, "all": baseSorted}},
		{"megatron 1", MegatronGroups01(), 14, map[string]string{
			"default":  "checkpoint evaluate inference job",
			"per_step": "checkpoint communication data_loading evaluate forward_backward inference job load_checkpoint model_init optimizer step",
		}},
		{"megatron 2", MegatronGroups02(), 16, map[string]string{
			"default":   "checkpoint evaluate first_iteration inference job",
			"per_step":  "checkpoint communication data_loading evaluate first_iteration forward_backward inference job load_checkpoint model_init optimizer step",
			"profiling": "activation_offload checkpoint communication data_loading evaluate first_iteration forward_backward inference job layer load_checkpoint microbatch model_init optimizer step trace_region",
		}},
		{"megatron", MegatronGroups(), 6, map[string]string{
			"default":   "megatron.ckpt megatron.eval megatron.inference megatron.job",
			"per_step":  "megatron.ckpt megatron.eval megatron.inference megatron.job megatron.train",
			"profiling": "megatron.ckpt megatron.detail megatron.eval megatron.inference megatron.job megatron.train",
		}},
		{"rl 1", RLGroups01(), 16, map[string]string{
			"default":  "checkpoint evaluate job",
			"per_step": "advantage checkpoint data_processing evaluate generation job logprob policy_update reference_policy reward rollout step",
		}},
		{"rl 2", RLGroups02(), 20, map[string]string{
			"default":  "checkpoint evaluate job model_init setup",
			"per_step": "advantage checkpoint data_plane data_processing efficiency evaluate generation logprob model_init policy_update reference_policy reward rollout setup step",
		}},
		{"rl", RLGroups(), 16, map[string]string{
			"default":  "checkpoint evaluate job model_init setup",
			"per_step": "advantage checkpoint data_plane data_processing efficiency evaluate generation job logprob model_init policy_update reward rollout setup step",
			"all":      "advantage checkpoint data_plane data_processing efficiency evaluate generation job logprob model_init per_prompt policy_update reward rollout setup step",
		}},
		{"gym 1", GymGroups01(), 12, map[string]string{
			"default":  "checkpoint evaluate job server",
			"per_step": "aggregate_metrics checkpoint evaluate job rollout_collection server verify",
		}},
		{"gym", GymGroups(), 9, map[string]string{
			"default":     "http_client job rollout server startup",
			"per_rollout": "agent http_client model_call rollout server verify",
		}},
		{"nvrx", NVRxGroups(), 4, map[string]string{
			"default":   "nvrx.ckpt nvrx.ft nvrx.job",
			"per_step":  "nvrx.ckpt nvrx.ckpt.phases nvrx.ft nvrx.job",
			"profiling": "nvrx.ckpt nvrx.ckpt.phases nvrx.ft nvrx.job",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewRegistry()
			require.NoError(t, r.Register(c.set, false))
			require.Len(t, r.Groups(), c.groups)
			for name, want := range c.presets {
				require.Equal(t, strings.Fields(want), r.Presets()[name], name)
				old, err := c.set.Resolve(name)
				require.NoError(t, err)
				require.Equal(t, strings.Fields(want), old, name)
			}
			require.Equal(t, r.Groups(), r.Presets()["all"])
			want := len(c.presets)
			if _, listed := c.presets["all"]; !listed {
				want++
			}
			require.Len(t, r.Presets(), want)
		})
	}
}

func TestGroupSetResolveRefusesUnknownNames(t *testing.T) {
	groups, err := BaseGroups().Resolve(" Step, ,DEFAULT ")
	require.NoError(t, err)
	require.Equal(t, []string{"checkpoint", "evaluate", "job", "step"}, groups)
	_, err = BaseGroups().Resolve("default,rollout")
	require.ErrorIs(t, err, ErrUnknownGroup)
	require.EqualError(t, err, `unknown span group or preset "rollout", must be one of `+
		`all, checkpoint, default, evaluate, forward_backward, job, load_checkpoint, model_init, optimizer, per_step, step`)
}

func TestRegisterRefuses(t *testing.T) {
	one := []string{"x"}
	for _, c := range []struct {
		name string
		set  GroupSet
		want string
	}{
		{"an empty namespace", GroupSet{Namespace: " ", Groups: one}, `span groups: register namespace "": the namespace is empty`},
		{"no groups", GroupSet{Namespace: "a"}, `span groups: register namespace "a": there are no groups`},
		{"an empty group", GroupSet{Namespace: "a", Groups: []string{"x", " "}}, `span groups: register namespace "a": the name of a group or preset is empty`},
		{"an empty preset", GroupSet{Namespace: "a", Groups: one, Presets: map[string][]string{"": one}}, `span groups: register namespace "a": the name of a group or preset is empty`},
		{"a namespace all", GroupSet{Namespace: "all", Groups: one}, `span groups: register namespace "all": the name "all" is every group, choose another`},
		{"a group all", GroupSet{Namespace: "a", Groups: []string{"ALL"}}, `span groups: register namespace "a": the name "all" is every group, choose another`},
		{"a preset all", GroupSet{Namespace: "a", Groups: one, Presets: map[string][]string{" all": one}}, `span groups: register namespace "a": the name "all" is every group, choose another`},
		{"a preset of unknown groups", GroupSet{Namespace: "a", Groups: one, Presets: map[string][]string{"p": {"y"}}}, `span groups: register namespace "a": preset "p": nobody registered the group "y"`},
		{"a namespace that is taken", GroupSet{Namespace: "Taken", Groups: one}, `span groups: register namespace "taken": it is taken; override it or choose another`},
		{"another's group", GroupSet{Namespace: "a", Groups: []string{"OWNED"}}, `span groups: register namespace "a": group "owned" is owned by namespace "taken"; override it to share the group`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewRegistry()
			require.NoError(t, r.Register(GroupSet{Namespace: "taken", Groups: []string{"owned"}}, false))
			err := r.Register(c.set, false)
			require.ErrorIs(t, err, ErrRegister)
			require.EqualError(t, err, c.want)
			require.Equal(t, []string{"owned"}, r.Groups(), "a refused set leaves nothing")
			require.Equal(t, []string{"taken"}, r.Namespaces())
		})
	}
}

// NeMo RL and NeMo Gym in one process: job and rollout are of both.
func TestGroupsThatNamespacesShare(t *testing.T) {
	r := NewRegistry()
	require.ErrorIs(t, r.Register(GroupSet{Namespace: "lens", Groups: []string{"job"}, Presets: map[string][]string{"p": {"nobody's"}}}, true), ErrRegister)
	require.NoError(t, r.Register(RLGroups(), true))
	require.NoError(t, r.Register(GymGroups(), true))
	enabled, pending := r.Resolve("default")
	require.Empty(t, pending)
	require.Equal(t, []string{"checkpoint", "evaluate", "http_client", "job", "model_init", "rollout", "server", "setup", "startup"}, enabled)

	require.NoError(t, r.Unregister("nemo_rl"))
	enabled, pending = r.Resolve("job,rollout,step")
	require.Equal(t, []string{"job", "rollout"}, enabled, "they are Gym's too")
	require.Equal(t, []string{"step"}, pending)
	require.NoError(t, r.Unregister("nemo_gym"))
	require.Empty(t, r.Groups())
}

func TestRegistryNormalizesNames(t *testing.T) {
	r := NewRegistry()
	require.NoError(t, r.Register(GroupSet{Namespace: " Mine ", Groups: []string{" A ", "b"}, Presets: map[string][]string{" P ": {"a"}}}, false))
	require.Equal(t, []string{"mine"}, r.Namespaces())
	require.Equal(t, map[string][]string{"p": {"a"}, "all": {"a", "b"}}, r.Presets())
	enabled, pending := r.Resolve(" B ,p, C,,c")
	require.Equal(t, []string{"a", "b"}, enabled)
	require.Equal(t, []string{"c"}, pending)
}

func TestPresetsAreTheUnionOfNamespacesAndLive(t *testing.T) {
	r := NewRegistry()
	require.NoError(t, r.Register(GroupSet{Namespace: "a", Groups: []string{"a1", "a2"}, Presets: map[string][]string{"default": {"a1"}}}, false))
	require.NoError(t, r.Register(GroupSet{Namespace: "b", Groups: []string{"b1"}, Presets: map[string][]string{"default": {"b1"}, "mixed": {"b1", "a2"}}}, false))
	require.Equal(t, map[string][]string{"default": {"a1", "b1"}, "mixed": {"a2", "b1"}, "all": {"a1", "a2", "b1"}}, r.Presets())
	require.NoError(t, r.Unregister("A"))
	require.Equal(t, map[string][]string{"default": {"b1"}, "mixed": {"b1"}, "all": {"b1"}}, r.Presets())
	require.EqualError(t, r.Unregister("a"), `span groups: unregister namespace "a": must be one of b`)
}

func TestOverrideReplacesTheNamespaceAsAWhole(t *testing.T) {
	r := NewRegistry()
	require.NoError(t, r.Register(GroupSet{Namespace: "a", Groups: []string{"old", "kept"}, Presets: map[string][]string{"p": {"old"}}}, false))
	require.NoError(t, r.Register(GroupSet{Namespace: "a", Groups: []string{"kept", "new"}}, true))
	require.Equal(t, []string{"kept", "new"}, r.Groups())
	require.Equal(t, []string{"all"}, slices.Collect(func(yield func(string) bool) {
		for name := range r.Presets() {
			if !yield(name) {
				return
			}
		}
	}))
	r.Clear()
	require.Empty(t, r.Groups())
	require.Empty(t, r.Namespaces())
}

func TestDefaultRegistryHoldsTheBaseGroupsWhileEmpty(t *testing.T) {
	restoreGroups(t)
	require.Len(t, DefaultRegistry().Groups(), 8)
	require.Empty(t, DefaultRegistry().Namespaces())
	require.NoError(t, DefaultRegistry().Register(NVRxGroups(), false))
	require.Len(t, DefaultRegistry().Groups(), 4)
}
