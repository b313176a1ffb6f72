// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pipeline"
)

// maxSameTime bounds the items of one time that are ordered together.
const maxSameTime = 1 << 14

// nest orders items of one time so that a span comes before what it holds: the longer one first, of equally long ones the parent.
// (A span is exported before its parent, and NeMo Lens's console has microseconds, so that many begin at once.)
func nest(same []item) {
	if len(same) < 2 {
		return
	}
	depth := depths(same)
	order := make([]int, len(same))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(same[b].end(), same[a].end()), cmp.Compare(depth[a], depth[b]))
	})
	sorted := make([]item, len(same))
	for i, from := range order {
		sorted[i] = same[from]
	}
	copy(same, sorted)
}

// depths counts the ancestors of every span among the items. A circle of parents counts up to where it closes.
func depths(same []item) []int {
	at := make(map[pcommon.SpanID]int, len(same))
	for i := range same {
		if same[i].signal == pipeline.SignalTraces && !same[i].span.SpanID().IsEmpty() {
			at[same[i].span.SpanID()] = i
		}
	}
	const unknown, inHand = 0, -1
	depth := make([]int, len(same)) // 1 for what has no ancestor here
	var path []int
	for i := range same {
		path = path[:0]
		j, ok := i, true
		for ok && depth[j] == unknown {
			depth[j] = inHand
			path = append(path, j)
			ok = false
			if same[j].signal == pipeline.SignalTraces {
				var parent int
				if parent, ok = at[same[j].span.ParentSpanID()]; ok {
					j = parent
				}
			}
		}
		above := 0
		if ok && depth[j] != inHand {
			above = depth[j]
		}
		for k := len(path) - 1; k >= 0; k-- {
			above++
			depth[path[k]] = above
		}
	}
	return depth
}
