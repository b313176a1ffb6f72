// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"

import "github.com/lenscol/lenscol/internal/runview"

// The readers of the protobuf wire format. They accept what pdata's accept and refuse what it refuses, with its
// peculiarities: bits of a varint beyond 64 are lost, a tag's field number is cut to 32 bits, an unknown group must have
// nothing but groups in it. Each reads buf from pos and returns the position behind what it read, or ok false.

func readVarint(buf []byte, pos int) (num uint64, next int, ok bool) {
	if pos < len(buf) && buf[pos] < 0x80 {
		return uint64(buf[pos]), pos + 1, true
	}
	for shift := uint(0); shift < 64; shift += 7 {
		if pos >= len(buf) {
			return 0, 0, false
		}
		b := buf[pos]
		pos++
		num |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return num, pos, true
		}
	}
	return 0, 0, false
}

func readTag(buf []byte, pos int) (field int32, wire int, next int, ok bool) {
	tag, next, ok := readVarint(buf, pos)
	field = int32(tag >> 3)
	return field, int(tag & 7), next, ok && field > 0
}

// readLen reads a length and the content of that length.
func readLen(buf []byte, pos int) (content []byte, next int, ok bool) {
	num, pos, ok := readVarint(buf, pos)
	if !ok || num > uint64(len(buf)-pos) {
		return nil, 0, false
	}
	next = pos + int(num)
	return buf[pos:next:next], next, true
}

// skipField skips the content of a field that nobody knows.
func skipField(buf []byte, pos, wire int) (next int, ok bool) {
	switch wire {
	case wireVarint:
		_, next, ok = readVarint(buf, pos)
		return next, ok
	case wireFixed64:
		return pos + 8, pos+8 <= len(buf)
	case wireLen:
		_, next, ok = readLen(buf, pos)
		return next, ok
	case wireStartGroup:
		return skipGroup(buf, pos)
	case wireFixed32:
		return pos + 4, pos+4 <= len(buf)
	default:
		return 0, false
	}
}

// skipGroup skips a group whose start has been read. As pdata does, it takes the first field in a group that is not a
// group itself for the end of it; the group's real end is then an error in the message around it. And a group must not
// end with the buffer.
func skipGroup(buf []byte, pos int) (next int, ok bool) {
	for depth := 1; depth > 0; {
		var wire int
		if pos >= len(buf) {
			return 0, false
		}
		if _, wire, pos, ok = readTag(buf, pos); !ok || pos >= len(buf) {
			return 0, false
		}
		switch wire {
		case wireStartGroup:
			depth++
		case wireEndGroup:
			depth--
		default:
			return skipField(buf, pos, wire)
		}
	}
	return pos, true
}

// walker checks that pdata decodes a message, and counts the items in it. It keeps its own stack: hostile nesting costs
// at most some bytes of it for each byte of the request, and is gone with the request.
type walker struct {
	stack  []frame
	notice notice
	forms  forms // of step spans
}

// frame is a message that is being read, while one within it is.
type frame struct {
	of  message
	end int
}

// plainPrefix is the length of the fields at the beginning of a span that are as encoders write them, with tags and
// lengths in their shortest form: all of a span, mostly, read without the tables. name is where the span's name begins, the last of
// several, 0 for none.
func plainPrefix(span []byte) (at, name int) {
	for at+2 <= len(span) {
		next := at + 2
		size := int(span[at+1]) // or a number, or the first byte of one
		switch span[at] {
		case 1<<3 | wireLen: // trace id
			if size != 16 {
				return at, name
			}
			next += size
		case 2<<3 | wireLen, 4<<3 | wireLen: // span id, parent
			if size != 8 {
				return at, name
			}
			next += size
		case 3<<3 | wireLen:
			if size >= 0x80 {
				return at, name
			}
			next += size
		case fieldSpanName<<3 | wireLen:
			if size >= 0x80 {
				return at, name
			}
			name = next
			next += size
		case 6<<3 | wireVarint, 10<<3 | wireVarint, 12<<3 | wireVarint, 14<<3 | wireVarint: // kind, dropped counts
			if size >= 0x80 {
				return at, name
			}
		case 7<<3 | wireFixed64, 8<<3 | wireFixed64: // start, end
			next = at + 9
		case 9<<3 | wireLen: // attribute
			next += size
			if next > len(span) || !isPlain(span[at+2:next]) {
				return at, name
			}
		case fieldSpanStatus<<3 | wireLen:
			if size != 0 { // set
				return at, name
			}
		case 16<<3&0x7f | 0x80 | wireFixed32: // flags, first byte of two
			if size != 1 {
				return at, name
			}
			next = at + 6
		default:
			return at, name
		}
		if next > len(span) {
			return at, name
		}
		at = next
	}
	return at, name
}

