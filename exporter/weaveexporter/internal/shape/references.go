// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// A text that begins with weave:/// or weave-trace-internal:/// is a reference to an object of Weave, and so is one in JSON text, and in JSON text in that. In
// attributes of a span Weave looks it up, and one to another project, or to none, fails the request. Elsewhere it is stored as it is, and no list of the project's
// calls can be made any more (weave/shared/trace_server_converter.py, Weave 0.53.12). Such texts get undecodable before them; references
// to the span's own project stay in its attributes, where they lead somewhere.
const (
	reference         = "weave:///"
	internalReference = "weave-trace-internal:///"

	// maxJSONInJSON is more than the levels that Weave looks into.
	maxJSONInJSON = 10
)

// ownReference is the beginning of references to a project. Empty: such references are not told apart, for a name so long that a cut text may end
// within it.
func ownReference(t Target) string {
	if own := reference + t.String() + "/"; textCost(own) < pieceFloor/2 {
		return own
	}
	return ""
}

// withoutReferences makes texts of references but those that begin with own; of none if own is empty. It works in place.
func withoutReferences(list []attr, own string, n *Counts) []attr {
	for i := range list {
		if a := &list[i]; refersIn(a.val, own) {
			a.val = withoutReference(a.val, own, n)
		}
	}
	return list
}

// refersIn tells whether Weave would take a text in v for a reference.
func refersIn(v pcommon.Value, own string) bool {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return refers(v.Str(), own)
	case pcommon.ValueTypeSlice:
		for _, item := range v.Slice().All() {
			if refersIn(item, own) {
				return true
			}
		}
	case pcommon.ValueTypeMap:
		for _, item := range v.Map().All() {
			if refersIn(item, own) {
				return true
			}
		}
	}
	return false
}

func withoutReference(v pcommon.Value, own string, n *Counts) pcommon.Value {
	out := pcommon.NewValueEmpty()
	v.CopyTo(out)
	makeText(out, own, n)
	return out
}

func makeText(v pcommon.Value, own string, n *Counts) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		v.SetStr(plainText(v.Str(), own, n))
	case pcommon.ValueTypeSlice:
		for _, item := range v.Slice().All() {
			makeText(item, own, n)
		}
	case pcommon.ValueTypeMap:
		for _, item := range v.Map().All() {
			makeText(item, own, n)
		}
	}
}

// plainText returns s so that Weave takes it for no reference.
func plainText(s, own string, n *Counts) string {
	if !refers(s, own) {
		return s
	}
	n[Reference]++
	return undecodable + s
}

// refers tells whether Weave would take s, or a text in its JSON, for a reference that does not begin with own.
func refers(s, own string) bool {
	switch {
	case len(s) < len(reference):
		return false
	case isReference(s):
		return !isOwn(s, own)
	case mentionsReference(s) && !decoded(s): // Weave would write JSON again without the blanks before it, which keep it from being decoded.
		return refersWithin(s, "", 0, 0)
	case mentionsReference(s):
		return refersWithin(s, own, 0, 0)
	case decoded(s) && hidesLetters(s): // Weave decodes it, but has looked for references before.
		return refersWithin(s, "", 0, 0)
	}
	return false
}

func isReference(s string) bool {
	return strings.HasPrefix(s, reference) || strings.HasPrefix(s, internalReference)
}

func isOwn(s, own string) bool { return own != "" && strings.HasPrefix(s, own) }

func mentionsReference(s string) bool {
	return strings.Contains(s, ":///") && (strings.Contains(s, reference) || strings.Contains(s, internalReference))
}

// hidesLetters tells whether s has escapes that may stand for what a reference begins with: of a slash, a colon, a hyphen or a letter.
func hidesLetters(s string) bool {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 == len(s) {
			return false
		}
		if s = s[i+1:]; s[0] == '/' || strings.HasPrefix(s, "u00") && len(s) > 3 && '2' <= s[3] && s[3] <= '7' {
			return true
		}
		s = s[1:]
	}
}

// refersWithin is refers for what s holds if it is JSON, in JSON text of that level and depth. Where Weave could not look for the depth, it fails.
func refersWithin(s, own string, level, depth int) bool {
	if !startsAsJSON(s) || level == maxJSONInJSON {
		return false
	}
	if depth += nesting(s, maxJSONDeep); depth > maxJSONDeep {
		return true
	}
	if !isJSON(s) {
		return false
	}
	for quoted := range quotedValues(s) {
		var text string
		if json.Unmarshal([]byte(quoted), &text) != nil {
			continue
		}
		if isReference(text) && !isOwn(text, own) || mentionsReference(text) && refersWithin(text, own, level+1, depth) {
			return true
		}
	}
	return false
}
