// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
)

var errClosed = errors.New("the file is closed: the exporter is shutting down")

// writer commits requests to one path in groups: it takes all that is encoded, writes it in one call, syncs where that
// is asked for, and then answers every request in it. What arrives meanwhile is the next group, so the more
// requests come at once, the fewer writes they cost, and a lone request never waits.
type writer struct {
	settings writerSettings
	layout   layout
	lock     *fileLock

	mu           sync.Mutex
	pending      []*chunk
	pendingBytes int
	closed       bool

	wake    chan struct{} // holds one: something is pending, or the writer is closed
	stopped chan struct{} // closed when the last group is answered and the file is left

	closeErr error // of leaving the file, once stopped is closed

	// What follows is the writer goroutine's alone.
	file     activeFile
	out      []byte    // definitions and lines of the requests in queue, not yet written
	queue    []*chunk  // the requests that are answered once out is written
	defined  []*scope  // whose definitions are in out
	failing  error     // the last write's
	lastTime time.Time // of the last group
	lastSync time.Time // by interval
	// rotateAfter is when a rotation that did not work is tried again.
	rotateAfter time.Time
	timer       *time.Timer // wakes the writer where no request does
}

type writerSettings struct {
	root          *rootFolder
	path          string  // below root
	framing       framing // nil for plain lines
	index         *index
	sync          SyncMode
	syncInterval  time.Duration
	flushInterval time.Duration
	rotation      RotationConfig
	minFree       int64
	fileMode      FileMode
	logger        *zap.Logger
	telemetry     *metadata.TelemetryBuilder
	now           func() time.Time
	status        func(error)       // told on every change between failing and writing
	rotated       func(path string) // told of a file that was ended
	pruned        func([]string)    // told of files that were removed
	grown         func(total int64) // told how large the archive is now
}

// startWriter locks and opens the path and starts the goroutine that writes to it.
func startWriter(set writerSettings, l layout) (*writer, error) {
	lock, err := lockFile(set.root, set.path)
	if err != nil {
		return nil, err
	}
	if lock.unsupported != nil {
		set.logger.Warn("this file system has no locks: a second process writing to the same file would not be noticed",
			zap.String("path", set.root.name(set.path)), zap.Error(lock.unsupported))
	}
	w := &writer{
		settings: set,
		layout:   l,
		lock:     lock,
		wake:     make(chan struct{}, 1),
		stopped:  make(chan struct{}),
		file:     activeFile{root: set.root, path: set.path, mode: set.fileMode.mode(), sync: set.sync, minFree: set.minFree, framing: set.framing},
		timer:    time.NewTimer(time.Hour),
	}
	if err := w.ready(); err != nil {
		return nil, errors.Join(err, lock.unlock())
	}
	go w.run()
	return w, nil
}

// submit hands a chunk to the writer; await has its answer.
func (w *writer) submit(c *chunk) {
	c.done = make(chan error, 1) // The writer never waits for a request that gave up.
	w.mu.Lock()
	closed := w.closed
	if !closed {
		w.pending = append(w.pending, c)
		w.pendingBytes += len(c.buf)
	}
	w.mu.Unlock()
	if closed {
		c.done <- errClosed
		return
	}
	w.signal()
}

// await returns when the bytes of a chunk are written. It returns the writer's error, after which none of the chunk's
// records counts as written, or the context's: then they may be written all the same.
func (w *writer) await(ctx context.Context, c *chunk) error {
	select {
	case err := <-c.done:
		c.release()
		return err
	case <-ctx.Done():
		w.withdraw(c)
		return fmt.Errorf("write %s: %w", w.name(), ctx.Err())
	}
}

// withdraw takes back a chunk that the writer has not begun with, so that tries which gave up do not gather behind a disk that
// hangs. What it has begun with may be written all the same.
func (w *writer) withdraw(c *chunk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.pending, c); i >= 0 {
		w.pending = slices.Delete(w.pending, i, i+1)
		w.pendingBytes -= len(c.buf)
		c.release()
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
		return fmt.Errorf("close %s: %w", w.name(), ctx.Err())
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
			w.settings.index.left(w.settings.path, w.lastWrite())
			return
		}
		w.tend()
	}
}

// lastWrite is when the file was written last, by this writer or before it.
func (w *writer) lastWrite() time.Time {
	if w.lastTime.IsZero() && w.file.info != nil {
		return w.file.info.ModTime()
	}
	return w.lastTime
}

