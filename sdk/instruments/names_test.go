// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// What NeMo Lens 0.2 sent, in the captures of its functions.
type captured struct{ Name, Kind, Unit, Description string }

func kindOf(m metricdata.Metrics) string {
	switch m.Data.(type) {
	case metricdata.Histogram[float64]:
		return "histogram"
	case metricdata.Sum[int64], metricdata.Sum[float64]:
		return "sum"
	}
	return "gauge"
}

func TestOldNamesAreThoseThatLensSends(t *testing.T) {
	c := newCollector(t)
	recordAll(c, OldNames)
	got := c.metrics()
	file, err := os.Open("testdata/lens-0.2.jsonl")
	require.NoError(t, err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var want captured
		require.NoError(t, json.Unmarshal(lines.Bytes(), &want))
		m, there := got[want.Name]
		require.True(t, there, want.Name)
		require.Equal(t, want.Kind, kindOf(m), want.Name)
		require.Equal(t, want.Unit, m.Unit, want.Name)
		if want.Description != "" { // those of the Megatron series are the capturing script's own
			require.Equal(t, want.Description, m.Description, want.Name)
		}
	}
}

// recordAll records 1 on every series.
func recordAll(c collector, names Names) {
	registry := NewRegistry(names)
	for name, specs := range registry.Groups() {
		for _, spec := range specs {
			registry.Record(c.t.Context(), c, name, Values{spec.Key: 1})
		}
	}
}

func TestSeries(t *testing.T) {
	c := newCollector(t)
	recordAll(c, NewNames)
	var got []string
	for name, m := range c.metrics() {
		got = append(got, strings.TrimSpace(name+" "+kindOf(m)+" "+m.Unit))
	}
	text, err := os.ReadFile("testdata/series.txt")
	require.NoError(t, err)
	want := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	require.ElementsMatch(t, want, got)
}

func TestNamesOfEachGeneration(t *testing.T) {
	renamed := []string{"rl.kl_divergence", "rl.policy_loss", "rl.response_length.mean", "rl.value_loss"}
	renamedTo := []string{"rl.kl.divergence", "rl.policy.loss", "rl.response.length.mean", "rl.value.loss"}
	same := []string{"rl.reward.mean", "rl.entropy", "rl.throughput.tokens_per_sec"}
	sorted := func(lists ...[]string) []string { return slices.Sorted(slices.Values(slices.Concat(lists...))) }
	tests := []struct {
		name  string
		names Names
		want  []string
	}{
		{"new", NewNames, sorted(renamedTo, same)},
		{"old", OldNames, sorted(renamed, same)},
		{"both", BothNames, sorted(renamed, renamedTo, same)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCollector(t)
			rl := NewRL(c, tt.names)
			for _, i := range []*Instrument{rl.KLDivergence, rl.PolicyLoss, rl.ResponseLengthMean, rl.ValueLoss, rl.RewardMean, rl.Entropy, rl.TokensPerSecond} {
				i.Record(t.Context(), 0.5)
			}
			require.Equal(t, tt.want, c.names())
			for _, m := range c.metrics() {
				require.Equal(t, 0.5, value[float64](t, m))
			}
		})
	}
	// A series of one's own may be declared under either name.
	require.Equal(t, []string{"rl.kl.divergence"}, NewNames.of("rl.kl_divergence"))
	require.Equal(t, []string{"rl.kl_divergence"}, OldNames.of("rl.kl.divergence"))
}
