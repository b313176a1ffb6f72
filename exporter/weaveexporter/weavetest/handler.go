// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
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

func (o Options) key() string    { return cmp.Or(o.Key, Key) }
func (o Options) bodyLimit() int { return cmp.Or(o.BodyLimit, 32<<20) }
func (o Options) rowLimit() int  { return cmp.Or(o.RowLimit, 7<<19) }

// Handler is a fake Weave. It may be used by many goroutines at once.
type Handler struct {
	opts   Options
	closed chan struct{}
	close  sync.Once

	mu       sync.Mutex
	script   []*Answer
	requests []Request
	store    store
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

// Close ends the server, and the requests that hang. It may be called twice.
func (s *Server) Close() {
	s.Handler.Close()
	s.Server.Close()
}

// NewHandler returns a fake Weave for a server of the caller's.
func NewHandler(opts Options) *Handler { return &Handler{opts: opts, closed: make(chan struct{})} }

// Close ends the requests that hang; a server waits for them before it closes.
func (h *Handler) Close() { h.close.Do(func() { close(h.closed) }) }

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := Request{Path: r.URL.Path, Header: r.Header.Clone()}
	msg, err := h.read(&in, r)
	if err != nil {
		in.Verdict = refused(err)
		in.Status = in.Verdict.Status
		h.record(in)
		reply(w, in.Status, "", reason(in.Verdict.Reason))
		return
	}
	scripted := h.scripted(in)
	if scripted == nil || scripted.Stored {
		project, run := routing(r.Header)
		in.Verdict = ingest(in.route(), msg, h.opts, project, run)
		in.Status = in.Verdict.Status
	}
	if scripted == nil {
		h.record(in)
		reply(w, in.Status, "", answer(in))
		return
	}
	in.Status = scripted.Status
	h.record(in)
	switch {
	case scripted.Cut:
		panic(http.ErrAbortHandler)
	case scripted.Hang:
		select {
		case <-r.Context().Done():
		case <-h.closed:
		}
		panic(http.ErrAbortHandler)
	}
	reply(w, scripted.Status, scripted.RetryAfter, cmp.Or(scripted.Body, reason("scripted")))
}

// route is the request's path without a dedicated instance's prefix.
func (r Request) route() string { return strings.TrimPrefix(r.Path, "/traces") }

// read checks what Weave's HTTP layer checks, and parses the body. The layer is not public: its statuses are those that W&B
// documents, or the usual ones.
func (h *Handler) read(in *Request, r *http.Request) (*coltracepb.ExportTraceServiceRequest, error) {
	body, err := h.body(in, r)
	route := in.route()
	user, password, basic := r.BasicAuth()
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	project := r.Header.Get("project_id")
	switch {
	case route != CallsPath && route != AgentsPath:
		return nil, fail(http.StatusNotFound, "Not Found")
	case r.Method != http.MethodPost:
		return nil, fail(http.StatusMethodNotAllowed, "Method Not Allowed")
	case r.Header.Get("wandb-api-key") != h.opts.key() &&
		(r.Header.Get("wandb-api-key") != "" || !basic || user != "api" || password != h.opts.key()):
		return nil, fail(http.StatusUnauthorized, "invalid API key")
	case mediaType != "application/x-protobuf":
		return nil, fail(http.StatusUnsupportedMediaType, "content type %q", mediaType)
	case project != "" && !qualified(project):
		return nil, fail(http.StatusUnprocessableEntity, "project_id %q is not entity/project", project)
	case err != nil:
		return nil, err
	}
	msg, err := parse(body)
	if err != nil {
		return nil, err
	}
	in.describe(msg, project)
	return msg, nil
}

// body reads the whole body, so that the request's sizes are told even where it is refused.
func (h *Handler) body(in *Request, r *http.Request) ([]byte, error) {
	wire := &counted{r: r.Body, n: &in.Wire}
	var plain io.Reader = wire
	var err error
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		plain, err = gzip.NewReader(wire)
	case "deflate":
		plain, err = zlib.NewReader(wire)
	default:
		err = fail(http.StatusUnsupportedMediaType, "content encoding %q", encoding)
	}
	if err == nil {
		limit := h.opts.bodyLimit()
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(plain, int64(limit)+1)); err == nil {
			if in.Size = len(body); in.Size > limit {
				err = fail(http.StatusRequestEntityTooLarge, "Request too large")
			} else {
				return body, nil
			}
		}
	}
	_, _ = io.Copy(io.Discard, wire) // The client is let finish: what it then reads is the answer.
	var f *failure
	if !errors.As(err, &f) {
		err = fail(http.StatusBadRequest, "read the body: %v", err)
	}
	return nil, err
}

type counted struct {
	r io.Reader
	n *int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += n
	return n, err
}

// qualified tells whether a name is entity/project.
func qualified(name string) bool {
	entity, project, ok := strings.Cut(name, "/")
	return ok && entity != "" && project != "" && !strings.Contains(project, "/")
}

// routing reads the headers that name a project for resources without one, and the run, entity/project/run.
func routing(header http.Header) (project, run string) {
	if parts := strings.Split(header.Get("wb_run_id"), "/"); len(parts) == 3 {
		run = parts[2]
	}
	return header.Get("project_id"), run
}

func answer(in Request) string {
	v := in.Verdict
	var body any
	switch {
	case v.Status != http.StatusOK:
		return reason(v.Reason)
	case in.route() == AgentsPath:
		body = map[string]any{"accepted_spans": len(v.Agents), "rejected_spans": v.Rejected, "error_message": v.Reason}
	case v.Rejected > 0:
		body = map[string]any{"partial_success": map[string]any{"rejected_spans": v.Rejected, "error_message": v.Reason}}
	default:
		body = map[string]any{"partial_success": nil}
	}
	return text(body)
}

func reason(why string) string { return text(map[string]any{"reason": why}) }

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // Texts and numbers.
	}
	return string(b)
}

func reply(w http.ResponseWriter, status int, retryAfter, body string) {
	w.Header().Set("Content-Type", "application/json")
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // The client may be gone.
}

// record keeps a request and what it stored.
func (h *Handler) record(in Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, in)
	h.store.add(in)
}

// Requests are all requests so far, those answered by a script too, in the order of their answers.
func (h *Handler) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Reset forgets what is stored, counted and scripted.
func (h *Handler) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.script, h.requests, h.store = nil, nil, store{}
}
