// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package console // import "github.com/lenscol/lenscol/sdk/telemetry/internal/console"

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
)

// Values nest no deeper than maxDepth; what lies deeper is written as tooDeep.
const (
	maxDepth = 64
	tooDeep  = "[cut: nested deeper than 64]"
)

func appendResource(b []byte, res *resource.Resource) []byte {
	b = appendAttributes(append(b, `{"attributes": `...), res.Attributes())
	b = appendString(append(b, `, "schema_url": `...), res.SchemaURL())
	return append(b, '}')
}

func appendAttributes(b []byte, kvs []attribute.KeyValue) []byte {
	return appendAttributeMap(b, kvs, 1)
}

// appendAttributesOrNull writes attributes where Python has None in the place of none.
func appendAttributesOrNull(b []byte, kvs []attribute.KeyValue) []byte {
	if len(kvs) == 0 {
		return append(b, "null"...)
	}
	return appendAttributes(b, kvs)
}

// appendAttributeMap writes a map whose values stand at depth.
func appendAttributeMap(b []byte, kvs []attribute.KeyValue, depth int) []byte {
	return appendMap(b, kvs, func(b []byte, kv attribute.KeyValue) []byte {
		return appendValue(append(appendString(b, string(kv.Key)), ": "...), kv.Value, depth)
	})
}

// appendValue writes a value that stands at depth.
func appendValue(b []byte, v attribute.Value, depth int) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return strconv.AppendBool(b, v.AsBool())
	case attribute.INT64:
		return strconv.AppendInt(b, v.AsInt64(), 10)
	case attribute.FLOAT64:
		return appendFloat(b, v.AsFloat64())
	case attribute.STRING:
		return appendString(b, v.AsString())
	case attribute.BYTESLICE:
		return appendBytes(b, v.AsByteSlice())
	case attribute.BOOLSLICE:
		return appendList(b, v.AsBoolSlice(), strconv.AppendBool)
	case attribute.INT64SLICE:
		return appendList(b, v.AsInt64Slice(), func(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) })
	case attribute.FLOAT64SLICE:
		return appendList(b, v.AsFloat64Slice(), appendFloat)
	case attribute.STRINGSLICE:
		return appendList(b, v.AsStringSlice(), appendString)
	case attribute.SLICE:
		if depth > maxDepth {
			return appendString(b, tooDeep)
		}
		return appendList(b, v.AsSlice(), func(b []byte, v attribute.Value) []byte { return appendValue(b, v, depth+1) })
	case attribute.MAP:
		if depth > maxDepth {
			return appendString(b, tooDeep)
		}
		return appendAttributeMap(b, v.AsMap(), depth+1)
	}
	return append(b, "null"...)
}

func appendList[T any](b []byte, items []T, item func([]byte, T) []byte) []byte {
	return append(appendItems(append(b, '['), items, item), ']')
}

func appendMap[T any](b []byte, members []T, member func([]byte, T) []byte) []byte {
	return append(appendItems(append(b, '{'), members, member), '}')
}

func appendItems[T any](b []byte, items []T, item func([]byte, T) []byte) []byte {
	for i := range items {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = item(b, items[i])
	}
	return b
}

// appendFloat writes repr(f): the shortest decimal that reads back the same, with an exponent from 1e16 on and below 1e-4,
// and always with a point or an exponent. NaN and the infinities stand bare, as json.dumps writes them.
func appendFloat(b []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return append(b, "NaN"...)
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	case abs >= 1e16 || abs < 1e-4 && abs != 0:
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	case f == math.Trunc(f):
		return strconv.AppendFloat(b, f, 'f', 1, 64)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

const hexDigits = "0123456789abcdef"

// shortEscapes are the controls that json.dumps has letters for.
var shortEscapes = map[rune]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// appendString writes a text as json.dumps does by default: everything outside printable ASCII is escaped, beyond U+FFFF as
// a surrogate pair. A byte that is not UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		short, isShort := byte(0), false
		if r < ' ' || r == '"' || r == '\\' {
			short, isShort = shortEscapes[r]
		}
		switch {
		case isShort:
			b = append(b, '\\', short)
		case r >= ' ' && r < '\x7f':
			b = append(b, byte(r))
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			b = appendUnit(appendUnit(b, high), low)
		default:
			b = appendUnit(b, r)
		}
	}
	return append(b, '"')
}

// appendUnit escapes one unit of UTF-16.
func appendUnit(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&0xf], hexDigits[r>>8&0xf], hexDigits[r>>4&0xf], hexDigits[r&0xf])
}

func appendBytes(b, data []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), data), '"')
}

// appendTime writes a time with microseconds as the SDK's ns_to_iso_str does: the nanoseconds go through a double of seconds,
// and what is left of them beyond its precision is rounded to even. No time is null.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	seconds, fraction := math.Modf(float64(t.UnixNano()) / 1e9)
	at := time.Unix(int64(seconds), 0).UTC().Add(time.Duration(math.RoundToEven(fraction*1e6)) * time.Microsecond)
	return at.AppendFormat(b, `"2006-01-02T15:04:05.000000Z"`)
}

// appendID writes a trace or span id, one of zeros too.
func appendID(b, id []byte) []byte {
	return append(hex.AppendEncode(append(b, `"0x`...), id), '"')
}

// appendTraceState writes the text that repr of Python's TraceState is: the str of a list of `{key=…, value=…}`.
func appendTraceState(b []byte, state trace.TraceState) []byte {
	var members []string
	state.Walk(func(key, value string) bool {
		members = append(members, "{key="+key+", value="+value+"}")
		return true
	})
	return appendString(b, string(appendList(nil, members, appendRepr)))
}

// appendRepr writes repr(s) of a str of printable ASCII, which is all that a trace state holds.
func appendRepr(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b = append(b, quote)
	for i := range len(s) {
		if s[i] == quote || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return append(b, quote)
}
