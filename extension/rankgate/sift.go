// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc/mem"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/runview"
)

// sifter takes the resources of ranks that do not export out of the bytes of a request.
//
// The rest stays as it is, byte for byte. A resource that goes is checked first, all of it, by the rules that pdata
// decodes by: a request that the receiver would refuse must not become one that it accepts. What goes on is checked by
// the receiver itself. A sifter is for one goroutine; its buffers are used again.
type sifter struct {
	decider   *ranks.Decider
	decisions *cache
	walker    walker
	report    *runview.Report // of what is dropped, for those who look at the runs; nil where nobody does

	in       []byte  // a request that came in pieces
	out      []byte  // what goes on of the request
	resource []byte  // a resource that came in pieces
	scopes   []scope // of the resource that is being judged
	current  bool    // one of these is in the field of today
	picked   []bool  // for each item of these: whether it passes from a dropped rank
	part     []byte  // what goes on of a resource of which some does
	inScope  []byte  // what goes on of a scope of that
}

// scope is a ScopeSpans, ScopeMetrics or ScopeLogs.
type scope struct {
	content []byte
	old     bool // in the field that older senders use
}

// share is how much of a resource goes on.
type share uint8

const (
	none share = iota
	some
	all
)

// maxKept is what a sifter keeps of its buffers for the next request.
const maxKept = 8 << 20

// trim lets buffers of an unusual size go. It reports whether the sifter is worth keeping.
func (s *sifter) trim() bool {
	clear(s.scopes[:cap(s.scopes)]) // they point into requests
	return cap(s.in) <= maxKept && cap(s.out) <= maxKept && cap(s.resource) <= maxKept && cap(s.part) <= maxKept && cap(s.inScope) <= maxKept &&
		cap(s.walker.stack) <= maxKept/16 && cap(s.walker.notice.spans) <= maxKept/1024 && cap(s.picked) <= maxKept && cap(s.scopes) <= maxKept/1024
}

// materialize is the request in one piece. grpc's own pools clear a buffer of up to four times the size for that.
func (s *sifter) materialize(data mem.BufferSlice) []byte {
	if len(data) == 1 {
		return data[0].ReadOnlyData()
	}
	s.in = slices.Grow(s.in[:0], data.Len())[:data.Len()]
	data.CopyTo(s.in)
	return s.in
}

// sift returns what goes on of a request and tallies its items. What it returns is the request itself where all goes on,
// and else valid until the next call. It is false where the request cannot be decoded.
func (s *sifter) sift(signal ranks.Signal, request []byte, tally *ranks.Tally) ([]byte, bool) {
	s.out = s.out[:0]
	from := 0 // where what goes on and is not in out yet begins
	for pos := 0; pos < len(request); {
		start := pos
		field, wire, next, ok := readTag(request, pos)
		if !ok {
			return nil, false
		}
		if field != fieldResourceItems {
			if pos, ok = skipField(request, next, wire); !ok {
				return nil, false
			}
			continue
		}
		if wire != wireLen {
			return nil, false
		}
		var content []byte
		if content, pos, ok = readLen(request, next); !ok {
			return nil, false
		}
		goes, ok := s.judge(signal, content, tally)
		if !ok {
			return nil, false
		}
		if goes == all {
			continue
		}
		s.out = append(s.out, request[from:start]...)
		from = pos
		if goes == some {
			s.out = appendField(s.out, fieldResourceItems, s.pick(content))
		}
	}
	if from == 0 {
		return request, true
	}
	s.out = append(s.out, request[from:]...)
	return s.out, true
}

// judge decides about a ResourceSpans, ResourceMetrics or ResourceLogs and tallies its items.
func (s *sifter) judge(signal ranks.Signal, content []byte, tally *ranks.Tally) (share, bool) {
	resource, ok := s.open(content)
	if !ok {
		return none, false
	}
	d, source, ok := s.decisions.decide(signal, resource, s.report != nil)
	if !ok {
		return none, false
	}
	tally.Resource(d)

	n, errors := 0, 0
	for _, sc := range s.scopes {
		report := s.report
		if d.Keep || !s.counts(sc) {
			report = nil
		}
		s.walker.notice.watch(report, signal)
		items, ok := s.walker.walk(mScopeSpans+message(signal), sc.content, d.Keep)
		if !ok {
			return none, false
		}
		if s.counts(sc) {
			n += items
			errors += s.walker.notice.errors
			s.walker.steps(sc.content)
		}
	}
	if d.Keep {
		tally.Kept(d, d.Reason, n)
		return all, true
	}
	kept := 0
	if signal == ranks.Traces && s.decider.PicksSpans() || signal == ranks.Logs && s.decider.PicksRecords() {
		var keptErrors int
		kept, keptErrors = s.tallyPicks(signal, d, tally)
		errors -= keptErrors
	}
	tally.Dropped(d, d.Reason, n-kept)
	if s.report != nil {
		s.report.AddDropped(source, n-kept, errors, s.decider.Strategy(d))
	}
	switch {
	case kept == 0:
		return none, true
	case kept == n:
		return all, true
	default:
		return some, true
	}
}

