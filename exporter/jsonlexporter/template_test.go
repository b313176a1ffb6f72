// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/sdk/semconv"
)

var someDay = time.Date(2026, 11, 30, 0, 30, 0, 0, time.FixedZone("", 3600))

func TestTemplate(t *testing.T) {
	attrs := pcommon.NewMap()
	attrs.PutStr(semconv.RunID, "run-7")
	attrs.PutStr(semconv.DLRankOld, "3")
	attrs.PutStr(semconv.ServiceName, "nemo-gym/math")
	attrs.PutStr(semconv.HostName, "node0003")
	attrs.PutInt("step", 12)
	for _, tt := range []struct {
		path, root, want, key string
		compression           Compression
		missing               int
	}{
		{path: "lens-data/{signal}.jsonl", root: "lens-data", want: "traces.jsonl", key: "traces.jsonl"},
		{path: "/data/all.jsonl", root: "/data", want: "all.jsonl", key: "all.jsonl"},
		{path: "{signal}.jsonl", root: ".", want: "traces.jsonl", key: "traces.jsonl"},
		{path: "x.jsonl.zst", root: ".", compression: CompressionZstd, want: "x.jsonl.zst", key: "x.jsonl"},
		{path: "/{run}/x", root: "/", want: "run-7/x", key: "run-7/x"},
		{path: "d/{run}/rank-{rank}.jsonl", root: "d", compression: CompressionGzip, want: "run-7/rank-3.jsonl.gz", key: "run-7/rank-3.jsonl"},
		{path: "d/{date}/{host}-{signal}.jsonl", root: "d", want: "2026-11-29/node0003-traces.jsonl", key: "{date}/node0003-traces.jsonl"},
		{path: "d/pre{service}/{attr:step}.jsonl", root: "d", want: "prenemo-gym_math-1fbbd4e0/12.jsonl", key: "prenemo-gym_math-1fbbd4e0/12.jsonl"},
		{path: "d/{attr:none}/{attr:other}.jsonl", root: "d", want: "unknown/unknown.jsonl", key: "unknown/unknown.jsonl", missing: 2},
	} {
		t.Run(tt.path, func(t *testing.T) {
			template, err := parsePath(tt.path, tt.compression)
			require.NoError(t, err)
			require.Equal(t, tt.root, template.root)
			var r rendered
			template.render(&r, "traces", attrs, someDay)
			require.Equal(t, strings.Replace(tt.want, "1fbbd4e0", hashOf("nemo-gym/math"), 1), string(r.path))
			require.Equal(t, strings.Replace(tt.key, "1fbbd4e0", hashOf("nemo-gym/math"), 1), string(r.key))
			require.Equal(t, tt.missing, r.missing)
			key, ok := template.keyOf(string(r.path))
			require.True(t, ok, "the template knows what it rendered")
			require.Equal(t, string(r.key), key)
		})
	}
}

func hashOf(value string) string { return string(appendHash(nil, value)[1:]) }

func TestTemplateKnowsNoOtherFiles(t *testing.T) {
	template, err := parsePath("d/{run}/{signal}.jsonl", CompressionNone)
	require.NoError(t, err)
	for path, ours := range map[string]bool{
		"run/traces.jsonl": true, "run/traces.jsonl.zst": true, "run/traces.jsonl.gz": true,
		"traces.jsonl": false, "run/sub/traces.jsonl": false, "run/notes.jsonl": false, "run/traces.jsonl.bak": false, "a b/traces.jsonl": false,
	} {
		_, ok := template.keyOf(path)
		require.Equal(t, ours, ok, path)
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 300)
	for value, want := range map[string]string{
		"run-7":         "run-7",
		"a.b+c=d@e,f_g": "a.b+c=d@e,f_g",
		"..":            "_.-" + hashOf(".."),
		".":             "_-" + hashOf("."),
		".hidden":       "_hidden-" + hashOf(".hidden"),
		"../../etc":     "_.____etc-" + hashOf("../../etc"),
		`a\b`:           "a_b-" + hashOf(`a\b`),
		"nul\x00":       "nul_-" + hashOf("nul\x00"),
		"NUL":           "NUL-" + hashOf("NUL"),
		"com1.txt":      "com1.txt-" + hashOf("com1.txt"),
		"común":         "com__n-" + hashOf("común"),
		long:            long[:maxNameBytes] + "-" + hashOf(long),
	} {
		got := string(appendName(nil, value, false))
		want = strings.Replace(want, "_.____etc", "_.____etc", 1)
		if value == "../../etc" {
			want = "_._.._etc-" + hashOf(value)
		}
		require.Equal(t, want, got, "%q", value)
	}
}

