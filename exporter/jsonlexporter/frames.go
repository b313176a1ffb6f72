// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// framing is how lines become bytes in a file. Every write is a whole frame, so the stock tools read a file up to its last
// write at any moment, and what an unclean stop left of a frame can be told from whole ones without decompressing.
type framing interface {
	// frame returns lines as one frame; the result is valid until the next call.
	frame(lines []byte) []byte
	// next returns the length of the frame that begins at an offset: 0 where it is torn, errNotOurs where it is no frame.
	next(f io.ReaderAt, offset, size int64) (int64, error)
	// whole tells whether a frame can be read to its end.
	whole(frame []byte) bool
	// magic is how each frame begins.
	magic() []byte
}

const (
	gzipExtension = ".gz"
	zstdExtension = ".zst"
)

func (c Compression) extension() string {
	switch c {
	case CompressionGzip:
		return gzipExtension
	case CompressionZstd:
		return zstdExtension
	default:
		return ""
	}
}

// newFraming returns the framing of a file, nil for plain lines. level 0 is the default of each.
func newFraming(c Compression, level int) (framing, error) {
	switch c {
	case CompressionGzip:
		if level == 0 {
			level = gzip.BestSpeed
		}
		w, err := gzip.NewWriterLevel(io.Discard, level)
		return &gzipFraming{writer: w}, err
	case CompressionZstd:
		speed := zstd.SpeedFastest
		if level != 0 {
			speed = zstd.EncoderLevelFromZstd(level)
		}
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
		return &zstdFraming{writer: w}, err
	default:
		return nil, nil
	}
}

// errDamaged tells a file that has something else than frames between or behind them: it is set aside, whole, since
// cutting it there could throw away whole frames behind the damage.
var errDamaged = errors.New("file is damaged")

// lastFrameEnd walks a file's frames and finds where the last whole one ends. Of the lengths in the headers it believes
// all; the last frame is read besides, since a power cut can leave a file longer than its data, filled up with zeros.
func lastFrameEnd(fr framing, f io.ReaderAt, size int64) (int64, error) {
	var starts []int64
	end := int64(0)
	for end < size {
		n, err := fr.next(f, end, size)
		if errors.Is(err, errNotOurs) && zeros(f, end, size) {
			break
		}
		if errors.Is(err, errNotOurs) && end > 0 {
			return 0, fmt.Errorf("%w at byte %d: %w", errDamaged, end, err)
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			if at, ok := frameBehind(fr, f, end+1, size); ok {
				return 0, fmt.Errorf("%w at byte %d: its frame seems to be torn, but another one begins at byte %d", errDamaged, end, at)
			}
			break
		}
		starts = append(starts, end)
		end += n
	}
	for len(starts) > 0 {
		start := starts[len(starts)-1]
		frame := make([]byte, end-start)
		if _, err := f.ReadAt(frame, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if fr.whole(frame) {
			return end, nil
		}
		end, starts = start, starts[:len(starts)-1]
	}
	return 0, nil
}

// zstdFraming writes zstd frames (RFC 8878), whose blocks say how long they are.
type zstdFraming struct {
	writer *zstd.Encoder
	out    []byte
}

func (z *zstdFraming) magic() []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd} }

func (z *zstdFraming) frame(lines []byte) []byte {
	if cap(z.out) > maxPooledBytes {
		z.out = nil
	}
	z.out = z.writer.EncodeAll(lines, z.out[:0])
	return z.out
}

func (z *zstdFraming) next(f io.ReaderAt, offset, size int64) (int64, error) {
	var head [zstd.HeaderMaxSize]byte
	n, err := f.ReadAt(head[:], offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(head[:n]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil
		}
		return 0, fmt.Errorf("%w: no zstd frame at byte %d; move the file away or choose another path", errNotOurs, offset)
	}
	if h.Skippable {
		return within(offset, int64(h.HeaderSize)+int64(h.SkippableSize), size), nil
	}
	at := offset + int64(h.HeaderSize)
	for {
		var b [4]byte
		if at+3 > size {
			return 0, nil
		}
		if _, err := f.ReadAt(b[:3], at); err != nil {
			return 0, err
		}
		block := binary.LittleEndian.Uint32(b[:])
		last, kind, length := block&1 == 1, block>>1&3, int64(block>>3)
		if kind == 1 { // RLE: one byte stands for all.
			length = 1
		}
		at += 3 + length
		if last {
			break
		}
	}
	if h.HasCheckSum {
		at += 4
	}
	return within(offset, at-offset, size), nil
}

