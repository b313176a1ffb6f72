// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// hooked is a bucket in front of another one, with a say in what happens.
type hooked struct {
	driver.Bucket // not called: lists, copies, deletions, signed URLs
	inner         *blob.Bucket

	write func(key string) error                      // before an object is written
	chunk func(ctx context.Context, key string) error // before each write to it
	attrs func(key string, a *driver.Attributes)      // after they were read
	read  func(key string)                            // before it is read back

	mu    sync.Mutex
	wrote []string // keys of objects that were completed, in order
}

func (h *hooked) bucket() *blob.Bucket { return blob.NewBucket(h) }

func (h *hooked) written() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.wrote...)
}

func (h *hooked) Close() error                           { return h.inner.Close() }
func (h *hooked) ErrorCode(err error) gcerrors.ErrorCode { return gcerrors.Code(err) }
func (h *hooked) As(any) bool                            { return false }
func (h *hooked) ErrorAs(error, any) bool                { return false }

func (h *hooked) Attributes(ctx context.Context, key string) (*driver.Attributes, error) {
	a, err := h.inner.Attributes(ctx, key)
	if err != nil {
		return nil, err
	}
	out := &driver.Attributes{Size: a.Size, MD5: a.MD5, ETag: a.ETag}
	if h.attrs != nil {
		h.attrs(key, out)
	}
	return out, nil
}

func (h *hooked) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	if h.read != nil {
		h.read(key)
	}
	r, err := h.inner.NewRangeReader(ctx, key, offset, length, nil)
	if err != nil {
		return nil, err
	}
	return &hookedReader{r}, nil
}

type hookedReader struct{ *blob.Reader }

func (r *hookedReader) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{Size: r.Size(), ModTime: r.ModTime()}
}

func (h *hooked) NewTypedWriter(ctx context.Context, key, contentType string, o *driver.WriterOptions) (driver.Writer, error) {
	if h.write != nil {
		if err := h.write(key); err != nil {
			return nil, err
		}
	}
	w, err := h.inner.NewWriter(ctx, key, &blob.WriterOptions{ContentType: contentType, BufferSize: o.BufferSize, MaxConcurrency: o.MaxConcurrency})
	if err != nil {
		return nil, err
	}
	return &hookedWriter{Writer: w, h: h, ctx: ctx, key: key}, nil
}

type hookedWriter struct {
	*blob.Writer
	h   *hooked
	ctx context.Context
	key string
}

func (w *hookedWriter) Write(p []byte) (int, error) {
	if w.h.chunk != nil {
		if err := w.h.chunk(w.ctx, w.key); err != nil {
			return 0, err
		}
	}
	return w.Writer.Write(p)
}

func (w *hookedWriter) Close() error {
	err := w.Writer.Close()
	if err == nil {
		w.h.mu.Lock()
		w.h.wrote = append(w.h.wrote, w.key)
		w.h.mu.Unlock()
	}
	return err
}

var errAway = errors.New("the store is away")

// counts are what an uploader told.
type counts struct {
	mu                 sync.Mutex
	uploaded, deleted  int
	bytes              int64
	failed             []error
	missed, deletedSet []string
}

func (c *counts) settings(root string, logger *zap.Logger) Settings {
	locked := func(f func()) { c.mu.Lock(); defer c.mu.Unlock(); f() }
	return Settings{
		Root:     root,
		Logger:   logger,
		Uploaded: func(n int64) { locked(func() { c.uploaded++; c.bytes += n }) },
		Deleted:  func(p string, _ int64) { locked(func() { c.deleted++; c.deletedSet = append(c.deletedSet, p) }) },
		Failed:   func(err error) { locked(func() { c.failed = append(c.failed, err) }) },
		Missed:   func(p string) { locked(func() { c.missed = append(c.missed, p) }) },
	}
}

func (c *counts) failedTries() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]error(nil), c.failed...)
}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	folder := filepath.Join(parts...)
	require.NoError(t, os.MkdirAll(folder, 0o700))
	return folder
}

func writeFile(t *testing.T, root, name, content string) {
	t.Helper()
	mkdir(t, root, filepath.Dir(name))
	require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
}