// TestNamesThatMeanSomethingHere: no value makes a file a lock, or a rotated one, of another.
func TestNamesThatMeanSomethingHere(t *testing.T) {
	for _, path := range []string{"d/{run}", "d/{run}.jsonl"} {
		for _, run := range []string{"a.lock", "a.jsonl.lock", "a-20261129T162428.123456789Z", "a-20261129T162428.123456789Z.jsonl"} {
			template, err := parsePath(path, CompressionNone)
			require.NoError(t, err)
			attrs := pcommon.NewMap()
			attrs.PutStr(semconv.RunID, run)
			var r rendered
			template.render(&r, "traces", attrs, someDay)
			_, ours := template.keyOf(string(r.path))
			require.True(t, ours, "%s", r.path)
			_, _, rotated := splitBackup(string(r.path))
			require.False(t, rotated, "%s", r.path)
		}
	}
}

// TestNamesWhereCaseIsFolded: on a file system that does not tell letters by their case, values that differ in it alone have files of their own
// too, else the second would wait for the lock of the first for ever.
func TestNamesWhereCaseIsFolded(t *testing.T) {
	template, err := parsePath("d/{run}/{rank}.jsonl", CompressionNone)
	require.NoError(t, err)
	template.foldsCase = true
	seen := map[string]string{}
	for _, run := range []string{"run-a", "Run-a", "RUN-A", "RUN-a", "run-a-" + hashOf("RUN-A")} {
		attrs := pcommon.NewMap()
		attrs.PutStr(semconv.RunID, run)
		var r rendered
		template.render(&r, "traces", attrs, someDay)
		name := strings.ToLower(string(r.path))
		require.Equal(t, name, string(r.path))
		require.NotContains(t, seen, name)
		seen[name] = run
		_, ours := template.keyOf(name)
		require.True(t, ours)
	}
	require.Equal(t, "run-a", seen["run-a/unknown.jsonl"], "what has no upper case stands as it is")
}

// FuzzPartitionNames: whatever a sender says, a path stays beneath the root, its names fit a file system, and only equal
// values share one.
func FuzzPartitionNames(f *testing.F) {
	for _, s := range []string{"", ".", "..", "../..", "/etc/passwd", `\\host\share`, "a\x00b", "CON", "nul.txt", "LPT9", strings.Repeat("é", 200), "{run}", "-rf", "a/../b", "unknown", "overflow", "a\n"} {
		f.Add(s, "b")
	}
	template, err := parsePath("root/{run}/{attr:k}-{run}-{attr:k}-{run}/{run}.jsonl", CompressionZstd)
	if err != nil {
		f.Fatal(err)
	}
	folder := f.TempDir()
	root, err := os.OpenRoot(folder)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, run, value string) {
		attrs := pcommon.NewMap()
		attrs.PutStr(semconv.RunID, run)
		attrs.PutStr("k", value)
		var r rendered
		template.render(&r, "traces", attrs, someDay)
		path := string(r.path)
		require.True(t, filepath.IsLocal(path), "%q", path)
		parts := strings.Split(path, "/")
		require.Len(t, parts, 3)
		for _, p := range parts {
			require.LessOrEqual(t, len(p), 255-len(backupTime)-1-len(lockExtension))
			require.Regexp(t, `^[A-Za-z0-9_+=@,-][A-Za-z0-9._+=@,-]*$`, p)
		}
		_, ok := template.keyOf(path)
		require.True(t, ok, "%q", path)
		require.NoError(t, root.MkdirAll(filepath.Dir(path), 0o750))
		file, err := root.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		require.NoError(t, root.RemoveAll(parts[0]))
		if run != value && run != "" && value != "" {
			require.NotEqual(t, string(appendName(nil, run, false)), string(appendName(nil, value, false)))
		}
	})
}
