// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/clocks"
	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// Clocks is what was found out about the clocks of the nodes. The reference is, of those that can be compared, the node of the lowest rank.
type Clocks struct {
	clocks.Estimate
	Applied bool   // offsets are taken off
	Spans   string // the names whose ends were compared
	Unknown int    // nodes that share too few ends with the reference
}

// maxOffset is how far apart the ends of one step may be. What is farther apart is another attempt's.
const maxOffset = 5 * time.Second

// defaultClockSpans are the iterations of Megatron in both generations, new names.
var defaultClockSpans = []string{"nv.dl.training.iteration"}

var toNewSpan = semconv.ToNew(semconv.Spans())

// stepEnds collects the ends of spans that end on all ranks at once.
type stepEnds struct {
	*clocks.Ends
	globs []string
}

func newStepEnds(globs []string) stepEnds {
	if len(globs) == 0 {
		globs = defaultClockSpans
	}
	return stepEnds{clocks.New(maxOffset), globs}
}

func (e stepEnds) add(src *source, span ptrace.Span) {
	if src.node == "" || src.process.key.rank < 0 || span.EndTimestamp() == 0 || span.Status().Code() == ptrace.StatusCodeError {
		return
	}
	name := span.Name()
	if renamed, ok := toNewSpan.Rename(name); ok {
		name = renamed
	}
	if !slices.ContainsFunc(e.globs, func(glob string) bool { return ranks.Matches(glob, name) || ranks.Matches(glob, span.Name()) }) {
		return
	}
	step, ok := stepOf(span.Attributes())
	if _, cut := span.Attributes().Get(semconv.SpanTruncated); !ok || cut {
		return
	}
	e.Add(fmt.Sprintf("%q %q %s", src.process.key.run, name, step), src.node, nanoseconds(span.EndTimestamp()))
}

func stepOf(attrs pcommon.Map) (string, bool) {
	for _, key := range []string{semconv.TrainingStep, semconv.TrainingStepOld} {
		if v, ok := attrs.Get(key); ok {
			return v.AsString(), true
		}
	}
	return "", false
}

// solve finds the offsets of nodes, which stand in the order of their ranks.
func (e stepEnds) solve(nodes []string, apply bool) Clocks {
	found := Clocks{Estimate: e.Estimate(nodes), Applied: apply}
	if found.Unknown = len(nodes) - len(found.Nodes); found.Reference != "" {
		found.Spans = fmt.Sprint(e.globs)
	}
	return found
}
