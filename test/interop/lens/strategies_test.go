// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package lens

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// TestStrategies runs worlds of 1, 8 and 16 ranks in one environment twice: once Lens chooses in each process who exports, once all export
// and rank_filter chooses, as docs/ranks.md has it read the same variables. The same ranks must arrive.
func TestStrategies(t *testing.T) {
	t.Parallel()
	worlds := []int{1, 8, 16}
	tests := []struct {
		name         string
		env          map[string]string
		ranksPerNode int                        // 0: LOCAL_RANK is not set, and the collector does not know it
		want         func(rank, world int) bool // by hand, where that is simple
	}{
		{"by default", map[string]string{}, 0, func(rank, world int) bool { return rank == world-1 }},
		{"all_ranks", map[string]string{"NEMO_LENS_EXPORT_STRATEGY": "all_ranks"}, 0, func(int, int) bool { return true }},
		{"single_rank", map[string]string{"NEMO_LENS_EXPORT_STRATEGY": "single_rank", "NEMO_LENS_EXPORT_RANK": "3"}, 0,
			func(rank, _ int) bool { return rank == 3 }}, // nobody, in a world of one
		{"sampled", map[string]string{"NEMO_LENS_EXPORT_STRATEGY": "sampled", "NEMO_LENS_EXPORT_SAMPLE_RATE": "0.25"}, 0, nil},
		{"sampled at a threshold", map[string]string{"NEMO_LENS_EXPORT_STRATEGY": "sampled", "NEMO_LENS_EXPORT_SAMPLE_RATE": "0.785"}, 0,
			nil}, // rank 0 is at 0.7850: not below
		{"sampled, none", map[string]string{"NEMO_LENS_EXPORT_STRATEGY": "sampled", "NEMO_LENS_EXPORT_SAMPLE_RATE": "0"}, 0, func(int, int) bool { return false }},
		{"first_rank_per_node", map[string]string{"NEMO_LENS_EXPORT_STRATEGY": "first_rank_per_node"}, 4, func(rank, _ int) bool { return rank%4 == 0 }},
		{"first_rank_per_node without a local rank", map[string]string{"NEMO_LENS_EXPORT_STRATEGY": "first_rank_per_node"}, 0, func(int, int) bool { return true }},
	}
	var cases strings.Builder
	collectors := make([]*testbed.Collector, len(tests))
	for i, tt := range tests {
		var env []string
		for key, v := range tt.env {
			env = append(env, key+"="+v)
		}
		collectors[i] = testbed.Start(t, testbed.Options{Env: append(env, fmt.Sprintf("RANKS_PER_NODE=%d", tt.ranksPerNode)), Config: strategies})
		line, err := json.Marshal(map[string]any{"endpoint": "http://" + collectors[i].GRPC, "env": tt.env, "ranks_per_node": tt.ranksPerNode, "worlds": worlds})
		require.NoError(t, err)
		cases.Write(append(line, '\n'))
	}
	p := launch(t, collectors[0], []string{"NEMO_LENS_EXPORT_STRATEGY=", "NEMO_LENS_LOGS_ENABLED="}, "ranks.py")
	_, err := io.WriteString(p.stdin, cases.String())
	require.NoError(t, err)
	require.NoError(t, p.stdin.Close())
	p.wait()
	require.NoError(t, p.err)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			collectors[i].Stop()
			for _, world := range worlds {
				var want []int
				for rank := range world {
					if tt.want != nil && tt.want(rank, world) {
						want = append(want, rank)
					}
				}
				signals := []string{"traces"}
				if world == 8 {
					signals = append(signals, "metrics")
				}
				for _, signal := range signals {
					came := arrived(t, collectors[i], "every", signal)
					kept := arrived(t, collectors[i], "kept", signal)
					bySDK, all := fmt.Sprintf("sdk-%d", world), fmt.Sprintf("all-%d", world)
					require.Len(t, came[all], world, "every rank was there to choose from")
					require.Equal(t, came[bySDK], kept[all], "%s of a world of %d: Lens's choice, and rank_filter's", signal, world)
					require.Equal(t, came[bySDK], kept[bySDK], "rank_filter drops nothing that Lens let through")
					if tt.want != nil {
						require.Equal(t, want, kept[all], "%s of a world of %d", signal, world)
					}
				}
			}
		})
	}
}

// arrived are the ranks in an archive by run, sorted, each once.
func arrived(t *testing.T, c *testbed.Collector, archive, signal string) map[string][]int {
	t.Helper()
	ranks := map[string][]int{}
	for _, l := range lines(t, filepath.Join(c.Dir, archive, signal+".jsonl")) {
		require.NotNil(t, l.Rank)
		ranks[l.Run] = append(ranks[l.Run], *l.Rank)
	}
	for run := range maps.Keys(ranks) {
		slices.Sort(ranks[run])
		ranks[run] = slices.Compact(ranks[run])
	}
	return ranks
}

// strategies keeps every rank in one archive and what rank_filter lets through in another. ranks_per_node is the only setting that Lens's
// environment has not: up to 0.2 it sends no local rank.
const strategies = `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}
processors:
  rank_filter:
    strategy: ${env:NEMO_LENS_EXPORT_STRATEGY:-single_rank}
    export_rank: ${env:NEMO_LENS_EXPORT_RANK:--1}
    rate: ${env:NEMO_LENS_EXPORT_SAMPLE_RATE:-1.0}
    ranks_per_node: ${env:RANKS_PER_NODE}
exporters:
  jsonl/every: {path: "every/{signal}.jsonl"}
  jsonl/kept: {path: "kept/{signal}.jsonl"}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [jsonl/every]}
    metrics: {receivers: [otlp], exporters: [jsonl/every]}
    traces/kept: {receivers: [otlp], processors: [rank_filter], exporters: [jsonl/kept]}
    metrics/kept: {receivers: [otlp], processors: [rank_filter], exporters: [jsonl/kept]}
  telemetry: {metrics: {level: none}}
`
