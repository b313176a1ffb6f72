// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package upload // import "github.com/lenscol/lenscol/exporter/jsonlexporter/internal/upload"

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // What the stores give; against damage, not against forgery.
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	azblobblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

var (
	errStalled    = errors.New("no progress within timeout")
	errMissed     = errors.New("gone before it was uploaded")
	errNotRegular = errors.New("not a regular file")
	errChanged    = errors.New("the file changed while it was uploaded")
	errItself     = errors.New("the object is the file itself: url leads into the archive; name another folder")
)

// localError is about the file, not about the store: it says nothing of how the next file will fare.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

// send brings one file into the store, verifies it there, remembers it, and deletes it where that is asked for: in this order,
// so that wherever it is cut off nothing is lost, and at most an upload is repeated.
func (u *Uploader) send(ctx context.Context, name string) error {
	root, err := os.OpenRoot(u.root) // Anew each time: the folder may have been moved and made again.
	if err != nil {
		return &localError{err}
	}
	defer root.Close()
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errMissed
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%w: %w", errMissed, errNotRegular)
	case err != nil:
		return &localError{err}
	}
	there := u.markers.has(root, name, info)
	if there && u.cfg.DeleteAfter {
		if there, err = u.holds(ctx, name, info); err != nil {
			return err
		}
	}
	if !there {
		if err := u.transfer(ctx, root, name, info); err != nil {
			return err
		}
		u.answered()
		err := unchanged(root, name, info)
		if err == nil {
			err = u.markers.put(root, name, info)
		} else if errors.Is(err, fs.ErrNotExist) { // Pruned meanwhile: there is nothing to remember.
			u.set.Uploaded(info.Size())
			return nil
		}
		if err != nil {
			return &localError{err}
		}
		u.set.Uploaded(info.Size())
	}
	if !u.cfg.DeleteAfter {
		return nil
	}
	if err := root.Remove(name); err != nil {
		return &localError{err}
	}
	u.set.Deleted(filepath.FromSlash(name), info.Size())
	if err := u.markers.remove(root, name); err != nil {
		u.set.Logger.Warn("a marker was not removed; it goes at the next start", u.fields(name, err)...)
	}
	return nil
}

// holds tells whether the store still has what was uploaded to it earlier: the file may be the last copy by now.
func (u *Uploader) holds(ctx context.Context, name string, info fs.FileInfo) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, u.cfg.Timeout)
	defer cancel()
	attrs, err := u.bucket.Attributes(ctx, u.dest.prefix+name)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return false, nil
	}
	return err == nil && attrs.Size == info.Size(), u.dest.clean(err)
}

// transfer uploads and verifies. It is cancelled where no byte moves for the timeout.
func (u *Uploader) transfer(parent context.Context, root *os.Root, name string, info fs.FileInfo) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	watch := &watch{timer: time.AfterFunc(u.cfg.Timeout, func() { cancel(errStalled) }), timeout: u.cfg.Timeout}
	defer watch.timer.Stop()

	f, err := root.Open(name)
	if err != nil {
		return &localError{err}
	}
	defer f.Close()
	key := u.dest.prefix + name
	sums := newSums(partSize(info.Size()))
	if err = u.put(ctx, key, io.TeeReader(watch.reader(f), sums), sums.partSize); err == nil {
		watch.moved()
		err = u.verify(ctx, key, sums, watch)
	}
	if err == nil && u.dest.url.Scheme == "file" {
		err = u.settleFile(ctx, key, root, name)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
	}
	return u.dest.clean(err)
}

