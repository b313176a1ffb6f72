// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestFoldersThatCannotBeRead cost themselves alone, as files do; the one that every ext4 has is nobody's.
func TestFoldersThatCannotBeRead(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755))
	require.NoError(t, os.Chmod(putFile(t, folder, "a.jsonl", []byte(manySpans(0, 2))), 0o644))
	require.NoError(t, os.Chmod(putFile(t, folder, "z.jsonl", []byte(manySpans(2, 2))), 0o644))
	closed := filepath.Dir(putFile(t, folder, "other/traces.jsonl", []byte(manySpans(9, 1))))
	for _, path := range []string{closed, filepath.Dir(putFile(t, folder, "lost+found/traces.jsonl", []byte(manySpans(9, 1))))} {
		require.NoError(t, os.Chmod(path, 0))
		defer func() { require.NoError(t, os.Chmod(path, 0o700)) }()
	}

	runtime.LockOSThread() // Root reads everything; this thread, as somebody else, does not.
	defer runtime.UnlockOSThread()
	require.NoError(t, unix.Setfsuid(65534))
	inputs, err := Find([]string{folder})
	require.NoError(t, errors.Join(err, unix.Setfsuid(os.Geteuid())))

	recs, problems := readInputs(inputs)
	require.Equal(t, numbers(4), names(recs))
	require.Equal(t, []string{"open " + closed + ": permission denied"}, problems)
}
