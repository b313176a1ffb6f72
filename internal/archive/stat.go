// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/sdk/rank"
)

// Summary is what files hold, as `lenscol jsonl stat --json` prints it. Its schema is that of docs/cli.md: keys are added, never changed.
// Times are nanoseconds since 1970-01-01 UTC, 0 where no record has one.
type Summary struct {
	Version int           `json:"version"` // 1
	Files   []FileSummary `json:"files"`
	Counts
	Bytes        int64        `json:"bytes"`          // of the files, on disk
	ContentBytes int64        `json:"content_bytes"`  // of what they hold, decompressed
	BytesPerSpan float64      `json:"bytes_per_span"` // on disk, of all spans of the files; 0 without spans
	OtherLines   int64        `json:"other_lines"`
	Damaged      int64        `json:"damaged"`
	TornBytes    int64        `json:"torn_bytes"`
	GapNS        int64        `json:"gap_ns"` // what counts as a gap
	Runs         []RunSummary `json:"runs"`
	Incomplete   bool         `json:"incomplete,omitempty"` // there were more runs and ranks, or gaps, than are kept apart
}

// Counts are records and the time that they span.
type Counts struct {
	Spans   int64 `json:"spans"`
	Points  int64 `json:"points"`
	Logs    int64 `json:"logs"`
	FirstNS int64 `json:"first_ns"`
	LastNS  int64 `json:"last_ns"`
}

// FileSummary is one file.
type FileSummary struct {
	Path         string           `json:"path"`
	Compression  Compression      `json:"compression"`
	Layouts      map[Layout]int64 `json:"layouts"` // records by layout
	Spans        int64            `json:"spans"`
	Points       int64            `json:"points"`
	Logs         int64            `json:"logs"`
	Bytes        int64            `json:"bytes"`
	ContentBytes int64            `json:"content_bytes"`
	OtherLines   int64            `json:"other_lines"`
	Damaged      int64            `json:"damaged"`
	TornBytes    int64            `json:"torn_bytes"`
}

// RunSummary is one run; run "" is of records that name none.
type RunSummary struct {
	Run       string   `json:"run"`
	Services  []string `json:"services"`
	WorldSize int      `json:"world_size"` // 0 where no record says it
	Missing   string   `json:"missing"`    // ranks of the world that sent nothing, like 3,8-15
	Counts
	Ranks []RankSummary `json:"ranks"`
}

// RankSummary is one rank of a run.
type RankSummary struct {
	Rank *int `json:"rank"` // null for records that name none
	Counts
	Gaps []Gap `json:"gaps"`
}

// Gap is a time in which no record of a rank began or ended.
type Gap struct {
	FromNS int64 `json:"from_ns"`
	ToNS   int64 `json:"to_ns"`
}

// Stat makes a Summary. Its memory is bounded by the number of runs, ranks and gaps, and those by maxGroups and maxIntervals.
type Stat struct {
	gap        pcommon.Timestamp
	sum        Summary
	spanBytes  float64 // on disk
	fileSpans  int64   // of whole files, without a filter
	groups     map[group]*groupStat
	worlds     map[string]int
	services   map[string]map[string]bool
	identities identities
}

const (
	maxGroups    = 100_000 // runs and ranks; what is beyond counts in the sums alone
	maxIntervals = 10_000  // of a rank; then small gaps are closed
	maxServices  = 100     // of a run
)

type group struct {
	run  string
	rank int // rank.Unknown without one
}

type groupStat struct {
	Counts
	active intervals
}

// NewStat returns a Stat that calls a time without a record a gap when it is longer than gap.
func NewStat(gap time.Duration) *Stat {
	return &Stat{gap: pcommon.Timestamp(gap), groups: map[group]*groupStat{}, worlds: map[string]int{}, services: map[string]map[string]bool{}}
}

// Add takes a record into account.
func (s *Stat) Add(rec Record) {
	s.sum.Counts.add(rec)
	who := s.identities.of(rec.Scope.Resource)
	key := group{who.run, rank.Unknown}
	if who.HasRank {
		key.rank = who.Rank
	}
	g := s.groups[key]
	if g == nil {
		if len(s.groups) >= maxGroups {
			s.sum.Incomplete = true
			return
		}
		g = &groupStat{}
		s.groups[key] = g
	}
	g.Counts.add(rec)
	for _, t := range [2]pcommon.Timestamp{rec.Time(), rec.End()} {
		if t > 0 && !g.active.add(t, s.gap) {
			s.sum.Incomplete = true
		}
	}
	if who.WorldSize > s.worlds[who.run] {
		s.worlds[who.run] = who.WorldSize
	}
	names := s.services[who.run]
	if names == nil {
		names = map[string]bool{}
		s.services[who.run] = names
	}
	if who.service != "" && len(names) < maxServices {
		names[who.service] = true
	}
}

// File takes a file into account that was read to its end.
func (s *Stat) File(in Input, f Stats, bytes int64) {
	s.sum.Files = append(s.sum.Files, FileSummary{
		Path: in.Name(), Compression: f.Compression, Layouts: f.Layouts, Spans: f.Spans, Points: f.Points, Logs: f.Logs,
		Bytes: bytes, ContentBytes: f.Bytes, OtherLines: f.Foreign, Damaged: f.Damaged, TornBytes: f.Torn,
	})
	s.sum.Bytes += bytes
	s.sum.ContentBytes += f.Bytes
	s.sum.OtherLines += f.Foreign
	s.sum.Damaged += f.Damaged
	s.sum.TornBytes += f.Torn
	s.fileSpans += f.Spans
	if f.Bytes > 0 {
		s.spanBytes += float64(bytes) * float64(f.SpanBytes) / float64(f.Bytes)
	}
}

