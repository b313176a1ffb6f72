// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// Weave replaces the columns of a row that is too large by a mark, and says 2xx. A row holds what a span says as JSON, its attributes twice. So a span has
// a budget in bytes of JSON, and what is over it is cut: the longest values first, all to the same length, each with an attribute that
// says how many bytes it had. Only if there are too many values for that, whole events, links and attributes go, from the end.

const (
	pieceFloor   = 256  // bytes of JSON that a value keeps
	alwaysKept   = 2048 // bytes of JSON up to which the keys that link a span are not touched
	itemCost     = 16   // of what JSON or protobuf put around a key and a value
	markerCost   = 64   // of a marker besides its key
	budgetSpare  = 1024 // for keys that move
	exponentCost = 20   // of the digits that an exponent stands for
	worstCost    = 6    // bytes of JSON for one of protobuf
	droppedCount = "lenscol.dropped."
)

// Keys that say where a span belongs are not dropped, and not cut unless they are very long.
var (
	keptOfSpan = map[string]bool{
		runKey: true, originalPrefix + runKey: true, stepKey: true, stepEndKey: true, threadKey: true, turnKey: true, displayNameKey: true,
		conversationKey: true, sessionKey: true, agentNameKey: true, agentIDKey: true, operationKey: true,
	}
	keptOfResource = map[string]bool{semconv.WandbEntity: true, semconv.WandbProject: true}
	keptOfNone     = map[string]bool(nil)
)

// textCost is the size of s in JSON as Python writes it, without its quotes.
func textCost(s string) (n int) {
	for _, c := range s {
		n += runeCost(c)
	}
	return n
}

func runeCost(c rune) int {
	switch {
	case c >= 0x10000:
		return 12
	case c < ' ' || c >= 0x7f:
		return 6
	case c == '"' || c == '\\':
		return 2
	}
	return 1
}

// valueCost is the size of v in JSON, or in protobuf if that is more.
func valueCost(v pcommon.Value) int {
	n := itemCost
	switch v.Type() {
	case pcommon.ValueTypeStr:
		n += textCost(v.Str())
		if decoded(v.Str()) {
			n += rewritingCost(v.Str())
		}
	case pcommon.ValueTypeBytes:
		n += v.Bytes().Len()/3*4 + 4
	case pcommon.ValueTypeSlice:
		for _, item := range v.Slice().All() {
			n += valueCost(item)
		}
	case pcommon.ValueTypeMap:
		for key, item := range v.Map().All() {
			n += textCost(key) + valueCost(item)
		}
	default:
		n += 25 // of a float; the longest scalar
	}
	return n
}

// rewritingCost bounds how much longer JSON text is when Weave has decoded it and Python writes it again: a blank behind each comma and colon, and
// digits for an exponent (1e15).
func rewritingCost(s string) (n int) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ',', ':':
			n++
		case 'e', 'E':
			if i > 0 && (isDigit(s[i-1]) || s[i-1] == '.') {
				n += exponentCost
			}
		case '"':
			i = quoteEnd(s, i) - 1
		}
	}
	return n
}

func listCost(list []attr) (n int) {
	for _, a := range list {
		n += textCost(a.key) + valueCost(a.val)
	}
	return n
}

// piece is something that can be cut.
type piece struct {
	label string  // of its marker
	text  *string // or
	attr  *attr
	cost  int
}

// atMost is the cost of p cut to level, with its marker.
func (p *piece) atMost(level int) int {
	return min(p.cost, level+markerCost+len(truncatedPrefix)+textCost(p.label))
}

// parcel is what has one budget: pieces, and what cannot be cut.
type parcel struct {
	fixed  int
	pieces []piece
}

func (p *parcel) addText(label string, s *string) {
	p.pieces = append(p.pieces, piece{label: label, text: s, cost: itemCost + textCost(*s)})
}

func (p *parcel) addAttrs(label string, list []attr, kept map[string]bool) {
	for i := range list {
		a := &list[i]
		cost := valueCost(a.val)
		p.fixed += textCost(a.key)
		if kept[a.key] && cost <= alwaysKept {
			p.fixed += cost
			continue
		}
		p.pieces = append(p.pieces, piece{label: label + a.key, attr: a, cost: cost})
	}
}

// at is the cost of p with its pieces cut to level.
func (p *parcel) at(level int) int {
	n := p.fixed
	for i := range p.pieces {
		n += p.pieces[i].atMost(level)
	}
	return n
}

// cut cuts the pieces of p so that they fit into limit, and returns their markers. fits is false if they cannot be made to.
func (p *parcel) cut(limit int, n *Counts) (markers []attr, fits bool) {
	if p.at(pieceFloor) > limit {
		return nil, false
	}
	low, high := pieceFloor, limit // the largest level that fits is in [low, high)
	for low+1 < high {
		if middle := (low + high) / 2; p.at(middle) <= limit {
			low = middle
		} else {
			high = middle
		}
	}
	for i := range p.pieces {
		if c := &p.pieces[i]; c.cost > c.atMost(low) {
			n[Truncated]++
			markers = append(markers, integer(cleanKey(truncatedPrefix+c.label, n), c.cutTo(low)))
		}
	}
	return markers, true
}

