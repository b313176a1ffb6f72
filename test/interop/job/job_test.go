// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package job runs docs/whole-job.md: eight ranks of NeMo Lens on two nodes, agents, a gateway, Jaeger, Weave's ingest, Prometheus.
package job // import "github.com/lenscol/lenscol/test/interop/job"

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/test/interop/weave"
	"github.com/lenscol/lenscol/test/jaegertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	run      = "4711"   // the job's id
	wandb    = "3f9k2q" // its run in W&B
	loss     = "megatron_training_loss"
	ranks    = 8
	slow     = 2
	failing  = 3 // in one step
	killed   = 5
	strategy = 0 // the rank that goes to Jaeger and Weave

	patience = 3 * time.Minute // far beyond what a busy machine needs, and beyond the minute after which a rank is silent
)

// eventually waits for what other processes do.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(200 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "waited in vain: %s", what)
	}
}

// Rank 5 is killed while it trains, rank 2 is slow, a step of rank 3 fails. Every span that a rank saw acknowledged is, once, in the archive of its node
// and of the gateway, and where it is of rank 0 or failed in Jaeger and Weave; every rank is one series in Prometheus; and whoever looks for the sick ranks finds them.
func TestWholeJob(t *testing.T) {
	s := newSite(t)
	jaeger, ingest := jaegertest.Start(t), weave.StartIngest(t)
	prometheus := s.startPrometheus(t)
	gateway := s.startGateway(t, "LENSCOL_JAEGER="+jaeger.OTLP, "LENSCOL_REMOTE_WRITE="+prometheus.URL+"/api/v1/write", "WF_TRACE_SERVER_URL="+ingest.URL)
	agents := s.startAgents(t, gateway)
	prometheus.scrape(t, agents)
	job := s.startRanks(t)

	eventually(t, "every rank at the gateway and in Prometheus", func() bool {
		view := gateway.view(t)
		return len(view.Rows.Rank) == ranks && slices.Min(view.Rows.Step) >= 10 && slices.Min(view.Rows.Points) > 0 &&
			len(prometheus.values(t, loss, "agents")) == ranks && len(prometheus.values(t, loss, "")) == ranks
	})
	job.kill(t, killed)
	eventually(t, "a rank is silent", func() bool { return gateway.view(t).Silent > 0 })

	s.requireSickRanks(t, gateway)

	gateway.pause(t) // What the ranks send at their ends waits in the agents.
	job.end(t)
	waits := len(s.ofNodes(t)) - len(read(t, filepath.Join(gateway.Dir, "lens-data")))
	require.GreaterOrEqual(t, waits, ranks-1, "spans that wait in the agents: a root of each rank")
	s.drain(t, gateway, agents)

	// What the gateway has is all that there will be.
	archive := read(t, filepath.Join(gateway.Dir, "lens-data"))
	requireSame(t, s.ofNodes(t), archive)
	acknowledged := job.requireAcknowledged(t, archive)
	perRank := map[int]float64{} // steps
	var picked []string          // ids of the spans that rank_filter lets go on
	for id, span := range archive {
		if span.Name == "megatron.train.iteration" {
			perRank[span.Rank]++
		}
		if span.Rank == strategy || span.Status == "ERROR" {
			picked = append(picked, id)
		}
	}
	var inJaeger []string
	eventually(t, "all in Jaeger", func() bool {
		inJaeger = nil
		for _, span := range jaegertest.Spans(jaeger.Find("megatron", map[string]string{"nemo.run.id": run})) {
			inJaeger = append(inJaeger, span.SpanID)
		}
		return len(inJaeger) >= len(picked)
	})
	var calls []weave.Row
	eventually(t, "all in Weave", func() bool {
		calls, _ = ingest.List("/calls", "acme/llm")
		return len(calls) >= len(picked)
	})
	eventually(t, "every step in Prometheus", func() bool {
		counted := prometheus.values(t, "megatron_training_step_duration_ms_milliseconds_count", "")
		for rank, steps := range perRank {
			if rank != killed && counted[rank] != steps { // The killed rank had no time to say the last ones.
				return false
			}
		}
		return len(counted) == ranks
	})
	gateway.Stop()

	require.Greater(t, len(picked), 3*int(perRank[strategy]))
	slices.Sort(picked)
	slices.Sort(inJaeger)
	require.Equal(t, picked, inJaeger)
	requireCalls(t, calls, picked, archive)

	t.Logf("%d spans, %d of them acknowledged, %d picked, %d in the agents as they were ended", len(archive), acknowledged, len(picked), waits)
	s.requireReport(t, s.jobDir)
	s.requireReport(t, filepath.Join(gateway.Dir, "lens-data"))
}

// requireSame demands that the gateway has the spans of the nodes, and no others.
func requireSame(t *testing.T, ofNodes, archive map[string]span) {
	t.Helper()
	differ := map[string]span{}
	for id, span := range ofNodes {
		if archive[id] != span && len(differ) < 10 {
			differ[id] = span
		}
	}
	require.Empty(t, differ, "some of the %d spans of the nodes that are not so among the %d of the gateway", len(ofNodes), len(archive))
	require.Equal(t, len(ofNodes), len(archive))
}

