// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// What the parsers of Weave take. Each bound is well below where they fail: protobuf at 100 nested messages, Python at 1,000 frames, pydantic at
// 255 levels; the parts of a key, a decoded text and a value can add up.
const (
	maxKeyBytes  = 512
	maxKeyParts  = 24
	maxValueDeep = 24
	nonUTF8      = "�"
)

// cleaned repairs what any attribute may have, whatever its key: texts that are not UTF-8, values without a type, keys and values that are too
// deep, and texts that Weave would fail to decode. It works in place.
func cleaned(list []attr, n *Counts) []attr {
	out := list[:0]
	for _, a := range list {
		a.key = cleanKey(a.key, n)
		if a.val = cleanValue(a.val, n); a.val.Type() == pcommon.ValueTypeEmpty {
			n[EmptyValue]++
			continue
		}
		out = append(out, a)
	}
	return out
}

// sound tells whether cleaned would leave a alone.
func sound(a attr) bool { return soundKey(a.key) && soundValue(a.val) }

func soundKey(key string) bool {
	return len(key) < maxKeyParts && utf8.ValidString(key) ||
		len(key) <= maxKeyBytes && utf8.ValidString(key) && strings.Count(key, ".") < maxKeyParts
}

func soundValue(v pcommon.Value) bool {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		s := v.Str()
		return utf8.ValidString(s) && !failsToDecode(s) && !hasHalfSurrogate(s)
	case pcommon.ValueTypeEmpty:
		return false
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		return soundNested(v, 1)
	}
	return true
}

// soundNested looks at a value in arrays and maps, depth of them. Weave does not decode texts there.
func soundNested(v pcommon.Value, depth int) bool {
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		return false
	case pcommon.ValueTypeStr:
		return utf8.ValidString(v.Str())
	case pcommon.ValueTypeSlice:
		for _, item := range v.Slice().All() {
			if depth >= maxValueDeep || !soundNested(item, depth+1) {
				return false
			}
		}
	case pcommon.ValueTypeMap:
		for key, item := range v.Map().All() {
			if depth >= maxValueDeep || !utf8.ValidString(key) || !soundNested(item, depth+1) {
				return false
			}
		}
	}
	return true
}

// cleanText returns s as UTF-8.
func cleanText(s string, n *Counts) string {
	if utf8.ValidString(s) {
		return s
	}
	n[InvalidUTF8]++
	return strings.ToValidUTF8(s, nonUTF8)
}

// cleanKey returns key as UTF-8, with at most maxKeyParts parts in maxKeyBytes. Keys that were cut stay apart by a hash.
func cleanKey(key string, n *Counts) string {
	if soundKey(key) {
		return key
	}
	key = cleanText(key, n)
	short := key
	for i, parts := 0, 1; i < len(short); i++ {
		if short[i] != '.' {
			continue
		}
		if parts++; parts > maxKeyParts {
			short = short[:i] + strings.ReplaceAll(short[i:], ".", "_")
			break
		}
	}
	if len(short) > maxKeyBytes {
		h := fnv.New32a()
		h.Write([]byte(key))
		short = cutText(short, maxKeyBytes-9) + fmt.Sprintf("~%08x", h.Sum32())
	}
	if short != key {
		n[LongKey]++
	}
	return short
}

// cutText returns the first bytes of s, at most size, without half a rune at the end.
func cutText(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return s[:size]
}

// cleanValue returns v, or a repaired copy of it. Empty: nothing of it is left.
func cleanValue(v pcommon.Value, n *Counts) pcommon.Value {
	if soundValue(v) {
		return v
	}
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return pcommon.NewValueStr(guarded(paired(cleanText(v.Str(), n), n), n))
	case pcommon.ValueTypeEmpty:
		return v
	}
	out := pcommon.NewValueEmpty()
	copyNested(out, v, 1, n)
	return out
}

// copyNested copies from, which lies in depth arrays and maps less one, without what soundNested refuses.
func copyNested(to, from pcommon.Value, depth int, n *Counts) {
	switch from.Type() {
	case pcommon.ValueTypeStr:
		to.SetStr(cleanText(from.Str(), n))
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		if depth > maxValueDeep {
			n[DeepValue]++
			to.SetStr(cleanText(string(appendJSON(nil, from)), n))
			return
		}
		if from.Type() == pcommon.ValueTypeSlice {
			copySlice(to.SetEmptySlice(), from.Slice(), depth, n)
		} else {
			copyKeys(to.SetEmptyMap(), from.Map(), depth, n)
		}
	default:
		from.CopyTo(to)
	}
}

