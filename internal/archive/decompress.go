// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Compression is how the bytes of a file are compressed, told from their first bytes, never from the file's name.
type Compression string

// The compressions that are read.
const (
	Plain Compression = "none"
	Gzip  Compression = "gzip"
	Zstd  Compression = "zstd"
)

const (
	sourceBytes = 64 << 10
	// maxWindow bounds what a zstd frame may ask for; the zstd tool itself refuses more than 128 MiB.
	maxWindow = 128 << 20
	// maxBlock is the largest block of a zstd frame (RFC 8878, 3.1.1.2.4).
	maxBlock = 128 << 10
)

var (
	gzipMagic = []byte{0x1f, 0x8b, 0x08}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// frameError is a frame that cannot be read. What was read of it before stands; the next Read goes on behind it.
type frameError struct {
	offset int64 // of the frame's first byte in the file
	err    error
}

func (e *frameError) Error() string { return fmt.Sprintf("frame at byte %d: %v", e.offset, e.err) }
func (e *frameError) Unwrap() error { return e.err }

// tornError is a last frame that was never written whole. io.EOF follows.
type tornError struct{ bytes int64 }

func (e *tornError) Error() string {
	return fmt.Sprintf("the last %d bytes are no whole frame", e.bytes)
}

// source counts the bytes that were taken from a file.
type source struct {
	*bufio.Reader
	counted *counter
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func newSource(r io.Reader) source {
	c := &counter{r: r}
	return source{Reader: bufio.NewReaderSize(c, sourceBytes), counted: c}
}

// offset is how many bytes were handed on.
func (s source) offset() int64 { return s.counted.n - int64(s.Buffered()) }

// decompress returns what the file holds. Its Read may return a frameError, after which it goes on, or a tornError.
func decompress(src source, hold int64) (io.Reader, Compression, io.Closer, error) {
	head, err := src.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", nil, err
	}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		return &frames{src: src, codec: &gzipCodec{}, most: hold}, Gzip, nopCloser{}, nil
	case isZstd(head):
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, "", nil, err
		}
		return &frames{src: src, codec: &zstdCodec{dec: dec}, most: hold}, Zstd, dec.IOReadCloser(), nil
	default:
		return src, Plain, nopCloser{}, nil
	}
}

func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, zstdMagic) ||
		len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18}) // A skippable frame.
}

type nopCloser struct{}

func (nopCloser) Close() error { return nil }

// codec reads the frames of one compression.
type codec interface {
	// begins tells whether a frame may begin with these bytes.
	begins(head []byte) bool
	// open begins the frame ahead; the reader ends with it.
	open(source) (io.Reader, error)
	// pass goes to the end of a frame that could not be read, if it can be told.
	pass(source) bool
}

// frames is a file of concatenated frames. A frame that is damaged costs itself: the reader looks for the next one.
type frames struct {
	src   source
	codec codec
	frame io.Reader // in hand
	start int64     // of the frame in hand
	ended bool

	held bytes.Buffer // what was read of the frame and not handed on yet
	most int64        // of it, in bytes
	torn error        // what comes behind it
}

// maxHeld bounds what is held of a frame until its end, and its checksum, are known. What is handed on of a longer one may turn out to be
// of a damaged frame. Those of the exporter are seldom longer.
const maxHeld = 1 << 20

