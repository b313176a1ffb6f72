// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const second = int64(time.Second)

func named(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	return names
}

// Node by node, as files of nodes are read: what is held is bounded, and the offsets are found all the same.
func TestOffsetsOfALongRun(t *testing.T) {
	for _, nodes := range []int{1, 64, 1024} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			e := New(5 * time.Second)
			for node := range nodes {
				for step := range 1 << 19 / nodes {
					e.Add(fmt.Sprint(step), fmt.Sprintf("n%d", node), 1e18+second*int64(step)+int64(1000*node+step%7))
				}
				require.Less(t, len(e.ends), maxEnds)
			}
			found := e.Estimate(named(nodes))
			if nodes == 1 {
				require.Equal(t, Estimate{}, found)
				return
			}
			require.Greater(t, found.Steps, 64)
			require.Len(t, found.Nodes, nodes)
			for node, n := range found.Nodes {
				require.EqualValues(t, 1000*node, n.Offset)
				require.Equal(t, found.Steps, n.Steps)
			}
		})
	}
}

// What nodes of other runs have in common costs those of one run nothing.
func TestManyRunsOnNodesOfTheirOwn(t *testing.T) {
	e := New(5 * time.Second)
	const runs, nodes = 100, 64
	for run := range runs {
		for node := range nodes {
			for step := range 60 {
				e.Add(fmt.Sprint(run, "/", step), fmt.Sprintf("n%d", run*nodes+node), 1e18+second*int64(step)+int64(1000*node))
			}
		}
	}
	found := e.Estimate(named(runs * nodes))
	require.Len(t, found.Nodes, nodes, "those of the first run")
	for node, n := range found.Nodes {
		require.EqualValues(t, 1000*node, n.Offset)
	}
}

// Each attempt has one node in common with the next: the clocks at both ends of the chain are compared by way of all others.
func TestNodesThatShareStepsWithNeighboursAlone(t *testing.T) {
	e := New(5 * time.Second)
	const nodes = 12
	for attempt := range nodes - 1 {
		for step := range 20 {
			at := 1e18 + second*int64(100*attempt+step)
			for node := attempt; node <= attempt+1; node++ {
				e.Add(fmt.Sprint(attempt, " ", step), fmt.Sprintf("n%d", node), at+int64(node)*1_000_000)
			}
		}
	}
	found := e.Estimate(named(nodes))
	require.Len(t, found.Nodes, nodes)
	for node, n := range found.Nodes {
		require.InDelta(t, node*1_000_000, n.Offset, float64(n.Error)+nodes, n.Node)
		require.LessOrEqual(t, n.Error, 100*time.Microsecond, n.Node)
	}
}

func TestTheOrderOfEndsDoesNotMatter(t *testing.T) {
	type seen struct {
		step, node string
		at         int64
	}
	random := rand.New(rand.NewPCG(1, 2))
	var all []seen
	for step := range 50 {
		for rank := range 32 {
			node := rank / 8
			all = append(all, seen{fmt.Sprint(step % 40), fmt.Sprintf("n%d", node), 1e18 + second*int64(10*step) + int64(node)*3_000_000 + random.Int64N(200_000)})
		}
	}
	var want Estimate
	for i := range 5 {
		e := New(5 * time.Second)
		for _, s := range all {
			e.Add(s.step, s.node, s.at)
		}
		got := e.Estimate(named(4))
		if i == 0 {
			want = got
			require.Equal(t, 50, got.Steps, "ten of them done again")
			for node, n := range got.Nodes {
				require.InDelta(t, 3_000_000*node, n.Offset, float64(n.Error))
				require.LessOrEqual(t, n.Residual, n.Error)
			}
		}
		require.Equal(t, want, got)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
}

// The residual is that of most steps, the error that of the worst.
func TestALateEndShowsInTheErrorAlone(t *testing.T) {
	e := New(5 * time.Second)
	for step := range 21 {
		at, late := second*int64(step+1), int64(0)
		if step%5 == 0 {
			late = 300_000_000
		}
		e.Add(fmt.Sprint(step), "n0", at)
		e.Add(fmt.Sprint(step), "n1", at+5_000_000+late)
		e.Add(fmt.Sprint(step), "n2", at-2_000_000)
		e.Add(fmt.Sprint(step), "", at)
	}
	require.Equal(t, []Node{
		{Node: "n0", Steps: 21}, {Node: "n1", Offset: 5 * time.Millisecond, Error: 300 * time.Millisecond, Steps: 21}, {Node: "n2", Offset: -2 * time.Millisecond, Steps: 21},
	}, e.Estimate([]string{"n0", "", "n1", "n2", "nowhere"}).Nodes)
}
