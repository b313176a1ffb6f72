// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runs // import "github.com/lenscol/lenscol/extension/lenshealth/internal/runs"

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	maxListeners  = 32
	tick          = time.Second
	looksEvery    = 2 // ticks from one `health` and `pipelines` to the next
	runsAtLeast   = 5 // ticks from one `runs` to the next though nothing has changed: who says nothing becomes silent
	writeDeadline = 10 * time.Second
)

// serveEvents writes server-sent events until the listener goes or the server ends.
func (a *API) serveEvents(w http.ResponseWriter, r *http.Request) {
	if a.listeners.Add(1) > maxListeners {
		a.listeners.Add(-1)
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d listen already: ask /api/runs from time to time", maxListeners))
		return
	}
	defer a.listeners.Add(-1)
	s := stream{w: w, control: http.NewResponseController(w)}
	// The server's limit on reading a request would end the connection; a listener sends nothing more.
	if err := s.control.SetReadDeadline(time.Time{}); err != nil {
		refuse(w, http.StatusInternalServerError, "this connection cannot be kept open")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx in between must not wait for more

	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var sent *answer
	for n := 0; s.err == nil; n++ {
		if n%runsAtLeast == 0 || a.model.Changes() != sent.changes {
			// One that was kept may be older than the last change: that comes next then.
			if runs := a.runs(); n%runsAtLeast == 0 || runs != sent {
				sent = runs
				s.send("runs", runs.plain)
			}
		}
		if n%looksEvery == 0 {
			s.sendValue("pipelines", a.pipelines(r.Context()))
			s.sendValue("health", a.health(r.Context()))
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

// stream writes events until an error.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *stream) sendValue(event string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		s.err = err
		return
	}
	s.send(event, data)
}

// send writes an event of one line. A listener that does not read within the deadline is gone.
func (s *stream) send(event string, data []byte) {
	if s.err == nil {
		s.err = s.control.SetWriteDeadline(time.Now().Add(writeDeadline))
	}
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", event, data)
	}
	if s.err == nil {
		s.err = s.control.Flush()
	}
}
