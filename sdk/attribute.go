// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens // import "github.com/lenscol/lenscol/sdk"

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"go.opentelemetry.io/otel/attribute"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// Attr is an attribute of a span. Text, integers, floats and booleans have constructors that take no memory of their own;
// [Any] and [KeyValue] make an Attr of other things. The zero value is none: spans leave it out, as they leave out one
// without a key. The text of a key that the redaction names ([SetRedaction]) is written as [Redacted].
//
// It is OpenTelemetry's attribute.KeyValue in half the size, small enough to be built in registers: a start with three of
// those in a group that is off takes 34 ns, with three of these 4 ns (BenchmarkStartDisabled).
type Attr struct {
	key string
	// What kind of value it is: &kinds[i] for one in num; where num is isValue, an *attribute.Value; else the bytes of a text of
	// length num.
	ptr unsafe.Pointer
	num uint64
}

// kinds are marks: their addresses count, not what they hold.
var kinds [3]byte

const (
	kindBool = iota
	kindInt
	kindFloat

	isValue = 1 << 63 // longer than any text
)

// String is an attribute of text.
func String(key, value string) Attr {
	return Attr{key, unsafe.Pointer(unsafe.StringData(value)), uint64(len(value))}
}

// Int is an attribute of an integer.
func Int(key string, value int) Attr {
	return Attr{key, unsafe.Pointer(&kinds[kindInt]), uint64(value)}
}

// Int64 is an attribute of an integer.
func Int64(key string, value int64) Attr {
	return Attr{key, unsafe.Pointer(&kinds[kindInt]), uint64(value)}
}

// Float64 is an attribute of a float.
func Float64(key string, value float64) Attr {
	return Attr{key, unsafe.Pointer(&kinds[kindFloat]), math.Float64bits(value)}
}

// Bool is an attribute of a truth value.
func Bool(key string, value bool) Attr {
	var num uint64
	if value {
		num = 1
	}
	return Attr{key, unsafe.Pointer(&kinds[kindBool]), num}
}

// KeyValue is an OpenTelemetry attribute. Spans take texts, integers, floats, booleans and lists of one of them, and leave
// out bytes, maps and mixed lists.
func KeyValue(kv attribute.KeyValue) Attr {
	return Attr{string(kv.Key), unsafe.Pointer(&kv.Value), isValue}
}

// Any is an attribute of any value, by the rules of NeMo Lens (safe_set_span_attributes): booleans, integers, floats and text,
// also by a named type, and lists of one of them, are kept. All else gives no attribute: nil, integers beyond 64 bits
// signed, structs, maps, bytes.
func Any(key string, value any) Attr {
	v := reflect.ValueOf(value)
	var out attribute.Value
	if kind := v.Kind(); kind != reflect.Slice && kind != reflect.Array {
		out = scalarValue(v)
	} else if v.Type().Elem().Kind() != reflect.Uint8 {
		out = listValue(v)
	}
	return KeyValue(attribute.KeyValue{Key: attribute.Key(key), Value: out})
}

// set makes kv the attribute. In place, which takes half the time of returning it.
func (a *Attr) set(kv *attribute.KeyValue) {
	kv.Key = attribute.Key(a.key)
	switch {
	case a.ptr == unsafe.Pointer(&kinds[kindInt]):
		kv.Value = attribute.Int64Value(int64(a.num))
	case a.ptr == unsafe.Pointer(&kinds[kindFloat]):
		kv.Value = attribute.Float64Value(math.Float64frombits(a.num))
	case a.ptr == unsafe.Pointer(&kinds[kindBool]):
		kv.Value = attribute.BoolValue(a.num != 0)
	case a.num == isValue:
		kv.Value = *(*attribute.Value)(a.ptr)
	default:
		kv.Value = attribute.StringValue(unsafe.String((*byte)(a.ptr), a.num))
	}
}

