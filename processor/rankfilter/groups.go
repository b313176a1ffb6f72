// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter // import "github.com/lenscol/lenscol/processor/rankfilter"

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lenscol/lenscol/internal/ranks"
	lens "github.com/lenscol/lenscol/sdk"
)

// projects are the sets of span groups that names stand in, as NeMo Lens and its users have them. Of a preset that several
// projects know, each takes its own; `all` is every group of every project.
var projects = map[string]lens.GroupSet{
	"lens":     lens.MegatronGroups02(), // and of NeMo Lens 0.1 and 0.2 themselves
	"megatron": lens.MegatronGroups(),
	"nemo_rl":  lens.RLGroups(),
	"nemo_gym": lens.GymGroups(),
	"gym":      lens.GymGroups01(), // no names are known of aggregate_metrics
	"nvrx":     lens.NVRxGroups(),
}

const presetAll = "all"

// spanName has globs of names, joined with |, and the groups that they belong to, as project:group.
type spanName struct{ globs, groups string }

// spanNames says which groups a span belongs to by its name. Names without a star come first, then the first line that
// matches. A preset is about the first group of a line whose project has that preset, the one that the sender of that
// name knows; a group in the list is about all of them, so that it holds for a fleet that sends both generations of names.
var spanNames = []spanName{
	{"pre_startup|megatron.startup", "lens:job megatron:megatron.job"},
	{"megatron.startup.model_init", "lens:model_init megatron:megatron.job"},
	{"megatron.startup.dataloader", "lens:data_loading megatron:megatron.job"},
	{"megatron.startup.*", "lens:job megatron:megatron.job"},
	{"megatron.train", "lens:job megatron:megatron.job"},
	{"megatron.train.iteration.forward_backward", "lens:forward_backward megatron:megatron.train"},
	{"megatron.train.iteration.optimizer", "lens:optimizer megatron:megatron.train"},
	{"megatron.train.first_iteration", "lens:first_iteration megatron:megatron.train"},
	{"megatron.train.sniff_test|megatron.train.cuda_graph_capture", "lens:job megatron:megatron.job"},
	{"megatron.train.*|megatron.train_step", "lens:step megatron:megatron.train"},
	{"megatron.checkpoint.load|megatron.checkpoint.load.*", "lens:load_checkpoint megatron:megatron.ckpt"},
	{"megatron.checkpoint.timers_log", "lens:step megatron:megatron.ckpt"},
	{"megatron.checkpoint.*", "lens:checkpoint megatron:megatron.ckpt"},
	{"megatron.evaluate|megatron.evaluate.*", "lens:evaluate megatron:megatron.eval"},
	{"megatron.microbatch.*", "lens:microbatch megatron:megatron.detail"},
	{"megatron.layer.*", "lens:layer megatron:megatron.detail"},
	{"megatron.p2p.*|megatron.grad_sync.*", "lens:communication megatron:megatron.detail"},

	{"nv.dl.training.startup", "megatron:megatron.job lens:job"},
	{"nv.dl.training.startup.model_init", "megatron:megatron.job lens:model_init"},
	{"nv.dl.training.startup.dataloader", "megatron:megatron.job lens:data_loading"},
	{"nv.dl.training.startup.*", "megatron:megatron.job lens:job"},
	{"nv.dl.training.iter_block|nv.dl.training.loop_pass", "megatron:megatron.job lens:job"},
	{"nv.dl.training.iteration.forward_backward", "megatron:megatron.train lens:forward_backward"},
	{"nv.dl.training.iteration.optimizer_step", "megatron:megatron.train lens:optimizer"},
	{"nv.dl.training.first_iteration", "megatron:megatron.train lens:first_iteration"},
	{"nv.dl.training.sniff_test|nv.dl.training.cuda_graph_capture", "megatron:megatron.job lens:job"},
	{"nv.dl.training.iteration|nv.mlm.train.*", "megatron:megatron.train lens:step"},
	{"nv.dl.training.checkpoint.load|nv.dl.training.checkpoint.load.*", "megatron:megatron.ckpt lens:load_checkpoint"},
	{"nv.mlm.checkpoint.timers_log", "megatron:megatron.ckpt lens:step"},
	{"nv.dl.training.checkpoint.*|nv.mlm.checkpoint.*", "megatron:megatron.ckpt lens:checkpoint"},
	{"nv.dl.training.evaluate|nv.dl.training.evaluate.*", "megatron:megatron.eval lens:evaluate"},
	{"nv.mcore.microbatch.*", "megatron:megatron.detail lens:microbatch"},
	{"nv.mcore.layer.*", "megatron:megatron.detail lens:layer"},
	{"nv.mcore.p2p.*|nv.mcore.grad_sync.*", "megatron:megatron.detail lens:communication"},
	{"nv.mcore.*", "megatron:megatron.detail"},

	{"rl.startup|rl.setup.*|rl.init.total", "nemo_rl:setup"},
	{"rl.data_plane.*", "nemo_rl:data_plane"},
	{"rl.vllm.generate|rl.vllm.generate_text|rl.*.generation", "nemo_rl:generation"},
	{"rl.*.load_model", "nemo_rl:model_init"},
	{"rl.idle.*", "nemo_rl:efficiency"},
	{"rl.*.job", "nemo_rl:job"},
	{"rl.*.step", "nemo_rl:step"},
	{"rl.*.data_processing", "nemo_rl:data_processing"},
	{"rl.*.collect_rollouts", "nemo_rl:rollout"},
	{"rl.*.reward_calculation|rl.*.compute_rewards", "nemo_rl:reward"},
	{"rl.*.policy_and_reference_logprobs|rl.*.teacher_logprob_inference|rl.*.compute_logprobs|rl.*.logprob_inference_prep", "nemo_rl:logprob"},
	{"rl.*.advantage_calculation|rl.*.compute_advantages", "nemo_rl:advantage"},
	{"rl.*.policy_training|rl.*.value_training|rl.*.policy_update|rl.*.policy_optimizer_step", "nemo_rl:policy_update"},
	{"rl.*.checkpointing|rl.*.save_checkpoint", "nemo_rl:checkpoint"},
	{"rl.*.evaluate", "nemo_rl:evaluate"},
	{"rl.*.generate_and_push", "nemo_rl:per_prompt"},

	{"gym.job", "nemo_gym:job gym:job"},
	{"gym.rollout", "nemo_gym:rollout gym:rollout_collection"},
	{"gym.verify", "nemo_gym:verify gym:verify"},
	{"gym.agent.*", "nemo_gym:agent"},
	{"gym.model.*", "nemo_gym:model_call"},
	{"gym.sandbox.*", "nemo_gym:sandbox"},
	{"gym.startup|gym.startup.*|gym.server.startup|gym.server.startup.*", "nemo_gym:startup"},

	{"nv.nvrx.ftl.python.*", "nvrx:nvrx.job"},
	{"nv.nvrx.ftl.*|nvrx.restart.*", "nvrx:nvrx.ft"},
	{"nv.nvrx.ckpt.save|nv.nvrx.checkpoint.save|nvrx.checkpoint.save", "nvrx:nvrx.ckpt"},
	{"nv.nvrx.ckpt.save.*|nv.nvrx.checkpoint.save.*|nvrx.checkpoint.save.*", "nvrx:nvrx.ckpt.phases"},
}

