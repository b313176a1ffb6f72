// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

var errClosed = errors.New("the file is closed: the exporter is shutting down")

// writer commits requests to one path in groups: it takes all that is encoded, writes it in one call, syncs where that
// is asked for, and then answers every request in it. What arrives meanwhile is the next group, so the more
// requests come at once, the fewer writes they cost, and a lone request never waits.
type writer struct {
	settings writerSettings
	layout   layout
	lock     *fileLock

	mu      sync.Mutex
	pending []*chunk
	closed  bool

	wake    chan struct{} // holds one: something is pending, or the writer is closed
	stopped chan struct{} // closed when the last group is answered and the file is left

	closeErr error // of leaving the file, once stopped is closed

	// What follows is the writer goroutine's alone.
	file     activeFile
	backups  backups
	out      []byte      // definitions and lines of the requests in queue, not yet written
	queue    []*chunk    // the requests that are answered once out is written
	defined  []*scope    // whose definitions are in out
	failing  error       // the last write's
	lastTime time.Time   // of the last group
	lastSync time.Time   // by interval
	timer    *time.Timer // wakes the writer where no request does
}

type writerSettings struct {
	path          string // absolute
	sync          SyncMode
	syncInterval  time.Duration
	flushInterval time.Duration
	rotation      RotationConfig
	minFree       int64
	fileMode      FileMode
	logger        *zap.Logger
	now           func() time.Time
	cutTorn       func(bytes int64)
	replaced      func()
	status        func(error) // told on every change between failing and writing
}

// startWriter locks and opens the path and starts the goroutine that writes to it.
func startWriter(set writerSettings, l layout) (*writer, error) {
	lock, err := lockFile(set.path)
	if err != nil {
		return nil, err
	}
	if lock.unsupported != nil {
		set.logger.Warn("this file system has no locks: a second process writing to the same file would not be noticed",
			zap.String("path", set.path), zap.Error(lock.unsupported))
	}
	w := &writer{
		settings: set,
		layout:   l,
		lock:     lock,
		wake:     make(chan struct{}, 1),
		stopped:  make(chan struct{}),
		file:     activeFile{path: set.path, mode: set.fileMode.mode(), sync: set.sync, minFree: int64(set.minFree)},
		timer:    time.NewTimer(time.Hour),
	}
	if err := w.ready(); err != nil {
		return nil, errors.Join(err, lock.unlock())
	}
	if w.backups, err = findBackups(set.path); err != nil {
		return nil, errors.Join(err, w.file.close(), lock.unlock())
	}
	go w.run()
	return w, nil
}

// commit hands a chunk to the writer and waits until its bytes are written. It returns the writer's error, after which
// none of the chunk's records counts as written, or the context's: then they may be written all the same.
func (w *writer) commit(ctx context.Context, c *chunk) error {
	c.done = make(chan error, 1) // The writer never waits for a request that gave up.
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		c.release()
		return errClosed
	}
	w.pending = append(w.pending, c)
	w.mu.Unlock()
	w.signal()

	select {
	case err := <-c.done:
		c.release()
		return err
	case <-ctx.Done():
		return fmt.Errorf("write %s: %w", w.settings.path, ctx.Err()) // The writer still has the chunk.
	}
}

// close writes what is pending, answers it, and leaves the file. It is safe to call twice.
func (w *writer) close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	select {
	case <-w.stopped:
		return w.closeErr
	case <-ctx.Done():
		return fmt.Errorf("close %s: %w", w.settings.path, ctx.Err())
	}
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *writer) run() {
	defer close(w.stopped)
	defer w.timer.Stop()
	for {
		w.timer.Reset(w.untilDue())
		select {
		case <-w.wake:
		case <-w.timer.C:
			w.tend()
			continue
		}
		w.letGrow()
		group, closed := w.take()
		w.write(group)
		if closed {
			w.closeErr = errors.Join(w.file.close(), w.lock.unlock())
			return
		}
		w.tend()
	}
}

// letGrow waits, where a flush interval is set, until it has passed since the last group. A file that was idle for that
// long is written at once.
func (w *writer) letGrow() {
	for {
		wait := w.settings.flushInterval - w.settings.now().Sub(w.lastTime)
		w.mu.Lock()
		closed := w.closed
		w.mu.Unlock()
		if wait <= 0 || closed {
			return
		}
		w.timer.Reset(wait)
		select {
		case <-w.timer.C:
			return
		case <-w.wake: // More came, or the writer was closed.
		}
	}
}

// take empties pending. After it said closed, nothing more can come.
func (w *writer) take() (group []*chunk, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	group, w.pending = w.pending, nil
	return group, w.closed
}

// write writes a group and answers every request in it.
func (w *writer) write(group []*chunk) {
	for _, c := range group {
		if err := w.place(c); err != nil {
			w.report(err)
			c.done <- err
			continue
		}
		w.queue = append(w.queue, c)
	}
	_ = w.flush() // The requests in the queue have its error.
	w.lastTime = w.settings.now()
}

