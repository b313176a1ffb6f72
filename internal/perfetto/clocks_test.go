// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/perfetto"
	"github.com/lenscol/lenscol/internal/simrun"
)

// TestOffsetsLieWithinTheStatedErrorOfTheTruth: and that error is of the size of what a rank needs to see the end of a step, so that it says something.
func TestOffsetsLieWithinTheStatedErrorOfTheTruth(t *testing.T) {
	for name, change := range map[string]func(*simrun.Config){
		"default":       func(*simrun.Config) {},
		"new names":     func(c *simrun.Config) { c.Generation = simrun.NewNames },
		"64 ranks":      func(c *simrun.Config) { c.Ranks, c.RanksPerNode = 64, 8 },
		"rank per node": func(c *simrun.Config) { c.RanksPerNode = 1 },
		"a second off":  func(c *simrun.Config) { c.MaxOffset = time.Second },
		"no offset":     func(c *simrun.Config) { c.MaxOffset = 0 },
		"three crashes": func(c *simrun.Config) { c.Crashes = []int{5, 17, 33} },
		"killed":        func(c *simrun.Config) { c.Killed = true },
		"restart in 1s": func(c *simrun.Config) { c.RestartGap, c.Startup, c.LoadTime = time.Second, time.Second, 0 },
		"rough ends":    func(c *simrun.Config) { c.EndSkew = 10 * time.Millisecond },
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				skew := time.Duration(0)
				file, truth := simulated(t, func(c *simrun.Config) { change(c); c.Seed = seed; skew = c.EndSkew })
				_, summary := draw(t, file, perfetto.Options{})
				clocks := summary.Clocks
				require.Len(t, clocks.Nodes, len(truth.Nodes))
				require.Equal(t, "node000", clocks.Reference)
				require.Zero(t, clocks.Unknown)
				for _, n := range clocks.Nodes {
					want := truth.Offsets[n.Node] - truth.Offsets["node000"]
					require.InDelta(t, want, n.Offset, float64(n.Error), n.Node)
					require.LessOrEqual(t, n.Error, 2*skew, n.Node)
				}
			})
		}
	}
}

// spread is by how much the ends of one step differ at most, in nanoseconds, over all steps.
func spread(j *judged, name string) int64 {
	type bounds struct{ least, most int64 }
	steps := map[string]bounds{}
	attempt := func(s *judgedSlice) bool { return s.at > j.slices[len(j.slices)/2].at }
	for _, s := range j.named(name) {
		key := fmt.Sprint(s.args["megatron.iteration"], attempt(s))
		b, ok := steps[key]
		if !ok {
			b = bounds{s.end, s.end}
		}
		steps[key] = bounds{min(b.least, s.end), max(b.most, s.end)}
	}
	most := int64(0)
	for _, b := range steps {
		most = max(most, b.most-b.least)
	}
	return most
}

func TestClocksAreCorrectedAndNoted(t *testing.T) {
	file, truth := simulated(t, func(c *simrun.Config) { c.Crashes = nil })
	out, summary := draw(t, file, perfetto.Options{})
	corrected := mustJudge(t, out)
	out, raw := draw(t, file, perfetto.Options{RawClocks: true})
	asTheyCame := mustJudge(t, out)

	offset := int64(0)
	for _, a := range truth.Offsets {
		for _, b := range truth.Offsets {
			offset = max(offset, int64(a-b))
		}
	}
	require.Greater(t, spread(asTheyCame, "megatron.train.iteration"), offset/2)
	require.Less(t, spread(corrected, "megatron.train.iteration"), int64(600*time.Microsecond), "200 µs of skew, and the errors of two nodes")

	for node, n := range summary.Clocks.Nodes {
		for applied, j := range map[bool]*judged{true: corrected, false: asTheyCame} {
			note := j.notes()[n.Node]
			require.Equal(t, []any{int64(n.Offset), int64(n.Error), int64(40), applied},
				[]any{note.args["offset_ns"], note.args["error_ns"], note.args["steps"], note.args["applied"]}, node)
		}
	}
	require.Equal(t, "node000", corrected.notes()[""].args["reference"])
	require.Regexp(t, `^clocks of 4 nodes corrected by up to [0-9.]+ ms, ± 0\.[0-9]+ ms, against node000$`, summary.Clocks.Sentence())
	require.Regexp(t, `^clocks of 4 nodes are off by up to .* and are as they came$`, raw.Clocks.Sentence())
	require.Regexp(t, `^\[clock \+0\.000 ms ± 0\.000 ms\]$`, "["+corrected.processes[1].labels+"]")
}

