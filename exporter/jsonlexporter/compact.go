// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"strconv"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/lenscol/lenscol/internal/identity"
)

// compact is the layout of one line a span, point and record (docs/format.md). It gives every resource and scope that a
// file's records name an id, and keeps the bytes that depend on them alone, so that a resource is encoded once a file and a
// line costs no more than its own members.
//
// Ids grow as long as the process lives and are never given twice, so requests are encoded side by side without
// knowing into which file they will go: the writer puts the definitions that a file lacks before the lines that need them.
type compact struct {
	inline  bool            // write resource and scope into each line instead of their id
	members identityMembers // which of run, rank, service each line names

	mu        sync.RWMutex
	resources map[string]*resource // by the JSON of their members
	scopes    map[string]*scope    // by their resource's id and the JSON of their members
	bytes     int                  // held by both maps

	lastResource, lastScope uint64
}

// maxTableBytes bounds the table: a sender that names ever new resources costs memory up to here and no more. Beyond it
// the table starts anew, which costs new ids and definitions and loses nothing.
const maxTableBytes = 16 << 20

type resource struct {
	id       uint64
	line     []byte // its definition, a whole line
	identity []byte // `,"run":"…","rank":3,"service":"…"`
	object   []byte // `{"attributes":…}`, only where lines carry it inline

	definedIn uint64 // the file, by generation, that has its line; the writer's alone
}

type scope struct {
	resource *resource
	line     []byte // its definition, a whole line
	suffix   []byte // the end of each of its records' lines: identity, scope, brace and newline

	definedIn uint64 // as the resource's
}

// definitionBytes is how long the lines are that stand before the scope's first record in a file.
func (s *scope) definitionBytes() int { return len(s.line) + len(s.resource.line) }

type identityMembers struct{ run, rank, service bool }

// resource returns the entry of a resource, a new one where it was not seen before.
func (l *compact) resource(e *encoder, res pcommon.Resource, schemaURL string) *resource {
	key := e.resourceMembers(e.scratch[:0], res, schemaURL)
	e.scratch = key

	l.mu.RLock()
	r := l.resources[string(key)]
	l.mu.RUnlock()
	if r != nil {
		return r
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r = l.resources[string(key)]; r != nil {
		return r
	}
	l.lastResource++
	r = &resource{id: l.lastResource, identity: e.identity(res.Attributes(), l.members)}
	if l.inline {
		r.object = object(key)
	} else {
		r.line = definition("resource", r.id, nil, key)
	}
	l.grow(len(key) + len(r.line) + len(r.object) + len(r.identity))
	l.resources[string(key)] = r
	return r
}

// scope returns the entry of a resource's scope, a new one where it was not seen before.
func (l *compact) scope(e *encoder, r *resource, is pcommon.InstrumentationScope, schemaURL string) *scope {
	key := strconv.AppendUint(e.scratch[:0], r.id, 10)
	own := len(key)
	key = e.scopeMembers(key, is, schemaURL)
	e.scratch = key

	l.mu.RLock()
	s := l.scopes[string(key)]
	l.mu.RUnlock()
	if s != nil {
		return s
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s = l.scopes[string(key)]; s != nil {
		return s
	}
	s = &scope{resource: r, suffix: append([]byte(nil), r.identity...)}
	if l.inline {
		if len(r.object) > 0 {
			s.suffix = append(append(s.suffix, `,"resource":`...), r.object...)
		}
		if o := object(key[own:]); len(o) > 0 {
			s.suffix = append(append(s.suffix, `,"scope":`...), o...)
		}
	} else {
		l.lastScope++
		s.suffix = strconv.AppendUint(append(s.suffix, `,"scope":`...), l.lastScope, 10)
		s.line = definition("scope", l.lastScope, strconv.AppendUint([]byte(`,"resource":`), r.id, 10), key[own:])
	}
	s.suffix = append(s.suffix, '}', '\n')
	l.grow(len(key) + len(s.line) + len(s.suffix))
	l.scopes[string(key)] = s
	return s
}

// grow makes room for n more bytes. What was given out before stays valid: entries are only forgotten, not reused.
func (l *compact) grow(n int) {
	if l.bytes += n; l.bytes > maxTableBytes || l.resources == nil {
		l.resources, l.scopes, l.bytes = map[string]*resource{}, map[string]*scope{}, n
	}
}

// definition is the line `{"type":kind,"id":id…}` with the members of head and tail.
func definition(kind string, id uint64, head, tail []byte) []byte {
	line := strconv.AppendUint([]byte(`{"type":"`+kind+`","id":`), id, 10)
	return append(append(append(line, head...), tail...), '}', '\n')
}

// object is the members `,"a":1,"b":2` as an object of its own, nil where there are none.
func object(members []byte) []byte {
	if len(members) == 0 {
		return nil
	}
	return closeObject(append([]byte(nil), members...), 0)
}

func (e *encoder) resourceMembers(b []byte, res pcommon.Resource, schemaURL string) []byte {
	b = e.attributes(b, res.Attributes())
	b = e.text(b, `,"schema_url":`, schemaURL)
	b = unsigned(b, `,"dropped_attributes":`, uint64(res.DroppedAttributesCount()))
	refs := entity.ResourceEntityRefs(res)
	if refs.Len() == 0 {
		return b
	}
	b = append(b, `,"entity_refs":[`...)
	for i := range refs.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		start := len(b)
		b = e.text(b, `,"schema_url":`, refs.At(i).SchemaUrl())
		b = e.text(b, `,"type":`, refs.At(i).Type())
		b = e.texts(b, `,"id_keys":[`, refs.At(i).IdKeys())
		b = e.texts(b, `,"description_keys":[`, refs.At(i).DescriptionKeys())
		b = closeObject(b, start)
	}
	return append(b, ']')
}

func (e *encoder) texts(b []byte, key string, list pcommon.StringSlice) []byte {
	if list.Len() == 0 {
		return b
	}
	b = append(b, key...)
	for i := range list.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.appendString(b, list.At(i))
	}
	return append(b, ']')
}

func (e *encoder) scopeMembers(b []byte, is pcommon.InstrumentationScope, schemaURL string) []byte {
	b = e.text(b, `,"name":`, is.Name())
	b = e.text(b, `,"version":`, is.Version())
	b = e.attributes(b, is.Attributes())
	b = e.text(b, `,"schema_url":`, schemaURL)
	return unsigned(b, `,"dropped_attributes":`, uint64(is.DroppedAttributesCount()))
}

// identity is what every line says for people with jq: whose record it is.
func (e *encoder) identity(attrs pcommon.Map, members identityMembers) (b []byte) {
	if members.run {
		b = e.copied(b, `,"run":`, identity.Run(attrs))
	}
	if rank, ok := identity.Rank(attrs); ok && members.rank {
		b = strconv.AppendInt(append(b, `,"rank":`...), int64(rank), 10)
	}
	if members.service {
		b = e.copied(b, `,"service":`, identity.Service(attrs))
	}
	return b
}

// maxCopy bounds, in bytes, what a line repeats of its resource: one text of a request would fill the disk with its copies.
const maxCopy = 256

func (e *encoder) copied(b []byte, key, s string) []byte {
	if len(s) > maxCopy {
		return b
	}
	return e.text(b, key, s)
}
