// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// handwritten returns the lines of EveryField as the format describes them, and their requests.
func handwritten(t *testing.T) (lines []string, requests []Request) {
	text, err := os.ReadFile("testdata/everyfield.jsonl")
	require.NoError(t, err)
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n"), EveryField()
}

// judge is what the end-to-end tests do with a file.
func judge(lines []string, inline bool, requests ...Request) error {
	r := Reader{Inline: inline}
	got, err := r.Feed([]byte(strings.Join(lines, "")))
	if err != nil {
		return err
	}
	var want []Item
	for _, request := range requests {
		want = append(want, request.Expect()...)
	}
	return SameInOrder(want, got)
}

func TestOracleAcceptsHandwrittenLines(t *testing.T) {
	lines, requests := handwritten(t)
	lines[len(lines)-1] += "\n"
	require.NoError(t, judge(lines, false, requests...))
}

func TestOracleAcceptsInlineLines(t *testing.T) {
	lines, _ := handwritten(t)
	inline := func(i int, resource, scope string) string {
		line, _, ok := strings.Cut(lines[i], `,"scope":`)
		require.True(t, ok)
		return line + resource + scope + "}\n"
	}
	members := func(i int, key, cut string) string {
		_, rest, ok := strings.Cut(lines[i], cut)
		require.True(t, ok)
		return `,"` + key + `":{` + strings.TrimSuffix(rest, "\n")
	}
	resource, scope := members(0, "resource", `"id":1,`), members(1, "scope", `"resource":1,`)
	var got []string
	for i := 2; i < 10; i++ {
		got = append(got, inline(i, resource, scope))
	}
	got = append(got, inline(11, resource, ""), inline(14, "", ""))
	require.NoError(t, judge(got, true, EveryField()[0]))
	require.Error(t, judge(got, false, EveryField()[0]), "inline lines where references are asked for")
	require.Error(t, judge(lines[:15], true, EveryField()[0]), "reference lines where inline is asked for")
}

// TestOracleObjectsToDamage damages the handwritten lines in every way at every place.
func TestOracleObjectsToDamage(t *testing.T) {
	lines, requests := handwritten(t)
	lines[len(lines)-1] += "\n"
	var want []Item          // from the line on that is damaged
	var definitions []string // scope and resource lines above it
	for _, r := range requests {
		want = append(want, r.Expect()...)
	}
	mutants := 0
	requireObjection := func(what string, i int, lines []string) {
		mutants++
		require.Error(t, judge(lines, false, requests...), "line %d: %s", i+1, what)
	}
	replaced := func(i int, with ...string) []string {
		return slices.Concat(lines[:i], with, lines[i+1:])
	}
	for i, line := range lines {
		v, err := Parse([]byte(strings.TrimSuffix(line, "\n")))
		require.NoError(t, err)
		mutate(v, func(what string, m Value) {
			damaged := string(appendJSON(nil, m)) + "\n"
			if !isItem(line) {
				requireObjection(what, i, replaced(i, damaged))
				return
			}
			mutants++ // Judged by itself: thousands of them times the whole file would take minutes.
			got, err := (&Reader{}).Feed([]byte(strings.Join(append(definitions, damaged), "")))
			if err == nil {
				err = SameInOrder(want[:1], got)
			}
			require.Error(t, err, "line %d: %s", i+1, what)
		})
		if isItem(line) {
			want = want[1:]
		} else {
			definitions = append(definitions, line)
		}
		requireObjection("line dropped", i, replaced(i))
		requireObjection("line torn", i, replaced(i, line[:len(line)/2]))
		requireObjection("line torn, with a newline", i, replaced(i, line[:len(line)/2]+"\n"))
		requireObjection("newline lost", i, replaced(i, strings.TrimSuffix(line, "\n")))
		requireObjection("empty line", i, replaced(i, line, "\n"))
		requireObjection("not UTF-8", i, replaced(i, strings.Replace(line, `":"`, "\":\"\xff", 1)))
		if isItem(line) {
			requireObjection("line twice", i, replaced(i, line, line))
			if i+1 < len(lines) && isItem(lines[i+1]) && lines[i+1] != line {
				requireObjection("lines swapped", i, slices.Concat(lines[:i], []string{lines[i+1], line}, lines[i+2:]))
			}
		}
	}
	requireObjection("too many digits", 2, replaced(2, strings.Replace(lines[2], "0.3333333333333333", "0.33333333333333331", 1)))
	requireObjection("line end that is not escaped", 2, replaced(2, strings.Replace(lines[2], `\u2028`, "\u2028", 1)))
	t.Logf("%d damaged files, all refused", mutants)
}

func isItem(line string) bool {
	return !strings.HasPrefix(line, `{"type":"resource"`) && !strings.HasPrefix(line, `{"type":"scope"`)
}

