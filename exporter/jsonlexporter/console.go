// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// console is the layout of NeMo Lens's console exporter since 0.2: what to_json(indent=None) of OpenTelemetry Python's SDK
// writes, byte for byte, for spans, log records and, one line a resource, metrics. It is for readers that exist, and
// holds less than compact does (docs/format.md).
type console struct{}

// appendPyResource writes a resource, as all three signals have it, from its opening brace to its closing one.
func (e *encoder) appendPyResource(b []byte, res pcommon.Resource, schemaURL string) []byte {
	b = e.appendPyMap(append(b, `{"attributes": `...), res.Attributes(), 1, hex.AppendEncode)
	b = e.appendPyString(append(b, `, "schema_url": `...), schemaURL)
	return append(b, '}')
}

// appendPyAttributes writes the attributes of anything but a resource.
func (e *encoder) appendPyAttributes(b []byte, m pcommon.Map) []byte {
	return e.appendPyMap(b, m, 1, base64.StdEncoding.AppendEncode)
}

// appendPyAttributesOrNull writes attributes where Python has None in the place of none.
func (e *encoder) appendPyAttributesOrNull(b []byte, m pcommon.Map) []byte {
	if m.Len() == 0 {
		return append(b, "null"...)
	}
	return e.appendPyAttributes(b, m)
}

// appendPyMap writes a dict; values stand at depth. How bytes are told in text is the one thing in which the SDK's encoders
// differ: hex in a resource, base64 in a log record. Python's other encoders refuse bytes; here they are base64 too.
func (e *encoder) appendPyMap(b []byte, m pcommon.Map, depth int, bytesText func(dst, src []byte) []byte) []byte {
	b = append(b, '{')
	first := true
	for k, v := range m.All() {
		if !first {
			b = append(b, ", "...)
		}
		first = false
		before := e.counts
		b = append(e.appendPyString(b, k), ": "...)
		b = e.appendPyValue(b, v, depth, bytesText)
		if e.counts != before {
			e.blame(k)
		}
	}
	return append(b, '}')
}

// appendPyValue writes a value that stands at depth.
func (e *encoder) appendPyValue(b []byte, v pcommon.Value, depth int, bytesText func(dst, src []byte) []byte) []byte {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return e.appendPyString(b, v.Str())
	case pcommon.ValueTypeInt:
		return strconv.AppendInt(b, v.Int(), 10)
	case pcommon.ValueTypeDouble:
		return appendPyFloat(b, v.Double())
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(b, v.Bool())
	case pcommon.ValueTypeMap:
		if depth > maxDepth {
			return e.appendCut(b)
		}
		return e.appendPyMap(b, v.Map(), depth+1, bytesText)
	case pcommon.ValueTypeSlice:
		if depth > maxDepth {
			return e.appendCut(b)
		}
		b = append(b, '[')
		for i, item := range v.Slice().All() {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = e.appendPyValue(b, item, depth+1, bytesText)
		}
		return append(b, ']')
	case pcommon.ValueTypeBytes:
		return append(bytesText(append(b, '"'), v.Bytes().AsRaw()), '"')
	default:
		return append(b, "null"...)
	}
}

// appendPyFloat writes repr(f): the shortest decimal that reads back the same, with an exponent from 1e16 on and below
// 1e-4, and always with a point or an exponent. NaN and the infinities stand bare, as json.dumps writes them.
func appendPyFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "NaN"...)
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	}
	return appendShortest(b, f, 1e-4, 1e16)
}

// appendPyString writes a string as json.dumps does by default: everything outside printable ASCII is escaped, beyond
// U+FFFF as a surrogate pair. Text that is not UTF-8 is repaired with U+FFFD, one for each bad byte, and counted.
func (e *encoder) appendPyString(b []byte, s string) []byte {
	b = append(b, '"')
	start, bad := 0, false
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && plain[c] && c != '\x7f' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == '\b':
			b = append(b, '\\', 'b')
		case c == '\f':
			b = append(b, '\\', 'f')
		case c < utf8.RuneSelf:
			b = appendEscaped(b, c)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			b = appendUnit(appendUnit(b, high), low)
		default:
			bad = bad || r == utf8.RuneError && size == 1
			b = appendUnit(b, r)
		}
		i += size
		start = i
	}
	if bad {
		e.noteRepair(s)
	}
	return append(append(b, s[start:]...), '"')
}

// appendUnit escapes one unit of UTF-16.
func appendUnit(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&0xf], hexDigits[r>>8&0xf], hexDigits[r>>4&0xf], hexDigits[r&0xf])
}

// appendPyTime writes a time with microseconds as the SDK's ns_to_iso_str does: the nanoseconds go through a double of seconds, and
// what is left of them beyond its precision is rounded to even. So the last digit can differ from the exact time's.
func appendPyTime(b []byte, t pcommon.Timestamp) []byte {
	seconds, fraction := math.Modf(float64(t) / 1e9)
	at := time.Unix(int64(seconds), 0).UTC().Add(time.Duration(math.RoundToEven(fraction*1e6)) * time.Microsecond)
	return at.AppendFormat(b, `"2006-01-02T15:04:05.000000Z"`)
}

// appendPyTimeOrNull writes a time that may be missing.
func appendPyTimeOrNull(b []byte, t pcommon.Timestamp) []byte {
	if t == 0 {
		return append(b, "null"...)
	}
	return appendPyTime(b, t)
}

// appendPyID writes a trace or span id, one of zeros too.
func appendPyID(b, id []byte) []byte {
	return append(hex.AppendEncode(append(b, `"0x`...), id), '"')
}

// appendPyTraceState writes the text that repr of Python's TraceState is: the str of a list of `{key=…, value=…}`.
func (e *encoder) appendPyTraceState(b []byte, header string) []byte {
	if header == "" {
		return append(b, `"[]"`...)
	}
	text := []byte{'['}
	for member := range strings.SplitSeq(header, ",") {
		if member = strings.Trim(member, " \t"); member == "" {
			continue
		}
		if len(text) > 1 {
			text = append(text, ", "...)
		}
		key, value, _ := strings.Cut(member, "=")
		text = appendPyRepr(text, "{key="+key+", value="+value+"}")
	}
	return e.appendPyString(b, string(append(text, ']')))
}

// appendPyRepr writes repr(s) of a str. Bytes that are not UTF-8 stay as they are.
func appendPyRepr(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b = append(b, quote)
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case unicode.IsPrint(r): // U+FFFD, which stands for a bad byte, is.
			b = append(b, s[i:i+size]...)
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < 0x100:
			b = append(b, '\\', 'x', hexDigits[r>>4], hexDigits[r&0xf])
		case r < 0x10000:
			b = appendUnit(b, r)
		default:
			b = append(b, '\\', 'U', '0', '0')
			b = append(b, hexDigits[r>>20&0xf], hexDigits[r>>16&0xf])
			b = append(b, appendUnit(nil, r&0xffff)[2:]...)
		}
	}
	return append(b, quote)
}
