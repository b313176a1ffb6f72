// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package refinery holds lenscol:refinery against two replicas of Honeycomb's Refinery, which refinery.sh builds, and a strict Honeycomb behind them.
package refinery

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The kinds of traces, by what the rules of Refinery make of them.
const (
	failing = iota // kept
	probe          // dropped
	request        // one of two is kept
	kinds
)

const perKind = 30

// Requests cross two servers, whose spans go to an agent each, and each agent sends to a Refinery of its own. All spans of a trace get
// one decision, of one Refinery, late ones too; what the rules keep arrives whole and once, and the archives have everything.
func TestOneDecisionForATrace(t *testing.T) {
	if os.Getenv("LENSCOL_REFINERY_BIN") == "" {
		t.Skip("needs LENSCOL_REFINERY_BIN, as refinery.sh prints it")
	}
	upstream := newHoneycomb(t)
	replicas := newReplicas(t, upstream.URL)
	var agents [2]*testbed.Collector
	for i := range agents {
		agents[i] = testbed.Start(t, testbed.Options{
			Args: []string{"--config", "lenscol:refinery"},
			Env: []string{"HONEYCOMB_API_KEY=" + key, "HONEYCOMB_ENDPOINT=http://127.0.0.1:1", // The ranks' way, which this test does not use.
				"LENSCOL_REFINERY=" + replicas[i].grpc, "LENSCOL_HEALTH_PORT=" + testbed.FreePort(t)},
		})
	}

	// The children before their roots, and before there is a Refinery: they wait on disk, through a kill too.
	sendEach(t, agents, child)
	agents[0].Kill()
	agents[0].Start()
	for _, r := range replicas {
		r.start()
	}
	const traces = kinds * perKind
	received := func(n int) {
		t.Helper()
		eventually(t, func() bool { return count(replicas, "span_processed") >= n }, "%d spans at the Refineries that decide about them", n)
	}
	received(traces)
	sendEach(t, agents, root)
	eventually(t, func() bool { return count(replicas, "trace_send_kept", "trace_send_dropped") >= traces }, "%d decisions", traces)
	sendEach(t, agents, late)
	received(3 * traces)
	for _, agent := range agents {
		agent.Stop()
	}
	for _, r := range replicas {
		r.stop()
	}

	got, refused := upstream.took()
	require.Empty(t, refused)
	perTrace := map[string][]event{}
	for _, e := range got {
		perTrace[e.trace] = append(perTrace[e.trace], e)
	}
	kept := map[int]int{} // by kind
	deciders := map[string]bool{}
	for n := range traces {
		events := perTrace[span{trace: n}.traceID()]
		if len(events) == 0 {
			continue
		}
		var names []string
		for _, e := range events {
			require.Equal(t, events[0].replica, e.replica, "one Refinery decides about trace %d", n)
			require.Equal(t, map[int]int64{failing: 1, request: 2}[n%kinds], e.rate, "trace %d", n)
			names = append(names, e.name)
		}
		require.ElementsMatch(t, spanNames(n), names, "trace %d is whole, and there once", n)
		kept[n%kinds]++
		deciders[events[0].replica] = true
		delete(perTrace, events[0].trace)
	}
	require.Empty(t, perTrace, "traces that nobody sent")
	require.Equal(t, perKind, kept[failing])
	require.Zero(t, kept[probe])
	require.NotZero(t, kept[request])
	require.Less(t, kept[request], perKind)
	require.Len(t, deciders, len(replicas), "each has its share")
	t.Logf("%d spans of %d kept traces at Honeycomb, %d of them by a rate of 2", len(got), kept[failing]+kept[request], kept[request])

	archived := 0
	for _, agent := range agents {
		text, err := os.ReadFile(filepath.Join(agent.Dir, "lens-data", "traces.jsonl"))
		require.NoError(t, err)
		archived += strings.Count(string(text), `"type":"span"`)
	}
	require.Equal(t, 3*traces, archived)
}

// The parts of a trace, in the order in which they are sent.
const (
	child = iota
	root
	late
)

// span is a part of a trace, at one of the two servers.
type span struct{ trace, part int }

func (s span) traceID() string { return fmt.Sprintf("%016x%016x", 1<<60, s.trace) } // Refinery shortens one that begins with 64 zeros.

func (s span) name() string {
	if s.trace%kinds == probe && s.part == root {
		return "probe"
	}
	return []string{"generate", "rollout", "log"}[s.part]
}

func spanNames(trace int) (names []string) {
	for part := range late + 1 {
		names = append(names, span{trace, part}.name())
	}
	return names
}

// sendEach sends that part of all traces: of each trace to the one agent or the other, and root and child to different ones.
func sendEach(t *testing.T, agents [2]*testbed.Collector, part int) {
	t.Helper()
	requests := map[int]*coltracepb.ExportTraceServiceRequest{}
	for n := range kinds * perKind {
		s := span{n, part}
		server := (n/kinds + part) % len(agents)
		if requests[server] == nil {
			requests[server] = &coltracepb.ExportTraceServiceRequest{}
		}
		requests[server].ResourceSpans = append(requests[server].ResourceSpans, s.resourceSpans([]string{"gym", "vllm"}[server]))
	}
	for _, server := range slices.Sorted(maps.Keys(requests)) {
		body, err := proto.Marshal(requests[server])
		require.NoError(t, err)
		client := agents[server].Client()
		require.NoError(t, client.GRPC(t.Context(), "traces", body, false))
		client.Close()
	}
}

func (s span) resourceSpans(service string) *tracepb.ResourceSpans {
	decode := func(text string) []byte {
		id, _ := hex.DecodeString(text)
		return id
	}
	id := func(part int) []byte { return decode(fmt.Sprintf("%08x%08x", s.trace, part+1)) }
	now := uint64(time.Now().UnixNano())
	out := &tracepb.Span{TraceId: decode(s.traceID()), SpanId: id(s.part), ParentSpanId: id(root), Name: s.name(), StartTimeUnixNano: now, EndTimeUnixNano: now + 1}
	if s.part == root {
		out.ParentSpanId = nil
	}
	if s.part == child && s.trace%kinds == failing {
		out.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: "out of memory"}
	}
	return &tracepb.ResourceSpans{
		Resource:   &resourcepb.Resource{Attributes: []*commonpb.KeyValue{{Key: "service.name", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: service}}}}},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{out}}},
	}
}

// eventually waits for what other processes do.
func eventually(t *testing.T, condition func() bool, what string, args ...any) {
	t.Helper()
	require.Eventually(t, condition, 2*time.Minute, 50*time.Millisecond, append([]any{what}, args...)...)
}
