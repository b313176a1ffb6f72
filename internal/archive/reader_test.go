// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
)

func TestEveryCaptureThroughEveryLosslessLayoutAndCompression(t *testing.T) {
	want := wires(t, captured(t, ""))
	for _, layout := range []jsonlexporter.Layout{jsonlexporter.LayoutCompact, jsonlexporter.LayoutOTLPJSON} {
		text := write(t, layout, captured(t, ""))
		for name, content := range map[string][]byte{
			"plain":          text,
			"gzip":           gzipped(t, text),
			"gzip members":   gzipped(t, split(text, 7)...),
			"zstd":           zstded(t, text),
			"zstd frames":    zstded(t, split(text, 7)...),
			"skippable zstd": append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zstded(t, text)...),
		} {
			t.Run(string(layout)+" "+name, func(t *testing.T) {
				res := readBytes(t, "all", content)
				require.Empty(t, res.damage)
				require.Zero(t, res.stats.Torn+res.stats.Foreign+res.stats.Unknown+res.stats.Damaged)
				require.Equal(t, want, wires(t, res.records))
				require.EqualValues(t, len(text), res.stats.Bytes)
				require.EqualValues(t, len(want), res.stats.Records())
				require.Equal(t, map[Layout]int64{Layout(layout): int64(len(want))}, res.stats.Layouts)
			})
		}
	}
}

// What the console exporter writes carries less than OTLP: times in microseconds (of spans and logs), no scopes, no flags, no dropped
// counts of spans. Everything else is equal.
func TestConsoleFilesOfLensHoldWhatTheirRequestsHold(t *testing.T) {
	for folder, path := range consoleCaptures(t) {
		t.Run(folder, func(t *testing.T) {
			res := readFile(t, path)
			require.Empty(t, res.damage)
			require.Zero(t, res.stats.Torn+res.stats.Foreign)
			want := captured(t, folder+"/")
			for i := range want {
				reduceToConsole(&want[i])
			}
			for _, rec := range res.records { // The state of a link's trace, which OpenTelemetry Python's OTLP exporter leaves out, is there.
				if rec.Signal == pipeline.SignalTraces {
					for _, l := range rec.Span.Links().All() {
						l.TraceState().FromRaw("")
					}
				}
			}
			wantWires, gotWires := wires(t, want), wires(t, res.records)
			slices.Sort(wantWires)
			slices.Sort(gotWires)
			require.Len(t, gotWires, len(wantWires))
			for i := range wantWires {
				require.Equal(t, wantWires[i], gotWires[i])
			}
		})
	}
}

func reduceToConsole(rec *Record) {
	micros := func(ts pcommon.Timestamp) pcommon.Timestamp { // As Python's datetime.fromtimestamp(ns / 1e9) rounds.
		seconds, part := math.Modf(float64(ts) / 1e9)
		return pcommon.Timestamp(seconds)*1e9 + pcommon.Timestamp(math.RoundToEven(part*1e6))*1e3
	}
	switch rec.Signal {
	case pipeline.SignalTraces:
		rec.Scope.InstrumentationScope = pcommon.NewInstrumentationScope()
		rec.Scope.SchemaURL = ""
		s := rec.Span
		s.SetFlags(0)
		s.SetDroppedAttributesCount(0)
		s.SetDroppedEventsCount(0)
		s.SetDroppedLinksCount(0)
		s.SetStartTimestamp(micros(s.StartTimestamp()))
		s.SetEndTimestamp(micros(s.EndTimestamp()))
		for _, e := range s.Events().All() {
			e.SetTimestamp(micros(e.Timestamp()))
			e.SetDroppedAttributesCount(0)
		}
		for _, l := range s.Links().All() {
			l.SetFlags(0)
			l.SetDroppedAttributesCount(0)
		}
	case pipeline.SignalLogs:
		rec.Scope.InstrumentationScope = pcommon.NewInstrumentationScope()
		rec.Scope.SchemaURL = ""
		rec.Log.SetTimestamp(micros(rec.Log.Timestamp()))
		rec.Log.SetObservedTimestamp(micros(rec.Log.ObservedTimestamp()))
	}
}

