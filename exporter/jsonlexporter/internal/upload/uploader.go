// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package upload brings the closed files of an archive into an object store.
//
// The queue is the files themselves: memory holds only names, and what is not uploaded when the process ends is still there when
// the next one starts and names its files to Scan. What failed is tried again for ever; a file leaves the disk, where that is
// asked for, only after the object was verified.
package upload // import "github.com/lenscol/lenscol/exporter/jsonlexporter/internal/upload"

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/fileblob"  // file://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
	"gocloud.dev/gcp"
)

// Settings are what an Uploader is told beside its config. The funcs are called by several goroutines.
type Settings struct {
	Root   string // the archive's folder
	Logger *zap.Logger

	Uploaded func(bytes int64)              // a file is in the store, verified
	Deleted  func(path string, bytes int64) // a file was deleted after that
	Failed   func(error)                    // one try; the file is tried again
	Missed   func(path string)              // a file was gone before it was uploaded
}

// Uploader uploads files in the order in which they are named.
//
// A path is relative to the root, and its object's name is the same with slashes, below the URL's prefix.
type Uploader struct {
	cfg     Config
	set     Settings
	root    string // absolute
	dest    *store
	bucket  *blob.Bucket
	markers markers
	retry   retry

	wake   chan struct{} // holds one for each worker: something is in the queue
	stop   chan struct{} // closed: no further file
	ctx    context.Context
	cancel context.CancelFunc // of the uploads in flight
	done   chan struct{}      // closed when all workers have returned

	mu       sync.Mutex
	state    state
	known    map[string]struct{} // the files that wait or are being uploaded
	ready    []*job
	later    laterHeap // failed before, by the time when they are due
	failures int       // in a row, of the store
	paused   time.Time // nothing is tried before
	logged   time.Time // the last failure
	told     bool      // a failure was logged since the last upload
}

type state int

const (
	created state = iota
	running
	ended
)

// job is a file to upload.
type job struct {
	name  string
	tries int
	due   time.Time
}

// retry has the waits after failures: each file's own doubles up to file, and that of all files, while the store answers
// none of them, up to all. So a store that is away is asked a few times a minute, however many files wait, and one file
// that cannot be uploaded holds up the others for no longer than that.
type retry struct{ first, all, file time.Duration }

// wait returns the wait after so many failures, less up to a quarter, so that many collectors do not come back at once.
func (r retry) wait(failures int, limit time.Duration) time.Duration {
	d := min(r.first<<min(failures-1, 20), limit)
	return d - rand.N(d/4+1)
}

// New opens the store, which it does not yet ask anything: its errors are those of the config and the environment.
func New(cfg Config, set Settings) (*Uploader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	dest, err := parseStore(string(cfg.URL))
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(set.Root)
	if err != nil {
		return nil, err
	}
	if dest.url.Scheme == "file" {
		if err := outside(root, filepath.FromSlash(dest.url.Path)); err != nil {
			return nil, fmt.Errorf("url: open %s: %w", dest.name, err)
		}
	}
	bucket, err := dest.open(context.Background())
	if err != nil {
		return nil, fmt.Errorf("url: open %s: %w", dest.name, dest.clean(err))
	}
	return newUploader(cfg, set, root, dest, bucket), nil
}

func newUploader(cfg Config, set Settings, root string, dest *store, bucket *blob.Bucket) *Uploader {
	u := &Uploader{
		cfg: cfg, set: set, root: root, dest: dest, bucket: bucket,
		markers: newMarkers(dest),
		retry:   retry{first: time.Second, all: 30 * time.Second, file: 5 * time.Minute},
		wake:    make(chan struct{}, cfg.Concurrency),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		known:   map[string]struct{}{},
	}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	return u
}

// open opens a bucket by its URL. The driver of gs:// goes on without credentials where it finds none.
func (s *store) open(ctx context.Context) (*blob.Bucket, error) {
	if s.url.Scheme == "gs" && !s.url.Query().Has("anonymous") && os.Getenv("STORAGE_EMULATOR_HOST") == "" {
		if _, err := gcp.DefaultCredentials(ctx); err != nil {
			return nil, err
		}
	}
	return blob.DefaultURLMux().OpenBucketURL(ctx, s.url)
}

// outside refuses a folder in the archive: what is uploaded would be taken for a file of the archive, or for the very
// file that it is a copy of.
func outside(root, folder string) error {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return fmt.Errorf("%w; create it", err)
	}
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	if below, err := filepath.Rel(root, folder); err == nil && filepath.IsLocal(below) {
		return fmt.Errorf("it is in the archive %s itself; name another folder", root)
	}
	return nil
}

// Start begins to upload. The context is that of the start alone.
func (u *Uploader) Start(context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state != created {
		return errors.New("upload: was started before")
	}
	u.state = running
	go func() {
		defer close(u.done)
		u.sweep()
		var workers sync.WaitGroup
		for range u.cfg.Concurrency {
			workers.Go(u.work)
		}
		workers.Wait()
	}()
	return nil
}

// Scan names the files that an earlier run closed, oldest first; those that are not uploaded yet go before all others.
func (u *Uploader) Scan(paths []string) { u.add(u.below(paths), true) }

// Add names a file that was closed: nobody writes to it any more. It never blocks.
func (u *Uploader) Add(path string) { u.add(u.below([]string{path}), false) }

// Forget says that a file was removed, so that nothing about it is kept. It never waits for the store.
func (u *Uploader) Forget(path string) error {
	root, err := os.OpenRoot(u.root)
	if err != nil {
		return err
	}
	defer root.Close()
	return u.markers.remove(root, filepath.ToSlash(path))
}

