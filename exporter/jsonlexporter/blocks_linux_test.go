// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lenscol/lenscol/internal/testbed"
)

func TestFreeBytes(t *testing.T) {
	f, err := os.Create(filepath.Join(testbed.Tmpfs(t, "64k"), "f"))
	require.NoError(t, err)
	defer f.Close()
	free, err := freeBytes(f)
	require.NoError(t, err)
	require.EqualValues(t, 64<<10, free)

	require.EqualValues(t, 4096, blockBytes(&unix.Statfs_t{Bsize: 1 << 20, Frsize: 4096}), "what virtiofs has of a Mac")
	require.EqualValues(t, 4096, blockBytes(&unix.Statfs_t{Bsize: 4096}))
}
