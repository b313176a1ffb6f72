// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import "net/http"

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
	// When restricts it further, for instance to one request in ten. It is called for one request at a time.
	When func(Request) bool
}

// Request is what came in.
type Request struct {
	Path     string
	Header   http.Header
	Wire     int      // bytes of the body as sent
	Size     int      // bytes of the body, decompressed
	Spans    int      // in the body, when it could be parsed
	Projects []string // "entity/project" of the spans that are routed, sorted
	SpanIDs  []string // hex, in the order of the body

	Status  int     // of the answer; 0: none was given
	Verdict Verdict // of ingest; zero when a script answered and did not store
}

// Stats are sums over requests.
type Stats struct {
	Requests int
	Refused  int // requests answered other than 200, or not at all
	Spans    int // in the requests that ingest took
	Rejected int // spans rejected in a partial success
	Unrouted int // spans dropped in silence, for want of entity and project
	Merged   int // spans that overwrote a call of another span with their id
	Resent   int // spans that came again as they were: same trace, span id, name and start
	Blanked  int // calls of which columns were blanked
}