// put writes an object. A write that breaks off is cancelled, never closed: closing would complete an object that is cut short.
func (u *Uploader) put(ctx context.Context, key string, r io.Reader, partSize int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := u.bucket.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType:    contentType(key),
		BufferSize:     int(partSize),
		MaxConcurrency: partsAtATime,
		BeforeWrite: func(as func(any) bool) error {
			// Azure keeps no checksum of a blob that comes in blocks: let it check each block as it comes.
			var azure *azblob.UploadStreamOptions
			if as(&azure) {
				azure.TransactionalValidation = azblobblob.TransferValidationTypeComputeCRC64()
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		cancel()
		_ = w.Close() // It says what the copy said.
		return err
	}
	return w.Close()
}

// verify compares the object with what was read of the file: its size, and the checksum that the store has of it. A
// store that says nothing, like Azure for a blob in blocks, has checked what it took. A checksum that differs need not be
// of the content (S3's with a KMS key is not), so then the object is read back, and its bytes decide.
func (u *Uploader) verify(ctx context.Context, key string, s *sums, watch *watch) error {
	attrs, err := u.bucket.Attributes(ctx, key)
	if err != nil {
		return err
	}
	if attrs.Size != s.size {
		return fmt.Errorf("the object has %d bytes, the file %d", attrs.Size, s.size)
	}
	etag := strings.Trim(attrs.ETag, `"`)
	switch {
	case bytes.Equal(attrs.MD5, s.whole.Sum(nil)), etag == s.etag():
		return nil
	case len(attrs.MD5) == 0 && !isPartsETag(etag):
		return nil
	}
	r, err := u.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	whole := md5.New() //nolint:gosec // see the import
	if _, err := io.Copy(whole, watch.reader(r)); err != nil {
		return err
	}
	if !bytes.Equal(whole.Sum(nil), s.whole.Sum(nil)) {
		return errors.New("the object's content is not the file's")
	}
	return nil
}

// settleFile forces an object on a file system to the disk, which its driver does not, and makes sure that it is another file
// than the one that may be deleted.
func (u *Uploader) settleFile(ctx context.Context, key string, root *os.Root, name string) error {
	r, err := u.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	var under io.Reader
	if !r.As(&under) {
		return nil
	}
	f, ok := under.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if source, err := root.Lstat(name); err == nil && os.SameFile(info, source) {
		return errItself
	}
	return f.Sync()
}

// unchanged tells whether a path leads to the same file with the same content as before.
func unchanged(root *os.Root, name string, before fs.FileInfo) error {
	now, err := root.Lstat(name)
	if err == nil && !(os.SameFile(now, before) && markerText(now) == markerText(before)) {
		err = errChanged
	}
	return err
}

// contentType is by the name. Content-Encoding is left alone: some stores decompress what has one.
func contentType(key string) string {
	switch path.Ext(key) {
	case ".gz":
		return "application/gzip"
	case ".zst":
		return "application/zstd"
	}
	return "application/x-ndjson"
}

// An object of S3 has at most 10,000 parts.
const (
	minPartSize  = 8 << 20
	maxParts     = 9_000
	partsAtATime = 2
)

func partSize(size int64) int64 {
	return max(minPartSize, (size/maxParts+1<<20)>>20<<20)
}

// sums are the checksums of a file that is read once: over all of it, and as S3's ETag has it for an object that came in parts,
// the MD5 of its parts' MD5s.
type sums struct {
	partSize int64
	size     int64
	whole    hash.Hash
	part     hash.Hash
	inPart   int64
	ended    []byte // the sums of whole parts
}

func newSums(partSize int64) *sums {
	return &sums{partSize: partSize, whole: md5.New(), part: md5.New()} //nolint:gosec // see the import
}

func (s *sums) Write(p []byte) (int, error) {
	n := len(p)
	s.size += int64(n)
	s.whole.Write(p)
	for len(p) > 0 {
		take := min(int64(len(p)), s.partSize-s.inPart)
		s.part.Write(p[:take])
		p = p[take:]
		if s.inPart += take; s.inPart == s.partSize {
			s.ended = s.part.Sum(s.ended)
			s.part.Reset()
			s.inPart = 0
		}
	}
	return n, nil
}

func (s *sums) etag() string {
	parts := s.ended
	if s.inPart > 0 {
		parts = s.part.Sum(parts[:len(parts):len(parts)])
	}
	sum := md5.Sum(parts) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:]) + "-" + strconv.Itoa(len(parts)/md5.Size)
}

// isPartsETag tells S3's ETag of an object that came in parts from the ETags of stores that mean nothing by them.
func isPartsETag(etag string) bool {
	sum, parts, ok := strings.Cut(etag, "-")
	_, sumErr := hex.DecodeString(sum)
	_, partsErr := strconv.Atoi(parts)
	return ok && len(sum) == 2*md5.Size && sumErr == nil && partsErr == nil
}

// watch ends what makes no progress.
type watch struct {
	timer   *time.Timer
	timeout time.Duration
}

func (w *watch) moved() { w.timer.Reset(w.timeout) }

func (w *watch) reader(r io.Reader) io.Reader { return &watchedReader{r: r, watch: w} }

type watchedReader struct {
	r     io.Reader
	watch *watch
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.watch.moved()
	return n, err
}