func TestConsoleLinesOfLensComeBackByteForByte(t *testing.T) {
	for folder, path := range consoleCaptures(t) {
		t.Run(folder, func(t *testing.T) {
			var recs []Record
			for _, rec := range readFile(t, path).records {
				if rec.Signal != pipeline.SignalMetrics { // One object holds a whole collection of metrics.
					recs = append(recs, rec)
				}
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			want := regexp.MustCompile(`(?m)^\{"resource_metrics.*\n`).ReplaceAllString(string(text), "")
			require.Equal(t, want, string(write(t, jsonlexporter.LayoutConsole, recs)))
		})
	}
}

// What NeMo Lens does not have, the exporter's console lines do: what OTLP does not know, times of broken clocks.
func TestConsoleLinesOfTheExporterReadWhole(t *testing.T) {
	for _, line := range []string{
		`{"type":"span","name":"a","kind":9,"start_ns":1000,"status":7}`,
		`{"type":"span","name":"a","kind":-3,"start_ns":1000,"status":-1}`,
		`{"type":"span","name":"a","start_ns":0,"end_ns":18446744073709551615}`,
		`{"type":"span","name":"a","start_ns":1000,"end_ns":9223372037000000000,"events":[{"time_ns":18446744073000000000}]}`,
		`{"type":"span","name":"a","start_ns":1000,"attributes":{"a":{"@map":{"@double":"x"}},"b":{"@map":{"@double":1}},"c":{"@double":"-Infinity"}}}`,
		`{"type":"log","time_ns":9223372037000000000,"observed_ns":18446744073000000000,"severity_number":-3}`,
	} {
		read := readBytes(t, "f", []byte(line+"\n")).records
		want := wires(t, read)
		console := write(t, jsonlexporter.LayoutConsole, read)
		res := readBytes(t, "f", console)
		require.Empty(t, res.damage, "%s", console)
		require.Equal(t, want, wires(t, res.records), "%s", console)
	}
}

// NeMo Lens 0.1.0 writes every object over several lines, indented by four.
func TestIndentedConsoleFilesReadAsThoseOfOneLine(t *testing.T) {
	for folder, path := range consoleCaptures(t) {
		t.Run(folder, func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			var indented bytes.Buffer
			for line := range bytes.Lines(text) {
				require.NoError(t, json.Indent(&indented, quoteBare(line), "", "    "))
				indented.WriteByte('\n')
			}
			res := readBytes(t, "console", indented.Bytes())
			require.Empty(t, res.damage)
			require.Zero(t, res.stats.Torn+res.stats.Foreign)
			require.Equal(t, wires(t, readFile(t, path).records), wires(t, res.records))
		})
	}
}

const consoleSpanLine = `{"name": "step", "context": {"trace_id": "0x69687a630100eea03d0d2e023e4ff345", "span_id": "0x0bc1e11421ce9b25", "trace_state": "[]"}, "kind": "SpanKind.INTERNAL", "parent_id": null, "start_time": "2026-11-29T12:58:08.703113Z", "end_time": "2026-11-29T12:58:08.703117Z", "status": {"status_code": "UNSET"}, "attributes": {"loss": NaN}, "events": [], "links": [], "resource": {"attributes": {"dl.rank": 0}, "schema_url": ""}}` + "\n"

const consoleIndented = `{
    "name": "step",
    "context": {
        "trace_id": "0x69687a630100eea03d0d2e023e4ff345",
        "span_id": "0x0bc1e11421ce9b25",
        "trace_state": "[]"
    },
    "start_time": "2026-11-29T12:58:08.703113Z",
    "end_time": "2026-11-29T12:58:08.703117Z",
    "attributes": {
        "loss": NaN
    }
}
`

const recordOfAHandWrittenExporter = `{"name": "step", "trace_id": "69687a630100eea03d0d2e023e4ff345", "span_id": "0bc1e11421ce9b25", "parent_span_id": "c688c189e877b6fc", "start_time_unix_nano": 1795957088703113001, "end_time_unix_nano": 1795957088703117002, "attributes": {"iteration": 7, "loss": 0.5}}` + "\n"

