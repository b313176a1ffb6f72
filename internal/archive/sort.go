// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"bufio"
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
)

// Sorter sorts any number of records by time in bounded memory. It holds records up to a bound, writes them, sorted, into a temporary
// file of the compact layout, and merges the files at the end. Records of the same time stay in the order in which they were added.
type Sorter struct {
	memory int64
	folder string
	held   []Record
	bytes  int64 // of held, estimated
	most   int64 // the largest that bytes ever was
	levels [][]*os.File
}

const (
	// A record takes more in memory than its line does: measured, three to four times as much beside a fixed part.
	heldFactor = 4
	heldFixed  = 512

	// fanIn is how many files are merged at once. Each takes about 300 KiB: its buffers and the window of its decoder.
	fanIn       = 64
	spillWindow = 128 << 10
)

// NewSorter returns a sorter that holds about memory bytes, and keeps the rest in folder, "" for the system's temporary folder. A
// record that is larger than memory is held alone.
func NewSorter(memory int64, folder string) *Sorter { return &Sorter{memory: memory, folder: folder} }

// Add takes a record, which must not be used afterwards.
func (s *Sorter) Add(rec Record) error {
	cost := int64(heldFixed + heldFactor*rec.Bytes)
	if len(s.held) > 0 && s.bytes+cost > s.memory {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.held = append(s.held, rec)
	s.bytes += cost
	s.most = max(s.most, s.bytes)
	return nil
}

// Each calls emit with all records in order. The sorter is empty afterwards.
func (s *Sorter) Each(emit func(Record) error) error {
	s.sortHeld()
	held := s.held
	s.held, s.bytes = nil, 0
	sources := []func() (Record, error){}
	for i := len(s.levels) - 1; i >= 0; i-- { // A higher level was added earlier.
		for _, f := range s.levels[i] {
			r, err := readRun(f)
			if err != nil {
				return err
			}
			defer r.Close()
			sources = append(sources, r.Next)
		}
	}
	sources = append(sources, func() (Record, error) {
		if len(held) == 0 {
			return Record{}, io.EOF
		}
		rec := held[0]
		held[0] = Record{}
		held = held[1:]
		return rec, nil
	})
	return errors.Join(merge(sources, Record.Time, emit), s.Close())
}

// Close removes the temporary files.
func (s *Sorter) Close() error {
	var errs []error
	for _, level := range s.levels {
		for _, f := range level {
			errs = append(errs, discard(f))
		}
	}
	s.levels, s.held = nil, nil
	return errors.Join(errs...)
}

func (s *Sorter) sortHeld() {
	slices.SortStableFunc(s.held, func(a, b Record) int { return cmp.Compare(a.Time(), b.Time()) })
}

// spill writes what is held as a run of level 0. As soon as a level has fanIn runs they become one of the next level.
func (s *Sorter) spill() error {
	s.sortHeld()
	run, err := s.writeRun(func(write func(Record) error) error {
		for _, rec := range s.held {
			if err := write(rec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	clear(s.held)
	s.held, s.bytes = s.held[:0], 0
	return s.addRun(run, 0)
}

func (s *Sorter) addRun(run *os.File, level int) error {
	if len(s.levels) == level {
		s.levels = append(s.levels, nil)
	}
	s.levels[level] = append(s.levels[level], run)
	if len(s.levels[level]) < fanIn {
		return nil
	}
	var sources []func() (Record, error)
	for _, f := range s.levels[level] {
		r, err := readRun(f)
		if err != nil {
			return err
		}
		defer r.Close()
		sources = append(sources, r.Next)
	}
	merged, err := s.writeRun(func(write func(Record) error) error { return merge(sources, Record.Time, write) })
	if err != nil {
		return err
	}
	for _, f := range s.levels[level] {
		if err := discard(f); err != nil {
			return err
		}
	}
	s.levels[level] = nil
	return s.addRun(merged, level+1)
}

// writeRun makes a temporary file of what fill writes.
func (s *Sorter) writeRun(fill func(write func(Record) error) error) (_ *os.File, err error) {
	f, err := os.CreateTemp(s.folder, "lenscol-sort-*.jsonl.zst")
	if err != nil {
		return nil, fmt.Errorf("sort: %w", err)
	}
	_ = os.Remove(f.Name()) // So that nothing is left when the process is killed. Where an open file cannot be removed, discard does.
	defer func() {
		if err != nil {
			err = fmt.Errorf("sort: write a temporary file: %w", errors.Join(err, discard(f)))
		}
	}()
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(spillWindow))
	if err != nil {
		return nil, err
	}
	w, err := NewWriter(z, jsonlexporter.LayoutCompact, jsonlexporter.ResourceReference)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(fill(w.Write), w.Flush(), z.Close()); err != nil {
		return nil, err
	}
	return f, nil
}

func readRun(f *os.File) (*Reader, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return newReader(bufio.NewReader(f), "sorted records", 0) // A run is one frame.
}

func discard(f *os.File) error {
	err := f.Close()
	_ = os.Remove(f.Name()) // It is gone already where that works for an open file.
	return err
}

// merge gives the records of all sources, each sorted by key, in the order of the key; of equal ones, those of an earlier source first.
// A source that is not sorted stays in its own order.
func merge(sources []func() (Record, error), key func(Record) pcommon.Timestamp, emit func(Record) error) error {
	h := &heads{}
	for i, next := range sources {
		if err := h.pull(i, next, key); err != nil {
			return err
		}
	}
	for h.Len() > 0 {
		first := heap.Pop(h).(head)
		if err := emit(first.rec); err != nil {
			return err
		}
		if err := h.pull(first.source, sources[first.source], key); err != nil {
			return err
		}
	}
	return nil
}

type head struct {
	rec    Record
	at     pcommon.Timestamp
	source int
}

type heads []head

func (h heads) Len() int { return len(h) }
func (h heads) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].source < h[j].source
}
func (h heads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)   { *h = append(*h, x.(head)) }
func (h *heads) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = head{}
	*h = old[:len(old)-1]
	return last
}

func (h *heads) pull(source int, next func() (Record, error), key func(Record) pcommon.Timestamp) error {
	rec, err := next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		heap.Push(h, head{rec, key(rec), source})
	}
	return err
}
