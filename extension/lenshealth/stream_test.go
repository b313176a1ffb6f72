// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/telemetry"
)

var epoch = time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)

// seen is what a look finds at a second.
type seen struct {
	at     int
	n      numbers
	logged int64 // failed attempts in the log, the last of them at this second
}

// TestTruth is the truth table: what a flow does, and what is said of it some seconds later.
func TestTruth(t *testing.T) {
	const inside, foreign = 35 * time.Second, 10 * time.Second // how long a request may be in flight while nothing moves
	for _, tt := range []struct {
		name   string
		kind   string
		stall  time.Duration
		looks  []seen
		at     int // when it is asked, in seconds
		want   Status
		reason string // the code of the first
	}{
		{"idle", kindExporter, inside, []seen{{at: 0}, {at: 2}}, 600, Healthy, ""},
		{"works", kindExporter, inside, []seen{{at: 0}, {at: 2, n: numbers{good: 5}}}, 2, Healthy, ""},
		{"has worked and is idle", kindExporter, inside, []seen{{at: 0, n: numbers{good: 5}}, {at: 600, n: numbers{good: 5}}}, 600, Healthy, ""},

		{"first failed attempt", kindExporter, inside, []seen{{at: 0, n: numbers{inFlight: 1}, logged: 1}}, 1, Degraded, "sends_failed"},
		{"attempts fail for the window", kindExporter, inside, []seen{{at: 0, n: numbers{inFlight: 1}, logged: 1}, {at: 5, n: numbers{inFlight: 1}, logged: 2}}, 10, Unhealthy, "sends_fail"},
		{"one attempt failed, long back-off", kindExporter, inside, []seen{{at: 0, n: numbers{inFlight: 1}, logged: 1}, {at: 14, n: numbers{inFlight: 1}, logged: 1}}, 14, Unhealthy, "sends_fail"},
		{"worked until it failed", kindExporter, inside, []seen{{at: 0, n: numbers{good: 9}}, {at: 2, n: numbers{good: 12, inFlight: 1}, logged: 1}, {at: 4, n: numbers{good: 12, inFlight: 1}, logged: 1}}, 12, Unhealthy, "sends_fail"},
		{"recovered a moment ago", kindExporter, inside, []seen{{at: 0, logged: 1}, {at: 60, logged: 9}, {at: 62, n: numbers{good: 1}, logged: 9}}, 62, Degraded, "sends_failed"},
		{"recovered", kindExporter, inside, []seen{{at: 0, logged: 1}, {at: 60, logged: 9}, {at: 62, n: numbers{good: 1}, logged: 9}}, 70, Healthy, ""},
		{"some sends fail, others succeed", kindExporter, inside, []seen{{at: 0, n: numbers{good: 1}, logged: 1}, {at: 8, n: numbers{good: 2}, logged: 2}, {at: 16, n: numbers{good: 3}, logged: 3}}, 17, Degraded, "sends_failed"},

		{"a retry succeeded between two looks, and then it is idle", kindExporter, inside, []seen{{at: 0, n: numbers{good: 1}}, {at: 2, n: numbers{good: 2}, logged: 1}, {at: 4, n: numbers{good: 2}, logged: 1}}, 60, Healthy, ""},
		{"one succeeded, one failed between two looks, and none since", kindExporter, inside, []seen{{at: 0, n: numbers{good: 1}}, {at: 2, n: numbers{good: 2, inFlight: 1}, logged: 1}, {at: 4, n: numbers{good: 2, inFlight: 1}, logged: 1}}, 60, Unhealthy, "sends_fail"},

		{"gave up, without a success since", kindExporter, inside, []seen{{at: 0}, {at: 2, n: numbers{bad: 7}}, {at: 300, n: numbers{bad: 7}}}, 300, Unhealthy, "sends_fail"},
		{"gave up a moment ago, though others succeed", kindExporter, inside, []seen{{at: 0}, {at: 2, n: numbers{bad: 7, good: 1}}, {at: 4, n: numbers{bad: 7, good: 2}}}, 5, Unhealthy, "data_lost"},
		{"gave up one and sent another between two looks, and then it is idle", kindExporter, inside, []seen{{at: 0}, {at: 2, n: numbers{bad: 7, good: 1}, logged: 1}, {at: 4, n: numbers{bad: 7, good: 1}, logged: 1}}, 60, Healthy, ""},
		{"gave up and has worked since", kindExporter, inside, []seen{{at: 0}, {at: 2, n: numbers{bad: 7}}, {at: 4, n: numbers{bad: 7, good: 2}}}, 13, Healthy, ""},
		{"the queue took no more", kindExporter, inside, []seen{{at: 0, n: numbers{good: 1}}, {at: 2, n: numbers{good: 2, unqueued: 3}}}, 3, Unhealthy, "queue_full"},
		{"the queue takes again", kindExporter, inside, []seen{{at: 0, n: numbers{good: 1}}, {at: 2, n: numbers{good: 2, unqueued: 3}}}, 12, Healthy, ""},
		{"the queue fills", kindExporter, inside, []seen{{at: 0, n: numbers{good: 1, hasQueue: true, queue: 8, capacity: 10}}}, 0, Degraded, "queue_fills"},
		{"the queue has room", kindExporter, inside, []seen{{at: 0, n: numbers{good: 1, hasQueue: true, queue: 7, capacity: 10}}}, 0, Healthy, ""},

		{"slow: one answer in 30 s", kindExporter, inside, []seen{{at: 0, n: numbers{inFlight: 1}}, {at: 10, n: numbers{inFlight: 1}}, {at: 29, n: numbers{inFlight: 1}}}, 30, Healthy, ""},
		{"slow, and it answers", kindExporter, inside, []seen{{at: 0, n: numbers{inFlight: 1}}, {at: 30, n: numbers{inFlight: 1, good: 1}}, {at: 60, n: numbers{inFlight: 1, good: 1}}}, 60, Healthy, ""},
		{"hangs beyond its timeout", kindExporter, inside, []seen{{at: 0, n: numbers{inFlight: 1}}, {at: 34, n: numbers{inFlight: 1}}}, 35, Unhealthy, "stalled"},
		{"in flight, another build", kindExporter, foreign, []seen{{at: 0, n: numbers{inFlight: 1}}, {at: 8, n: numbers{inFlight: 1}}}, 9, Healthy, ""},
		{"nothing moves, another build", kindExporter, foreign, []seen{{at: 0, n: numbers{inFlight: 1}}, {at: 8, n: numbers{inFlight: 1}}}, 10, Unhealthy, "stalled"},
		{"many in flight and all move, another build", kindExporter, foreign, []seen{{at: 0, n: numbers{inFlight: 10, good: 1}}, {at: 8, n: numbers{inFlight: 10, good: 2}}, {at: 16, n: numbers{inFlight: 10, good: 3}}}, 17, Healthy, ""},
		{"moved again, another build", kindExporter, foreign, []seen{{at: 0, n: numbers{inFlight: 10}}, {at: 20, n: numbers{inFlight: 9, good: 1}}}, 21, Healthy, ""},
		{"waits for a batch to fill", kindExporter, foreign, []seen{{at: 0, n: numbers{hasQueue: true, queue: 1, capacity: 10}}, {at: 60, n: numbers{hasQueue: true, queue: 1, capacity: 10}}}, 60, Healthy, ""},

		{"load_balancing, that takes all", kindExporter, inside, []seen{{at: 0, n: numbers{good: 1}, logged: 1}, {at: 8, n: numbers{good: 2}, logged: 2}}, 17, Unhealthy, "sends_fail"},
		{"load_balancing, and no attempt fails any more", kindExporter, inside, []seen{{at: 0, n: numbers{good: 1}, logged: 1}, {at: 8, n: numbers{good: 2}, logged: 2}, {at: 54, n: numbers{good: 3}, logged: 2}}, 55, Healthy, ""},

		{"receiver that refuses", kindReceiver, inside, []seen{{at: 0, n: numbers{bad: 1}}, {at: 5, n: numbers{bad: 2}}}, 6, Degraded, "refuses"},
		{"receiver that only refuses", kindReceiver, inside, []seen{{at: 0, n: numbers{bad: 1}}, {at: 8, n: numbers{bad: 2}}}, 12, Unhealthy, "refuses"},
		{"receiver whose sender has gone", kindReceiver, inside, []seen{{at: 0, n: numbers{bad: 1}}, {at: 8, n: numbers{bad: 2}}}, 60, Healthy, ""},
		{"receiver that takes again", kindReceiver, inside, []seen{{at: 0, n: numbers{bad: 1}}, {at: 8, n: numbers{bad: 1, good: 4}}}, 12, Healthy, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &stream{flow: flow{tt.kind, "x", "traces"}, handsOver: strings.HasPrefix(tt.name, "load_balancing")}
			for _, look := range tt.looks {
				at := epoch.Add(time.Duration(look.at) * time.Second)
				logged := telemetry.Failure{Count: look.logged, Last: at}
				if look.logged == s.logged.Count {
					logged.Last = s.logged.Last
				}
				s.learn(at, look.n, logged)
			}
			status, reasons := s.judge(epoch.Add(time.Duration(tt.at)*time.Second), limits{window: 10 * time.Second, stall: tt.stall})
			require.Equal(t, tt.want, status, "%+v", reasons)
			if tt.reason == "" {
				require.Empty(t, reasons)
			} else {
				require.Equal(t, tt.reason, reasons[0].Code)
			}
		})
	}
}

