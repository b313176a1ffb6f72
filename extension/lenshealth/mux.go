// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/extension"
)

// Part is something more that the server shows: the run model, the page.
type Part interface {
	// Mount adds the part's handlers. It is called once, before the server listens.
	Mount(m *Mux, v View)
	// Shutdown ends what the part runs. Requests may still come, and their contexts end next.
	Shutdown(ctx context.Context) error
}

// View is what a part may ask of the extension. Both are cheap: the metrics are read once a second at most.
type View interface {
	Health(ctx context.Context) Report
	Pipelines(ctx context.Context) Pipelines
}

// newParts makes the parts of an extension.
func newParts(extension.Settings) []Part { return []Part{&runsPart{}} }

// Mux takes handlers. All of them get requests whose Host and Origin are checked, and headers that let a browser load
// nothing, be framed nowhere and keep nothing; a page sets its own Content-Security-Policy over it.
type Mux struct {
	mux   *http.ServeMux
	guard *guard
	page  http.Handler
}

// Handle adds a handler for those who have the token, by a pattern of [http.ServeMux]: "GET /api/runs/{id}". An answer that
// takes longer than 15 seconds, an event stream, has to move its deadline by [http.ResponseController.SetWriteDeadline].
// Its context ends with the server.
func (m *Mux) Handle(pattern string, handler http.Handler) {
	m.mux.Handle(pattern, m.guard.demandToken(handler))
}

// Page sets what browsers get at /. Everybody gets it: it holds no data, asks for /api/… itself, and where that answers 401
// posts the token as `token` to /login, which sets a cookie.
func (m *Mux) Page(page http.Handler) { m.page = page }

// open adds a handler for everybody.
func (m *Mux) open(pattern string, handler http.HandlerFunc) { m.mux.Handle(pattern, handler) }

// answer writes value as JSON.
func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // Who asked has gone.
}

// answerError writes {"error":"…"}.
func answerError(w http.ResponseWriter, code int, text string) {
	answer(w, code, map[string]string{"error": text})
}

func wantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }
