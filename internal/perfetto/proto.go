// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"fmt"
	"io"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"google.golang.org/protobuf/encoding/protowire"
)

// protoSink writes Perfetto's own format, a stream of TracePackets, as one sequence.
//
// Names are written once and then called by number (interning). As soon as maxInterned are known the sequence begins anew, so that
// names that never come again cost no memory, here and in the reader.
type protoSink struct {
	w      io.Writer
	failed error

	packet   []byte
	event    []byte
	framed   []byte
	tables   [3]map[string]uint64 // of internedCategories, internedNames and internedAnnotationNames
	interned int
	fresh    []byte // InternedData of the packet in hand
	cleared  bool   // the packet in hand begins the sequence anew
}

const (
	maxInterned     = 1 << 13
	maxInternedText = 256 // longer ones are written as they are

	sequence = 1
)

func newProtoSink(w io.Writer) *protoSink {
	s := &protoSink{w: w}
	s.reset()
	return s
}

func (s *protoSink) err() error { return s.failed }

func (s *protoSink) reset() {
	for i := range s.tables {
		s.tables[i] = map[string]uint64{}
	}
	s.interned, s.cleared = 0, true
}

// begin writes what a reader must know before all else: that the clock of the timestamps, BOOTTIME as that is the default, is the time
// of day, and that processes and threads stand in the order that their tracks say (the track 0 has no line of its own).
func (s *protoSink) begin(first int64, clocks Clocks) {
	snapshot := appendMessage(nil, packetClockSnapshot, func(b []byte) []byte {
		for _, id := range []uint64{clockBoottime, clockRealtime} {
			b = appendMessage(b, snapshotClocks, func(b []byte) []byte {
				return appendVarint(appendVarint(b, clockID, id), clockTimestamp, uint64(first))
			})
		}
		return appendVarint(b, snapshotPrimary, clockBoottime)
	})
	s.write(appendVarint(snapshot, packetTimestamp, uint64(first)))
	s.descriptor(func(b []byte) []byte {
		b = appendVarint(b, trackUUID, 0)
		b = appendVarint(b, trackProcessOrdering, orderingExplicit)
		return appendVarint(b, trackThreadOrdering, orderingExplicit)
	})
	notes := &track{kind: trackNotes, id: 1, name: notesTrack}
	s.descriptor(func(b []byte) []byte {
		return appendString(appendVarint(b, trackUUID, notes.uuid()), trackName, notes.name)
	})
	for _, note := range notesOf(clocks) {
		s.instant(notes, first, &note)
	}
}

func (s *protoSink) process(p *process) {
	s.descriptor(func(b []byte) []byte {
		b = appendVarint(b, trackUUID, processTrack(p))
		b = appendVarint(b, trackSiblingRank, uint64(p.pid))
		return appendMessage(b, trackProcessPart, func(b []byte) []byte {
			b = appendVarint(b, processPID, uint64(p.pid))
			b = appendVarint(b, processSortIndex, uint64(p.pid))
			b = appendString(b, processName, clean(p.name))
			if p.label != "" {
				b = appendString(b, processLabels, clean(p.label))
			}
			return b
		})
	})
}

func processTrack(p *process) uint64 { return (&track{kind: trackProcess, id: uint64(p.pid)}).uuid() }

func (s *protoSink) lane(t *track) {
	s.descriptor(func(b []byte) []byte {
		b = appendVarint(b, trackUUID, t.uuid())
		b = appendVarint(b, trackParent, processTrack(t.process))
		b = appendVarint(b, trackSiblingRank, uint64(int64(t.rank)))
		return appendMessage(b, trackThread, func(b []byte) []byte {
			b = appendVarint(b, threadPID, uint64(t.process.pid))
			b = appendVarint(b, threadTID, t.id)
			b = appendVarint(b, threadSortIndex, uint64(int64(t.rank)))
			return appendString(b, threadName, t.name)
		})
	})
}

func (s *protoSink) counterTrack(c *series) {
	s.descriptor(func(b []byte) []byte {
		b = appendVarint(b, trackUUID, c.uuid())
		b = appendVarint(b, trackParent, processTrack(c.track.process))
		b = appendString(b, trackName, clean(c.name))
		return appendMessage(b, trackCounterPart, func(b []byte) []byte {
			switch c.unit {
			case "":
				return b
			case "ns":
				return appendVarint(b, counterUnit, unitTimeNS)
			case "By":
				return appendVarint(b, counterUnit, unitSizeBytes)
			}
			return appendString(b, counterUnitName, clean(c.unit))
		})
	})
}

func (s *protoSink) slice(t *track, at, _ int64, of *slice) { s.namedEvent(t, at, typeSliceBegin, of) }
func (s *protoSink) instant(t *track, at int64, of *slice)  { s.namedEvent(t, at, typeInstant, of) }
func (s *protoSink) end(t *track, at int64)                 { s.emit(t, at, typeSliceEnd, nil) }

func (s *protoSink) count(c *series, at int64, value float64, whole int64, isWhole bool) {
	if isWhole {
		s.emit(c.track, at, typeCounter, appendVarint(nil, eventCounterValue, uint64(whole)))
		return
	}
	s.emit(c.track, at, typeCounter, appendDouble(nil, eventCounterDouble, value))
}

func (s *protoSink) finish() {}

