// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"cmp"
	"container/heap"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// Categories of slices, by which they are found. The first one is the name of the scope.
const (
	categoryError     = "error"
	categoryOpen      = "open"
	categoryTruncated = "truncated"
	categoryInverted  = "inverted"
	categoryEvent     = "event"
	categoryLog       = "log"
)

// drawSpan draws a span on a lane of its process, and has its events drawn when the lane is there.
func (t *Trace) drawSpan(src *source, scope string, span ptrace.Span) {
	p := src.process
	at, end := nanoseconds(span.StartTimestamp())-src.offset, nanoseconds(span.EndTimestamp())-src.offset
	s := slice{name: span.Name(), args: t.args[:0]}
	if scope != "" {
		s.categories = append(s.categories, scope)
	}
	s.args = appendArgs(s.args, span.Attributes())
	end = t.mark(&s, src, span, at, end)
	s.args = append(s.args, arg{"trace_id", span.TraceID().String()}, arg{"span_id", span.SpanID().String()})
	if !span.ParentSpanID().IsEmpty() {
		s.args = append(s.args, arg{"parent_id", span.ParentSpanID().String()})
	}
	if kind := span.Kind(); kind != ptrace.SpanKindInternal && kind != ptrace.SpanKindUnspecified {
		s.args = append(s.args, arg{"kind", strings.ToLower(kind.String())})
	}
	s.from, s.to = t.flows.appendFrom(nil, span), t.flows.appendTo(nil, span)

	t.advance(p, at)
	l := t.place(p, span.ParentSpanID(), at, end)
	t.out.slice(l.track, at, end, &s)
	p.begin(l, span.SpanID(), at, end)
	for _, event := range span.Events().All() {
		t.putEvent(src, l.stack[len(l.stack)-1], event, at, end)
	}
	t.summary.Spans++
	t.args = s.args[:0]
}

// mark makes visible what is unusual of a span, and returns where its slice ends. A span without an end is drawn up to the last that
// was heard of its process.
func (t *Trace) mark(s *slice, src *source, span ptrace.Span, at, end int64) int64 {
	if span.EndTimestamp() == 0 {
		end = max(at, src.last-src.offset)
		s.name += " (open)"
		s.categories = append(s.categories, categoryOpen)
		s.args = append(s.args, arg{"end", "none; drawn up to the last record of its process"})
		t.summary.Open++
	}
	if end < at {
		s.categories = append(s.categories, categoryInverted)
		s.args = append(s.args, arg{"duration_ns", end - at})
		end = at
	}
	if cut, ok := span.Attributes().Get(semconv.SpanTruncated); ok && cut.AsString() == "true" {
		s.name += " (truncated)"
		s.categories = append(s.categories, categoryTruncated)
		t.summary.Truncated++
	}
	if code := span.Status().Code(); code != ptrace.StatusCodeUnset {
		s.args = append(s.args, arg{"status", strings.ToUpper(code.String())})
		if code == ptrace.StatusCodeError {
			s.categories = append(s.categories, categoryError)
		}
	}
	if message := span.Status().Message(); message != "" {
		s.args = append(s.args, arg{"status_message", message})
	}
	return end
}

// putEvent has an event drawn when its time has come, within its span.
func (t *Trace) putEvent(src *source, of *openSpan, event ptrace.SpanEvent, at, end int64) {
	when := nanoseconds(event.Timestamp()) - src.offset
	s := &slice{name: event.Name(), categories: []string{categoryEvent}, args: appendArgs(nil, event.Attributes())}
	if within := min(max(when, at), end); within != when {
		s.args = append(s.args, arg{"ns_outside_the_span", when - within})
		when = within
	}
	p := src.process
	heap.Push(&p.pending, due{at: when, span: of, event: s, number: p.pending.next()})
	t.summary.Events++
}

// drawLog draws a log record as an instant on the log of its process.
func (t *Trace) drawLog(src *source, at int64, record plog.LogRecord) {
	p := src.process
	if p.logs == nil {
		p.logs = t.newTrack(trackLane, p)
		p.logs.name, p.logs.rank = "logs", -1
		t.out.lane(p.logs)
	}
	severity := cmp.Or(record.SeverityText(), severityName(record.SeverityNumber()))
	s := slice{name: firstLine(cmp.Or(record.EventName(), record.Body().AsString(), severity, "log")), categories: []string{categoryLog}}
	s.args = append(t.args[:0], arg{"body", record.Body()})
	if severity != "" {
		s.categories = append(s.categories, strings.ToLower(severity))
		s.args = append(s.args, arg{"severity", severity})
	}
	s.args = appendArgs(s.args, record.Attributes())
	if !record.SpanID().IsEmpty() {
		s.args = append(s.args, arg{"trace_id", record.TraceID().String()}, arg{"span_id", record.SpanID().String()})
	}
	t.out.instant(p.logs, at-src.offset, &s)
	t.summary.Logs++
	t.args = s.args[:0]
}

func severityName(n plog.SeverityNumber) string {
	if n == plog.SeverityNumberUnspecified {
		return ""
	}
	return n.String()
}

// firstLine is a text short enough for a name.
func firstLine(s string) string {
	const most = 120
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s[:min(len(s), 4*most)]); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}
