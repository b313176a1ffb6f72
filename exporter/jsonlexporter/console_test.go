// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"bytes"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/internal/testbed"
)

// lost is what Lens's console exporter prints and OTLP, as OpenTelemetry Python sends it, does not carry. docs/format.md
// names the same. Each is made equal on both sides, and nothing else is.
var lost = []struct {
	runs  string // path.Match of VERSION/SCENARIO/TRANSPORT
	lines string // the kind of lines
	field string
	why   string
	same  func(lines []string)
}{
	{
		"*/links/*", "span", "links[].context.trace_state", "the SDK's OTLP encoder leaves the trace state of links out",
		replace(regexp.MustCompile(`"trace_state": "[^"]*"\}, "attributes"`), `"trace_state": ""}, "attributes"`),
	},
	{
		"*/metrics/*", "metrics", "sum, min, max of gen_ai.client.token.usage", "integers were recorded; OTLP's histograms hold doubles",
		replaceInMetric(`gen_ai\.client\.token\.usage`),
	},
	{
		"*/servers/*", "metrics", "sum, min, max of http.*.duration and http.*.size", "as above",
		replaceInMetric(`http\.[a-z.]*\.(duration|size)`),
	},
	{
		"*/servers/*", "span", "the order of lines", "a request groups spans by scope",
		func(lines []string) { slices.Sort(lines) },
	},
}

func replace(from *regexp.Regexp, to string) func([]string) {
	return func(lines []string) {
		for i := range lines {
			lines[i] = from.ReplaceAllString(lines[i], to)
		}
	}
}

// replaceInMetric writes whole numbers of a histogram as integers.
func replaceInMetric(name string) func([]string) {
	metric := regexp.MustCompile(`\{"name": "` + name + `".*?"aggregation_temporality"`)
	whole := regexp.MustCompile(`("(?:sum|min|max)": -?\d+)\.0,`)
	return func(lines []string) {
		for i := range lines {
			lines[i] = metric.ReplaceAllStringFunc(lines[i], func(m string) string { return whole.ReplaceAllString(m, "$1,") })
		}
	}
}

// TestConsoleIsLensByteForByte holds the layout against what the real Lens wrote for the same telemetry.
func TestConsoleIsLensByteForByte(t *testing.T) {
	root := filepath.Join("..", "..", "testdata", "captures")
	got := map[string][]string{}
	for _, c := range testbed.Captures(t) {
		run := filepath.ToSlash(filepath.Dir(c.Name))
		text, faults := captured(t, c).encoded(console{})
		require.False(t, faults.any())
		got[run] = append(got[run], slices.Collect(strings.Lines(text))...)
	}
	compared := 0
	for run, got := range got {
		text, err := os.ReadFile(filepath.Join(root, run, "console.jsonl"))
		if os.IsNotExist(err) {
			require.True(t, strings.HasPrefix(run, "js/"), "%s has no console.jsonl", run)
			continue
		}
		require.NoError(t, err)
		compared++
		t.Run(run, func(t *testing.T) {
			want := slices.Collect(strings.Lines(string(text)))
			const none = -1
			require.Equal(t, linesBut(none, run, want), linesBut(none, run, got))
			for i, l := range lost {
				if matches(l.runs, run) {
					require.NotEqual(t, linesBut(i, run, want), linesBut(i, run, got), "no longer lost: %s", l.field)
				}
			}
		})
	}
	require.Equal(t, 47, compared)
}

func matches(pattern, run string) bool {
	ok, err := path.Match(pattern, run)
	return ok && err == nil
}

// linesBut makes all that is lost in a run the same, but one.
func linesBut(one int, run string, lines []string) []string {
	lines = slices.Clone(lines)
	for i, l := range lost {
		if i != one && matches(l.runs, run) {
			l.same(lines)
		}
	}
	return lines
}

// TestConsoleLines has every field that OTLP has, those that Python's SDK never sends included.
func TestConsoleLines(t *testing.T) {
	text, faults := full().encoded(console{})
	require.False(t, faults.any())
	golden(t, "console.jsonl", []byte(text))
}

