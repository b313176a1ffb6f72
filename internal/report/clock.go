// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lenscol/lenscol/internal/clocks"
)

// Clock is how far a node's clock is from the reference's: that of the node of the first rank, of those that can be compared.
type Clock struct {
	Host     string `json:"host"`
	OffsetNS int64  `json:"offset_ns"`   // what it shows more than the reference's
	Residual int64  `json:"residual_ns"` // what is left of the differences of the two in the median step
	Steps    int    `json:"steps"`       // that were compared
	Known    bool   `json:"known"`       // false: too few steps are shared, or they do not agree, and the clock is taken as it is
}

// Offset is the offset as a text.
func (c Clock) Offset() string { return time.Duration(c.OffsetNS).Round(time.Microsecond).String() }

// maxOffset is how far clocks may be apart: a day, and with it any time zone.
const maxOffset = 24 * time.Hour

// clocksOf compares the clocks of the nodes on which ranks end steps.
func clocksOf(lives [][]life) []Clock {
	ends, stepTime := clocks.New(maxOffset), int64(0)
	var hosts []string
	seen := map[string]bool{"": true}
	for _, member := range lives {
		for _, l := range member {
			l.eachStepEnd(func(s segment) {
				if stepTime == 0 {
					stepTime = l.member.steps.quantile(0.5)
				}
				if !seen[l.host] {
					seen[l.host] = true
					hosts = append(hosts, l.host)
				}
				ends.Add(fmt.Sprintf("%q %d %d", l.attempt, l.ordinal, s.step), l.host, s.to)
			})
		}
	}
	found := ends.Estimate(hosts)
	compared := found.Nodes // in the order of hosts
	list := []Clock{}
	for _, host := range hosts {
		c := Clock{Host: host}
		if len(compared) > 0 && compared[0].Node == host {
			n := compared[0]
			c, compared = Clock{host, int64(n.Offset), int64(n.Residual), n.Steps, int64(n.Residual) <= stepTime/4}, compared[1:]
		}
		if host != cmp.Or(found.Reference, hosts[0]) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Clock) int { return cmp.Compare(a.Host, b.Host) })
	return list
}

// eachStepEnd calls f with the last segment of each step.
func (l *life) eachStepEnd(f func(segment)) {
	for i, s := range l.segments {
		if s.kind == kindStep && s.step >= 0 && !continues(l.segments[i+1:], s.step) {
			f(s)
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
