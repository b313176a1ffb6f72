// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"fmt"
	"time"

	"github.com/lenscol/lenscol/internal/clocks"
)

// notesTrack is the track on which the trace says how it was made.
const notesTrack = "lenscol: clocks"

// notesOf is what a trace says of its clocks, as instants at its begin: one for all, one for every node.
func notesOf(c Clocks) []slice {
	notes := []slice{{name: c.Sentence(), categories: []string{"clock"}, args: []arg{
		{"applied", c.Applied}, {"reference", c.Reference}, {"spans", c.Spans}, {"steps", int64(c.Steps)}, {"nodes", int64(len(c.Nodes))},
		{"nodes_unknown", int64(c.Unknown)},
	}}}
	for _, n := range c.Nodes {
		notes = append(notes, slice{name: n.Node + ": " + label(n), categories: []string{"clock"}, args: []arg{
			{"node", n.Node}, {"offset_ns", n.Offset.Nanoseconds()}, {"error_ns", n.Error.Nanoseconds()}, {"steps", int64(n.Steps)},
			{"applied", c.Applied},
		}})
	}
	return notes
}

// label is what a clock is corrected by.
func label(n clocks.Node) string {
	return fmt.Sprintf("clock %+.3f ms ± %.3f ms", milliseconds(n.Offset), milliseconds(n.Error))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Sentence says what was found out about the clocks.
func (c Clocks) Sentence() string {
	var most, worst clocks.Node
	for _, n := range c.Nodes {
		if max(n.Offset, -n.Offset) > max(most.Offset, -most.Offset) {
			most = n
		}
		if n.Error > worst.Error {
			worst = n
		}
	}
	switch {
	case len(c.Nodes) == 0:
		return "clocks are as they came: no step ends on two nodes of known name"
	case c.Applied:
		return fmt.Sprintf("clocks of %d nodes corrected by up to %.3f ms, ± %.3f ms, against %s", len(c.Nodes), milliseconds(max(most.Offset, -most.Offset)), milliseconds(worst.Error), c.Reference)
	}
	return fmt.Sprintf("clocks of %d nodes are off by up to %.3f ms, ± %.3f ms, against %s, and are as they came", len(c.Nodes), milliseconds(max(most.Offset, -most.Offset)), milliseconds(worst.Error), c.Reference)
}
