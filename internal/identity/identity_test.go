// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/sdk/rank"
)

func attrs(t testing.TB, raw map[string]any) pcommon.Map {
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(raw))
	return m
}

func TestOf(t *testing.T) {
	known := func(r, world, local int) Identity {
		return Identity{Identity: rank.Identity{Rank: r, WorldSize: world, LocalRank: local}, HasRank: true}
	}
	none := Identity{Identity: rank.Identity{WorldSize: rank.Unknown, LocalRank: rank.Unknown}}
	disagrees := known(3, rank.Unknown, rank.Unknown)
	disagrees.Disagrees = true
	tests := []struct {
		name string
		raw  map[string]any
		want Identity
	}{
		{"no attributes", nil, none},
		{"new names", map[string]any{"nv.dl.rank": 3, "nv.dl.world_size": 8, "nv.dl.local_rank": 1}, known(3, 8, 1)},
		{"old names", map[string]any{"dl.rank": 3, "dl.world_size": 8, "dl.local_rank": 1}, known(3, 8, 1)},
		{"the new name wins", map[string]any{"nv.dl.rank": 3, "dl.rank": 4}, disagrees},
		{"two that agree, one as text", map[string]any{"nv.dl.rank": 3, "dl.rank": "3"}, known(3, rank.Unknown, rank.Unknown)},
		{"instance id", map[string]any{"service.instance.id": "run-rank12"}, known(12, rank.Unknown, rank.Unknown)},
		{"an attribute beats the instance id, without a disagreement", map[string]any{"service.instance.id": "run-rank12", "dl.rank": 1}, known(1, rank.Unknown, rank.Unknown)},
		{"as text", map[string]any{"nv.dl.rank": "3", "nv.dl.world_size": "8"}, known(3, 8, rank.Unknown)},
		{"negative", map[string]any{"nv.dl.rank": -1}, none},
		{"negative text", map[string]any{"nv.dl.rank": "-1"}, none},
		{"fractional", map[string]any{"nv.dl.rank": 3.0}, none},
		{"fractional text", map[string]any{"nv.dl.rank": "3.0"}, none},
		{"the highest", map[string]any{"nv.dl.rank": math.MaxInt32}, known(math.MaxInt32, rank.Unknown, rank.Unknown)},
		{"beyond 2^31", map[string]any{"nv.dl.rank": math.MaxInt32 + 1}, none},
		{"true", map[string]any{"nv.dl.rank": true}, none},
		{"what cannot be read gives way to the next name", map[string]any{"nv.dl.rank": "x", "dl.rank": 4}, known(4, rank.Unknown, rank.Unknown)},
		{"an instance id that is no text", map[string]any{"service.instance.id": 3}, none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := attrs(t, tt.raw)
			require.Equal(t, tt.want, Of(m))
			n, ok := Rank(m)
			require.Equal(t, tt.want.HasRank, ok)
			require.Equal(t, tt.want.Rank, n)
		})
	}
}

func TestRun(t *testing.T) {
	tests := []struct {
		name string
		raw  map[string]any
		want string
	}{
		{"nothing", nil, ""},
		{"run id first", map[string]any{"nemo.run.id": "r", "nv.dl.run.uuid": "u", "nv.dl.job.uuid": "j", "slurm.job.id": "1"}, "r"},
		{"an empty one is none", map[string]any{"nemo.run.id": "", "nv.dl.run.uuid": "u", "nv.dl.job.uuid": "j"}, "u"},
		{"run under its old name", map[string]any{"nemo.lens.run_uuid": "u", "nv.dl.job.uuid": "j"}, "u"},
		{"run under both names", map[string]any{"nemo.lens.run_uuid": "old", "nv.dl.run.uuid": "new"}, "new"},
		{"job under its old name", map[string]any{"nemo.lens.job_uuid": "j", "slurm.job.id": "1"}, "j"},
		{"job under both names", map[string]any{"nemo.lens.job_uuid": "old", "nv.dl.job.uuid": "new"}, "new"},
		{"job", map[string]any{"nv.dl.job.uuid": "j", "slurm.job.id": "1"}, "j"},
		{"slurm", map[string]any{"slurm.job.id": 17}, "17"},
		{"array task", map[string]any{"slurm.job.id": "18", "slurm.array.job_id": "17", "slurm.array.task_id": "6"}, "17_6"},
		{"array task as newer ones write it", map[string]any{"slurm.job.id": "17_6", "slurm.array.job_id": "17", "slurm.array.task_id": "6"}, "17_6"},
		{"job that is no array", map[string]any{"slurm.job.id": "17", "slurm.array.job_id": "17", "slurm.array.task_id": "0"}, "17"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, Run(attrs(t, tt.raw))) })
	}
}

func BenchmarkOf(b *testing.B) {
	m := attrs(b, map[string]any{
		"service.name": "megatron", "service.version": "0.2.0", "dl.rank": 3, "dl.world_size": 1024, "nemo.run.id": "r",
		"service.instance.id": "r-rank3", "host.name": "n1", "process.pid": 17, "slurm.job.id": "1", "slurm.nnodes": "128",
		"slurm.job.name": "pretrain", "slurm.partition": "batch", "telemetry.sdk.name": "opentelemetry",
	})
	b.ReportAllocs()
	for b.Loop() {
		Of(m)
	}
}
