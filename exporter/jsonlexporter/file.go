// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// activeFile is the file that lines are appended to. Only the writer's goroutine touches it.
//
// What is on disk is always whole lines up to size: a write that fails half way is cut back to size before anything
// else is written, and what that did not cut, or an unclean stop left of a line, is cut off when the file is opened.
type activeFile struct {
	root    *rootFolder // nothing is opened, renamed or removed but beneath it
	path    string      // below root
	mode    os.FileMode
	sync    SyncMode
	minFree int64
	framing framing // nil for plain lines

	f          *os.File    // nil until opened, and after it was lost
	info       os.FileInfo // which file f is
	size       int64       // bytes of whole lines
	born       time.Time
	generation uint64 // another number for every file that was ever opened: which definitions are in it
	unsynced   bool   // bytes since the last sync, where syncing goes by interval
	syncs      int    // how often the file was synced

	freeChecked time.Time
	freeLeft    int64 // bytes until minFree, as of freeChecked, less what was written since
}

var (
	errReplaced = errors.New("file was removed, renamed or truncated from outside")
	errNotOurs  = errors.New("file holds something else than JSON lines")

	generations atomic.Uint64
)

// lowDiskError says that writing stopped before the disk is full.
type lowDiskError struct {
	path          string
	free, minFree int64
}

func (e *lowDiskError) Error() string {
	return fmt.Sprintf("write %s: %d bytes are free on its disk, less than min_free_bytes %d and what is to be written: free some, or lower min_free_bytes", e.path, max(e.free, 0), e.minFree)
}

// name is the file's path for people.
func (a *activeFile) name() string { return a.root.name(a.path) }

// isDiskFull tells the errors of a disk that is full, or has less free than is to be left.
func isDiskFull(err error) bool {
	var low *lowDiskError
	return errors.As(err, &low) || diskFull(err)
}

// open opens or creates the file for appending and returns how many bytes of a torn last line or frame it cut off.
func (a *activeFile) open() (torn int64, err error) {
	if torn, err = a.openFile(); err != nil {
		return 0, fmt.Errorf("open %s: %w", a.name(), err)
	}
	return torn, nil
}

func (a *activeFile) openFile() (torn int64, err error) {
	_, statErr := a.root.get().Lstat(a.path)
	f, err := a.root.openFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, a.mode)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("not a regular file")
	}
	size := info.Size()
	if size > 0 {
		if a.framing == nil {
			size, err = lastLineEnd(f, size)
		} else {
			size, err = lastFrameEnd(a.framing, f, size)
		}
		if err != nil {
			return 0, err
		}
		if torn = info.Size() - size; torn > 0 {
			if err = f.Truncate(size); err != nil {
				return 0, err
			}
		}
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		if err = syncFolder(a.root.get(), filepath.Dir(a.path)); err != nil {
			return 0, err
		}
	}
	a.f, a.info, a.size, a.born = f, info, size, birthTime(f, info)
	a.generation, a.unsynced = generations.Add(1), false
	return torn, nil
}

