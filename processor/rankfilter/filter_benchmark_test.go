// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter

import (
	"context"
	"fmt"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
)

// ranksOf is a batch of 64 spans for each of those ranks of 1,024, with the attributes that NeMo Lens sends.
func ranksOf(ranks ...int) ptrace.Traces {
	td := ptrace.NewTraces()
	for _, rank := range ranks {
		rs := td.ResourceSpans().AppendEmpty()
		attrs := rs.Resource().Attributes()
		attrs.PutStr("telemetry.sdk.language", "python")
		attrs.PutStr("telemetry.sdk.name", "opentelemetry")
		attrs.PutStr("telemetry.sdk.version", "1.45.1")
		attrs.PutStr("service.name", "megatron")
		attrs.PutStr("service.version", "0.2.0")
		attrs.PutInt("dl.rank", int64(rank))
		attrs.PutInt("dl.world_size", 1024)
		attrs.PutStr("nemo.run.id", "4711")
		attrs.PutStr("service.instance.id", fmt.Sprint("4711-rank", rank))
		attrs.PutStr("host.name", "node001")
		attrs.PutInt("process.pid", 4242)
		attrs.PutStr("slurm.job.id", "4711")
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("nemo.lens")
		for range 64 {
			ss.Spans().AppendEmpty().SetName("megatron.train.iteration")
		}
	}
	return td
}

var batches = []struct {
	name  string
	ranks []int
}{
	{"all kept", []int{1023, 1023, 1023, 1023, 1023, 1023, 1023, 1023}},
	{"all dropped", []int{0, 1, 2, 3, 4, 5, 6, 7}},
	{"1 of 8 kept", []int{0, 1, 2, 3, 1023, 5, 6, 7}},
}

func filters(b *testing.B) map[string]consumer.Traces {
	ours, err := NewFactory().CreateTraces(b.Context(), processortest.NewNopSettings(NewFactory().Type()), config(b, "{}"), consumertest.NewNop())
	require.NoError(b, err)

	factory := filterprocessor.NewFactory()
	cfg := factory.CreateDefaultConfig()
	rule := map[string]any{"traces": map[string]any{"resource": []any{`attributes["dl.rank"] != 1023`}}}
	require.NoError(b, confmap.NewFromStringMap(rule).Unmarshal(cfg))
	contrib, err := factory.CreateTraces(b.Context(), processortest.NewNopSettings(factory.Type()), cfg, consumertest.NewNop())
	require.NoError(b, err)
	return map[string]consumer.Traces{"rank_filter": ours, "contrib": contrib}
}

// The same batches through this filter and contrib's with the same rule at resource level. Contrib's empties the resources
// that it takes out, so both get new batches all the time; making them is not measured.
func BenchmarkTraces(b *testing.B) {
	for _, batch := range batches {
		for _, name := range []string{"rank_filter", "contrib"} {
			f := filters(b)[name]
			b.Run(batch.name+"/"+name, func(b *testing.B) {
				tds := make([]ptrace.Traces, 16)
				ctx := b.Context()
				b.ReportAllocs()
				for i := 0; i < b.N; i++ {
					if i%len(tds) == 0 {
						b.StopTimer()
						for j := range tds {
							tds[j] = ranksOf(batch.ranks...)
						}
						b.StartTimer()
					}
					if err := f.ConsumeTraces(ctx, tds[i%len(tds)]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// A fan-out to an archive of everything and to the filter, done as the collector's own does it: consumers that change
// data get a copy. With rank_filter nothing is copied.
func BenchmarkFanOut(b *testing.B) {
	archive := consumertest.NewNop()
	for _, name := range []string{"rank_filter", "contrib"} {
		f := filters(b)[name]
		b.Run(name, func(b *testing.B) {
			td := ranksOf(batches[2].ranks...)
			td.MarkReadOnly()
			b.ReportAllocs()
			for b.Loop() {
				in := td
				if f.Capabilities().MutatesData {
					in = ptrace.NewTraces()
					td.CopyTo(in)
				}
				if err := f.ConsumeTraces(b.Context(), in); err != nil {
					b.Fatal(err)
				}
				if err := archive.ConsumeTraces(b.Context(), td); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// 0 allocations for kept and for dropped resources: a batch that goes on or ends as a whole costs none, and one of which
// some goes on costs the same however many resources it has.
func TestResourcesCostNoAllocation(t *testing.T) {
	f, err := newFilter(processortest.NewNopSettings(NewFactory().Type()), config(t, "{}"))
	require.NoError(t, err)
	allocations := func(ranks ...int) float64 {
		td := ranksOf(ranks...)
		ctx := context.WithValue(t.Context(), outcomeKey{}, &outcome{tally: f.reporter.Tally()})
		return testing.AllocsPerRun(100, func() { _, _ = f.traces(ctx, td) })
	}
	require.Zero(t, allocations(1023, 1023, 1023))
	require.Zero(t, allocations(0, 1, 2))
	require.Equal(t, allocations(1023, 0), allocations(1023, 0, 1, 2, 3, 4, 5, 6, 7))
}
