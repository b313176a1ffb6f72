// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package resource // import "github.com/lenscol/lenscol/sdk/resource"

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// Torch is the rank of this process as torchrun (RANK, WORLD_SIZE, LOCAL_RANK) or srun (SLURM_PROCID, SLURM_NTASKS,
// SLURM_LOCALID) says; a rank and a world size that come from different launchers are never mixed.
func (d *Detector) Torch() []Attribute {
	for _, names := range [][3]string{{"RANK", "WORLD_SIZE", "LOCAL_RANK"}, {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}} {
		f := facts{d: d}
		if f.integer(semconv.DLRank, names[0]) {
			f.integer(semconv.DLWorldSize, names[1])
			f.integer(semconv.DLLocalRank, names[2])
			return f.list
		}
	}
	return nil
}

// Wandb is the W&B target: WANDB_ENTITY, WANDB_PROJECT and WANDB_RUN_ID. Where WANDB_DIR is set, and the latest run there is that of
// WANDB_RUN_ID, the entity and project that are left open come from its files/wandb-metadata.json, where that names them. The latest run of no
// known id is not asked: when a process starts, it is the run before.
func (d *Detector) Wandb() []Attribute {
	f := facts{d: d}
	f.text(semconv.WandbEntity, "WANDB_ENTITY")
	f.text(semconv.WandbProject, "WANDB_PROJECT")
	f.text(semconv.WandbRunID, "WANDB_RUN_ID")
	have := make(map[string]string, 3)
	for _, a := range f.list {
		have[a.Key] = a.Text()
	}
	if have[semconv.WandbRunID] == "" || len(have) == 3 {
		return f.list
	}
	folder, source, ok := d.env("WANDB_DIR")
	if !ok {
		return f.list
	}
	folder = filepath.Join(folder, "wandb")
	if !filepath.IsAbs(folder) && d.system.Root != "" {
		d.refuse(source, "no absolute path")
		return f.list
	}
	for _, a := range d.wandbRun(folder, have[semconv.WandbRunID]) {
		if _, ok := have[a.Key]; !ok {
			f.list = append(f.list, a)
		}
	}
	return f.list
}

// wandbRun is the entity and project of the latest run in a folder, if it has that id.
func (d *Detector) wandbRun(folder, id string) []Attribute {
	root, err := d.open(folder)
	if err != nil {
		return nil
	}
	defer root.Close()
	latest, err := root.Readlink("latest-run")
	// run-20261129_173700-k3xq9a2b, or offline-run-…
	parts := strings.SplitN(strings.TrimPrefix(filepath.Base(latest), "offline-"), "-", 3)
	if err != nil || len(parts) != 3 || parts[0] != "run" || parts[2] != id {
		return nil
	}
	metadata := filepath.Join(latest, "files", "wandb-metadata.json")
	text, ok := d.read(folder, metadata)
	if !ok {
		return nil
	}
	f := facts{d: d}
	source := "file:" + filepath.Join(folder, metadata)
	var run struct{ Entity, Project string }
	if err := json.Unmarshal([]byte(text), &run); err != nil {
		d.refuse(source, "no JSON object")
		return nil
	}
	for _, value := range []struct{ key, text string }{{semconv.WandbEntity, run.Entity}, {semconv.WandbProject, run.Project}} {
		if v, ok := d.take(source, value.text); ok {
			f.add(value.key, v, source)
		}
	}
	return f.list
}
