// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"encoding/binary"
	"hash/fnv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// flows are the arrows from the span that is linked to to the span that has the link. Perfetto ties the slices that carry the same
// flow id together, in the order of time: two links to one span need two ids, or the second arrow would begin at the end of the
// first. So a span must carry as many ids as there are links to it, which is known after all were read.
type flows struct {
	targets map[uint64]target // by the hash of the trace id and span id that are linked to
	crowded int64             // links beyond maxTargets
	drawn   int64             // whose both ends are drawn
}

type target struct {
	links uint32 // to it
	taken uint32 // of them, drawn
	left  bool   // the span itself was drawn
}

// maxTargets bounds what is kept of links, to about 10 MB.
const maxTargets = 1 << 18

func (f *flows) add(link ptrace.SpanLink) {
	key := flowKey(link.TraceID(), link.SpanID())
	t, ok := f.targets[key]
	if !ok && len(f.targets) >= maxTargets {
		f.crowded++
		return
	}
	t.links++
	f.targets[key] = t
}

// appendFrom appends the ids of the flows that begin at a span.
func (f *flows) appendFrom(ids []uint64, span ptrace.Span) []uint64 {
	if len(f.targets) == 0 {
		return ids
	}
	key := flowKey(span.TraceID(), span.SpanID())
	t, ok := f.targets[key]
	if !ok || t.left { // A span that is there twice.
		return ids
	}
	for i := range t.links {
		ids = append(ids, flowID(key, i))
	}
	t.left = true
	f.targets[key] = t
	f.drawn += int64(t.links)
	return ids
}

// appendTo appends the ids of the flows that end at a span.
func (f *flows) appendTo(ids []uint64, span ptrace.Span) []uint64 {
	for _, link := range span.Links().All() {
		key := flowKey(link.TraceID(), link.SpanID())
		if t, ok := f.targets[key]; ok {
			ids = append(ids, flowID(key, t.taken))
			t.taken++
			f.targets[key] = t
		}
	}
	return ids
}

func flowKey(trace pcommon.TraceID, span pcommon.SpanID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(trace[:]) // Never fails (hash.Hash).
	_, _ = h.Write(span[:])
	return h.Sum64()
}

// flowID is never 0, which stands for none.
func flowID(key uint64, number uint32) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, key), number)) // Never fails.
	return h.Sum64() | 1
}
