// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package testbed // import "github.com/lenscol/lenscol/internal/testbed"

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Tmpfs returns a folder that is a file system of its own, of that size ("16m"). It takes root; elsewhere the test is skipped.
func Tmpfs(tb testing.TB, size string) string {
	tb.Helper()
	folder := tb.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		tb.Skipf("a file system of its own cannot be mounted here (it takes root): %v", err)
	}
	tb.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			tb.Errorf("unmount %s: %v", folder, err)
		}
	})
	return folder
}
