// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/s2"
)

// sorter puts any number of items in the order of time, in bounded memory; items of one time stay in the order of their coming. Unlike
// archive.Sorter it holds items encoded: a tenth of the memory, and nothing for the garbage collector to walk through.
//
// What does not fit is written to temporary files, each sorted, as runs of: the time and the length (8 and 4 bytes), the item.
type sorter struct {
	memory int
	folder string
	items  []byte
	index  []entry
	levels [][]*os.File // a higher level was added earlier
}

type entry struct {
	at         int64
	begin, end uint32 // in items
}

const (
	entryBytes = 24 // of memory

	// fanIn is how many files are merged at once; each takes three blocks of memory.
	fanIn      = 64
	blockBytes = 64 << 10
)

func (s *sorter) add(at int64, item []byte) error {
	if len(s.index) > 0 && len(s.items)+len(item)+entryBytes*len(s.index) > s.memory {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if s.items == nil { // At once: growing would leave as much again behind. What is not used is not resident.
		s.items = make([]byte, 0, s.memory)
		s.index = make([]entry, 0, s.memory/8/entryBytes)
	}
	begin := len(s.items)
	s.items = append(s.items, item...)
	s.index = append(s.index, entry{at, uint32(begin), uint32(len(s.items))})
	return nil
}

// each calls emit with all items in order. The sorter is empty afterwards. emit must not keep the item.
func (s *sorter) each(emit func(at int64, item []byte) error) error {
	s.sortHeld()
	var heads heads
	for i := len(s.levels) - 1; i >= 0; i-- {
		for _, f := range s.levels[i] {
			heads = append(heads, newHead(f, len(heads)))
		}
	}
	held := &head{source: len(heads)}
	held.next = func() error {
		if len(s.index) == 0 {
			return io.EOF
		}
		e := s.index[0]
		s.index = s.index[1:]
		held.at, held.item = e.at, s.items[e.begin:e.end]
		return nil
	}
	return errors.Join(merge(append(heads, held), emit), s.close())
}

// close removes the temporary files.
func (s *sorter) close() error {
	var errs []error
	for _, level := range s.levels {
		for _, f := range level {
			errs = append(errs, discard(f))
		}
	}
	s.levels, s.items, s.index = nil, nil, nil
	return errors.Join(errs...)
}

func (s *sorter) sortHeld() {
	slices.SortFunc(s.index, func(a, b entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.begin, b.begin)) })
}

// spill writes what is held as a file of level 0. As soon as a level has fanIn files they become one of the next level.
func (s *sorter) spill() error {
	s.sortHeld()
	f, err := s.write(func(put func(int64, []byte) error) error {
		for _, e := range s.index {
			if err := put(e.at, s.items[e.begin:e.end]); err != nil {
				return err
			}
		}
		return nil
	})
	s.items, s.index = s.items[:0], s.index[:0]
	for level := 0; err == nil; level++ {
		if level == len(s.levels) {
			s.levels = append(s.levels, nil)
		}
		s.levels[level] = append(s.levels[level], f)
		if len(s.levels[level]) < fanIn {
			return nil
		}
		f, err = s.join(level)
	}
	return err
}

// join makes one file of a level's.
func (s *sorter) join(level int) (*os.File, error) {
	var from heads
	for i, f := range s.levels[level] {
		from = append(from, newHead(f, i))
	}
	joined, err := s.write(func(put func(int64, []byte) error) error { return merge(from, put) })
	for _, f := range s.levels[level] {
		err = errors.Join(err, discard(f))
	}
	s.levels[level] = nil
	return joined, err
}

func (s *sorter) write(fill func(put func(at int64, item []byte) error) error) (_ *os.File, err error) {
	f, err := os.CreateTemp(s.folder, "lenscol-perfetto-*.s2")
	if err != nil {
		return nil, fmt.Errorf("sort: %w", err)
	}
	_ = os.Remove(f.Name()) // So that nothing is left when the process is killed. Where an open file cannot be removed, discard does.
	defer func() {
		if err != nil {
			err = fmt.Errorf("sort: write a temporary file: %w", errors.Join(err, discard(f)))
		}
	}()
	w := s2.NewWriter(f, s2.WriterBlockSize(blockBytes), s2.WriterConcurrency(1))
	var frame [12]byte
	err = fill(func(at int64, item []byte) error {
		binary.LittleEndian.PutUint64(frame[:8], uint64(at))
		binary.LittleEndian.PutUint32(frame[8:], uint32(len(item)))
		if _, err := w.Write(frame[:]); err != nil {
			return err
		}
		_, err := w.Write(item)
		return err
	})
	return f, errors.Join(err, w.Close())
}

func discard(f *os.File) error {
	err := f.Close()
	_ = os.Remove(f.Name()) // It is gone already where that works for an open file.
	return err
}

// head is the next item of one of the sources that are merged.
type head struct {
	at     int64
	item   []byte
	source int
	next   func() error // io.EOF at the end
}

func newHead(f *os.File, source int) *head {
	h := &head{source: source}
	var r *bufio.Reader
	var frame [12]byte
	h.next = func() error {
		if r == nil {
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return err
			}
			r = bufio.NewReaderSize(s2.NewReader(f, s2.ReaderMaxBlockSize(blockBytes)), 4<<10)
		}
		if _, err := io.ReadFull(r, frame[:]); err != nil {
			return err // io.EOF where the file ends
		}
		h.at = int64(binary.LittleEndian.Uint64(frame[:8]))
		h.item = slices.Grow(h.item[:0], int(binary.LittleEndian.Uint32(frame[8:])))[:binary.LittleEndian.Uint32(frame[8:])]
		_, err := io.ReadFull(r, h.item)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return h
}

// merge gives the items of all sources in the order of time; of one time, those of an earlier source first.
func merge(sources heads, emit func(at int64, item []byte) error) error {
	var h heads
	for _, source := range sources {
		if err := source.next(); errors.Is(err, io.EOF) {
			continue
		} else if err != nil {
			return fmt.Errorf("sort: %w", err)
		}
		heap.Push(&h, source)
	}
	for len(h) > 0 {
		first := h[0]
		if err := emit(first.at, first.item); err != nil {
			return err
		}
		switch err := first.next(); {
		case err == nil:
			heap.Fix(&h, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&h)
		default:
			return fmt.Errorf("sort: read a temporary file: %w", err)
		}
	}
	return nil
}

type heads []*head

func (h heads) Len() int { return len(h) }
func (h heads) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].source < h[j].source
}
func (h heads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)   { *h = append(*h, x.(*head)) }
func (h *heads) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
