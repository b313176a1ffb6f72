// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// archive is a file of four records, two of each run.
var archive = []string{
	`{"type":"resource","id":1,"attributes":{"run":"a"}}`,
	`{"type":"scope","id":1,"resource":1,"name":"s"}`,
	`{"type":"span","name":"a1","start_ns":1,"scope":1}`,
	`{"type":"resource","id":2,"attributes":{"run":"b"}}`,
	`{"type":"scope","id":2,"resource":2,"name":"s"}`,
	`{"type":"span","name":"b1","start_ns":2,"scope":2}`,
	`{"type":"span","name":"a2","start_ns":3,"scope":1}`,
	`{"type":"span","name":"b2","start_ns":4,"scope":2}`,
}

func file(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

// TestDamage: what a damaged line costs is what stands in it.
func TestDamage(t *testing.T) {
	replace := func(line int, by string) func(string) string {
		return func(string) string {
			lines := append([]string(nil), archive...)
			lines[line-1] = by
			return file(lines...)
		}
	}
	for _, tt := range []struct {
		name    string
		corrupt func(string) string
		names   []string
		bad     []int64 // lines
		is      error   // of the first
		torn    int64
	}{
		{name: "nothing", corrupt: func(s string) string { return s }, names: []string{"a/a1", "b/b1", "a/a2", "b/b2"}},
		{name: "no last newline", corrupt: func(s string) string { return s[:len(s)-1] },
			names: []string{"a/a1", "b/b1", "a/a2"}, torn: int64(len(archive[7]))},
		{name: "the last line cut", corrupt: func(s string) string { return s[:len(s)-20] },
			names: []string{"a/a1", "b/b1", "a/a2"}, torn: int64(len(archive[7])) - 19},
		{name: "one byte of a last line", corrupt: func(s string) string { return s + "{" },
			names: []string{"a/a1", "b/b1", "a/a2", "b/b2"}, torn: 1},
		{name: "the last line not JSON, with a newline", corrupt: func(s string) string { return s + "{\"type\":\"span\n" },
			names: []string{"a/a1", "b/b1", "a/a2", "b/b2"}, torn: 14},
		{name: "blocks of zeros at the end", corrupt: func(s string) string { return s + strings.Repeat("\x00", 200_000) },
			names: []string{"a/a1", "b/b1", "a/a2", "b/b2"}, torn: 200_000},
		{name: "the last line wrong, but JSON", corrupt: replace(8, `{"type":"span","start_ns":-1,"scope":2}`),
			names: []string{"a/a1", "b/b1", "a/a2"}, bad: []int64{8}},
		{name: "a line of zeros", corrupt: replace(6, strings.Repeat("\x00", 80)),
			names: []string{"a/a1", "a/a2", "b/b2"}, bad: []int64{6}, is: jsonlreader.ErrNotJSON},
		{name: "a line cut in the middle", corrupt: replace(6, archive[5][:25]),
			names: []string{"a/a1", "a/a2", "b/b2"}, bad: []int64{6}, is: jsonlreader.ErrNotJSON},
		{name: "two lines glued", corrupt: replace(6, archive[5]+archive[6]),
			names: []string{"a/a1", "a/a2", "b/b2"}, bad: []int64{6}, is: jsonlreader.ErrNotJSON},
		{name: "a byte that is not UTF-8", corrupt: replace(6, strings.Replace(archive[5], "b1", "b\xff", 1)),
			names: []string{"a/a1", "a/a2", "b/b2"}, bad: []int64{6}, is: jsonlreader.ErrNotJSON},
		{name: "a control character", corrupt: replace(6, strings.Replace(archive[5], "b1", "b\x01", 1)),
			names: []string{"a/a1", "a/a2", "b/b2"}, bad: []int64{6}, is: jsonlreader.ErrNotJSON},
		{name: "a bad line first", corrupt: replace(1, "x"),
			names: []string{"b/b1", "b/b2"}, bad: []int64{1, 2, 3, 7}, is: jsonlreader.ErrNotJSON},
		{name: "a resource line lost", corrupt: replace(4, ""),
			names: []string{"a/a1", "a/a2"}, bad: []int64{5, 6, 8}, is: jsonlreader.ErrUndefined},
		{name: "a scope line lost", corrupt: replace(5, ""),
			names: []string{"a/a1", "a/a2"}, bad: []int64{6, 8}, is: jsonlreader.ErrUndefined},
		{name: "a scope line cut behind an id that meant another scope", corrupt: replace(5, `{"type":"scope","id":1,"resou`),
			names: []string{"a/a1"}, bad: []int64{5, 6, 7, 8}, is: jsonlreader.ErrNotJSON},
		{name: "a scope line with a byte that is not UTF-8", corrupt: replace(5, `{"type":"scope","id":1,"resource":2,"name":"`+"\xff"+`"}`),
			names: []string{"a/a1"}, bad: []int64{5, 6, 7, 8}, is: jsonlreader.ErrNotJSON},
		{name: "a scope line of an undefined resource", corrupt: replace(5, `{"type":"scope","id":1,"resource":7}`),
			names: []string{"a/a1"}, bad: []int64{5, 6, 7, 8}, is: jsonlreader.ErrUndefined},
		{name: "blank lines", corrupt: func(s string) string { return "\n" + strings.ReplaceAll(s, "\n", "\n \r\n") },
			names: []string{"a/a1", "b/b1", "a/a2", "b/b2"}},
		{name: "empty", corrupt: func(string) string { return "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.corrupt(file(archive...))
			res := readAll(t, text)
			var bad []int64
			for _, e := range res.errs {
				bad = append(bad, e.Line)
				require.Equal(t, "f.jsonl", e.File)
				require.Equal(t, int(e.Line)-1, strings.Count(text[:e.Offset], "\n"), "offset of line %d", e.Line)
				require.ErrorContains(t, e, fmt.Sprintf("f.jsonl:%d: ", e.Line))
			}
			require.Equal(t, tt.names, names(res.batches))
			for name, src := range map[string]io.Reader{"byte by byte": iotest.OneByteReader(strings.NewReader(text)), "line by line": lineReader(text)} {
				again := readFrom(t, src)
				require.Equal(t, res.errs, again.errs, name)
				require.Equal(t, res.stats, again.stats, name)
			}
			require.Equal(t, tt.bad, bad)
			require.Equal(t, tt.torn, res.torn)
			require.Equal(t, int64(len(bad)), res.stats.BadLines)
			if tt.is != nil {
				require.ErrorIs(t, res.errs[0], tt.is)
			}
		})
	}
}

// lineReader gives one line a read, as a file that is being written does.
func lineReader(text string) io.Reader {
	var lines []io.Reader
	for line := range strings.Lines(text) {
		lines = append(lines, strings.NewReader(line))
	}
	return io.MultiReader(lines...)
}

// TestErrorsNameTheKey: a message says which key has which wrong value.
func TestErrorsNameTheKey(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`{}`, `key "type" is missing`},
		{`5`, `5 is not of type object`},
		{`{"type":1}`, `key "type": 1 is not of type string`},
		{`{"type":"span","name":null}`, `key "name": null is not of type string`},
		{`{"type":"span","trace_id":"00"}`, `key "trace_id": "00" is not 32 hex digits`},
		{`{"type":"span","span_id":"zzzzzzzzzzzzzzzz"}`, `key "span_id": "zzzzzzzzzzzzzzzz" is not 16 hex digits`},
		{`{"type":"span","kind":"boss"}`, `key "kind": "boss" is not known`},
		{`{"type":"span","kind":2147483648}`, `key "kind": 2147483648 is not an integer of 32 bits`},
		{`{"type":"span","start_ns":18446744073709551616}`, `key "start_ns": 18446744073709551616 is not an unsigned integer of 64 bits`},
		{`{"type":"span","start_ns":"1"}`, `key "start_ns": "1" is not of type number`},
		{`{"type":"span","start_ns":1.0}`, `key "start_ns": 1.0 is not an unsigned integer of 64 bits`},
		{`{"type":"span","duration_ns":9223372036854775808}`, `key "duration_ns": 9223372036854775808 is not an integer of 64 bits`},
		{`{"type":"span","start_ns":3,"duration_ns":-4}`, `key "duration_ns": -4 ns after 3 does not fit 64 bits`},
		{`{"type":"span","start_ns":18446744073709551615,"duration_ns":1}`, `key "duration_ns": 1 ns after 18446744073709551615 does not fit 64 bits`},
		{`{"type":"span","dropped_links":4294967296}`, `key "dropped_links": 4294967296 is not an unsigned integer of 32 bits`},
		{`{"type":"span","attributes":[]}`, `key "attributes": [] is not of type object`},
		{`{"type":"span","attributes":{"@bytes":"AA=="}}`, `key "attributes": AA== is not of type object`},
		{`{"type":"span","attributes":{"a":{"b":9223372036854775808}}}`, `key "attributes": key "a": key "b": 9223372036854775808 is not an integer of 64 bits`},
		{`{"type":"span","attributes":{"a":1e999}}`, `key "a": 1e999 is not a double`},
		{`{"type":"span","attributes":{"a":{"@double":"nan"}}}`, `key "a": key "@double": nan is not "NaN", "Infinity" or "-Infinity"`},
		{`{"type":"span","attributes":{"a":{"@bytes":"*"}}}`, `key "@bytes": * is not base64 text`},
		{`{"type":"span","attributes":{"a":{"@bytes":1}}}`, `key "@bytes": 1 is not base64 text`},
		{`{"type":"span","attributes":{"a":{"@map":1}}}`, `key "@map": 1 is not of type object`},
		{`{"type":"span","attributes":{"a":{"@pairs":1}}}`, `key "@pairs": 1 is not of type array`},
		{`{"type":"span","attributes":{"a":{"@pairs":[["a"]]}}}`, `key "@pairs": item 0: ["a"] is not [key, value]`},
		{`{"type":"span","events":[{"time_ns":1},{"time_ns":-1}]}`, `key "events": item 1: key "time_ns": -1 is not`},
		{`{"type":"span","scope":"1"}`, `key "scope": "1" is not of type object`},
		{`{"type":"span","scope":77}`, `key "scope": scope 77: no line above defines it`},
		{`{"type":"span","resource":{"attributes":1}}`, `key "resource": key "attributes": 1 is not of type object`},
		{`{"type":"metric","value":1}`, `key "kind" is missing`},
		{`{"type":"metric","kind":"meter"}`, `key "kind": "meter" is not known`},
		{`{"type":"metric","kind":"gauge","value":"1"}`, `key "value": "1" is not of type number`},
		{`{"type":"metric","kind":"gauge","value":{"a":1}}`, `key "value": {"a":1} is not of type number`},
		{`{"type":"metric","kind":"histogram","sum":null}`, `key "sum": null is not of type number`},
		{`{"type":"metric","kind":"histogram","buckets":[1,-2]}`, `key "buckets": item 1: -2 is not an unsigned integer of 64 bits`},
		{`{"type":"metric","kind":"summary","quantiles":[[1.0]]}`, `key "quantiles": item 0: 1 numbers are not [quantile, value]`},
		{`{"type":"scope","resource":1}`, `key "id" is missing`},
		{`{"type":"scope","id":1,"resource":1}`, `key "resource": resource 1: no line above defines it`},
		{`{"type":"resource"}`, `key "id" is missing`},
		{`{"type":"resource","id":1,"entity_refs":[{"id_keys":[1]}]}`, `key "entity_refs": item 0: key "id_keys": item 0: 1 is not of type string`},
		{`{"type":"log"} {}`, `more than one value in the line`},
		{`{"type":"span","name":"` + strings.Repeat("é", 1000) + `","kind":"` + strings.Repeat("é", 1000) + `"}`, `éééé…" is not known`},
	} {
		t.Run(tt.line[:min(len(tt.line), 80)], func(t *testing.T) {
			res := readAll(t, file(tt.line, `{"type":"log"}`))
			require.Len(t, res.errs, 1)
			require.ErrorContains(t, res.errs[0], tt.want)
			require.Equal(t, int64(1), res.stats.Logs, "the neighbour is read")
		})
	}
}

