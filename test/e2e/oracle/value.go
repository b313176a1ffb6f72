// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is a JSON value that keeps what encoding/json's maps lose: the order of keys, repeated keys, and whether a
// number is an integer or a double.
type Value struct {
	Kind    Kind
	Text    string   // Text: the text; Int: decimal digits; Bool: true or false
	Double  float64  // Double: finite
	List    []Value  // List
	Members []Member // Map, in the order of the line
}

// Member is one key of a map with its value.
type Member struct {
	Key   string
	Value Value
}

// Kind tells the kinds of JSON values apart; a number with a point or an exponent is a Double, any other an Int.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Int
	Double
	Text
	List
	Map
)

// Parse reads one JSON value that fills all of text. Text that is not UTF-8, and a double whose digits are not the
// shortest that read back the same, are errors.
func Parse(text []byte) (Value, error) {
	if !utf8.Valid(text) {
		return Value{}, errors.New("not UTF-8")
	}
	if !json.Valid(text) {
		return Value{}, errors.New("not JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := parseNext(dec)
	if err != nil {
		return Value{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Value{}, errors.New("more than one JSON value")
	}
	return v, nil
}

func parseNext(dec *json.Decoder) (Value, error) {
	token, err := dec.Token()
	if err != nil {
		return Value{}, err
	}
	switch t := token.(type) {
	case nil:
		return Value{}, nil
	case bool:
		return boolean(t), nil
	case string:
		return str(t), nil
	case json.Number:
		return parseNumber(t.String())
	case json.Delim:
		if t == '[' {
			return parseList(dec)
		}
		return parseMap(dec)
	}
	return Value{}, fmt.Errorf("unknown token %v", token)
}

func parseList(dec *json.Decoder) (Value, error) {
	v := Value{Kind: List}
	for dec.More() {
		item, err := parseNext(dec)
		if err != nil {
			return Value{}, err
		}
		v.List = append(v.List, item)
	}
	_, err := dec.Token()
	return v, err
}

func parseMap(dec *json.Decoder) (Value, error) {
	v := Value{Kind: Map}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return Value{}, err
		}
		item, err := parseNext(dec)
		if err != nil {
			return Value{}, err
		}
		v.Members = append(v.Members, Member{key.(string), item})
	}
	_, err := dec.Token()
	return v, err
}

func parseNumber(text string) (Value, error) {
	if !strings.ContainsAny(text, ".eE") {
		return Value{Kind: Int, Text: text}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Value{}, err
	}
	if shortest := strconv.FormatFloat(f, 'e', -1, 64); significant(text) != significant(shortest) {
		return Value{}, fmt.Errorf("%s is not the shortest form of %s", text, shortest)
	}
	return Value{Kind: Double, Double: f}, nil
}

// significant returns the digits of a number without sign, point, exponent and the zeros at both ends.
func significant(number string) string {
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	digits := strings.Replace(strings.TrimPrefix(mantissa, "-"), ".", "", 1)
	return strings.Trim(digits, "0")
}

// String writes the value as JSON-like text; equal values give equal text, others do not.
func (v Value) String() string {
	var b strings.Builder
	v.write(&b)
	return b.String()
}

func (v Value) write(b *strings.Builder) {
	switch v.Kind {
	case Null:
		b.WriteString("null")
	case Bool, Int:
		b.WriteString(v.Text)
	case Double:
		b.WriteString(strconv.FormatFloat(v.Double, 'e', -1, 64))
	case Text:
		b.WriteString(strconv.Quote(v.Text))
	case List:
		b.WriteByte('[')
		for i, item := range v.List {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case Map:
		b.WriteByte('{')
		for i, m := range v.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Quote(m.Key))
			b.WriteByte(':')
			m.Value.write(b)
		}
		b.WriteByte('}')
	}
}

// Get returns the value of the first member of that key.
func (v Value) Get(key string) (Value, bool) {
	for _, m := range v.Members {
		if m.Key == key {
			return m.Value, true
		}
	}
	return Value{}, false
}

// diff says where got first differs from want, as a path and both sides; "" when they are equal.
func diff(path string, want, got Value) string {
	switch {
	case want.Kind != got.Kind, want.Text != got.Text, math.Float64bits(want.Double) != math.Float64bits(got.Double):
		return fmt.Sprintf("%s: want %s, got %s", path, brief(want.String()), brief(got.String()))
	case len(want.List) != len(got.List):
		return fmt.Sprintf("%s: want %d values, got %d: want %s, got %s",
			path, len(want.List), len(got.List), brief(want.String()), brief(got.String()))
	}
	for i := range want.List {
		if d := diff(fmt.Sprintf("%s[%d]", path, i), want.List[i], got.List[i]); d != "" {
			return d
		}
	}
	for i := range min(len(want.Members), len(got.Members)) {
		w, g := want.Members[i], got.Members[i]
		if w.Key != g.Key {
			return fmt.Sprintf("%s: key %d: want %q, got %q", path, i, w.Key, g.Key)
		}
		if d := diff(path+"."+w.Key, w.Value, g.Value); d != "" {
			return d
		}
	}
	if n := len(got.Members); n < len(want.Members) {
		return fmt.Sprintf("%s: no key %q", path, want.Members[n].Key)
	}
	if n := len(want.Members); n < len(got.Members) {
		return fmt.Sprintf("%s: a key too many: %q", path, got.Members[n].Key)
	}
	return ""
}

func brief(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:most], ""), len(s))
}

func str(s string) Value { return Value{Kind: Text, Text: repaired(s)} }

// repaired is text with U+FFFD for each byte that is not UTF-8.
func repaired(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func boolean(b bool) Value { return Value{Kind: Bool, Text: strconv.FormatBool(b)} }

func integer[T int | int32 | int64](n T) Value {
	return Value{Kind: Int, Text: strconv.FormatInt(int64(n), 10)}
}

func unsigned[T uint32 | uint64](n T) Value {
	return Value{Kind: Int, Text: strconv.FormatUint(uint64(n), 10)}
}

// double is a JSON number where JSON has one for it, else {"@double": name}.
func double(f float64) Value {
	switch {
	case math.IsNaN(f):
		return only("@double", str("NaN"))
	case math.IsInf(f, 1):
		return only("@double", str("Infinity"))
	case math.IsInf(f, -1):
		return only("@double", str("-Infinity"))
	}
	return Value{Kind: Double, Double: f}
}

func list[T any](items []T, value func(T) Value) Value {
	v := Value{Kind: List}
	for _, item := range items {
		v.List = append(v.List, value(item))
	}
	return v
}

// only is a map of one member.
func only(key string, v Value) Value {
	return Value{Kind: Map, Members: []Member{{key, v}}}
}
