// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package jaeger sends through the shipped config lenscol:jaeger to a real Jaeger, and asks that for every span: `make e2e E2E=jaeger`.
package jaeger

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
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
	"github.com/lenscol/lenscol/test/e2e/oracle"
	"github.com/lenscol/lenscol/test/jaegertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, jaeger *jaegertest.Jaeger) *testbed.Collector {
	t.Helper()
	return testbed.Start(t, testbed.Options{
		Args: []string{"--config", "lenscol:jaeger"},
		Env:  []string{"LENSCOL_HOST=127.0.0.1", "LENSCOL_HEALTH_PORT=" + testbed.FreePort(t), "LENSCOL_JAEGER=" + jaeger.OTLP},
	})
}

// sender sends requests and remembers, by service and run, what Jaeger must show of them.
type sender struct {
	t      *testing.T
	client *testbed.Client
	spans  []string
	runs   map[[2]string]bool // service and run
}

func newSender(t *testing.T, collector *testbed.Collector) *sender {
	return &sender{t: t, client: collector.Client(), runs: map[[2]string]bool{}}
}

func (s *sender) send(request *coltracepb.ExportTraceServiceRequest) {
	s.t.Helper()
	body, err := proto.Marshal(request)
	require.NoError(s.t, err)
	require.NoError(s.t, s.client.GRPC(s.t.Context(), "traces", body, true))
	for _, rs := range request.ResourceSpans {
		attributes := rs.Resource.GetAttributes()
		s.runs[[2]string{textOf(attributes, "service.name"), textOf(attributes, "nemo.run.id")}] = true
		for _, ss := range rs.ScopeSpans {
			for _, span := range ss.Spans {
				s.spans = append(s.spans, expected(span, ss.Scope, rs.Resource))
			}
		}
	}
}

// requireShown waits until Jaeger finds as many spans by their runs as were sent, and holds each against what was sent.
func (s *sender) requireShown(jaeger *jaegertest.Jaeger) {
	s.t.Helper()
	var found []string
	for deadline := time.Now().Add(time.Minute); len(found) < len(s.spans); time.Sleep(100 * time.Millisecond) {
		require.True(s.t, time.Now().Before(deadline), "Jaeger has %d spans of these runs, and not %d", len(found), len(s.spans))
		traces := map[string]jaegertest.Trace{}
		for run := range s.runs {
			for _, trace := range jaeger.Find(run[0], map[string]string{"nemo.run.id": run[1]}) {
				traces[trace.TraceID] = trace // A trace of several runs is found by each of them.
			}
		}
		found = found[:0]
		for _, trace := range traces {
			found = append(found, shown(trace)...)
		}
	}
	slices.Sort(s.spans)
	slices.Sort(found)
	for i := range s.spans {
		want, got := s.spans[i], found[i]
		for len(want) > 100 && len(got) > 100 && want[:50] == got[:50] {
			want, got = want[50:], got[50:] // A span can have 140 attributes.
		}
		require.Equal(s.t, want, got, "in the span %.200s", s.spans[i])
	}
	require.Len(s.t, found, len(s.spans))
}

func textOf(attributes []*commonpb.KeyValue, key string) string {
	for _, kv := range attributes {
		if kv.Key == key {
			return kv.Value.GetStringValue()
		}
	}
	return ""
}

// Every span of real programs, and one that has all that OTLP has, is found by its run and is in Jaeger what it was: times, parent,
// links, events, status, kind, and each attribute with its type.
func TestSpans(t *testing.T) {
	t.Parallel()
	jaeger := jaegertest.Start(t)
	collector := start(t, jaeger)
	s := newSender(t, collector)
	for i, request := range requests(t) {
		for _, rs := range request.ResourceSpans {
			identify(rs, fmt.Sprint("run-", i))
			for _, ss := range rs.ScopeSpans {
				for _, span := range ss.Spans {
					span.Attributes = withoutNaN(span.Attributes)
				}
			}
		}
		s.send(request)
	}
	s.requireShown(jaeger)
	t.Logf("%d spans of %d runs", len(s.spans), len(s.runs))
	require.Greater(t, len(s.spans), 300)
	collector.Stop()
}

// requests are all captured ones, and those of test/e2e/oracle.
func requests(t *testing.T) (all []*coltracepb.ExportTraceServiceRequest) {
	for _, capture := range testbed.Captures(t) {
		if capture.Signal != "traces" {
			continue
		}
		request, err := oracle.From(capture.Signal, capture.JSON, capture.Body)
		require.NoError(t, err)
		all = append(all, request.Traces)
	}
	every := oracle.EveryField()[0].Traces
	for _, rs := range every.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, span := range ss.Spans {
				span.TraceId, span.SpanId = newID() // Most of them have none.
				if max(span.StartTimeUnixNano, span.EndTimeUnixNano) > math.MaxInt64 {
					span.StartTimeUnixNano, span.EndTimeUnixNano = 0, 0 // Jaeger's times end in 2262.
				}
			}
		}
	}
	return append(all, every)
}

// withoutNaN takes attributes away that are not finite: where one is in a trace, Jaeger's API fails for all of its answer.
func withoutNaN(attributes []*commonpb.KeyValue) []*commonpb.KeyValue {
	return slices.DeleteFunc(attributes, func(kv *commonpb.KeyValue) bool {
		f := kv.Value.GetDoubleValue()
		return math.IsNaN(f) || math.IsInf(f, 0)
	})
}

// identify gives a resource what it lacks of service, run and host, which the collector would stamp otherwise.
func identify(rs *tracepb.ResourceSpans, run string) {
	if rs.Resource == nil {
		rs.Resource = &resourcepb.Resource{}
	}
	for key, value := range map[string]string{"service.name": "megatron", "nemo.run.id": run, "host.name": "node-a"} {
		if textOf(rs.Resource.GetAttributes(), key) == "" {
			rs.Resource.Attributes = append(rs.Resource.Attributes,
				&commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}})
		}
	}
}

// A Jaeger that is not there at first, and one that goes away and comes back, gets everything.
func TestJaegerAway(t *testing.T) {
	t.Parallel()
	jaeger := jaegertest.New(t)
	collector := start(t, jaeger)
	for life := range 2 {
		const requests = 100
		s := newSender(t, collector)
		failures := func() int { return strings.Count(collector.Stderr(), "Exporting failed") }
		before := failures()
		for i := range requests / 2 {
			s.send(step(life*requests + i))
		}
		require.Eventually(t, func() bool { return failures() > before }, time.Minute, 20*time.Millisecond, "a try that fails")
		jaeger.Start()
		for i := range requests / 2 {
			s.send(step(life*requests + requests/2 + i))
		}
		s.requireShown(jaeger)
		s.client.Close()
		jaeger.Stop()
	}
	collector.Stop()
}

// step is one span of a run.
func step(i int) *coltracepb.ExportTraceServiceRequest {
	trace, span := newID()
	now := uint64(time.Now().UnixNano())
	rs := &tracepb.ResourceSpans{
		Resource: &resourcepb.Resource{},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
			TraceId: trace, SpanId: span, Name: fmt.Sprint("step ", i), Kind: tracepb.Span_SPAN_KIND_INTERNAL, StartTimeUnixNano: now, EndTimeUnixNano: now + 1000,
		}}}},
	}
	identify(rs, "run")
	return &coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{rs}}
}

var lastID atomic.Uint64

// newID is of a span in a trace of its own.
func newID() (trace, span []byte) {
	span = binary.BigEndian.AppendUint64(nil, lastID.Add(1))
	return append([]byte("lenscol!"), span...), span
}
