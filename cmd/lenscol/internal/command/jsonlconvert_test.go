// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJSONLConvertWritesAFileForEach(t *testing.T) {
	a, b := archiveLine("a", 1, 0), archiveLine("b", 2, 1)
	folder := archiveFolder(t, map[string]string{"0/traces.jsonl": a, "1/traces.jsonl": b})
	want, _, err := jsonl(t, "cat", "--sort", folder)
	require.NoError(t, err)
	require.Equal(t, a+b, want)

	// Around through every layout that loses nothing, and compressed by name.
	from := folder
	for _, layout := range []string{"otlp_json", "compact"} {
		to := filepath.Join(t.TempDir(), layout) + "/"
		stdout, _, err := jsonl(t, "convert", "--to", layout, "-o", to, from)
		require.NoError(t, err)
		require.Equal(t, "2 records into 2 files\n", stdout)
		require.FileExists(t, filepath.Join(to, "0", "traces.jsonl"))
		from = to
		got, _, err := jsonl(t, "cat", "--sort", from)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}

	one := filepath.Join(t.TempDir(), "run.jsonl.zst")
	stdout, _, err := jsonl(t, "convert", "-o", one, "--rank", "1", folder)
	require.NoError(t, err)
	require.Equal(t, "1 record into 1 file\n", stdout)
	got, _, err := jsonl(t, "cat", one)
	require.NoError(t, err)
	require.Equal(t, b, got)
}

func TestJSONLConvertNeverChangesWhatItReads(t *testing.T) {
	a := archiveLine("a", 1, 0)
	folder := archiveFolder(t, map[string]string{"0/traces.jsonl": a, "1/traces.jsonl": a, "taken.jsonl": "mine"})
	in := filepath.Join(folder, "0", "traces.jsonl")
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"the file itself", []string{"-o", in, in}, in + ": is read and would be replaced; write to another file or folder"},
		{"the file itself by its folder", []string{"-o", filepath.Dir(in), "--force", in}, in + ": is read and would be replaced; write to another file or folder"},
		{"a file that is there", []string{"-o", filepath.Join(folder, "taken.jsonl"), in}, filepath.Join(folder, "taken.jsonl") + ": file already exists; --force replaces it"},
		{
			"two of one name", []string{"-o", filepath.Join(folder, "out") + "/", in, filepath.Join(folder, "1", "traces.jsonl")},
			in + " and " + filepath.Join(folder, "1", "traces.jsonl") + " would both become " + filepath.Join(folder, "out", "traces.jsonl") + "; convert them apart",
		},
		{"nowhere", []string{in}, `required flag(s) "output" not set`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := jsonl(t, append([]string{"convert"}, tt.args...)...)
			require.EqualError(t, err, tt.want)
			text, err := os.ReadFile(in)
			require.NoError(t, err)
			require.Equal(t, a, string(text))
		})
	}
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 3, "nothing is left of what failed")
}
