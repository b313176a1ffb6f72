// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decodeJSON is Python's json.loads as Weave calls it: text that is not JSON stays text, NaN and Infinity are values, and
// two kinds of text fail the request: an integer of more than 4,300 digits, and nesting beyond the interpreter's recursion limit.
func decodeJSON(text string) (any, error) {
	r := jsonReader{rest: text}
	r.space()
	v, err := r.value(0)
	if err == nil && strings.Trim(r.rest, jsonSpace) != "" {
		err = errNotJSON
	}
	if errors.Is(err, errNotJSON) {
		return text, nil
	}
	return v, err
}

const (
	jsonSpace      = " \t\n\r"
	jsonScanDepth  = 9900 // of Python 3.13, some levels lower
	pythonIntLimit = 4300 // digits: sys.get_int_max_str_digits()
)

var (
	errNotJSON = errors.New("not JSON")
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`)
	jsonString = regexp.MustCompile(`^"([^"\\\x00-\x1f]|\\.)*"`)
	jsonEscape = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.`) // a pair of surrogates is one
	jsonHalf   = regexp.MustCompile(`^\\u[dD][89a-fA-F]..$`)
	jsonWords  = map[string]any{
		"null": nil, "true": true, "false": false, "NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1),
	}
)

type jsonReader struct{ rest string }

func (r *jsonReader) value(depth int) (any, error) {
	if depth > jsonScanDepth {
		return nil, fail(http.StatusInternalServerError, "RecursionError in JSON text")
	}
	switch {
	case r.eat("{"):
		return r.object(depth)
	case r.eat("["):
		return r.list(depth)
	case strings.HasPrefix(r.rest, `"`):
		return r.text()
	}
	for word, v := range jsonWords {
		if r.eat(word) {
			return v, nil
		}
	}
	return r.number()
}

func (r *jsonReader) object(depth int) (any, error) {
	m := map[string]any{}
	if r.space(); r.eat("}") {
		return m, nil
	}
	for {
		r.space()
		key, err := r.text()
		if err != nil {
			return nil, err
		}
		if r.space(); !r.eat(":") {
			return nil, errNotJSON
		}
		r.space()
		if m[key], err = r.value(depth + 1); err != nil {
			return nil, err
		}
		r.space()
		switch {
		case r.eat("}"):
			return m, nil
		case !r.eat(","):
			return nil, errNotJSON
		}
	}
}

func (r *jsonReader) list(depth int) (any, error) {
	list := []any{}
	if r.space(); r.eat("]") {
		return list, nil
	}
	for {
		r.space()
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		r.space()
		switch {
		case r.eat("]"):
			return list, nil
		case !r.eat(","):
			return nil, errNotJSON
		}
	}
}

func (r *jsonReader) text() (string, error) {
	raw := jsonString.FindString(r.rest)
	if raw == "" {
		return "", errNotJSON
	}
	r.rest = r.rest[len(raw):]
	var s strings.Builder
	at := 1
	for _, found := range jsonEscape.FindAllStringIndex(raw, -1) {
		if escape := raw[found[0]:found[1]]; !jsonHalf.MatchString(escape) {
			continue
		}
		if err := unquote(&s, raw[at:found[0]]); err != nil {
			return "", err
		}
		s.WriteString(half)
		at = found[1]
	}
	err := unquote(&s, raw[at:len(raw)-1])
	return s.String(), err
}

func unquote(into *strings.Builder, text string) error {
	var s string
	if json.Unmarshal([]byte(`"`+text+`"`), &s) != nil {
		return errNotJSON
	}
	into.WriteString(s)
	return nil
}

// half is half a surrogate pair, which texts of Python may hold and UTF-8 has no form for.
const half = "\xed\xa0\x80"

// encodable tells whether Python can write a value in UTF-8.
func encodable(v any) bool {
	switch v := v.(type) {
	case string:
		return utf8.ValidString(v)
	case []any:
		for _, e := range v {
			if !encodable(e) {
				return false
			}
		}
	case map[string]any:
		for k, e := range v {
			if !utf8.ValidString(k) || !encodable(e) {
				return false
			}
		}
	}
	return true
}

func (r *jsonReader) number() (any, error) {
	raw := jsonNumber.FindString(r.rest)
	if raw == "" {
		return nil, errNotJSON
	}
	r.rest = r.rest[len(raw):]
	whole := !strings.ContainsAny(raw, ".eE")
	if whole && len(strings.TrimPrefix(raw, "-")) > pythonIntLimit {
		return nil, fail(http.StatusBadRequest, "Exceeds the limit (%d digits) for integer string conversion", pythonIntLimit)
	}
	if n, err := strconv.ParseInt(raw, 10, 64); whole && err == nil {
		return n, nil
	}
	f, _ := strconv.ParseFloat(raw, 64) // Out of range: an infinity, as in Python.
	return f, nil
}

func (r *jsonReader) space() { r.rest = strings.TrimLeft(r.rest, jsonSpace) }

func (r *jsonReader) eat(word string) bool {
	rest, ok := strings.CutPrefix(r.rest, word)
	if ok {
		r.rest = rest
	}
	return ok
}

// dumpedSize is the length of Python's json.dumps of a value, or some bytes more.
func dumpedSize(v any) int {
	size, items := 0, 0
	switch v := v.(type) {
	case nil:
		return len("null")
	case bool:
		return len("false")
	case int64:
		return len(strconv.FormatInt(v, 10))
	case float64:
		return floatSize(v)
	case string:
		return textSize(v)
	case []byte:
		return base64.StdEncoding.EncodedLen(len(v)) + 2
	case []any:
		for _, e := range v {
			size += dumpedSize(e)
		}
		items = len(v)
	case map[string]any:
		for k, e := range v {
			size += textSize(k) + len(": ") + dumpedSize(e)
		}
		items = len(v)
	}
	return size + items*len(", ") + len("[]")
}

// floatSize is the length of Python's repr: with an exponent below 1e-4 and from 1e16 on.
func floatSize(f float64) int {
	switch abs := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return len("-Infinity")
	case abs == 0 || 1e-4 <= abs && abs < 1e16:
		return len(strconv.FormatFloat(f, 'f', -1, 64)) + len(".0")
	}
	return len(strconv.FormatFloat(f, 'e', -1, 64))
}

// textSize is the length of a text in quotes, all but ASCII escaped.
func textSize(s string) int {
	size := len(`""`)
	for _, r := range s {
		switch {
		case r > 0xffff:
			size += len(`\ud83d\ude80`)
		case r > '~' || r < ' ':
			size += len(`\u0000`)
		case r == '"' || r == '\\':
			size += 2
		default:
			size++
		}
	}
	return size
}
