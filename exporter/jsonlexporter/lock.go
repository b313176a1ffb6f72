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

	"github.com/gofrs/flock"
)

// fileLock keeps a second process from writing to the same path. It stands beside the file, as `<path>.lock`, because
// the file itself changes at every rotation, holds the pid of its holder, and goes with the process, however it ends.
type fileLock struct {
	flock       *flock.Flock
	unsupported error // why there is no lock, where the file system has none
}

func lockFile(path string) (*fileLock, error) {
	name := path + ".lock"
	l := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o640))
	locked, err := l.TryLock()
	switch {
	case errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK):
		return &fileLock{unsupported: err}, nil
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", path, err)
	case !locked:
		return nil, fmt.Errorf("%s is being written by %s: stop it, or give this exporter another path", path, holder(name))
	}
	if err := os.WriteFile(name, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o640); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), l.Close())
	}
	return &fileLock{flock: l}, nil
}

// holder names the process that has the lock.
func holder(name string) string {
	text, err := os.ReadFile(name)
	pid := strings.TrimSpace(string(text))
	switch {
	case err != nil || pid == "":
		return "another process"
	case pid == strconv.Itoa(os.Getpid()):
		return "another exporter of this process (pid " + pid + ")"
	default:
		return "process " + pid
	}
}

func (l *fileLock) unlock() error {
	if l.flock == nil {
		return nil
	}
	return l.flock.Close()
}