// The lines of an application and of its stderr stand between the objects of a console file that was redirected.
func TestOtherOutputIsPassedOverAndCounted(t *testing.T) {
	for _, tt := range []struct {
		name    string
		text    string
		want    []string
		foreign int64
		damage  []string
		torn    int64
	}{
		{"lines before, between and behind", "starting\n" + consoleSpanLine + "epoch 1\n\n" + consoleSpanLine + "done\n", []string{"step", "step"}, 3, nil, 0},
		{"no newline at the end", "starting\n" + consoleSpanLine + "done", []string{"step"}, 2, nil, 0},
		{"an object without a newline at the end", strings.TrimSpace(consoleSpanLine), []string{"step"}, 0, nil, 0},
		{"a progress bar in front", "45%|####    | 3/7\r" + consoleSpanLine, []string{"step"}, 0, nil, 0},
		{"two objects in a line", strings.TrimSpace(consoleSpanLine) + consoleSpanLine, []string{"step", "step"}, 0, nil, 0},
		{"text behind an object", strings.TrimSpace(consoleSpanLine) + " saved\n", []string{"step"}, 1, nil, 0},
		{"what a dict prints", consoleSpanLine + "{'loss': 0.5}\n", []string{"step"}, 1, nil, 0},
		{"an application's JSON", consoleSpanLine + `{"level":"info","msg":"x"}` + "\n" + `{"type":"log","msg":"x"}` + "\n" + `{"name": "x"}` + "\n", []string{"step"}, 3, nil, 0},
		{"an application's indented JSON", consoleSpanLine + "{\n  \"lr\": 0.1\n}\n" + consoleSpanLine, []string{"step", "step"}, 3, nil, 0},
		{"lines within an indented object", strings.Replace(consoleIndented, "    \"start", "WARNING: slow\nTraceback:\n  File \"x.py\", line 1\n    raise X\n    \"start", 1), []string{"step"}, 4, nil, 0},
		{"indented objects one behind the other", consoleIndented + consoleIndented, []string{"step", "step"}, 0, nil, 0},
		{"indented objects without a newline between", strings.TrimSpace(consoleIndented) + consoleIndented, []string{"step", "step"}, 0, nil, 0},
		{"cut in a line", "x\n" + consoleSpanLine[:100] + "\n" + consoleSpanLine, []string{"step"}, 1, []string{"2: the object is not whole"}, 0},
		{"cut by the next object", consoleSpanLine[:100] + consoleSpanLine, []string{"step"}, 0, []string{"1: the object is not whole"}, 0},
		{"an indented object that is cut by the next", consoleIndented[:120] + "\n" + consoleIndented, []string{"step"}, 0, []string{"1: the object is not whole"}, 0},
		{"torn end", consoleSpanLine + consoleSpanLine[:100], []string{"step"}, 0, nil, 100},
		{"torn indented end", consoleSpanLine + consoleIndented[:20], []string{"step"}, 0, nil, 21},
		{"an application's file", "a\nb\n", nil, 2, nil, 0},
		{"hand-written records", "hello\n" + recordOfAHandWrittenExporter, []string{"step"}, 1, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := readBytes(t, "console.log", []byte(tt.text))
			require.Equal(t, tt.damage, res.damage)
			require.Equal(t, tt.want, names(res.records))
			require.Equal(t, tt.foreign, res.stats.Foreign, "foreign")
			require.Equal(t, tt.torn, res.stats.Torn, "torn")
		})
	}
}

func TestHandWrittenRecordIsASpan(t *testing.T) {
	res := readBytes(t, "spans.jsonl", []byte(recordOfAHandWrittenExporter))
	require.Empty(t, res.damage)
	require.Len(t, res.records, 1)
	span := res.records[0].Span
	require.Equal(t, "69687a630100eea03d0d2e023e4ff345", span.TraceID().String())
	require.Equal(t, "0bc1e11421ce9b25", span.SpanID().String())
	require.Equal(t, "c688c189e877b6fc", span.ParentSpanID().String())
	require.EqualValues(t, 1795957088703113001, span.StartTimestamp())
	require.EqualValues(t, 1795957088703117002, span.EndTimestamp())
	require.Equal(t, ptrace.SpanKindInternal, span.Kind())
	require.Equal(t, map[string]any{"iteration": int64(7), "loss": 0.5}, span.Attributes().AsRaw())
}

