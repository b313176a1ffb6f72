// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"
)

// Spans are written straight into protobuf: nothing is copied twice, sizes are known as a request is filled, and what all spans of a resource
// get is encoded once. The numbers are those of OTLP 1.10, opentelemetry/proto/{trace,resource,common}/v1.

const (
	varint  = int(protowire.VarintType)
	fixed64 = int(protowire.Fixed64Type)
	length  = int(protowire.BytesType)
)

// tag returns a field's tag; the fields below 16, all that stand in loops, have one of a byte.
func tag(field, wire int) byte { return byte(field<<3 | wire) }

var (
	tagSpan       = tag(fieldSpans, length)
	tagSpanAttr   = tag(9, length)
	tagEvent      = tag(11, length)
	tagEventAttr  = tag(3, length)
	tagLink       = tag(13, length)
	tagLinkAttr   = tag(4, length)
	tagScopeAttr  = tag(3, length)
	tagResAttr    = tag(1, length)
	tagListValues = tag(1, length) // of ArrayValue and KeyValueList
)

func appendText(b []byte, t byte, s string) []byte {
	if s == "" {
		return b
	}
	b = protowire.AppendVarint(append(b, t), uint64(len(s)))
	return append(b, s...)
}

func appendBytes(b []byte, t byte, s []byte) []byte {
	b = protowire.AppendVarint(append(b, t), uint64(len(s)))
	return append(b, s...)
}

func appendUint(b []byte, t byte, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(append(b, t), n)
}

func appendFixed64(b []byte, t byte, n uint64) []byte {
	if n == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint64(append(b, t), n)
}

// appendAttr appends the KeyValue of key and v as a field with tag t.
func appendAttr(b []byte, t byte, key string, v pcommon.Value) []byte {
	keySize, valueSize := len(key), sizeValue(v)
	b = protowire.AppendVarint(append(b, t), uint64(2+protowire.SizeVarint(uint64(keySize))+keySize+protowire.SizeVarint(uint64(valueSize))+valueSize))
	b = protowire.AppendVarint(append(b, tag(1, length)), uint64(keySize))
	b = append(b, key...)
	b = protowire.AppendVarint(append(b, tag(2, length)), uint64(valueSize))
	return appendValue(b, v)
}

// appendValue appends the fields of an AnyValue, sizeValue(v) bytes.
func appendValue(b []byte, v pcommon.Value) []byte {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		s := v.Str()
		b = protowire.AppendVarint(append(b, tag(1, length)), uint64(len(s)))
		return append(b, s...)
	case pcommon.ValueTypeBool:
		return protowire.AppendVarint(append(b, tag(2, varint)), protowire.EncodeBool(v.Bool()))
	case pcommon.ValueTypeInt:
		return protowire.AppendVarint(append(b, tag(3, varint)), uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		return binary.LittleEndian.AppendUint64(append(b, tag(4, fixed64)), math.Float64bits(v.Double()))
	case pcommon.ValueTypeSlice:
		b = protowire.AppendVarint(append(b, tag(5, length)), uint64(sizeSlice(v.Slice())))
		for _, item := range v.Slice().All() {
			b = protowire.AppendVarint(append(b, tagListValues), uint64(sizeValue(item)))
			b = appendValue(b, item)
		}
	case pcommon.ValueTypeMap:
		b = protowire.AppendVarint(append(b, tag(6, length)), uint64(sizeMap(v.Map())))
		for key, item := range v.Map().All() {
			b = appendAttr(b, tagListValues, key, item)
		}
	case pcommon.ValueTypeBytes:
		return appendBytes(b, tag(7, length), v.Bytes().AsRaw())
	}
	return b
}

func sizeValue(v pcommon.Value) int {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return 1 + protowire.SizeBytes(len(v.Str()))
	case pcommon.ValueTypeBool:
		return 2
	case pcommon.ValueTypeInt:
		return 1 + protowire.SizeVarint(uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		return 9
	case pcommon.ValueTypeSlice:
		return 1 + protowire.SizeBytes(sizeSlice(v.Slice()))
	case pcommon.ValueTypeMap:
		return 1 + protowire.SizeBytes(sizeMap(v.Map()))
	case pcommon.ValueTypeBytes:
		return 1 + protowire.SizeBytes(v.Bytes().Len())
	}
	return 0
}