// mutate calls try with v damaged in one place, for every place and every kind of damage.
func mutate(v Value, try func(what string, m Value)) {
	with := func(what string, change func(m *Value)) {
		m := v
		m.List, m.Members = slices.Clone(v.List), slices.Clone(v.Members)
		change(&m)
		try(what, m)
	}
	for _, other := range []Value{{}, boolean(v.Text != "true"), {Kind: Int, Text: "4711"}, {Kind: Double, Double: 4711.5}, str("4711"), {Kind: List}, {Kind: Map}} {
		if diff("", v, other) != "" {
			with(fmt.Sprintf("%s instead of %s", other, v), func(m *Value) { *m = other })
		}
	}
	switch v.Kind {
	case Int:
		f, _ := strconv.ParseFloat(v.Text, 64)
		with("double instead of integer "+v.Text, func(m *Value) { *m = Value{Kind: Double, Double: f} })
		with("integer as text "+v.Text, func(m *Value) { m.Kind = Text })
		with("last digit of "+v.Text, func(m *Value) { m.Text = v.Text[:len(v.Text)-1] + string('0'+('9'-v.Text[len(v.Text)-1])) })
	case Double:
		with(fmt.Sprintf("integer instead of double %v", v.Double), func(m *Value) {
			*m = Value{Kind: Int, Text: strconv.FormatFloat(v.Double, 'f', 0, 64)}
		})
		with(fmt.Sprintf("sign of %v", v.Double), func(m *Value) { m.Double = -v.Double })
	case Text:
		with("text longer "+v.Text, func(m *Value) { m.Text += "x" })
		if v.Text != "" {
			with("text shorter "+v.Text, func(m *Value) { m.Text = v.Text[1:] })
		}
	}
	for i, item := range v.List {
		with("value dropped", func(m *Value) { m.List = slices.Delete(m.List, i, i+1) })
		with("value twice", func(m *Value) { m.List = slices.Insert(m.List, i, item) })
		if i > 0 && diff("", item, v.List[i-1]) != "" {
			with("values swapped", func(m *Value) { m.List[i], m.List[i-1] = m.List[i-1], m.List[i] })
		}
		mutate(item, func(what string, changed Value) { with(what, func(m *Value) { m.List[i] = changed }) })
	}
	for i, member := range v.Members {
		with("key dropped: "+member.Key, func(m *Value) { m.Members = slices.Delete(m.Members, i, i+1) })
		with("key twice: "+member.Key, func(m *Value) { m.Members = slices.Insert(m.Members, i, member) })
		with("key renamed: "+member.Key, func(m *Value) { m.Members[i].Key += "x" })
		with("key added after "+member.Key, func(m *Value) { m.Members = slices.Insert(m.Members, i+1, Member{"x", Value{}}) })
		if i > 0 {
			with("keys swapped: "+member.Key, func(m *Value) { m.Members[i], m.Members[i-1] = m.Members[i-1], m.Members[i] })
		}
		mutate(member.Value, func(what string, changed Value) {
			with(member.Key+": "+what, func(m *Value) { m.Members[i].Value = changed })
		})
	}
}

