// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// span is a span being shaped. What it holds is shared with the batch that it was read from, which nobody may write to: a repair puts
// another value in its place.
type span struct {
	trace      pcommon.TraceID
	id, parent pcommon.SpanID
	state      string
	name       string
	kind       ptrace.SpanKind
	start, end pcommon.Timestamp
	attrs      []attr
	events     []event
	links      []link
	code       ptrace.StatusCode
	message    string
	flags      uint32

	droppedAttrs, droppedEvents, droppedLinks uint32
}

// attr is an attribute. The same key may be there twice until repeated has run.
type attr struct {
	key string
	val pcommon.Value
}

type event struct {
	time    pcommon.Timestamp
	name    string
	attrs   []attr
	dropped uint32
}

type link struct {
	trace   pcommon.TraceID
	id      pcommon.SpanID
	state   string
	attrs   []attr
	dropped uint32
	flags   uint32
}

// load reads in into s, and keeps the memory of the span that was in s.
func (s *span) load(in ptrace.Span) {
	status := in.Status()
	*s = span{
		trace: in.TraceID(), id: in.SpanID(), parent: in.ParentSpanID(), state: in.TraceState().AsRaw(), name: in.Name(), kind: in.Kind(),
		start: in.StartTimestamp(), end: in.EndTimestamp(), code: status.Code(), message: status.Message(), flags: in.Flags(),
		attrs: appendMap(s.attrs[:0], in.Attributes()), events: s.events[:0], links: s.links[:0],
		droppedAttrs: in.DroppedAttributesCount(), droppedEvents: in.DroppedEventsCount(), droppedLinks: in.DroppedLinksCount(),
	}
	for _, e := range in.Events().All() {
		s.events = append(s.events, event{time: e.Timestamp(), name: e.Name(), attrs: appendMap(nil, e.Attributes()), dropped: e.DroppedAttributesCount()})
	}
	for _, l := range in.Links().All() {
		s.links = append(s.links, link{
			trace: l.TraceID(), id: l.SpanID(), state: l.TraceState().AsRaw(), attrs: appendMap(nil, l.Attributes()),
			dropped: l.DroppedAttributesCount(), flags: l.Flags(),
		})
	}
}

// forget lets go of what s shares with a batch.
func (s *span) forget() {
	if cap(s.attrs)+cap(s.events)+cap(s.links) > maxKeptSpans {
		*s = span{}
		return
	}
	clear(s.attrs[:cap(s.attrs)])
	clear(s.events[:cap(s.events)])
	clear(s.links[:cap(s.links)])
	*s = span{attrs: s.attrs[:0], events: s.events[:0], links: s.links[:0]}
}

func appendMap(list []attr, m pcommon.Map) []attr {
	for key, val := range m.All() {
		list = append(list, attr{key, val})
	}
	return list
}

// find returns where key stands in list for the last time, the one that counts; -1 if nowhere.
func find(list []attr, key string) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].key == key {
			return i
		}
	}
	return -1
}

// findMoved is find, also if resolved has moved the key.
func findMoved(list []attr, key string) int {
	if i := find(list, key); i >= 0 {
		return i
	}
	return find(list, key+leafPart)
}

// text is the attribute of a key added by shaping.
func text(key, value string) attr { return attr{key, pcommon.NewValueStr(value)} }

func integer(key string, value int64) attr { return attr{key, pcommon.NewValueInt(value)} }

// Keys that shaping adds. What could not stay where it was is under originalPrefix; the bytes of what was cut are under truncatedPrefix.
const (
	originalPrefix  = "lenscol.original."
	truncatedPrefix = "lenscol.truncated."
	attributesKey   = "wandb.attributes"
	attributesUnder = attributesKey + "."
)
