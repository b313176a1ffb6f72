// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package lens

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// TestErrors has each way in which a span can fail: its status, the exception as an event, and what Lens leaves out.
func TestErrors(t *testing.T) {
	t.Parallel()
	c := testbed.Start(t, testbed.Options{})
	p := run(t, c, nil, "errors.py")
	c.Stop()
	got := spans(t, c)
	requireSame(t, p.made(), got)
	for _, want := range []struct{ name, status, message, exception string }{
		{"trace_fn", "ERROR", "ZeroDivisionError: loss scale is 0", "ZeroDivisionError"},
		{"outer", "ERROR", "NaN in\ngradients ∇", "ValueError"},
		{"inner", "ERROR", "NaN in\ngradients ∇", "ValueError"},
		{"not recorded", "ERROR", "KeyError: 'silent'", ""},
		{"interrupted", "UNSET", "", ""}, // Lens looks at Exception, not at BaseException
		{"caught", "UNSET", "", "OSError"},
	} {
		s := one(t, got, want.name)
		require.Equal(t, []string{want.status, want.message}, []string{s.Status, s.Message}, want.name)
		if want.exception == "" {
			require.Empty(t, s.Events, want.name)
			continue
		}
		require.Len(t, s.Events, 1, want.name)
		e := s.Events[0]
		require.Equal(t, []any{"exception", want.exception}, []any{e.Name, e.Attributes["exception.type"]}, want.name)
		require.Contains(t, e.Attributes["exception.stacktrace"], "Traceback (most recent call last):\n", want.name)
	}
	require.Equal(t, int64(1), one(t, got, "caught").Events[0].Attributes["retry"])
}

// TestLogsBridge has Python's log records as Lens's bridge sends them.
func TestLogsBridge(t *testing.T) {
	t.Parallel()
	c := testbed.Start(t, testbed.Options{})
	run(t, c, nil, "logs.py")
	c.Stop()
	got, step := archived(t, c, "logs"), one(t, spans(t, c), "step")
	inSpan := []string{step.TraceID, step.SpanID}
	for i, want := range []struct {
		body     string
		severity int
		ids      []string
	}{
		{"training starts", 9, []string{"", ""}},
		{"grad norm is 12.5", 13, inSpan},
		{"step failed\non two lines", 17, inSpan},
		{"giving up", 21, []string{"", ""}},
	} {
		require.Greater(t, len(got), i)
		l := got[i]
		require.Equal(t, []any{want.body, want.severity, want.ids}, []any{l.Body, l.Severity, []string{l.TraceID, l.SpanID}})
		require.True(t, strings.HasSuffix(l.Attributes["code.file.path"].(string), "scripts/logs.py"))
		requireRank(t, 0, l)
	}
	require.Len(t, got, 4)
	require.Equal(t, []any{int64(7), []any{int64(0), int64(3)}}, []any{got[1].Attributes["megatron.iteration"], got[1].Attributes["ranks"]})
	require.Equal(t, []any{"ValueError", "loss is NaN"}, []any{got[2].Attributes["exception.type"], got[2].Attributes["exception.message"]})
}

// TestMetricReaders has what instruments hold, under each reader that Lens makes or takes: while the job runs and at its end.
func TestMetricReaders(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"lens":        {"READER=lens"},
		"delta":       {"READER=lens", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta"},
		"exponential": {"READER=lens", "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION=base2_exponential_bucket_histogram"},
		"json":        {"READER=json"},
		"memory":      {"READER=memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testbed.Start(t, testbed.Options{})
			to := grpc(c)
			if name == "json" {
				to = http(c)
			}
			p := launch(t, c, append(append(to, "OTEL_METRIC_EXPORT_INTERVAL=100"), env...), "metrics.py")
			if name != "memory" { // It comes at its interval, though the process goes on.
				eventually(t, func() bool { return len(archived(t, c, "metrics")) > 0 }, "the first points")
			}
			require.NoError(t, p.stdin.Close())
			p.wait()
			require.NoError(t, p.err)
			c.Stop()
			points := archived(t, c, "metrics")
			if name == "memory" {
				require.Empty(t, points, "a reader of the caller's takes the place of Lens's own")
				require.Contains(t, p.read(p.stdout), "'rl.reward.mean', 'tokens'")
				return
			}
			last, deltas := map[string]line{}, map[string]float64{}
			for _, l := range points {
				requireRank(t, 0, l)
				if l.Temporality == "delta" {
					deltas[l.Name] += number(t, l.Value) + float64(l.Count)
				}
				key := l.Name
				if gpu, ok := l.Attributes["gpu"]; ok {
					key += fmt.Sprint(gpu)
				}
				last[key] = l
			}
			require.Equal(t, 28.0/8, number(t, last["rl.reward.mean"].Value))
			require.Equal(t, 80.5, number(t, last["memory0"].Value))
			require.Equal(t, json.Number("79"), last["memory1"].Value)
			require.Equal(t, "GB", last["memory0"].Unit)
			require.Equal(t, -4.0, number(t, last["queue"].Value))
			require.False(t, last["queue"].Monotonic)
			tokens, generation := last["tokens"], last["rl.generation.duration_ms"]
			require.Equal(t, attributes{"split": "train"}, tokens.Attributes)
			require.True(t, tokens.Monotonic)
			if name == "delta" {
				require.Equal(t, []float64{128, 6}, []float64{deltas["tokens"], deltas["rl.generation.duration_ms"]})
				return
			}
			require.Equal(t, json.Number("128"), tokens.Value)
			require.Equal(t, []any{"cumulative", 6, 24082.0, 1.0, 12000.0}, []any{generation.Temporality, generation.Count, generation.Sum, generation.Min, generation.Max})
			if name == "exponential" {
				require.Equal(t, "exponential_histogram", generation.Kind)
				require.NotNil(t, generation.Scale)
			} else {
				require.Equal(t, []int{0, 2, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}, generation.Buckets)
			}
		})
	}
}

func number(t *testing.T, v any) float64 {
	t.Helper()
	if v == nil {
		return 0
	}
	f, err := v.(json.Number).Float64()
	require.NoError(t, err)
	return f
}
