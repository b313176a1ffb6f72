// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Stdin is the argument that stands for standard input.
const Stdin = "-"

// Input is one file to be read.
type Input struct {
	Path    string // as it is opened, Stdin for standard input
	Root    string // the folder argument that it was found below, "" for one that was named
	Series  string // the path that its exporter writes to: rotated files share it with the active one, compressed or not
	Rotated bool   // its name says when it was ended: nothing is appended to it any more
	Size    int64  // bytes on disk when it was found; 0 for standard input

	stamp string
	info  fs.FileInfo // of the file that was found, nil where that is not known
	err   error       // of a folder that cannot be read
}

// Name is how errors and reports call the file.
func (in Input) Name() string {
	if in.Path == Stdin {
		return "stdin"
	}
	return in.Path
}

var (
	// archiveName matches what is read of a folder. A file of another name is read where it is named itself.
	archiveName = regexp.MustCompile(`\.(jsonl|ndjson|json|pb|proto)(\.(gz|zst|zstd))?$`)
	compressed  = regexp.MustCompile(`\.(gz|zst|zstd)$`)
	// rotatedStem matches names like traces-20261129T162428.123456789Z (ours) and traces-2026-11-29T16-24-28.123-size (of contrib's
	// file exporter), without their extension.
	rotatedStem = regexp.MustCompile(`^(.+)-(\d{8}T\d{6}\.\d{9}Z|\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}\.\d{3})(-[a-z]+)?$`)
)

// Find lists the files that the arguments name: a file as it is, a folder with all files of an archive in it and below, Stdin. Within a
// series they stand in the order in which they were written, the active file last. A file that is named twice is listed once.
//
// Of a folder, hidden files, locks, symbolic links and files of other names are left out. A folder in it that cannot be read is an input that
// cannot be opened.
func Find(args []string) ([]Input, error) {
	var found []Input
	seen := map[string]bool{}
	for _, arg := range args {
		var below []Input
		if arg == Stdin {
			below = []Input{{Path: Stdin, Series: Stdin}}
		} else if err := walk(arg, func(in Input) { below = append(below, in) }); err != nil {
			return nil, err
		} else if len(below) == 0 {
			return nil, fmt.Errorf("%s: holds no files named *.jsonl, *.ndjson, *.json, *.pb or *.proto, compressed or not", arg)
		}
		slices.SortStableFunc(below, func(a, b Input) int {
			if c := cmp.Compare(a.Series, b.Series); c != 0 {
				return c
			}
			if a.Rotated != b.Rotated { // The active file is the newest.
				if a.Rotated {
					return -1
				}
				return 1
			}
			return cmp.Or(cmp.Compare(a.stamp, b.stamp), cmp.Compare(a.Path, b.Path))
		})
		for _, in := range below {
			key := in.Path
			if abs, err := filepath.Abs(in.Path); err == nil && key != Stdin {
				key = abs
			}
			if !seen[key] {
				seen[key] = true
				found = append(found, in)
			}
		}
	}
	return found, nil
}

func walk(arg string, add func(Input)) error {
	info, err := os.Stat(arg)
	if err != nil {
		return err // Names the path.
	}
	if !info.IsDir() {
		add(newInput(arg, "", info))
		return nil
	}
	top := filepath.Clean(arg) + string(filepath.Separator) // So that a link that is named itself is followed.
	return filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err) && path != top: // A folder that was removed since.
			return nil
		case err != nil && path != top:
			add(Input{Path: path, Root: arg, Series: path, err: err})
			return nil
		case err != nil:
			return err
		case path != top && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "lost+found"):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.Type().IsRegular() && archiveName.MatchString(entry.Name()):
			info, err := entry.Info()
			if os.IsNotExist(err) { // Rotated or pruned since.
				return nil
			}
			if err != nil {
				return err
			}
			add(newInput(path, arg, info))
		}
		return nil
	})
}

func newInput(path, root string, info fs.FileInfo) Input {
	in := Input{Path: path, Root: root, Size: info.Size(), info: info}
	in.Series = compressed.ReplaceAllString(path, "")
	folder, name := filepath.Split(in.Series)
	ext := filepath.Ext(name)
	if parts := rotatedStem.FindStringSubmatch(strings.TrimSuffix(name, ext)); parts != nil {
		in.Series, in.stamp, in.Rotated = folder+parts[1]+ext, parts[2], true
	}
	return in
}

// open opens the file that was found, under the name that it has by now: an active file may be rotated while others are read, and the next
// one of its series has its name then. Where it is gone, what has its name is opened.
func (in Input) open() (*os.File, error) {
	if in.err != nil {
		return nil, in.err
	}
	f, err := os.Open(in.Path)
	if in.info == nil || err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && in.is(f.Stat()) {
		return f, err
	}
	folder := filepath.Dir(in.Path)
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if info, infoErr := entry.Info(); !in.is(info, infoErr) || newInput(path, in.Root, info).Series != in.Series {
			continue
		}
		if renamed, openErr := os.Open(path); openErr == nil {
			if f != nil {
				_ = f.Close()
			}
			return renamed, nil
		}
	}
	return f, err
}

// is tells whether that is the file that was found.
func (in Input) is(info fs.FileInfo, err error) bool { return err == nil && os.SameFile(in.info, info) }
