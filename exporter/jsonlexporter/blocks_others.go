// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import "golang.org/x/sys/unix"

// blockBytes is the unit of a file system's counts of blocks.
func blockBytes(st *unix.Statfs_t) int64 { return int64(st.Bsize) }
