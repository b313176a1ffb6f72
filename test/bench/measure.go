// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
)

// metric names a figure, and its unit.
type metric string

const (
	cpuPerMillion metric = "cpu_s_per_m"    // CPU seconds, user and system, of the collector for a million spans that were sent
	spansPerS     metric = "spans_per_s"    // acknowledged
	peakRSS       metric = "peak_rss_mib"   // largest resident memory
	bytesPerSpan  metric = "bytes_per_span" // that was kept: in the file, or on the wire to Weave
	startMS       metric = "start_ms"       // until it accepts
	binaryBytes   metric = "binary_bytes"
	refusedSpans  metric = "refused_spans"
	lostSpans     metric = "lost_spans" // acknowledged and not there
)

type figures map[metric]float64

// load is what a collector is measured under.
type load struct {
	traffic        traffic
	warm, requests int     // before the clock starts, and after
	conns, workers int     // of the sender
	rate           float64 // spans/s, 0: as fast as they are acknowledged
}

// closed is the load of a row: as fast as four senders are answered.
func closed(t traffic, spans int) load {
	perRequest := t.count(0, len(t.pattern)) / len(t.pattern)
	return load{traffic: t, warm: max(spans/20/perRequest, 10), requests: spans / perRequest, conns: 4, workers: 4}
}

// measure runs one side of a row. Its figures hold only if everything that was acknowledged is where it should be, to the last
// id, and nothing was refused.
func (r *row) measure(binary string, side setup, l load) (figures, error) {
	var to *sink
	if r.copies > 0 {
		var err error
		if to, err = startSink(); err != nil {
			return nil, err
		}
		defer to.stop()
	}
	c, err := startCollector(binary, func(c *collector) ([]string, []string, error) {
		args, err := c.writeConfig(side.config(c, to))
		return args, nil, err
	})
	if err != nil {
		return nil, err
	}
	defer c.remove()
	f, err := c.under(l, func(sent int) error { return r.drain(c, to, sent) })
	if err := errors.Join(err, c.stop()); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, c.logTail())
	}
	if f[refusedSpans] > 0 {
		return nil, fmt.Errorf("%s: %v spans were refused\n%s", binary, f[refusedSpans], c.logTail())
	}
	kept := l.traffic.books(l.warm+l.requests, r.kept)
	if r.archive {
		got, size, err := readArchive(c.dir)
		if err != nil {
			return nil, err
		}
		if got != kept {
			return nil, fmt.Errorf("%s: the archive has %+v, and %+v were acknowledged", binary, got, kept)
		}
		f[bytesPerSpan] = float64(size) / float64(kept.spans)
	} else if to != nil && to.bytes.Load() > 0 {
		f[bytesPerSpan] = float64(to.bytes.Load()) / float64(kept.spans)
	}
	delete(f, refusedSpans)
	return f, nil
}

// drain waits until what was sent has left.
func (r *row) drain(c *collector, to *sink, sent int) error {
	if to == nil {
		return nil
	}
	want := int64(r.copies * sent)
	for end := time.Now().Add(patience); to.spans.Load() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) || c.alive.Err() != nil {
			return fmt.Errorf("%d of %d spans reached the sink", to.spans.Load(), want)
		}
	}
	if got := to.spans.Load(); got != want {
		return fmt.Errorf("%d spans reached the sink, which are more than %d", got, want)
	}
	return nil
}

// under sends the load to a collector and takes the figures that every work has.
func (c *collector) under(l load, drain func(sent int) error) (figures, error) {
	s, err := newSender(c.endpoint, l.traffic, l.conns, l.workers)
	if err != nil {
		return nil, err
	}
	defer s.close()
	warm, err := s.send(c.alive, l.warm, l.rate)
	if err == nil {
		err = drain(warm.spans)
	}
	if err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	done, err := s.send(c.alive, l.requests, l.rate)
	if err == nil {
		err = drain(warm.spans + done.spans)
	}
	if err != nil {
		return nil, err
	}
	after, err := c.cpu()
	if err != nil {
		return nil, err
	}
	peak, err := c.peak()
	return figures{
		cpuPerMillion: (after - before).Seconds() * 1e6 / float64(done.spans),
		spansPerS:     float64(done.spans) / done.took.Seconds(),
		peakRSS:       peak,
		startMS:       float64(c.ready.Microseconds()) / 1000,
		refusedSpans:  float64(warm.refused + done.refused),
	}, err
}

// books say which spans there are: how many, and the sum of their ids, which one that is missing changes as one that is there twice.
type books struct {
	spans int
	ids   uint64
}

// books are those of the first n requests, of those that are kept.
func (t *traffic) books(n int, kept func(int) bool) (b books) {
	for i := range n {
		if kept != nil && !kept(i) {
			continue
		}
		_, kind, variant := t.request(i)
		places := t.streams[kind].spans[variant].places
		for j := range places {
			b.ids += places[j].spanID(uint64(i))
		}
		b.spans += len(places)
	}
	return b
}

// readArchive are the books of the files of either collector, rotated ones among them, and their size.
func readArchive(dir string) (b books, size int64, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "traces*"))
	if err != nil || len(paths) == 0 {
		return b, 0, fmt.Errorf("there is no archive: %w", err)
	}
	for _, path := range paths {
		n, err := b.readFile(path)
		if err != nil {
			return b, 0, fmt.Errorf("read %s: %w", path, err)
		}
		size += n
	}
	return b, size, nil
}

func (b *books) readFile(path string) (size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	text, err := uncompressed(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return 0, err
	}
	return info.Size(), b.read(text)
}

// uncompressed reads plain files, zstd, and what contrib's file exporter makes of zstd: each frame behind its length of four bytes.
func uncompressed(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(8)
	if err != nil {
		return nil, err
	}
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
	switch {
	case string(head[:4]) == string(magic):
		return zstd.NewReader(r)
	case string(head[4:]) == string(magic):
		return zstd.NewReader(&withoutLengths{r: r})
	}
	return r, nil
}

type withoutLengths struct {
	r    *bufio.Reader
	left int
}

func (w *withoutLengths) Read(p []byte) (int, error) {
	if w.left == 0 {
		var length [4]byte
		if _, err := io.ReadFull(w.r, length[:]); err != nil {
			return 0, err
		}
		w.left = int(binary.BigEndian.Uint32(length[:]))
	}
	n, err := w.r.Read(p[:min(len(p), w.left)])
	w.left -= n
	return n, err
}

// read adds the span ids of both collectors' JSON. No span that is sent has links, which have ids too.
func (b *books) read(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<20)
	for {
		text, err := lines.ReadSlice('"') // of a key or a value
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if key := string(text); key != `span_id"` && key != `spanId"` {
			continue
		}
		rest, err := lines.Peek(18) // :"0123456789abcdef
		if err != nil {
			return err
		}
		var id [8]byte
		if _, err := hex.Decode(id[:], rest[2:]); err != nil {
			return fmt.Errorf("a span id: %w", err)
		}
		b.spans++
		b.ids += binary.BigEndian.Uint64(id[:])
	}
}
