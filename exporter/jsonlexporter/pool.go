// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/upload"
)

// pool holds the open files of one exporter, for all three signals: a path without {signal} takes all of them.
//
// Every path has one writer while it is open. A request holds the writers that it needs until they have answered, so a file
// that is closed to make room for another has nothing pending; one that is needed again is opened anew, appending.
type pool struct {
	cfg       *Config
	template  *pathTemplate
	root      *rootFolder
	index     *index
	upload    *upload.Uploader // nil where nothing is uploaded
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	now       func() time.Time

	mu      sync.Mutex
	idle    *sync.Cond         // a writer was given back
	writers map[string]*pooled // by path below the root
	uses    int64              // counts, to find the writer that was not used for longest
	closed  bool

	keysMu sync.Mutex
	keys   map[string]struct{} // partitions that there are, at most max_partitions

	statusMu sync.Mutex
	failing  map[string]error // the paths that cannot be written now
	hosts    map[*jsonlExporter]component.Host

	janitor chan struct{} // holds one: look at the bounds
	stop    chan struct{}
	stopped chan struct{}
}

// pooled is a writer and who uses it.
type pooled struct {
	*writer
	users    int
	lastUsed int64 // counts
	usedAt   time.Time
}

var (
	errBusy     = errors.New("no room for another open file")
	errAllInUse = errors.New("all of max_open_files are in use")
)

var (
	poolsMu sync.Mutex
	pools   = map[*Config]*pool{}
)

// acquirePool returns the pool of an exporter, made by the first signal that asks for it. A path that does not depend on what is
// written is opened at once, so that what is wrong with it ends the start.
func acquirePool(e *jsonlExporter, host component.Host) (*pool, error) {
	poolsMu.Lock()
	defer poolsMu.Unlock()
	p, ok := pools[e.cfg]
	if !ok {
		var err error
		if p, err = newPool(e); err != nil {
			return nil, err
		}
		pools[e.cfg] = p
	}
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	p.hosts[e] = host
	for _, err := range p.failing {
		componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(err))
		break
	}
	return p, nil
}

func newPool(e *jsonlExporter) (*pool, error) {
	template, err := e.cfg.template()
	if err != nil {
		return nil, err
	}
	root, err := openRoot(template.root, e.cfg.CreateDirectory, e.cfg.DirectoryMode.mode())
	if err != nil {
		return nil, err
	}
	p := &pool{
		cfg: e.cfg, template: template, root: root, logger: e.logger, telemetry: e.telemetry, now: e.now,
		writers: map[string]*pooled{}, keys: map[string]struct{}{}, failing: map[string]error{}, hosts: map[*jsonlExporter]component.Host{},
		janitor: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	p.idle = sync.NewCond(&p.mu)
	if p.index, err = acquireIndex(root, template); err != nil {
		return nil, errors.Join(err, root.close())
	}
	if template.partitioned() {
		if template.foldsCase, err = probe(root); err != nil {
			p.index.release()
			return nil, errors.Join(err, root.close())
		}
		for _, path := range p.index.paths() {
			key, ours := template.keyOf(path) // Other exporters' files are in the index too.
			if ours && !strings.Contains(key, overflowValue) && len(p.keys) < e.cfg.MaxPartitions {
				p.keys[key] = struct{}{}
			}
		}
	}
	if err := p.startUpload(); err != nil {
		p.index.release()
		return nil, errors.Join(err, root.close())
	}
	go p.clean()
	return p, nil
}

// forgetKey makes room for another partition where the last file of one is gone.
func (p *pool) forgetKey(path string) {
	active, _, rotated := splitBackup(path)
	if !rotated {
		active = path
	}
	if key, ours := p.template.keyOf(active); ours && !p.index.holds(active) {
		p.keysMu.Lock()
		delete(p.keys, key)
		p.keysMu.Unlock()
	}
}

// startUpload begins with what an earlier run ended and did not upload. Only rotated files are uploaded: an active one may be
// opened again.
func (p *pool) startUpload() error {
	if p.cfg.Upload.URL == "" {
		return nil
	}
	count, ctx := p.telemetry, context.Background()
	var err error
	p.upload, err = upload.New(p.cfg.Upload, upload.Settings{
		Root:   p.root.path,
		Logger: p.logger,
		Uploaded: func(bytes int64) {
			count.ExporterJsonlUploadedFiles.Add(ctx, 1)
			count.ExporterJsonlUploadedBytes.Add(ctx, bytes)
		},
		Deleted: func(path string, _ int64) {
			p.index.gone(path)
			p.forgetKey(path)
		},
		Failed: func(error) { count.ExporterJsonlUploadFailures.Add(ctx, 1) },
		Missed: func(string) { count.ExporterJsonlUploadsMissed.Add(ctx, 1) },
	})
	if err != nil {
		return err
	}
	p.upload.Scan(p.index.rotatedFiles(p.template))
	return p.upload.Start(ctx)
}

// probe finds out at start whether files can be made below the root, and whether the case of their names says nothing there.
func probe(root *rootFolder) (foldsCase bool, err error) {
	name := fmt.Sprintf(".probe-%d", os.Getpid())
	f, err := root.get().OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return false, fmt.Errorf("write below %s: %w", root.path, err)
	}
	_, otherErr := root.get().Lstat(strings.ToUpper(name))
	err = root.get().Remove(name)
	if errors.Is(err, os.ErrNotExist) {
		err = nil // Another process of the same pid was as fast: containers often have pid 1.
	}
	return otherErr == nil, errors.Join(f.Close(), err)
}

