// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package lens

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

var quickstart = []string{
	"forward_backward", "forward_backward", "forward_backward", "optimizer", "optimizer", "optimizer",
	"save_checkpoint", "step", "step", "step", "train",
}

// TestQuickstart is the README: lenscol as it starts without arguments, and a job that knows its address.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]func(*testbed.Collector) []string{
		"grpc": grpc,
		"http": http,
		"json": func(c *testbed.Collector) []string { return append(http(c), "OTLP=json") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testbed.Start(t, testbed.Options{})
			p := run(t, c, append(env(c), "RANK=3", "WORLD_SIZE=8"), "quickstart.py")
			c.Stop()
			requireQuickstart(t, p, spans(t, c))

			rewards, generation := []line{}, line{}
			for _, l := range archived(t, c, "metrics") {
				requireRank(t, 3, l)
				switch l.Name {
				case "rl.reward.mean":
					rewards = append(rewards, l)
				case "rl.generation.duration_ms":
					generation = l
				}
			}
			require.NotEmpty(t, rewards)
			require.EqualValues(t, json.Number("1.0"), rewards[len(rewards)-1].Value, "of the last step")
			require.Equal(t, []any{3, 600.0, 100.0, 300.0, "ms", "cumulative"},
				[]any{generation.Count, generation.Sum, generation.Min, generation.Max, generation.Unit, generation.Temporality})

			train := one(t, spans(t, c), "train")
			var said []any
			for _, l := range archived(t, c, "logs") {
				requireRank(t, 3, l)
				require.Equal(t, []string{train.TraceID, train.SpanID}, []string{l.TraceID, l.SpanID})
				said = append(said, l.Body)
			}
			require.Equal(t, []any{"training starts", "step 0 done", "step 1 done", "step 2 done", "training ends"}, said)
		})
	}
}

func requireRank(t *testing.T, rank int, l line) {
	t.Helper()
	require.NotNil(t, l.Rank)
	require.Equal(t, []any{rank, "interop", "megatron"}, []any{*l.Rank, l.Run, l.Service})
}

// requireQuickstart holds spans against those that the process made, and against the script.
func requireQuickstart(t *testing.T, p *process, got []span) {
	t.Helper()
	require.Equal(t, quickstart, names(got))
	requireSame(t, p.made(), got)
	train := one(t, got, "train")
	require.Empty(t, train.ParentID)
	require.Equal(t, attributes{"model": "tïny", "prompt": "[REDACTED]"}, train.Attributes)
	steps := named(got, "step")
	slices.SortFunc(steps, func(a, b span) int { return int(a.StartNS - b.StartNS) })
	for n, step := range steps {
		require.Equal(t, train.SpanID, step.ParentID)
		require.Equal(t, attributes{"megatron.iteration": int64(n), "loss": 1 / float64(n+1), "shape": []any{int64(n), int64(128)}}, step.Attributes)
	}
	for _, s := range got {
		require.Equal(t, train.TraceID, s.TraceID)
		if s.Name == "optimizer" || s.Name == "forward_backward" {
			require.True(t, slices.ContainsFunc(steps, func(step span) bool { return step.SpanID == s.ParentID }))
		}
	}
}
