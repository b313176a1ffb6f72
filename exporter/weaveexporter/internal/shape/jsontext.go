// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Weave decodes every text that starts with a brace or a bracket; the Agents endpoint any message. A decoder in Python raises, instead of giving up,
// on integers of more than 4,300 digits and on deep nesting, and reads NaN and Infinity, which nobody can read again.
const (
	maxJSONDeep   = 64
	maxJSONDigits = 4300
	undecodable   = "text: " // before a text that must stay a text
)

const jsonBlanks = " \t\r\n"

// startsAsJSON tells whether s starts as an array, an object or a quoted text.
func startsAsJSON(s string) bool {
	start := strings.TrimLeft(s, jsonBlanks)
	return start != "" && strings.Contains(`{["`, start[:1])
}

// isJSON tells whether Python decodes s to an array, an object or a text.
func isJSON(s string) bool { return startsAsJSON(s) && json.Valid([]byte(quoteNonFinite(s))) }

// failsToDecode tells whether a decoder could raise on s. It looks at marks outside of quotes only, which are those that a decoder gets to.
func failsToDecode(s string) bool {
	if len(s) <= maxJSONDeep {
		return false
	}
	start := strings.TrimLeft(s, jsonBlanks)
	if start == "" {
		return false
	}
	switch c := start[0]; {
	case c == '[' || c == '{':
		return deeperThan(s, maxJSONDeep) || longNumber(s)
	case c == '-' || isDigit(c):
		return longNumber(s)
	}
	return false
}

// guarded returns s so that it cannot fail.
func guarded(s string, n *Counts) string {
	if !failsToDecode(s) {
		return s
	}
	n[JSONText]++
	return undecodable + s
}

// Half a surrogate pair, as JavaScript leaves where it cuts an emoji, has an escape in JSON and no form in UTF-8: Python decodes it, and cannot write it
// again, neither into a row of the Agents view nor into a list of the project's calls (wandb/weave#6731).
const replacementEscape = `\ufffd`

// halfSurrogate returns where in s, from place i on, an escape of half a surrogate pair stands; -1: nowhere.
func halfSurrogate(s string, i int) int {
	for i < len(s) {
		next := strings.IndexByte(s[i:], '\\')
		if next < 0 {
			return -1
		}
		i += next
		switch c := escaped(s[i:]); {
		case !utf16.IsSurrogate(c):
			i += 2
		case utf16.DecodeRune(c, escaped(s[i+len(replacementEscape):])) == utf8.RuneError:
			return i
		default:
			i += 2 * len(replacementEscape)
		}
	}
	return -1
}

// escaped is the code of the escape \uXXXX that s begins with; -1: it begins with none.
func escaped(s string) rune {
	if len(s) < len(replacementEscape) || s[:2] != `\u` {
		return -1
	}
	code, err := strconv.ParseUint(s[2:len(replacementEscape)], 16, 16)
	if err != nil {
		return -1
	}
	return rune(code)
}

// hasHalfSurrogate tells whether a decoder gets half a surrogate pair out of s.
func hasHalfSurrogate(s string) bool {
	return startsAsJSON(s) && halfSurrogate(s, 0) >= 0 && isJSON(s)
}

// paired returns s with U+FFFD for each half of a surrogate pair that a decoder would get.
func paired(s string, n *Counts) string {
	if !hasHalfSurrogate(s) {
		return s
	}
	n[InvalidUTF8]++
	out := []byte(s)
	for i := halfSurrogate(s, 0); i >= 0; i = halfSurrogate(s, i+len(replacementEscape)) {
		copy(out[i:], replacementEscape)
	}
	return string(out)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func deeperThan(s string, limit int) bool { return nesting(s, limit) > limit }

// nesting is how deep arrays and objects lie in each other in s, or the first depth beyond limit.
func nesting(s string, limit int) (deepest int) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[', '{':
			if depth++; depth > deepest {
				deepest = depth
			}
			if depth > limit {
				return deepest
			}
		case ']', '}':
			depth--
		case '"':
			i = quoteEnd(s, i) - 1
		}
	}
	return deepest
}

