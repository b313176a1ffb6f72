// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package runs serves what the runs do: /api/runs, /api/runs/{id} and the stream /api/events. docs/runs.md specifies them.
package runs // import "github.com/lenscol/lenscol/extension/lenshealth/internal/runs"

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/lenscol/lenscol/internal/runview"
	"github.com/lenscol/lenscol/sdk/rank"
)

// API is the handlers. It has telemetry reported to the process's model until Shutdown.
type API struct {
	model     *runview.Model
	leave     func()
	health    Answer
	pipelines Answer
	answers   answers
	listeners atomic.Int64
}

// Answer is what /health or /api/pipelines answers, for the stream.
type Answer func(context.Context) any

// New begins to look at the runs.
func New(health, pipelines Answer) *API {
	a := &API{health: health, pipelines: pipelines}
	a.answers = answers{now: time.Now, changes: func() uint64 { return a.model.Changes() }, kept: map[question]*answer{}}
	a.model, a.leave = runview.Join()
	return a
}

// Handlers are the handlers by their patterns for http.ServeMux.
func (a *API) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /api/runs":      http.HandlerFunc(a.serveRuns),
		"GET /api/runs/{id}": http.HandlerFunc(a.serveRun),
		"GET /api/events":    http.HandlerFunc(a.serveEvents),
	}
}

// Shutdown ends the looking. Streams end with the contexts of their requests.
func (a *API) Shutdown() { a.leave() }

// question is what is asked for: all runs, where the id is empty, or one.
type question struct {
	id          string
	steps, only int
}

func (a *API) serveRuns(w http.ResponseWriter, r *http.Request) {
	a.runs().serve(w, r)
}

func (a *API) runs() *answer {
	return a.answers.to(question{}, func() any { return a.model.Runs() })
}

func (a *API) serveRun(w http.ResponseWriter, r *http.Request) {
	q := question{id: r.PathValue("id")}
	var err error
	if q.steps, err = number(r, "steps", 32, runview.RecentSteps); err == nil {
		q.only, err = number(r, "rank", rank.Unknown, math.MaxInt32)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	answer := a.answers.to(q, func() any {
		if run, ok := a.model.Run(q.id, q.steps, q.only); ok {
			return run
		}
		return nil
	})
	if answer == nil {
		refuse(w, http.StatusNotFound, "there is no such run; /api/runs lists them")
		return
	}
	answer.serve(w, r)
}

// number reads a parameter of the query, 0 to most.
func number(r *http.Request, name string, missing, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%s: must be a number from 0 to %d", name, most)
	}
	return n, nil
}

func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // Who asked may have gone.
}