func (z *zstdFraming) whole(frame []byte) bool {
	r, err := zstd.NewReader(bytes.NewReader(frame), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return false
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err == nil
}

// gzipFraming writes gzip members (RFC 1952). A member does not say how long it is, so each has an extra field `LC` with its
// length in 4 bytes; readers pass over it.
type gzipFraming struct {
	writer *gzip.Writer
	out    bytes.Buffer
}

// The header of our members: 10 fixed bytes, the length of the extra fields (8), then `LC`, 4, and the member's length.
const (
	gzipLengthAt   = 16
	gzipHeaderSize = 20
	gzipFlagExtra  = 4
)

var gzipExtra = []byte{'L', 'C', 4, 0, 0, 0, 0, 0}

func (g *gzipFraming) magic() []byte { return []byte{0x1f, 0x8b, 8} }

func (g *gzipFraming) frame(lines []byte) []byte {
	if g.out.Cap() > maxPooledBytes {
		g.out = bytes.Buffer{}
	}
	g.out.Reset()
	g.writer.Reset(&g.out)
	g.writer.Extra = gzipExtra
	_, err := g.writer.Write(lines)
	if err = errors.Join(err, g.writer.Close()); err != nil {
		panic(err) // A buffer takes everything.
	}
	member := g.out.Bytes()
	binary.LittleEndian.PutUint32(member[gzipLengthAt:], uint32(len(member)))
	return member
}

func (g *gzipFraming) next(f io.ReaderAt, offset, size int64) (int64, error) {
	var head [gzipHeaderSize]byte
	n, err := f.ReadAt(head[:], offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	ours := head[0] == 0x1f && head[1] == 0x8b && head[3]&gzipFlagExtra != 0 && bytes.Equal(head[12:gzipLengthAt], gzipExtra[:4])
	if n < gzipHeaderSize {
		return 0, nil
	}
	if !ours {
		return 0, fmt.Errorf("%w: no gzip member of ours at byte %d; move the file away or choose another path", errNotOurs, offset)
	}
	return within(offset, int64(binary.LittleEndian.Uint32(head[gzipLengthAt:])), size), nil
}

func (g *gzipFraming) whole(frame []byte) bool {
	r, err := gzip.NewReader(bytes.NewReader(frame))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r)
	return err == nil
}

// frameBehind finds a whole frame from an offset on: where there is one, what stands before it is damaged and not torn.
func frameBehind(fr framing, f io.ReaderAt, offset, size int64) (int64, bool) {
	magic := fr.magic()
	block := make([]byte, 64<<10)
	for offset < size {
		n, _ := f.ReadAt(block[:min(int64(len(block)), size-offset)], offset)
		found := bytes.Index(block[:n], magic)
		if found < 0 {
			if n < len(magic) {
				return 0, false
			}
			offset += int64(n - len(magic) + 1)
			continue
		}
		offset += int64(found)
		if length, err := fr.next(f, offset, size); err == nil && length > 0 {
			return offset, true
		}
		offset++
	}
	return 0, false
}

// zeros tells whether a file holds nothing else from an offset to its end.
func zeros(f io.ReaderAt, offset, size int64) bool {
	block := make([]byte, 64<<10)
	for offset < size {
		n, _ := f.ReadAt(block[:min(int64(len(block)), size-offset)], offset)
		if n == 0 || len(bytes.Trim(block[:n], "\x00")) > 0 {
			return false
		}
		offset += int64(n)
	}
	return true
}

// within is the length of a frame that ends within the file, else 0.
func within(offset, length, size int64) int64 {
	if length <= 0 || offset+length > size {
		return 0
	}
	return length
}
