// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package broadcast

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/sdk/resource"
)

func system(env map[string]string) resource.System {
	return resource.System{LookupEnv: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}
}

func TestFromEnv(t *testing.T) {
	for _, c := range []struct {
		name  string
		env   map[string]string
		rank  int
		world int
	}{
		{"torchrun", map[string]string{"RANK": "3", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "abc"}, 3, 8},
		{"srun", map[string]string{"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "77"}, 1, 2},
		{"a run id of the launcher", map[string]string{"RANK": "0", "WORLD_SIZE": "1", "NEMO_LENS_RUN_ID": "run-7f3a"}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := fromSystem(system(c.env))
			require.NoError(t, err)
			require.Equal(t, c.rank, m.Rank)
			require.Equal(t, c.world, m.WorldSize)
			require.NotEmpty(t, m.Job)
		})
	}
}

func TestFromEnvOfThisProcess(t *testing.T) {
	for name, value := range map[string]string{"RANK": "2", "WORLD_SIZE": "4", "NEMO_LENS_RUN_ID": "mine"} {
		t.Setenv(name, value)
	}
	m, err := FromEnv()
	require.NoError(t, err)
	require.Equal(t, 2, m.Rank)
}

// The job's text is the same on all ranks of an attempt, and another one for all else.
func TestJobOfAnAttempt(t *testing.T) {
	base := map[string]string{"RANK": "0", "WORLD_SIZE": "4", "SLURM_JOB_ID": "77", "SLURM_RESTART_COUNT": "1", "TORCHELASTIC_RUN_ID": "abc", "TORCHELASTIC_RESTART_COUNT": "2"}
	job := func(change map[string]string) string {
		env := map[string]string{}
		for _, from := range []map[string]string{base, change} {
			for name, value := range from {
				env[name] = value
			}
		}
		m, err := fromSystem(system(env))
		require.NoError(t, err)
		return m.Job
	}
	want := job(nil)
	for _, same := range []map[string]string{{"RANK": "3"}, {"SLURM_PROCID": "3"}, {"LOCAL_RANK": "1"}} {
		require.Equal(t, want, job(same), same)
	}
	for _, other := range []map[string]string{
		{"SLURM_JOB_ID": "78"},
		{"SLURM_RESTART_COUNT": "2"},
		{"TORCHELASTIC_RESTART_COUNT": "3"},
		{"NEMO_LENS_RUN_ID": "x"},
	} {
		require.NotEqual(t, want, job(other), other)
	}
	task := map[string]string{"SLURM_ARRAY_JOB_ID": "70", "SLURM_ARRAY_TASK_ID": "1"}
	first := job(task)
	task["SLURM_RESTART_COUNT"] = "2"
	require.NotEqual(t, first, job(task), "a restart of an array's task, which its uuid does not show")
}

// The ranks of srun are those of a step, of which a job may run several at once and has one after the other.
func TestJobOfAStep(t *testing.T) {
	job := func(more ...string) string {
		env := map[string]string{"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"}
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		m, err := fromSystem(system(env))
		require.NoError(t, err)
		return m.Job
	}
	require.Equal(t, job(), job("SLURM_PROCID", "2"))
	require.NotEqual(t, job(), job("SLURM_STEP_ID", "1"))
	require.Equal(t, job("RANK", "1", "WORLD_SIZE", "4"), job("RANK", "2", "WORLD_SIZE", "4", "SLURM_STEP_ID", "1"),
		"torchrun may have been started by a step a node")
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		env        map[string]string
	}{
		{"nothing", "no rank and world size in the environment: set RANK and WORLD_SIZE", nil},
		{"no world size", "no rank and world size", map[string]string{"RANK": "0", "SLURM_NTASKS": "4"}},
		{"no job", "no job in the environment: set NEMO_LENS_RUN_ID", map[string]string{"RANK": "0", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}},
		{"rank beyond the world", "rank 4: must be 0 to 3", map[string]string{"RANK": "4", "WORLD_SIZE": "4", "SLURM_JOB_ID": "7"}},
		{"no world", "world size 0: must be 1 to", map[string]string{"RANK": "0", "WORLD_SIZE": "0", "SLURM_JOB_ID": "7"}},
		{"a world without end", "world size 1048577: must be 1 to 1048576", map[string]string{"RANK": "0", "WORLD_SIZE": "9223372036854775807", "SLURM_JOB_ID": "7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := fromSystem(system(c.env))
			require.ErrorContains(t, err, c.want)
		})
	}
	require.ErrorContains(t, Member{WorldSize: 1}.Validate(), "job is empty")
	require.ErrorContains(t, Member{Job: "j", Rank: -1, WorldSize: 1}.Validate(), "rank -1")
}
