// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package weave

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/e2e/oracle"
)

const run = "3f9k2q"

// startExporter starts the built collector with a weave exporter whose config is the environment and that mode.
func startExporter(t *testing.T, weave *Ingest, mode string) *testbed.Collector {
	return testbed.Start(t, testbed.Options{
		Config: `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}
exporters:
  weave: {mode: ` + mode + `}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [weave]}
  telemetry: {metrics: {level: none}}
`,
		Env: []string{"WF_TRACE_SERVER_URL=" + weave.URL, "WANDB_API_KEY=" + weavetest.Key, "WANDB_ENTITY=team", "WANDB_PROJECT=none", "WANDB_RUN_ID=" + run},
	})
}

// TestCaptures sends what real programs sent: each span is a call of Weave, under its name, on its run and step, and its attributes
// can be filtered on.
func TestCaptures(t *testing.T) {
	weave := StartIngest(t)
	collector := startExporter(t, weave, "calls")
	client := collector.Client()
	var spans []sent
	projects := 0
	for _, capture := range testbed.Captures(t) {
		if capture.Signal != "traces" {
			continue
		}
		request, err := oracle.From(capture.Signal, capture.JSON, capture.Body)
		require.NoError(t, err)
		// Captures of one scenario repeat ids: each goes to a project of its own.
		project := strings.NewReplacer("/", "-").Replace(capture.Name)
		for _, rs := range request.Traces.ResourceSpans {
			rs.Resource.Attributes = append(rs.Resource.Attributes, text("wandb.entity", "team"), text("wandb.project", project))
		}
		projects++
		spans = append(spans, spansOf("team/"+project, request.Traces)...)
		require.NoError(t, client.HTTP(t.Context(), "traces", testbed.Protobuf, marshal(request.Traces.ResourceSpans...), true), capture.Name)
	}
	weave.requireAllTaken("/calls", len(spans))
	collector.Stop()
	steps, filters := 0, 0
	for s, call := range weave.calls(spans) {
		requireCall(t, call, s)
		started, err := time.Parse(time.RFC3339Nano, call["started_at"].(string))
		require.NoError(t, err)
		require.WithinDuration(t, time.Unix(0, int64(s.StartTimeUnixNano)), started, time.Microsecond, s.from)
		if want, ok := s.step(); ok {
			steps++
			require.Equal(t, plain(t, want), plain(t, call.Shown("step")), "step of %s in %s", s.id(), s.from)
		}
		for key, want := range s.filters() {
			filters++
			require.Equal(t, plain(t, want), plain(t, call.Shown("attributes."+key)), "%s of %s in %s", key, s.id(), s.from)
		}
	}
	t.Logf("%d spans of %d captures, %d with a step, %d attributes filtered on", len(spans), projects, steps, filters)
	require.Greater(t, steps, len(spans)/4)
	require.Greater(t, filters, len(spans))
}

// TestHostile sends 200 batches full of what Weave loses by itself: each span that has ids is a call, nothing is rejected or refused,
// and what is harmless about a span is there as in any other.
func TestHostile(t *testing.T) {
	weave := StartIngest(t)
	collector := startExporter(t, weave, "calls")
	spans := sendHostile(t, collector, 200)
	weave.requireAllTaken("/calls", len(spans))
	collector.Stop()
	alone := 0
	for s, call := range weave.calls(spans) {
		if s.innocent() {
			alone++
			requireCall(t, call, s)
		}
		for key, want := range s.filters() {
			require.Equal(t, plain(t, want), plain(t, call.Shown("attributes."+key)), "%s of span %s in %s", key, s.id(), s.from)
		}
	}
	t.Logf("%d spans, %d of them with no key that has a meaning for Weave", len(spans), alone)
	require.Greater(t, alone, len(spans)/2)
}

// TestHostileAgents sends the like to the agents endpoint.
func TestHostileAgents(t *testing.T) {
	weave := StartIngest(t)
	collector := startExporter(t, weave, "agents")
	spans := sendHostile(t, collector, 50)
	weave.requireAllTaken("/spans", len(spans))
	collector.Stop()
	lists := map[string][]string{}
	for _, s := range spans {
		if lists[s.from] == nil {
			rows, _ := weave.List("/spans", s.from)
			for _, r := range rows {
				lists[s.from] = append(lists[s.from], r["span_id"].(string))
			}
		}
		require.Contains(t, lists[s.from], s.id(), s.from)
	}
}

// sendHostile sends batches of eight spans, each to a project of its own.
func sendHostile(t *testing.T, collector *testbed.Collector, batches int) []sent {
	t.Helper()
	client := collector.Client()
	var spans []sent
	for i := range batches {
		g := newGenerator(uint64(1_000_000+i), 0.25)
		project := fmt.Sprintf("hostilé %d", i)
		traces := &coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{
			g.resource("team", project, 4), g.resource("team", project, 4),
		}}
		spans = append(spans, spansOf("team/"+project, traces)...)
		body := marshal(traces.ResourceSpans...)
		require.NoError(t, client.HTTP(t.Context(), "traces", testbed.Protobuf, body, true), "batch %d", i)
	}
	return spans
}

// requireAllTaken waits until that many rows are in a list, for all projects. The test fails at once if Weave refused a request or
// rejected a span.
func (i *Ingest) requireAllTaken(list string, rows int) {
	i.tb.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		requests, _ := i.List("/requests", "")
		for _, r := range requests {
			require.Equal(i.tb, json.Number("200"), r["status"], "%v", r)
			require.Zero(i.tb, rejected(r["answer"].(map[string]any)), "%v", r)
		}
		size, _ := i.List("/size", "")
		if size[0][list] == json.Number(strconv.Itoa(rows)) {
			return
		}
		require.True(i.tb, time.Now().Before(deadline), "%v rows in %s, not %d", size[0][list], list, rows)
	}
}

// calls yields each span with its call. The test fails if one has none, or if a project has others.
func (i *Ingest) calls(spans []sent) iter.Seq2[sent, Row] {
	sizes := map[string]int{}
	for _, s := range spans {
		sizes[s.from]++
	}
	lists := map[string]map[string]Row{}
	for project, size := range sizes {
		rows, readable := i.List("/calls", project)
		require.True(i.tb, readable, "the calls of %s cannot be listed", project)
		require.Len(i.tb, rows, size, project)
		lists[project] = map[string]Row{}
		for _, r := range rows {
			lists[project][r["id"].(string)] = r
		}
	}
	return func(yield func(sent, Row) bool) {
		for _, s := range spans {
			call := lists[s.from][s.id()]
			require.NotNil(i.tb, call, "%s has no span %s", s.from, s.id())
			if !yield(s, call) {
				return
			}
		}
	}
}

// requireCall checks what does not depend on attributes.
func requireCall(t *testing.T, call Row, s sent) {
	t.Helper()
	what := fmt.Sprintf("%s, span %s %q", s.from, s.id(), s.Name)
	require.Equal(t, hex.EncodeToString(s.TraceId), call["trace_id"], what)
	require.Equal(t, run, call.Shown("run"), what)
	if display := call.Shown("display_name"); display != nil {
		require.Equal(t, strings.ReplaceAll(s.Name, notUTF8, "\ufffd"), display, what)
	} else if s.Name != "" {
		require.Equal(t, strings.ToLower(s.Name), call.Shown("op_name"), what)
	}
	if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		require.Equal(t, "error", call.Shown("status"), what)
	}
}
