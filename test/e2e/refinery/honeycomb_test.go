// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package refinery

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const (
	key         = "hcaik_k3y-of-the-team"
	environment = "Training"
)

// honeycomb is Honeycomb as Refinery meets it: it says whose environment a key is of, and takes batches of events for datasets.
type honeycomb struct {
	URL string

	mu      sync.Mutex
	events  []event
	refused []string
}

// event is a span that Refinery kept.
type event struct {
	trace, id, name, service string
	replica                  string // that sent it, by an attribute that the test has Refinery add
	rate                     int64  // one of so many traces was kept
}

func newHoneycomb(t *testing.T) *honeycomb {
	h := &honeycomb{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, answer, err := h.serve(r)
		if err != nil {
			h.mu.Lock()
			h.refused = append(h.refused, fmt.Sprintf("%s %s: %v", r.Method, r.URL, err))
			h.mu.Unlock()
			answer = map[string]any{"error": err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // Whoever asked may be gone.
	}))
	t.Cleanup(server.Close)
	h.URL = server.URL
	return h
}

func (h *honeycomb) serve(r *http.Request) (status int, answer any, err error) {
	if got := r.Header.Get("X-Honeycomb-Team"); got != key {
		return http.StatusUnauthorized, nil, fmt.Errorf("key %q", got)
	}
	dataset, isBatch := strings.CutPrefix(r.URL.EscapedPath(), "/1/batch/")
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/1/auth":
		return http.StatusOK, map[string]any{
			"environment": map[string]string{"name": environment, "slug": "training"}, "team": map[string]string{"name": "Acme", "slug": "acme"},
			"api_key_access": map[string]bool{"events": true},
		}, nil
	case r.Method == http.MethodPost && isBatch && dataset != "" && !strings.Contains(dataset, "/"):
		events, err := read(r, dataset)
		if err != nil {
			return http.StatusBadRequest, nil, err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, events...)
		answers := make([]map[string]int, len(events))
		for i := range answers {
			answers[i] = map[string]int{"status": http.StatusAccepted}
		}
		return http.StatusOK, answers, nil
	}
	return http.StatusNotFound, nil, fmt.Errorf("no such path")
}

// read takes a batch apart. Every event must be a span, and in the dataset of its service.
func read(r *http.Request, dataset string) (events []event, err error) {
	if got := r.Header.Get("Content-Type"); got != "application/msgpack" {
		return nil, fmt.Errorf("content type %q", got)
	}
	body := io.Reader(r.Body)
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "":
	case "zstd":
		decoder, err := zstd.NewReader(body)
		if err != nil {
			return nil, err
		}
		defer decoder.Close()
		body = decoder
	default:
		return nil, fmt.Errorf("content encoding %q", encoding)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	m := msgpack{text}
	batch, err := m.value()
	if err != nil {
		return nil, err
	}
	list, ok := batch.([]any)
	if !ok || len(m.rest) > 0 {
		return nil, fmt.Errorf("a batch is a list, got %T and %d bytes more", batch, len(m.rest))
	}
	for _, item := range list {
		outer, _ := item.(map[string]any)
		data, _ := outer["data"].(map[string]any)
		text := func(name string) string {
			s, _ := data[name].(string)
			if s == "" && err == nil {
				err = fmt.Errorf("an event without %s: %v", name, item)
			}
			return s
		}
		e := event{
			trace: text("trace.trace_id"), id: text("trace.span_id"), name: text("name"), service: text("service.name"), replica: text("replica"), rate: 1,
		}
		if rate, ok := outer["samplerate"].(int64); ok {
			e.rate = rate
		}
		if err == nil && dataset != url.PathEscape(e.service) {
			err = fmt.Errorf("dataset %q for an event of %q", dataset, e.service)
		}
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func (h *honeycomb) took() (events []event, refused []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]event(nil), h.events...), append([]string(nil), h.refused...)
}