// gymNames are names that anything with HTTP sends, vLLM too. They are known for services of NeMo Gym alone.
var gymNames = []spanName{
	{"HTTP POST|HTTP GET", "nemo_gym:http_client"},
	{"POST /*|GET /*", "nemo_gym:server gym:server"},
}

// gymService begins the service.name of every process of NeMo Gym: nemo-gym/<server>.
const gymService = "nemo-gym"

// spanGroups knows for a span's name whether it goes on.
type spanGroups struct{ anywhere, gym nameTable }

// nameTable says of the names of some lines whether they go on.
type nameTable struct {
	names map[string]bool // of the globs without a star
	globs []spanGlob      // the others, in order
}

type spanGlob struct {
	glob string
	in   bool
}

// newSpanGroups reads a list of groups and presets, upper or lower case; nil stands for an empty one.
func newSpanGroups(list string) (*spanGroups, error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	known := groupNames()
	var entries []string
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if !slices.Contains(known, entry) {
			return nil, fmt.Errorf("span_groups: %q of %q is no span group or preset, must be one of %s", entry, list, strings.Join(known, ", "))
		}
		entries = append(entries, entry)
	}
	return &spanGroups{anywhere: newNameTable(spanNames, entries), gym: newNameTable(gymNames, entries)}, nil
}

func newNameTable(lines []spanName, entries []string) nameTable {
	t := nameTable{names: map[string]bool{}}
	for _, line := range lines {
		in := slices.ContainsFunc(entries, line.isIn)
		for glob := range strings.SplitSeq(line.globs, "|") {
			if strings.Contains(glob, "*") {
				t.globs = append(t.globs, spanGlob{glob, in})
			} else {
				t.names[glob] = in
			}
		}
	}
	return t
}

// isIn reports whether a group or preset has these names.
func (n spanName) isIn(entry string) bool {
	if entry == presetAll {
		return true
	}
	asked := false // a project that has the preset
	for of := range strings.FieldsSeq(n.groups) {
		name, group, _ := strings.Cut(of, ":")
		if group == entry {
			return true
		}
		if preset, ok := projects[name].Presets[entry]; ok && !asked {
			asked = true
			if slices.Contains(preset, group) {
				return true
			}
		}
	}
	return false
}

// has reports whether a span of that name goes on; unknown is true for a name of no group, which does.
func (g *spanGroups) has(service, name string) (in, unknown bool) {
	in, ok := g.anywhere.find(name)
	if !ok && strings.HasPrefix(service, gymService) {
		in, ok = g.gym.find(name)
	}
	return in || !ok, !ok
}

func (t *nameTable) find(name string) (in, ok bool) {
	if in, ok := t.names[name]; ok {
		return in, true
	}
	for _, line := range t.globs {
		if ranks.Matches(line.glob, name) {
			return line.in, true
		}
	}
	return false, false
}

// groupNames lists all groups and presets, sorted; those too that NeMo RL has no more and asks for in old launch scripts.
func groupNames() []string {
	names := map[string]bool{presetAll: true}
	for _, set := range append(slices.Collect(maps.Values(projects)), lens.RLGroups02()) {
		for _, group := range set.Groups {
			names[group] = true
		}
		for preset := range set.Presets {
			names[preset] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
