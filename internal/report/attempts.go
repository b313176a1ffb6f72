// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"cmp"
	"math"
	"slices"
)

// Attempt is one life of all ranks of a run.
type Attempt struct {
	Number      int    `json:"attempt"` // from 1
	BeginNS     int64  `json:"begin_ns"`
	EndNS       int64  `json:"end_ns"`
	Ranks       int    `json:"ranks"`
	FirstStep   int64  `json:"first_step"` // -1: none
	LastStep    int64  `json:"last_step"`  // the last completed one, -1: none
	Steps       int64  `json:"steps"`      // completed
	LostSteps   int64  `json:"lost_steps"` // of them, done again by a later attempt
	SavedStep   int64  `json:"saved_step"` // the last one in a checkpoint that this attempt wrote, -1: none
	UnsavedTail int64  `json:"unsaved_steps"`
	Ended       string `json:"ended"`       // ended, error, truncated (a shutdown closed its spans), silent (nothing said that it ends)
	SlurmState  string `json:"slurm_state"` // of the attempt in SLURM's accounting, where that is there

	resume int64 // the first step of all later attempts: from it on work is lost
}

// How an attempt ended.
const (
	endedWell      = "ended"
	endedError     = "error"
	endedTruncated = "truncated"
	endedSilent    = "silent"
)

type attemptKey struct {
	attempt string
	ordinal int
}

// attempts puts the lives of all ranks together, and returns which attempt each life is of. offsets are those of the nodes' clocks.
func attempts(lives [][]life, offset func(host string) int64) ([]Attempt, map[attemptKey]int) {
	groups := map[attemptKey][]*life{}
	begins := map[attemptKey]int64{}
	var keys []attemptKey
	for _, member := range lives {
		for i := range member {
			l := &member[i]
			key := attemptKey{l.attempt, l.ordinal}
			begin := l.begin - offset(l.host)
			if at, ok := begins[key]; !ok || begin < at {
				begins[key] = begin
			}
			if groups[key] == nil {
				keys = append(keys, key)
			}
			groups[key] = append(groups[key], l)
		}
	}
	slices.SortStableFunc(keys, func(a, b attemptKey) int {
		return cmp.Or(cmp.Compare(begins[a], begins[b]), cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.ordinal, b.ordinal))
	})
	list, places := []Attempt{}, map[attemptKey]int{}
	for i, key := range keys {
		list = append(list, attemptOfLives(groups[key], offset))
		list[i].Number, places[key] = i+1, i
	}
	resume := int64(math.MaxInt64)
	for i := len(list) - 1; i >= 0; i-- {
		a := &list[i]
		a.resume = resume
		if a.FirstStep >= 0 {
			resume = min(resume, a.FirstStep)
		}
		if a.Ended == "" {
			a.Ended = endedSilent
			if i == len(list)-1 {
				a.Ended = endedWell
			}
		}
		a.countLost(groups[keys[i]])
	}
	return list, places
}

func attemptOfLives(group []*life, offset func(string) int64) Attempt {
	a := Attempt{FirstStep: -1, LastStep: -1, SavedStep: -1, BeginNS: math.MaxInt64}
	truncated, failed := false, false
	for i, l := range group {
		if i == 0 || group[i-1].member != l.member {
			a.Ranks++
		}
		a.BeginNS, a.EndNS = min(a.BeginNS, l.begin-offset(l.host)), max(a.EndNS, l.end-offset(l.host))
		truncated, failed = truncated || l.truncated, failed || l.failed
		steps, last := int64(0), int64(noStep) // last: what a save that does not say so has, also one within a step
		for i, s := range l.segments {
			switch {
			case s.kind == kindSave && s.step >= 0:
				a.SavedStep = max(a.SavedStep, cmp.Or(s.step, last))
			case (s.kind == kindStep || s.kind == kindTorn) && s.step >= 0:
				if a.FirstStep < 0 || s.step < a.FirstStep {
					a.FirstStep = s.step
				}
				if s.kind == kindStep {
					last = s.step
				}
				if s.kind == kindStep && !continues(l.segments[i+1:], s.step) {
					steps++
					a.LastStep = max(a.LastStep, s.step)
				}
			}
		}
		a.Steps = max(a.Steps, steps)
	}
	switch {
	case failed:
		a.Ended = endedError
	case truncated:
		a.Ended = endedTruncated
	}
	return a
}

// countLost counts the steps that a later attempt does again, and those at the end that no checkpoint has.
func (a *Attempt) countLost(group []*life) {
	for _, l := range group {
		lost := int64(0)
		l.eachStepEnd(func(s segment) {
			if s.step >= a.resume {
				lost++
			}
		})
		a.LostSteps = max(a.LostSteps, lost)
	}
	if a.LastStep >= 0 && a.resume == math.MaxInt64 { // Where a later attempt goes on, what was not lost was saved.
		a.UnsavedTail = max(a.LastStep-max(a.SavedStep, a.FirstStep-1), 0)
	}
}

// Lasting is how long the attempt lasts, in nanoseconds.
func (a Attempt) Lasting() int64 { return a.EndNS - a.BeginNS }

// Kept are the steps that no later attempt does again.
func (a Attempt) Kept() int64 { return a.Steps - a.LostSteps }
