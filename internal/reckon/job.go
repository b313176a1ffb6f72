// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package reckon // import "github.com/lenscol/lenscol/internal/reckon"

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Job is one job: a task of an array and a part of a heterogeneous job are jobs of their own.
type Job struct {
	ID       string // 5, 2_0, 7+1
	RawID    string
	Name     string
	Cluster  string
	Attempts []Attempt // in the order of their submission
}

// Attempt is one run of a job: a requeued job has several.
type Attempt struct {
	Number     int // from 1
	Allocation Row
	Steps      []Step // by start
}

// Step is a row below an allocation.
type Step struct {
	Row
	Type  string // batch, extern or step
	Infra bool   // it serves the job, as a collector does, and does none of its work
}

// DefaultInfra are names of steps that do none of a job's work (NeMo Lens's, and ours).
var DefaultInfra = []string{"otelcol-contrib", "otelcol", "lenscol"}

// Jobs puts rows together. infra are the names of steps that do none of the job's work.
func Jobs(rows []Row, infra []string) []Job {
	var jobs []Job
	at := map[string]int{} // by raw id
	for _, row := range rows {
		raw, step, isStep := strings.Cut(row.Raw, ".")
		i, there := at[raw]
		if !there {
			i = len(jobs)
			at[raw] = i
			id, _, _ := strings.Cut(row.JobID, ".")
			jobs = append(jobs, Job{ID: id, RawID: raw, Cluster: row.Cluster})
		}
		job := &jobs[i]
		if !isStep {
			job.Name = row.Name
			if known(row.NodeList) == "" {
				row.Start = time.Time{} // It never had nodes; SLURM writes the end of the waiting there.
			}
			job.Attempts = append(job.Attempts, Attempt{Allocation: row})
			continue
		}
		if attempt := job.attemptOf(row); attempt != nil {
			kind := "step"
			if step == "batch" || step == "extern" {
				kind = step
			}
			attempt.Steps = append(attempt.Steps, Step{row, kind, kind == "step" && slices.Contains(infra, row.Name)})
		}
	}
	jobs = slices.DeleteFunc(jobs, func(j Job) bool { return len(j.Attempts) == 0 })
	for i := range jobs {
		attempts := jobs[i].Attempts
		slices.SortStableFunc(attempts, func(a, b Attempt) int {
			return cmp.Or(a.Allocation.Submit.Compare(b.Allocation.Submit), compareKnown(a.Allocation.Start, b.Allocation.Start))
		})
		for j := range attempts {
			attempts[j].Number = j + 1
			slices.SortStableFunc(attempts[j].Steps, func(a, b Step) int { return a.Start.Compare(b.Start) })
		}
	}
	return jobs
}

// attemptOf finds the attempt of a step: the one whose key it has, else the last, for sacct prints steps below their allocation.
func (j *Job) attemptOf(step Row) *Attempt {
	for i := range slices.Backward(j.Attempts) {
		if step.Attempt == j.Attempts[i].Allocation.Attempt {
			return &j.Attempts[i]
		}
	}
	if n := len(j.Attempts); n > 0 && step.Attempt == "" {
		return &j.Attempts[n-1]
	}
	return nil
}

// compareKnown orders an unknown time behind all others.
func compareKnown(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// Ended reports whether the attempt is over, with all of its steps.
func (a *Attempt) Ended() bool { return !a.Allocation.End.IsZero() }

// lastEnd is the latest end of the allocation and its steps: a step may be cleaned up after its allocation has ended.
func (a *Attempt) lastEnd() time.Time {
	last := a.Allocation.End
	for _, s := range a.Steps {
		if s.End.After(last) {
			last = s.End
		}
	}
	return last
}

// waiting is when the attempt became eligible, and when it started or gave up. A job that is cancelled before it is eligible
// keeps that time of the future.
func (a *Attempt) waiting() (eligible, over time.Time) {
	eligible, over = a.Allocation.Eligible, a.Allocation.Start
	if over.IsZero() {
		over = a.Allocation.End
	}
	if eligible.IsZero() {
		eligible = a.Allocation.Submit
	}
	if eligible.After(over) {
		eligible = over
	}
	return eligible, over
}

// work are the steps that do the job's work and are over.
func (a *Attempt) work() (steps []Step) {
	for _, s := range a.Steps {
		if s.Type == "step" && !s.Infra && !s.Start.IsZero() && !s.End.IsZero() {
			steps = append(steps, s)
		}
	}
	return steps
}

// restarts is how often the job was restarted before the attempt.
func (a *Attempt) restarts() int {
	if a.Allocation.Restarts >= 0 {
		return a.Allocation.Restarts
	}
	return a.Number - 1
}
