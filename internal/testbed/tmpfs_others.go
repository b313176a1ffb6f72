// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testbed // import "github.com/lenscol/lenscol/internal/testbed"

import "testing"

// Tmpfs skips the test: there is a file system of its own on Linux alone.
func Tmpfs(tb testing.TB, _ string) string {
	tb.Helper()
	tb.Skip("a file system of its own can be mounted on Linux alone")
	return ""
}