// route returns the path for a resource, and whether it is the one for all that is beyond the bound of partitions.
func (p *pool) route(r *rendered, signal string, attrs pcommon.Map) (path string, overflow bool) {
	now := p.now()
	p.template.render(r, signal, attrs, now)
	p.keysMu.Lock()
	defer p.keysMu.Unlock()
	if _, ok := p.keys[string(r.key)]; !ok {
		if len(p.keys) >= p.cfg.MaxPartitions {
			return p.template.overflow(signal, now), true
		}
		p.keys[string(r.key)] = struct{}{}
	}
	return string(r.path), false
}

// acquire returns the writer of a path, opened if need be. Where as many files are open as may be and all are in use, it
// waits until the context ends, or returns errBusy: who holds a writer must not wait for another. Files whose path does not
// depend on what is written are few, and always open.
func (p *pool) acquire(ctx context.Context, path string, wait bool) (_ *pooled, err error) {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle.Broadcast()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if err != nil && !errors.Is(err, errBusy) {
			p.idle.Broadcast() // The room that was made is somebody else's now.
		}
	}()
	for {
		if p.closed {
			return nil, errClosed
		}
		if w, ok := p.writers[path]; ok {
			w.users++
			return w, nil
		}
		if len(p.writers) < p.cfg.MaxOpenFiles || !p.template.partitioned() || p.evict() {
			break
		}
		if !wait {
			return nil, errBusy
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("open %s: %w: %w", p.root.name(path), errAllInUse, err)
		}
		p.idle.Wait()
	}
	w := &pooled{users: 1}
	set, err := p.writerSettings(path)
	if err != nil {
		return nil, err
	}
	w.writer, err = startWriter(set, p.cfg.newLayout())
	p.report("", err) // Of all paths together: one that is not asked for again would never be well.
	if err != nil {
		return nil, err
	}
	p.writers[path] = w
	p.telemetry.ExporterJsonlOpenFiles.Record(context.Background(), int64(len(p.writers)))
	return w, nil
}

// evict closes the writer that nobody uses and that was not used for longest, and tells whether there was one.
func (p *pool) evict() bool {
	var path string
	for candidate, w := range p.writers {
		if w.users == 0 && (path == "" || w.lastUsed < p.writers[path].lastUsed) {
			path = candidate
		}
	}
	if path == "" {
		return false
	}
	p.closeIdle(path)
	return true
}

// closeIdle closes a writer that nobody uses. Nothing is pending, so what goes wrong costs no record, nor the request that
// needs the room.
func (p *pool) closeIdle(path string) {
	w := p.writers[path]
	delete(p.writers, path)
	p.telemetry.ExporterJsonlOpenFiles.Record(context.Background(), int64(len(p.writers)))
	if err := w.close(context.Background()); err != nil {
		p.logger.Warn("a file did not close as it should", zap.String("path", p.root.name(path)), zap.Error(err))
	}
	p.report(path, nil)
}

// giveBack ends the use of a writer.
func (p *pool) giveBack(w *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses++
	w.users--
	w.lastUsed, w.usedAt = p.uses, p.now()
	p.idle.Signal()
}

func (p *pool) writerSettings(path string) (writerSettings, error) {
	frames, err := newFraming(p.cfg.Compression, p.cfg.CompressionLevel)
	if err != nil {
		return writerSettings{}, err
	}
	rotation := p.cfg.Rotation
	if most := p.cfg.Retention.MaxTotalBytes; most > 0 {
		// A file that is being written cannot be removed: it is ended early enough for the rest to fit.
		if part := max(most/8, 1); rotation.MaxBytes == 0 || rotation.MaxBytes > part {
			rotation.MaxBytes = part
		}
	}
	return writerSettings{
		root: p.root, path: path, framing: frames, index: p.index, sync: p.cfg.Sync, syncInterval: p.cfg.SyncInterval,
		flushInterval: p.cfg.flushInterval(), rotation: rotation, minFree: int64(p.cfg.MinFreeBytes), fileMode: p.cfg.FileMode,
		logger: p.logger, now: p.now, telemetry: p.telemetry,
		status:  func(err error) { p.report(path, err) },
		rotated: p.rotated,
		pruned:  p.pruned,
		grown: func(total int64) {
			if most := int64(p.cfg.Retention.MaxTotalBytes); most > 0 && total > most {
				p.wakeJanitor()
			}
		},
	}, nil
}

