// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

import (
	"slices"
	"strings"
	"testing"
)

// The registry of NeMo Lens has 99 records (weaver, base 1.29.0).
func TestRegistry(t *testing.T) {
	names := Registry()
	if len(names) != 99 {
		t.Errorf("%d names, want 99", len(names))
	}
	if !slices.IsSorted(names) {
		t.Error("the registry is not sorted")
	}
	if unique := slices.Compact(names); len(unique) != len(Registry()) {
		t.Error("a name stands twice in the registry")
	}
}

func TestTablesAreFunctions(t *testing.T) {
	for name, table := range map[string][]Rename{"attributes": Attributes(), "spans": Spans(), "metrics": Metrics()} {
		old, back := map[string]bool{}, map[string]bool{}
		for _, r := range table {
			if r.Old == "" || r.New == "" || r.Old == r.New || strings.HasSuffix(r.Old, ".") != strings.HasSuffix(r.New, ".") {
				t.Errorf("%s: odd line %+v", name, r)
			}
			if old[r.Old] {
				t.Errorf("%s: %s stands twice", name, r.Old)
			}
			if !r.OneWay && back[r.New] {
				t.Errorf("%s: two ways back from %s", name, r.New)
			}
			old[r.Old] = true
			back[r.New] = back[r.New] || !r.OneWay
		}
	}
}

func TestRename(t *testing.T) {
	tests := []struct {
		name, old, new string
		table          []Rename
	}{
		{"rank", "dl.rank", "nv.dl.rank", Attributes()},
		{"step", "megatron.iteration", "nv.dl.training.step", Attributes()},
		{"gpu", "dl.gpu.name", "nv.gpu.model", Attributes()},
		{"iteration", "megatron.train.iteration", "nv.dl.training.iteration", Spans()},
		{"optimizer", "megatron.train.iteration.optimizer", "nv.dl.training.iteration.optimizer_step", Spans()},
		{"below a prefix", "megatron.checkpoint.save.io_write", "nv.dl.training.checkpoint.save.io_write", Spans()},
		{"an exception below a prefix", "megatron.checkpoint.ft_heartbeat", "nv.mlm.checkpoint.ft_heartbeat", Spans()},
		{"rl", "rl.grpo.collect_rollouts", "rl.grpo.generation", Spans()},
		{"metric", "rl.kl_divergence", "rl.kl.divergence", Metrics()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := ToNew(tt.table).Rename(tt.old); !ok || got != tt.new {
				t.Errorf("to new: %q, %v", got, ok)
			}
			if got, ok := ToOld(tt.table).Rename(tt.new); !ok || got != tt.old {
				t.Errorf("to old: %q, %v", got, ok)
			}
			if got, ok := ToNew(tt.table).Rename(tt.new); ok {
				t.Errorf("a new name has another new name %q", got)
			}
		})
	}
}

func TestRenameOneWay(t *testing.T) {
	if got, ok := ToNew(Attributes()).Rename("slurm.cluster"); !ok || got != "slurm.cluster.name" {
		t.Errorf("to new: %q, %v", got, ok)
	}
	if got, ok := ToOld(Attributes()).Rename("slurm.cluster.name"); ok {
		t.Errorf("slurm.cluster.name has the old name %q, though Lens 0.2 sends it", got)
	}
	for _, unknown := range []string{"", "host.name", "megatron.", "megatron.checkpoint."} {
		if got, ok := ToNew(Spans()).Rename(unknown); ok {
			t.Errorf("%q became %q", unknown, got)
		}
	}
}
