// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/xpdata"
)

var quietNaN = math.Float64frombits(0x7ff8_0000_0000_0000)

func TestValue(t *testing.T) {
	str := func(s string) func(pcommon.Value) { return func(v pcommon.Value) { v.SetStr(s) } }
	integer := func(i int64) func(pcommon.Value) { return func(v pcommon.Value) { v.SetInt(i) } }
	double := func(f float64) func(pcommon.Value) { return func(v pcommon.Value) { v.SetDouble(f) } }
	raw := func(b ...byte) func(pcommon.Value) { return func(v pcommon.Value) { v.SetEmptyBytes().FromRaw(b) } }
	type pair struct {
		k string
		v func(pcommon.Value)
	}
	object := func(pairs ...pair) func(pcommon.Value) {
		return func(v pcommon.Value) {
			var b xpdata.MapBuilder
			for _, p := range pairs {
				p.v(b.AppendEmpty(p.k))
			}
			b.UnsafeIntoMap(v.SetEmptyMap())
		}
	}
	list := func(items ...func(pcommon.Value)) func(pcommon.Value) {
		return func(v pcommon.Value) {
			s := v.SetEmptySlice()
			for _, item := range items {
				item(s.AppendEmpty())
			}
		}
	}
	null := func(pcommon.Value) {}

	for _, tt := range []struct {
		json string
		want func(pcommon.Value)
	}{
		{`null`, null},
		{`true`, func(v pcommon.Value) { v.SetBool(true) }},
		{`false`, func(v pcommon.Value) { v.SetBool(false) }},
		{`""`, str("")},
		{`"NaN"`, str("NaN")},
		{`0`, integer(0)},
		{`9223372036854775807`, integer(math.MaxInt64)},
		{`-9223372036854775808`, integer(math.MinInt64)},
		{`9007199254740993`, integer(1<<53 + 1)},
		{`0.0`, double(0)},
		{`-0.0`, double(math.Copysign(0, -1))},
		{`1.0`, double(1)},
		{`1e21`, double(1e21)},
		{`5e-324`, double(math.SmallestNonzeroFloat64)},
		{`1.7976931348623157e308`, double(math.MaxFloat64)},
		{`{"@double":"NaN"}`, double(quietNaN)},
		{`{"@double":"Infinity"}`, double(math.Inf(1))},
		{`{"@double":"-Infinity"}`, double(math.Inf(-1))},
		{`{"@bytes":""}`, raw()},
		{`{"@bytes":"AP8="}`, raw(0, 255)},
		{`[]`, list()},
		{`[1,"a",null,[2.0],{"@bytes":"AA=="}]`, list(integer(1), str("a"), null, list(double(2)), raw(0))},
		{`{}`, object()},
		{`{"b":1,"a":{"c":null}}`, object(pair{"b", integer(1)}, pair{"a", object(pair{"c", null})})},
		{`{"":1}`, object(pair{"", integer(1)})},
		{`{"@map":{"@double":"NaN"}}`, object(pair{"@double", str("NaN")})},
		{`{"@map":{"@bytes":{"@bytes":"AA=="}}}`, object(pair{"@bytes", raw(0)})},
		{`{"@map":{"@map":{"@map":{"@x":1}}}}`, object(pair{"@map", object(pair{"@x", integer(1)})})},
		{`{"@map":{"@map":{"a":1}}}`, object(pair{"@map", object(pair{"a", integer(1)})})},
		{`{"@map":{"@map":2}}`, object(pair{"@map", integer(2)})},
		{`{"@map":{"@map":{"@bytes":"AA=="}}}`, object(pair{"@map", raw(0)})},
		{`{"@map":{"a":{"@map":{"@y":1}}}}`, object(pair{"a", object(pair{"@y", integer(1)})})},
		{`{"@map":{}}`, object()},
		{`{"@double":"NaN","b":1}`, object(pair{"@double", str("NaN")}, pair{"b", integer(1)})},
		{`{"@map":{"@bytes":"AA=="},"b":1}`, object(pair{"@map", raw(0)}, pair{"b", integer(1)})},
		{`{"@map":{"@map":{"@bytes":"AA=="}},"b":1}`, object(pair{"@map", object(pair{"@bytes", str("AA==")})}, pair{"b", integer(1)})},
		{`{"b":1,"@map":{"@map":{"@z":1}}}`, object(pair{"b", integer(1)}, pair{"@map", object(pair{"@z", integer(1)})})},
		{`{"@pairs":[["a",1],["a",2],["b",{"@pairs":[]}]]}`, object(pair{"a", integer(1)}, pair{"a", integer(2)}, pair{"b", object()})},
		{`{"@pairs":[["@x",1],["@x",{"@double":"NaN"}]]}`, object(pair{"@x", integer(1)}, pair{"@x", double(quietNaN)})},
		{`{"@pairs":1,"b":2}`, object(pair{"@pairs", integer(1)}, pair{"b", integer(2)})},
		{`{"a":1,"a":2}`, object(pair{"a", integer(1)}, pair{"a", integer(2)})},
	} {
		t.Run(tt.json, func(t *testing.T) {
			want := oneLog(func(l plog.LogRecord) {
				tt.want(l.Body())
				var b xpdata.MapBuilder
				tt.want(b.AppendEmpty("k"))
				tt.want(b.AppendEmpty("l"))
				b.UnsafeIntoMap(l.Attributes())
			})
			requireSame(t, want, readOne(t, `{"type":"log","body":`+tt.json+`,"attributes":{"k":`+tt.json+`,"l":`+tt.json+"}}\n"))
		})
	}
}