func copySlice(to, from pcommon.Slice, depth int, n *Counts) {
	to.EnsureCapacity(from.Len())
	for _, item := range from.All() {
		if item.Type() == pcommon.ValueTypeEmpty {
			n[EmptyValue]++
			continue
		}
		copyNested(to.AppendEmpty(), item, depth+1, n)
	}
}

func copyKeys(to, from pcommon.Map, depth int, n *Counts) {
	list := make([]attr, 0, from.Len())
	for key, item := range from.All() {
		if item.Type() == pcommon.ValueTypeEmpty {
			n[EmptyValue]++
			continue
		}
		clean := pcommon.NewValueEmpty()
		copyNested(clean, item, depth+1, n)
		list = append(list, attr{cleanText(key, n), clean})
	}
	putAll(to, repeated(list, n))
}

func putAll(to pcommon.Map, list []attr) {
	to.EnsureCapacity(len(list))
	for _, a := range list {
		a.val.MoveTo(to.PutEmpty(a.key))
	}
}

// plain tells whether Weave can write v into a column as it is: nothing in it is NaN, infinite, or bytes.
func plain(v pcommon.Value) bool {
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		return !math.IsNaN(v.Double()) && !math.IsInf(v.Double(), 0)
	case pcommon.ValueTypeBytes:
		return false
	case pcommon.ValueTypeStr:
		return !hasNonFinite(v.Str())
	case pcommon.ValueTypeSlice:
		for _, item := range v.Slice().All() {
			if item.Type() != pcommon.ValueTypeStr && !plain(item) {
				return false
			}
		}
	case pcommon.ValueTypeMap:
		for _, item := range v.Map().All() {
			if item.Type() != pcommon.ValueTypeStr && !plain(item) {
				return false
			}
		}
	}
	return true
}

// plainly returns v with texts for what JSON has no form of: NaN, Infinity and -Infinity, bytes in base64. It copies v if it has to.
func plainly(v pcommon.Value, n *Counts) pcommon.Value {
	if plain(v) {
		return v
	}
	out := pcommon.NewValueEmpty()
	v.CopyTo(out)
	if out.Type() == pcommon.ValueTypeStr {
		n[NonFinite]++
		out.SetStr(quoteNonFinite(out.Str()))
		return out
	}
	makePlain(out, n)
	return out
}

func makePlain(v pcommon.Value, n *Counts) {
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		if !plain(v) {
			n[NonFinite]++
			v.SetStr(floatText(v.Double()))
		}
	case pcommon.ValueTypeBytes:
		n[BytesValue]++
		v.SetStr(base64.StdEncoding.EncodeToString(v.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice:
		for _, item := range v.Slice().All() {
			makePlain(item, n)
		}
	case pcommon.ValueTypeMap:
		for _, item := range v.Map().All() {
			makePlain(item, n)
		}
	}
}

// floatText is the text of f, which gives f when it is read, NaN and infinities as OTLP/JSON writes them.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// appendJSON appends v as JSON, keys in the order of v. pdata's own form loses a value with a NaN in it.
func appendJSON(b []byte, v pcommon.Value) []byte {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return appendJSONText(b, v.Str())
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(b, v.Bool())
	case pcommon.ValueTypeInt:
		return strconv.AppendInt(b, v.Int(), 10)
	case pcommon.ValueTypeDouble:
		if !plain(v) {
			return appendJSONText(b, floatText(v.Double()))
		}
		return strconv.AppendFloat(b, v.Double(), 'g', -1, 64)
	case pcommon.ValueTypeBytes:
		b = base64.StdEncoding.AppendEncode(append(b, '"'), v.Bytes().AsRaw())
		return append(b, '"')
	case pcommon.ValueTypeSlice:
		b = append(b, '[')
		for i, item := range v.Slice().All() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case pcommon.ValueTypeMap:
		b = append(b, '{')
		for key, item := range v.Map().All() {
			if b[len(b)-1] != '{' {
				b = append(b, ',')
			}
			b = append(appendJSONText(b, key), ':')
			b = appendJSON(b, item)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

func appendJSONText(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // of a string: no error
	return append(b, quoted...)
}

// asText is v as a text: a string as it is, anything else in JSON.
func asText(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeDouble:
		return floatText(v.Double())
	case pcommon.ValueTypeBytes:
		return base64.StdEncoding.EncodeToString(v.Bytes().AsRaw())
	}
	return string(appendJSON(nil, v))
}
