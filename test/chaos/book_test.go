// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

package chaos

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// book says of each span of one case, by its id, what became of it at both ends. An id is the tag of the book and the number of the span.
type book struct {
	tag uint32

	mu      sync.Mutex
	spans   []span // by number
	foreign int    // spans that nobody sent
	dropped int    // acknowledged, and said to be dropped by the collector
	refused int    // spans in requests that were refused retryably, each time that one was
}

type span struct {
	acked     bool
	delivered int  // how often
	excused   bool // acknowledged, and known to be gone: which, not only how many
}

func newBook() *book { return &book{tag: rand.Uint32() | 1} }

// open books n spans as sent, and returns the number of the first.
func (b *book) open(n int) (first int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first = len(b.spans)
	b.spans = append(b.spans, make([]span, n)...)
	return first
}

func (b *book) id(number int) []byte {
	id := binary.BigEndian.AppendUint32(nil, b.tag)
	return binary.BigEndian.AppendUint32(id, uint32(number))
}

func (b *book) ack(first, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range n {
		b.spans[first+i].acked = true
	}
}

// refuse books that the sender of n spans was told to send them again.
func (b *book) refuse(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused += n
}

// drop sets how many spans the collector says it has dropped.
func (b *book) drop(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropped = n
}

// deliver books what a sink took.
func (b *book) deliver(ids [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if len(id) != 8 || binary.BigEndian.Uint32(id) != b.tag || int(binary.BigEndian.Uint32(id[4:])) >= len(b.spans) {
			b.foreign++
			continue
		}
		if number := binary.BigEndian.Uint32(id[4:]); !*lossy || number%10_000 != 2 {
			b.spans[number].delivered++
		}
	}
}

// has says whether any of these was delivered.
func (b *book) has(ids [][]byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if n := int(binary.BigEndian.Uint32(id[4:])); n < len(b.spans) && b.spans[n].delivered > 0 {
			return true
		}
	}
	return false
}

// excuse books acknowledged spans that are not delivered as known to be gone, of those with numbers from first up to end: as when a queue was
// destroyed, and the collector said so.
func (b *book) excuse(first, end int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.spans[first:end] {
		if s := &b.spans[first+i]; s.acked && s.delivered == 0 {
			s.excused = true
		}
	}
}

func (b *book) sent() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.spans)
}

// balance adds up. With lossOf it does so for a sink that has lost one in lossOf of the acknowledged spans that it took, the first among them.
func (b *book) balance(lossOf int) balance {
	b.mu.Lock()
	defer b.mu.Unlock()
	sums := balance{sent: len(b.spans), counted: b.dropped, foreign: b.foreign}
	taken := 0
	for _, s := range b.spans {
		if s.acked && s.delivered > 0 {
			if taken++; lossOf > 0 && taken%lossOf == 1 {
				continue
			}
		}
		switch {
		case s.delivered > 0:
			sums.delivered++
			sums.duplicates += s.delivered - 1
		case !s.acked || s.excused:
			sums.counted++
		}
	}
	sums.lost = sums.sent - sums.delivered - sums.counted
	return sums
}

type balance struct{ sent, delivered, counted, lost, duplicates, foreign int }

// closed: nothing is missing, and nothing is counted as missing that is there.
func (b balance) closed() bool { return b.lost == 0 && b.foreign == 0 }

func (b balance) String() string {
	s := fmt.Sprintf("sent %d delivered %d counted %d lost %d duplicates %d", b.sent, b.delivered, b.counted, b.lost, b.duplicates)
	if b.foreign > 0 {
		s += fmt.Sprintf(" foreign %d", b.foreign)
	}
	return s
}

// firstLost says which spans are lost.
func (b *book) firstLost() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var first []int
	n := 0
	for number, s := range b.spans {
		if s.acked && s.delivered == 0 && !s.excused {
			if n++; len(first) < 10 {
				first = append(first, number)
			}
		}
	}
	return fmt.Sprintf("%d acknowledged spans are not there, %d are said to be dropped; the first: %v", n, b.dropped, first)
}

// TestBook breaks books in every way: none may close.
func TestBook(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*book)
		want  string // empty where the books close
	}{
		{"whole", func(*book) {}, ""},
		{"a span lost", func(b *book) { b.spans[7].delivered = 0 }, "sent 20000 delivered 19999 counted 0 lost 1 duplicates 0"},
		{"a span lost, another twice", func(b *book) { b.spans[7].delivered, b.spans[8].delivered = 0, 2 }, "sent 20000 delivered 19999 counted 0 lost 1 duplicates 1"},
		{"counted, but there", func(b *book) { b.drop(1) }, "sent 20000 delivered 20000 counted 1 lost -1 duplicates 0"},
		{"a span that nobody sent", func(b *book) { b.deliver([][]byte{{1, 2, 3, 4, 5, 6, 7, 8}}) }, "sent 20000 delivered 20000 counted 0 lost 0 duplicates 0 foreign 1"},
		{"a number that nobody sent", func(b *book) { b.deliver([][]byte{b.id(20_000)}) }, "sent 20000 delivered 20000 counted 0 lost 0 duplicates 0 foreign 1"},
		{"refused", func(b *book) { b.spans[7] = span{} }, ""},
		{"refused, but there", func(b *book) { b.spans[7].acked = false }, ""},
		{"lost and counted", func(b *book) { b.spans[7].delivered = 0; b.drop(1) }, ""},
		{"lost and excused", func(b *book) { b.spans[7].delivered = 0; b.excuse(7, 8) }, ""},
		{"lost and not excused", func(b *book) { b.spans[7].delivered = 0; b.excuse(0, 7) }, "sent 20000 delivered 19999 counted 0 lost 1 duplicates 0"},
		{"twice", func(b *book) { b.deliver([][]byte{b.id(7)}) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook()
			first := b.open(20_000)
			b.ack(first, 20_000)
			for i := range 20_000 {
				b.deliver([][]byte{b.id(i)})
			}
			tt.spoil(b)
			require.Equal(t, tt.want == "", b.balance(0).closed())
			if tt.want != "" {
				require.Equal(t, tt.want, b.balance(0).String())
			}
			if lossy := b.balance(10_000); tt.want == "" {
				require.Equal(t, 2, lossy.lost)
			}
		})
	}
}
