// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package clocks tells by how much the clocks of nodes differ.
//
// A training step ends with collectives, which no rank can leave before all have entered them. So the same step ends on all ranks
// within the time that a rank needs to notice, and what its ends differ by between two nodes, time and again, is what their clocks
// differ by. The offset of a node is the median over many steps; an end that came late (a log line, a garbage collection) moves it
// little. It is taken as constant: what a clock drifts during the run shows in the residual.
package clocks // import "github.com/lenscol/lenscol/internal/clocks"

import (
	"cmp"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"time"
)

// Estimate is what was found out about the clocks of nodes.
type Estimate struct {
	Reference string // the node whose clock is taken for true; "" where no two clocks can be compared
	Steps     int    // that several nodes took part in
	Nodes     []Node // those that can be compared with the reference, itself among them
}

// Node is the clock of one node against the reference's.
type Node struct {
	Node   string
	Offset time.Duration // what the node's clock shows, minus what the reference's does
	// Residual and Error are how far the offset may be off: what is left of the differences of the node and of the reference together, in the
	// median step and in the worst of twenty. What delays a node's ends by the same time in every step cannot be told from an offset, and
	// is in neither.
	Residual, Error time.Duration
	Steps           int // that were compared
}

const (
	// maxEnds bounds the ends that are held, to some 6 MB. Beyond it only every second step is kept, then every fourth, and so on.
	maxEnds  = 1 << 18
	maxNodes = 1 << 14
	// minSteps is how many ends a node must share with others.
	minSteps = 3
	// polishes is how often offsets and the steps' true ends are found from one another, once all nodes are there. Where all are in all
	// steps once is enough.
	polishes = 8
)

// Ends collects the ends of steps, on one goroutine.
type Ends struct {
	apart int64
	nodes map[string]int
	ends  []end
	mask  uint64 // of the hashes of steps; those that it leaves over are not kept
}

type end struct {
	step uint64 // its hash
	at   int64
	node int
}

// New begins a collection. Ends of one step that are more than apart from each other are those of several attempts.
func New(apart time.Duration) *Ends { return &Ends{apart: int64(apart), nodes: map[string]int{}} }

// Add takes the end of a step on a node, in nanoseconds since 1970 by its clock. What step names must be the same on all nodes.
func (e *Ends) Add(step, node string, at int64) {
	h := fnv.New64a()
	_, _ = io.WriteString(h, step) // Never fails (hash.Hash).
	if node == "" || h.Sum64()&e.mask != 0 {
		return
	}
	n, ok := e.nodes[node]
	if !ok {
		if len(e.nodes) >= maxNodes {
			return
		}
		n = len(e.nodes)
		e.nodes[node] = n
	}
	e.ends = append(e.ends, end{h.Sum64(), at, n})
	if len(e.ends) < maxEnds {
		return
	}
	e.rounds()
	for len(e.ends) > maxEnds/4*3 && e.mask != math.MaxUint64 { // So that there is room for more than a few.
		e.mask = e.mask<<1 | 1
		e.ends = slices.DeleteFunc(e.ends, func(x end) bool { return x.step&e.mask != 0 })
	}
}

// rounds leaves of each step of one attempt the first end on each node, and returns those that have several.
func (e *Ends) rounds() (rounds [][]end) {
	slices.SortFunc(e.ends, func(a, b end) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node))
	})
	kept, begin := e.ends[:0], 0
	in := make([]int, len(e.nodes)) // the last round that a node is in, counted from 1 by where it begins
	closeRound := func() {
		if len(kept)-begin > 1 {
			rounds = append(rounds, kept[begin:len(kept):len(kept)])
		}
		begin = len(kept)
	}
	for _, x := range e.ends {
		if first := kept[begin:]; len(first) > 0 && (x.step != first[0].step || x.at-first[0].at > e.apart) {
			closeRound()
		}
		if in[x.node] != begin+1 {
			in[x.node] = begin + 1
			kept = append(kept, x)
		}
	}
	closeRound()
	e.ends = kept
	return rounds
}

// Estimate finds the offsets of nodes. The first of them that shares enough steps with others is the reference.
func (e *Ends) Estimate(nodes []string) (found Estimate) {
	rounds := e.rounds()
	steps := make([]int, len(e.nodes))
	for _, r := range rounds {
		for _, x := range r {
			steps[x.node]++
		}
	}
	first := slices.IndexFunc(nodes, func(name string) bool { n, ok := e.nodes[name]; return ok && steps[n] >= minSteps })
	if first < 0 {
		return found
	}
	reference := e.nodes[nodes[first]]
	offsets, residuals := polish(rounds, len(e.nodes), reference)
	for _, name := range nodes[first:] {
		n, ok := e.nodes[name]
		if !ok || len(residuals[n]) < minSteps {
			continue
		}
		node := Node{Node: name, Steps: len(residuals[n])}
		if n != reference {
			node.Offset = time.Duration(offsets[n] - offsets[reference])
			node.Residual = time.Duration(within(residuals[n], 50) + within(residuals[reference], 50))
			node.Error = time.Duration(within(residuals[n], 95) + within(residuals[reference], 95))
		}
		found.Nodes = append(found.Nodes, node)
	}
	if len(found.Nodes) > 0 {
		found.Reference, found.Steps = nodes[first], len(rounds)
	}
	return found
}

// polish is Tukey's median polish: the end of a round is the median of its nodes' ends less their offsets, the offset of a node the
// median over its rounds of its end less the round's. It begins with one node, and goes on to those that share enough rounds with the
// nodes it has. It returns what is left of each node's ends in rounds with others.
func polish(rounds [][]end, nodes, first int) (offsets []int64, residuals [][]int64) {
	offsets, residuals = make([]int64, nodes), make([][]int64, nodes)
	known := make([]bool, nodes)
	known[first] = true
	var ends []int64
	for left := polishes; left > 0; left-- {
		for n := range residuals {
			residuals[n] = residuals[n][:0]
		}
		for _, r := range rounds {
			ends = ends[:0]
			for _, x := range r {
				if known[x.node] {
					ends = append(ends, x.at-r[0].at-offsets[x.node])
				}
			}
			if len(ends) == 0 {
				continue
			}
			all := median(ends)
			for _, x := range r {
				if len(ends) > 1 || !known[x.node] {
					residuals[x.node] = append(residuals[x.node], x.at-r[0].at-offsets[x.node]-all)
				}
			}
		}
		for n, of := range residuals {
			if len(of) < minSteps {
				continue
			}
			if !known[n] {
				known[n], left = true, polishes
			}
			shift := median(of)
			offsets[n] += shift
			for i := range of {
				of[i] -= shift
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

// within is what so many percent of the residuals are not beyond.
func within(of []int64, percent int) int64 {
	sizes := make([]int64, len(of))
	for i, r := range of {
		sizes[i] = max(r, -r)
	}
	slices.Sort(sizes)
	return sizes[(len(sizes)*percent+99)/100-1]
}
