// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"slices"
	"strings"
)

// Weave stores a scope nowhere, and a resource where no filter looks: what is promoted stands on the span. As soon as a span has a key that Weave reads
// (hides), it filters on no other attribute of the span, but always on what is below wandb.attributes: such spans have it there as well.

const (
	scopeNameKey    = "otel.scope.name"
	scopeVersionKey = "otel.scope.version"
)

// promotion is the promote of a config.
type promotion struct {
	keys     []string // in the order of the config
	exact    map[string]bool
	prefixes []string // of the patterns, with their last dot
}

func newPromotion(list []string) promotion {
	p := promotion{exact: make(map[string]bool, len(list))}
	for _, key := range list {
		if prefix, ok := strings.CutSuffix(key, "*"); ok {
			prefix = strings.TrimSuffix(prefix, ".") + "."
			p.prefixes = append(p.prefixes, prefix)
		} else if !p.exact[key] {
			p.keys = append(p.keys, key)
			p.exact[key] = true
		}
	}
	return p
}

// wants tells whether an attribute of a span is put below wandb.attributes.
func (p *promotion) wants(key string) bool {
	for _, prefix := range p.prefixes {
		if strings.HasPrefix(key, prefix) || key == prefix[:len(prefix)-1] { // that one moves below the prefix if it clashes
			return root(key) != "wandb"
		}
	}
	return p.exact[key]
}

// above are the attributes that spans get from their scope or, where that has none, their resource.
func (p *promotion) above(scopeAttrs, resourceAttrs []attr, name, version string) (list []attr) {
	for _, key := range p.keys {
		switch {
		case key == scopeNameKey && name != "":
			list = append(list, text(key, name))
		case key == scopeVersionKey && version != "":
			list = append(list, text(key, version))
		default:
			if i := find(scopeAttrs, key); i >= 0 {
				list = append(list, scopeAttrs[i])
			} else if i := find(resourceAttrs, key); i >= 0 {
				list = append(list, resourceAttrs[i])
			}
		}
	}
	return list
}

// under is what stands below wandb.attributes for a.
func under(a attr, n *Counts) attr { return attr{attributesUnder + a.key, plainly(a.val, n)} }

// tail is what every span of a scope gets at the end of its attributes, encoded once.
type tail struct {
	attrs  []attr
	bytes  []byte
	keys   mask
	paths  []string // of the keys, each once
	copies bool     // it has copies below wandb.attributes, and the span's own attributes get them too
	turns  bool     // spans are in a thread
	apart  bool     // the attributes clash among themselves: they are merged into each span
}

func newTail(promoted []attr, run, thread string, copies bool) *tail {
	t := &tail{copies: copies, turns: thread != ""}
	var n Counts // counted as the resource was repaired
	for _, a := range cleaned(promoted, &n) {
		t.attrs = append(t.attrs, a)
		if copies {
			t.attrs = append(t.attrs, under(a, &n))
		}
	}
	if run != "" {
		t.attrs = append(t.attrs, text(runKey, run))
	}
	if thread != "" {
		t.attrs = append(t.attrs, text(threadKey, thread))
	}
	t.apart = clashes(t.attrs)
	seen := make(map[string]bool)
	for _, a := range t.attrs {
		t.keys.add(keyBit(a.key))
		for path := range paths(a.key) {
			if !seen[path] {
				seen[path] = true
				t.paths = append(t.paths, path)
			}
		}
	}
	t.bytes = appendAttrs(nil, tagSpanAttr, t.attrs)
	return t
}

// below tells whether a key of t is below one of list, all of which are in m.
func (t *tail) below(list []attr, m *mask) bool {
	for _, path := range t.paths {
		if m.has(keyBit(path)) && find(list, path) >= 0 {
			return true
		}
	}
	return false
}

// merged returns list with what promotion adds to it: the copies below wandb.attributes, and what t has that list has not, without skip.
func (p *promotion) merged(list []attr, t *tail, n *Counts, skip ...string) []attr {
	has := newKeyset(list)
	out := make([]attr, 0, len(list)+len(t.attrs)+8)
	for _, a := range list {
		out = append(out, a)
		if t.copies && p.wants(a.key) && !has.hasMoved(attributesUnder+a.key) {
			out = append(out, under(a, n))
		}
	}
	own := newKeyset(out)
	for _, a := range t.attrs {
		if !own.hasMoved(a.key) && !slices.Contains(skip, a.key) {
			out = append(out, a)
		}
	}
	return out
}