// requireAcknowledged demands every span of an archive that a rank saw acknowledged, and says how many these are.
func (j *job) requireAcknowledged(t *testing.T, archive map[string]span) (n int) {
	t.Helper()
	for rank := range ranks {
		ids := j.acknowledged(t, rank)
		require.Greater(t, len(ids), 3*10, "rank %d", rank)
		n += len(ids)
		for _, id := range ids {
			span, ok := archive[id]
			require.True(t, ok, "span %s of rank %d was acknowledged and is not in the archive", id, rank)
			require.Equal(t, rank, span.Rank, id)
		}
	}
	return n
}

// requireCalls demands that Weave's calls are the spans with these sorted ids, on their ranks and steps.
func requireCalls(t *testing.T, calls []weave.Row, ids []string, archive map[string]span) {
	t.Helper()
	var inWeave []string
	for _, call := range calls {
		id := call["id"].(string)
		inWeave = append(inWeave, id)
		require.Equal(t, wandb, call.Shown("run"))
		require.Equal(t, run, call.Shown("attributes.nemo.run.id")) // As docs/find-a-run.md says.
		require.Equal(t, fmt.Sprint(archive[id].Rank), fmt.Sprint(call.Shown("attributes.dl.rank")))
		if step := archive[id].Attributes.Iteration; step > 0 {
			require.Equal(t, fmt.Sprint(step), fmt.Sprint(call.Shown("step")), id)
		}
	}
	slices.Sort(inWeave)
	require.Equal(t, ids, inWeave)
}

// requireSickRanks demands of what shows the run while it runs that it names them.
func (s *site) requireSickRanks(t *testing.T, gateway *gateway) {
	t.Helper()
	view := gateway.view(t)
	for i, rank := range view.Rows.Rank {
		require.Equal(t, rank == killed, view.Rows.Silent[i], "rank %d", rank)
		require.Equal(t, host(rank), view.Hosts[view.Rows.Host[i]], "rank %d", rank)
	}
	require.Equal(t, killed, view.SilentRanks[0].Rank)
	require.Equal(t, slow, view.Slowest[0].Rank)
	require.Equal(t, slow, view.Behind[0].Rank)
	require.Equal(t, 2, view.Errors, "a pass and its step")

	top := s.run(t, []string{"LENSCOL_HEALTH_PORT=" + gateway.health}, "top", "--once")
	require.Regexp(t, fmt.Sprintf(`(?m)^SLOWEST .*\nrank %d +%s `, slow, host(slow)), top)
	require.Regexp(t, fmt.Sprintf(`(?m)^BEHIND .*\nrank %d +%s `, slow, host(slow)), top)
	require.Regexp(t, fmt.Sprintf(`(?m)^SILENT .*\nrank %d +%s .*\n\n`, killed, host(killed)), top)
	requirePage(t, "http://127.0.0.1:"+gateway.health+"/")
}

// requireReport demands it of the report on an archive.
func (s *site) requireReport(t *testing.T, folder string) {
	t.Helper()
	report := s.run(t, nil, "report", folder)
	require.Regexp(t, fmt.Sprintf(`(?m)^RANK +SERVICE +HOST .*\n%d +megatron +%s .*stands out$`, slow, host(slow)), report)
	require.Regexp(t, fmt.Sprintf(`(?m)^GAPS .*\n.* %d +no span any more, while others of the attempt went on$`, killed), report)
	require.Regexp(t, `(?m)^1 .* ended  -$`, report, "the attempt, after an error that it survived")
}

// span is a line of an archive.
type span struct {
	Type       string
	Name       string
	SpanID     string `json:"span_id"`
	Run        string
	Rank       int
	Status     string
	Attributes struct {
		Iteration int `json:"megatron.iteration"`
	}
}

// ofNodes are the spans in the archives of the nodes.
func (s *site) ofNodes(t *testing.T) map[string]span {
	t.Helper()
	spans := map[string]span{}
	for node := range nodes {
		for id, span := range read(t, filepath.Join(s.jobDir, host(node*perNode))) {
			require.Equal(t, node, span.Rank/perNode, "a rank of another node")
			spans[id] = span
		}
	}
	return spans
}

// read reads the spans of an archive, up to its last whole line. None is there twice, and all are of the run.
func read(t *testing.T, folder string) map[string]span {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "traces.jsonl"))
	require.NoError(t, err)
	spans := map[string]span{}
	for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) {
		var s span
		require.NoError(t, json.Unmarshal(line, &s), "%s", line)
		if s.Type != "span" {
			continue
		}
		require.Empty(t, spans[s.SpanID], "twice in %s", folder)
		require.Equal(t, run, s.Run, "%s", line)
		spans[s.SpanID] = s
	}
	return spans
}
