// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// Clocks is what was found out about the clocks of the nodes.
//
// A training step ends with collectives, which no rank can leave before all have entered them. So the same step ends on all ranks
// within the time that a rank needs to notice, and what its ends differ by between two nodes, time and again, is what their clocks
// differ by. The offset of a node is the median over many steps; an end that came late (a log line, a garbage collection) moves it
// little. It is taken as constant: what a clock drifts during the run shows in the residual.
type Clocks struct {
	Applied   bool   // offsets are taken off
	Reference string // the node whose clock is taken for true: of those that can be compared, that of the lowest rank
	Spans     string // the names whose ends were compared
	Steps     int    // that were compared
	Nodes     []NodeClock
	Unknown   int // nodes that share too few ends with the reference
}

// NodeClock is the clock of one node against the reference's.
type NodeClock struct {
	Node   string
	Offset time.Duration // what the node's clock shows, minus what the reference's does
	// Error is how far the offset may be off: the residuals of the node and of the reference together. A residual is what is left of the
	// difference in the worst of twenty steps. What delays a node's ends by the same time in every step cannot be told from an offset,
	// and is not in it.
	Error time.Duration
	Steps int
}

func (n NodeClock) label() string {
	return fmt.Sprintf("clock %+.3f ms ± %.3f ms", milliseconds(n.Offset), milliseconds(n.Error))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

const (
	// maxOffset is how far apart the ends of one step may be. What is farther apart is another attempt's.
	maxOffset = 5 * time.Second
	// maxEnds bounds the ends that are held, to about 4 MB. Beyond it only every second step is kept, then every fourth, and so on.
	maxEnds = 1 << 18
	// minSteps is how many ends a node must share with others.
	minSteps = 3
	// polishes is how often offsets and the steps' true ends are found from one another. Where all nodes are in all steps once is enough.
	polishes = 8
)

// defaultClockSpans are the iterations of Megatron in both generations, new names.
var defaultClockSpans = []string{"nv.dl.training.iteration"}

type clocks struct {
	globs  []string
	nodes  map[string]int
	rounds map[uint64][]*round // by the hash of run, name and step
	mask   uint64
	ends   int
}

// round is the end of one step of one attempt.
type round struct {
	at   int64
	ends []int64 // by node: the first of its ranks', 0 is none
}

func newClocks(globs []string) clocks {
	if len(globs) == 0 {
		globs = defaultClockSpans
	}
	return clocks{globs: globs, nodes: map[string]int{}, rounds: map[uint64][]*round{}}
}

var toNewSpan = semconv.ToNew(semconv.Spans())

// add takes the end of a span that ends on all ranks at once.
func (c *clocks) add(src *source, span ptrace.Span) {
	if src.node == "" || src.process.key.rank < 0 || span.EndTimestamp() == 0 || span.Status().Code() == ptrace.StatusCodeError {
		return
	}
	name := span.Name()
	if renamed, ok := toNewSpan.Rename(name); ok {
		name = renamed
	}
	if !slices.ContainsFunc(c.globs, func(glob string) bool { return ranks.Matches(glob, name) || ranks.Matches(glob, span.Name()) }) {
		return
	}
	step, ok := stepOf(span.Attributes())
	if _, cut := span.Attributes().Get(semconv.SpanTruncated); !ok || cut {
		return
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %s", src.process.key.run, name, step)
	if key := h.Sum64(); key&c.mask == 0 {
		c.keep(key, src.node, nanoseconds(span.EndTimestamp()))
	}
}

func stepOf(attrs pcommon.Map) (string, bool) {
	for _, key := range []string{semconv.TrainingStep, semconv.TrainingStepOld} {
		if v, ok := attrs.Get(key); ok {
			return v.AsString(), true
		}
	}
	return "", false
}

func (c *clocks) keep(key uint64, name string, end int64) {
	node, ok := c.nodes[name]
	if !ok {
		if len(c.nodes) >= maxNodes {
			return
		}
		node = len(c.nodes)
		c.nodes[name] = node
	}
	i := slices.IndexFunc(c.rounds[key], func(r *round) bool { return max(end-r.at, r.at-end) <= int64(maxOffset) })
	if i < 0 {
		i = len(c.rounds[key])
		c.rounds[key] = append(c.rounds[key], &round{at: end})
	}
	r := c.rounds[key][i]
	if more := node + 1 - len(r.ends); more > 0 {
		r.ends = append(r.ends, make([]int64, more)...)
		c.ends += more
	}
	if r.ends[node] == 0 || end < r.ends[node] {
		r.ends[node] = end
	}
	for c.ends > maxEnds && c.mask != math.MaxUint64 {
		c.thin()
	}
}

// thin leaves out every second step, of all nodes the same ones.
func (c *clocks) thin() {
	c.mask, c.ends = c.mask<<1|1, 0
	for key, rounds := range c.rounds {
		if key&c.mask != 0 {
			delete(c.rounds, key)
			continue
		}
		for _, r := range rounds {
			c.ends += len(r.ends)
		}
	}
}

// solve finds the offsets of the nodes; the first of them that can be compared is the reference.
func (c *clocks) solve(nodes []string, apply bool) Clocks {
	found := Clocks{Applied: apply}
	rounds := c.comparable()
	offsets, residuals := c.polish(rounds)
	reference := -1
	for _, name := range nodes {
		if n, ok := c.nodes[name]; ok && len(residuals[n]) >= minSteps {
			reference, found.Reference = n, name
			break
		}
	}
	if reference < 0 {
		found.Unknown = len(nodes)
		return found
	}
	together := connected(rounds, len(c.nodes), reference)
	for _, name := range nodes {
		n, ok := c.nodes[name]
		if !ok || len(residuals[n]) < minSteps || !together[n] {
			found.Unknown++
			continue
		}
		clock := NodeClock{Node: name, Steps: len(residuals[n])}
		if n != reference {
			clock.Offset = time.Duration(offsets[n] - offsets[reference])
			clock.Error = time.Duration(worst(residuals[n]) + worst(residuals[reference]))
		}
		found.Nodes = append(found.Nodes, clock)
	}
	found.Steps, found.Spans = len(rounds), fmt.Sprint(c.globs)
	return found
}

// comparable are the rounds that more than one node took part in.
func (c *clocks) comparable() []*round {
	var rounds []*round
	for _, of := range c.rounds {
		for _, r := range of {
			if taking(r) > 1 {
				rounds = append(rounds, r)
			}
		}
	}
	return rounds
}

func taking(r *round) (n int) {
	for _, end := range r.ends {
		if end != 0 {
			n++
		}
	}
	return n
}

// polish is Tukey's median polish: the end of a round is the median of its nodes' ends less their offsets, the offset of a node the
// median over its rounds of its end less the round's.
func (c *clocks) polish(rounds []*round) (offsets []int64, residuals [][]int64) {
	offsets, residuals = make([]int64, len(c.nodes)), make([][]int64, len(c.nodes))
	var ends []int64
	for range polishes {
		for n := range residuals {
			residuals[n] = residuals[n][:0]
		}
		for _, r := range rounds {
			ends = ends[:0]
			for n, end := range r.ends {
				if end != 0 {
					ends = append(ends, end-r.at-offsets[n])
				}
			}
			true := median(ends)
			for n, end := range r.ends {
				if end != 0 {
					residuals[n] = append(residuals[n], end-r.at-offsets[n]-true)
				}
			}
		}
		for n, of := range residuals {
			if len(of) > 0 {
				shift := median(of)
				offsets[n] += shift
				for i := range of {
					of[i] -= shift
				}
			}
		}
	}
	return offsets, residuals
}

// median sorts its argument.
func median(of []int64) int64 {
	slices.Sort(of)
	if n := len(of); n%2 == 0 {
		return (of[n/2-1] + of[n/2]) / 2
	}
	return of[len(of)/2]
}

// worst is what nineteen of twenty residuals are not beyond.
func worst(of []int64) int64 {
	sizes := make([]int64, len(of))
	for i, r := range of {
		sizes[i] = max(r, -r)
	}
	slices.Sort(sizes)
	return sizes[(len(sizes)*19+19)/20-1]
}

// connected tells which nodes share rounds with one, be it by way of others.
func connected(rounds []*round, nodes, with int) []bool {
	in := make([]bool, nodes)
	in[with] = true
	for grown := true; grown; {
		grown = false
		for _, r := range rounds {
			if !slices.ContainsFunc(r.members(), func(n int) bool { return in[n] }) {
				continue
			}
			for _, n := range r.members() {
				grown = grown || !in[n]
				in[n] = true
			}
		}
	}
	return in
}

func (r *round) members() (nodes []int) {
	for n, end := range r.ends {
		if end != 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
