// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package slurm tests the commands for launch scripts, and of SLURM's accounting, against a real SLURM of four nodes.
package slurm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/slurm/slurmtest"
)

// A batch script publishes the job's facts, its tasks run inside spans, one of them is killed by a signal, and the accounting follows.
func TestJob(t *testing.T) {
	c := slurmtest.Start(t)
	lenscol := testbed.Binary(t)
	collector := testbed.Start(t, testbed.Options{})
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + collector.GRPC, "LENSCOL=" + lenscol}
	job := c.Submit(env, `
eval "$($LENSCOL set-slurm-resource-attrs --stage sbatch)"
echo "$OTEL_RESOURCE_ATTRIBUTES"
srun --job-name=train bash -c 'eval "$($LENSCOL set-slurm-resource-attrs --stage task --container-image img:1)"; exec $LENSCOL exec --name rank -- sleep 1'
srun -n1 --job-name=killed $LENSCOL exec --name killed -- sleep 100 &
sleep 2
scancel --signal=TERM $SLURM_JOB_ID.1
wait
$LENSCOL emit-spans --service launcher --span script,$SECONDS,$(date +%s)
`, "--job-name", "it's a job", "-N2", "-n4")
	c.InState(job, "COMPLETED")
	out, stderr := c.Run(env, lenscol, "reckon", "--job", job)
	require.Contains(t, out, "job "+job+"  it's a job  COMPLETED  1 attempt\n")
	require.Contains(t, stderr, "spans sent to")
	collector.Stop()

	spans := slurmtest.Archived(t, filepath.Join(collector.Dir, "lens-data", "traces.jsonl"))
	require.Len(t, spans["rank"], 4)
	ranks := map[float64]bool{}
	for _, span := range spans["rank"] {
		ranks[span["rank"].(float64)] = true
		require.Equal(t, job, span["run"])
		resource := span["resource"].(map[string]any)["attributes"].(map[string]any)
		require.Equal(t, "img:1", resource["nv.dl.launch.container.image"])
		require.Equal(t, "it's a job", resource["slurm.job.name"])
		require.Equal(t, job, resource["slurm.job.id"])
	}
	require.Equal(t, map[float64]bool{0: true, 1: true, 2: true, 3: true}, ranks)
	require.Len(t, spans["killed"], 1)
	require.Equal(t, "ERROR", spans["killed"][0]["status"])
	require.Equal(t, "SIGTERM", spans["killed"][0]["attributes"].(map[string]any)["process.exit.signal"])
	require.Len(t, spans["script"], 1)
	require.Len(t, spans["slurm.job"], 1)
	require.Equal(t, job, spans["slurm.job"][0]["run"], "the spans of the accounting are on the ranks' run")
	require.Len(t, spans["slurm.step"], 2)
}

// Jobs of every kind, as the accounting has them: the table's buckets are the wall time, and what is sent once is sent again with the same ids.
func TestReckon(t *testing.T) {
	c := slurmtest.Start(t)
	lenscol := testbed.Binary(t)
	array := c.Submit(nil, "srun sleep 1\n", "--array=0-2%2", "-n1")
	failed := c.Submit(nil, "srun bash -c 'exit 3'\n", "-n1")
	requeued := c.Submit(nil, "srun sleep $((SLURM_RESTART_COUNT > 0 ? 1 : 600))\n", "-n1", "--requeue")
	het := c.Submit(nil, "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n1\nsrun --het-group=0,1 sleep 1\n")
	never := c.Submit(nil, "true\n", "-n1", "--begin=now+3600")
	c.Run(nil, "scancel", never)
	c.InState(requeued, "RUNNING")

	_, stderr := c.Run(nil, lenscol, "reckon", "--job", requeued, "--dry-run")
	require.Contains(t, stderr, "not over yet: 1 attempt")
	c.Run(nil, "scontrol", "requeue", requeued)
	c.InState(array, "COMPLETED")
	c.InState(failed, "FAILED")
	c.InState(het, "COMPLETED")
	c.InState(requeued, "PENDING")
	c.Run(nil, "scancel", requeued) // SLURM waits two minutes before it starts a requeued job again.
	time.Sleep(time.Second)

	out, _ := c.Run(nil, lenscol, "reckon", "--job", strings.Join([]string{array, failed, requeued, het, never}, ","), "--dry-run", "--json")
	var got struct {
		Jobs []struct {
			Job      string
			State    string
			Attempts int
			Wall     float64 `json:"wall_seconds"`
			Buckets  map[string]float64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	attempts := map[string]int{}
	for _, job := range got.Jobs {
		attempts[job.Job] = job.Attempts
		sum := 0.0
		for _, seconds := range job.Buckets {
			sum += seconds
		}
		require.InDelta(t, job.Wall, sum, 1e-6, job.Job)
	}
	require.Equal(t, map[string]int{
		array + "_0": 1, array + "_1": 1, array + "_2": 1, failed: 1, requeued: 2, het + "+0": 1, het + "+1": 1, never: 1,
	}, attempts)

	for _, name := range []string{"one.jsonl", "two.jsonl"} {
		c.Run(nil, lenscol, "reckon", "--job", requeued, "-o", name)
	}
	one, err := os.ReadFile(filepath.Join(c.Work, "one.jsonl"))
	require.NoError(t, err)
	two, err := os.ReadFile(filepath.Join(c.Work, "two.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, one)
	require.Equal(t, string(one), string(two))
}
