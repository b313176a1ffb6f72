// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mountTmpfs returns a folder that is a file system of its own. It takes root; elsewhere the test is skipped.
func mountTmpfs(t *testing.T, size string) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a file system of its own cannot be mounted here (it takes root): %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(folder, 0)) })
	return folder
}