func TestRedefinedIDs(t *testing.T) {
	res := readAll(t, file(
		`{"type":"resource","id":1,"attributes":{"run":"a"}}`,
		`{"type":"scope","id":1,"resource":1}`,
		`{"type":"span","name":"1","scope":1}`,
		`{"type":"resource","id":1,"attributes":{"run":"b"}}`,
		`{"type":"span","name":"2","scope":1}`, // the scope stands for what it was bound to
		`{"type":"scope","id":1,"resource":1}`,
		`{"type":"span","name":"3","scope":1}`,
	))
	require.Empty(t, res.errs)
	require.Equal(t, []string{"a/1", "a/2", "b/3"}, names(res.batches))
}

func TestNewerVersionsAreRead(t *testing.T) {
	res := readAll(t, file(
		`{"type":"header","version":7,"made":{"by":[1]}}`,
		`{"type":"resource","id":1,"attributes":{"run":"a"},"color":"red"}`,
		`{"type":"scope","id":1,"resource":1,"size":{"x":1}}`,
		`{"type":"span","name":"1","scope":1,"events":[{"heat":1}],"links":[{"heat":1}],"heat":[1]}`,
		`{"type":"span","name":"2","scope":1,"attributes":{"a":{"@decimal":"1.10"}}}`,
		`{"type":"metric","name":"m","kind":"exponential_histogram","positive":{"heat":1},"exemplars":[{"heat":1}],"heat":1}`,
		`{"type":"log","body":"l","heat":null}`,
	))
	require.Empty(t, res.errs)
	require.Equal(t, []string{"a/1", "a/2", "m", "l"}, names(res.batches))
	require.Equal(t, jsonlreader.Stats{Lines: 7, Spans: 2, Points: 1, Logs: 1, UnknownLines: 1, UnknownKeys: 10}, res.stats)
}