// In a file that a program writes for itself everything else is damage.
func TestDamageOfAProgramsOwnFileCostsItsLineAlone(t *testing.T) {
	a, b := spanLine("a", 1, 0), spanLine("b", 2, 0)
	otlp := string(write(t, jsonlexporter.LayoutOTLPJSON, readBytes(t, "", []byte(a)).records))
	for _, tt := range []struct {
		name, text string
		want       []string
		damage     []string
		torn       int64
	}{
		{"text between", a + "garbage\n" + b, []string{"a", "b"}, []string{`2: not JSON: "garbage"`}, 0},
		{"text in front", "garbage\n" + a, []string{"a"}, []string{`1: not JSON: "garbage"`}, 0},
		{"zeros between", a + strings.Repeat("\x00", 50) + "\n" + b, []string{"a", "b"}, []string{`2: not JSON: "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"…`}, 0},
		{"zeros at the end", a + strings.Repeat("\x00", 50), []string{"a"}, nil, 50},
		{"torn end", a + b[:40], []string{"a"}, nil, 40},
		{"torn end that looks whole", a + strings.TrimSpace(b), []string{"a"}, nil, int64(len(b) - 1)},
		{"other JSON", a + `{"x":1}` + "\n", []string{"a"}, []string{`2: no telemetry: "{\"x\":1}"`}, 0},
		{"a type of a newer version", a + `{"type":"profile","time_ns":1}` + "\n" + b, []string{"a", "b"}, nil, 0},
		{"a scope that is not there", a + `{"type":"span","start_ns":1,"scope":9}` + "\n" + b, []string{"a", "b"}, []string{`2: key "scope": scope 9: no line above defines it`}, 0},
		{"a request that is cut by the next", otlp[:50] + otlp, []string{"a"}, []string{"1: the object is not whole"}, 0},
		{"a request that is cut", otlp + otlp[:50] + "\n" + otlp, []string{"a", "a"}, []string{"2: the object is not whole"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := readBytes(t, "traces.jsonl", []byte(tt.text))
			require.Equal(t, tt.damage, res.damage)
			require.EqualValues(t, len(tt.damage), res.stats.Damaged)
			require.Equal(t, tt.want, names(res.records))
			require.Zero(t, res.stats.Foreign)
			require.Equal(t, tt.torn, res.stats.Torn)
		})
	}
}

func TestDamagedFrameCostsItselfAlone(t *testing.T) {
	lines := []string{spanLine("a", 1, 0), spanLine("b", 2, 0), spanLine("c", 3, 0)}
	frames := map[string]func([]byte) []byte{
		"gzip": func(b []byte) []byte { return gzipped(t, b) },
		"zstd": func(b []byte) []byte { return zstded(t, b) },
	}
	for name, frame := range frames {
		first, second, third := frame([]byte(lines[0])), frame([]byte(lines[1])), frame([]byte(lines[2]))
		all := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
		broken := bytes.Clone(second)
		broken[len(broken)-3] ^= 0x55 // In the checksum.
		for _, tt := range []struct {
			name    string
			content []byte
			want    []string
			damage  int
			torn    int64
		}{
			{"whole", all(first, second, third), []string{"a", "b", "c"}, 0, 0},
			{"torn last frame", all(first, second, third[:len(third)-5]), nil, 0, int64(len(third) - 5)},
			{"torn to two bytes", all(first, second, third[:2]), []string{"a", "b"}, 0, 2},
			{"zeros at the end", all(first, second, make([]byte, 500)), []string{"a", "b"}, 0, 500},
			{"garbage between", all(first, []byte("garbage"), third), []string{"a", "c"}, 1, 0},
			{"garbage at the end", all(first, []byte("garbage")), []string{"a"}, 1, 0},
			{"bad checksum", all(first, broken, third), []string{"a", "c"}, 1, 0},
		} {
			t.Run(name+" "+tt.name, func(t *testing.T) {
				res := readBytes(t, "traces.jsonl", tt.content)
				got := names(res.records)
				if tt.want == nil { // A reader may give what it decoded before the end was missing.
					require.Equal(t, "a", got[0])
				} else {
					require.Equal(t, tt.want, got)
				}
				require.Len(t, res.damage, tt.damage)
				require.Equal(t, tt.torn, res.stats.Torn)
			})
		}
	}
}

// TestDamageAttributesNothingToAnother has a damaged frame, or line, that may have defined again what a line behind it names.
func TestDamageAttributesNothingToAnother(t *testing.T) {
	session := func(run string) string {
		return fmt.Sprintf(`{"type":"resource","id":1,"attributes":{"nemo.run.id":%q,"nv.dl.rank":0,"service.name":"megatron"}}`+"\n", run) +
			`{"type":"scope","id":1,"resource":1,"name":"megatron"}` + "\n"
	}
	span := func(name, identity string) string {
		return fmt.Sprintf(`{"type":"span","name":%q,"start_ns":1%s,"scope":1}`+"\n", name, identity)
	}
	const ofOne, ofTwo = `,"run":"one","rank":0,"service":"megatron"`, `,"run":"two","rank":0,"service":"megatron"`
	for _, tt := range []struct {
		name   string
		second string // is lost
		third  string
		want   []string
		damage int
	}{
		{"the same session", span("b", ofOne), span("c", ofOne), []string{"a", "c"}, 1},
		{"another session", session("two") + span("b", ofTwo), span("c", ofTwo), []string{"a"}, 2},
		{"another rank", session("one") + span("b", ofOne), span("c", `,"run":"one","rank":1,"service":"megatron"`), []string{"a"}, 2},
		{"another service", session("one") + span("b", ofOne), span("c", `,"run":"one","rank":0,"service":"gym"`), []string{"a"}, 2},
		{"lines without an identity", span("b", ""), span("c", ""), []string{"a", "c"}, 1},
		{"defined again since", session("two") + span("b", ofTwo), session("two") + span("c", ofTwo), []string{"a", "c"}, 1},
		{"a scope of a resource that was", session("two") + span("b", ofTwo), `{"type":"scope","id":1,"resource":1}` + "\n" + span("c", ofTwo), []string{"a"}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first := session("one") + span("a", ofOne)
			frame := zstded(t, []byte(tt.second))
			frame[len(frame)-3] ^= 0x55
			for _, content := range [][]byte{
				bytes.Join([][]byte{zstded(t, []byte(first)), frame, zstded(t, []byte(tt.third))}, nil),
				[]byte(first + strings.Repeat("\x00", len(tt.second)-1) + "\n" + tt.third),
			} {
				res := readBytes(t, "traces.jsonl", content)
				require.Equal(t, tt.want, names(res.records))
				require.Len(t, res.damage, tt.damage)
				for _, damage := range res.damage[1:] {
					require.Contains(t, damage, "no line above defines it")
				}
			}
		})
	}
}