func (s *protoSink) namedEvent(t *track, at int64, kind uint64, of *slice) {
	if s.interned >= maxInterned {
		s.reset()
	}
	b := s.event[:0]
	for _, category := range of.categories {
		if iid, ok := s.intern(internedCategories, category); ok {
			b = appendVarint(b, eventCategoryIIDs, iid)
		} else {
			b = appendString(b, eventCategories, clean(category))
		}
	}
	if iid, ok := s.intern(internedNames, of.name); ok {
		b = appendVarint(b, eventNameIID, iid)
	} else {
		b = appendString(b, eventName, clean(of.name))
	}
	for _, a := range of.args {
		b = appendMessage(b, eventAnnotations, func(b []byte) []byte {
			if iid, ok := s.intern(internedAnnotationNames, a.key); ok {
				b = appendVarint(b, annotationNameIID, iid)
			} else {
				b = appendString(b, annotationName, clean(a.key))
			}
			return appendAnnotation(b, a.value, 0)
		})
	}
	for _, ids := range [][]uint64{of.from, of.to} {
		for _, id := range ids {
			b = protowire.AppendFixed64(protowire.AppendTag(b, eventFlows, protowire.Fixed64Type), id)
		}
	}
	s.event = b[:0]
	s.emit(t, at, kind, b)
}

// intern is the number of a text, given now where it is new.
func (s *protoSink) intern(table protowire.Number, text string) (uint64, bool) {
	names := s.tables[table-internedCategories]
	if iid, ok := names[text]; ok {
		return iid, true
	}
	if text == "" || len(text) > maxInternedText {
		return 0, false
	}
	iid := uint64(len(names) + 1)
	names[text] = iid
	s.interned++
	s.fresh = appendMessage(s.fresh, table, func(b []byte) []byte {
		return appendString(appendVarint(b, internedIID, iid), internedName, clean(text))
	})
	return iid, true
}

func appendAnnotation(b []byte, value any, depth int) []byte {
	switch v := value.(type) {
	case string:
		return appendString(b, annotationString, clean(v))
	case int64:
		return appendVarint(b, annotationInt, uint64(v))
	case bool:
		return appendVarint(b, annotationBool, protowire.EncodeBool(v))
	case float64:
		return appendDouble(b, annotationDouble, v)
	case pcommon.Value:
		return appendValue(b, v, depth)
	}
	return b
}

func appendValue(b []byte, v pcommon.Value, depth int) []byte {
	switch v.Type() {
	case pcommon.ValueTypeBool:
		return appendAnnotation(b, v.Bool(), depth)
	case pcommon.ValueTypeInt:
		return appendAnnotation(b, v.Int(), depth)
	case pcommon.ValueTypeDouble:
		return appendAnnotation(b, v.Double(), depth)
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		if depth >= maxDepth {
			return appendString(b, annotationString, cutValue)
		}
	default:
		return appendString(b, annotationString, clean(v.AsString()))
	}
	if v.Type() == pcommon.ValueTypeSlice {
		for _, element := range v.Slice().All() {
			b = appendMessage(b, annotationArray, func(b []byte) []byte { return appendValue(b, element, depth+1) })
		}
		return b
	}
	for key, element := range v.Map().All() {
		b = appendMessage(b, annotationDict, func(b []byte) []byte {
			return appendValue(appendString(b, annotationName, clean(key)), element, depth+1)
		})
	}
	return b
}

// emit writes an event on a track; fields are those of its kind.
func (s *protoSink) emit(t *track, at int64, kind uint64, fields []byte) {
	b := appendVarint(s.packet[:0], packetTimestamp, uint64(max(at, 0)))
	b = appendMessage(b, packetTrackEvent, func(b []byte) []byte {
		b = appendVarint(appendVarint(b, eventType, kind), eventTrack, t.uuid())
		return append(b, fields...)
	})
	if len(s.fresh) > 0 {
		b = protowire.AppendBytes(protowire.AppendTag(b, packetInterned, protowire.BytesType), s.fresh)
		s.fresh = s.fresh[:0]
	}
	s.packet = b[:0]
	s.write(b)
}

func (s *protoSink) descriptor(fields func([]byte) []byte) {
	s.write(appendMessage(s.packet[:0], packetTrackDescriptor, fields))
}

// write frames a packet. The first one of a sequence, and of each new beginning, says that it is one.
func (s *protoSink) write(packet []byte) {
	flags := uint64(flagNeedsState)
	if s.cleared {
		flags, s.cleared = flagNeedsState|flagStateCleared, false
	}
	packet = appendVarint(appendVarint(packet, packetSequence, sequence), packetFlags, flags)
	s.framed = protowire.AppendBytes(protowire.AppendTag(s.framed[:0], tracePacket, protowire.BytesType), packet)
	if s.failed == nil {
		if _, err := s.w.Write(s.framed); err != nil {
			s.failed = fmt.Errorf("write the trace: %w", err)
		}
	}
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendString(b []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

// appendMessage appends a message in its place and its length before it.
func appendMessage(b []byte, field protowire.Number, fields func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	start := len(b)
	b = fields(append(b, 0)) // Most lengths take one byte.
	length := len(b) - start - 1
	if more := protowire.SizeVarint(uint64(length)) - 1; more > 0 {
		b = append(b, make([]byte, more)...)
		copy(b[start+1+more:], b[start+1:len(b)-more])
	}
	protowire.AppendVarint(b[start:start], uint64(length))
	return b
}
