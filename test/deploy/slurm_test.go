// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/slurm/slurmtest"
)

// books sends one span after the other, and notes each that was acknowledged. It does not heed SIGTERM.
const books = `trap "" TERM
for ((i = 0; ; i++)); do
	$LENSCOL emit-spans --service books --attr number=$SLURM_PROCID.$i --span entry,1,2 2>/dev/null && echo $SLURM_PROCID.$i >>acknowledged
done`

// templates are the templates of deploy/slurm and a SLURM to run them.
type templates struct {
	*slurmtest.Cluster
	t   *testing.T
	dir string
	env []string
}

func newTemplates(t *testing.T) *templates {
	c := slurmtest.Start(t)
	dir := deployed(t, "slurm")
	return &templates{c, t, dir, []string{"LENSCOL=" + testbed.Binary(t), "LENSCOL_SLURM=" + dir}}
}

// train submits train.sbatch with a program of bash.
func (s *templates) train(program string, flags ...string) (job string) {
	args := append(append([]string{"--parsable", "--ntasks-per-node=1"}, flags...), filepath.Join(s.dir, "train.sbatch"), "bash", "-c", program)
	out, _ := s.Run(s.env, "sbatch", args...)
	return strings.TrimSpace(out)
}

// reckon submits reckon.sbatch to run after a job, and returns what it wrote to its log.
func (s *templates) reckon(job string) string {
	out, _ := s.Run(s.env, "sbatch", "--parsable", "--dependency=afterany:"+job, filepath.Join(s.dir, "reckon.sbatch"), job)
	reckon := strings.TrimSpace(out)
	s.InState(reckon, "COMPLETED")
	return s.read("reckon-" + reckon + ".log")
}

func (s *templates) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.Work, name))
	require.NoError(s.t, err)
	return string(text)
}

// traces are the files of a pattern of jobs, below lens-data.
func (s *templates) traces(jobs string) map[string][]map[string]any {
	files, err := filepath.Glob(filepath.Join(s.Work, "lens-data", jobs, "n*", "traces.jsonl"))
	require.NoError(s.t, err)
	require.NotEmpty(s.t, files)
	return slurmtest.Archived(s.t, files...)
}

// requireBalanced demands every acknowledged entry of the books in the job's archive, and returns how many there are.
func (s *templates) requireBalanced(job string) int {
	archived := map[any]bool{}
	for _, span := range s.traces(job)["entry"] {
		archived[attributesOf(span)["number"]] = true
	}
	acknowledged := strings.Fields(s.read("acknowledged"))
	for _, number := range acknowledged {
		require.True(s.t, archived[number], "entry %s was acknowledged and is not in the archive", number)
	}
	return len(acknowledged)
}

// noted waits until there are n entries in the books.
func (s *templates) noted(n int) {
	require.Eventually(s.t, func() bool {
		text, _ := os.ReadFile(filepath.Join(s.Work, "acknowledged"))
		return strings.Count(string(text), "\n") >= n
	}, time.Minute, 100*time.Millisecond, "entries in the books")
}

