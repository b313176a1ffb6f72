// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"fmt"
	"time"

	"github.com/lenscol/lenscol/telemetry"
)

// stream follows a flow from look to look and judges it.
//
// What exporters count, they count late: while a send is retried, for minutes, neither sent nor failed moves. The early
// signs are that exporterhelper logs each failed attempt (package telemetry sees that), and that requests are in flight
// and nothing moves. The second cannot tell a dead backend from a slow one, so where the first can be seen it waits
// until the exporter's own timeout has passed: what hangs longer fails by then, and that is logged.
type stream struct {
	flow
	handsOver bool // it counts as sent what it hands to exporters of its own, whose failures are logged and not counted

	now     numbers           // of the last look
	samples []sample          // the last looks, for rates
	logged  telemetry.Failure // of the last look
	known   bool              // there was a look that had it

	lastSuccess  time.Time
	lastFailure  time.Time // of a send that may be tried again, or of a refusal
	failingSince time.Time // the first failure that no success has followed
	lostAt       time.Time // items were given up
	lost         int64     // items that were given up then
	fullAt       time.Time // the queue took no more
	unqueued     int64     // items that it did not take then
	stuckSince   time.Time // requests are in flight, and nothing has moved since
}

type sample struct {
	at time.Time
	numbers
}

// rateSpan is what rates are averages over.
const rateSpan = 10 * time.Second

// learn takes what a look gave. logged are the failed sends of an exporter, from inside.
func (s *stream) learn(at time.Time, n numbers, logged telemetry.Failure) {
	was, succeeded := s.now, n.good > s.now.good
	if succeeded {
		s.lastSuccess = at
	}
	if succeeded && !s.handsOver || s.handsOver && at.Sub(s.lastFailure) > handOverQuiet {
		s.failingSince = time.Time{}
	}
	if n.bad > was.bad {
		s.failed(at)
		if s.kind == kindExporter {
			s.lostAt, s.lost = at, n.bad-was.bad
		}
	}
	if n.unqueued > was.unqueued {
		s.fullAt, s.unqueued = at, n.unqueued-was.unqueued
	}
	if logged.Count > s.logged.Count {
		s.failed(logged.Last)
	}
	if succeeded && n.inFlight == 0 && !s.handsOver { // Nothing is on its way any more: what failed went through, or is told as lost.
		s.failingSince = time.Time{}
	}

	moved := succeeded || n.bad > was.bad || !s.known
	switch {
	case n.inFlight == 0:
		s.stuckSince = time.Time{}
	case moved || s.stuckSince.IsZero():
		s.stuckSince = at
	}

	s.now, s.logged, s.known = n, logged, true
	s.samples = append(s.samples, sample{at, n})
	for len(s.samples) > 2 && at.Sub(s.samples[1].at) >= rateSpan {
		s.samples = s.samples[1:]
	}
}

// handOverQuiet is how long an exporter whose successes mean nothing must have no failed attempt to be taken for well: the longest
// back-off there is by default, 30 seconds, with its jitter.
const handOverQuiet = 45 * time.Second

// failed notes a failure. Where a look shows a success too, nobody knows which of them came first: the failure is taken for
// the later one, and the next success ends it.
func (s *stream) failed(at time.Time) {
	s.lastFailure = at
	if s.failingSince.IsZero() {
		s.failingSince = at
	}
}

// rate is items or requests a second of a number, over the last looks.
func (s *stream) rate(of func(numbers) int64) float64 {
	if len(s.samples) < 2 {
		return 0
	}
	first, last := s.samples[0], s.samples[len(s.samples)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(of(last.numbers)-of(first.numbers)) / seconds
}

// limits are what a stream is judged by.
type limits struct {
	window time.Duration // how long a failure counts, and for how long sends may fail without a success
	stall  time.Duration // how long requests may be in flight while nothing moves
}

// queueFills is the share of its capacity from which a queue is worth a word.
const queueFills = 0.8

// judge says how the flow does, with the reasons for anything but healthy. A flow that has done nothing yet is healthy:
// nothing was asked of it.
func (s *stream) judge(now time.Time, l limits) (status Status, reasons []Reason) {
	status = Healthy
	say := func(as Status, code, format string, args ...any) {
		status = worse(status, as)
		reasons = append(reasons, Reason{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	recent := func(at time.Time) bool { return !at.IsZero() && now.Sub(at) < l.window }

	if s.kind == kindReceiver {
		// A sender that was refused and went away leaves nothing to recover from.
		switch failing := !s.failingSince.IsZero() && now.Sub(s.failingSince) >= l.window; {
		case failing && now.Sub(s.lastFailure) < 3*l.window:
			say(Unhealthy, "refuses", "nothing was accepted since %s, what came was refused", clock(s.failingSince))
		case recent(s.lastFailure):
			say(Degraded, "refuses", "something was refused, last at %s", clock(s.lastFailure))
		}
		return status, reasons
	}

	if recent(s.lostAt) {
		say(Unhealthy, "data_lost", "%d items were given up at %s", s.lost, clock(s.lostAt))
	}
	if recent(s.fullAt) {
		say(Unhealthy, "queue_full", "the queue did not take %d items at %s", s.unqueued, clock(s.fullAt))
	}
	switch {
	case !s.failingSince.IsZero() && now.Sub(s.failingSince) >= l.window:
		say(Unhealthy, "sends_fail", "no send has succeeded since %s%s", clock(s.failingSince), s.why())
	case recent(s.lastFailure):
		say(Degraded, "sends_failed", "a send failed at %s%s", clock(s.lastFailure), s.why())
	case !s.stuckSince.IsZero() && now.Sub(s.stuckSince) >= l.stall:
		say(Unhealthy, "stalled", "%d requests are in flight, and none has ended since %s", s.now.inFlight, clock(s.stuckSince))
	}
	if s.now.capacity > 0 && float64(s.now.queue) >= queueFills*float64(s.now.capacity) {
		say(Degraded, "queue_fills", "the queue holds %d of %d", s.now.queue, s.now.capacity)
	}
	return status, reasons
}

func (s *stream) why() string {
	if s.logged.Reason == "" {
		return ""
	}
	return ": " + s.logged.Reason
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05Z") }
