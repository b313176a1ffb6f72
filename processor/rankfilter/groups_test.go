// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpanGroups(t *testing.T) {
	tests := []struct {
		list    string
		service string
		in      []string
		out     []string
		others  []string // of no known group
	}{
		{
			list:   "default",
			in:     []string{"megatron.train", "megatron.checkpoint.save", "megatron.evaluate.step", "nv.dl.training.checkpoint.save.write", "nv.dl.training.startup.model_init", "rl.grpo.job", "rl.setup.ray_init", "gym.rollout", "nv.nvrx.ftl.cycle", "nv.nvrx.ckpt.save"},
			out:    []string{"megatron.train.iteration", "megatron.startup.model_init", "megatron.layer.mlp", "nv.dl.training.iteration", "rl.grpo.step", "rl.grpo.generation", "gym.model.responses", "nv.nvrx.ckpt.save.write"},
			others: []string{"my.span", "", "gym", "POST /run", "HTTP POST"},
		},
		{
			list: "per_step",
			in:   []string{"megatron.train.iteration.forward_backward", "megatron.p2p.send_forward", "rl.sc.policy_optimizer_step", "nv.nvrx.ckpt.save.write", "nv.dl.training.iteration.optimizer_step"},
			out:  []string{"megatron.layer.mlp", "megatron.microbatch.forward", "nv.mcore.layer.forward", "rl.sc.generate_and_push", "gym.model.responses"},
		},
		{list: "all", in: []string{"megatron.layer.mlp", "rl.sc.generate_and_push", "gym.sandbox.exec", "nv.mcore.x"}, out: nil, others: []string{"x"}},
		{list: " Step , MEGATRON.CKPT ", in: []string{"megatron.train.log", "nv.mlm.train.log", "rl.grpo.step", "nv.dl.training.checkpoint.save", "megatron.checkpoint.save"}, out: []string{"megatron.train", "gym.rollout"}},
		{
			list: "per_step", service: "nemo-gym/simple_agent",
			in:  []string{"gym.job", "gym.rollout", "gym.verify", "POST /run", "GET /health"},
			out: []string{"gym.model.responses", "gym.sandbox.exec", "gym.startup", "HTTP POST"},
		},
		{list: "per_step", service: "vllm", others: []string{"POST /v1/chat/completions", "GET /health", "HTTP POST", "HTTP GET"}},
		{list: "rollout_collection", service: "nemo-gym/x", in: []string{"gym.rollout"}, out: []string{"gym.verify", "POST /run", "megatron.train"}},
		{list: "server, verify", service: "nemo-gym/x", in: []string{"gym.verify", "POST /run"}, out: []string{"gym.rollout", "HTTP GET"}},
		{list: "aggregate_metrics", service: "nemo-gym/x", out: []string{"gym.verify", "POST /run"}, others: []string{"mine"}},
		{list: "per_rollout", service: "nemo-gym", in: []string{"gym.verify", "HTTP POST", "POST /run"}, out: []string{"gym.job"}},
		{list: "per_rollout,per_step", service: "nemo-gym", in: []string{"gym.job", "gym.agent.responses", "megatron.train.log"}, out: []string{"gym.startup"}},
		{list: "per_rollout", in: []string{"gym.verify"}, out: []string{"gym.startup.server", "megatron.train"}},
	}
	for _, tt := range tests {
		t.Run(tt.list+" "+tt.service, func(t *testing.T) {
			g, err := newSpanGroups(tt.list)
			require.NoError(t, err)
			check := func(names []string, wantIn, wantUnknown bool) {
				for _, name := range names {
					in, unknown := g.has(tt.service, name)
					require.Equal(t, wantIn, in, name)
					require.Equal(t, wantUnknown, unknown, name)
				}
			}
			check(tt.in, true, false)
			check(tt.out, false, false)
			check(tt.others, true, true)
		})
	}
}

func TestSpanGroupsRefused(t *testing.T) {
	for _, list := range []string{"steps", "default,,step", "default,nothing"} {
		_, err := newSpanGroups(list)
		require.ErrorContains(t, err, "span_groups: ")
		require.ErrorContains(t, err, "per_rollout, per_step")
		cfg := NewFactory().CreateDefaultConfig().(*Config)
		cfg.SpanGroups = list
		require.ErrorContains(t, cfg.Validate(), "span_groups: ")
	}
	none, err := newSpanGroups(" ")
	require.NoError(t, err)
	require.Nil(t, none)
}

// Every group that a name of the table belongs to, and that a preset holds, is one of its project.
func TestSpanNamesBelongToKnownGroups(t *testing.T) {
	known := map[string]bool{}
	for name, p := range projects {
		for _, group := range p.Groups {
			known[name+":"+group] = true
		}
	}
	for _, line := range slices.Concat(spanNames, gymNames) {
		for _, group := range strings.Fields(line.groups) {
			require.True(t, known[group], group)
		}
	}
	for name, p := range projects {
		for preset, groups := range p.Presets {
			for _, group := range groups {
				require.True(t, known[name+":"+group], "%s of %s: %s", preset, name, group)
			}
		}
	}
}
