// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"regexp"
	"strings"
)

// displayTemplate is the display_name of a config, by words: `{name} {step} r{rank}` on a span without a step is "train_step r3".
type displayTemplate [][]templatePart

type templatePart struct {
	literal string
	field   string // name, step, rank or attr; empty for a literal
	key     string // of attr
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// parseTemplate splits a template at its placeholders. Its error names the one that is not known.
func parseTemplate(template string) (displayTemplate, error) {
	var out displayTemplate
	for _, word := range strings.Fields(template) {
		parts, err := parseWord(word)
		if err != nil {
			return nil, fmt.Errorf("display_name is %q: %w", template, err)
		}
		out = append(out, parts)
	}
	return out, nil
}

func parseWord(word string) ([]templatePart, error) {
	var parts []templatePart
	at := 0
	for _, found := range placeholder.FindAllStringIndex(word, -1) {
		if found[0] > at {
			parts = append(parts, templatePart{literal: word[at:found[0]]})
		}
		name := word[found[0]+1 : found[1]-1]
		field, key, _ := strings.Cut(name, ":")
		switch {
		case field == "attr" && key != "":
		case name == "name" || name == "step" || name == "rank":
		default:
			return nil, fmt.Errorf("{%s} is not known: use {name}, {step}, {rank} or {attr:KEY}", name)
		}
		parts = append(parts, templatePart{field: field, key: key})
		at = found[1]
	}
	if at < len(word) {
		parts = append(parts, templatePart{literal: word[at:]})
	}
	return parts, nil
}

// render fills the template in. value returns the text of a placeholder; a word with one that has none is left out.
func (t displayTemplate) render(value func(templatePart) (string, bool)) string {
	if len(t) == 0 {
		return ""
	}
	var words []string
	for _, parts := range t {
		var b strings.Builder
		whole := true
		for _, p := range parts {
			if p.field == "" {
				b.WriteString(p.literal)
				continue
			}
			text, ok := value(p)
			whole = whole && ok && text != ""
			b.WriteString(text)
		}
		if whole {
			words = append(words, b.String())
		}
	}
	return strings.Join(words, " ")
}

// displayText is what Weave gets for s as a display name: not so long that it is shortened, and nothing that it would decode.
func displayText(s string, n *Counts) string {
	if s = guarded(paired(s, n), n); decoded(s) {
		s = " " + s
	}
	return plainText(cutRunes(s, maxDisplayRunes), "", n)
}