// TestPyFloat has what json.dumps of Python 3.13 prints.
func TestPyFloat(t *testing.T) {
	for _, tt := range []struct {
		f    float64
		want string
	}{
		{0, "0.0"}, {math.Copysign(0, -1), "-0.0"}, {1, "1.0"}, {-1.5, "-1.5"}, {0.1, "0.1"}, {100, "100.0"},
		{1e15, "1000000000000000.0"}, {123456789012345.6, "123456789012345.6"}, {9999999999999998, "9999999999999998.0"},
		{1e16, "1e+16"}, {-1e16, "-1e+16"}, {12345678901234567, "1.2345678901234568e+16"}, {1e17, "1e+17"}, {1e21, "1e+21"}, {1e22, "1e+22"},
		{1e23, "1e+23"}, {1e100, "1e+100"}, {math.MaxFloat64, "1.7976931348623157e+308"},
		{1e-3, "0.001"}, {1e-4, "0.0001"}, {0.00012345, "0.00012345"}, {9.999999999999999e-05, "9.999999999999999e-05"}, {1e-5, "1e-05"},
		{1.5e-5, "1.5e-05"}, {1e-7, "1e-07"}, {-1e-7, "-1e-07"}, {2.5e-9, "2.5e-09"}, {1e-10, "1e-10"},
		{2.2250738585072014e-308, "2.2250738585072014e-308"}, {math.SmallestNonzeroFloat64, "5e-324"},
		{1. / 3, "0.3333333333333333"}, {2. / 3, "0.6666666666666666"}, {4503599627370496.5, "4503599627370496.0"}, {9007199254740993, "9007199254740992.0"},
		{math.NaN(), "NaN"}, {math.Inf(1), "Infinity"}, {math.Inf(-1), "-Infinity"},
	} {
		require.Equal(t, tt.want, string(appendPyFloat(nil, tt.f)))
	}
}

// TestPyTime has what the SDK's ns_to_iso_str prints.
func TestPyTime(t *testing.T) {
	for _, tt := range []struct {
		ns   uint64
		want string
	}{
		{0, "1970-01-01T00:00:00.000000Z"},
		{500, "1970-01-01T00:00:00.000000Z"},
		{501, "1970-01-01T00:00:00.000001Z"},
		{1500, "1970-01-01T00:00:00.000002Z"},
		{2500, "1970-01-01T00:00:00.000002Z"},
		{999_999_500, "1970-01-01T00:00:01.000000Z"},
		{999_999_999_999_999_880, "2001-09-09T01:46:40.000000Z"},
		{1_700_000_000_123_456_500, "2023-11-14T22:13:20.123456Z"},
		{1_700_000_000_123_457_499, "2023-11-14T22:13:20.123457Z"},
		{1_795_957_084_850_030_783, "2026-11-29T12:58:04.850031Z"},
		{1_795_957_084_860_526_230, "2026-11-29T12:58:04.860526Z"},
		{1_795_957_084_999_999_500, "2026-11-29T12:58:05.000000Z"},
		{math.MaxInt64, "2262-04-11T23:47:16.854776Z"},
		{math.MaxUint64, "2554-07-21T23:34:33.709553Z"},
	} {
		require.Equal(t, `"`+tt.want+`"`, string(appendPyTime(nil, pcommon.Timestamp(tt.ns))), tt.ns)
	}
}

// TestPyString has what json.dumps prints.
func TestPyString(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"controls", "\x00\b\f\x1f\n\r\t\x7f\u0080", `"\u0000\b\f\u001f\n\r\t\u007f\u0080"`},
		{"escapes", `\"/`, `"\\\"/"`},
		{"beyond ASCII", "é\u2028\ud7ff\ue000\uffff", `"\u00e9\u2028\ud7ff\ue000\uffff"`},
		{"beyond U+FFFF", "\U00010000 \U0010ffff", `"\ud800\udc00 \udbff\udfff"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := encoder{}
			require.Equal(t, tt.want, string(e.appendPyString(nil, tt.text)))
			require.Zero(t, e.repaired)
		})
	}
}

// TestPyTraceState has what repr of TraceState.from_header prints, as JSON. The last two headers are refused there.
func TestPyTraceState(t *testing.T) {
	for _, tt := range []struct{ name, header, want string }{
		{"none", "", `"[]"`},
		{"two", "vendor=a:b, other=1,", `"['{key=vendor, value=a:b}', '{key=other, value=1}']"`},
		{"quote", `a=it's`, `"[\"{key=a, value=it's}\"]"`},
		{"both quotes", `a=it's "q"`, `"['{key=a, value=it\\'s \"q\"}']"`},
		{"backslash", `a=b\c`, `"['{key=a, value=b\\\\c}']"`},
		{"no value", `a`, `"['{key=a, value=}']"`},
		{"not printable", "a=\n\r\t\x00\xc2\x80\u00ad é\u200b\u3000\U0001f680\U000e0001", `"['{key=a, value=\\n\\r\\t\\x00\\x80\\xad \u00e9\\u200b\\u3000\ud83d\ude80\\U000e0001}']"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := encoder{}
			require.Equal(t, tt.want, string(e.appendPyTraceState(nil, tt.header)))
		})
	}
}

// TestPyBytes are hex in a resource and base64 elsewhere, as the SDK's encoders have it.
func TestPyBytes(t *testing.T) {
	d := full()
	d.logs.ResourceLogs().At(0).Resource().Attributes().PutEmptyBytes("digest").FromRaw([]byte{0, 255})
	d.logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().PutEmptyBytes("raw").FromRaw([]byte{0, 255})
	c := new(chunk)
	console{}.addLogs(c, d.logs.ResourceLogs().At(0))
	line := string(bytes.SplitAfter(c.buf, []byte{'\n'})[0])
	require.Contains(t, line, `"digest": "00ff"`)
	require.Contains(t, line, `"raw": "AP8="`)
}