func (f *frames) Read(p []byte) (int, error) {
	for {
		if f.held.Len() > 0 {
			return f.held.Read(p)
		}
		if err := f.torn; err != nil {
			f.torn = nil
			return 0, err
		}
		if f.ended {
			return 0, io.EOF
		}
		if f.frame == nil {
			err := f.next()
			if err == nil {
				err = f.hold()
			}
			if err != nil {
				return 0, err
			}
			continue
		}
		n, err := f.frame.Read(p)
		switch {
		case errors.Is(err, io.EOF):
			f.frame = nil
			err = nil
		case err != nil:
			err = f.fail(err)
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// hold reads a frame to its end, or as much as may be held. Nothing is handed on of one that is damaged, and what there is of a torn one.
func (f *frames) hold() error {
	f.held.Reset()
	_, err := io.CopyN(&f.held, f.frame, f.most)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		f.frame = nil
		return nil
	}
	err = f.fail(err)
	var torn *tornError
	if errors.As(err, &torn) {
		f.torn = torn
		return nil
	}
	f.held.Reset()
	return err
}

// next begins the next frame, or ends the file.
func (f *frames) next() error {
	f.start = f.src.offset()
	head, err := f.src.Peek(4)
	if len(head) == 0 {
		f.ended = true
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return err
	}
	if len(head) < 4 && errors.Is(err, io.EOF) {
		_, _ = f.src.Discard(len(head))
		f.ended = true
		return &tornError{int64(len(head))}
	}
	if !f.codec.begins(head) {
		if zeros, err := f.onlyZeros(); zeros || err != nil {
			return err
		}
		f.resync()
		return &frameError{f.start, errors.New("no frame begins here")}
	}
	if f.frame, err = f.codec.open(f.src); err != nil {
		f.frame = nil
		return f.fail(err)
	}
	return nil
}

// fail ends a frame that cannot be read.
func (f *frames) fail(err error) error {
	f.frame = nil
	if errors.Is(err, io.ErrUnexpectedEOF) {
		if _, end := f.src.Peek(1); errors.Is(end, io.EOF) {
			f.ended = true
			return &tornError{f.src.offset() - f.start}
		}
	}
	if !f.codec.pass(f.src) {
		f.resync()
	}
	return &frameError{f.start, err}
}

// onlyZeros takes zeros up to the end of the file for a torn frame: a power cut can leave a file longer than its data.
func (f *frames) onlyZeros() (bool, error) {
	for {
		head, err := f.src.Peek(1)
		if errors.Is(err, io.EOF) {
			f.ended = true
			return true, &tornError{f.src.offset() - f.start}
		}
		if err != nil {
			return false, err
		}
		if head[0] != 0 {
			return false, nil
		}
		_, _ = f.src.Discard(1)
	}
}

// resync goes to where a frame may begin, or to the end.
func (f *frames) resync() {
	if f.src.offset() == f.start {
		_, _ = f.src.Discard(1)
	}
	for {
		head, _ := f.src.Peek(4)
		if len(head) < 4 {
			_, _ = f.src.Discard(len(head))
			return
		}
		if f.codec.begins(head) {
			return
		}
		_, _ = f.src.Discard(1)
	}
}

// gzipCodec reads gzip members (RFC 1952).
type gzipCodec struct{ r *gzip.Reader }

func (*gzipCodec) begins(head []byte) bool {
	return bytes.HasPrefix(head, gzipMagic) && len(head) > 3 && head[3]&0xe0 == 0 // The upper flags are reserved.
}

func (g *gzipCodec) open(src source) (io.Reader, error) {
	var err error
	if g.r == nil {
		g.r, err = gzip.NewReader(src)
	} else {
		err = g.r.Reset(src)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	g.r.Multistream(false)
	return g.r, nil
}

func (*gzipCodec) pass(source) bool { return false } // A member does not say how long it is.

// zstdCodec reads zstd frames (RFC 8878).
type zstdCodec struct {
	dec   *zstd.Decoder
	frame zstdFrame
}

func (*zstdCodec) begins(head []byte) bool { return isZstd(head) }

func (z *zstdCodec) open(src source) (io.Reader, error) {
	z.frame = zstdFrame{src: src}
	return z.dec, z.dec.Reset(&z.frame)
}

func (z *zstdCodec) pass(source) bool {
	_, err := io.Copy(io.Discard, &z.frame)
	return err == nil
}

// zstdFrame reads the bytes of one frame and no more, by the lengths that its header and blocks give.
type zstdFrame struct {
	src     source
	left    int64 // of the part that was begun
	begun   bool
	last    bool // the last block was begun
	sum     int64
	summed  bool
	failure error
}

func (f *zstdFrame) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if f.left == 0 && f.failure == nil {
		f.failure = f.part()
	}
	if f.failure != nil {
		return 0, f.failure
	}
	n, err := f.src.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	if err != nil {
		f.failure = err
		if errors.Is(err, io.EOF) {
			f.failure = io.ErrUnexpectedEOF
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, f.failure
}

// part begins the header, a block or the checksum.
func (f *zstdFrame) part() error {
	switch {
	case !f.begun:
		head, _ := f.src.Peek(zstd.HeaderMaxSize)
		var h zstd.Header
		if err := h.Decode(head); err != nil {
			return err
		}
		f.begun, f.left = true, int64(h.HeaderSize)
		if h.Skippable {
			f.left += int64(h.SkippableSize)
			f.last, f.summed = true, true
		}
		if h.HasCheckSum {
			f.sum = 4
		}
	case !f.last:
		head, _ := f.src.Peek(3)
		if len(head) < 3 {
			_, _ = f.src.Discard(len(head))
			return io.ErrUnexpectedEOF
		}
		block := binary.LittleEndian.Uint32([]byte{head[0], head[1], head[2], 0})
		kind, length := block>>1&3, int64(block>>3)
		if kind == 3 || length > maxBlock && kind != 1 {
			return fmt.Errorf("no block of a zstd frame at byte %d", f.src.offset())
		}
		if kind == 1 { // RLE: one byte stands for all.
			length = 1
		}
		f.last, f.left = block&1 == 1, 3+length
	case !f.summed && f.sum > 0:
		f.summed, f.left = true, f.sum
	default:
		return io.EOF
	}
	return nil
}