// ends are the ends of one step as lines, by node: the rank is the node's number.
func ends(step int, at map[int]int64) string {
	var b strings.Builder
	for node := range 8 {
		if end, ok := at[node]; ok {
			fmt.Fprintf(&b, `{"type":"span","name":"megatron.train.iteration","start_ns":%d,"duration_ns":1000000,"attributes":{"megatron.iteration":%d},`+
				`"resource":{"attributes":{"nemo.run.id":"r1","dl.rank":%d,"host.name":"n%d"}}}`+"\n", end-1000000, step, node, node)
		}
	}
	return b.String()
}

const second = int64(time.Second)

func TestNodesThatCannotBeComparedAreLeftAlone(t *testing.T) {
	var lines strings.Builder
	for step := range 10 {
		at := int64(1000+step) * second
		lines.WriteString(ends(step, map[int]int64{0: at, 1: at + 5_000_000}))         // as it should be
		lines.WriteString(ends(step+100, map[int]int64{2: at, 3: at + 7_000_000}))     // shares no step with the first two
		lines.WriteString(ends(step+200, map[int]int64{0: at, 4: at + 60*second}))     // a minute off: no end of the same step
		lines.WriteString(ends(step+300, map[int]int64{5: at}))                        // alone
		lines.WriteString(ends(step+400, map[int]int64{1: at + 5_000_000, 6: at + 1})) // by way of node 1
	}
	lines.WriteString(ends(500, map[int]int64{0: 2000 * second, 7: 2000*second + 1})) // too few
	_, summary := draw(t, []byte(lines.String()), perfetto.Options{})
	got := map[string]time.Duration{}
	for _, n := range summary.Clocks.Nodes {
		got[n.Node] = n.Offset
	}
	require.Len(t, got, 3)
	require.InDelta(t, 5*time.Millisecond, got["n1"], 2, "halves are cut off")
	require.InDelta(t, 1, got["n6"], 2)
	require.Equal(t, 5, summary.Clocks.Unknown)
}

func TestALateEndDoesNotMoveAClock(t *testing.T) {
	var lines strings.Builder
	for step := range 21 {
		at := int64(1000+step) * second
		late := int64(0)
		if step%5 == 0 {
			late = 300_000_000
		}
		lines.WriteString(ends(step, map[int]int64{0: at, 1: at + 5_000_000 + late, 2: at - 2_000_000}))
	}
	_, summary := draw(t, []byte(lines.String()), perfetto.Options{})
	require.Equal(t, 5*time.Millisecond, summary.Clocks.Nodes[1].Offset)
	require.Equal(t, 300*time.Millisecond, summary.Clocks.Nodes[1].Error, "but it is said that it is seen")
	require.Equal(t, -2*time.Millisecond, summary.Clocks.Nodes[2].Offset)
	require.Zero(t, summary.Clocks.Nodes[2].Error)
}

func TestOtherSpansCanTellTheClocks(t *testing.T) {
	var lines strings.Builder
	for step := range 5 {
		lines.WriteString(ends(step, map[int]int64{0: int64(1000+step) * second, 1: int64(1000+step)*second + 3}))
	}
	text := strings.ReplaceAll(lines.String(), "megatron.train.iteration", "my.all_reduce")
	_, none := draw(t, []byte(text), perfetto.Options{})
	require.Empty(t, none.Clocks.Nodes)
	require.Equal(t, "clocks are as they came: no step ends on two nodes of known name", none.Clocks.Sentence())
	_, some := draw(t, []byte(text), perfetto.Options{ClockSpans: []string{"my.*"}})
	require.EqualValues(t, 3, some.Clocks.Nodes[1].Offset)
}