// isPlain reports whether an attribute is a key and a text, bool, integer or double, in the shortest form. The value may
// stand in front of the key: pdata writes all fields of a message in falling order.
func isPlain(kv []byte) bool {
	if len(kv) < 4 {
		return false
	}
	second := 2 + int(kv[1])
	if second+2 > len(kv) || second+2+int(kv[second+1]) != len(kv) || (kv[1]|kv[second+1]) >= 0x80 {
		return false
	}
	var value []byte
	switch {
	case kv[0] == 1<<3|wireLen && kv[second] == 2<<3|wireLen:
		value = kv[second+2:]
	case kv[0] == 2<<3|wireLen && kv[second] == 1<<3|wireLen:
		value = kv[2:second]
	}
	if len(value) < 2 {
		return false
	}
	switch value[0] {
	case 1<<3 | wireLen:
		return value[1] < 0x80 && int(value[1])+2 == len(value)
	case 2<<3 | wireVarint, 3<<3 | wireVarint:
		last := len(value) - 1
		if last > 10 {
			return false
		}
		for _, b := range value[1:last] {
			if b < 0x80 {
				return false
			}
		}
		return value[last] < 0x80
	case 4<<3 | wireFixed64:
		return len(value) == 1+8
	default:
		return false
	}
}

// isPath has what leads to the items of a scope; a shallow walk enters nothing else.
var isPath = [endMessages]bool{mMetric: true, mGauge: true, mSum: true, mHistogram: true, mExponentialHistogram: true, mSummary: true}

