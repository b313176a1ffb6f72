// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview // import "github.com/lenscol/lenscol/internal/runview"

import "time"

// Schema is the version of what /api/runs and /api/runs/{id} answer. Keys may come; none changes its meaning or goes
// without another number here. docs/runs.md specifies them.
const Schema = 1

// Runs is what /api/runs says. Times are UTC, by the collector's clock.
type Runs struct {
	Schema int       `json:"schema"`
	Time   time.Time `json:"time"` // now
	Left   Left      `json:"left"` // what is not shown
	Runs   []Run     `json:"runs"` // the one seen last comes first
}

// Left is what the model has no room for: 64 runs, 65,536 ranks in all.
type Left struct {
	EvictedRuns  int64 `json:"evicted_runs"`  // silent runs that made room
	EvictedRanks int64 `json:"evicted_ranks"` // silent ranks that made room
	RefusedRuns  int64 `json:"refused_runs"`  // times that something of a new run came while all others were active
	RefusedRanks int64 `json:"refused_ranks"` // times that something of a new rank came while all others were active
}

// Run is one run in short.
type Run struct {
	ID          string    `json:"id"`     // "(none)" for ranks that name no run
	Active      bool      `json:"active"` // something came within silent_after_seconds
	FirstSeen   time.Time `json:"first_seen"`
	LastSeen    time.Time `json:"last_seen"`
	SilentAfter float64   `json:"silent_after_seconds"` // how long a rank says nothing until it counts as silent
	Services    []Service `json:"services"`
	Ranks       int       `json:"ranks"`      // seen, of all services
	WorldSize   int       `json:"world_size"` // of all services; 0: unknown
	Silent      int       `json:"silent"`     // ranks
	Items
	DroppedBy   []DroppedBy `json:"dropped_by"`       // what rank_gate dropped, by strategy
	FrontStep   int64       `json:"front_step"`       // the furthest step of ranks that are not silent, or were silent last; -1: none has one
	MaxLag      int64       `json:"max_lag"`          // the most that a rank is behind it; -1: none has a step
	StepSeconds float32     `json:"step_seconds_p50"` // the median of the ranks' medians; 0: unknown
	Slowest     []Rank      `json:"slowest"`          // by step_seconds_median, at most 8
	Behind      []Rank      `json:"behind"`           // by lag, at most 8, none with lag 0
	SilentRanks []Rank      `json:"silent_ranks"`     // the longest silent first, at most 8
}

// Items counts telemetry: what run_id_enricher saw and what rank_gate dropped before that.
type Items struct {
	Spans   int64 `json:"spans"`
	Points  int64 `json:"points"`  // data points
	Records int64 `json:"records"` // log records
	Errors  int64 `json:"errors"`  // spans with status error, log records at error and above
	Dropped int64 `json:"dropped"` // of spans, points and records: those that rank_gate dropped
}

// DroppedBy is how much rank_gate dropped by one strategy.
type DroppedBy struct {
	Strategy string `json:"strategy"`
	Items    int64  `json:"items"`
}

// Service is a service.name of a run.
type Service struct {
	Name      string    `json:"name"`
	Ranks     int       `json:"ranks"`      // seen; 0: its resources have no rank
	WorldSize int       `json:"world_size"` // as it says; 0: unknown
	LastSeen  time.Time `json:"last_seen"`
	Items
}

// Rank is one rank in short.
type Rank struct {
	Service           string    `json:"service"`
	Rank              int       `json:"rank"`
	Node              string    `json:"node"`
	Host              string    `json:"host"`
	LastSeen          time.Time `json:"last_seen"`
	Step              int64     `json:"step"`                // -1: unknown
	Lag               int64     `json:"lag"`                 // steps behind the front; -1: unknown
	StepSeconds       float32   `json:"step_seconds"`        // of the last step; 0: unknown
	StepSecondsMedian float32   `json:"step_seconds_median"` // of the last 100 steps; 0: unknown
}

// RunDetail is what /api/runs/{id} says.
type RunDetail struct {
	Schema int       `json:"schema"`
	Time   time.Time `json:"time"`
	Run
	Nodes []string `json:"nodes"` // names
	Hosts []string `json:"hosts"` // names
	Steps []int64  `json:"steps"` // of the columns of Rows.Recent, rising, the last is front_step
	Rows  Rows     `json:"rows"`
}

// Rows are the ranks of a run, by columns: the values of one rank have the same index in each. They are sorted by service
// and rank.
type Rows struct {
	Service           []int       `json:"service"`    // index into services
	Rank              []int       `json:"rank"`       // in the service
	LocalRank         []int       `json:"local_rank"` // -1: unknown
	Node              []int       `json:"node"`       // index into nodes; -1: unknown
	Host              []int       `json:"host"`       // index into hosts; -1: unknown
	LastSeen          []int64     `json:"last_seen"`  // Unix time in milliseconds
	Silent            []bool      `json:"silent"`
	Spans             []int64     `json:"spans"`
	Points            []int64     `json:"points"`
	Records           []int64     `json:"records"`
	Errors            []int64     `json:"errors"`
	Dropped           []int64     `json:"dropped"`
	Step              []int64     `json:"step"`                // -1: unknown
	Lag               []int64     `json:"lag"`                 // -1: unknown
	StepSeconds       []float32   `json:"step_seconds"`        // of the last step; 0: unknown
	StepSecondsMedian []float32   `json:"step_seconds_median"` // of the last 100 steps; 0: unknown
	Recent            [][]float32 `json:"recent"`              // seconds of each of the steps; 0: unknown
}
