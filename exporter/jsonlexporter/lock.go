// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// fileLock keeps a second process from writing to the same path. It stands beside the file, as `<path>.lock`, because
// the file itself changes at every rotation, holds the pid of its holder, and goes with the process, however it ends.
type fileLock struct {
	root        *rootFolder
	name        string
	file        *os.File
	unsupported error // why there is no lock, where the file system has none
}

const lockExtension = ".lock"

func lockFile(root *rootFolder, path string) (*fileLock, error) {
	l := &fileLock{root: root, name: path + lockExtension}
	for {
		if err := l.open(); err != nil {
			return nil, fmt.Errorf("lock %s: %w", root.name(path), err)
		}
		if l.unsupported != nil {
			return l, nil
		}
		// The holder before may have removed the name between our open and our lock: then this locks nothing.
		if held, err := l.held(); err != nil || held {
			return l, err
		}
		_ = l.file.Close()
	}
}

func (l *fileLock) open() error {
	f, err := l.root.openFile(l.name, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	locked, err := lockExclusively(f)
	switch {
	case errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK):
		l.unsupported = err
		return f.Close()
	case err != nil:
		return errors.Join(err, f.Close())
	case !locked:
		return errors.Join(fmt.Errorf("it is being written by %s: stop it, or give this exporter another path", holder(f)), f.Close())
	}
	pid := strconv.Itoa(os.Getpid()) + "\n"
	if _, err = f.WriteAt([]byte(pid), 0); err == nil {
		err = f.Truncate(int64(len(pid)))
	}
	if err != nil && !diskFull(err) { // The lock holds without the pid too.
		return errors.Join(err, f.Close())
	}
	l.file = f
	return nil
}

// held tells whether the lock still keeps others away: it does not when its name was removed from outside.
func (l *fileLock) held() (bool, error) {
	if l.file == nil {
		return true, nil
	}
	named, err := l.root.get().Lstat(l.name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	held, heldErr := l.file.Stat()
	if err = errors.Join(err, heldErr); err != nil {
		return false, err
	}
	return os.SameFile(named, held), nil
}

// holder names the process that has the lock.
func holder(f *os.File) string {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	switch pid := strings.TrimSpace(string(text[:n])); pid {
	case "":
		return "another process"
	case strconv.Itoa(os.Getpid()):
		return "another exporter of this process (pid " + pid + ")"
	default:
		return "process " + pid
	}
}

// unlock removes the name while the lock is still held, so that nobody locks a file that is about to go. A name that is gone,
// or somebody else's by now, stays as it is.
func (l *fileLock) unlock() error {
	if l.file == nil {
		return nil
	}
	var err error
	if held, heldErr := l.held(); heldErr == nil && held {
		if err = l.root.get().Remove(l.name); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	err = errors.Join(err, l.file.Close())
	l.file = nil
	return err
}