// letGrow waits, where a flush interval is set, until it has passed since the last group, or until there is so much to
// write that more would gain nothing. A file that was idle for that long is written at once.
func (w *writer) letGrow() {
	for {
		wait := w.settings.flushInterval - w.settings.now().Sub(w.lastTime)
		w.mu.Lock()
		enough := w.closed || w.pendingBytes >= fullGroup
		w.mu.Unlock()
		if wait <= 0 || enough {
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

// fullGroup is the bytes of lines from which a larger frame is hardly smaller in all (BenchmarkFlushInterval).
const fullGroup = 64 << 10

// take empties pending. After it said closed, nothing more can come.
func (w *writer) take() (group []*chunk, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	group, w.pending, w.pendingBytes = w.pending, nil, 0
	return group, w.closed
}

// write writes a group and answers every request in it.
func (w *writer) write(group []*chunk) {
	if len(group) > 0 {
		w.lastTime = w.settings.now()
		w.rotateIfDue(w.lastTime)
	}
	for _, c := range group {
		if err := w.place(c); err != nil {
			if !errors.Is(err, errReplaced) { // flush has reported that one.
				w.report(err)
			}
			c.done <- err
			continue
		}
		w.queue = append(w.queue, c)
	}
	_ = w.flush() // The requests in the queue have its error.
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
			err = w.writeOut()
		}
		w.report(err)
	}
	if err != nil {
		for _, s := range w.defined {
			s.definedIn, s.resource.definedIn = 0, 0
		}
	}
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

func (w *writer) writeOut() error {
	begin, before := time.Now(), w.file.size
	err := w.file.write(w.out, w.settings.now())
	w.settings.telemetry.ExporterJsonlFlushDuration.Record(context.Background(), time.Since(begin).Seconds())
	if err == nil {
		w.settings.telemetry.ExporterJsonlWrittenBytes.Add(context.Background(), w.file.size-before)
		w.settings.grown(w.settings.index.grown(w.settings.path, w.file.size))
	}
	return err
}

// name is the path for people.
func (w *writer) name() string { return w.settings.root.name(w.settings.path) }

// report tells the first failure of a row, and the first write after it.
func (w *writer) report(err error) {
	path := zap.String("path", w.name())
	switch {
	case errors.Is(err, errReplaced):
		w.settings.telemetry.ExporterJsonlFilesReplaced.Add(context.Background(), 1)
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
	if held, err := w.lock.held(); err == nil && !held { // Somebody removed the lock, perhaps with its folder.
		lock, err := lockFile(w.settings.root, w.settings.path)
		if err != nil {
			return err
		}
		_ = w.lock.unlock() // It locks nothing any more.
		w.lock = lock
	}
	torn, err := w.file.open()
	if errors.Is(err, errDamaged) {
		w.settings.logger.Error("set a damaged file aside under the name of a rotated one, and began a new one", zap.Error(err))
		if err = w.setAside(); err == nil {
			torn, err = w.file.open()
		}
	}
	if err != nil {
		return err
	}
	w.settings.index.opened(w.settings.path, w.file.size)
	if w.file.size == 0 {
		w.file.born = w.settings.now() // The file system's clock may be another one, a file server's for example.
	}
	if torn > 0 {
		w.settings.telemetry.ExporterJsonlTornBytes.Add(context.Background(), torn)
		w.settings.logger.Warn("cut off the torn end that an unclean stop left; it was never acknowledged",
			zap.String("path", w.name()), zap.Int64("bytes", torn))
	}
	return nil
}

// backup is the name for the file if it is ended now.
func (w *writer) backup() (string, time.Time) {
	s := w.settings
	return backupName(s.root.get(), s.path, s.index.lastBackup(s.path), s.now())
}

func (w *writer) setAside() error {
	name, at := w.backup()
	if err := w.settings.root.get().Rename(w.settings.path, name); err != nil {
		return err
	}
	w.settings.index.rotated(w.settings.path, name, at)
	w.settings.rotated(name)
	return nil
}

// rotate ends the file, whose lines are all written, under a name of its own. Where that does not work the lines go on
// into the same file, beyond its limit: a file that is too large is better than a lost record.
func (w *writer) rotate() {
	s := w.settings
	if s.now().Before(w.rotateAfter) {
		return
	}
	name, at := w.backup()
	renamed, err := w.file.rename(name)
	switch {
	case !renamed && errors.Is(err, fs.ErrNotExist):
		_ = w.file.close() // It was removed from outside; the next record begins a new one.
		return
	case !renamed:
		s.logger.Error("rotation did not work; writing on into the same file, and trying again in a minute", zap.String("path", w.name()), zap.Error(err))
		w.rotateAfter = s.now().Add(time.Minute)
		return
	case err != nil:
		s.logger.Warn("a rotated file may not be on the disk yet", zap.String("path", w.name()), zap.Error(err))
	}
	s.index.rotated(s.path, name, at)
	s.rotated(name)
	if keep := s.rotation.MaxBackups; keep > 0 {
		removed, err := s.index.pruneBackups(s.root, s.path, keep)
		s.pruned(removed)
		if err != nil {
			s.logger.Warn("pruning did not work; it is tried again at the next rotation", zap.String("path", w.name()), zap.Error(err))
		}
	}
}

// rotateIfDue ends a file that holds lines by its age, or by the wall clock.
func (w *writer) rotateIfDue(now time.Time) {
	if w.file.f != nil && w.file.size > 0 && w.settings.rotation.due(w.file.born, now) {
		w.rotate()
	}
}

// tend does what is due by the clock: sync, and rotation by age.
func (w *writer) tend() {
	now := w.settings.now()
	if w.file.unsynced && now.Sub(w.lastSync) >= w.settings.syncInterval {
		w.lastSync = now
		begin := time.Now()
		if err := w.file.flush(); err != nil {
			w.report(fmt.Errorf("sync %s: %w", w.name(), err))
		}
		w.settings.telemetry.ExporterJsonlSyncDuration.Record(context.Background(), time.Since(begin).Seconds())
	}
	w.rotateIfDue(now)
}

// untilDue is how long until tend has something to do, if no request comes.
func (w *writer) untilDue() time.Duration {
	due, now := time.Hour, w.settings.now()
	if w.file.unsynced {
		due = min(due, w.settings.syncInterval-now.Sub(w.lastSync))
	}
	if w.file.f != nil && w.file.size > 0 {
		due = min(due, max(w.settings.rotation.untilDue(w.file.born, now), w.rotateAfter.Sub(now)))
	}
	return max(due, 10*time.Millisecond)
}
