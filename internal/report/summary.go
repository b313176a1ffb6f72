// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

// Summary is what `lenscol report --json` prints. Its schema is that of docs/report.md: keys are added, never changed. Durations and times
// are nanoseconds, times since 1970-01-01 UTC.
type Summary struct {
	Version int `json:"version"` // 1
	Counts
	GapNS int64 `json:"gap_ns"` // what counts as a gap
	Runs  []Run `json:"runs"`   // by begin
	Left  Left  `json:"left"`
}

// Run is one run; run "" is of records that name none.
type Run struct {
	Run       string   `json:"run"`
	Services  []string `json:"services"`
	WorldSize int      `json:"world_size"` // 0: not known
	Ranks     string   `json:"ranks"`      // that sent spans: 0-62,64
	Missing   string   `json:"missing"`    // of the world, those that did not
	Counts
	BeginNS int64 `json:"begin_ns"`
	EndNS   int64 `json:"end_ns"`
	WallNS  int64 `json:"wall_ns"`

	Goodput    Goodput  `json:"goodput"`
	Formula    string   `json:"formula"`
	Buckets    []Bucket `json:"buckets"`   // all of them
	Accounted  int      `json:"accounted"` // ranks that the buckets are an average of
	ErrorBound int64    `json:"error_ns"`  // what a bucket may be off by, by the clocks of the nodes
	TimeLine   TimeLine `json:"time_line"`

	Steps       Steps        `json:"steps"`
	PerRank     []Rank       `json:"per_rank"`
	Slowest     []Slow       `json:"slowest"`
	StepTimes   []StepPoint  `json:"step_times"`
	Attempts    []Attempt    `json:"attempts"`
	Gaps        []Gap        `json:"gaps"`
	Checkpoints Occasions    `json:"checkpoints"`
	Loads       Occasions    `json:"loads"`
	Evaluations Occasions    `json:"evaluations"`
	AsyncSpans  int64        `json:"async_checkpoint_spans"` // of what writes checkpoints while training goes on
	Errors      []ErrorGroup `json:"errors"`
	Clocks      []Clock      `json:"clocks"`
	Unknown     []Named      `json:"unknown_names"` // tagged as counting for goodput, of no known name
	Notes       []string     `json:"notes"`         // what a reader should know before believing the figures
}

// Steps are the steps of a run, over all ranks.
type Steps struct {
	Kept    int64     `json:"kept"` // numbers of steps whose work counts
	Lost    int64     `json:"lost"` // completed, and done again
	Skipped int64     `json:"skipped"`
	First   int64     `json:"first"`
	Last    int64     `json:"last"`
	PaceNS  int64     `json:"pace_ns"` // what a step needs: the 5th percentile, the median over the ranks
	Times   Quantiles `json:"time"`
	Error   float64   `json:"relative_error"` // of the quantiles here and of the ranks
	ByWork  bool      `json:"by_work"`        // ranks are compared by work_ns
}

// Rank is one rank of a service.
type Rank struct {
	Service string    `json:"service"`
	Rank    int       `json:"rank"`
	Host    string    `json:"host"`
	Spans   int64     `json:"spans"`
	Errors  int64     `json:"errors"`
	BeginNS int64     `json:"begin_ns"`
	EndNS   int64     `json:"end_ns"`
	Steps   Quantiles `json:"step_time"`
	WorkNS  int64     `json:"work_ns"` // mean of a step without communication: what the rank itself needs
	WaitNS  int64     `json:"wait_ns"` // mean of communication a step
	Skipped int64     `json:"skipped"`
}

// Slow is a rank among the slowest.
type Slow struct {
	Service string  `json:"service"`
	Rank    int     `json:"rank"`
	Host    string  `json:"host"`
	NS      int64   `json:"ns"`        // work_ns, or p50 where ranks do not say how long they communicate
	Over    float64 `json:"over"`      // more than the median rank, as a share of it
	Stands  bool    `json:"straggler"` // it stands out: 5 % and four median deviations over the median
}

// Gap is a time in which ranks sent nothing.
type Gap struct {
	FromNS int64  `json:"from_ns"`
	ToNS   int64  `json:"to_ns"`
	Ranks  string `json:"ranks"`
	Silent bool   `json:"silent"` // they sent nothing any more while others of the attempt did
}

// Occasions are the saves, loads or evaluations of a run.
type Occasions struct {
	Count   int64 `json:"count"` // of the rank that has the most
	Failed  int64 `json:"failed"`
	MeanNS  int64 `json:"mean_ns"` // over all ranks
	MaxNS   int64 `json:"max_ns"`
	TotalNS int64 `json:"total_ns"` // of all, the mean over the ranks
}

// Named is a name and how often it came.
type Named struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// Lasting is how long the gap lasts, in nanoseconds.
func (g Gap) Lasting() int64 { return g.ToNS - g.FromNS }
