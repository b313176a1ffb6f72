// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

// bits is a set of slots.
type bits [maxSlots / 64]uint64

const maxSlots = maxStamped

func (b *bits) set(slot int)     { b[slot>>6] |= 1 << (slot & 63) }
func (b *bits) is(slot int) bool { return b[slot>>6]&(1<<(slot&63)) != 0 }

// keyset finds the slot of a key in a few nanoseconds: a hash table that looks at the length and three bytes of a key, with the
// next place for what collides.
type keyset struct {
	keys  []string
	table [4 * maxSlots]uint16 // slot + 1, 0 for empty
}

// add returns the slot of key, a new one if it has none. There can be maxSlots of them.
func (k *keyset) add(key string) int {
	if slot := k.slot(key); slot >= 0 {
		return slot
	}
	k.keys = append(k.keys, key)
	at := place(key)
	for k.table[at] != 0 {
		at = (at + 1) % uint(len(k.table))
	}
	k.table[at] = uint16(len(k.keys))
	return len(k.keys) - 1
}

// slot returns the slot of key, or -1.
func (k *keyset) slot(key string) int {
	for at := place(key); k.table[at] != 0; at = (at + 1) % uint(len(k.table)) {
		if slot := int(k.table[at]) - 1; k.keys[slot] == key {
			return slot
		}
	}
	return -1
}

// filter rules most keys out that are not in a set, by length and first letter.
type filter struct {
	lengths uint64      // bit n%64: there is a key of n bytes
	first   [256]uint64 // the same of the keys that begin with a letter
}

func (f *filter) add(key string) {
	if key != "" {
		f.lengths |= 1 << (len(key) & 63)
		f.first[key[0]] |= 1 << (len(key) & 63)
	}
}

func (f *filter) may(key string) bool {
	bit := uint64(1) << (len(key) & 63)
	return f.lengths&bit != 0 && key != "" && f.first[key[0]]&bit != 0
}

func place(key string) uint {
	n := uint(len(key))
	if n == 0 {
		return 0
	}
	h := n*7 + uint(key[n-1])*31 + uint(key[n/2])*131 + uint(key[n*3/4])*17
	return h % (4 * maxSlots)
}
