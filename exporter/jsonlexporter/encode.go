// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxDepth bounds the nesting of values: an attribute's value and a log's body stand at depth 1. A list or map that
// stands deeper is replaced by cutMarker and counted. A stack overflow cannot be recovered from, and neither protobuf
// decoding nor OTLP bounds the depth, so the encoder has to.
const (
	maxDepth  = 64
	cutMarker = `"[cut: nested deeper than 64]"`
)

// encoder appends the JSON of the compact layout, version 1 (docs/format.md), to byte slices. It holds what was not
// lossless since it was last reset; the zero value is ready for use.
type encoder struct {
	faults
	keys    map[string]struct{}
	scratch []byte
}

// faults are the values that could not be written as they came.
type faults struct {
	counts
	key  string // the first one's attribute, "" where it was none
	text string // the first repaired text
}

type counts struct {
	repaired int // texts that were not UTF-8
	cut      int // lists and maps beyond maxDepth
}

func (c counts) any() bool { return c.repaired+c.cut > 0 }

func (f *faults) blame(key string) {
	if f.key == "" {
		f.key = key
	}
}

// appendMap writes an object; values stand at depth. Its two escapes keep it lossless: a repeated key, or one that is
// repaired and may equal another then, turns the map into {"@pairs":[[k,v],…]}, and a map whose only key starts with @
// is wrapped as {"@map":{…}}.
func (e *encoder) appendMap(b []byte, m pcommon.Map, depth int) []byte {
	n := m.Len()
	if n > manyKeys && e.repeatsKey(m) {
		return e.appendPairs(b, m, depth)
	}
	start, before := len(b), e.counts
	plain, wrapped, seen := true, false, uint64(0)
	b = append(b, '{')
	for k, v := range m.All() {
		if n <= manyKeys {
			// Bits that two different keys seldom share tell that this one is new; else all keys are compared.
			bit := keyBit(k)
			plain = plain && (seen&bit == 0 || !repeated(m, k))
			seen |= bit
		}
		if n == 1 && strings.HasPrefix(k, "@") {
			wrapped = true
			b = append(b, `"@map":{`...)
		} else if len(b) > start+1 {
			b = append(b, ',')
		}
		repaired := e.repaired
		b = append(e.appendString(b, k), ':')
		plain = plain && e.repaired == repaired
		b = e.appendMember(b, k, v, depth)
	}
	if !plain {
		e.counts = before
		return e.appendPairs(b[:start], m, depth)
	}
	if wrapped {
		b = append(b, '}')
	}
	return append(b, '}')
}

func (e *encoder) appendPairs(b []byte, m pcommon.Map, depth int) []byte {
	b = append(b, `{"@pairs":[`...)
	first := true
	for k, v := range m.All() {
		if !first {
			b = append(b, ',')
		}
		first = false
		repaired := e.repaired
		b = append(e.appendString(append(b, '['), k), ',')
		if e.repaired != repaired {
			e.blame(k)
		}
		b = append(e.appendMember(b, k, v, depth), ']')
	}
	return append(b, ']', '}')
}

// appendMember writes the value of a key, which is to blame for what cannot be kept of it.
func (e *encoder) appendMember(b []byte, k string, v pcommon.Value, depth int) []byte {
	before := e.counts
	b = e.appendValue(b, v, depth)
	if e.counts != before {
		e.blame(k)
	}
	return b
}

// manyKeys is the size from which a set finds repeated keys faster than comparing, and hostile maps cost no square.
const manyKeys = 32

func (e *encoder) repeatsKey(m pcommon.Map) bool {
	if e.keys == nil {
		e.keys = make(map[string]struct{}, 2*manyKeys)
	}
	defer clear(e.keys)
	for k := range m.All() {
		if _, ok := e.keys[k]; ok {
			return true
		}
		e.keys[k] = struct{}{}
	}
	return false
}

func keyBit(k string) uint64 {
	if k == "" {
		return 1
	}
	return 1 << ((uint(len(k))*5 + uint(k[len(k)-1])*7 + uint(k[len(k)/2])) & 63)
}

// repeated tells whether m has the key k twice.
func repeated(m pcommon.Map, k string) bool {
	found := 0
	for other := range m.All() {
		if other == k {
			found++
		}
	}
	return found > 1
}

// appendValue writes a value that stands at depth.
func (e *encoder) appendValue(b []byte, v pcommon.Value, depth int) []byte {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return e.appendString(b, v.Str())
	case pcommon.ValueTypeInt:
		return strconv.AppendInt(b, v.Int(), 10)
	case pcommon.ValueTypeDouble:
		return appendDouble(b, v.Double())
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(b, v.Bool())
	case pcommon.ValueTypeMap:
		if depth > maxDepth {
			return e.appendCut(b)
		}
		return e.appendMap(b, v.Map(), depth+1)
	case pcommon.ValueTypeSlice:
		if depth > maxDepth {
			return e.appendCut(b)
		}
		b = append(b, '[')
		list := v.Slice()
		for i := range list.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.appendValue(b, list.At(i), depth+1)
		}
		return append(b, ']')
	case pcommon.ValueTypeBytes:
		b = append(b, `{"@bytes":"`...)
		b = base64.StdEncoding.AppendEncode(b, v.Bytes().AsRaw())
		return append(b, '"', '}')
	default:
		return append(b, "null"...)
	}
}