// Whatever the looks and the attempts fall on, a target that is down is told within 15 s of the first failed send.
func TestFailureIsToldWithin15Seconds(t *testing.T) {
	for attempt := range 2000 { // milliseconds after a look at which sends begin to fail
		s := &stream{flow: flow{kindExporter, "x", "traces"}}
		failed := epoch.Add(time.Duration(attempt) * time.Millisecond)
		s.learn(epoch, numbers{good: 1}, telemetry.Failure{})
		for at := epoch.Add(lookEvery); at.Before(failed.Add(15 * time.Second)); at = at.Add(lookEvery) {
			// In the first of them a last success may fall between the same two looks.
			s.learn(at, numbers{good: 2, inFlight: 1}, telemetry.Failure{Count: 1, Last: failed})
		}
		status, _ := s.judge(failed.Add(15*time.Second), limits{window: 10 * time.Second, stall: 35 * time.Second})
		require.Equal(t, Unhealthy, status)
	}
}

func TestRate(t *testing.T) {
	s := &stream{}
	good := func(n numbers) int64 { return n.good }
	require.Zero(t, s.rate(good))
	for i := range int64(100) {
		s.learn(epoch.Add(time.Duration(i)*lookEvery), numbers{good: i * 10}, telemetry.Failure{})
	}
	require.InDelta(t, 5, s.rate(good), 1e-9)
	require.LessOrEqual(t, len(s.samples), 7, "the samples are bounded")
	for i := range int64(10) {
		s.learn(epoch.Add(200*time.Second+time.Duration(i)*lookEvery), numbers{good: 990}, telemetry.Failure{})
	}
	require.Zero(t, s.rate(good))
}
