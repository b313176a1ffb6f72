// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/perfetto"
	"github.com/lenscol/lenscol/internal/simrun"
)

// chromeEvent is an event of Chrome's format, as encoding/json reads it.
type chromeEvent struct {
	Ph, Name, Cat, ID, S, Bp string
	Pid, Tid                 int64
	Ts, Dur                  float64
	Args                     map[string]any
}

type chromeTrace struct {
	TraceEvents []chromeEvent
	Metadata    struct {
		Begin  string           `json:"begin_unix_ns"`
		Clocks []map[string]any `json:"clocks"`
	}
}

// chromeJudge draws the same in Chrome's format and compares: the same processes, slices, lanes, instants, counters and flows.
func chromeJudge(t *testing.T, file []byte, j *judged) chromeTrace {
	t.Helper()
	out, _ := draw(t, file, perfetto.Options{JSON: true})
	var trace chromeTrace
	require.NoError(t, json.Unmarshal(out, &trace))
	begin, err := strconv.ParseInt(trace.Metadata.Begin, 10, 64)
	require.NoError(t, err)
	nanoseconds := func(us float64) int64 { return int64(math.Round(us * 1000)) }

	names, threads := map[int64]string{}, map[[2]int64]string{}
	var got, want []string
	flows := map[string]string{}
	points := 0
	for _, e := range trace.TraceEvents {
		at := begin + nanoseconds(e.Ts)
		switch e.Ph {
		case "M":
			name, _ := e.Args["name"].(string)
			switch e.Name {
			case "process_name":
				names[e.Pid] = name
			case "thread_name":
				threads[[2]int64{e.Pid, e.Tid}] = name
			}
		case "X":
			got = append(got, fmt.Sprint(names[e.Pid], threads[[2]int64{e.Pid, e.Tid}], e.Name, at, " ", at+nanoseconds(e.Dur), e.Args["span_id"], e.Args["status"]))
		case "i":
			require.Equal(t, "t", e.S)
			got = append(got, fmt.Sprint(names[e.Pid], threads[[2]int64{e.Pid, e.Tid}], e.Name, at))
		case "C":
			points++
		case "s", "f":
			flows[e.ID] += e.Ph
		default:
			t.Errorf("phase %q", e.Ph)
		}
	}
	for _, s := range j.slices {
		want = append(want, fmt.Sprint(s.process, s.lane, s.name, s.at, " ", s.end, s.args["span_id"], s.args["status"]))
	}
	for _, s := range j.instants {
		if s.lane != "" {
			want = append(want, fmt.Sprint(s.process, s.lane, s.name, s.at))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(t, want, got)
	for pid, p := range j.processes {
		require.Equal(t, p.name, names[pid])
	}
	for _, values := range j.counters {
		points -= len(values)
	}
	require.Zero(t, points)
	require.Len(t, flows, len(j.flows))
	require.NoError(t, chromeNests(trace.TraceEvents))
	return trace
}

// chromeNests says where slices of a thread overlap.
func chromeNests(events []chromeEvent) error {
	lanes := map[[2]int64][]chromeEvent{}
	for _, e := range events {
		if e.Ph == "X" {
			lanes[[2]int64{e.Pid, e.Tid}] = append(lanes[[2]int64{e.Pid, e.Tid}], e)
		}
	}
	for lane, of := range lanes {
		slices.SortStableFunc(of, func(a, b chromeEvent) int { return cmp.Compare(a.Ts, b.Ts) })
		var ends []float64
		for _, e := range of {
			for len(ends) > 0 && ends[len(ends)-1] <= e.Ts+1e-4 {
				ends = ends[:len(ends)-1]
			}
			if len(ends) > 0 && e.Ts+e.Dur > ends[len(ends)-1]+1e-4 {
				return fmt.Errorf("lane %v: %s at %f outlasts what it lies in", lane, e.Name, e.Ts)
			}
			ends = append(ends, e.Ts+e.Dur)
		}
	}
	return nil
}

func TestChromeTraceHoldsTheSame(t *testing.T) {
	file, truth := simulated(t, func(c *simrun.Config) { c.Generation = simrun.NewNames })
	out, _ := draw(t, file, perfetto.Options{})
	trace := chromeJudge(t, file, mustJudge(t, out))
	require.Len(t, trace.Metadata.Clocks, 1+len(truth.Nodes))
	require.Equal(t, "node003", trace.Metadata.Clocks[4]["node"])
	flows := map[string]int{}
	for _, e := range trace.TraceEvents {
		if e.Ph == "s" || e.Ph == "f" {
			flows[e.Ph]++
		}
	}
	require.Equal(t, map[string]int{"s": truth.Links, "f": truth.Links}, flows)
}