func appendJSON(b []byte, v Value) []byte {
	quote := func(s string) []byte {
		quoted, err := json.Marshal(s)
		if err != nil {
			panic(err) // Text can always be marshalled.
		}
		return quoted
	}
	switch v.Kind {
	case Double:
		text := strconv.FormatFloat(v.Double, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return append(b, text...)
	case Text:
		return append(b, quote(v.Text)...)
	case List:
		items := make([][]byte, len(v.List))
		for i, item := range v.List {
			items[i] = appendJSON(nil, item)
		}
		return append(append(append(b, '['), bytes.Join(items, []byte(","))...), ']')
	case Map:
		members := make([][]byte, len(v.Members))
		for i, m := range v.Members {
			members[i] = appendJSON(append(quote(m.Key), ':'), m.Value)
		}
		return append(append(append(b, '{'), bytes.Join(members, []byte(","))...), '}')
	default:
		return append(b, v.String()...)
	}
}

func TestOracleBindsScopesWhereTheyStand(t *testing.T) {
	lines, _ := handwritten(t)
	redefined := slices.Concat(lines[:2], []string{`{"type":"resource","id":1}` + "\n"}, lines[2:10])
	redefined = slices.Concat(redefined, lines[:1], lines[10:15])
	require.NoError(t, judge(redefined, false, EveryField()[0]))
}

func TestOracleRepairsText(t *testing.T) {
	require.Equal(t, "a\ufffd\ufffd\ufffdb", str("a\xff\xe2\x82b").Text)
	require.Equal(t, `{"@pairs":[["a",1],["`+"\ufffd"+`",2]]}`, keyValues([]*commonpb.KeyValue{intKV("a", 1), intKV("\xff", 2)}, 1).String())
}

func TestOracleCutsDeepValues(t *testing.T) {
	nest := func(depth int) *commonpb.AnyValue {
		v := array()
		for range depth - 1 {
			v = array(v)
		}
		return v
	}
	require.Equal(t, strings.Repeat("[", 64)+strings.Repeat("]", 64), anyValue(nest(64), 1).String())
	require.Equal(t, strings.Repeat("[", 64)+cut.String()+strings.Repeat("]", 64), anyValue(nest(70), 1).String())
}

func TestOracleReadsJSONAsProtobuf(t *testing.T) {
	_, err := FromJSON("traces", []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"nome":"x"}]}]}]}`))
	require.ErrorContains(t, err, `unknown key "nome"`)
	_, err = FromJSON("traces", []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"two"}]}]}]}`))
	require.Error(t, err)

	r, err := FromJSON("logs", []byte(`{"resourceLogs":[{"resource":{"attributes":[{"key":"dl.rank","value":{"intValue":"7"}}]},
		"scopeLogs":[{"scope":{"name":"l"},"logRecords":[{"timeUnixNano":"18446744073709551615","severityNumber":9,"traceId":"0102030405060708090a0b0c0d0e0f10",
		"body":{"arrayValue":{"values":[{"intValue":3},{"doubleValue":2},{"doubleValue":"NaN"},{},{"bytesValue":"AP8="},{"boolValue":true}]}}}]}]}]}`))
	require.NoError(t, err)
	require.NoError(t, judge([]string{
		`{"type":"resource","id":8,"attributes":{"dl.rank":7}}` + "\n", `{"type":"scope","id":9,"resource":8,"name":"l"}` + "\n",
		`{"type":"log","time_ns":18446744073709551615,"severity_number":9,"body":[3,2.0,{"@double":"NaN"},null,{"@bytes":"AP8="},true],` +
			`"trace_id":"0102030405060708090a0b0c0d0e0f10","rank":7,"scope":9}` + "\n",
	}, false, r))
}

// Everything that a point of these kinds can have, in JSON, is the point of everyPoint.
func TestOracleReadsJSONOfRarerPoints(t *testing.T) {
	r, err := FromJSON("metrics", []byte(`{"resourceMetrics":[{"resource":{"entityRefs":[{"schemaUrl":"https://e","type":"host","idKeys":["a","b"],"descriptionKeys":["c"]}]},
		"scopeMetrics":[{"scope":{"name":"m"},"metrics":[
		{"name":"x","exponentialHistogram":{"aggregationTemporality":1,"dataPoints":[{"startTimeUnixNano":"1","timeUnixNano":2,"count":"6","sum":1,"min":-1,"max":2,
			"scale":-3,"zeroCount":"1","zeroThreshold":1e-9,"positive":{"offset":-2,"bucketCounts":["1",2]},"negative":{"bucketCounts":[3]},"flags":1,
			"attributes":[{"key":"phase","value":{"stringValue":"warmup"}}],"exemplars":[{"timeUnixNano":9,"asInt":"1"}]}]}},
		{"name":"q","summary":{"dataPoints":[{"startTimeUnixNano":1,"timeUnixNano":2,"count":3,"sum":4.5,"flags":1,
			"attributes":[{"key":"phase","value":{"stringValue":"warmup"}}],"quantileValues":[{"quantile":0.5,"value":1},{"quantile":1,"value":"NaN"}]}]}}]}]}]}`))
	require.NoError(t, err)
	got := r.Metrics.ResourceMetrics[0]
	require.Equal(t, []*commonpb.EntityRef{{SchemaUrl: "https://e", Type: "host", IdKeys: []string{"a", "b"}, DescriptionKeys: []string{"c"}}}, got.Resource.EntityRefs)
	for _, m := range everyPoint()[0].ScopeMetrics[0].Metrics {
		switch m.Name {
		case "x":
			want := &metricspb.ExponentialHistogram{AggregationTemporality: 1, DataPoints: m.GetExponentialHistogram().DataPoints[:1]}
			require.Equal(t, want.String(), got.ScopeMetrics[0].Metrics[0].GetExponentialHistogram().String())
		case "q":
			want := &metricspb.Summary{DataPoints: m.GetSummary().DataPoints[:1]}
			require.Equal(t, want.String(), got.ScopeMetrics[0].Metrics[1].GetSummary().String())
		}
	}
}

func TestSameInAnyOrder(t *testing.T) {
	items := EveryField()[1].Expect()
	reversed := slices.Clone(items)
	slices.Reverse(reversed)
	require.NoError(t, SameInAnyOrder(items, reversed))
	require.ErrorContains(t, SameInAnyOrder(items, reversed[1:]), "missing")
	require.ErrorContains(t, SameInAnyOrder(items, append(reversed, items[0])), "too many")
	require.ErrorContains(t, SameInAnyOrder(items, append(reversed[1:], items[0])), "missing")
}