// lastLineEnd finds where the last whole line ends. A file that does not begin as ours do is refused: cutting its
// "torn line" would destroy what somebody named by mistake.
func lastLineEnd(f *os.File, size int64) (int64, error) {
	if zeros(f, 0, size) {
		return 0, nil // What a power cut leaves of a file that was just begun.
	}
	var first [1]byte
	if _, err := f.ReadAt(first[:], 0); err != nil {
		return 0, err
	}
	if first[0] != '{' {
		return 0, fmt.Errorf("%w: it does not begin with '{'; move it away or choose another path", errNotOurs)
	}
	block := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(end-int64(len(block)), 0)
		n, err := f.ReadAt(block[:end-start], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// write appends whole lines, as one frame where there are frames: all or nothing. After errReplaced the file is closed and
// the lines are not where the path leads: open it and write them again.
func (a *activeFile) write(lines []byte, now time.Time) error {
	if a.framing != nil {
		lines = a.framing.frame(lines)
	}
	if err := a.room(int64(len(lines)), now); err != nil {
		return err
	}
	_, err := a.f.Write(lines)
	if err == nil && a.sync == SyncAlways {
		err = a.fsync()
	}
	if err != nil {
		cutErr := a.cut()
		if cutErr != nil || !diskFull(err) {
			_ = a.close() // The descriptor may be stale for good (NFS): the next write opens the file anew.
		}
		return errors.Join(err, cutErr)
	}
	a.size += int64(len(lines))
	a.unsynced = a.sync == SyncInterval
	return a.check(int64(len(lines)))
}

// cut takes the file back to its last whole line.
func (a *activeFile) cut() error {
	info, err := a.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > a.size { // A smaller one was truncated from outside: cutting would fill it up with zeros.
		return a.f.Truncate(a.size)
	}
	return nil
}

// check finds out, after the last n bytes were written, whether the path still leads to them. Asking afterwards, not
// before, leaves no moment in which a line goes into a file that nobody will find and is acknowledged all the same.
func (a *activeFile) check(n int64) error {
	info, err := a.root.get().Stat(a.path)
	if err == nil && os.SameFile(info, a.info) {
		if info.Size() >= a.size {
			return nil
		}
		// Truncated in place (logrotate's copytruncate). The lines now lack their definitions: take them out again.
		a.size = max(info.Size()-n, 0)
		return errors.Join(errReplaced, a.cut(), a.close())
	}
	switch {
	case !linked(a.f):
		return errors.Join(errReplaced, a.close())
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil // Where the path leads cannot be told now; the lines are written, and have a name.
	default:
		return a.close() // The lines are in the renamed file, and the next ones go into a new one.
	}
}

// room refuses to write below the free space that is to be left, before the disk is full. The file system is asked a few times a
// second at most, and whenever the last answer says no.
func (a *activeFile) room(n int64, now time.Time) error {
	if a.minFree <= 0 {
		return nil
	}
	if a.freeLeft < n || now.Sub(a.freeChecked) >= freeCheckInterval {
		free, err := freeBytes(a.f)
		if err != nil {
			return fmt.Errorf("free space at %s: %w", a.name(), err)
		}
		a.freeChecked, a.freeLeft = now, free-a.minFree
	}
	if a.freeLeft < n {
		return &lowDiskError{path: a.name(), free: a.freeLeft + a.minFree, minFree: a.minFree}
	}
	a.freeLeft -= n
	return nil
}

const freeCheckInterval = 250 * time.Millisecond

// flush brings to the disk what only the page cache has, where syncing goes by interval.
func (a *activeFile) flush() error {
	if a.f == nil || !a.unsynced {
		return nil
	}
	if err := a.fsync(); err != nil {
		return err
	}
	a.unsynced = false
	return nil
}

func (a *activeFile) fsync() error {
	a.syncs++
	return a.f.Sync()
}

// rename gives the file its final name, for good: the folder is synced, so that after a power cut there is neither an
// old nor a missing name. The caller then opens the next file; a record is never split between the two because only
// whole lines were written. Once it has its new name it is rotated, whatever else is reported.
func (a *activeFile) rename(to string) (renamed bool, err error) {
	if err := a.flush(); err != nil {
		return false, err
	}
	if err := a.root.get().Rename(a.path, to); err != nil {
		return false, err
	}
	return true, errors.Join(a.close(), syncFolder(a.root.get(), filepath.Dir(a.path)))
}

// close leaves the file. All that counts was written before; it is synced once more where syncing goes by interval.
func (a *activeFile) close() error {
	if a.f == nil {
		return nil
	}
	err := errors.Join(a.flush(), a.f.Close())
	a.f = nil
	return err
}

func syncFolder(root *os.Root, folder string) error {
	d, err := root.Open(folder)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || isInvalid(err) {
		err = nil // Some network file systems cannot sync a folder.
	}
	return errors.Join(err, d.Close())
}
