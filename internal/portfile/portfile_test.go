// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package portfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a line says is what the shell reads.
func TestExport(t *testing.T) {
	for _, value := range []string{"http://127.0.0.1:4317", "a b", "it's", "$(x)", "`x`", "", "'", "unix:/tmp/a'b c.sock", "\\"} {
		t.Run(value, func(t *testing.T) {
			read, err := exec.Command("sh", "-c", Export("V", value)+`printf %s "$V"`).Output()
			require.NoError(t, err)
			require.Equal(t, value, string(read))
		})
	}
	require.Equal(t, "export V=http://127.0.0.1:4317\n", Export("V", "http://127.0.0.1:4317"), "plain text is not quoted")
	require.Equal(t, "export V=1\n", Export("V", 1))
}

func TestWriteAndRemoveIf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, Write(path, "a"))
	require.NoError(t, Write(path, "b"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "b", string(text))

	RemoveIf(path, "a")
	require.FileExists(t, path, "another process has written it")
	RemoveIf(path, "")
	require.FileExists(t, path)
	RemoveIf(path, "b")
	require.NoFileExists(t, path)

	require.ErrorContains(t, Write(filepath.Join(t.TempDir(), "missing", "file"), "a"), "missing")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, left)
}
