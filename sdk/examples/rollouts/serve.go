// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/contrib/nethttp"
	"github.com/lenscol/lenscol/sdk/instruments"
	"github.com/lenscol/lenscol/sdk/semconv"
)

var (
	verify = lens.Group("verify")
	agent  = lens.Group("agent")
)

// question is what a driver asks a gateway, and a gateway an environment.
type question struct {
	ID int `json:"id"`
}

type answer struct {
	Reward   float64 `json:"reward"`
	InFlight int     `json:"in_flight"` // rollouts at once, as the environment sees it
}

// environment verifies rollouts.
type environment struct {
	inFlight atomic.Int64
	gather   int64
	open     sync.Once     // of gathered
	gathered chan struct{} // is closed when that many are in flight
	metrics  instruments.Gym
}

func newEnvironment(s settings, meter metric.Meter) http.Handler {
	e := &environment{gather: int64(s.gather), gathered: make(chan struct{}), metrics: instruments.NewGym(meter, instruments.NewNames)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /verify", e.verify)
	return mux
}

func (e *environment) verify(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	q, err := read[question](r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, span := verify.Start(r.Context(), "gym.verify", lens.Int(semconv.GymRolloutID, q.ID))
	defer span.End()
	now := e.inFlight.Add(1)
	defer e.inFlight.Add(-1)
	if now >= e.gather {
		e.open.Do(func() { close(e.gathered) })
	}
	select {
	case <-e.gathered:
	case <-ctx.Done():
		span.Fail(ctx.Err())
		return
	}
	e.metrics.VerifyDuration.RecordDuration(ctx, time.Since(begin))
	write(w, answer{Reward: float64(q.ID % 2), InFlight: int(now)})
}

// gateway is the agent: it passes rollouts on.
type gateway struct {
	client *http.Client
	target string
}

func newGateway(s settings) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run", gateway{newClient(s), s.target}.run)
	return mux
}

func (g gateway) run(w http.ResponseWriter, r *http.Request) {
	q, err := read[question](r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, span := agent.Start(r.Context(), "gym.agent.responses", lens.Int(semconv.GymRolloutID, q.ID))
	defer span.End()
	a, err := ask(ctx, g.client, g.target+"/verify", q)
	if err != nil {
		span.Fail(err)
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	write(w, a)
}

// Both sides speak HTTP/2 without TLS: all rollouts share one connection.

// newClient is a client with a span for each request.
func newClient(s settings) *http.Client {
	t := &http.Transport{Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{StrictMaxConcurrentRequests: true}}
	t.Protocols.SetUnencryptedHTTP2(true)
	return nethttp.Client(&http.Client{Transport: t, Timeout: s.timeout})
}

// serve serves h until ctx is over, or stdin for a server with a parent, and ends requests that run.
func serve(ctx context.Context, s settings, h http.Handler, stdin io.Reader, stdout io.Writer) error {
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           nethttp.Handler(h),
		ReadHeaderTimeout: 10 * time.Second,
		Protocols:         new(http.Protocols),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: s.inFlight},
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	fmt.Fprintf(stdout, "%shttp://%s\n", listening, listener.Addr())

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ended := make(chan struct{})
	if s.parent {
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			close(ended)
		}()
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	case <-ended:
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return server.Shutdown(bounded)
}

// ask posts a question and reads the answer.
func ask(ctx context.Context, client *http.Client, url string, q question) (a answer, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	response, err := client.Do(request)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return a, fmt.Errorf("%s: %s: %s", url, response.Status, bytes.TrimSpace(text))
	}
	return read[answer](response.Body)
}

func read[T any](body io.Reader) (value T, err error) {
	err = json.NewDecoder(io.LimitReader(body, 1<<16)).Decode(&value)
	return value, err
}

func write(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // The other side is gone.
}
