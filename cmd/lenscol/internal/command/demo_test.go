// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// demoReceiver is an OTLP/HTTP receiver that counts.
func demoReceiver(t *testing.T) (endpoint string, spans, points, records *int) {
	spans, points, records = new(int), new(int), new(int)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("content type %q, %v", r.Header.Get("Content-Type"), err)
			return
		}
		switch r.URL.Path {
		case "/v1/traces":
			req := ptraceotlp.NewExportRequest()
			err = req.UnmarshalProto(body)
			*spans += req.Traces().SpanCount()
		case "/v1/metrics":
			req := pmetricotlp.NewExportRequest()
			err = req.UnmarshalProto(body)
			*points += req.Metrics().DataPointCount()
		case "/v1/logs":
			req := plogotlp.NewExportRequest()
			err = req.UnmarshalProto(body)
			*records += req.Logs().LogRecordCount()
		default:
			t.Errorf("path %q", r.URL.Path)
		}
		if err != nil {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
	}))
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return server.URL, spans, points, records
}

func TestDemoCountsWhatWasAcknowledged(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		args                   []string
		spans, points, records int
		said                   string
	}{
		// Per rank: 5 startup, 3 a step, 5 checkpoint, 2 megatron.train.
		{"as it is", nil, 4 * (5 + 3*20 + 5 + 2), 4*4*2 + 3, 1 + 4 + 1, "sent and acknowledged: 288 spans, 35 metric points, 6 log records, in 106 requests to "},
		{"the smallest", []string{"--ranks", "1", "--steps", "1"}, 5 + 3 + 5 + 1, 3, 2, "14 spans, 3 metric points, 2 log records"},
		{"live", []string{"--ranks", "2", "--steps", "2", "--interval", "1ms"}, 2 * (5 + 6 + 5 + 2), 2*2 + 1, 2, "36 spans"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			endpoint, spans, points, records := demoReceiver(t)
			stdout, err := execute(t, append([]string{"demo", "--run-id", "r", "--endpoint", endpoint + "/"}, tt.args...)...)
			require.NoError(t, err)
			require.Equal(t, []int{tt.spans, tt.points, tt.records}, []int{*spans, *points, *records})
			require.Contains(t, stdout, tt.said)
		})
	}
}

func TestDemoErrors(t *testing.T) {
	answer := func(handler http.HandlerFunc) string {
		server := httptest.NewServer(handler)
		t.Cleanup(func() {
			server.Close()
			http.DefaultClient.CloseIdleConnections()
		})
		return server.URL
	}
	partial := ptraceotlp.NewExportResponse()
	partial.PartialSuccess().SetRejectedSpans(2)
	partial.PartialSuccess().SetErrorMessage("too many")
	partialBytes, err := partial.MarshalProto()
	require.NoError(t, err)
	for _, tt := range []struct{ name, endpoint, want string }{
		{"nobody listens", "http://127.0.0.1:1", "no collector listens at http://127.0.0.1:1: start one with `lenscol` in another terminal, or name another with --endpoint"},
		{"no URL", "127.0.0.1:4318", `--endpoint: "127.0.0.1:4318" is not a URL like http://127.0.0.1:4318`},
		{"refused", answer(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }), `/v1/traces answered 503 Service Unavailable: "busy\n"`},
		{"rejected in part", answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(partialBytes) }), "rejected 2 of 5 spans: too many"},
		{"not OTLP", answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }), "answered with what is not OTLP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := execute(t, "demo", "--endpoint", tt.endpoint)
			require.ErrorContains(t, err, tt.want)
		})
	}
	for _, args := range [][]string{{"--ranks", "0"}, {"--steps", "0"}, {"--interval", "-1s"}} {
		_, err := execute(t, append([]string{"demo"}, args...)...)
		require.ErrorContains(t, err, "ranks and steps start at 1")
	}
}

// runDemo returns all batches of a run, rank by rank within a step.
func runDemo(run demoRun) []demoBatch {
	var batches []demoBatch
	ranks := run.start(time.Unix(1_770_000_000, 0), demoStep)
	for step := range run.steps + 1 {
		for _, rank := range ranks {
			batches = append(batches, rank.batch(step))
		}
	}
	return batches
}

func allSpans(batches []demoBatch) []ptrace.Span {
	var spans []ptrace.Span
	for _, b := range batches {
		for _, rs := range b.traces.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					spans = append(spans, span)
				}
			}
		}
	}
	return spans
}

