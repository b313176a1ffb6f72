// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package broadcast says which process of which job a transport of [lens.Broadcast] stands in. The transports are in folders
// below:
//
//	tcp     the source listens at an address that all know
//	folder  files in a folder that all share
//	rpc     a gRPC service beside others, with their TLS and authentication
//
// With each, the source returns when all ranks have what it sent. A rank may come late, and a job that is started
// again under the same name never gets what an earlier one left behind.
//
// [lens.Broadcast]: https://pkg.go.dev/github.com/lenscol/lenscol/sdk#Broadcast
package broadcast // import "github.com/lenscol/lenscol/sdk/broadcast"

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lenscol/lenscol/sdk/resource"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// Member is a process of a job.
type Member struct {
	Job       string // the job and its attempt: the same text on all ranks, another one for every other job
	Rank      int    // 0 ≤ Rank < WorldSize
	WorldSize int    // number of ranks, at most MaxWorldSize
}

// MaxWorldSize bounds what a source keeps of its ranks.
const MaxWorldSize = 1 << 20

// FromEnv is this process as torchrun (RANK, WORLD_SIZE) or srun (SLURM_PROCID, SLURM_NTASKS) describes it. The job is what
// resource.RunID finds, with the attempt: TORCHELASTIC_RESTART_COUNT, SLURM_RESTART_COUNT, and of srun SLURM_STEP_ID.
func FromEnv() (Member, error) { return fromSystem(resource.System{}) }

func fromSystem(system resource.System) (Member, error) {
	d := resource.New(system)
	m := Member{Rank: -1, WorldSize: -1}
	isStep := false // the ranks are those of a step of SLURM
	for _, a := range d.Torch() {
		switch n, _ := a.Value.(int64); a.Key {
		case semconv.DLRank:
			m.Rank, isStep = clamp(n), a.Source == "env:SLURM_PROCID"
		case semconv.DLWorldSize:
			m.WorldSize = clamp(n)
		}
	}
	if m.Rank < 0 || m.WorldSize < 0 {
		return Member{}, errors.New("no rank and world size in the environment: set RANK and WORLD_SIZE, or SLURM_PROCID and SLURM_NTASKS")
	}
	var parts []string
	run, _ := d.RunID(resource.DefaultRunID...)
	if text := run.Text(); text != "" {
		parts = append(parts, text)
	}
	for _, a := range append(d.IDs(run.Text()), d.SLURM()...) {
		if a.Key == semconv.DLRunUUID || a.Key == semconv.SlurmRestartCount {
			parts = append(parts, a.Text())
		}
	}
	if step, ok := d.RunID("env:SLURM_STEP_ID"); ok && isStep && len(parts) > 0 {
		parts = append(parts, "step"+step.Text())
	}
	if m.Job = strings.Join(parts, "/"); m.Job == "" {
		return Member{}, errors.New("no job in the environment: set NEMO_LENS_RUN_ID, the same on all ranks")
	}
	return m, m.Validate()
}

// ValidateSource reports a source that is no rank of the world.
func (m Member) ValidateSource(source int) error {
	if source < 0 || source >= m.WorldSize {
		return fmt.Errorf("source %d: must be a rank, 0 to %d", source, m.WorldSize-1)
	}
	return nil
}

// clamp brings a number from elsewhere into int, beyond what Validate takes.
func clamp(n int64) int { return int(min(n, MaxWorldSize+1)) }

// Validate reports the first field that cannot be.
func (m Member) Validate() error {
	switch {
	case m.Job == "":
		return errors.New("job is empty: it must be a text that all ranks of the job have and no other job has")
	case m.WorldSize < 1 || m.WorldSize > MaxWorldSize:
		return fmt.Errorf("world size %d: must be 1 to %d", m.WorldSize, MaxWorldSize)
	case m.Rank < 0 || m.Rank >= m.WorldSize:
		return fmt.Errorf("rank %d: must be 0 to %d, one less than the world size", m.Rank, m.WorldSize-1)
	}
	return nil
}
