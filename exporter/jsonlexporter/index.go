// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"container/heap"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// index knows every file of an archive: the folders are read once, at start, never at a write, an open or a rotation,
// whatever the number of partitions. It is shared by all exporters whose files stand below the same root, so that a bound on
// the whole archive holds over all of them.
//
// A file is ours when its path is one that a template renders, or such a path with the time of a rotation in it. Nothing
// else is counted, nor ever removed.
type index struct {
	root string

	mu     sync.Mutex
	users  int
	closed map[string]*closedFile // by path; nobody writes to them
	oldest closedHeap             // the same files
	backup map[string][]string    // path of an active file → its rotated files, oldest first
	bytes  int64                  // of all files, active ones included
	active map[string]int64       // bytes of the files that are being written
}

// closedFile is a rotated file, or an active one whose partition is not open.
type closedFile struct {
	path string
	of   string // the active path
	size int64
	time time.Time // of the rotation, or of the last write
	at   int       // in the heap
}

var (
	indexesMu sync.Mutex
	indexes   = map[string]*index{}
)

// acquireIndex returns the index of a root, with the files that the template knows in it.
func acquireIndex(root *rootFolder, t *pathTemplate) (*index, error) {
	indexesMu.Lock()
	defer indexesMu.Unlock()
	x, ok := indexes[root.path]
	if !ok {
		x = &index{root: root.path, closed: map[string]*closedFile{}, backup: map[string][]string{}, active: map[string]int64{}}
	}
	if err := x.scan(root.get(), t); err != nil {
		return nil, err
	}
	x.users++
	indexes[root.path] = x
	return x, nil
}

func (x *index) release() {
	indexesMu.Lock()
	defer indexesMu.Unlock()
	if x.users--; x.users == 0 {
		delete(indexes, x.root)
	}
}

// scan reads the folders that the template can lead to, and no others.
func (x *index) scan(root *os.Root, t *pathTemplate) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == "." {
				return err
			}
			return nil // A folder that cannot be read holds none of ours: we could not have written there.
		}
		if d.IsDir() {
			if path != "." && strings.Count(path, "/") >= t.depth {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		path = filepath.FromSlash(path)
		active, rotated, isBackup := splitBackup(path)
		if !isBackup {
			active = path
		}
		if _, ours := t.keyOf(active); !ours {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if !isBackup {
			rotated = info.ModTime()
		}
		x.add(path, active, info.Size(), rotated)
		return nil
	})
}

// add takes a closed file into the index. The lock is held.
func (x *index) add(path, active string, size int64, at time.Time) {
	if _, ok := x.closed[path]; ok {
		return
	}
	if _, ok := x.active[path]; ok {
		return
	}
	f := &closedFile{path: path, of: active, size: size, time: at}
	x.closed[path] = f
	heap.Push(&x.oldest, f)
	x.bytes += size
	if path != active {
		list := x.backup[active]
		i, _ := slices.BinarySearch(list, path)
		x.backup[active] = slices.Insert(list, i, path)
	}
}

// opened says that a path is being written, beginning at a size.
func (x *index) opened(path string, size int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(path)
	x.bytes += size - x.active[path]
	x.active[path] = size
}

// grown says how long an open file is now, and returns the bytes of the whole archive.
func (x *index) grown(path string, size int64) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bytes += size - x.active[path]
	x.active[path] = size
	return x.bytes
}

// rotated says that an open file was closed under another name.
func (x *index) rotated(path, to string, at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var size int64
	if f, ok := x.closed[path]; ok {
		size = f.size
		x.forget(path)
	} else {
		size = x.active[path]
		delete(x.active, path)
		x.bytes -= size
	}
	x.add(to, path, size, at)
}

// left says that nobody writes to a path any more.
func (x *index) left(path string, at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	size, ok := x.active[path]
	if !ok {
		return
	}
	delete(x.active, path)
	x.bytes -= size
	if size > 0 {
		x.add(path, path, size, at)
	}
}

// forget takes a closed file out. The lock is held.
func (x *index) forget(path string) {
	f, ok := x.closed[path]
	if !ok {
		return
	}
	delete(x.closed, path)
	heap.Remove(&x.oldest, f.at)
	x.bytes -= f.size
	if f.path == f.of {
		return
	}
	list := x.backup[f.of]
	if i, ok := slices.BinarySearch(list, path); ok {
		list = slices.Delete(list, i, i+1)
	}
	if x.backup[f.of] = list; len(list) == 0 {
		delete(x.backup, f.of)
	}
}

