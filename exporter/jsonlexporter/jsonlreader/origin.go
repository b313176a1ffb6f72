// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader // import "github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-faster/jx"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/lenscol/lenscol/internal/identity"
)

// A record says where it comes from by the id of a scope line above it, which names a resource line above itself
// (resource: reference), or by a resource and a scope of its own (resource: inline), or not at all: both are empty then.

// lineOrigin is what a record line says of its origin, as it stands there.
type lineOrigin struct {
	id                 int64
	byID               bool
	scope, resource    []byte // inline objects, nil when absent
	run, rank, service []byte // nil when absent, or not needed
}

// inlineOrigin is the last inline origin: consecutive lines with the same text share it.
type inlineOrigin struct {
	scope            *Scope
	scopeText, rText []byte
}

// origin resolves what the record line in hand says of its origin.
func (r *Reader) origin() (*Scope, error) {
	o := r.dec.origin
	if o.byID {
		s, ok := r.scopes[o.id]
		if !ok || r.ofAnother(s.Resource) {
			return nil, fmt.Errorf("key \"scope\": scope %d: %w", o.id, ErrUndefined)
		}
		return s, nil
	}
	last := &r.inline
	sameResource := last.scope != nil && bytes.Equal(last.rText, o.resource)
	if sameResource && bytes.Equal(last.scopeText, o.scope) {
		return last.scope, nil
	}
	s := newScope()
	if sameResource {
		s.Resource = last.scope.Resource
	} else {
		s.Resource = newResource()
		if err := r.dec.inlineObject("resource", o.resource, func(key []byte) error {
			return r.dec.resourceField(key, s.Resource)
		}); err != nil {
			return nil, err
		}
	}
	if err := r.dec.inlineObject("scope", o.scope, func(key []byte) error { return r.dec.scopeField(key, s) }); err != nil {
		return nil, err
	}
	last.scope = s
	last.scopeText = append(last.scopeText[:0], o.scope...)
	last.rText = append(last.rText[:0], o.resource...)
	return s, nil
}

// defineScope takes the scope line in hand. It is bound to the resource that its id means here, so that a later resource of
// the same id does not move the records of this scope.
func (r *Reader) defineScope() error {
	d, s := &r.dec, newScope()
	var id, resource definedID
	err := d.line(func(key []byte) error {
		switch string(key) {
		case "type":
			return d.Skip()
		case "id":
			return put(id.set, d.int64)
		case "resource":
			return put(resource.set, d.int64)
		default:
			return d.scopeField(key, s)
		}
	})
	switch {
	case err != nil:
	case !id.ok:
		err = errMissing("id")
	case !resource.ok:
		s.Resource = newResource()
	default:
		if s.Resource = r.resources[resource.n]; s.Resource == nil {
			err = fmt.Errorf("key \"resource\": resource %d: %w", resource.n, ErrUndefined)
		}
	}
	if err == nil {
		r.scopes[id.n], r.defined = s, true
	}
	return err
}

// defineResource takes the resource line in hand.
func (r *Reader) defineResource() error {
	d, res := &r.dec, newResource()
	var id definedID
	err := d.line(func(key []byte) error {
		switch string(key) {
		case "type":
			return d.Skip()
		case "id":
			return put(id.set, d.int64)
		default:
			return d.resourceField(key, res)
		}
	})
	if err == nil && !id.ok {
		err = errMissing("id")
	}
	if err == nil {
		r.resources[id.n], r.defined = res, true
	}
	return err
}

type definedID struct {
	n  int64
	ok bool
}

func (id *definedID) set(n int64) { *id = definedID{n: n, ok: true} }

// forget ends the meaning that an id had, when the line in hand would have given it another but is bad. Telemetry that cannot be
// attributed is an error; telemetry that is attributed to somebody else would be a lie. The exporter writes type and id first, so
// that both survive most damage. Where they did not, all ids are in doubt.
func (r *Reader) forget(line []byte) {
	d := &r.dec
	typ, err := d.lineType(line)
	if err != nil {
		r.doubt()
		return
	}
	if typ != "scope" && typ != "resource" {
		return
	}
	var id int64
	found, err := d.find(line, "id", func() (err error) {
		id, err = d.int64()
		return err
	})
	switch {
	case err != nil || !found:
		r.doubt()
	case typ == "scope":
		delete(r.scopes, id)
	default:
		delete(r.resources, id)
	}
}