func (e *encoder) appendCut(b []byte) []byte {
	e.cut++
	return append(b, cutMarker...)
}

// appendDouble writes the shortest decimal that reads back the same, always with a point or an exponent, so that a
// reader can tell it from an integer. NaN and the infinities, which JSON has not, are {"@double":"NaN"} and so on.
func appendDouble(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `{"@double":"NaN"}`...)
	case math.IsInf(f, 1):
		return append(b, `{"@double":"Infinity"}`...)
	case math.IsInf(f, -1):
		return append(b, `{"@double":"-Infinity"}`...)
	}
	return appendShortest(b, f, 1e-6, 1e21)
}

// appendShortest writes the shortest decimal that reads back the same, with an exponent below low and from high on, and always with
// a point or an exponent. The number is finite.
func appendShortest(b []byte, f, low, high float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < low || abs >= high) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	for _, c := range b[start:] {
		if c == '.' {
			return b
		}
	}
	return append(b, '.', '0')
}

// plain marks the bytes that stand in a JSON string as they are, of ASCII.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// appendString writes a JSON string. Text that is not UTF-8 is repaired with U+FFFD, one for each bad byte, and
// counted. The three line ends of Unicode are escaped too: JSON allows them, but many readers split lines at them.
func (e *encoder) appendString(b []byte, s string) []byte {
	// Eight bytes are looked at as one word: none may have its high bit set, be below a space, a quote or a backslash.
	// (x − n·ones borrows into the high bit of a byte that is less than n; a borrow from a neighbour comes only beside one.)
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := s[i : i+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		if (x|(x-' '*ones)|((x^('"'*ones))-ones)|((x^('\\'*ones))-ones))&highs != 0 {
			break
		}
	}
	for i < len(s) && plain[s[i]] {
		i++
	}
	b = append(b, '"')
	if i == len(s) {
		return append(append(b, s...), '"')
	}
	return append(e.appendEscaping(b, s, i), '"')
}

// appendEscaping writes a text whose bytes up to i are plain.
func (e *encoder) appendEscaping(b []byte, s string, i int) []byte {
	start, bad := 0, false
	for i < len(s) {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = appendEscaped(append(b, s[start:i]...), c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[start:i]...), "\uFFFD"...)
			start, bad = i+size, true
		case r == '\u0085':
			b = append(append(b, s[start:i]...), `\u0085`...)
			start = i + size
		case r == '\u2028' || r == '\u2029':
			b = append(append(b, s[start:i]...), `\u202`...)
			b = append(b, hexDigits[r&0xf])
			start = i + size
		}
		i += size
	}
	if bad {
		e.noteRepair(s)
	}
	return append(b, s[start:]...)
}

// noteRepair counts a text that was not UTF-8.
func (e *encoder) noteRepair(s string) {
	if e.repaired == 0 {
		e.faults.text = s
	}
	e.repaired++
}

const hexDigits = "0123456789abcdef"

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	default:
		return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}

// The members below follow the rule that what is absent is the default: each writes `,"key":value`, or nothing.

func (e *encoder) text(b []byte, key, s string) []byte {
	if s == "" {
		return b
	}
	return e.appendString(append(b, key...), s)
}

func (e *encoder) attributes(b []byte, m pcommon.Map) []byte {
	if m.Len() == 0 {
		return b
	}
	return e.appendMap(append(b, `,"attributes":`...), m, 1)
}

func unsigned(b []byte, key string, n uint64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendUint(append(b, key...), n, 10)
}

func signed(b []byte, key string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, key...), n, 10)
}

// nanos writes a time even where it is zero.
func nanos(b []byte, key string, t pcommon.Timestamp) []byte {
	return strconv.AppendUint(append(b, key...), uint64(t), 10)
}

func traceID(b []byte, key string, id pcommon.TraceID) []byte {
	if id.IsEmpty() {
		return b
	}
	return append(hex.AppendEncode(append(append(b, key...), '"'), id[:]), '"')
}

func spanID(b []byte, key string, id pcommon.SpanID) []byte {
	if id.IsEmpty() {
		return b
	}
	return append(hex.AppendEncode(append(append(b, key...), '"'), id[:]), '"')
}

// enum writes a name, or the integer of a value that OTLP does not know. names[0] is "" where 0 is the default.
func enum(b []byte, key string, value int32, names []string) []byte {
	if value < 0 || int(value) >= len(names) {
		return strconv.AppendInt(append(b, key...), int64(value), 10)
	}
	if names[value] == "" {
		return b
	}
	return append(append(append(append(b, key...), '"'), names[value]...), '"')
}
