// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Weave makes an object of every span name, and names it by what is left of the name: letters, digits, `_`, `.` and `-`, fewer than 128. It
// refuses the request if nothing is left, older servers for one other character.
const (
	maxNameRunes    = 127
	maxAgentRunes   = 255
	maxDisplayRunes = 1000
	shortenedRunes  = 1024 // Weave shortens display names from here on
	namelessSpan    = "unnamed"
	number          = "N"
)

// opName returns the name that Weave gets for name, which is UTF-8.
func (s *Shaper) opName(name string, n *Counts) string {
	out := cleanName(name)
	if out != name {
		n[SpanName]++
	}
	if s.opts.TemplateNames {
		if templated := templateName(out); templated != out {
			n[NameTemplate]++
			out = templated
		}
	}
	return out
}

// soundName tells whether opName would leave name alone; it may say no of a name that has digits.
func (s *Shaper) soundName(name string) bool {
	if len(name) > maxNameRunes {
		return false
	}
	letters := false
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			letters = true
		case isDigit(c) && !s.opts.TemplateNames, isSeparator(rune(c)):
		default:
			return false
		}
	}
	return letters
}

func isSeparator(c rune) bool { return c == '_' || c == '.' || c == '-' }

// cleanName replaces each run of other characters by one `_`, and what is too long by a hash.
func cleanName(name string) string {
	var b strings.Builder
	letters, gap := false, false
	for _, c := range name {
		if !isSeparator(c) && !isWord(c) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		letters = letters || !isSeparator(c)
		b.WriteRune(c)
	}
	if !letters {
		return namelessSpan
	}
	out := b.String()
	if utf8.RuneCountInString(out) <= maxNameRunes {
		return out
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return cutRunes(out, maxNameRunes-9) + fmt.Sprintf("_%08x", h.Sum32())
}

// isWord tells whether c is a letter or a digit in Weave's names. The capital dotted I is none: lower-cased it has a mark beside it.
func isWord(c rune) bool { return (unicode.IsLetter(c) || unicode.IsDigit(c)) && c != 'İ' }

// cutRunes returns the first n runes of s.
func cutRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// templateName replaces the parts of a clean name that are numbers, or as good as numbers, by N.
func templateName(name string) string {
	var b strings.Builder
	for name != "" {
		end := strings.IndexFunc(name, isSeparator)
		if end < 0 {
			end = len(name)
		}
		if part := name[:end]; isNumber(part) {
			b.WriteString(number)
		} else {
			b.WriteString(part)
		}
		if end < len(name) {
			b.WriteByte(name[end])
			end++
		}
		name = name[end:]
	}
	return b.String()
}

// isNumber tells whether part is of decimal digits, or of eight or more hexadecimal ones, as in a uuid.
func isNumber(part string) bool {
	digits := 0
	for i := 0; i < len(part); i++ {
		switch c := part[i]; {
		case isDigit(c):
			digits++
		case len(part) < 8 || !('a' <= c|0x20 && c|0x20 <= 'f'):
			return false
		}
	}
	return digits > 0
}
