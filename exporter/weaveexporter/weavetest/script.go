// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"encoding/hex"
	"net/http"
	"slices"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
)

// Answer is what a script does to a request instead of ingest.
type Answer struct {
	// Status is the HTTP status.
	Status int
	// RetryAfter is the header's value, seconds or a date; empty: no such header.
	RetryAfter string
	// Body replaces {"reason": ...}.
	Body string
	// Hang gives no answer until the client or the handler closes.
	Hang bool
	// Cut closes the connection without an answer.
	Cut bool
	// Stored has the request ingested all the same: the answer alone is lost.
	Stored bool

	// Times is how many requests are answered so; 0: all.
	Times int
	// Project restricts it to requests that hold this project, "entity/project"; empty: any.
	Project string
	// When restricts it further, for instance to one request in ten. It is called for one request at a time, and must not call
	// the handler.
	When func(Request) bool

	used int
}

// Script has requests answered otherwise than by ingest. Each request that could be parsed takes the first answer in the list
// that applies to it; the ones of a later Script are looked at first.
func (h *Handler) Script(answers ...Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*Answer
	for _, a := range answers {
		list = append(list, &a)
	}
	h.script = append(list, h.script...)
}

// scripted is the answer that applies to a request, or nil.
func (h *Handler) scripted(in Request) *Answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.script {
		if a.Times > 0 && a.used >= a.Times || a.Project != "" && !slices.Contains(in.Projects, a.Project) || a.When != nil && !a.When(in) {
			continue
		}
		a.used++
		return a
	}
	return nil
}

// Request is what came in.
type Request struct {
	Path     string
	Header   http.Header
	Wire     int      // bytes of the body as sent
	Size     int      // bytes of the body, decompressed; one above the limit where it is too large
	Spans    int      // in the body, when it could be parsed
	Projects []string // "entity/project" of the spans that are routed, sorted
	SpanIDs  []string // hex, in the order of the body

	Status  int     // of the answer; 0: none was given
	Verdict Verdict // of ingest; zero when a script answered and did not store
}

// describe fills in what the parsed message says.
func (r *Request) describe(msg *coltracepb.ExportTraceServiceRequest, project string) {
	for _, rs := range msg.ResourceSpans {
		if to := route(rs.GetResource().GetAttributes(), project); to != "" && !slices.Contains(r.Projects, to) {
			r.Projects = append(r.Projects, to)
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				r.SpanIDs = append(r.SpanIDs, hex.EncodeToString(s.SpanId))
			}
		}
	}
	slices.Sort(r.Projects)
	r.Spans = len(r.SpanIDs)
}