func TestFindListsInTheOrderOfWriting(t *testing.T) {
	folder := t.TempDir()
	put := func(name string) string {
		path := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(name), 0o600))
		return path
	}
	want := []string{
		put("r1/0/traces-20261129T162428.123456789Z.jsonl.zst"),
		put("r1/0/traces-20261129T162428.123456790Z.jsonl"),
		put("r1/0/traces-20261130T000000.000000000Z.jsonl.gz"),
		put("r1/0/traces.jsonl.zst"),
		put("r1/1/traces.jsonl"),
		put("r1/node-2026-11-29T16-24-28.123-size.json"),
		put("r1/node.json"),
	}
	for _, other := range []string{"r1/0/traces.jsonl.lock", "r1/.replay.json", ".hidden/traces.jsonl", "r1/notes.txt"} {
		put(other)
	}
	require.NoError(t, os.Symlink(want[0], filepath.Join(folder, "r1", "link.jsonl")))

	paths := func(inputs []Input) (all []string) {
		for _, in := range inputs {
			all = append(all, in.Path)
		}
		return all
	}
	got, err := Find([]string{folder})
	require.NoError(t, err)
	require.Equal(t, want, paths(got))
	require.True(t, got[0].Rotated)
	require.False(t, got[3].Rotated)
	require.Equal(t, got[3].Series, got[0].Series)
	require.EqualValues(t, len("r1/node.json"), got[6].Size)

	got, err = Find([]string{want[4], folder, want[4], filepath.Join(folder, "r1", "notes.txt"), Stdin})
	require.NoError(t, err)
	require.Equal(t, append([]string{want[4]}, append(append(want[:4:4], want[5:]...), filepath.Join(folder, "r1", "notes.txt"), Stdin)...), paths(got))

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Join(folder, "r1", "0"), link))
	got, err = Find([]string{link})
	require.NoError(t, err)
	require.Len(t, got, 4, "a link that is named itself is followed")
	require.Equal(t, filepath.Join(link, "traces.jsonl.zst"), got[3].Path)
	require.Equal(t, link, got[3].Root)

	_, err = Find([]string{filepath.Join(folder, "absent")})
	require.ErrorContains(t, err, "absent")
	_, err = Find([]string{t.TempDir()})
	require.ErrorContains(t, err, "holds no files named *.jsonl")
}

// TestFilesAreThoseThatWereFound has the active file rotated while the files before it are read.
func TestFilesAreThoseThatWereFound(t *testing.T) {
	folder := t.TempDir()
	putFile(t, folder, "traces-20261129T162428.123456789Z.jsonl", []byte(manySpans(0, 3)))
	active := putFile(t, folder, "traces.jsonl", []byte(manySpans(3, 3)))
	rotated := filepath.Join(folder, "traces-20261130T000000.000000000Z.jsonl")
	for _, next := range []bool{true, false} { // A next file begins with the next record.
		inputs, err := Find([]string{folder})
		require.NoError(t, err)
		require.NoError(t, os.Rename(active, rotated))
		if next {
			putFile(t, folder, "traces.jsonl", []byte(manySpans(100, 3)))
		}
		recs, problems := readInputs(inputs)
		require.Empty(t, problems)
		require.Equal(t, numbers(6), names(recs))
		require.NoError(t, os.Rename(rotated, active))
	}
}
