// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// backups are the rotated files of one path, oldest first. The folder is read once, at start, never at a write.
//
// `traces.jsonl` is rotated to `traces-20261129T162428.123456789Z.jsonl`: the time of the rotation in UTC, always as
// long, so that names sort as the files were written.
type backups struct {
	prefix string // path up to the time
	suffix string
	paths  []string
	last   time.Time // of the newest name that was ever given
}

const backupTime = "20060102T150405.000000000Z"

// findBackups lists the rotated files that are there. Only names that it would give itself are taken for ours.
func findBackups(path string) (backups, error) {
	suffix := filepath.Ext(path)
	b := backups{prefix: strings.TrimSuffix(path, suffix) + "-", suffix: suffix}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return backups{}, err
	}
	for _, e := range entries {
		p := filepath.Join(filepath.Dir(path), e.Name())
		if t, ok := b.time(p); ok && e.Type().IsRegular() {
			b.paths = append(b.paths, p)
			if t.After(b.last) {
				b.last = t
			}
		}
	}
	slices.Sort(b.paths)
	return b, nil
}

func (b *backups) time(path string) (time.Time, bool) {
	stamp, ok := strings.CutPrefix(path, b.prefix)
	if !ok {
		return time.Time{}, false
	}
	if stamp, ok = strings.CutSuffix(stamp, b.suffix); !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(backupTime, stamp)
	return t, err == nil && t.Format(backupTime) == stamp
}

// next is the path for a file that is rotated now: later than all before it, even where the clock was set back, and of
// no file that is there, since a rename would replace it.
func (b *backups) next(now time.Time) string {
	now = now.UTC()
	if !now.After(b.last) {
		now = b.last.Add(1)
	}
	for {
		path := b.prefix + now.Format(backupTime) + b.suffix
		if _, err := os.Lstat(path); err != nil {
			b.last = now
			return path
		}
		now = now.Add(1)
	}
}

func (b *backups) add(path string) { b.paths = append(b.paths, path) }

// prune removes the oldest files until no more than keep are left; 0 keeps all.
func (b *backups) prune(keep int, logger *zap.Logger) {
	if keep <= 0 {
		return
	}
	for len(b.paths) > keep {
		if err := os.Remove(b.paths[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			logger.Warn("pruning did not work; the file is tried again at the next rotation", zap.Error(err))
			return
		}
		b.paths = b.paths[1:]
	}
}
