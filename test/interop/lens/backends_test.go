// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package lens

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/interop/weave"
	"github.com/lenscol/lenscol/test/jaegertest"
)

// embedded starts one of the embedded configs.
func embedded(t *testing.T, name string, env ...string) *testbed.Collector {
	t.Helper()
	return testbed.Start(t, testbed.Options{
		Args: []string{"--config", "lenscol:" + name},
		Env:  append([]string{"LENSCOL_HOST=127.0.0.1", "LENSCOL_HEALTH_PORT=" + testbed.FreePort(t)}, env...),
	})
}

// startJaeger starts one, and a collector that sends to it.
func startJaeger(t *testing.T) (*jaegertest.Jaeger, *testbed.Collector) {
	t.Helper()
	if os.Getenv("LENSCOL_JAEGER_BIN") == "" {
		t.Skip("LENSCOL_JAEGER_BIN names no Jaeger: test/jaeger.sh builds one, make interop says why it could not")
	}
	jaeger := jaegertest.Start(t)
	return jaeger, embedded(t, "jaeger", "LENSCOL_JAEGER="+jaeger.OTLP)
}

// TestQuickstartInJaeger finds the job by its run id, in full.
func TestQuickstartInJaeger(t *testing.T) {
	t.Parallel()
	jaeger, c := startJaeger(t)
	p := run(t, c, nil, "quickstart.py")
	requireInJaeger(t, jaeger, "megatron", p.made())
	require.Len(t, jaeger.Find("megatron", map[string]string{"nemo.run.id": "interop"}), 1, "one trace")
	c.Stop()
	require.Equal(t, quickstart, names(spans(t, c)))
}

// requireInJaeger waits until Jaeger has as many spans of a service, and holds them against those that were made.
func requireInJaeger(t *testing.T, jaeger *jaegertest.Jaeger, service string, made []span) {
	t.Helper()
	type shown struct {
		span    jaegertest.Span
		process jaegertest.Process
	}
	byID := map[string]shown{}
	eventually(t, func() bool {
		clear(byID)
		for _, trace := range jaeger.Find(service, nil) {
			for _, s := range trace.Spans {
				byID[s.SpanID] = shown{s, trace.Processes[s.ProcessID]}
			}
		}
		for _, s := range made {
			if _, ok := byID[s.SpanID]; !ok {
				return false
			}
		}
		return true
	}, "Jaeger has %d spans of %s", len(made), service)
	for _, s := range made {
		got := byID[s.SpanID]
		require.Equal(t, []string{s.Name, s.TraceID, s.Resource["service.name"].(string)}, []string{got.span.OperationName, got.span.TraceID, got.process.ServiceName})
		require.Equal(t, []int64{s.StartNS / 1000, (s.EndNS - s.StartNS) / 1000}, []int64{got.span.StartTime, got.span.Duration}, s.Name)
		var references []jaegertest.Reference
		if s.ParentID != "" {
			references = append(references, jaegertest.Reference{RefType: "CHILD_OF", TraceID: s.TraceID, SpanID: s.ParentID})
		}
		for _, l := range s.Links {
			references = append(references, jaegertest.Reference{RefType: "FOLLOWS_FROM", TraceID: l.TraceID, SpanID: l.SpanID})
		}
		require.ElementsMatch(t, references, got.span.References, s.Name)
		requireTags(t, s.Attributes, got.span.Tags, s.Name)
		resource := map[string]any{}
		for key, v := range s.Resource {
			if key != "service.name" {
				resource[key] = v
			}
		}
		requireTags(t, resource, got.process.Tags, "resource of "+s.Name)
		require.Len(t, got.span.Logs, len(s.Events), s.Name)
		for i, e := range s.Events {
			require.Equal(t, e.TimeNS/1000, got.span.Logs[i].Timestamp, s.Name)
			e.Attributes["event"] = e.Name
			requireTags(t, e.Attributes, got.span.Logs[i].Fields, "event of "+s.Name)
		}
		if s.Status == "ERROR" {
			requireTags(t, map[string]any{"error": true, "otel.status_description": s.Message}, got.span.Tags, s.Name)
		}
	}
}

// requireTags fails unless each attribute is a tag; lists are JSON text there.
func requireTags(t *testing.T, attributes map[string]any, tags []jaegertest.Tag, of string) {
	t.Helper()
	got := map[string]string{}
	for _, tag := range tags {
		got[tag.Key] = fmt.Sprint(tag.Value)
	}
	for key, want := range attributes {
		if list, ok := want.([]any); ok {
			text, err := json.Marshal(list)
			require.NoError(t, err)
			want = string(text)
		}
		require.Equal(t, fmt.Sprint(want), got[key], "%s of %s", key, of)
	}
}

// TestQuickstartInWeave has every span as a call of Weave, on its step, in the project that the job's environment names.
func TestQuickstartInWeave(t *testing.T) {
	t.Parallel()
	if os.Getenv("LENSCOL_WEAVE_PYTHON") == "" {
		t.Skip("LENSCOL_WEAVE_PYTHON names no Python with Weave's trace server: make interop says why it could not")
	}
	ingest := weave.StartIngest(t)
	c := embedded(t, "weave", "WF_TRACE_SERVER_URL="+ingest.URL, "WANDB_API_KEY="+weavetest.Key, "WANDB_RUN_ID=3f9k2q")
	p := run(t, c, []string{"WANDB_ENTITY=team", "WANDB_PROJECT=lens"}, "quickstart.py")
	calls := map[string]weave.Row{}
	eventually(t, func() bool {
		rows, readable := ingest.List("/calls", "team/lens")
		require.True(t, readable)
		for _, row := range rows {
			calls[row["id"].(string)] = row
		}
		return len(rows) == len(quickstart)
	}, "Weave has %d calls", len(quickstart))
	for _, s := range p.made() {
		call := calls[s.SpanID]
		require.NotNil(t, call, s.Name)
		var parent any
		if s.ParentID != "" {
			parent = s.ParentID
		}
		require.Equal(t, []any{s.TraceID, parent, "3f9k2q", "success"},
			[]any{call["trace_id"], call.Shown("parent"), call.Shown("run"), call.Shown("status")}, s.Name)
		require.Equal(t, s.Name, call.Shown("op_name"))
		started, err := time.Parse(time.RFC3339Nano, call["started_at"].(string))
		require.NoError(t, err)
		require.WithinDuration(t, time.Unix(0, s.StartNS), started, time.Microsecond, s.Name)
		if step, ok := s.Attributes["megatron.iteration"]; ok && step != int64(0) { // Weave does not store step 0
			require.Equal(t, fmt.Sprint(step), fmt.Sprint(call.Shown("step")), s.Name)
		}
	}
	requests, _ := ingest.List("/requests", "")
	for _, r := range requests {
		require.Equal(t, json.Number("200"), r["status"], "%v", r)
		require.Nil(t, r["answer"].(map[string]any)["partial_success"], "%v", r)
	}
	c.Stop()
	require.Equal(t, quickstart, names(spans(t, c)))
}
