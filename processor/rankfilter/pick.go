// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter // import "github.com/lenscol/lenscol/processor/rankfilter"

import (
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/sharing"
)

// fate is what becomes of one span, and why: the resource's decision, then the span's group, then what passes always.
func (f *filter) fate(service string, s ptrace.Span, d ranks.Decision) (keep, unknown bool, reason ranks.Reason) {
	keep, reason = d.Keep, d.Reason
	if keep && f.groups != nil {
		var in bool
		if in, unknown = f.groups.has(service, s.Name()); !in {
			keep, reason = false, ranks.BySpanGroup
		}
	}
	if !keep {
		if why, ok := ranks.PicksSpan(f.decider, s.Name(), s.Status().Code()); ok {
			return true, false, why
		}
	}
	return keep, unknown, reason
}

// service is what span groups ask for of a resource.
func (f *filter) service(rs ptrace.ResourceSpans) string {
	if f.groups == nil {
		return ""
	}
	return identity.Service(rs.Resource().Attributes())
}

// countSpans tallies the spans of a resource one by one; kept of n go on.
func (f *filter) countSpans(rs ptrace.ResourceSpans, d ranks.Decision, o *outcome) (kept, n int) {
	service := f.service(rs)
	for _, ss := range rs.ScopeSpans().All() {
		for _, s := range ss.Spans().All() {
			keep, unknownName, reason := f.fate(service, s, d)
			if unknownName {
				o.unknownNames++
			}
			n++
			if keep {
				kept++
				o.tally.Kept(d, reason, 1)
			} else {
				o.tally.Dropped(d, reason, 1)
			}
		}
	}
	return kept, n
}

// someSpans fills to with the spans of from that go on, and with the scopes that have any.
func (f *filter) someSpans(from, to ptrace.ResourceSpans, d ranks.Decision) {
	from.Resource().CopyTo(to.Resource())
	to.SetSchemaUrl(from.SchemaUrl())
	service := f.service(from)
	for _, ss := range from.ScopeSpans().All() {
		var spans ptrace.SpanSlice
		opened := false
		for _, s := range ss.Spans().All() {
			if keep, _, _ := f.fate(service, s, d); !keep {
				continue
			}
			if !opened {
				opened = true
				scope := to.ScopeSpans().AppendEmpty()
				ss.Scope().CopyTo(scope.Scope())
				scope.SetSchemaUrl(ss.SchemaUrl())
				spans = scope.Spans()
			}
			sharing.Append(f.shares, spans, s)
		}
	}
}

// countRecords is countSpans for the log records of a dropped resource.
func (f *filter) countRecords(rl plog.ResourceLogs, d ranks.Decision, tally *ranks.Tally) (kept, n int) {
	for _, sl := range rl.ScopeLogs().All() {
		for _, lr := range sl.LogRecords().All() {
			n++
			if f.decider.PicksRecord(lr.SeverityNumber()) {
				kept++
			}
		}
	}
	tally.Kept(d, ranks.ByError, kept)
	tally.Dropped(d, d.Reason, n-kept)
	return kept, n
}

// someRecords is someSpans for log records.
func (f *filter) someRecords(from, to plog.ResourceLogs, _ ranks.Decision) {
	from.Resource().CopyTo(to.Resource())
	to.SetSchemaUrl(from.SchemaUrl())
	for _, sl := range from.ScopeLogs().All() {
		var records plog.LogRecordSlice
		opened := false
		for _, lr := range sl.LogRecords().All() {
			if !f.decider.PicksRecord(lr.SeverityNumber()) {
				continue
			}
			if !opened {
				opened = true
				scope := to.ScopeLogs().AppendEmpty()
				sl.Scope().CopyTo(scope.Scope())
				scope.SetSchemaUrl(sl.SchemaUrl())
				records = scope.LogRecords()
			}
			sharing.Append(f.shares, records, lr)
		}
	}
}
