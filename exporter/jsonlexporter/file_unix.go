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

// lockExclusively takes the lock of an open file, which goes with the process; false where another one has it.
func lockExclusively(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func isInvalid(err error) bool { return errors.Is(err, unix.EINVAL) }

// freeBytes is what an unprivileged user may still write in the file system of a file.
func freeBytes(f *os.File) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * blockBytes(&st), nil //nolint:unconvert // other types on other systems
}
