// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"cmp"
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
// Of a folder, hidden files, locks, symbolic links and files of other names are left out.
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
		add(newInput(arg, "", info.Size()))
		return nil
	}
	return filepath.WalkDir(arg, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case path != arg && strings.HasPrefix(name, "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.Type().IsRegular() && archiveName.MatchString(name):
			info, err := entry.Info()
			if os.IsNotExist(err) { // Rotated or pruned since.
				return nil
			}
			if err != nil {
				return err
			}
			add(newInput(path, arg, info.Size()))
		}
		return nil
	})
}

func newInput(path, root string, size int64) Input {
	in := Input{Path: path, Root: root, Size: size}
	in.Series = compressed.ReplaceAllString(path, "")
	folder, name := filepath.Split(in.Series)
	ext := filepath.Ext(name)
	if parts := rotatedStem.FindStringSubmatch(strings.TrimSuffix(name, ext)); parts != nil {
		in.Series, in.stamp, in.Rotated = folder+parts[1]+ext, parts[2], true
	}
	return in
}
