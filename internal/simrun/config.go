// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package simrun makes up a training run: what its ranks would have sent, by their nodes' wrong clocks, and the truth about it. It is
// what tools that look back at a run are tested and measured with, since of a real run nobody knows the truth.
//
// A Config says what happens, New plans it, Run.Each gives what the ranks send, Run.Truth what was so. The same Config gives the same
// run, to the bit.
package simrun // import "github.com/lenscol/lenscol/internal/simrun"

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Generation is whose names the ranks send.
type Generation int

// The generations of names.
const (
	OldNames Generation = iota // Megatron of August 2026 with NeMo Lens 0.2: megatron.*, dl.rank
	NewNames                   // nv.dl.training.*, nv.dl.rank
)

// Config is what happens in a run. Times are of the true clock.
type Config struct {
	Seed         uint64
	RunID        string
	Generation   Generation
	Begin        time.Time
	Ranks        int
	RanksPerNode int
	Steps        int // the run is over after this one; they count from 1

	Startup  time.Duration // from the begin of an attempt until it trains, or loads
	StepTime time.Duration // of a step in which all ranks compute equally long
	Jitter   float64       // a rank computes longer or shorter by up to this share, each step anew
	SlowRank int           // this rank computes longer by SlowBy, a share; -1: none
	SlowBy   float64
	EndSkew  time.Duration // what ends on all ranks at once is seen to end by each up to so much later

	SaveEvery int           // steps between checkpoints; 0: none
	SaveTime  time.Duration // for which a save holds training up
	LoadTime  time.Duration // of loading it after a restart
	EvalEvery int           // steps between evaluations; 0: none
	EvalTime  time.Duration
	LogEvery  int // steps between two sends, with the report of training.log and metrics; 0: none of these, one send an attempt

	// Crashes are steps, ascending, in the middle of which an attempt ends. The next one begins RestartGap later, with the step
	// behind the last save.
	Crashes    []int
	RestartGap time.Duration
	// Killed lets ranks die without sending their open spans. Otherwise FailingRank's open spans end in an exception, and those of
	// the others are sent truncated, as NeMo Lens 0.2 does.
	Killed      bool
	FailingRank int

	MaxOffset time.Duration // clocks of nodes are off by up to so much, either way
}

// Default is a run of 16 ranks and 40 steps, with one crash, one slow rank and clocks that are off by up to 20 ms.
func Default() Config {
	return Config{
		Seed: 1, RunID: "sim", Begin: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), Ranks: 16, RanksPerNode: 4, Steps: 40,
		Startup: 30 * time.Second, StepTime: time.Second, Jitter: 0.02, SlowRank: 5, SlowBy: 0.25, EndSkew: 200 * time.Microsecond,
		SaveEvery: 10, SaveTime: 2 * time.Second, LoadTime: 3 * time.Second, EvalEvery: 20, EvalTime: 4 * time.Second, LogEvery: 5,
		Crashes: []int{27}, RestartGap: 45 * time.Second, FailingRank: 3, MaxOffset: 20 * time.Millisecond,
	}
}

func (c *Config) check() error {
	switch {
	case c.Ranks < 1 || c.RanksPerNode < 1 || c.Steps < 1:
		return errors.New("simrun: Ranks, RanksPerNode and Steps must be 1 or more")
	case c.StepTime < time.Millisecond:
		return fmt.Errorf("simrun: StepTime %s is too short to hold the spans of a step, 1ms will do", c.StepTime)
	case c.EndSkew > c.StepTime/100:
		return fmt.Errorf("simrun: EndSkew %s is more than a hundredth of StepTime: spans would overlap", c.EndSkew)
	case c.Jitter < 0 || c.Jitter > 0.4 || c.SlowBy < 0:
		return errors.New("simrun: Jitter must lie between 0 and 0.4, SlowBy must not be negative")
	case !slices.IsSorted(c.Crashes) || len(c.Crashes) > 0 && (c.Crashes[0] < 1 || c.Crashes[len(c.Crashes)-1] > c.Steps):
		return fmt.Errorf("simrun: Crashes %v must be steps of the run, ascending", c.Crashes)
	case !c.Killed && len(c.Crashes) > 0 && (c.FailingRank < 0 || c.FailingRank >= c.Ranks):
		return fmt.Errorf("simrun: FailingRank %d is none of the %d ranks", c.FailingRank, c.Ranks)
	}
	return nil
}

// Truth is what was so, by the true clock.
type Truth struct {
	Begin, End time.Time
	Nodes      []string                 // host.name, in the order of their ranks
	Offsets    map[string]time.Duration // by node: what its clock shows, minus the true time
	SlowRank   int                      // -1: none
	Attempts   []Attempt

	// The wall time of the run, End - Begin, is the sum of these.
	Startup  time.Duration // of all attempts
	Load     time.Duration
	Train    time.Duration // steps that were kept
	Lost     time.Duration // steps that were done again, and those that a crash interrupted
	Save     time.Duration
	Evaluate time.Duration // also what was evaluated again
	Down     time.Duration // between attempts

	LostSteps int // that were completed and done again

	// What the ranks sent.
	Spans, ErrorSpans, TruncatedSpans, Links, Points int
}

// Attempt is one life of all processes.
type Attempt struct {
	Begin, End time.Time
	First      int // step
	Completed  int // the last completed step, First-1 where there is none
	Saved      int // the last step that is in a checkpoint at the attempt's end, 0: none
	Crashed    bool
	Steps      []time.Duration // the true durations of its completed steps
}
