// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader // import "github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-faster/jx"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata"
)

// maxNesting bounds the JSON nesting of attributes or a log body. The format holds 64 lists and maps in each other, below the map of
// attributes itself; a map takes at most three levels, {"@pairs":[[k,v]]}; and the innermost value may be wrapped once more.
const maxNesting = 3*(1+64) + 1

var errNesting = fmt.Errorf("nested deeper than %d levels", maxNesting)

// maxAttributeHint bounds the attributes that are allocated for before they are seen.
const maxAttributeHint = 64

var specialDoubles = map[string]float64{
	"NaN":       math.Float64frombits(0x7ff8_0000_0000_0000), // as C, Java and Python make it; the bits of a NaN are not kept
	"Infinity":  math.Inf(1),
	"-Infinity": math.Inf(-1),
}

// value reads the attribute value or log body ahead into v. depth is the JSON nesting of v, 1 outermost.
func (d *decoder) value(v pcommon.Value, depth int) error {
	switch d.Next() {
	case jx.Null:
		return d.Null()
	case jx.Bool:
		return put(v.SetBool, d.Bool)
	case jx.String:
		return put(v.SetStr, d.Str)
	case jx.Number:
		n, err := d.number()
		if n.kind == numberInt {
			v.SetInt(n.i)
		} else {
			v.SetDouble(n.f)
		}
		return err
	case jx.Array:
		if depth > maxNesting {
			return errNesting
		}
		items := v.SetEmptySlice()
		return d.array(func() error { return d.value(items.AppendEmpty(), depth+1) })
	case jx.Object:
		if err := d.pairs(v.SetEmptyMap(), depth); err != nil {
			return err
		}
		return d.unwrap(v)
	default:
		return d.Skip() // says what is wrong with the JSON
	}
}

// attributes reads a map where only a map may stand; it is written by the same rules.
func (d *decoder) attributes(m pcommon.Map) error {
	if err := d.pairs(m, 1); err != nil {
		return err
	}
	if _, _, ok := wrapped(m); !ok {
		return nil
	}
	v := pcommon.NewValueMap()
	m.MoveTo(v.Map())
	if err := d.unwrap(v); err != nil {
		return err
	}
	if v.Type() != pcommon.ValueTypeMap {
		return fmt.Errorf("%s is not of type object", clip([]byte(v.AsString())))
	}
	v.Map().MoveTo(m)
	return nil
}

// pairs reads the object ahead as it stands. Whether it is a map or another value in a wrapper shows only once a second key is
// there or not, so that is for unwrap, and so the object below a sole "@map" stays as it stands too. That way every value is
// read once, however the wrappers are nested.
func (d *decoder) pairs(m pcommon.Map, depth int) error {
	if depth > maxNesting {
		return errNesting
	}
	if err := d.want(jx.Object); err != nil {
		return err
	}
	it, err := d.ObjIter()
	if err != nil {
		return err
	}
	var b xpdata.MapBuilder
	if depth == 1 {
		b.EnsureCapacity(min(d.attributeCount, maxAttributeHint))
	}
	var undecided pcommon.Value // below "@map", while that is the only key
	for n := 0; it.Next(); n++ {
		key := it.Key()
		if n == 1 && undecided != (pcommon.Value{}) {
			if err := d.unwrap(undecided); err != nil {
				return errKey([]byte("@map"), err)
			}
		}
		v := b.AppendEmpty(d.intern(key))
		if n == 0 && string(key) == "@map" && d.Next() == jx.Object {
			undecided = v
			err = d.pairs(v.SetEmptyMap(), depth+1)
		} else {
			err = d.value(v, depth+1)
		}
		if err != nil {
			return errKey(key, err)
		}
	}
	b.UnsafeIntoMap(m)
	if depth == 1 {
		d.attributeCount = m.Len()
	}
	return it.Err()
}

