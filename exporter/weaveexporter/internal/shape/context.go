// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"cmp"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// resource is a resource, repaired and encoded once for all its spans.
type resource struct {
	target     Target
	targetHash uint64
	who        uint64 // which process it is
	own        string // beginning of references to the target
	attrs      []attr
	bytes      []byte // fields of its ResourceSpans
	cost       int    // of its attributes, in a row of Weave
}

// scope is an instrumentation scope of a resource.
type scope struct {
	*resource
	bytes []byte // fields of its ScopeSpans
	size  int    // spans in it
	attrs []attr
	name  string
	vers  string

	plain, copied *tail // nil until they are asked for

	rank      string // of its spans; empty: none
	run       string // of its spans; empty: none
	runSource int    // place in runSources of who said so
	thread    string // of its spans; empty: none
}

// A resource may take a fourth of what a span may, and a scope an eighth. A scope itself is stored nowhere.
const (
	resourceShare = 4
	scopeShare    = 8
	maxNameBytes  = 1024 // of a schema URL, and of a scope's name and version
)

func (r *resource) routable() bool { return r.target.known() }

func (s *Shaper) resource(in ptrace.ResourceSpans, n *Counts) *resource {
	list := repeated(cleaned(appendMap(nil, in.Resource().Attributes()), n), n)
	for i := range list {
		if strings.HasPrefix(list[i].key, semconv.WandbEntity+".") || strings.HasPrefix(list[i].key, semconv.WandbProject+".") {
			moveAside(&list[i], n)
		}
	}
	out := &resource{}
	list, out.target = s.targeted(list, n)
	out.own = ownReference(out.target)
	list = withoutReferences(list, "", n)
	list = budgeted(settled(list, n), s.spanBytes/resourceShare, keptOfResource, n)
	out.targetHash, out.who = out.target.hash(), who(list)
	out.attrs, out.cost = list, listCost(list)

	b, at := openMessage(nil, tag(1, length))
	b = appendAttrs(b, tagResAttr, list)
	b = appendUint(b, tag(2, varint), uint64(in.Resource().DroppedAttributesCount()))
	b = closeMessage(b, at)
	out.bytes = appendText(b, tag(3, length), nameText(in.SchemaUrl(), n))
	return out
}

func (s *Shaper) scope(in ptrace.ScopeSpans, of *resource, r *Result) *scope {
	sc, n := in.Scope(), &r.Rewritten
	out := &scope{resource: of, size: in.Spans().Len(), name: nameText(sc.Name(), n), vers: nameText(sc.Version(), n)}
	list := withoutReferences(cleaned(appendMap(nil, sc.Attributes()), n), of.own, n)
	out.attrs = budgeted(settled(list, n), s.spanBytes/scopeShare, keptOfNone, n)
	out.run, out.runSource = s.aboveRun(out, r)
	out.rank = cmp.Or(rankText(out.attrs), rankText(of.attrs))
	out.thread = s.threadOf(out.run, out.rank)

	b, at := openMessage(nil, tag(1, length))
	b = appendText(b, tag(1, length), out.name)
	b = appendText(b, tag(2, length), out.vers)
	b = appendAttrs(b, tagScopeAttr, out.attrs)
	b = appendUint(b, tag(4, varint), uint64(sc.DroppedAttributesCount()))
	b = closeMessage(b, at)
	out.bytes = appendText(b, tag(3, length), nameText(in.SchemaUrl(), n))
	return out
}

// nameText is a text that has no need to be long.
func nameText(s string, n *Counts) string {
	s = cleanText(s, n)
	if len(s) > maxNameBytes {
		n[Truncated]++
	}
	return cutText(plainText(cutText(s, maxNameBytes), "", n), maxNameBytes)
}

// tail is what spans of the scope get, with copies below wandb.attributes or without.
func (s *Shaper) tail(sc *scope, copies bool) *tail {
	t := &sc.plain
	if copies {
		t = &sc.copied
	}
	if *t == nil {
		*t = newTail(s.promote.above(sc.attrs, sc.resource.attrs, sc.name, sc.vers), sc.run, sc.thread, copies)
	}
	return *t
}

// rankText is the rank that attributes say, a number or its text; empty: none.
func rankText(list []attr) string {
	for _, key := range []string{semconv.DLRank, semconv.DLRankOld} {
		if i := findMoved(list, key); i >= 0 {
			switch list[i].val.Type() {
			case pcommon.ValueTypeInt, pcommon.ValueTypeStr:
				return asText(list[i].val)
			}
		}
	}
	return ""
}