func TestAttributesFollowTheRulesOfMaps(t *testing.T) {
	for _, tt := range []struct {
		json string
		want []string // key, value
	}{
		{`{}`, nil},
		{`{"@map":{"@bytes":"AA=="}}`, []string{"@bytes", "AA=="}},
		{`{"@pairs":[["a","1"],["a","2"]]}`, []string{"a", "1", "a", "2"}},
		{`{"@bytes":"AA==","b":"1"}`, []string{"@bytes", "AA==", "b", "1"}},
	} {
		t.Run(tt.json, func(t *testing.T) {
			var got []string
			b := readOne(t, `{"type":"log","attributes":`+tt.json+"}\n")
			for k, v := range b.Logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().All() {
				got = append(got, k, v.Str())
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// TestDepth: 64 lists and maps in each other are read in every way they can be written, hostile nesting is an error and no more.
func TestDepth(t *testing.T) {
	nest := func(open, inner, end string, n int) string {
		return `{"type":"log","body":` + strings.Repeat(open, n) + inner + strings.Repeat(end, n) + "}\n"
	}
	for _, tt := range []struct {
		name, line string
		bad        bool
	}{
		{"lists", nest("[", "1", "]", 64), false},
		{"maps", nest(`{"a":`, "1", "}", 64), false},
		{"escaped maps", nest(`{"@map":{"@a":`, `{"@double":"NaN"}`, "}}", 64), false},
		{"maps with repeated keys", nest(`{"@pairs":[["a",1],["a",`, `{"@double":"NaN"}`, "]]}", 64), false},
		{"attributes with repeated keys", strings.Replace(nest(`{"@pairs":[["a",1],["a",`, `{"@double":"NaN"}`, "]]}", 65), "body", "attributes", 1), false},
		{"lists, hostile", nest("[", "1", "]", 5_000), true},
		{"maps, hostile", nest(`{"a":`, "1", "}", 5_000), true},
		{"escaped maps, hostile", nest(`{"@map":`, "1", "}", 5_000), true},
		{"lists, very hostile", nest("[", "1", "]", 1_000_000), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := readAll(t, tt.line+`{"type":"log"}`+"\n")
			if tt.bad {
				require.Len(t, res.errs, 1)
				require.Less(t, len(res.errs[0].Error()), 10_000)
				require.Equal(t, int64(1), res.stats.Logs)
				return
			}
			require.Empty(t, res.errs)
			require.Equal(t, int64(2), res.stats.Logs)
		})
	}
}
