// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/archive"
)

// jsonl runs `lenscol jsonl` and returns what it prints.
func jsonl(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := New(testSettings(), "abc")
	root.SetArgs(append([]string{"jsonl"}, args...))
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// archiveLine is a span in the compact layout.
func archiveLine(name string, start int64, rank int) string {
	return fmt.Sprintf(`{"type":"span","name":%q,"start_ns":%d,"duration_ns":1000,"run":"r1","rank":%[3]d,"resource":{"attributes":{"nemo.run.id":"r1","nv.dl.rank":%[3]d}}}`+"\n", name, start, rank)
}

// archiveFolder writes files below a new folder, by their names.
func archiveFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return folder
}

func TestJSONLCatPrintsFilesInTheOrderOfWriting(t *testing.T) {
	a, b, c := archiveLine("a", 3, 0), archiveLine("b", 1, 1), archiveLine("c", 2, 2)
	folder := archiveFolder(t, map[string]string{
		"traces-20261129T162428.123456789Z.jsonl": a,
		"traces.jsonl": b + "{\"type\":\"span\",\"na",
		"x.jsonl":      c,
	})
	torn := filepath.Join(folder, "traces.jsonl") + ": the last 18 bytes are no whole line: one that is being written, or that a killed writer left and never acknowledged\n"
	for _, tt := range []struct {
		name, args, want string
	}{
		{"all", "", a + b + c},
		{"sorted", "--sort", b + c + a},
		{"sorted in files", "--sort --sort-memory 1B --sort-folder " + t.TempDir(), b + c + a},
		{"of some ranks", "--rank 1-2", b + c},
		{"by name", "--name a --name c", a + c},
		{"of no run", "--run r2", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, err := jsonl(t, append([]string{"cat", folder}, strings.Fields(tt.args)...)...)
			require.NoError(t, err)
			require.Equal(t, tt.want, stdout)
			require.Equal(t, torn, stderr)
		})
	}
}

func TestJSONLCatWritesEveryLayout(t *testing.T) {
	folder := archiveFolder(t, map[string]string{"traces.jsonl": archiveLine("a", 1795957088703113000, 3)})
	for layout, want := range map[string]string{
		"compact --resource reference": `{"type":"resource","id":1,"attributes":{"nemo.run.id":"r1","nv.dl.rank":3}}
{"type":"scope","id":1,"resource":1}
{"type":"span","name":"a","start_ns":1795957088703113000,"duration_ns":1000,"run":"r1","rank":3,"scope":1}
`,
		"console":   `{"name": "a", "context": {"trace_id": "0x00000000000000000000000000000000", "span_id": "0x0000000000000000", "trace_state": "[]"}, "kind": "SpanKind.INTERNAL", "parent_id": null, "start_time": "2026-11-29T12:58:08.703113Z", "end_time": "2026-11-29T12:58:08.703114Z", "status": {"status_code": "UNSET"}, "attributes": {}, "events": [], "links": [], "resource": {"attributes": {"nemo.run.id": "r1", "nv.dl.rank": 3}, "schema_url": ""}}` + "\n",
		"otlp_json": `{"resourceSpans":[{"scopeSpans":[{"scope":{},"spans":[{"name":"a","kind":1,"startTimeUnixNano":"1795957088703113000","endTimeUnixNano":"1795957088703114000","status":{}}]}],"resource":{"attributes":[{"key":"nemo.run.id","value":{"stringValue":"r1"}},{"key":"nv.dl.rank","value":{"intValue":"3"}}]}}]}` + "\n",
	} {
		t.Run(layout, func(t *testing.T) {
			stdout, stderr, err := jsonl(t, append([]string{"cat", folder, "--to"}, strings.Fields(layout)...)...)
			require.NoError(t, err)
			require.Empty(t, stderr)
			require.Equal(t, want, stdout)
		})
	}
}

func TestJSONLCatPrintsWhatItCanOfDamagedFiles(t *testing.T) {
	a, b := archiveLine("a", 1, 0), archiveLine("b", 2, 0)
	folder := archiveFolder(t, map[string]string{"a.jsonl": a + strings.Repeat("garbage\n", 12) + b, "console.jsonl": "Epoch 1\n" + archiveConsole})
	stdout, stderr, err := jsonl(t, "cat", folder)
	require.EqualError(t, err, "12 damaged places, what could be read was read; `lenscol jsonl verify` lists them all")
	require.Equal(t, 3, strings.Count(stdout, "\n"))
	require.True(t, strings.HasPrefix(stdout, a+b))
	lines := strings.Split(stderr, "\n")
	require.Equal(t, filepath.Join(folder, "a.jsonl")+`:2: not JSON: "garbage"`, lines[0])
	require.Equal(t, filepath.Join(folder, "a.jsonl")+`: 2 damaged places more`, lines[10])
	require.Equal(t, filepath.Join(folder, "console.jsonl")+`: 1 line of other output passed over`, lines[11])
}

const archiveConsole = `{"name": "step", "context": {"trace_id": "0x69687a630100eea03d0d2e023e4ff345", "span_id": "0x0bc1e11421ce9b25", "trace_state": "[]"}, "kind": "SpanKind.INTERNAL", "parent_id": null, "start_time": "2026-11-29T12:58:08.703113Z", "end_time": "2026-11-29T12:58:08.703117Z", "status": {"status_code": "UNSET"}, "attributes": {"loss": NaN}, "events": [], "links": [], "resource": {"attributes": {"dl.rank": 0}, "schema_url": ""}}` + "\n"