// doubt is told of damage that may have defined any id again. What the ids meant before holds from then on only for lines whose copies of
// the identity do not contradict it.
func (r *Reader) doubt() {
	if !r.defined {
		return
	}
	r.defined, r.doubtful, r.dec.identity = false, map[*Resource]struct{}{}, true
	for _, res := range r.resources {
		r.doubtful[res] = struct{}{}
	}
	for _, s := range r.scopes {
		r.doubtful[s.Resource] = struct{}{}
	}
}

// ofAnother tells whether the line in hand cannot be of a resource that is in doubt.
func (r *Reader) ofAnother(res *Resource) bool {
	if _, ok := r.doubtful[res]; !ok {
		return false
	}
	o, attrs := r.dec.origin, res.Attributes()
	differs := func(text []byte, want string) bool {
		if text == nil {
			return false // It need not say that.
		}
		got, err := jx.DecodeBytes(text).Str()
		return err != nil || got != want
	}
	rank, ok := identity.Rank(attrs)
	return differs(o.run, identity.Run(attrs)) || differs(o.service, identity.Service(attrs)) ||
		o.rank != nil && (!ok || string(o.rank) != strconv.Itoa(rank))
}

func newScope() *Scope { return &Scope{InstrumentationScope: pcommon.NewInstrumentationScope()} }

func newResource() *Resource { return &Resource{Resource: pcommon.NewResource()} }

func (d *decoder) scopeField(key []byte, s *Scope) error {
	switch string(key) {
	case "name":
		return put(s.SetName, d.str)
	case "version":
		return put(s.SetVersion, d.str)
	case "attributes":
		return d.attributes(s.Attributes())
	case "schema_url":
		return put(func(v string) { s.SchemaURL = v }, d.str)
	case "dropped_attributes":
		return put(s.SetDroppedAttributesCount, d.uint32)
	default:
		return d.unknown()
	}
}

func (d *decoder) resourceField(key []byte, r *Resource) error {
	switch string(key) {
	case "attributes":
		return d.attributes(r.Attributes())
	case "schema_url":
		return put(func(v string) { r.SchemaURL = v }, d.str)
	case "dropped_attributes":
		return put(r.SetDroppedAttributesCount, d.uint32)
	case "entity_refs":
		refs := entity.ResourceEntityRefs(r.Resource)
		return d.array(func() error { return d.entityRef(refs.AppendEmpty()) })
	default:
		return d.unknown()
	}
}

func (d *decoder) entityRef(e entity.EntityRef) error {
	return d.object(func(key []byte) error {
		switch string(key) {
		case "schema_url":
			return put(e.SetSchemaUrl, d.str)
		case "type":
			return put(e.SetType, d.str)
		case "id_keys":
			return d.array(func() error { return put(func(s string) { e.IdKeys().Append(s) }, d.str) })
		case "description_keys":
			return d.array(func() error { return put(func(s string) { e.DescriptionKeys().Append(s) }, d.str) })
		default:
			return d.unknown()
		}
	})
}

// originField takes the keys that spans, points and log records share. The identity is copied from the resource, for people
// with jq, so that nothing is lost with it.
func (d *decoder) originField(key []byte) (err error) {
	switch string(key) {
	case "type":
		return d.Skip()
	case "run":
		return d.copied(&d.origin.run)
	case "rank":
		return d.copied(&d.origin.rank)
	case "service":
		return d.copied(&d.origin.service)
	case "scope":
		if d.Next() == jx.Number {
			d.origin.byID = true
			d.origin.id, err = d.int64()
			return err
		}
		d.origin.scope, err = d.rawObject()
		return err
	case "resource":
		d.origin.resource, err = d.rawObject()
		return err
	default:
		return d.unknown()
	}
}

// copied takes a copy of the identity, where it is needed.
func (d *decoder) copied(to *[]byte) (err error) {
	if !d.identity {
		return d.Skip()
	}
	*to, err = d.Raw()
	return err
}
