// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/sdk/resource"
)

func runDoctor(t *testing.T, env map[string]string, args ...string) (string, error) {
	cmd := newDoctorCommand(resource.System{
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Hostname:  func() (string, error) { return "node-a", nil },
		Root:      t.TempDir(),
	})
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestDoctor(t *testing.T) {
	env := map[string]string{"NEMO_LENS_RUN_ID": "run-7f3a", "TORCHELASTIC_RESTART_COUNT": "1", "RANK": "3", "WORLD_SIZE": "8", "WANDB_PROJECT": "llm", "LOCAL_RANK": "x"}
	out, err := runDoctor(t, env)
	require.NoError(t, err)
	require.Equal(t, `nemo.run.id       run-7f3a                              env:NEMO_LENS_RUN_ID
nv.dl.run.uuid    `+resource.UUID5("nemo.lens.run/local/run-7f3a/te1")+`  uuid5
host.name         node-a                                hostname
nv.dl.rank        3                                     env:RANK
nv.dl.world_size  8                                     env:WORLD_SIZE
wandb.project     llm                                   env:WANDB_PROJECT
refused: env:LOCAL_RANK: no whole number
`, out)
}

func TestDoctorJSON(t *testing.T) {
	out, err := runDoctor(t, map[string]string{"SLURM_JOB_ID": "12345", "SLURM_CLUSTER_NAME": "cluster-a"}, "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"identity":[
		{"key":"nemo.run.id","value":"12345","source":"env:SLURM_JOB_ID"},
		{"key":"nv.dl.job.uuid","value":"be34ba0f-41ed-5d53-84c1-e3f3dd25bfd7","source":"uuid5"},
		{"key":"nv.dl.run.uuid","value":"1a280c0a-71d2-54bd-bd00-fa82efd94290","source":"uuid5"},
		{"key":"slurm.job.id","value":"12345","source":"env:SLURM_JOB_ID"},
		{"key":"slurm.job.id.raw","value":"12345","source":"env:SLURM_JOB_ID"},
		{"key":"slurm.array.job_id","value":"12345","source":"env:SLURM_JOB_ID"},
		{"key":"slurm.array.task_id","value":"0","source":"default"},
		{"key":"slurm.array.count","value":"1","source":"default"},
		{"key":"slurm.restart_count","value":"0","source":"default"},
		{"key":"slurm.cluster.name","value":"cluster-a","source":"env:SLURM_CLUSTER_NAME"},
		{"key":"host.name","value":"node-a","source":"hostname"}]}`, out)
}

func TestDoctorWithoutARunID(t *testing.T) {
	out, err := runDoctor(t, nil, "--json")
	require.ErrorIs(t, err, errNoRunID)
	require.JSONEq(t, `{"identity":[{"key":"host.name","value":"node-a","source":"hostname"}]}`, out)

	const token = "hf_aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3f"
	out, err = runDoctor(t, map[string]string{"NEMO_LENS_RUN_ID": token, "WANDB_API_KEY": "secret"})
	require.ErrorIs(t, err, errNoRunID)
	require.Equal(t, "host.name  node-a  hostname\nrefused: env:NEMO_LENS_RUN_ID: looks like a token\n", out)
}
