// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview // import "github.com/lenscol/lenscol/internal/runview"

import (
	"slices"
	"time"

	"github.com/lenscol/lenscol/sdk/rank"
)

// fill fills in the rows, and what they point to.
func (m *Model) fill(d *RunDetail, l *look, only int) {
	shown := make([]*row, 0, len(l.rows))
	for i := range l.rows {
		if r := &l.rows[i]; r.rank != rank.Unknown && (only == rank.Unknown || r.rank == only) {
			shown = append(shown, r)
		}
	}
	nodes, hosts := newNames(), newNames()
	service, t := 0, newRows(len(shown))
	for _, r := range shown {
		for d.Services[service].Name != r.service {
			service++
		}
		step, lag := l.step(r)
		t.Service = append(t.Service, service)
		t.Rank = append(t.Rank, r.rank)
		t.LocalRank = append(t.LocalRank, r.localRank)
		t.Node = append(t.Node, nodes.index(r.node))
		t.Host = append(t.Host, hosts.index(r.host))
		t.LastSeen = append(t.LastSeen, r.last/int64(time.Millisecond))
		t.Silent = append(t.Silent, r.silent)
		t.Spans = append(t.Spans, r.Spans)
		t.Points = append(t.Points, r.Points)
		t.Records = append(t.Records, r.Records)
		t.Errors = append(t.Errors, r.Errors)
		t.Dropped = append(t.Dropped, r.Dropped)
		t.Step = append(t.Step, step)
		t.Lag = append(t.Lag, lag)
		t.StepSeconds = append(t.StepSeconds, rounded(r.seconds))
		t.StepSecondsMedian = append(t.StepSecondsMedian, rounded(r.median))
	}
	t.Recent = m.recent(shown, d.Steps)
	d.Nodes, d.Hosts, d.Rows = nodes.list, hosts.list, t
}

// recent is how long the ranks took for each of those steps.
func (m *Model) recent(rows []*row, steps []int64) [][]float32 {
	n := len(steps)
	all := make([]float32, len(rows)*n)
	out := make([][]float32, 0, len(rows))
	for part := range slices.Chunk(rows, chunk) {
		m.mu.Lock()
		for _, r := range part {
			to := all[len(out)*n:][:n:n]
			for i, step := range steps {
				to[i] = r.from.of(step)
			}
			out = append(out, to)
		}
		m.mu.Unlock()
	}
	for i := range all {
		all[i] = rounded(all[i])
	}
	return out
}

func newRows(n int) Rows {
	return Rows{
		Service: make([]int, 0, n), Rank: make([]int, 0, n), LocalRank: make([]int, 0, n), Node: make([]int, 0, n), Host: make([]int, 0, n),
		LastSeen: make([]int64, 0, n), Silent: make([]bool, 0, n),
		Spans: make([]int64, 0, n), Points: make([]int64, 0, n), Records: make([]int64, 0, n), Errors: make([]int64, 0, n), Dropped: make([]int64, 0, n),
		Step: make([]int64, 0, n), Lag: make([]int64, 0, n), StepSeconds: make([]float32, 0, n), StepSecondsMedian: make([]float32, 0, n),
	}
}

// names is a list of names without repetition.
type names struct {
	list []string
	at   map[string]int
}

func newNames() *names { return &names{list: []string{}, at: map[string]int{}} }

// index is where the name is in the list; "" is not in it.
func (n *names) index(name string) int {
	if name == "" {
		return -1
	}
	i, ok := n.at[name]
	if !ok {
		i = len(n.list)
		n.list = append(n.list, name)
		n.at[name] = i
	}
	return i
}
