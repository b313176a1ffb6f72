// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Output is a file that is there whole or not at all: it is written beside its place and moved there by Commit. A name that ends in
// .gz or .zst is compressed.
type Output struct {
	path    string
	file    *os.File
	buffer  *bufio.Writer
	closers []io.Closer // of the compression
	io.Writer
}

// CreateOutput begins a file. It is an error if there is one, unless replace is set.
func CreateOutput(path string, replace bool) (*Output, error) {
	if _, err := os.Lstat(path); err == nil && !replace {
		return nil, fmt.Errorf("%s: %w; --force replaces it", path, fs.ErrExist)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, err
	}
	o := &Output{path: path, file: f, buffer: bufio.NewWriterSize(f, 64<<10)}
	o.Writer = o.buffer
	switch {
	case strings.HasSuffix(path, ".gz"):
		z := gzip.NewWriter(o.buffer)
		o.Writer, o.closers = z, []io.Closer{z}
	case strings.HasSuffix(path, ".zst"), strings.HasSuffix(path, ".zstd"):
		z, err := zstd.NewWriter(o.buffer, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, errors.Join(err, o.Abort())
		}
		o.Writer, o.closers = z, []io.Closer{z}
	}
	return o, nil
}

// Commit ends the file and moves it to its place.
func (o *Output) Commit() error {
	var errs []error
	for _, c := range o.closers {
		errs = append(errs, c.Close())
	}
	errs = append(errs, o.buffer.Flush(), o.file.Chmod(0o640), o.file.Sync(), o.file.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write %s: %w", o.path, errors.Join(err, os.Remove(o.file.Name())))
	}
	return os.Rename(o.file.Name(), o.path)
}

// Abort leaves nothing of the file.
func (o *Output) Abort() error {
	return errors.Join(o.file.Close(), os.Remove(o.file.Name()))
}