func TestJSONLErrorsNameWhatIsWrong(t *testing.T) {
	folder := archiveFolder(t, map[string]string{"a.jsonl": archiveLine("a", 1, 0)})
	for _, tt := range []struct{ name, args, want string }{
		{"no file", "cat", "requires at least 1 arg(s), only received 0"},
		{"no such file", "cat nowhere.jsonl", "stat nowhere.jsonl: no such file or directory"},
		{"no such layout", "cat --to csv " + folder, `layout: "csv" is not one of ["compact" "console" "otlp_json"]`},
		{"no such mode", "cat --resource x " + folder, `resource: "x" is not one of ["reference" "inline"]`},
		{"bad filter", "cat --rank x " + folder, `--rank: ranks: "x" of "x" is none of`},
		{"bad memory", "cat --sort --sort-memory much " + folder, `--sort-memory: "much" is not a number of bytes`},
		{"no such command", "ct", `unknown command "ct", did you mean "lenscol jsonl cat"?`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, _, err := jsonl(t, strings.Fields(tt.args)...)
			require.ErrorContains(t, err, tt.want)
			require.Empty(t, stdout)
		})
	}
}

func TestProgressIsOneLineFromTheSecondSecondOn(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	p := &progress{out: &out, now: func() time.Time { return now }, start: now}
	at := func() (int64, int64) { return 50 << 20, 100 << 20 }
	update := func() {
		for range progressCalls {
			p.update(at)
		}
	}
	update()
	require.Empty(t, out.String(), "what is done at once needs no bar")
	now = now.Add(2 * time.Second)
	update()
	require.Equal(t, "\r\x1b[K[===============               ]  50% 50 MiB, 25 MiB/s", out.String())
	update()
	require.Equal(t, 1, strings.Count(out.String(), "\r"), "not more than five times a second")
	p.end()
	require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K"))
	require.Equal(t, "50 MiB, 25 MiB/s", progressLine(50<<20, 0, 2*time.Second), "of a pipe the size is not known")
}

func TestJSONLStatGolden(t *testing.T) {
	second := int64(time.Second)
	folder := archiveFolder(t, map[string]string{
		"traces-20261129T162428.123456789Z.jsonl": archiveLine("a", 1795957000*second, 0) + archiveLine("b", 1795957030*second, 1),
		"traces.jsonl":  archiveLine("c", 1795957300*second, 1) + "{\"type\":\"span\",\"na",
		"console.jsonl": "Epoch 1\n" + archiveConsole,
	})
	stdout, _, err := jsonl(t, "stat", folder, "--files")
	require.NoError(t, err)
	stdout = strings.ReplaceAll(stdout, folder, "lens-data")
	golden := filepath.Join("testdata", "jsonlstat.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(stdout), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, lines(string(want)), lines(stdout))

	stdout, _, err = jsonl(t, "stat", folder, "--json", "--run", "r1")
	require.NoError(t, err)
	var sum archive.Summary
	require.NoError(t, json.Unmarshal([]byte(stdout), &sum))
	require.EqualValues(t, 3, sum.Spans)
	require.Equal(t, "r1", sum.Runs[0].Run)

	_, _, err = jsonl(t, "stat", folder, "--gap", "0s")
	require.EqualError(t, err, "--gap: must be greater than 0, is 0s")
}

// lines are those of a table whose columns are as wide as a temporary folder's name: without the width.
func lines(table string) (all []string) {
	for line := range strings.Lines(table) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}

func TestJSONLVerifyNamesDamageByFileAndLine(t *testing.T) {
	a := archiveLine("a", 1, 0)
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
		err   string
	}{
		{"whole", map[string]string{"traces.jsonl": a, "console.jsonl": "Epoch 1\n" + archiveConsole}, "console.jsonl: 1 line of other output passed over\n2 files, 2 records: whole\n", ""},
		{
			"torn and active",
			map[string]string{"traces.jsonl": a + "{\"ty"},
			"traces.jsonl: the last 4 bytes are no whole line: one that is being written, or that a killed writer left and never acknowledged\n1 file, 1 record: whole\n", "",
		},
		{
			"torn and rotated",
			map[string]string{"traces-20261129T162428.123456789Z.jsonl": a + "{\"ty"},
			"traces-20261129T162428.123456789Z.jsonl: the last 4 bytes are no whole line, though the file was ended\n1 file, 1 record: damaged in 1 place\n",
			"1 damaged place, named above",
		},
		{
			"damaged",
			map[string]string{"a.jsonl": a + "x\n" + a, "b.jsonl": a + `{"type":"span","start_ns":"1"}` + "\n"},
			"a.jsonl:2: not JSON: \"x\"\nb.jsonl:2: key \"start_ns\": \"1\" is not of type number\n2 files, 3 records: damaged in 2 places\n",
			"2 damaged places, named above",
		},
		{"of a newer version", map[string]string{"a.jsonl": a + `{"type":"profile","id":1}` + "\n"}, "a.jsonl: keys or lines of a newer version left out: 1\n1 file, 1 record: whole\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := archiveFolder(t, tt.files)
			stdout, stderr, err := jsonl(t, "verify", folder)
			if tt.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tt.err)
			}
			require.Empty(t, stderr)
			require.Equal(t, tt.want, strings.ReplaceAll(stdout, folder+string(filepath.Separator), ""))
		})
	}
}