// gone says that somebody else removed a closed file.
func (x *index) gone(path string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(path)
}

// rotatedFiles lists the files that were ended under a name of their own, and whose active path the template knows, the oldest
// first.
func (x *index) rotatedFiles(t *pathTemplate) (paths []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for path, f := range x.closed {
		if _, ours := t.keyOf(f.of); ours && path != f.of {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return x.closed[a].time.Compare(x.closed[b].time) })
	return paths
}

// lastBackup is the newest rotated file of an active path, "" where there is none.
func (x *index) lastBackup(active string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if list := x.backup[active]; len(list) > 0 {
		return list[len(list)-1]
	}
	return ""
}

// paths lists the active path of every file.
func (x *index) paths() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	found := map[string]struct{}{}
	for _, f := range x.closed {
		found[f.of] = struct{}{}
	}
	return slices.Collect(maps.Keys(found))
}

// idle lists the active paths that nobody writes to, with the time of their last write.
func (x *index) idle() map[string]time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	found := map[string]time.Time{}
	for path, f := range x.closed {
		if path == f.of {
			found[path] = f.time
		}
	}
	return found
}

// pruneBackups removes the oldest rotated files of a path until no more than keep are left.
func (x *index) pruneBackups(root *rootFolder, active string, keep int) (removed []string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.backup[active]) > keep {
		path := x.backup[active][0]
		if _, err := x.remove(root, path); err != nil {
			return removed, err
		}
		removed = append(removed, path)
	}
	return removed, nil
}

// limits says what of a whole archive may stay.
type limits struct {
	bytes  int64         // of all files of the root, 0 for no bound
	before time.Time     // closed files of ours that are older go; zero for none
	ours   *pathTemplate // names them
}

// prune removes closed files beyond the limits, the oldest first, and returns how many bytes are left and which files went. By
// age go the files of one template, by bytes the oldest of all that stand below the root.
func (x *index) prune(root *rootFolder, l limits) (left int64, removed []string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for path, f := range maps.Clone(x.closed) {
		if _, ours := l.ours.keyOf(f.of); !ours || !f.time.Before(l.before) {
			continue
		}
		gone, err := x.remove(root, path)
		if err != nil {
			return x.bytes, removed, err
		}
		if gone {
			removed = append(removed, path)
		}
	}
	for l.bytes > 0 && x.bytes > l.bytes && len(x.oldest) > 0 {
		path := x.oldest[0].path
		gone, err := x.remove(root, path)
		if err != nil {
			return x.bytes, removed, err
		}
		if gone {
			removed = append(removed, path)
		}
	}
	return x.bytes, removed, nil
}

// remove removes a closed file, and tells whether it did. What the index knows of an active path may be of the start: in
// between another process, or an exporter with another root, may have gone on writing to it. So its lock is taken first; one
// that is held is not ours to count any more, and one that changed is as young as its last write.
func (x *index) remove(root *rootFolder, path string) (bool, error) {
	f := x.closed[path]
	if path == f.of {
		lock, err := lockFile(root, path)
		if err != nil {
			x.forget(path)
			return false, nil
		}
		defer func() { _ = lock.unlock() }()
		info, err := root.get().Lstat(path)
		if err == nil && (info.Size() != f.size || info.ModTime().Sub(f.time) > time.Second) {
			x.forget(path)
			x.add(path, path, info.Size(), info.ModTime())
			return false, nil
		}
	}
	if err := root.get().Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	x.forget(path)
	return true, nil
}

// holds tells whether there is any file of an active path.
func (x *index) holds(active string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, written := x.active[active]
	return written || x.closed[active] != nil || len(x.backup[active]) > 0
}

// closedHeap has the oldest file on top.
type closedHeap []*closedFile

func (h closedHeap) Len() int { return len(h) }
func (h closedHeap) Less(i, j int) bool {
	if h[i].time.Equal(h[j].time) {
		return h[i].path < h[j].path
	}
	return h[i].time.Before(h[j].time)
}
func (h closedHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].at, h[j].at = i, j }
func (h *closedHeap) Push(f any)   { f.(*closedFile).at = len(*h); *h = append(*h, f.(*closedFile)) }
func (h *closedHeap) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return f
}
