// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// This release of pdata has the forms that sharing needs; where a later one has not, pieces are copied.
func TestThisReleaseShares(t *testing.T) {
	require.True(t, Allowed())
	require.False(t, isList[otherList, ptrace.Span](), "a list that begins with something else")
	require.False(t, isList[listOfValues, element]())
	require.True(t, isList[listOfPointers, element]())

	value := reflect.TypeFor[pcommon.Value]()
	for _, other := range []any{1, struct{}{}, element{}, otherList{}, listOfPointers{}, struct{ _ *[]struct{ Key string } }{}} {
		require.False(t, isMap(reflect.TypeOf(other), value), "%T", other)
		require.False(t, isMap(reflect.TypeFor[pcommon.Map](), reflect.TypeOf(other)), "%T", other)
	}
}

type (
	element        struct{ _ *int }
	otherList      struct{ ptrace.SpanSlice }
	listOfValues   struct{ List[element] }
	listOfPointers struct {
		_ *[]*int
		List[element]
	}
)

func TestPoolingForbidsSharing(t *testing.T) {
	const gate = "pdata.useProtoPooling"
	require.NoError(t, featuregate.GlobalRegistry().Set(gate, true))
	defer func() { require.NoError(t, featuregate.GlobalRegistry().Set(gate, false)) }()
	require.False(t, Allowed())
}

// What is put is there as if it had been copied, whatever becomes of the places that share it.
func TestPut(t *testing.T) {
	values := map[string]any{
		"text": "a", "int": int64(7), "bool": true, "double": 2.5, "none": nil, "list": []any{"x", int64(1)}, "map": map[string]any{"y": "z"}, "bytes": []byte{1, 2},
	}
	for _, allowed := range []bool{true, false} {
		for name, raw := range values {
			t.Run(fmt.Sprint(name, " ", allowed), func(t *testing.T) {
				v := pcommon.NewValueEmpty()
				require.NoError(t, v.FromRaw(raw))
				one, two, three := pcommon.NewMap(), pcommon.NewMap(), pcommon.NewMap()
				one.PutStr("first", "stays")
				attribute := NewAttribute(allowed, "key", v)
				attribute.Put(one)
				attribute.Put(two)
				Put(allowed, three, "key", v)
				require.Equal(t, map[string]any{"first": "stays", "key": raw}, one.AsRaw())
				require.Equal(t, "key", attribute.Key())

				// Every way to change a value, in one place, leaves the others as they are.
				changed, _ := one.Get("key")
				for _, change := range []func(){
					func() {
						switch changed.Type() { // What has parts can be changed without another value. pdata's own copies share bytes.
						case pcommon.ValueTypeSlice:
							changed.Slice().At(0).SetStr("other")
						case pcommon.ValueTypeMap:
							changed.Map().PutStr("y", "other")
						}
					},
					func() { changed.SetStr("other") }, func() { changed.SetInt(8) }, func() { changed.SetBool(false) }, func() { changed.SetDouble(1) },
					func() { changed.SetEmptySlice().AppendEmpty().SetStr("b") }, func() { changed.SetEmptyMap().PutStr("c", "d") },
					func() { changed.SetEmptyBytes().FromRaw([]byte{9}) }, func() { pcommon.NewValueStr("e").CopyTo(changed) },
					func() { pcommon.NewValueStr("f").MoveTo(changed) }, func() { one.PutStr("key", "g") }, func() { one.PutEmpty("key") },
					func() { one.Remove("key") },
				} {
					change()
					require.Equal(t, map[string]any{"key": raw}, two.AsRaw())
					require.Equal(t, map[string]any{"key": raw}, three.AsRaw())
					require.Equal(t, raw, attribute.Value().AsRaw())
				}
			})
		}
	}
}

// The collector frees what nobody points to; what is shared lives on.
func TestPutOutlivesTheFirstOwner(t *testing.T) {
	m := pcommon.NewMap()
	for i := range 1000 {
		Put(true, m, fmt.Sprint("key", i), pcommon.NewValueStr(fmt.Sprint("value", i)))
	}
	runtime.GC()
	for i := range 1000 {
		v, ok := m.Get(fmt.Sprint("key", i))
		require.True(t, ok)
		require.Equal(t, fmt.Sprint("value", i), v.Str())
	}
}

func TestReadOnlyMapsPanic(t *testing.T) {
	td := ptrace.NewTraces()
	attrs := td.ResourceSpans().AppendEmpty().Resource().Attributes()
	td.MarkReadOnly()
	for _, allowed := range []bool{true, false} {
		require.Panics(t, func() { Put(allowed, attrs, "key", pcommon.NewValueStr("v")) })
		require.Panics(t, func() { new(Room).Grow(allowed, attrs, 1, 0) })
	}
}

// Maps that grow together hold what they held, and are told apart whatever is added to them, more than they asked for too.
func TestGrow(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		var room Room
		var maps []pcommon.Map
		for i := range 100 {
			m := pcommon.NewMap()
			for j := range i {
				m.PutInt(fmt.Sprint("had", j), int64(i))
			}
			maps = append(maps, m)
			room.Grow(allowed, m, 3, 100-i)
			require.Equal(t, i, m.Len())
		}
		for i, m := range maps {
			for j := range 5 {
				m.PutInt(fmt.Sprint("got", j), int64(i))
			}
		}
		for i, m := range maps {
			require.Equal(t, i+5, m.Len())
			for key, v := range m.All() {
				require.Equal(t, int64(i), v.Int(), key)
			}
		}
	}
}

func TestGrowTakesNoMoreThanIsNeeded(t *testing.T) {
	m := pcommon.NewMap()
	m.EnsureCapacity(4)
	var room Room
	require.Zero(t, testing.AllocsPerRun(10, func() { room.Grow(true, m, 4, 1000) }), "there is room")
	room.Grow(true, m, 5, 1000)
	require.Less(t, len(room.free), maxRoom)
	room = Room{}
	room.Grow(true, m, maxRoom+10, 0)
	require.Empty(t, room.free)
}