func TestDemoIsTheSameButForIDs(t *testing.T) {
	encode := func() []byte {
		var out bytes.Buffer
		batches := runDemo(demoRun{id: "r", ranks: 4, steps: 20})
		for _, span := range allSpans(batches) {
			span.SetTraceID(pcommon.TraceID{1})
			span.SetSpanID(pcommon.SpanID{1})
			span.SetParentSpanID(pcommon.SpanID{})
			for _, link := range span.Links().All() {
				link.SetTraceID(pcommon.TraceID{1})
				link.SetSpanID(pcommon.SpanID{1})
			}
		}
		for _, b := range batches {
			text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(b.traces)
			require.NoError(t, err)
			out.Write(text)
			text, err = (&pmetric.JSONMarshaler{}).MarshalMetrics(b.metrics)
			require.NoError(t, err)
			out.Write(text)
		}
		return out.Bytes()
	}
	require.Equal(t, encode(), encode())
}

func TestDemoSpansNest(t *testing.T) {
	spans := allSpans(runDemo(demoRun{id: "r", ranks: 3, steps: 12}))
	byID := map[spanRef]ptrace.Span{}
	for _, span := range spans {
		ref := spanRef{span.TraceID(), span.SpanID()}
		require.NotContains(t, byID, ref)
		byID[ref] = span
	}
	parents := map[string][]string{}
	failed := 0
	for _, span := range spans {
		require.Less(t, span.StartTimestamp(), span.EndTimestamp(), span.Name())
		parent := ""
		if !span.ParentSpanID().IsEmpty() {
			above, ok := byID[spanRef{span.TraceID(), span.ParentSpanID()}]
			require.True(t, ok, "the parent of %s was never sent", span.Name())
			require.GreaterOrEqual(t, span.StartTimestamp(), above.StartTimestamp(), span.Name())
			require.LessOrEqual(t, span.EndTimestamp(), above.EndTimestamp(), span.Name())
			parent = above.Name()
		}
		if !slices.Contains(parents[span.Name()], parent) {
			parents[span.Name()] = append(parents[span.Name()], parent)
		}
		for _, link := range span.Links().All() {
			require.Contains(t, byID, spanRef{link.TraceID(), link.SpanID()})
		}
		if span.Status().Code() == ptrace.StatusCodeError {
			failed++
			require.Equal(t, "ValueError: loss is NaN at iteration 7", span.Status().Message())
			require.Equal(t, 1, span.Events().Len())
			kind, _ := span.Events().At(0).Attributes().Get(semconv.ExceptionType)
			require.Equal(t, "ValueError", kind.Str())
		}
	}
	require.Equal(t, 1, failed)
	require.Equal(t, map[string][]string{
		"megatron.startup":                          {""},
		"megatron.startup.imports":                  {"megatron.startup"},
		"megatron.startup.initialize_megatron":      {"megatron.startup"},
		"megatron.startup.model_init":               {"megatron.startup"},
		"megatron.startup.dataloader":               {"megatron.startup"},
		"megatron.train":                            {""},
		"megatron.train.iteration":                  {"megatron.train"},
		"megatron.train.iteration.forward_backward": {"megatron.train.iteration"},
		"megatron.train.iteration.optimizer":        {"megatron.train.iteration"},
		"megatron.checkpoint.exposed_save":          {"megatron.train"},
		"megatron.checkpoint.save":                  {"megatron.checkpoint.exposed_save"},
		"megatron.checkpoint.save.state_dict":       {"megatron.checkpoint.save"},
		"megatron.checkpoint.save.io_write":         {"megatron.checkpoint.save"},
		"megatron.checkpoint.save.finalize":         {"megatron.checkpoint.save"},
	}, parents)
}

func TestDemoHistogramAddsUp(t *testing.T) {
	batches := runDemo(demoRun{id: "r", ranks: 1, steps: 10})
	last := batches[len(batches)-1].metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	point := last.At(1).Histogram().DataPoints().At(0)
	require.Equal(t, "megatron.training.step_duration_ms", last.At(1).Name())
	var sum uint64
	for _, n := range point.BucketCounts().All() {
		sum += n
	}
	require.Equal(t, uint64(10), point.Count())
	require.Equal(t, point.Count(), sum)
	require.Equal(t, point.ExplicitBounds().Len()+1, point.BucketCounts().Len())
	require.Equal(t, "megatron.training.skipped_iters", last.At(2).Name())
	require.Equal(t, int64(1), last.At(2).Sum().DataPoints().At(0).IntValue())
}
