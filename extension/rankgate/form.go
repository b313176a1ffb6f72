// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"

import (
	"encoding/binary"

	"github.com/lenscol/lenscol/internal/runview"
)

// forms are what the last step spans looked like. The steps of a run are alike but for ids, times and numbers: one that has a
// known form needs no walk, neither to be checked nor to be read.
type forms [8]form

// of is where the form of spans of a size is kept. Another size in its place drives it out.
func (f *forms) of(size int) *form { return &f[uint(size)%uint(len(f))] }

// form is a span that is all plain and is a step, and which of its bits others of this form have as well: all but ids, times and the
// values of attributes. Of a varint the bits stay that say where it ends.
type form struct {
	size               int // bytes; 0: no form
	start, end, number int // where they stand
	words              [maxForm / 8]word
}

const maxForm = 256 // bytes

// word is 8 bytes of it. The last one ends where the span ends.
type word struct{ bits, mask uint64 }

// read reads a span of the form's size. It is false where that is no step, or one of another form.
func (f *form) read(span []byte) (step runview.Step, ok bool) {
	rest, last := span, &f.words[maxForm/8-1]
	differs := (binary.LittleEndian.Uint64(span[len(span)-8:]) ^ last.bits) & last.mask
	for i := range f.words[:maxForm/8-1] {
		if len(rest) < 8 {
			break
		}
		differs |= (binary.LittleEndian.Uint64(rest) ^ f.words[i].bits) & f.words[i].mask
		rest = rest[8:]
	}
	if differs != 0 {
		return step, false
	}
	number, _, _ := readVarint(span, f.number)
	step = runview.Step{
		Number: int64(number), Start: binary.LittleEndian.Uint64(span[f.start:]), End: binary.LittleEndian.Uint64(span[f.end:]),
	}
	return step, number <= runview.MaxStep
}

// learn makes it the form of a step span that is all plain, or none where a number is no integer. Of a field that is there several times the
// last holds, of an attribute the first.
func (f *form) learn(span []byte) {
	f.size, f.start, f.end, f.number = 0, 0, 0, 0
	if len(span) >= maxForm {
		return
	}
	var mask [maxForm]byte
	for i := range span {
		mask[i] = 0xff
	}
	key := runview.NoKey
	for pos := 0; pos < len(span); {
		number, content, next := fieldAt(span, pos)
		switch number {
		case 1, 2, 4: // ids
			clear(mask[content:next])
		case fieldSpanStart:
			f.start = content
			clear(mask[content:next])
		case fieldSpanEnd:
			f.end = content
			clear(mask[content:next])
		case fieldSpanAttribute:
			k, kind, value, behind := plainAttribute(span, content)
			clear(mask[value:behind])
			if kind == fieldInt || kind == fieldBool {
				for i := value; i < behind; i++ {
					mask[i] = 0x80
				}
			}
			if k == runview.NoKey {
				break
			}
			if kind != fieldInt {
				return
			}
			if k < key {
				key, f.number = k, value
			}
		}
		pos = next
	}
	if f.start == 0 || f.end == 0 || f.number == 0 {
		return
	}
	f.size = len(span)
	wordAt := func(at int) word {
		return word{binary.LittleEndian.Uint64(span[at:]), binary.LittleEndian.Uint64(mask[at:])}
	}
	for i := range len(span) / 8 {
		f.words[i] = wordAt(i * 8)
	}
	f.words[len(f.words)-1] = wordAt(len(span) - 8)
}

// plainAttribute reads an attribute that isPlain: which key it is, and where what kind of value stands.
func plainAttribute(span []byte, at int) (key int, kind int32, value, behind int) {
	for range 2 {
		number, content, next := fieldAt(span, at)
		if number == fieldKey {
			key = runview.StepKey(span[content:next])
		} else {
			kind, value, behind = fieldAt(span, content)
		}
		at = next
	}
	return key, kind, value, behind
}
