// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import "golang.org/x/sys/unix"

// blockBytes is the unit of a file system's counts of blocks. It is not Bsize where that is the best size of a write instead, as FUSE may
// have it (statfs(2), statvfs(3)).
func blockBytes(st *unix.Statfs_t) int64 {
	if st.Frsize > 0 {
		return int64(st.Frsize)
	}
	return int64(st.Bsize)
}
