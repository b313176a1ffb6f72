// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package redact // import "github.com/lenscol/lenscol/internal/redact"

import (
	"regexp/syntax"
	"strings"
)

// maxPatterns is how many regular expressions one scan can tell apart.
const maxPatterns = 64

// scanner finds which patterns can match a text at all: those that need no literal, and those of which one of the literals
// that they need is there. It looks at every pair of bytes once.
//
// All bytes are compared with their bit 0x20 set, which makes letters lower-case. Other bytes that meet that way cost a
// regular expression that finds nothing.
type scanner struct {
	patterns []pattern
	always   uint64 // patterns that need no literal
	shortest int    // no text below this has a literal
	pairs    [1 << 16 / 64]uint64
	literals map[uint16][]literal // by the pair that is looked for
}

type literal struct {
	text     string // folded
	at       int    // where the pair begins in it
	patterns uint64
}

const fold = 0x20

// newScanner takes for each pattern the literals of which every match has one; none means that there are no such.
func newScanner(patterns []pattern, literals [][]string) scanner {
	s := scanner{patterns: patterns, literals: map[uint16][]literal{}, shortest: 1 << 30}
	for i, texts := range literals {
		if len(texts) == 0 {
			s.always |= 1 << i
			s.shortest = 0
		}
		for _, text := range texts {
			s.add(text, 1<<i)
			s.shortest = min(s.shortest, len(text))
		}
	}
	return s
}

func (s *scanner) add(text string, pattern uint64) {
	folded := []byte(text)
	for i := range folded {
		folded[i] |= fold
	}
	if len(folded) == 1 { // The pairs that end with it: of the first byte of a text, scan takes a space to stand before it.
		for before := range 256 {
			s.addPair(uint16(before|fold)<<8|uint16(folded[0]), literal{text: string(folded), at: -1, patterns: pattern})
		}
		return
	}
	at := rarest(folded)
	s.addPair(uint16(folded[at])<<8|uint16(folded[at+1]), literal{text: string(folded), at: at, patterns: pattern})
}

func (s *scanner) addPair(pair uint16, l literal) {
	s.pairs[pair>>6] |= 1 << (pair & 63)
	for i, have := range s.literals[pair] {
		if have.text == l.text && have.at == l.at {
			s.literals[pair][i].patterns |= l.patterns
			return
		}
	}
	s.literals[pair] = append(s.literals[pair], l)
}

// scan returns the patterns that can match text, as bits.
func (s *scanner) scan(text string) uint64 {
	if len(text) < s.shortest || len(s.patterns) == 0 {
		return 0
	}
	found := s.always
	if len(s.literals) == 0 {
		return found
	}
	pair := uint16(fold)
	for i := 0; i < len(text); i++ {
		pair = pair<<8 | uint16(text[i]|fold)
		if s.pairs[pair>>6]&(1<<(pair&63)) != 0 {
			found |= s.confirm(text, i-1, pair)
		}
	}
	return found
}

// confirm returns the patterns of the literals that have this pair and stand around place i of the text.
func (s *scanner) confirm(text string, i int, pair uint16) (found uint64) {
	for _, l := range s.literals[pair] {
		if from := i - l.at; from >= 0 && from+len(l.text) <= len(text) && equalFold(text[from:from+len(l.text)], l.text) {
			found |= l.patterns
		}
	}
	return found
}

func equalFold(text, folded string) bool {
	for i := range len(text) {
		if text[i]|fold != folded[i] {
			return false
		}
	}
	return true
}

// rarest returns where the pair stands that is rarest in names and English text.
func rarest(folded []byte) (at int) {
	const fromCommon = " etaoinsrhldcumfpgwybv0123456789./-\x7fkxjqz" // \x7f is an underscore, folded
	rank := func(b byte) int {
		if i := strings.IndexByte(fromCommon, b); i >= 0 {
			return i
		}
		return len(fromCommon)
	}
	best := -1
	for i := range len(folded) - 1 {
		if r := rank(folded[i]) + rank(folded[i+1]); r > best {
			at, best = i, r
		}
	}
	return at
}

// required returns texts of which every match of the expression has one, folded or not; none where there are no such texts.
func required(expression string) []string {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	return requiredOf(re.Simplify())
}

const maxAlternatives = 32

func requiredOf(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return literalOf(re)
	case syntax.OpCapture, syntax.OpPlus:
		return requiredOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredOf(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if texts := requiredOf(sub); len(texts) > 0 && (best == nil || shortest(texts) > shortest(best)) {
				best = texts
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			texts := requiredOf(sub)
			if len(texts) == 0 || len(all)+len(texts) > maxAlternatives {
				return nil
			}
			all = append(all, texts...)
		}
		return all
	}
	return nil
}

// literalOf is the text of a literal. One that matches in any case does so for all of Unicode (K is also the Kelvin sign, s the
// long s), so of it only the longest part counts that has no such letters and no text beyond ASCII.
func literalOf(re *syntax.Regexp) []string {
	if re.Flags&syntax.FoldCase == 0 {
		return []string{string(re.Rune)}
	}
	parts := strings.FieldsFunc(string(re.Rune), func(c rune) bool { return c > 0x7e || strings.ContainsRune("kKsS", c) })
	longest := ""
	for _, part := range parts {
		if len(part) > len(longest) {
			longest = part
		}
	}
	if longest == "" {
		return nil
	}
	return []string{longest}
}

func shortest(texts []string) int {
	n := len(texts[0])
	for _, text := range texts {
		n = min(n, len(text))
	}
	return n
}
