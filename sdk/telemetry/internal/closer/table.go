// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package closer // import "github.com/lenscol/lenscol/sdk/telemetry/internal/closer"

import (
	"math/bits"
	"runtime"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// table holds open spans by their ids, which are random: those are their own hash. It has no lock. With thousands of
// goroutines, one that is stopped while it holds a lock, by the garbage collector for one, makes a queue of others, and a
// queue for a sync.Mutex lasts: each in it waits for its turn on a processor too.
type table []slot

type openSpan struct {
	span   sdktrace.ReadWriteSpan
	number uint64
}

// slot is owned by who changed id to busy: nobody else reads or writes what is open in it.
type slot struct {
	id   atomic.Uint64
	open openSpan
}

// What no id is. A span that has one of them all the same is not tracked.
const (
	free = iota
	busy
	firstID
)

// window is in how many slots from its own on a span may stand. One of sixteen is free in all but a hundred thousandth of
// windows while half of the table is, and in all but a hundredth while a quarter is.
const window = 16

func newTable(size int) table {
	return make(table, 1<<bits.Len(uint(max(size, window)-1)))
}

func (t table) slot(id uint64, i int) *slot { return &t[(id+uint64(i))&uint64(len(t)-1)] }

// put reports whether there was room.
func (t table) put(id uint64, open openSpan) bool {
	if id < firstID {
		return false
	}
	for i := range window {
		if s := t.slot(id, i); s.id.Load() == free && s.id.CompareAndSwap(free, busy) {
			s.open = open
			s.id.Store(id)
			return true
		}
	}
	return false
}

// remove reports whether id was there.
func (t table) remove(id uint64) bool {
	if id < firstID {
		return false
	}
	for i := range window {
		if s := t.slot(id, i); s.id.Load() == id && s.id.CompareAndSwap(id, busy) {
			s.open = openSpan{}
			s.id.Store(free)
			return true
		}
	}
	return false
}

// takeAll removes all, and appends it to all.
func (t table) takeAll(all []openSpan) []openSpan {
	for i := range t {
		s := &t[i]
		for id := s.id.Load(); id != free; id = s.id.Load() {
			if id == busy { // for the time of two assignments
				runtime.Gosched()
			} else if s.id.CompareAndSwap(id, busy) {
				all = append(all, s.open)
				s.open = openSpan{}
				s.id.Store(free)
			}
		}
	}
	return all
}
