// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// linked tells whether an open file still has a name.
func linked(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 0
}

// diskFull tells the errors that go away when somebody frees space.
func diskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func isInvalid(err error) bool { return errors.Is(err, unix.EINVAL) }

// freeBytes is what an unprivileged user may still write in the file system of a folder.
func freeBytes(folder string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // other types on other systems
}