// place appends a chunk to what is to be written. It is kept whole: it goes into the next file where this one has no room
// for it, and only a chunk that is larger than a file may be is split, between its lines. A line that is larger gets a
// file of its own.
func (w *writer) place(c *chunk) error {
	limit := int64(w.settings.rotation.MaxBytes)
	if limit <= 0 || c.alone() <= limit {
		if err := w.makeRoom(c.parts, len(c.buf)); err != nil {
			return err
		}
		start := 0
		for _, p := range c.parts {
			w.define(p.scope)
			w.out = append(w.out, c.buf[start:p.end]...)
			start = p.end
		}
		return nil
	}
	start := 0
	for i, p := range c.parts {
		for start < p.end {
			end := start + bytes.IndexByte(c.buf[start:p.end], '\n') + 1
			if err := w.makeRoom(c.parts[i:i+1], end-start); err != nil {
				return err
			}
			w.define(p.scope)
			w.out = append(w.out, c.buf[start:end]...)
			start = end
		}
	}
	return nil
}

// makeRoom leaves a file that is open and, unless it is empty, has room for n bytes and the definitions of their parts.
func (w *writer) makeRoom(parts []part, n int) error {
	if err := w.ready(); err != nil {
		return err
	}
	limit := int64(w.settings.rotation.MaxBytes)
	for _, p := range parts {
		n += w.definitionBytes(p.scope)
	}
	if limit <= 0 || w.empty() || w.file.size+int64(len(w.out)+n) <= limit {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.rotate()
	return w.ready()
}

// empty tells whether a rotation would leave an empty file behind.
func (w *writer) empty() bool { return w.file.size+int64(len(w.out)) == 0 }

// definitionBytes is how long the lines are that a scope needs and the file lacks.
func (w *writer) definitionBytes(s *scope) int {
	if s == nil || s.definedIn == w.file.generation {
		return 0
	}
	return s.definitionBytes()
}

// define puts a scope's line, and its resource's, before their first use in the file.
func (w *writer) define(s *scope) {
	generation := w.file.generation
	if s == nil || s.line == nil || s.definedIn == generation {
		return
	}
	if s.resource.definedIn != generation {
		w.out = append(w.out, s.resource.line...)
		s.resource.definedIn = generation
	}
	w.out = append(w.out, s.line...)
	s.definedIn = generation
	w.defined = append(w.defined, s)
}

// flush writes what was placed and answers the requests in the queue. Where the path turns out not to lead to the file any more, their
// lines went nowhere: they get errReplaced, which is retryable, and come again into the file that takes its place.
func (w *writer) flush() error {
	var err error
	if len(w.out) > 0 {
		if err = w.ready(); err == nil {
			err = w.file.write(w.out, w.settings.now())
		}
	}
	if err != nil {
		for _, s := range w.defined {
			s.definedIn, s.resource.definedIn = 0, 0
		}
	}
	w.report(err)
	for _, c := range w.queue {
		c.done <- err
	}
	clear(w.queue)
	clear(w.defined)
	w.queue, w.defined, w.out = w.queue[:0], w.defined[:0], w.out[:0]
	if cap(w.out) > maxPooledBytes {
		w.out = nil
	}
	return err
}

// report tells the first failure of a row, and the first write after it.
func (w *writer) report(err error) {
	path := zap.String("path", w.settings.path)
	switch {
	case errors.Is(err, errReplaced):
		w.settings.replaced()
		w.settings.logger.Warn("the file was removed or truncated from outside; going on in a new one", path)
	case err != nil && w.failing == nil:
		w.settings.logger.Error("writing stopped; requests are refused as retryable until it works again", path, zap.Error(err))
		w.settings.status(err)
		w.failing = err
	case err == nil && w.failing != nil:
		w.settings.logger.Info("writing again", path)
		w.settings.status(nil)
		w.failing = nil
	}
}

// ready opens the file where it is not open: after it was rotated, lost, or renamed from outside.
func (w *writer) ready() error {
	if w.file.f != nil {
		return nil
	}
	torn, err := w.file.open()
	if torn > 0 {
		w.settings.cutTorn(torn)
		w.settings.logger.Warn("cut off the torn last line that an unclean stop left; it was never acknowledged",
			zap.String("path", w.settings.path), zap.Int64("bytes", torn))
	}
	return err
}

// rotate ends the file, whose lines are all written, under a name of its own. Where that does not work the lines go on
// into the same file, beyond its limit: a file that is too large is better than a lost record.
func (w *writer) rotate() {
	name := w.backups.next(w.settings.now())
	if err := w.file.rename(name); err != nil {
		w.settings.logger.Error("rotation did not work; writing on into the same file", zap.String("path", w.settings.path), zap.Error(err))
		return
	}
	w.backups.add(name)
	w.backups.prune(w.settings.rotation.MaxBackups, w.settings.logger)
}

// tend does what is due by the clock: sync, and rotation by age.
func (w *writer) tend() {
	now := w.settings.now()
	if w.file.unsynced && now.Sub(w.lastSync) >= w.settings.syncInterval {
		w.lastSync = now
		if err := w.file.flush(); err != nil {
			w.report(fmt.Errorf("sync %s: %w", w.settings.path, err))
		}
	}
	if age := w.settings.rotation.MaxAge; age > 0 && w.file.f != nil && w.file.size > 0 && now.Sub(w.file.born) >= age {
		w.rotate()
	}
}

// untilDue is how long until tend has something to do, if no request comes.
func (w *writer) untilDue() time.Duration {
	due, now := time.Hour, w.settings.now()
	if w.file.unsynced {
		due = min(due, w.settings.syncInterval-now.Sub(w.lastSync))
	}
	if age := w.settings.rotation.MaxAge; age > 0 && w.file.f != nil && w.file.size > 0 {
		due = min(due, age-now.Sub(w.file.born))
	}
	return max(due, 10*time.Millisecond)
}
