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

// Wandb is the W&B target: WANDB_ENTITY, WANDB_PROJECT and WANDB_RUN_ID. What they leave open comes, where WANDB_DIR is set, from
// the latest run's folder there: the run id from its name run-<date>_<time>-<id>, entity and project from
// its files/wandb-metadata.json, where that names them.
func (d *Detector) Wandb() []Attribute {
	f := facts{d: d}
	f.text(semconv.WandbEntity, "WANDB_ENTITY")
	f.text(semconv.WandbProject, "WANDB_PROJECT")
	f.text(semconv.WandbRunID, "WANDB_RUN_ID")
	have := make(map[string]bool, 3)
	for _, a := range f.list {
		have[a.Key] = true
	}
	if len(have) == 3 {
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
	found := d.wandbRun(folder)
	for _, a := range found {
		if !have[a.Key] {
			f.list = append(f.list, a)
		}
	}
	return f.list
}

func (d *Detector) wandbRun(folder string) []Attribute {
	f := facts{d: d}
	const metadata = "latest-run/files/wandb-metadata.json"
	text, ok := d.read(folder, metadata)
	if !ok {
		return nil
	}
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
	root, err := d.open(folder)
	if err != nil {
		return f.list
	}
	defer root.Close()
	if target, err := root.Readlink("latest-run"); err == nil {
		// run-20261129_173700-k3xq9a2b, or offline-run-…
		if parts := strings.SplitN(strings.TrimPrefix(filepath.Base(target), "offline-"), "-", 3); len(parts) == 3 && parts[0] == "run" {
			source = "file:" + filepath.Join(folder, "latest-run")
			if id, ok := d.take(source, parts[2]); ok {
				f.add(semconv.WandbRunID, id, source)
			}
		}
	}
	return f.list
}