// quoteEnd returns where the quoted text that starts at i ends, behind its last quote.
func quoteEnd(s string, i int) int {
	for i++; i < len(s); i++ {
		next := strings.IndexAny(s[i:], `"\`)
		if next < 0 {
			return len(s)
		}
		if i += next; s[i] == '"' {
			return i + 1
		}
		i++ // what is escaped
	}
	return len(s)
}

func longNumber(s string) bool {
	if len(s) <= maxJSONDigits {
		return false
	}
	for _, token := range bare(s) {
		run := 0
		for i := 0; i < len(token) && run <= maxJSONDigits; i++ {
			if run++; !isDigit(token[i]) {
				run = 0
			}
		}
		if run > maxJSONDigits {
			return true
		}
	}
	return false
}

// decoded tells whether Weave would try to decode s.
func decoded(s string) bool { return s != "" && (s[0] == '[' || s[0] == '{') }

// hasNonFinite tells whether Weave, decoding s, gets a number that is not finite.
func hasNonFinite(s string) bool {
	if !decoded(s) {
		return false
	}
	for _, token := range bare(s) {
		if nonFinite(token) {
			return true
		}
	}
	return false
}

// quoteNonFinite puts quotes around the numbers in s that are not finite.
func quoteNonFinite(s string) string {
	var out strings.Builder
	at := 0
	for start, token := range bare(s) {
		if nonFinite(token) {
			out.WriteString(s[at:start])
			out.WriteString(`"` + token + `"`)
			at = start + len(token)
		}
	}
	out.WriteString(s[at:])
	return out.String()
}

func nonFinite(token string) bool {
	switch token {
	case "NaN", "Infinity", "-Infinity":
		return true
	}
	if len(token) < 4 || !strings.ContainsAny(token, ".eE") {
		return false // integers of Python have no bound
	}
	f, _ := strconv.ParseFloat(token, 64)
	return math.IsInf(f, 0)
}

// bare yields the runs of letters, digits and signs in s that stand outside of quotes, with their places: numbers and literals.
func bare(s string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := 0; i < len(s); {
			start := i
			for i < len(s) && inToken(s[i]) {
				i++
			}
			switch {
			case i > start:
				if !yield(start, s[start:i]) {
					return
				}
			case s[i] == '"':
				i = quoteEnd(s, i)
			default:
				i++
			}
		}
	}
}

// quotedValues yields the texts in JSON, in their quotes, but for the keys of objects.
func quotedValues(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := strings.IndexByte(s, '"'); i >= 0 && i < len(s); {
			end := quoteEnd(s, i)
			rest := strings.TrimLeft(s[end:], jsonBlanks)
			if !strings.HasPrefix(rest, ":") && !yield(s[i:end]) {
				return
			}
			next := strings.IndexByte(s[end:], '"')
			if next < 0 {
				return
			}
			i = end + next
		}
	}
}

func inToken(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// parseObject decodes s as Weave would, if that gives an object.
func parseObject(s string) (pcommon.Map, bool) {
	if s == "" || s[0] != '{' {
		return pcommon.Map{}, false
	}
	d := json.NewDecoder(strings.NewReader(quoteNonFinite(s)))
	d.UseNumber()
	var raw map[string]any
	if d.Decode(&raw) != nil {
		return pcommon.Map{}, false
	}
	if _, err := d.Token(); err != io.EOF {
		return pcommon.Map{}, false
	}
	v := pcommon.NewValueEmpty()
	fill(v, raw)
	return v.Map(), true
}

// fill sets v to what encoding/json gave, keys sorted. Integers that fit stay integers.
func fill(v pcommon.Value, raw any) {
	switch raw := raw.(type) {
	case string:
		v.SetStr(raw)
	case bool:
		v.SetBool(raw)
	case json.Number:
		if i, err := raw.Int64(); err == nil {
			v.SetInt(i)
		} else if f, err := raw.Float64(); err == nil {
			v.SetDouble(f)
		} else {
			v.SetStr(raw.String())
		}
	case map[string]any:
		m := v.SetEmptyMap()
		m.EnsureCapacity(len(raw))
		for _, key := range slices.Sorted(maps.Keys(raw)) {
			fill(m.PutEmpty(key), raw[key])
		}
	case []any:
		list := v.SetEmptySlice()
		list.EnsureCapacity(len(raw))
		for _, item := range raw {
			fill(list.AppendEmpty(), item)
		}
	}
}
