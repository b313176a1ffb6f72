// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lenscol/lenscol/internal/testbed"
)

// runsConfig lets one rank of 64 through. Two pipelines share the receiver, each with an enricher: what passes counts once
// all the same.
const runsConfig = `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}", middlewares: [{id: rank_gate}]}
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}", middlewares: [{id: rank_gate}]}
processors: {run_id_enricher: {run_id: {static: the-run}, host: false}}
exporters: {nop: }
extensions:
  rank_gate:
  lens_health: {endpoint: "127.0.0.1:${env:LENSCOL_HEALTH_PORT}"}
service:
  extensions: [rank_gate, lens_health]
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    traces/a: {receivers: [otlp], processors: [run_id_enricher], exporters: [nop]}
    traces/b: {receivers: [otlp], processors: [run_id_enricher], exporters: [nop]}
    logs: {receivers: [otlp], processors: [run_id_enricher], exporters: [nop]}
`

// TestRuns: 63 of 64 ranks are dropped on the wire, and all 64 are on /api/runs with their steps, those too that leave it to
// the collector to name the run.
func TestRuns(t *testing.T) {
	t.Parallel()
	port := testbed.FreePort(t)
	collector := testbed.Start(t, testbed.Options{Config: runsConfig, Env: []string{"LENSCOL_HEALTH_PORT=" + port}})
	client := collector.Client()
	defer client.Close()
	const ranks, steps, slow = 64, 10, 17
	now := time.Now()
	for rank := range ranks {
		traces, logs := aRank(t, rank, ranks, steps, slow, now)
		var err error
		if rank%2 == 0 {
			err = client.GRPC(t.Context(), "traces", traces, rank%4 == 0)
		} else {
			err = client.HTTP(t.Context(), "traces", testbed.Protobuf, traces, rank%4 == 1)
		}
		require.NoError(t, err)
		require.NoError(t, client.GRPC(t.Context(), "logs", logs, false))
	}

	run := getRun(t, "http://127.0.0.1:"+port, func(r runAnswer) bool { return len(r.Rows.Rank) == ranks && slices.Min(r.Rows.Records) > 0 })
	require.Equal(t, ranks, run.Ranks)
	require.Equal(t, ranks, run.WorldSize)
	require.EqualValues(t, steps, run.FrontStep)
	require.EqualValues(t, ranks*steps*2, run.Spans)
	require.EqualValues(t, (ranks-1)*(steps*2+1), run.Dropped)
	for i := range ranks {
		require.Equal(t, i, run.Rows.Rank[i])
		require.EqualValues(t, steps, run.Rows.Step[i])
		require.EqualValues(t, 2*steps, run.Rows.Spans[i])
		require.EqualValues(t, 1, run.Rows.Records[i])
		require.EqualValues(t, 1, run.Rows.Errors[i])
		want := .5
		if i == slow {
			want = .75
		}
		require.Equal(t, slices.Repeat([]float64{want}, steps), run.Rows.Recent[i])
	}
	require.Equal(t, slow, run.Slowest[0].Rank)
	require.Equal(t, "node-2", run.Slowest[0].Host)
}

// aRank is what a rank sends of its steps: a span each and another in it, and a record of an error. Every other rank names
// its run.
func aRank(t *testing.T, rank, world, steps, slow int, now time.Time) (traces, logs []byte) {
	describe := func(r pcommon.Resource) {
		r.Attributes().PutStr("service.name", "megatron")
		if rank%2 == 0 {
			r.Attributes().PutStr("nemo.run.id", "the-run")
		}
		r.Attributes().PutStr("host.name", "node-"+string(rune('0'+rank/8)))
		r.Attributes().PutInt("dl.rank", int64(rank))
		r.Attributes().PutInt("dl.world_size", int64(world))
	}
	took := 500 * time.Millisecond
	if rank == slow {
		took = 750 * time.Millisecond
	}
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	describe(rs.Resource())
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for step := range steps {
		begin := now.Add(time.Duration(step-steps) * time.Second)
		for _, name := range []string{"megatron.train.iteration.forward_backward", "megatron.train.iteration"} {
			span := spans.AppendEmpty()
			span.SetName(name)
			span.SetTraceID(pcommon.TraceID{1, byte(rank), byte(step)})
			span.SetSpanID(pcommon.SpanID{2, byte(len(name))})
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(begin))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(took)))
			span.Attributes().PutInt("megatron.iteration", int64(step+1))
		}
	}
	traces, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	require.NoError(t, err)

	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	describe(rl.Resource())
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetSeverityNumber(plog.SeverityNumberError)
	logs, err = plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	require.NoError(t, err)
	return traces, logs
}

// runAnswer is what the test reads of /api/runs/{id}, as docs/runs.md has it.
type runAnswer struct {
	Ranks     int   `json:"ranks"`
	WorldSize int   `json:"world_size"`
	FrontStep int64 `json:"front_step"`
	Spans     int64 `json:"spans"`
	Dropped   int64 `json:"dropped"`
	Slowest   []struct {
		Rank int    `json:"rank"`
		Host string `json:"host"`
	} `json:"slowest"`
	Rows struct {
		Rank    []int       `json:"rank"`
		Step    []int64     `json:"step"`
		Spans   []int64     `json:"spans"`
		Records []int64     `json:"records"`
		Errors  []int64     `json:"errors"`
		Recent  [][]float64 `json:"recent"`
	} `json:"rows"`
}

// getRun asks for the one run that there is until its answer is done: it may be a second old.
func getRun(t *testing.T, base string, done func(runAnswer) bool) (run runAnswer) {
	ask := func(path string, into any) {
		resp, err := healthClient.Get(base + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
	}
	require.Eventually(t, func() bool {
		var all struct {
			Runs []struct{ ID string } `json:"runs"`
		}
		if ask("/api/runs", &all); len(all.Runs) == 0 {
			return false
		}
		require.Len(t, all.Runs, 1)
		require.Equal(t, "the-run", all.Runs[0].ID)
		run = runAnswer{}
		ask("/api/runs/the-run?steps=10", &run)
		return done(run)
	}, time.Minute, 100*time.Millisecond)
	return run
}