// cutTo cuts p to level and returns how many bytes it had.
func (p *piece) cutTo(level int) (had int64) {
	level -= itemCost
	if p.text != nil {
		had = int64(len(*p.text))
		*p.text = cutPlain(*p.text, level)
		return had
	}
	v := p.attr.val
	if v.Type() == pcommon.ValueTypeBytes {
		raw := v.Bytes().AsRaw()
		p.attr.val = pcommon.NewValueBytes()
		p.attr.val.Bytes().FromRaw(raw[:max(0, level-4)/4*3])
		return int64(len(raw))
	}
	s := asText(v)
	p.attr.val = pcommon.NewValueStr(cutPlain(s, level))
	return int64(len(s))
}

// cutPlain is cutCost for what must not be JSON: Weave would decode it, which makes it longer, and may find references that s does not hold.
func cutPlain(s string, limit int) string {
	s = cutCost(s, limit)
	if isJSON(s) {
		s = strings.TrimRight(s, jsonBlanks)
		s = cutText(s, len(s)-1)
	}
	return s
}

// cutCost returns the longest beginning of s, of whole runes, whose cost is at most limit.
func cutCost(s string, limit int) string {
	for i, c := range s {
		if limit -= runeCost(c); limit < 0 {
			return s[:i]
		}
	}
	return s
}

// budgeted cuts a list of attributes to limit. It works in place.
func budgeted(list []attr, limit int, kept map[string]bool, n *Counts) []attr {
	if listCost(list) <= limit {
		return list
	}
	dropped := 0
	for {
		var p parcel
		p.addAttrs("", list, kept)
		if markers, fits := p.cut(limit-budgetSpare, n); fits {
			if dropped > 0 {
				n[Truncated]++
				markers = append(markers, integer(droppedCount+"attributes", int64(dropped)))
			}
			return settled(append(list, markers...), n)
		}
		before := len(list)
		list = withoutLast(list, len(list)/2, kept)
		dropped += before - len(list)
		if len(list) == before {
			return list
		}
	}
}

// withoutLast leaves out the attributes from place i on, but those that are kept.
func withoutLast(list []attr, i int, kept map[string]bool) []attr {
	out := list[:i:i]
	for _, a := range list[i:] {
		if kept[a.key] {
			out = append(out, a)
		}
	}
	return out
}

// fit cuts s so that it and its resource are within the budget of a span. It returns false if that cannot be.
func (sh *Shaper) fit(s *span, resourceCost int, n *Counts) bool {
	limit := sh.spanBytes - resourceCost
	if s.cost() <= limit {
		return true
	}
	var droppedAttrs, droppedEvents, droppedLinks int
	for {
		p := s.parcel()
		if markers, fits := p.cut(limit-budgetSpare, n); fits {
			for _, d := range []struct {
				key string
				n   int
			}{{"attributes", droppedAttrs}, {"events", droppedEvents}, {"links", droppedLinks}} {
				if d.n > 0 {
					n[Truncated]++
					markers = append(markers, integer(droppedCount+d.key, int64(d.n)))
				}
			}
			s.attrs = settled(append(s.attrs, markers...), n)
			return true
		}
		switch {
		case len(s.events) > 0:
			droppedEvents += half(&s.events, &s.droppedEvents)
		case len(s.links) > 0:
			droppedLinks += half(&s.links, &s.droppedLinks)
		default:
			before := len(s.attrs)
			s.attrs = withoutLast(s.attrs, before/2, keptOfSpan)
			if len(s.attrs) == before {
				return false
			}
			droppedAttrs += before - len(s.attrs)
			s.droppedAttrs += uint32(before - len(s.attrs))
		}
	}
}

// half leaves the first half of list, and returns how many it took; it adds them to OTLP's own count.
func half[T any](list *[]T, count *uint32) int {
	kept := len(*list) / 2
	taken := len(*list) - kept
	*list = (*list)[:kept]
	*count += uint32(taken)
	return taken
}

// parcel is all of s.
func (s *span) parcel() *parcel {
	p := &parcel{fixed: 16*itemCost + textCost(s.name)}
	p.addText("status.message", &s.message)
	p.addText("trace_state", &s.state)
	p.addAttrs("", s.attrs, keptOfSpan)
	for i := range s.events {
		e := &s.events[i]
		p.fixed += 2 * itemCost
		label := "event." + strconv.Itoa(i)
		p.addText(label+".name", &e.name)
		p.addAttrs(label+".attributes.", e.attrs, keptOfNone)
	}
	for i := range s.links {
		l := &s.links[i]
		p.fixed += 5 * itemCost
		label := "link." + strconv.Itoa(i)
		p.addText(label+".trace_state", &l.state)
		p.addAttrs(label+".attributes.", l.attrs, keptOfNone)
	}
	return p
}

// cost is what a row of Weave needs for s, its attributes counted once.
func (s *span) cost() int { return s.parcel().at(int(^uint(0) >> 2)) }