// TestFormatPageIsTrue reads the example lines of docs/format.md.
func TestFormatPageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../../docs/format.md")
	require.NoError(t, err)
	var lines strings.Builder
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "{") {
			lines.WriteString(line)
		}
	}
	res := readAll(t, lines.String())
	require.Empty(t, res.errs)
	require.Equal(t, jsonlreader.Stats{Lines: 12, Spans: 4, Points: 5, Logs: 1}, res.stats)
}

func TestBatchBounds(t *testing.T) {
	span := func(name string) string { return `{"type":"span","name":"` + name + `"}` }
	long := span(strings.Repeat("x", 100))
	log := `{"type":"log","body":"l"}`
	for _, tt := range []struct {
		name  string
		lines []string
		opts  []jsonlreader.Option
		want  []string // signal, records, lines
	}{
		{"one signal a batch", []string{span("a"), log, log, span("b")}, nil, []string{"traces 1 1-1", "logs 2 2-3", "traces 1 4-4"}},
		{"records", []string{span("a"), span("b"), span("c"), span("d"), span("e")}, []jsonlreader.Option{jsonlreader.WithMaxBatchRecords(2)},
			[]string{"traces 2 1-2", "traces 2 3-4", "traces 1 5-5"}},
		{"bytes", []string{span("a"), span("b"), long, span("c")}, []jsonlreader.Option{jsonlreader.WithMaxBatchBytes(70)},
			[]string{"traces 2 1-2", "traces 1 3-3", "traces 1 4-4"}},
		{"a bad line", []string{span("a"), "bad", span("b"), span("c")}, nil, []string{"traces 1 1-1", "error 2", "traces 2 3-4"}},
		{"filter", []string{span("a"), log, span("b")}, []jsonlreader.Option{jsonlreader.WithFilter(func(r jsonlreader.Record) bool { return r.Signal == pipeline.SignalTraces })},
			[]string{"traces 2 1-3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := file(tt.lines...)
			r := jsonlreader.New(strings.NewReader(text), "f", tt.opts...)
			var got []string
			for {
				b, err := r.Next()
				if err == io.EOF {
					break
				}
				var bad *jsonlreader.LineError
				if errors.As(err, &bad) {
					got = append(got, fmt.Sprintf("error %d", bad.Line))
					continue
				}
				require.NoError(t, err)
				got = append(got, fmt.Sprintf("%s %d %d-%d", b.Signal, b.Records, b.FirstLine, b.LastLine))
				require.Equal(t, int(b.FirstLine)-1, strings.Count(text[:b.Offset], "\n"))
				require.Equal(t, int(b.LastLine), strings.Count(text[:b.End], "\n"))
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestNextAndNextRecordMix(t *testing.T) {
	r := jsonlreader.New(strings.NewReader(file(`{"type":"span","name":"a"}`, `{"type":"log","body":"b"}`, "bad", `{"type":"span","name":"c"}`)), "f")
	b, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, 1, b.Records)
	rec, err := r.NextRecord()
	require.NoError(t, err)
	require.Equal(t, "b", rec.Log.Body().Str())
	require.Equal(t, int64(2), rec.Line)
	_, err = r.Next()
	var bad *jsonlreader.LineError
	require.ErrorAs(t, err, &bad)
	rec, err = r.NextRecord()
	require.NoError(t, err)
	require.Equal(t, "c", rec.Span.Name())
	for range 3 {
		_, err = r.Next()
		require.Equal(t, io.EOF, err)
	}
}

func TestLongLines(t *testing.T) {
	span := func(n int) string { return `{"type":"span","name":"` + strings.Repeat("x", n) + `"}` }
	t.Run("of every length around the buffer", func(t *testing.T) {
		for n := 64<<10 - 30; n < 64<<10+5; n++ {
			res := readAll(t, file(span(n), span(1), span(2*n)))
			require.Empty(t, res.errs)
			got := names(res.batches)
			require.Len(t, got, 3)
			require.Len(t, got[0], n)
			require.Len(t, got[2], 2*n)
		}
	})
	t.Run("20 MB", func(t *testing.T) {
		res := readAll(t, file(span(20e6), span(1)))
		require.Empty(t, res.errs)
		require.Len(t, names(res.batches)[0], 20e6)
	})
	t.Run("longer than allowed", func(t *testing.T) {
		for _, limit := range []int{100, 100_000} {
			fits := limit - len(span(0))
			res := readAll(t, file(span(fits), span(fits+1), span(limit), span(300_000), span(1)), jsonlreader.WithMaxLineBytes(limit))
			require.Len(t, res.errs, 3)
			for _, e := range res.errs {
				require.ErrorIs(t, e, jsonlreader.ErrTooLong)
			}
			require.Len(t, names(res.batches), 2)
		}
	})
	t.Run("longer than allowed and torn", func(t *testing.T) {
		res := readAll(t, file(span(1))+strings.Repeat("x", 300_000), jsonlreader.WithMaxLineBytes(100))
		require.Empty(t, res.errs)
		require.Equal(t, int64(300_000), res.torn)
	})
	t.Run("a scope longer than allowed ends what its id meant", func(t *testing.T) {
		res := readAll(t, file(
			`{"type":"scope","id":1}`,
			`{"type":"span","scope":1}`,
			`{"type":"scope","id":1,"name":"`+strings.Repeat("x", 200_000)+`"}`,
			`{"type":"span","scope":1}`,
		), jsonlreader.WithMaxLineBytes(100_000))
		require.Len(t, res.errs, 2)
		require.ErrorIs(t, res.errs[0], jsonlreader.ErrTooLong)
		require.ErrorIs(t, res.errs[1], jsonlreader.ErrUndefined)
	})
}

// TestReaderErrors: an error of the underlying reader comes after the whole lines before it, is no LineError, and stays.
func TestReaderErrors(t *testing.T) {
	broken := errors.New("broken pipe")
	r := jsonlreader.New(io.MultiReader(strings.NewReader(file(`{"type":"span"}`)+`{"type":`), iotest.ErrReader(broken)), "f")
	b, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, 1, b.Records)
	for range 3 {
		_, err = r.Next()
		require.ErrorIs(t, err, broken)
		require.EqualError(t, err, "read f: line 2: broken pipe")
		var bad *jsonlreader.LineError
		require.NotErrorAs(t, err, &bad)
	}
}
