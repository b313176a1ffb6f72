// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// rootFolder is the folder that all files of an exporter stand below. They are reached through an os.Root alone: no name
// and no link below it leads out of it.
type rootFolder struct {
	path   string // absolute
	mode   os.FileMode
	create bool

	mu      sync.Mutex
	current *os.Root
}

// openRoot opens the folder, and creates it where that is asked for.
func openRoot(path string, create bool, mode os.FileMode) (*rootFolder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	r := &rootFolder{path: path, mode: mode, create: create}
	r.current, err = r.open()
	return r, err
}

func (r *rootFolder) open() (*os.Root, error) {
	if r.create {
		if err := os.MkdirAll(r.path, r.mode); err != nil {
			return nil, fmt.Errorf("create the folder %s: %w", r.path, err)
		}
	}
	root, err := os.OpenRoot(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w; create it, or set create_directory: true", err)
	}
	return root, err
}

func (r *rootFolder) get() *os.Root {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// openFile opens a file. Where its folder was removed from outside, that is made again first.
func (r *rootFolder) openFile(path string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := r.get().OpenFile(path, flag, mode)
	if errors.Is(err, os.ErrNotExist) {
		if err = r.restore(filepath.Dir(path)); err == nil {
			f, err = r.get().OpenFile(path, flag, mode)
		}
	}
	return f, err
}

// restore makes a folder again that was removed from outside, and finds the root again where that was replaced.
func (r *rootFolder) restore(folder string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	there, err := os.Stat(r.path)
	held, heldErr := r.current.Stat(".")
	if err != nil || heldErr != nil || !os.SameFile(there, held) {
		root, err := r.open()
		if err != nil {
			return err
		}
		_ = r.current.Close() // It leads nowhere any more.
		r.current = root
	}
	if !r.create {
		return nil
	}
	if err := r.current.MkdirAll(folder, r.mode); err != nil {
		return err
	}
	for parent := folder; parent != "."; { // So that a power cut takes no folder away either.
		parent = filepath.Dir(parent)
		if err := syncFolder(r.current, parent); err != nil {
			return err
		}
	}
	return nil
}

func (r *rootFolder) close() error { return r.get().Close() }

// name is the path of a file below the root, for people.
func (r *rootFolder) name(path string) string { return filepath.Join(r.path, path) }