// Summary is what was added.
func (s *Stat) Summary() Summary {
	sum := s.sum
	sum.Version, sum.GapNS = 1, int64(s.gap)
	if s.fileSpans > 0 {
		sum.BytesPerSpan = s.spanBytes / float64(s.fileSpans)
	}
	byRun := map[string]*RunSummary{}
	keys := slices.SortedFunc(maps.Keys(s.groups), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.rank, b.rank))
	})
	present := map[string][]int{}
	for _, key := range keys {
		g, run := s.groups[key], byRun[key.run]
		if run == nil {
			run = &RunSummary{Run: key.run, WorldSize: max(s.worlds[key.run], 0), Services: slices.AppendSeq([]string{}, maps.Keys(s.services[key.run]))}
			slices.Sort(run.Services)
			byRun[key.run] = run
		}
		r := RankSummary{Counts: g.Counts, Gaps: g.active.gaps()}
		if key.rank != rank.Unknown {
			r.Rank = &key.rank
			present[key.run] = append(present[key.run], key.rank)
		}
		run.Ranks = append(run.Ranks, r)
		run.Counts.merge(g.Counts)
	}
	sum.Runs = []RunSummary{}
	for _, name := range slices.Sorted(maps.Keys(byRun)) {
		run := byRun[name]
		run.Missing = missing(present[name], run.WorldSize)
		sum.Runs = append(sum.Runs, *run)
	}
	if sum.Files == nil {
		sum.Files = []FileSummary{}
	}
	return sum
}

func (c *Counts) add(rec Record) {
	one := Counts{FirstNS: int64(rec.Time()), LastNS: int64(rec.End())}
	switch rec.Signal {
	case pipeline.SignalTraces:
		one.Spans = 1
	case pipeline.SignalMetrics:
		one.Points = 1
	default:
		one.Logs = 1
	}
	c.merge(one)
}

func (c *Counts) merge(o Counts) {
	c.Spans += o.Spans
	c.Points += o.Points
	c.Logs += o.Logs
	if o.FirstNS > 0 && (c.FirstNS == 0 || o.FirstNS < c.FirstNS) {
		c.FirstNS = o.FirstNS
	}
	c.LastNS = max(c.LastNS, o.LastNS)
}

// intervals are the times at which something happened, in order and apart from each other by more than a gap.
type intervals struct {
	list [][2]pcommon.Timestamp
	last int // where the last one went
}

// add is false where there was no room left to keep it apart.
func (iv *intervals) add(t, gap pcommon.Timestamp) bool {
	near := func(i int) bool {
		return i >= 0 && i < len(iv.list) && t+gap >= iv.list[i][0] && t <= iv.list[i][1]+gap
	}
	i := iv.last
	if !near(i) {
		i, _ = slices.BinarySearchFunc(iv.list, t, func(in [2]pcommon.Timestamp, t pcommon.Timestamp) int { return cmp.Compare(in[0], t) })
		if near(i - 1) {
			i--
		}
	}
	if !near(i) {
		if len(iv.list) >= maxIntervals {
			return false
		}
		iv.list = slices.Insert(iv.list, i, [2]pcommon.Timestamp{t, t})
		iv.last = i
		return true
	}
	iv.last = i
	iv.list[i][0], iv.list[i][1] = min(iv.list[i][0], t), max(iv.list[i][1], t)
	for i+1 < len(iv.list) && iv.list[i+1][0] <= iv.list[i][1]+gap { // It closed the gap to the next one.
		iv.list[i][1] = max(iv.list[i][1], iv.list[i+1][1])
		iv.list = slices.Delete(iv.list, i+1, i+2)
	}
	for i > 0 && iv.list[i-1][1]+gap >= iv.list[i][0] {
		iv.list[i-1][1] = max(iv.list[i-1][1], iv.list[i][1])
		iv.list = slices.Delete(iv.list, i, i+1)
		i--
		iv.last = i
	}
	return true
}

func (iv *intervals) gaps() []Gap {
	gaps := []Gap{}
	for i := 1; i < len(iv.list); i++ {
		gaps = append(gaps, Gap{FromNS: int64(iv.list[i-1][1]), ToNS: int64(iv.list[i][0])})
	}
	return gaps
}

// missing lists the ranks below worldSize that are not among those there, as sdk/rank.Ranks reads it: 3,8-15.
func missing(there []int, worldSize int) string {
	if len(there) == 0 {
		return ""
	}
	var absent []ranksFromTo
	next := 0
	for _, r := range append(there, worldSize) {
		if r = min(r, worldSize); r > next {
			absent = append(absent, ranksFromTo{next, r - 1})
		}
		next = max(next, r+1)
	}
	return writeRanks(absent)
}

// RankList writes sorted ranks as sdk/rank.Ranks reads them: 0-3,8.
func RankList(ranks []int) string {
	var ranges []ranksFromTo
	for _, r := range ranks {
		if n := len(ranges); n > 0 && ranges[n-1].to == r-1 {
			ranges[n-1].to = r
		} else {
			ranges = append(ranges, ranksFromTo{r, r})
		}
	}
	return writeRanks(ranges)
}

type ranksFromTo struct{ from, to int }

func writeRanks(ranges []ranksFromTo) string {
	var b strings.Builder
	for i, r := range ranges {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(r.from))
		if r.to > r.from {
			b.WriteString("-" + strconv.Itoa(r.to))
		}
	}
	return b.String()
}
