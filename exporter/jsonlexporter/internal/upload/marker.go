// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package upload // import "github.com/lenscol/lenscol/exporter/jsonlexporter/internal/upload"

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// What was uploaded is remembered by a marker for each file: `<root>/.uploaded/<store>/<path of the file>.uploaded`, which
// holds the file's size and time of change.
//
// A marker is written after the object was verified, and says so of one file in one store. So every way to go wrong ends
// in an upload that is repeated, into the same object with equal bytes, and none in one that is left out: killed before the
// marker, a marker torn by a power cut, a file renamed, replaced under its name, or written on, another store. A journal for all
// files would need a lock between processes that share a root, and a torn line of it could cost more than one file. Markers
// stand in a folder of their own, under a name that no pattern for archive files matches.
const (
	markerFolder = ".uploaded"
	markerSuffix = ".uploaded"
)

// markers are those of one store.
type markers struct{ folder string }

func newMarkers(s *store) markers {
	sum := sha256.Sum256([]byte(s.identity()))
	return markers{folder: path.Join(markerFolder, hex.EncodeToString(sum[:6]))}
}

func (m markers) path(name string) string { return path.Join(m.folder, name+markerSuffix) }

func markerText(info fs.FileInfo) string {
	return fmt.Sprintf("%d %d\n", info.Size(), info.ModTime().UnixNano())
}

// has tells whether this very file is known to be in the store.
func (m markers) has(root *os.Root, name string, info fs.FileInfo) bool {
	text, err := root.ReadFile(m.path(name))
	return err == nil && string(text) == markerText(info)
}

func (m markers) put(root *os.Root, name string, info fs.FileInfo) error {
	file := m.path(name)
	if err := root.MkdirAll(path.Dir(file), 0o700); err != nil {
		return err
	}
	return root.WriteFile(file, []byte(markerText(info)), 0o600)
}

func (m markers) remove(root *os.Root, name string) error {
	if err := root.Remove(m.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sweep removes the markers of files that are gone, and folders that it leaves empty.
func (m markers) sweep(ctx context.Context, root *os.Root) error {
	var folders []string
	err := fs.WalkDir(root.FS(), m.folder, func(file string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if d.IsDir() {
			folders = append(folders, file)
			return nil
		}
		name, ok := strings.CutSuffix(strings.TrimPrefix(file, m.folder+"/"), markerSuffix)
		if !ok {
			return nil
		}
		if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return m.remove(root, name)
		}
		return nil
	})
	for _, folder := range slices.Backward(folders) {
		_ = root.Remove(folder) // Only an empty one goes.
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
