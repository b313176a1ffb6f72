// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"strconv"
	"strings"
)

// Weave makes a tree of attributes, by the dots in their keys. A key on the path of another (`rl.reward` beside `rl.reward.mean`) would be
// a leaf and a branch: the span is rejected, and for a resource the request. The leaf moves below itself: `rl.reward._value`.
const leafPart = "._value"

// repeatedPart ends the key of a value that another value of the same key would overwrite.
const repeatedPart = "_repeated"

// settled returns list with keys that differ and do not clash.
func settled(list []attr, n *Counts) []attr {
	if !clashes(list) {
		return list
	}
	return resolved(repeated(list, n), n)
}

// resolved returns list without conflicts. The names it gives depend on the set of keys only, not on their order. Keys in list differ.
func resolved(list []attr, n *Counts) []attr {
	keys := make(map[string]bool, len(list))
	for _, a := range list {
		keys[a.key] = true
	}
	branches := make(map[string]bool)
	for _, a := range list {
		for path := range paths(a.key) {
			branches[path] = true
		}
	}
	for i, a := range list {
		if branches[a.key] {
			n[KeyConflict]++
			list[i].key = free(a.key+leafPart, func(key string) bool { return keys[key] || branches[key] })
		}
	}
	return list
}

// paths yields what stands before each dot of key.
func paths(key string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := 0; i < len(key); i++ {
			if key[i] == '.' && !yield(key[:i]) {
				return
			}
		}
	}
}

// free returns key, or key with the lowest number from 2 on that makes it a key that is not taken.
func free(key string, taken func(string) bool) string {
	free, _ := freeFrom(key, 1, taken)
	return free
}

// freeFrom is free for numbers from i on, and returns the number after the one it took.
func freeFrom(key string, i int, taken func(string) bool) (free string, next int) {
	for free = key; ; i++ {
		if i > 1 {
			free = key + strconv.Itoa(i)
		}
		if !taken(free) {
			return free, i + 1
		}
	}
}

// repeated gives each value its own key. The last one of a key keeps it, as in Weave; one that says the same is left out.
func repeated(list []attr, n *Counts) []attr {
	last := make(map[string]int, len(list))
	for i, a := range list {
		last[a.key] = i
	}
	if len(last) == len(list) {
		return list
	}
	out := list[:0]
	next := make(map[string]int) // number to try for a key
	for i, a := range list {
		if keeper := last[a.key]; keeper != i {
			n[RepeatedKey]++
			if list[keeper].val.Equal(a.val) {
				continue
			}
			key := a.key
			a.key, next[key] = freeFrom(key+repeatedPart, max(next[key], 1), func(key string) bool { _, taken := last[key]; return taken })
			last[a.key] = i
		}
		out = append(out, a)
	}
	return out
}

// mask is a set of keys that may err: a key that it does not have is not in the set.
type mask [16]uint64

// bit is the place of a key in a mask.
type bit uint32

func keyBit(key string) bit {
	n := uint32(len(key))
	if n == 0 {
		return 0
	}
	h := uint32(key[0]) | uint32(key[n-1])<<8 | uint32(key[n/2])<<16 | n<<24
	return bit(h * 0x9E3779B1 >> 22)
}

func (m *mask) add(b bit)      { m[b>>6] |= 1 << (b & 63) }
func (m *mask) has(b bit) bool { return m[b>>6]&(1<<(b&63)) != 0 }

// maxLinear bounds the lists that are searched one by one. Longer ones are always taken for clashing: repairing them is linear.
const maxLinear = 64

// clashes tells whether a key of list is repeated or on the path of another.
func clashes(list []attr) bool {
	if len(list) > maxLinear {
		return true
	}
	var m mask
	for i := range list {
		b := keyBit(list[i].key)
		if m.has(b) && find(list[:i], list[i].key) >= 0 {
			return true
		}
		m.add(b)
	}
	return onPath(list, &m, nil)
}

// keyset finds keys of a list, however long that is.
type keyset struct {
	list []attr
	set  map[string]bool // nil for a short list
}

func newKeyset(list []attr) keyset {
	k := keyset{list: list}
	if len(list) > maxLinear {
		k.set = make(map[string]bool, len(list))
		for _, a := range list {
			k.set[a.key] = true
		}
	}
	return k
}

// hasMoved tells whether the list has key, also if resolved has moved it.
func (k keyset) hasMoved(key string) bool {
	if k.set == nil {
		return findMoved(k.list, key) >= 0
	}
	return k.set[key] || k.set[key+leafPart]
}

// onPath tells whether a key of list, all of which are in m, or of t, which may be nil, is on the path of a key of list.
func onPath(list []attr, m *mask, t *tail) bool {
	for i := range list {
		for key, at := list[i].key, 0; ; at++ {
			next := strings.IndexByte(key[at:], '.')
			if next < 0 {
				break
			}
			at += next
			path := key[:at]
			if b := keyBit(path); m.has(b) && find(list, path) >= 0 || t != nil && t.keys.has(b) && find(t.attrs, path) >= 0 {
				return true
			}
		}
	}
	return false
}
