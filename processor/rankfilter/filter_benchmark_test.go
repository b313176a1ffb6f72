// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
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

func filters(b testing.TB, next consumer.Traces) map[string]consumer.Traces {
	ours, err := NewFactory().CreateTraces(b.Context(), processortest.NewNopSettings(NewFactory().Type()), config(b, "{}"), next)
	require.NoError(b, err)

	factory := filterprocessor.NewFactory()
	cfg := factory.CreateDefaultConfig()
	rule := map[string]any{"traces": map[string]any{"resource": []any{`attributes["dl.rank"] != 1023`}}}
	require.NoError(b, confmap.NewFromStringMap(rule).Unmarshal(cfg))
	contrib, err := factory.CreateTraces(b.Context(), processortest.NewNopSettings(factory.Type()), cfg, next)
	require.NoError(b, err)
	return map[string]consumer.Traces{"rank_filter": ours, "contrib": contrib}
}

// The same batches through this filter and contrib's with the same rule at resource level. Contrib's empties the resources
// that it takes out, so both get new batches all the time; making them is not measured.
func BenchmarkTraces(b *testing.B) {
	for _, batch := range batches {
		for _, name := range []string{"rank_filter", "contrib"} {
			f := filters(b, consumertest.NewNop())[name]
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

// fanOut hands a batch to several, as the collector's own does it: who changes data gets a copy, unless nobody else
// reads the batch and it may be changed. It changes data itself where all of them do.
type fanOut struct {
	to     []consumer.Traces
	copied *int // spans
}

func (f fanOut) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: !slices.ContainsFunc(f.to, func(c consumer.Traces) bool { return !c.Capabilities().MutatesData })}
}

func (f fanOut) ConsumeTraces(ctx context.Context, td ptrace.Traces) (err error) {
	for i, to := range f.to {
		in := td
		if to.Capabilities().MutatesData && (td.IsReadOnly() || !f.Capabilities().MutatesData || i < len(f.to)-1) {
			in = ptrace.NewTraces()
			td.CopyTo(in)
			*f.copied += td.SpanCount()
		}
		err = errors.Join(err, to.ConsumeTraces(ctx, in))
	}
	return err
}

// exporter takes everything, and has the capabilities that otlp_http says it has with that config.
func exporter(t testing.TB, yaml string) consumer.Traces {
	factory := otlphttpexporter.NewFactory()
	raw, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := raw.AsConf()
	require.NoError(t, err)
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, conf.Unmarshal(cfg))
	e, err := factory.CreateTraces(t.Context(), exportertest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	c, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error { return nil }, consumer.WithCapabilities(e.Capabilities()))
	require.NoError(t, err)
	return c
}

const (
	plain    = "{endpoint: 'http://127.0.0.1:1'}"
	batching = "{endpoint: 'http://127.0.0.1:1', sending_queue: {batch: {}}}"
)

// fleet is a receiver with two pipelines: an archive of everything, and rank_filter, or contrib's filter, in front of
// exporters. A pipeline changes data where its processor or all its exporters do.
func fleet(t testing.TB, processor string, exporters ...string) fanOut {
	f := fanOut{copied: new(int)}
	end := fanOut{copied: f.copied}
	for _, yaml := range exporters {
		end.to = append(end.to, exporter(t, yaml))
	}
	p := filters(t, end)[processor]
	changes := p.Capabilities().MutatesData || end.Capabilities().MutatesData
	pipeline, err := consumer.NewTraces(p.ConsumeTraces, consumer.WithCapabilities(consumer.Capabilities{MutatesData: changes}))
	require.NoError(t, err)
	f.to = []consumer.Traces{consumertest.NewNop(), pipeline}
	return f
}

var fleets = []struct {
	name, processor string
	exporters       []string
	copied          int // spans of 512, of which 64 are kept
}{
	{"an exporter that does not batch", "rank_filter", []string{plain}, 0},
	{"an exporter that batches", "rank_filter", []string{batching}, 512},
	{"one that batches, one that does not", "rank_filter", []string{batching, plain}, 64},
	{"contrib, an exporter that does not batch", "contrib", []string{plain}, 512},
}

// Beside an archive nothing is copied where an exporter behind the filter does not batch, or else all is.
func TestWhatIsCopiedBesideAnArchive(t *testing.T) {
	for _, tt := range fleets {
		t.Run(tt.name, func(t *testing.T) {
			f := fleet(t, tt.processor, tt.exporters...)
			td := ranksOf(batches[2].ranks...)
			require.NoError(t, f.ConsumeTraces(t.Context(), td))
			require.Equal(t, tt.copied, *f.copied)
		})
	}
}

func BenchmarkFanOut(b *testing.B) {
	for _, bb := range fleets {
		f := fleet(b, bb.processor, bb.exporters...)
		b.Run(bb.name, func(b *testing.B) {
			td := ranksOf(batches[2].ranks...)
			td.MarkReadOnly() // as a batch is that several read
			b.ReportAllocs()
			for b.Loop() {
				if err := f.ConsumeTraces(b.Context(), td); err != nil {
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