// unwrap turns v, a map as pairs leaves it, into what it stands for.
func (d *decoder) unwrap(v pcommon.Value) error {
	key, inner, ok := wrapped(v.Map())
	if !ok {
		return nil
	}
	switch key {
	case "@double":
		f, ok := specialDoubles[textOf(inner)]
		if !ok {
			return fmt.Errorf("key \"@double\": %s is not \"NaN\", \"Infinity\" or \"-Infinity\"", clip([]byte(inner.AsString())))
		}
		v.SetDouble(f)
	case "@bytes":
		raw, err := base64.StdEncoding.DecodeString(textOf(inner))
		if err != nil || inner.Type() != pcommon.ValueTypeStr {
			return fmt.Errorf("key \"@bytes\": %s is not base64 text", clip([]byte(inner.AsString())))
		}
		v.SetEmptyBytes().FromRaw(raw)
	case "@map":
		if inner.Type() != pcommon.ValueTypeMap {
			return fmt.Errorf("key \"@map\": %s is not of type object", clip([]byte(inner.AsString())))
		}
		// The map inside is meant literally; only what stands below a "@map" of its own is still undecided.
		if key, below, ok := wrapped(inner.Map()); ok && key == "@map" && below.Type() == pcommon.ValueTypeMap {
			if err := d.unwrap(below); err != nil {
				return err
			}
		}
		m := pcommon.NewMap()
		inner.Map().MoveTo(m)
		m.MoveTo(v.SetEmptyMap())
	case "@pairs":
		m := pcommon.NewMap()
		if err := pairList(inner, m); err != nil {
			return fmt.Errorf("key \"@pairs\": %w", err)
		}
		m.MoveTo(v.SetEmptyMap())
	default:
		d.unknownKeys++ // a wrapper of a newer minor version: kept as the map that it looks like
	}
	return nil
}

// wrapped returns the only pair of m if its key starts with "@".
func wrapped(m pcommon.Map) (string, pcommon.Value, bool) {
	if m.Len() == 1 {
		for key, v := range m.All() {
			return key, v, strings.HasPrefix(key, "@")
		}
	}
	return "", pcommon.Value{}, false
}

// pairList moves the pairs of [[k,v],…] to m.
func pairList(list pcommon.Value, m pcommon.Map) error {
	if list.Type() != pcommon.ValueTypeSlice {
		return fmt.Errorf("%s is not of type array", clip([]byte(list.AsString())))
	}
	var b xpdata.MapBuilder
	b.EnsureCapacity(list.Slice().Len())
	for i, item := range list.Slice().All() {
		if item.Type() != pcommon.ValueTypeSlice || item.Slice().Len() != 2 || item.Slice().At(0).Type() != pcommon.ValueTypeStr {
			return fmt.Errorf("item %d: %s is not [key, value]", i, clip([]byte(item.AsString())))
		}
		item.Slice().At(1).MoveTo(b.AppendEmpty(item.Slice().At(0).Str()))
	}
	b.UnsafeIntoMap(m)
	return nil
}

func textOf(v pcommon.Value) string {
	if v.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return v.Str()
}

// number is the value of a data point or an exemplar.
type number struct {
	kind numberKind
	i    int64
	f    float64
}

type numberKind int8

const (
	numberNone numberKind = iota
	numberInt
	numberDouble
)

// number reads null, an integer, or a double, which has a point or an exponent, or is a {"@double":…}.
func (d *decoder) number() (number, error) {
	switch d.Next() {
	case jx.Null:
		return number{}, d.Null()
	case jx.Number:
		text, err := d.Num()
		if err != nil {
			return number{}, err
		}
		if !bytes.ContainsAny(text, ".eE") {
			i, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil {
				return number{}, fmt.Errorf("%s is not an integer of 64 bits", clip(text))
			}
			return number{kind: numberInt, i: i}, nil
		}
		f, err := parseDouble(text)
		return number{kind: numberDouble, f: f}, err
	case jx.Object:
		v := pcommon.NewValueEmpty()
		if err := d.value(v, 1); err != nil {
			return number{}, err
		}
		if v.Type() == pcommon.ValueTypeDouble {
			return number{kind: numberDouble, f: v.Double()}, nil
		}
		return number{}, fmt.Errorf("%s is not of type number", clip([]byte(v.AsString())))
	default:
		return number{}, d.want(jx.Number)
	}
}

// double is a number that can only be a double. An integer is taken too: tools that rewrite a line may leave out the ".0".
func (d *decoder) double() (float64, error) {
	if d.Next() == jx.Number {
		text, err := d.Num()
		if err != nil {
			return 0, err
		}
		return parseDouble(text)
	}
	n, err := d.number()
	if err == nil && n.kind == numberNone {
		err = errors.New("null is not of type number")
	}
	return n.f, err
}

func parseDouble(text []byte) (float64, error) {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not a double", clip(text))
	}
	return f, nil
}