func scalarValue(v reflect.Value) attribute.Value {
	if v.Kind() == reflect.Interface { // a member of a []any
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Bool:
		return attribute.BoolValue(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return attribute.Int64Value(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if u := v.Uint(); u <= math.MaxInt64 {
			return attribute.Int64Value(int64(u))
		}
	case reflect.Float32, reflect.Float64:
		return attribute.Float64Value(v.Float())
	case reflect.String:
		return attribute.StringValue(v.String())
	}
	return attribute.Value{}
}

// listValue is a list whose values are all of one scalar kind, or nothing.
func listValue(v reflect.Value) attribute.Value {
	var (
		bools  []bool
		ints   []int64
		floats []float64
		texts  = []string{} // an empty list of any kind is one of texts
	)
	for i := range v.Len() {
		switch value := scalarValue(v.Index(i)); value.Type() {
		case attribute.BOOL:
			bools = append(bools, value.AsBool())
		case attribute.INT64:
			ints = append(ints, value.AsInt64())
		case attribute.FLOAT64:
			floats = append(floats, value.AsFloat64())
		case attribute.STRING:
			texts = append(texts, value.AsString())
		}
	}
	switch v.Len() {
	case len(texts):
		return attribute.StringSliceValue(texts)
	case len(bools):
		return attribute.BoolSliceValue(bools)
	case len(ints):
		return attribute.Int64SliceValue(ints)
	case len(floats):
		return attribute.Float64SliceValue(floats)
	}
	return attribute.Value{}
}

// Redacted stands for what the redaction took out.
const Redacted = "[REDACTED]"

// Redaction says what attributes must not tell.
type Redaction struct {
	// Keys are those whose text is replaced as a whole: exact, and case matters. Lists, span names and the texts of errors are
	// not theirs.
	Keys []string
	// Patterns are replaced wherever they match: in texts, lists of texts, and the texts of errors.
	Patterns []*regexp.Regexp
}

// DefaultRedaction is that of NeMo Lens: its keys, no patterns.
func DefaultRedaction() Redaction { return Redaction{Keys: semconv.RedactedKeys()} }

// SetRedaction replaces the redaction of all spans from now on.
func SetRedaction(r Redaction) { redaction.Store(newRedactor(r)) }

var redaction atomic.Pointer[redactor]

func init() { SetRedaction(DefaultRedaction()) }

// redactor is never changed once it is stored.
type redactor struct {
	keys     map[attribute.Key]struct{}
	patterns []*regexp.Regexp
}

func newRedactor(r Redaction) *redactor {
	out := &redactor{keys: make(map[attribute.Key]struct{}, len(r.Keys)), patterns: slices.Clone(r.Patterns)}
	for _, key := range r.Keys {
		out.keys[attribute.Key(key)] = struct{}{}
	}
	return out
}

// changes reports whether [redactor.text] may return another text.
func (r *redactor) changes(text string) bool { return len(r.patterns) > 0 || !utf8.ValidString(text) }

// text is without what the patterns match, and UTF-8: one bad byte would cost every span that is exported with it.
func (r *redactor) text(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for _, pattern := range r.patterns {
		text = pattern.ReplaceAllLiteralString(text, Redacted)
	}
	return text
}

// safe are the attributes that spans take, redacted.
func safe(attrs []Attr) []attribute.KeyValue {
	return safeIn(make([]attribute.KeyValue, len(attrs)), attrs)
}

// safeIn is safe in the memory of out, which is as long as attrs.
func safeIn(out []attribute.KeyValue, attrs []Attr) []attribute.KeyValue {
	r, n := redaction.Load(), 0
	for i := range attrs {
		attrs[i].set(&out[n])
		if r.take(&out[n]) {
			n++
		}
	}
	return out[:n]
}

// clean leaves in kvs what spans take, redacted.
func (r *redactor) clean(kvs []attribute.KeyValue) []attribute.KeyValue {
	n := 0
	for i := range kvs {
		if r.take(&kvs[i]) {
			if n != i {
				kvs[n] = kvs[i]
			}
			n++
		}
	}
	return kvs[:n]
}

// take redacts kv, and reports whether spans take it.
func (r *redactor) take(kv *attribute.KeyValue) bool {
	switch kv.Value.Type() {
	case attribute.BOOL, attribute.INT64, attribute.FLOAT64, attribute.BOOLSLICE, attribute.INT64SLICE, attribute.FLOAT64SLICE:
	case attribute.STRING:
		if _, redact := r.keys[kv.Key]; redact {
			kv.Value = attribute.StringValue(Redacted)
		} else if text := kv.Value.AsString(); r.changes(text) {
			kv.Value = attribute.StringValue(r.text(text))
		}
	case attribute.STRINGSLICE:
		if texts := kv.Value.AsStringSlice(); slices.ContainsFunc(texts, r.changes) {
			for i := range texts {
				texts[i] = r.text(texts[i])
			}
			kv.Value = attribute.StringSliceValue(texts)
		}
	default:
		return false
	}
	return kv.Key != ""
}