// Waiting is how many files wait or are being uploaded.
func (u *Uploader) Waiting() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.known)
}

// Shutdown lets the uploads in flight end, for as long as the context allows and ten seconds at most, and cuts off the
// rest. What was not uploaded is for the next run.
func (u *Uploader) Shutdown(ctx context.Context) error {
	u.mu.Lock()
	before := u.state
	u.state = ended
	u.mu.Unlock()
	switch before {
	case ended:
		return nil
	case created:
		close(u.done)
	}
	close(u.stop)
	defer u.cancel()
	if !u.wait(ctx) {
		u.cancel()
		if !u.wait(context.Background()) {
			return fmt.Errorf("upload to %s: it does not end", u.dest.name)
		}
	}
	return u.dest.clean(u.bucket.Close())
}

const grace = 10 * time.Second

func (u *Uploader) wait(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	select {
	case <-u.done:
		return true
	case <-ctx.Done():
		return false
	}
}

func (u *Uploader) sweep() {
	root, err := os.OpenRoot(u.root)
	if err == nil {
		err = errors.Join(u.markers.sweep(u.ctx, root), root.Close())
	}
	if err != nil && u.ctx.Err() == nil {
		u.set.Logger.Warn("markers of files that are gone were not all removed", zap.String("root", u.root), zap.Error(err))
	}
}

// below leaves out paths that lead out of the archive, aloud.
func (u *Uploader) below(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		if filepath.IsLocal(p) {
			return false
		}
		err := fmt.Errorf("upload %q: not a path below the archive's root", p)
		u.set.Logger.Error("a file is not uploaded", zap.Error(err))
		u.set.Failed(err)
		return true
	})
}

func (u *Uploader) add(paths []string, first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state == ended {
		return
	}
	jobs := make([]*job, 0, len(paths))
	for _, p := range paths {
		name := filepath.ToSlash(filepath.Clean(p))
		if _, ok := u.known[name]; ok {
			continue
		}
		u.known[name] = struct{}{}
		jobs = append(jobs, &job{name: name})
	}
	if first {
		u.ready = append(jobs, u.ready...)
	} else {
		u.ready = append(u.ready, jobs...)
	}
	u.signal(len(jobs))
}

// signal wakes up to n idle workers. Where as many wakes are pending as there are workers, each of them will look.
func (u *Uploader) signal(n int) {
	for range min(n, cap(u.wake)) {
		select {
		case u.wake <- struct{}{}:
		default:
		}
	}
}

func (u *Uploader) work() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-u.stop:
			return
		default:
		}
		j, wait := u.next(time.Now())
		if j != nil {
			u.settle(j, u.send(u.ctx, j.name))
			continue
		}
		timer.Reset(wait)
		select {
		case <-u.stop:
			return
		case <-u.wake:
		case <-timer.C:
		}
	}
}

// next takes the first file, or says how long there is nothing to do.
func (u *Uploader) next(now time.Time) (*job, time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if pause := u.paused.Sub(now); pause > 0 {
		return nil, pause
	}
	for len(u.later) > 0 && !u.later[0].due.After(now) {
		u.ready = append(u.ready, heap.Pop(&u.later).(*job))
	}
	if len(u.ready) > 0 {
		j := u.ready[0]
		u.ready[0] = nil
		u.ready = u.ready[1:]
		return j, 0
	}
	if len(u.later) > 0 {
		return nil, u.later[0].due.Sub(now)
	}
	return nil, time.Hour
}

// settle ends a try.
func (u *Uploader) settle(j *job, err error) {
	if u.ctx.Err() != nil {
		return // Cut off by Shutdown.
	}
	if errors.Is(err, errMissed) {
		u.forget(j)
		u.set.Logger.Warn("a file is not uploaded", u.fields(j.name, err)...)
		u.set.Missed(filepath.FromSlash(j.name))
		return
	}
	if err == nil {
		u.forget(j)
		return
	}
	var local *localError
	now := time.Now()
	u.mu.Lock()
	j.tries++
	j.due = now.Add(u.retry.wait(j.tries, u.retry.file))
	heap.Push(&u.later, j)
	if !errors.As(err, &local) {
		u.failures++
		u.paused = now.Add(u.retry.wait(u.failures, u.retry.all))
	}
	tell := u.logged.IsZero() || now.Sub(u.logged) >= time.Minute
	if tell {
		u.logged, u.told = now, true
	}
	waiting := len(u.known)
	u.signal(1) // Whoever is idle learns when the file is due: this worker may take a long one next.
	u.mu.Unlock()
	u.set.Failed(err)
	if tell {
		u.set.Logger.Warn("upload did not work; it is tried again", append(u.fields(j.name, err), zap.Int("waiting", waiting))...)
	}
}

func (u *Uploader) forget(j *job) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.known, j.name)
}

// answered ends a row of failures: the store took a file.
func (u *Uploader) answered() {
	u.mu.Lock()
	was, told := u.failures > 0, u.told
	u.failures, u.paused, u.told = 0, time.Time{}, false
	if was {
		u.signal(u.cfg.Concurrency)
	}
	u.mu.Unlock()
	if told {
		u.set.Logger.Info("uploading again", zap.String("to", u.dest.name))
	}
}

func (u *Uploader) fields(name string, err error) []zap.Field {
	return []zap.Field{zap.String("file", filepath.Join(u.root, filepath.FromSlash(name))), zap.String("to", u.dest.name), zap.Error(err)}
}

// laterHeap has the file that is due first on top.
type laterHeap []*job

func (h laterHeap) Len() int           { return len(h) }
func (h laterHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h laterHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laterHeap) Push(j any)        { *h = append(*h, j.(*job)) }
func (h *laterHeap) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return j
}
