// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Key is the API key that a fake accepts by default.
const Key = "0123456789abcdef0123456789abcdef01234567"

// The routes of Weave. A dedicated instance has /traces before them; the fake serves both.
const (
	CallsPath  = "/otel/v1/traces"
	AgentsPath = "/agents/otel/v1/traces"
)

// Options say how strict a fake is. The zero value is Weave's cloud with [Key].
type Options struct {
	// Key is the API key to accept; empty: Key.
	Key string
	// BodyLimit is the largest request in bytes, decompressed; above: 413. 0: 32 MiB.
	BodyLimit int
	// RowLimit is the size in bytes of a call's JSON columns above which the largest are blanked. 0: 3.5 MiB.
	RowLimit int
}

// Handler is a fake Weave. It may be used by many goroutines at once.
type Handler struct {
	opts Options

	mu       sync.Mutex
	script   []Answer
	requests []Request
	projects map[string]*project
	closed   chan struct{}
	close    sync.Once
}

// Server is a fake Weave that listens on loopback until its test ends.
type Server struct {
	*Handler
	*httptest.Server // URL is what stands before CallsPath; URL + "/traces" is that of a dedicated instance
}

// New starts a fake Weave.
func New(tb testing.TB, opts Options) *Server {
	tb.Helper()
	h := NewHandler(opts)
	s := &Server{h, httptest.NewServer(h)}
	tb.Cleanup(s.Close)
	return s
}

// Close ends the server, and the requests that hang.
func (s *Server) Close() {
	s.Handler.Close()
	s.Server.Close()
}

// NewHandler returns a fake Weave for a server of the caller's.
func NewHandler(opts Options) *Handler {
	return &Handler{opts: opts, projects: map[string]*project{}, closed: make(chan struct{})}
}

// Close ends the requests that hang; a server waits for them before it closes.
func (h *Handler) Close() { h.close.Do(func() { close(h.closed) }) }

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "not built yet", http.StatusNotImplemented)
}

// Calls are the calls of a project, "entity/project", as its users see them, in the order of their first arrival.
func (h *Handler) Calls(project string) []Call { return nil }

// AgentSpans are the spans that came to the agents endpoint for a project, in the order of their arrival.
func (h *Handler) AgentSpans(project string) []AgentSpan { return nil }

// Projects are the projects that anything was stored in, sorted.
func (h *Handler) Projects() []string { return nil }

// Requests are all requests so far, those answered by a script too.
func (h *Handler) Requests() []Request { return nil }

// Stats are sums over all requests.
func (h *Handler) Stats() Stats { return Stats{} }

// Script has requests answered otherwise than by ingest. Each request takes the first answer in the list that applies to it;
// the ones of a later Script are looked at first.
func (h *Handler) Script(answers ...Answer) {}

// Reset forgets what is stored, counted and scripted.
func (h *Handler) Reset() {}

type project struct{}