// open reads a ResourceSpans or its like: its scopes go to s.scopes, the bytes of its resource are returned.
func (s *sifter) open(content []byte) (resource []byte, ok bool) {
	s.scopes, s.resource, s.current = s.scopes[:0], s.resource[:0], false
	resources := 0
	for pos := 0; pos < len(content); {
		field, wire, next, ok := readTag(content, pos)
		if !ok {
			return nil, false
		}
		switch field {
		case fieldResource, fieldScope, fieldSchemaURL, fieldScopeOfOldSender:
		default:
			if pos, ok = skipField(content, next, wire); !ok {
				return nil, false
			}
			continue
		}
		if wire != wireLen {
			return nil, false
		}
		var inner []byte
		if inner, pos, ok = readLen(content, next); !ok {
			return nil, false
		}
		switch field {
		case fieldResource:
			// A resource that comes in pieces is their sum, and each must be one.
			if resources++; resources == 1 {
				resource = inner
				continue
			}
			if resources == 2 {
				if _, ok := s.walker.walk(mResource, resource, false); !ok {
					return nil, false
				}
				s.resource = append(s.resource, resource...)
			}
			if _, ok := s.walker.walk(mResource, inner, false); !ok {
				return nil, false
			}
			s.resource = append(s.resource, inner...)
			resource = s.resource
		case fieldScope, fieldScopeOfOldSender:
			s.scopes = append(s.scopes, scope{inner, field == fieldScopeOfOldSender})
			s.current = s.current || field == fieldScope
		}
	}
	return resource, true
}

// counts reports whether pdata reads that scope: those in the old field only where there is none in the new one.
func (s *sifter) counts(sc scope) bool { return !sc.old || !s.current }

// tallyPicks goes through the items of a dropped resource, one by one, and tallies those that pass nevertheless. So many of
// them are errors.
func (s *sifter) tallyPicks(signal ranks.Signal, d ranks.Decision, tally *ranks.Tally) (kept, errors int) {
	s.picked = s.picked[:0]
	for _, sc := range s.scopes {
		if !s.counts(sc) {
			continue
		}
		for f := (fields{rest: sc.content}); f.next(); {
			if f.number != fieldItem {
				continue
			}
			var reason ranks.Reason
			var picked, isError bool
			if signal == ranks.Traces {
				name, status := spanFacts(f.content)
				reason, picked = ranks.PicksSpan(s.decider, name, status)
				isError = status == ptrace.StatusCodeError
			} else {
				reason, picked = ranks.ByError, s.decider.PicksRecord(severity(f.content))
				isError = picked
			}
			if picked {
				kept++
				if isError {
					errors++
				}
				tally.Kept(d, reason, 1)
			}
			s.picked = append(s.picked, picked)
		}
	}
	return kept, errors
}

// pick is the content of a resource with the items of s.picked alone, and with the scopes that have any.
func (s *sifter) pick(content []byte) []byte {
	s.part = s.part[:0]
	scopes, picked := s.scopes, s.picked // those to come
	for f := (fields{rest: content}); f.next(); {
		if f.number != fieldScope && f.number != fieldScopeOfOldSender {
			s.part = append(s.part, f.whole...)
			continue
		}
		read := s.counts(scopes[0])
		scopes = scopes[1:]
		if !read {
			continue // pdata would read it once the others are gone
		}
		s.inScope = s.inScope[:0]
		any := false
		for in := (fields{rest: f.content}); in.next(); {
			if in.number == fieldItem {
				goes := picked[0]
				picked = picked[1:]
				if !goes {
					continue
				}
				any = true
			}
			s.inScope = append(s.inScope, in.whole...)
		}
		if any {
			s.part = appendField(s.part, int(f.number), s.inScope)
		}
	}
	return s.part
}

// spanFacts reads name and status of a span. Of a field that is there several times the last holds; a status is the sum
// of its pieces.
func spanFacts(span []byte) (name []byte, status ptrace.StatusCode) {
	for pos := 0; pos < len(span); {
		number, content, next := fieldAt(span, pos)
		switch number {
		case fieldSpanName:
			name = span[content:next]
		case fieldSpanStatus:
			status = ptrace.StatusCode(lastNumber(span[content:next], fieldStatusCode, uint64(status)))
		}
		pos = next
	}
	return name, status
}

// severity reads the severity of a log record.
func severity(record []byte) plog.SeverityNumber {
	return plog.SeverityNumber(lastNumber(record, fieldLogSeverity, 0))
}

// lastNumber is the value of a field of the type varint, the last of several, and else missing.
func lastNumber(message []byte, field int32, missing uint64) uint64 {
	for pos := 0; pos < len(message); {
		number, content, next := fieldAt(message, pos)
		if number == field {
			missing, _, _ = readVarint(message, content)
		}
		pos = next
	}
	return missing
}
