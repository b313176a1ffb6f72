// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharing puts one piece of pdata into several places without copying it: pdata has no function for this. Its types are
// looked at once, by reflection; in a release where they have another form, and where pdata takes pieces back for others, everything
// is copied.
package sharing // import "github.com/lenscol/lenscol/internal/sharing"

import (
	"reflect"
	"unsafe"

	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Allowed reports whether this release of pdata lets pieces be shared. Ask it when a component is made: the gates of the
// command line are not set before.
func Allowed() bool { return hasTheForm && !takesBack() }

var hasTheForm = isList[ptrace.ResourceSpansSlice, ptrace.ResourceSpans]() &&
	isList[ptrace.SpanSlice, ptrace.Span]() &&
	isList[pmetric.ResourceMetricsSlice, pmetric.ResourceMetrics]() &&
	isList[plog.ResourceLogsSlice, plog.ResourceLogs]() &&
	isList[plog.LogRecordSlice, plog.LogRecord]() &&
	isMap(reflect.TypeFor[pcommon.Map](), reflect.TypeFor[pcommon.Value]())

// takesBack reports whether pdata takes the pieces of a batch back when the batch is done, which sharing does not
// survive. That is an experiment behind a gate, off by default; where the gate is unknown the answer is yes.
func takesBack() bool {
	pools := true
	featuregate.GlobalRegistry().VisitAll(func(g *featuregate.Gate) {
		if g.ID() == "pdata.useProtoPooling" {
			pools = g.IsEnabled()
		}
	})
	return pools
}

// List is a list of pdata: resources, scopes, spans or log records.
type List[E any] interface {
	Len() int
	At(int) E
	AppendEmpty() E
}

// Append puts e at the end of a list of another batch; where allowed, both lists then point to the same element, and nothing
// below it is visited or copied. Both batches are bound by the same rule, that of the one that came in: read-only where that
// is marked so.
func Append[L List[E], E interface{ CopyTo(E) }](allowed bool, list L, e E) {
	if !allowed {
		e.CopyTo(list.AppendEmpty())
		return
	}
	pointers := *(**[]unsafe.Pointer)(unsafe.Pointer(&list))
	*pointers = append(*pointers, *(*unsafe.Pointer)(unsafe.Pointer(&e)))
}

// isList reports whether L and E look as Append takes them to: a list is a struct that begins with a pointer to a slice of
// pointers to elements, and an element a struct that begins with such a pointer.
func isList[L List[E], E any]() bool {
	list, element := first(reflect.TypeFor[L]()), first(reflect.TypeFor[E]())
	return element != nil && element.Kind() == reflect.Pointer && list == reflect.PointerTo(reflect.SliceOf(element))
}

// Attribute is an attribute that many maps get. Where allowed, a number, a boolean or a text is not copied but pointed to. pdata never changes
// one in place: to set a value is to point to another.
type Attribute struct {
	pair   keyValue
	value  pcommon.Value
	shared bool
}

// NewAttribute makes one.
func NewAttribute(allowed bool, key string, v pcommon.Value) Attribute {
	a := Attribute{pair: keyValue{key: key}, value: v}
	if a.shared = allowed && v.Type() != pcommon.ValueTypeMap && v.Type() != pcommon.ValueTypeSlice && v.Type() != pcommon.ValueTypeBytes; a.shared {
		a.pair.value = **(**any)(unsafe.Pointer(&v))
	}
	return a
}

// Key is its key.
func (a *Attribute) Key() string { return a.pair.key }

// Value is its value. It must not be changed.
func (a *Attribute) Value() pcommon.Value { return a.value }

// Put puts it at the end of a map that has none of that key.
func (a *Attribute) Put(m pcommon.Map) {
	if !a.shared {
		a.value.CopyTo(m.PutEmpty(a.pair.key))
		return
	}
	m.EnsureCapacity(0) // panics where the map is read-only
	list := *(**[]keyValue)(unsafe.Pointer(&m))
	*list = append(*list, a.pair)
}

// Put puts an attribute, made for it alone, at the end of a map that has none of that key.
func Put(allowed bool, m pcommon.Map, key string, v pcommon.Value) {
	a := NewAttribute(allowed, key, v)
	a.Put(m)
}

// Room is where the maps of one batch grow: several share one piece of memory, each with a place of its own in it.
type Room struct{ free []keyValue }

const maxRoom = 256 // attributes in one piece of memory, unless one map needs more

// Grow makes room for n more attributes in m; about as many other maps will ask for the same.
func (r *Room) Grow(allowed bool, m pcommon.Map, n, others int) {
	if !allowed {
		m.EnsureCapacity(m.Len() + n)
		return
	}
	list := *(**[]keyValue)(unsafe.Pointer(&m))
	size := len(*list) + n
	if size <= cap(*list) {
		return
	}
	m.EnsureCapacity(0) // panics where the map is read-only
	if size > len(r.free) {
		r.free = make([]keyValue, max(size, min(size*(others+1), maxRoom)))
	}
	place := r.free[:len(*list):size]
	r.free = r.free[size:]
	copy(place, *list)
	*list = place
}

// keyValue is pdata's attribute.
type keyValue struct {
	value any
	key   string
	_     int32 // a place in a table of keys, 0 for none
}

// isMap reports whether maps and values look as Put and Grow take them to: a map is a struct that begins with a pointer to a slice of
// keyValue, and a value one that begins with a pointer to the first field of such a keyValue.
func isMap(m, v reflect.Type) bool {
	list, value := first(m), first(v)
	if list == nil || value == nil || list.Kind() != reflect.Pointer || list.Elem().Kind() != reflect.Slice || value.Kind() != reflect.Pointer {
		return false
	}
	have, want := list.Elem().Elem(), reflect.TypeFor[keyValue]()
	if have.Kind() != reflect.Struct || have.NumField() != want.NumField() || have.Size() != want.Size() || have.Field(0).Type != value.Elem() {
		return false
	}
	for i := range have.NumField() {
		if have.Field(i).Offset != want.Field(i).Offset {
			return false
		}
	}
	return only(have.Field(0).Type) == want.Field(0).Type && have.Field(1).Type == want.Field(1).Type && have.Field(1).Name == "Key" &&
		have.Field(2).Type == want.Field(2).Type && have.Field(2).Name == "KeyStrindex"
}

// first is the type of a struct's first field, nil where there is none.
func first(t reflect.Type) reflect.Type {
	if t.Kind() != reflect.Struct || t.NumField() == 0 {
		return nil
	}
	return t.Field(0).Type
}

// only is the type of a struct's one field, nil where there is not one.
func only(t reflect.Type) reflect.Type {
	if t.Kind() != reflect.Struct || t.NumField() != 1 {
		return nil
	}
	return t.Field(0).Type
}