// walk reads a message. A shallow walk counts the same items and does not look into them: it is for what pdata decodes
// and checks later.
func (w *walker) walk(of message, buf []byte, shallow bool) (items int, ok bool) {
	w.stack = w.stack[:0]
	pos, end := 0, len(buf)
	actions := &tables[of]
	points := 0 // of the metric that is being read
	watched := w.notice.report != nil
	for {
		for pos == end {
			top := len(w.stack) - 1
			if top < 0 {
				return items + points, true
			}
			of, end = w.stack[top].of, w.stack[top].end
			actions = &tables[of]
			w.stack = w.stack[:top]
		}

		// The tag: one byte mostly, two for the flags of a span.
		index := uint(buf[pos])
		pos++
		if index >= 0x80 {
			field, wire, next, ok := readTag(buf[:end], pos-1)
			if !ok {
				return 0, false
			}
			pos = next
			index = uint(wire) // of field 0, which no message has
			if field < tableFields {
				index |= uint(field) << 3
			} else {
				if pos, ok = skipField(buf[:end], pos, wire); !ok {
					return 0, false
				}
				continue
			}
		}

		act := actions[index&(tableFields<<3-1)]
		switch act {
		case refuse, unassigned:
			return 0, false
		case fixed64:
			if pos += 8; pos > end {
				return 0, false
			}
			continue
		case fixed32:
			if pos += 4; pos > end {
				return 0, false
			}
			continue
		case varint:
			if pos < end && buf[pos] < 0x80 {
				pos++
				continue
			}
			var ok bool
			if _, pos, ok = readVarint(buf[:end], pos); !ok {
				return 0, false
			}
			continue
		case code:
			value, next, ok := readVarint(buf[:end], pos)
			if !ok {
				return 0, false
			}
			pos = next
			if watched {
				w.notice.code(items, value)
			}
			continue
		case group:
			var ok bool
			if pos, ok = skipGroup(buf[:end], pos); !ok {
				return 0, false
			}
			continue
		}

		// All others have a length.
		var size int
		if pos < end && buf[pos] < 0x80 {
			size = int(buf[pos])
			pos++
		} else {
			num, next, ok := readVarint(buf[:end], pos)
			if !ok || num > uint64(end-next) {
				return 0, false
			}
			size, pos = int(num), next
		}
		if size > end-pos {
			return 0, false
		}
		start := pos
		pos += size
		switch act {
		case length:
			continue
		case traceID:
			if size != 16 && size != 0 {
				return 0, false
			}
			continue
		case spanID:
			if size != 8 && size != 0 {
				return 0, false
			}
			continue
		case fixed64s:
			if size%8 != 0 {
				return 0, false
			}
			continue
		case varints:
			for at := start; at < pos; {
				var ok bool
				if _, at, ok = readVarint(buf[:pos], at); !ok {
					return 0, false
				}
			}
			continue
		case mMetric:
			items += points
			points = 0
		case mGauge, mSum, mHistogram, mExponentialHistogram, mSummary:
			points = 0 // of several in one metric the last holds
		case mSpan:
			items++
			if !shallow {
				maybe := watched && size >= shortestStep
				if maybe && len(w.notice.spans) == 0 { // Steps are reported in their order.
					if f := w.forms.of(size); f.size == size {
						if step, ok := f.read(buf[start:pos]); ok {
							w.notice.report.Step(step)
							continue
						}
					}
				}
				plain, name := plainPrefix(buf[start:pos])
				if maybe && plain < size { // There may be another name in the rest.
					w.notice.spans = append(w.notice.spans, spanAt{start, pos, false})
				} else if maybe && name > 0 {
					if name := buf[start+name:][:buf[start+name-1]]; runview.MayBeStep(name) && runview.IsStep(name) {
						w.notice.spans = append(w.notice.spans, spanAt{start, pos, true})
					}
				}
				if start += plain; start == pos {
					continue
				}
			}
		case mLogRecord:
			items++
		case mNumberPoint, mHistogramPoint, mExponentialHistogramPoint, mSummaryPoint:
			points++
		}
		if shallow && !isPath[act] || act == mKeyValue && isPlain(buf[start:pos]) {
			continue
		}
		w.stack = append(w.stack, frame{of, end})
		of, actions = act, &tables[act]
		end, pos = pos, start
	}
}

// fieldAt is the field at pos of a message that the walker has found good: its number, where its content begins, behind
// the length where it has one, and where the next field begins.
func fieldAt(buf []byte, pos int) (number int32, content, next int) {
	number, wire, content := int32(buf[pos]>>3), int(buf[pos]&7), pos+1
	if buf[pos] >= 0x80 {
		number, wire, content, _ = readTag(buf, pos)
	}
	switch wire {
	case wireFixed64:
		return number, content, content + 8
	case wireLen:
		if size := int(buf[content]); size < 0x80 {
			return number, content + 1, content + 1 + size
		}
		size, at, _ := readVarint(buf, content)
		return number, at, at + int(size)
	default:
		next, _ = skipField(buf, content, wire)
		return number, content, next
	}
}

// fields goes through such a message:
//
//	for f := (fields{rest: message}); f.next(); {
type fields struct {
	rest    []byte // what is to come
	number  int32
	whole   []byte // the field with its tag
	content []byte // behind the length, where it has one
}

func (f *fields) next() bool {
	if len(f.rest) == 0 {
		return false
	}
	number, content, next := fieldAt(f.rest, 0)
	f.number, f.whole, f.content, f.rest = number, f.rest[:next:next], f.rest[content:next:next], f.rest[next:]
	return true
}