func TestSLURM(t *testing.T) {
	s := newTemplates(t)

	t.Run("jobs of an array share nodes", func(t *testing.T) {
		job := s.train(`touch started.$SLURM_JOB_ID.$SLURM_PROCID
until [[ $(ls started.* | wc -l) == 4 ]]; do sleep 0.1; done
echo $OTEL_EXPORTER_OTLP_ENDPOINT >>endpoints
exec $LENSCOL exec --name rank -- true`, "--array=0-1", "--nodelist=n1,n2")
		log := s.reckon(job)
		for _, task := range []string{"_0", "_1"} {
			require.Contains(t, log, "job "+job+task+"  train  COMPLETED  1 attempt\n")
		}
		s.InState(job, "COMPLETED")

		endpoints := map[string]bool{}
		for _, endpoint := range strings.Fields(s.read("endpoints")) {
			endpoints[endpoint] = true
		}
		require.Len(t, endpoints, 4, "a collector for each node of each job, at one time")
		jobs, err := filepath.Glob(filepath.Join(s.Work, "lens-data", "*", "agents"))
		require.NoError(t, err)
		require.Len(t, jobs, 2)
		ranks := map[string]bool{}
		for _, agents := range jobs {
			for _, span := range s.traces(filepath.Base(filepath.Dir(agents)))["rank"] {
				resource := resourceOf(span)
				require.Equal(t, job, resource["slurm.array.job_id"])
				require.Equal(t, fmt.Sprintf("%s_%v", job, resource["slurm.array.task_id"]), resource["slurm.job.id"])
				require.Equal(t, resource["slurm.job.id.raw"], span["run"], "one of the array's tasks has the array's own id, the other one more")
				require.Equal(t, span["run"], filepath.Base(filepath.Dir(agents)), "in its own job's archive")
				ranks[fmt.Sprintf("rank %v of %s", span["rank"], resource["slurm.job.id"])] = true
			}
		}
		require.Equal(t, map[string]bool{"rank 0 of " + job + "_0": true, "rank 1 of " + job + "_0": true, "rank 0 of " + job + "_1": true, "rank 1 of " + job + "_1": true}, ranks)
		logs, err := filepath.Glob(filepath.Join(s.Work, "lens-data", "*", "agents", "*"))
		require.NoError(t, err)
		require.Len(t, logs, 4, "logs alone: a collector that has drained removes its port file")
		for _, log := range logs {
			text, err := os.ReadFile(log)
			require.NoError(t, err)
			require.Contains(t, string(text), "Shutdown complete")
		}
		accounting := slurmtest.Archived(t, filepath.Join(s.Work, "lens-data", "slurm-"+job+".jsonl"))
		require.Len(t, accounting["slurm.job"], 2)
	})

	t.Run("a request to end reaches the ranks first", func(t *testing.T) {
		job := s.train(`trap 'kill $!; sleep 1; exec $LENSCOL exec --name last -- true' TERM
touch armed.$SLURM_PROCID; sleep 600 & wait`)
		require.Eventually(t, func() bool {
			armed, _ := filepath.Glob(filepath.Join(s.Work, "armed.*"))
			return len(armed) == 2
		}, time.Minute, 100*time.Millisecond)
		s.Run(nil, "scancel", "--batch", "--signal=TERM", job)
		s.InState(job, "COMPLETED")
		require.Len(t, s.traces(job)["last"], 2, "the collectors outlive the ranks")
	})

	t.Run("a step is killed", func(t *testing.T) {
		job := s.train("$LENSCOL exec --name open -- sleep 600 &\n" + books)
		s.noted(6)
		time.Sleep(2 * time.Second) // The accounting counts whole seconds, and a step that began and ended in the same one is a record, no span.
		s.Run(nil, "scancel", "--signal=KILL", s.step(job, "rank.sh"))
		s.InState(job, "FAILED")
		require.GreaterOrEqual(t, s.requireBalanced(job), 6)
		require.NoError(t, os.Remove(filepath.Join(s.Work, "acknowledged")))

		// A span that a rank had open died with it. The accounting knows of the step, and how it ended.
		require.Empty(t, s.traces(job)["open"])
		s.reckon(job)
		steps := slurmtest.Archived(t, filepath.Join(s.Work, "lens-data", "slurm-"+job+".jsonl"))["slurm.step"]
		i := slices.IndexFunc(steps, func(step map[string]any) bool { return attributesOf(step)["slurm.step.name"] == "rank.sh" })
		require.GreaterOrEqual(t, i, 0, steps)
		require.Equal(t, []any{"CANCELLED", "0:9"}, []any{attributesOf(steps[i])["slurm.state"], attributesOf(steps[i])["slurm.exit_code"]})
		require.Equal(t, job, steps[i]["run"])
	})

	t.Run("a requeue", func(t *testing.T) {
		job := s.train("[[ $SLURM_RESTART_COUNT ]] && exec $LENSCOL exec --name again -- true\n"+books, "--requeue")
		s.noted(6)
		s.Run(nil, "scontrol", "requeue", job)
		s.InState(job, "PENDING")
		s.Run(nil, "scontrol", "update", "JobId="+job, "StartTime=now") // SLURM would wait for two minutes.
		s.InState(job, "COMPLETED")
		require.Contains(t, s.reckon(job), "job "+job+"  train  COMPLETED  2 attempts\n")
		require.GreaterOrEqual(t, s.requireBalanced(job), 6, "the second attempt leaves the archive of the first")
		require.NoError(t, os.Remove(filepath.Join(s.Work, "acknowledged")))
		spans := s.traces(job)
		require.Len(t, spans["again"], 2)
		first, second := resourceOf(spans["entry"][0]), resourceOf(spans["again"][0])
		require.Equal(t, []any{job, float64(0)}, []any{first["slurm.job.id"], first["slurm.restart_count"]})
		require.Equal(t, []any{job, float64(1)}, []any{second["slurm.job.id"], second["slurm.restart_count"]})
		require.NotEqual(t, first["nv.dl.run.uuid"], second["nv.dl.run.uuid"], "an attempt is told from the other")
		require.Equal(t, spans["entry"][0]["run"], spans["again"][0]["run"])
	})

	t.Run("without a collector", func(t *testing.T) {
		env := s.env
		s.env = append(slices.Clip(env), "LENSCOL_CONFIG=/nowhere.yaml", "LENSCOL_WAIT=1s")
		job := s.train("touch alone.$SLURM_PROCID")
		s.env = env
		s.InState(job, "COMPLETED")
		require.FileExists(t, filepath.Join(s.Work, "alone.1"))
		log := s.read("train-" + job + ".log")
		require.Contains(t, log, "rank.sh: no collector on n1: the program runs without")
		require.Contains(t, log, "run.sh: a collector did not end well, see "+filepath.Join(s.Work, "lens-data", job, "agents"))
	})

	t.Run("scancel", func(t *testing.T) {
		job := s.train(books)
		s.noted(20)
		s.Run(nil, "scancel", job)
		require.Contains(t, s.reckon(job), "job "+job+"  train  CANCELLED by 0  1 attempt\n")
		t.Logf("%d entries acknowledged, none lost", s.requireBalanced(job))
	})
}

func attributesOf(span map[string]any) map[string]any {
	attributes, _ := span["attributes"].(map[string]any)
	return attributes
}

func resourceOf(span map[string]any) map[string]any {
	return attributesOf(span["resource"].(map[string]any))
}

// step is the id of a job's step that runs, by its name.
func (s *templates) step(job, name string) string {
	out, _ := s.Run(nil, "squeue", "--noheader", "--steps", "--jobs="+job, "--format=%i %j")
	for line := range strings.Lines(out) {
		if id, is, _ := strings.Cut(strings.TrimSpace(line), " "); is == name {
			return id
		}
	}
	s.t.Fatalf("job %s has no step %s: %s", job, name, out)
	return ""
}
