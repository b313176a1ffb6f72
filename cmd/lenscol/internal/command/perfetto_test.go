// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/internal/simrun"
)

// drawCommand runs `lenscol perfetto` and returns what it prints, and its exit code.
func drawCommand(t *testing.T, args ...string) (stdout, stderr string, code int, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := New(testSettings(), "abc")
	root.SetArgs(append([]string{"perfetto"}, args...))
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	code, _ = exitCodeOf(err)
	return out.String(), errs.String(), code, err
}

func simulatedFile(t *testing.T) string {
	t.Helper()
	run, err := simrun.New(simrun.Default())
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, run.Write(&file, jsonlexporter.LayoutCompact))
	return filepath.Join(archiveFolder(t, map[string]string{"traces.jsonl": file.String()}), "traces.jsonl")
}

func TestPerfettoDrawsARun(t *testing.T) {
	file := simulatedFile(t)
	to := filepath.Join(t.TempDir(), "run.pftrace")
	stdout, stderr, code, err := drawCommand(t, "-o", to, file)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Empty(t, stderr)
	require.Regexp(t, `^`+to+`: 16 ranks on 4 nodes; [0-9,]+ spans, 48 events, [0-9,]+ flows, 32 counters
never ended: 0 open, 45 truncated
clocks of 4 nodes corrected by up to [0-9.]+ ms, ± 0.[0-9]+ ms, against node000
$`, stdout)
	trace, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Contains(t, string(trace), "rank 0015 | node003 | megatron")

	_, _, code, err = drawCommand(t, "-o", to, file)
	require.ErrorContains(t, err, to)
	require.Equal(t, exitNo, code, "a file that is there is not replaced")
	_, _, _, err = drawCommand(t, "-o", to, "--force", "--no-clock-correction", file)
	require.NoError(t, err)
	changed, err := os.ReadFile(to)
	require.NoError(t, err)
	require.NotEqual(t, trace, changed)
}

func TestPerfettoDrawsWhatTheFilterKeeps(t *testing.T) {
	to := filepath.Join(t.TempDir(), "run.json.gz")
	stdout, _, _, err := drawCommand(t, "--json", "-o", to, "--rank", "0-3", "--name", "megatron.train.iteration", "--until", "2026-11-29T12:01:00Z", simulatedFile(t))
	require.NoError(t, err)
	require.Contains(t, stdout, "4 ranks on 1 node; ")
	f, err := os.Open(to)
	require.NoError(t, err)
	defer f.Close()
	plain, err := gzip.NewReader(f)
	require.NoError(t, err)
	var trace struct {
		TraceEvents []struct{ Ph, Name string }
	}
	require.NoError(t, json.NewDecoder(plain).Decode(&trace))
	names := map[string]bool{}
	for _, e := range trace.TraceEvents {
		if e.Ph == "X" {
			names[e.Name] = true
		}
	}
	require.Equal(t, map[string]bool{"megatron.train.iteration": true}, names)
}

func TestPerfettoErrorsNameWhatIsWrong(t *testing.T) {
	file := simulatedFile(t)
	to := filepath.Join(t.TempDir(), "x.pftrace")
	for _, tt := range []struct {
		name, args, want string
		code             int
	}{
		{"no file", "-o " + to, "requires at least 1 arg(s)", exitUsage},
		{"no output", file, `required flag(s) "output" not set`, exitUsage},
		{"bad filter", "-o " + to + " --rank x " + file, "--rank: ", exitUsage},
		{"bad memory", "-o " + to + " --sort-memory much " + file, `--sort-memory: "much" is not a number of bytes`, exitUsage},
		{"no such file", "-o " + to + " nowhere.jsonl", "nowhere.jsonl: no such file", exitNo},
		{"nothing kept", "-o " + to + " --rank 99 " + file, "there is nothing to draw", exitNo},
		{"no folder", "-o " + file + "/x " + file, "not a directory", exitNo},
		{"its own input", "-o " + file + " --force " + file, "is read and would be replaced", exitUsage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, _, code, err := drawCommand(t, strings.Fields(tt.args)...)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, tt.code, code)
			require.Empty(t, stdout)
			require.NoFileExists(t, to)
		})
	}
}

func TestPerfettoDrawsWhatItCanOfDamagedFiles(t *testing.T) {
	folder := archiveFolder(t, map[string]string{"a.jsonl": archiveLine("a", 10, 0) + "garbage\n" + archiveLine("b", 20, 0)})
	to := filepath.Join(t.TempDir(), "x.pftrace")
	stdout, stderr, code, err := drawCommand(t, "-o", to, folder)
	require.ErrorContains(t, err, "1 damaged place")
	require.Equal(t, exitNo, code)
	require.Contains(t, stderr, `a.jsonl:2: not JSON: "garbage"`)
	require.Contains(t, stdout, "1 rank on 0 nodes; 2 spans")
	require.FileExists(t, to)
}