func sizeSlice(s pcommon.Slice) (n int) {
	for _, item := range s.All() {
		n += 1 + protowire.SizeBytes(sizeValue(item))
	}
	return n
}

func sizeMap(m pcommon.Map) (n int) {
	for key, item := range m.All() {
		n += 1 + protowire.SizeBytes(1+protowire.SizeBytes(len(key))+1+protowire.SizeBytes(sizeValue(item)))
	}
	return n
}

func appendAttrs(b []byte, t byte, list []attr) []byte {
	for _, a := range list {
		b = appendAttr(b, t, a.key, a.val)
	}
	return b
}

// openMessage starts a nested message whose size is not known yet; closeMessage writes its size.
func openMessage(b []byte, t byte) ([]byte, int) {
	b = append(b, t, 0)
	return b, len(b)
}

func closeMessage(b []byte, start int) []byte {
	n := len(b) - start
	if n < 0x80 {
		b[start-1] = byte(n)
		return b
	}
	var size [binary.MaxVarintLen64]byte
	more := binary.PutUvarint(size[:], uint64(n)) - 1
	b = append(b, size[:more]...)
	copy(b[start+more:], b[start:start+n])
	copy(b[start-1:], size[:more+1])
	return b
}

func appendTraceID(b []byte, t byte, id pcommon.TraceID) []byte {
	if id.IsEmpty() {
		return b
	}
	return append(append(b, t, byte(len(id))), id[:]...)
}

// appendSpanID leaves out an id of zeros: Weave took one for a parent (wandb/weave#7126).
func appendSpanID(b []byte, t byte, id pcommon.SpanID) []byte {
	if id.IsEmpty() {
		return b
	}
	return append(append(b, t, byte(len(id))), id[:]...)
}

// appendHead appends the fields of a span that stand before its attributes.
func (s *span) appendHead(b []byte) []byte {
	b = appendTraceID(b, tag(1, length), s.trace)
	b = appendSpanID(b, tag(2, length), s.id)
	b = appendText(b, tag(3, length), s.state)
	b = appendSpanID(b, tag(4, length), s.parent)
	b = appendText(b, tag(5, length), s.name)
	b = appendUint(b, tag(6, varint), uint64(s.kind))
	b = appendFixed64(b, tag(7, fixed64), uint64(s.start))
	return appendFixed64(b, tag(8, fixed64), uint64(s.end))
}

// appendTail appends the fields that stand after its attributes.
func (s *span) appendTail(b []byte) []byte {
	b = appendUint(b, tag(10, varint), uint64(s.droppedAttrs))
	for i := range s.events {
		e := &s.events[i]
		var at int
		b, at = openMessage(b, tagEvent)
		b = appendFixed64(b, tag(1, fixed64), uint64(e.time))
		b = appendText(b, tag(2, length), e.name)
		b = appendAttrs(b, tagEventAttr, e.attrs)
		b = closeMessage(appendUint(b, tag(4, varint), uint64(e.dropped)), at)
	}
	b = appendUint(b, tag(12, varint), uint64(s.droppedEvents))
	for i := range s.links {
		l := &s.links[i]
		var at int
		b, at = openMessage(b, tagLink)
		b = appendTraceID(b, tag(1, length), l.trace)
		b = appendSpanID(b, tag(2, length), l.id)
		b = appendText(b, tag(3, length), l.state)
		b = appendAttrs(b, tagLinkAttr, l.attrs)
		b = appendUint(b, tag(5, varint), uint64(l.dropped))
		b = closeMessage(appendFlags(b, 6, l.flags), at)
	}
	b = appendUint(b, tag(14, varint), uint64(s.droppedLinks))
	if s.message != "" || s.code != ptrace.StatusCodeUnset {
		var at int
		b, at = openMessage(b, tag(15, length))
		b = appendText(b, tag(2, length), s.message)
		b = closeMessage(appendUint(b, tag(3, varint), uint64(s.code)), at)
	}
	return appendFlags(b, 16, s.flags)
}

func appendFlags(b []byte, field protowire.Number, flags uint32) []byte {
	if flags == 0 {
		return b
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), flags)
}
