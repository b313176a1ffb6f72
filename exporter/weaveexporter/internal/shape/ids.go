// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Weave's key of a call is the span id alone: of two spans with the same, one overwrites the other. It happens when a framework seeds the generator of
// ids with the same number on every rank. ids remembers who had an id first. Whoever comes later gets another one, made of the trace, the
// process and the id, so that it is the same in every batch; whoever names the span as parent or in a link says the new one.
//
// Spans are children before they are parents: a child of another trace claims the id of its parent for that trace.
// Within one trace a parent may as well be of another process, so there the parent has to be in the same batch or an earlier one.
type ids struct {
	mu         sync.Mutex
	young, old map[uint64]owner
	generation int
	rewrites   bool
}

// generationSize bounds the memory: two generations of it, 56 bytes an id. The older one is forgotten as the younger is full.
const generationSize = 1 << 16

// owner is whose an id is.
type owner struct {
	trace pcommon.TraceID
	who   uint64 // resource; 0: known by a reference only
	split bool   // another process had it too, in the same trace
}

func newIDs(mode string) *ids {
	if mode == DuplicatesOff {
		return nil
	}
	return &ids{young: make(map[uint64]owner), generation: generationSize, rewrites: mode == DuplicatesRewrite}
}

func (m *ids) get(id pcommon.SpanID, target uint64) (owner, uint64, bool) {
	key := binary.LittleEndian.Uint64(id[:]) ^ target
	if o, ok := m.young[key]; ok {
		return o, key, true
	}
	o, ok := m.old[key]
	if ok {
		m.put(key, o)
	}
	return o, key, ok
}

func (m *ids) put(key uint64, o owner) {
	if len(m.young) >= m.generation {
		m.old, m.young = m.young, make(map[uint64]owner, m.generation)
	}
	m.young[key] = o
}

// assign gives the entries of b their ids, and their parents'.
func (m *ids) assign(b *batch, n *Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b.entries {
		e := &b.entries[i]
		if !e.whole() || e.first >= 0 {
			continue
		}
		if id := m.claim(e.spanID, e.resource); id != e.id {
			n[DuplicateID]++
			if m.rewrites {
				e.newID = id
			}
		}
	}
	for i := range b.entries {
		e := &b.entries[i]
		if e.first >= 0 {
			e.newID = b.entries[e.first].newID
		}
		if e.whole() && !e.parent.IsEmpty() {
			e.newParent = m.refer(spanID{e.trace, e.parent}, e.resource)
		}
	}
}

// whole tells whether e is a span that is sent.
func (e *entry) whole() bool {
	return !e.trace.IsEmpty() && !e.id.IsEmpty() && e.resource.routable()
}

// claim returns the id of a span of a resource: its own, or another if that is another span's.
func (m *ids) claim(s spanID, r *resource) pcommon.SpanID {
	for {
		o, key, ok := m.get(s.id, r.targetHash)
		switch {
		case !ok || o.trace == s.trace && o.who == 0:
			m.put(key, owner{trace: s.trace, who: r.who, split: o.split})
			return s.id
		case o.trace == s.trace && o.who == r.who:
			return s.id
		case o.trace == s.trace:
			if !o.split {
				o.split = true
				m.put(key, o)
			}
			s.id = otherID(s, r.who)
		default:
			s.id = otherID(s, 0)
		}
	}
}

// refer returns the id by which a span of a resource names another, which is in trace s.trace.
func (m *ids) refer(s spanID, r *resource) pcommon.SpanID {
	if !m.rewrites {
		return s.id
	}
	for {
		o, key, ok := m.get(s.id, r.targetHash)
		switch {
		case !ok:
			m.put(key, owner{trace: s.trace})
			return s.id
		case o.trace != s.trace:
			s.id = otherID(s, 0)
		case o.split && o.who != r.who:
			mine := otherID(s, r.who)
			if p, _, ok := m.get(mine, r.targetHash); ok && p.trace == s.trace && p.who == r.who {
				return mine
			}
			return s.id
		default:
			return s.id
		}
	}
}

// rename gives s the ids of its entry, and its links those of what they lead to.
func (m *ids) rename(s *span, e *entry) {
	s.id, s.parent = e.newID, e.newParent
	if len(s.links) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range s.links {
		if l := &s.links[i]; !l.trace.IsEmpty() && !l.id.IsEmpty() {
			l.id = m.refer(spanID{l.trace, l.id}, e.resource)
		}
	}
}

// otherID is an id instead of s.id for a trace, or for one process of it.
func otherID(s spanID, who uint64) pcommon.SpanID {
	var in [len(s.trace) + len(s.id) + 8]byte
	copy(in[:], s.trace[:])
	copy(in[len(s.trace):], s.id[:])
	binary.LittleEndian.PutUint64(in[len(s.trace)+len(s.id):], who)
	return hashID(in[:])
}

func hashID(b []byte) (id pcommon.SpanID) {
	sum := sha256.Sum256(b)
	copy(id[:], sum[:])
	id[0] |= 1 // never zero
	return id
}
