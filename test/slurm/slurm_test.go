// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package slurm tests the commands for launch scripts, and of SLURM's accounting, against a real SLURM of four nodes.
package slurm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// cluster is a SLURM that runs.
type cluster struct {
	t    *testing.T
	conf string
	work string // folder of job scripts and of what they print
}

func start(t *testing.T) *cluster {
	if os.Getuid() != 0 {
		t.Skip("starts SLURM, which needs root")
	}
	for _, tool := range []string{"slurmctld", "slurmdbd", "munged", "mariadbd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs Debian's slurm-wlm, slurmdbd, munge and mariadb-server: " + err.Error())
		}
	}
	base, err := os.MkdirTemp("", "lenscol-slurm-") // Short, and open to munge and MariaDB: sockets lie in it.
	require.NoError(t, err)
	require.NoError(t, os.Chmod(base, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	dir := filepath.Join(base, "s")
	t.Cleanup(func() {
		out, err := exec.Command("./slurm.sh", "stop", dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	out, err := exec.CommandContext(t.Context(), "./slurm.sh", "start", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return &cluster{t, filepath.Join(dir, "slurm.conf"), base}
}

func (c *cluster) run(env []string, name string, args ...string) (stdout, stderr string) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Env = append(append(os.Environ(), "SLURM_CONF="+c.conf), env...)
	cmd.Dir = c.work
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	require.NoError(c.t, cmd.Run(), "%s %s: %s", name, args, &errOut)
	return out.String(), errOut.String()
}

// submit submits a job script.
func (c *cluster) submit(env []string, script string, flags ...string) (job string) {
	path := filepath.Join(c.work, "job.sh")
	require.NoError(c.t, os.WriteFile(path, []byte("#!/bin/bash\n"+script), 0o700))
	out, _ := c.run(env, "sbatch", append(append([]string{"--parsable"}, flags...), path)...)
	return strings.TrimSpace(out)
}

// inState waits until the accounting says so of all rows of a job's allocations.
func (c *cluster) inState(job, state string) {
	c.t.Helper()
	var out string
	require.Eventually(c.t, func() bool {
		out, _ = c.run(nil, "sacct", "-n", "-P", "-X", "-j", job, "-o", "State")
		states := strings.Fields(out)
		for _, s := range states {
			if s != state {
				return false
			}
		}
		return len(states) > 0
	}, 5*time.Minute, 200*time.Millisecond, "job %s is %s", job, &out)
}

// archived are the spans that a collector has written, by name; it must have stopped.
func archived(t *testing.T, c *testbed.Collector) map[string][]map[string]any {
	out, err := exec.CommandContext(t.Context(), testbed.Binary(t), "jsonl", "cat", filepath.Join(c.Dir, "lens-data", "traces.jsonl")).Output()
	require.NoError(t, err)
	spans := map[string][]map[string]any{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var span map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &span))
		if name, ok := span["name"].(string); ok {
			spans[name] = append(spans[name], span)
		}
	}
	require.NoError(t, lines.Err())
	return spans
}

// A batch script publishes the job's facts, its tasks run inside spans, one of them is killed by a signal, and the accounting follows.
func TestJob(t *testing.T) {
	c := start(t)
	lenscol := testbed.Binary(t)
	collector := testbed.Start(t, testbed.Options{})
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + collector.GRPC, "LENSCOL=" + lenscol}
	job := c.submit(env, `
eval "$($LENSCOL set-slurm-resource-attrs --stage sbatch)"
echo "$OTEL_RESOURCE_ATTRIBUTES"
srun --job-name=train bash -c 'eval "$($LENSCOL set-slurm-resource-attrs --stage task --container-image img:1)"; exec $LENSCOL exec --name rank -- sleep 1'
srun -n1 --job-name=killed $LENSCOL exec --name killed -- sleep 100 &
sleep 2
scancel --signal=TERM $SLURM_JOB_ID.1
wait
$LENSCOL emit-spans --service launcher --span script,$SECONDS,$(date +%s)
`, "--job-name", "it's a job", "-N2", "-n4")
	c.inState(job, "COMPLETED")
	out, stderr := c.run(env, lenscol, "reckon", "--job", job)
	require.Contains(t, out, "job "+job+"  it's a job  COMPLETED  1 attempt\n")
	require.Contains(t, stderr, "spans sent to")
	collector.Stop()

	spans := archived(t, collector)
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
	c := start(t)
	lenscol := testbed.Binary(t)
	array := c.submit(nil, "srun sleep 1\n", "--array=0-2%2", "-n1")
	failed := c.submit(nil, "srun bash -c 'exit 3'\n", "-n1")
	requeued := c.submit(nil, "srun sleep $((SLURM_RESTART_COUNT > 0 ? 1 : 600))\n", "-n1", "--requeue")
	het := c.submit(nil, "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n1\nsrun --het-group=0,1 sleep 1\n")
	never := c.submit(nil, "true\n", "-n1", "--begin=now+3600")
	c.run(nil, "scancel", never)
	c.inState(requeued, "RUNNING")

	_, stderr := c.run(nil, lenscol, "reckon", "--job", requeued, "--dry-run")
	require.Contains(t, stderr, "not over yet: 1 attempt")
	c.run(nil, "scontrol", "requeue", requeued)
	c.inState(array, "COMPLETED")
	c.inState(failed, "FAILED")
	c.inState(het, "COMPLETED")
	c.inState(requeued, "PENDING")
	c.run(nil, "scancel", requeued) // SLURM waits two minutes before it starts a requeued job again.
	time.Sleep(time.Second)

	out, _ := c.run(nil, lenscol, "reckon", "--job", strings.Join([]string{array, failed, requeued, het, never}, ","), "--dry-run", "--json")
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
		c.run(nil, lenscol, "reckon", "--job", requeued, "-o", name)
	}
	one, err := os.ReadFile(filepath.Join(c.work, "one.jsonl"))
	require.NoError(t, err)
	two, err := os.ReadFile(filepath.Join(c.work, "two.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, one)
	require.Equal(t, string(one), string(two))
}
