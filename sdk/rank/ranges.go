// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"fmt"
	"strings"
)

// Ranks exports from the listed ranks: entries separated by commas, each a rank ("0"), a range with both ends ("8-15"),
// a range in steps ("0-1023/64": every 64th), or a rank counted from the end of the world ("-1": the last).
func Ranks(list string) (Strategy, error) {
	var s ranks
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if back, ok := strings.CutPrefix(entry, "-"); ok {
			n, ok := Parse(back)
			if !ok || n == 0 {
				return nil, entryError(list, entry)
			}
			s.fromEnd = append(s.fromEnd, n)
			continue
		}
		r, ok := parseSpan(entry)
		if !ok {
			return nil, entryError(list, entry)
		}
		s.spans = append(s.spans, r)
	}
	return s, nil
}

func entryError(list, entry string) error {
	return fmt.Errorf("ranks: %q of %q is none of a rank (3), a range (8-15), a range in steps (0-1023/64) and a rank from the end (-1)", entry, list)
}

// ranks holds the list's entries; those from the end as how far from it, 1 for the last.
type ranks struct {
	spans   []span
	fromEnd []int
}

// span is every step-th rank from first to last, both included.
type span struct{ first, last, step int }

func parseSpan(entry string) (span, bool) {
	whole, stepText, stepped := strings.Cut(entry, "/")
	firstText, lastText, ranged := strings.Cut(whole, "-")
	first, ok := Parse(firstText)
	r := span{first: first, last: first, step: 1}
	if !ok || stepped && !ranged {
		return r, false
	}
	if ranged {
		if r.last, ok = Parse(lastText); !ok || r.last < r.first {
			return r, false
		}
	}
	if stepped {
		if r.step, ok = Parse(stepText); !ok || r.step == 0 {
			return r, false
		}
	}
	return r, true
}

func (s ranks) Exports(id Identity) bool {
	if s.inSpan(id.Rank) {
		return true
	}
	if !id.knowsWorld() {
		return false
	}
	for _, back := range s.fromEnd {
		if id.Rank == id.WorldSize-back {
			return true
		}
	}
	return false
}

// Decides is true for a rank that is listed as such: no world size changes that.
func (s ranks) Decides(id Identity) bool {
	return len(s.fromEnd) == 0 || id.knowsWorld() || s.inSpan(id.Rank)
}

func (s ranks) inSpan(rank int) bool {
	for _, r := range s.spans {
		if rank >= r.first && rank <= r.last && (rank-r.first)%r.step == 0 {
			return true
		}
	}
	return false
}

// within refuses entries that no rank of a world of that size can match.
func (s ranks) within(worldSize int) error {
	for _, r := range s.spans {
		if r.last >= worldSize {
			return fmt.Errorf("ranks: %d is not below the world size %d", r.last, worldSize)
		}
	}
	for _, back := range s.fromEnd {
		if back > worldSize {
			return fmt.Errorf("ranks: -%d is beyond the world size %d", back, worldSize)
		}
	}
	return nil
}