// report tells the components when the first writer fails, and when the last one that failed writes again or is closed. It
// is called by writers that the pool may be waiting for, so it takes a lock of its own.
func (p *pool) report(path string, err error) {
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	before := len(p.failing)
	if err != nil {
		p.failing[path] = err
	} else {
		delete(p.failing, path)
	}
	full := 0
	for _, err := range p.failing {
		if isDiskFull(err) {
			full++
		}
	}
	p.telemetry.ExporterJsonlFailingFiles.Record(context.Background(), int64(len(p.failing)))
	p.telemetry.ExporterJsonlDiskFullFiles.Record(context.Background(), int64(full))
	var event *componentstatus.Event
	switch {
	case before == 0 && err != nil:
		event = componentstatus.NewRecoverableErrorEvent(err)
	case before > 0 && len(p.failing) == 0:
		event = componentstatus.NewEvent(componentstatus.StatusOK)
	default:
		return
	}
	for _, host := range p.hosts {
		componentstatus.ReportStatus(host, event)
	}
}

// release closes all files when the last signal leaves.
func (p *pool) release(ctx context.Context, e *jsonlExporter) error {
	poolsMu.Lock()
	defer poolsMu.Unlock()
	p.statusMu.Lock()
	delete(p.hosts, e)
	left := len(p.hosts)
	p.statusMu.Unlock()
	if left > 0 {
		return nil
	}
	delete(pools, p.cfg)
	return p.close(ctx)
}

func (p *pool) close(ctx context.Context) error {
	close(p.stop)
	<-p.stopped
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.idle.Broadcast()
	var errs []error
	for path, w := range p.writers {
		errs = append(errs, w.close(ctx))
		delete(p.writers, path)
	}
	if p.upload != nil {
		errs = append(errs, p.upload.Shutdown(ctx))
	}
	p.index.release()
	return errors.Join(append(errs, p.root.close())...)
}

// clean holds the archive to its bounds: whenever a writer finds them passed or has rotated, and by the clock.
func (p *pool) clean() {
	defer close(p.stopped)
	tick := time.NewTicker(cleanInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-p.janitor:
		case <-tick.C:
			p.rotateIdle()
			p.closeOld()
		}
		p.prune()
	}
}

const cleanInterval = time.Minute

func (p *pool) wakeJanitor() {
	select {
	case p.janitor <- struct{}{}:
	default:
	}
}

// prune removes what the bounds on age and on the whole archive leave no room for. Where only files that are open are left,
// those that nobody uses are closed first.
func (p *pool) prune() {
	l := limits{bytes: int64(p.cfg.Retention.MaxTotalBytes), ours: p.template}
	if age := p.cfg.Retention.MaxAge; age > 0 {
		l.before = p.now().Add(-age)
	}
	if l.bytes == 0 && l.before.IsZero() {
		return
	}
	p.mu.Lock() // An idle file is locked to be removed: nobody opens it meanwhile.
	defer p.mu.Unlock()
	for {
		left, removed, err := p.index.prune(p.root, l)
		p.pruned(removed)
		if err != nil {
			p.logger.Warn("pruning did not work; it is tried again", zap.String("root", p.root.path), zap.Error(err))
			return
		}
		if l.bytes == 0 || left <= l.bytes {
			return
		}
		if !p.evict() {
			return // All that is left is in use; the writers' rotations wake us again.
		}
	}
}

// rotateIdle has the files of partitions that are not open ended by age and schedule: it opens them, and their writers do it, as
// they would have.
func (p *pool) rotateIdle() {
	r, now := p.cfg.Rotation, p.now()
	for path, last := range p.index.idle() {
		if _, ours := p.template.keyOf(path); !ours || !r.due(last, now) {
			continue
		}
		w, err := p.acquire(context.Background(), path, false)
		if err != nil {
			if !errors.Is(err, errBusy) {
				p.logger.Warn("a file that is to be rotated does not open; it is tried again", zap.Error(err))
			}
			continue
		}
		p.giveBack(w)
	}
}

// closeOld closes the files that nobody has used for as long as files are kept, so that they can be removed.
func (p *pool) closeOld() {
	age := p.cfg.Retention.MaxAge
	if age == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, w := range p.writers {
		if w.users == 0 && p.now().Sub(w.usedAt) >= age {
			p.closeIdle(path)
		}
	}
}

// rotated is told of every file that was ended under a name of its own.
func (p *pool) rotated(path string) {
	p.telemetry.ExporterJsonlRotations.Add(context.Background(), 1)
	if p.upload != nil {
		p.upload.Add(path)
	}
	p.wakeJanitor()
}

// pruned is told of every file that was removed.
func (p *pool) pruned(paths []string) {
	p.telemetry.ExporterJsonlFilesPruned.Add(context.Background(), int64(len(paths)))
	for _, path := range paths {
		p.forgetKey(path)
		if p.upload == nil {
			continue
		}
		if err := p.upload.Forget(path); err != nil {
			p.logger.Warn("what was uploaded of a pruned file is not forgotten", zap.String("path", p.root.name(path)), zap.Error(err))
		}
	}
}
