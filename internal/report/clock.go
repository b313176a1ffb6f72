// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"cmp"
	"slices"
	"time"
)

// Clock is how far a node's clock is from that of the node of the first rank, told from the ends of steps: the ranks of a run exchange
// gradients, and so end a step together.
type Clock struct {
	Host     string `json:"host"`
	OffsetNS int64  `json:"offset_ns"`   // what it shows more than the first rank's; the median over steps and ranks
	Residual int64  `json:"residual_ns"` // the median distance from that
	Steps    int    `json:"steps"`       // ends that were compared
	Known    bool   `json:"known"`       // false: they do not agree, and the clock is taken as it is
}

// Offset is the offset as a text.
func (c Clock) Offset() string { return time.Duration(c.OffsetNS).Round(time.Microsecond).String() }

const (
	comparedSteps = 1 << 12 // of a rank
	fewestSteps   = 3       // that tell an offset
)

// stepEnd names the end of a step: of those that were done again, the n-th.
type stepEnd struct {
	step int64
	n    int
}

// clocks compares all nodes with the first rank's.
func clocks(lives [][]life) []Clock {
	var reference map[stepEnd]int64
	first, longest := "", int64(0)
	distances := map[string][]int64{}
	for _, member := range lives {
		if reference == nil {
			if reference, longest = referenceEnds(member); reference != nil {
				first = member[0].host
			}
			continue
		}
		eachStepEnd(member, func(e stepEnd, s segment, host string) {
			if at, ok := reference[e]; ok && host != first {
				distances[host] = append(distances[host], s.to-at)
			}
		})
	}
	var list []Clock
	for host, d := range distances {
		c := Clock{Host: host, Steps: len(d), OffsetNS: median(d)}
		for i := range d {
			d[i] = max(d[i]-c.OffsetNS, c.OffsetNS-d[i])
		}
		c.Residual = median(d)
		c.Known = len(d) >= fewestSteps && c.Residual <= longest/4
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Clock) int { return cmp.Compare(a.Host, b.Host) })
	return list
}

// referenceEnds are the ends of at most comparedSteps steps of a rank, and the median duration of its steps; nil where it has none.
func referenceEnds(member []life) (map[stepEnd]int64, int64) {
	var durations []int64
	eachStepEnd(member, func(_ stepEnd, s segment, _ string) { durations = append(durations, s.to-s.from) })
	if len(durations) == 0 {
		return nil, 0
	}
	every := len(durations)/comparedSteps + 1
	ends, i := map[stepEnd]int64{}, 0
	eachStepEnd(member, func(e stepEnd, s segment, _ string) {
		if i%every == 0 {
			ends[e] = s.to
		}
		i++
	})
	return ends, median(durations)
}

// eachStepEnd calls f with the last segment of each step.
func eachStepEnd(member []life, f func(stepEnd, segment, string)) {
	times := map[int64]int{}
	for _, l := range member {
		for i, s := range l.segments {
			if s.kind != kindStep || s.step < 0 || continues(l.segments[i+1:], s.step) {
				continue
			}
			f(stepEnd{s.step, times[s.step]}, s, l.host)
			times[s.step]++
		}
	}
}

// continues reports whether a step goes on behind what stands inside of it.
func continues(rest []segment, step int64) bool {
	for _, s := range rest {
		if s.kind == kindStep {
			return s.step == step
		}
		if s.kind < kindStep {
			return false
		}
	}
	return false
}

// median sorts, and returns the median; 0 of none.
func median(values []int64) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
