// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/mem"

	"github.com/lenscol/lenscol/internal/ranks"
)

func TestConfig(t *testing.T) {
	for yaml, want := range map[string]string{
		"{rate: 2, strategy: sampled}": "rate: 2 is outside [0, 1]",
		"{traces_url_path: traces}":    `traces_url_path: "traces" must begin with /`,
		`{logs_url_path: ""}`:          `logs_url_path: "" must begin with /`,
	} {
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, conf(t, yaml).Unmarshal(cfg))
		require.ErrorContains(t, confmap.Validate(cfg), want)
	}
}

// A variable that is set and empty is one that is not set, as in NeMo Lens: neither rank 0 nor a rate of 0.
func TestEmptyVariables(t *testing.T) {
	for _, name := range []string{"STRATEGY", "EXPORT_RANK", "RATE"} {
		t.Setenv(name, "")
	}
	r, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"yaml:{strategy: '${env:STRATEGY:-sampled}', export_rank: '${env:EXPORT_RANK:-3}', rate: '${env:RATE:-0.5}'}"},
		ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory(), envprovider.NewFactory()},
		DefaultScheme:     "yaml",
	})
	require.NoError(t, err)
	conf, err := r.Resolve(t.Context())
	require.NoError(t, err)
	cfg := createDefaultConfig()
	require.NoError(t, conf.Unmarshal(cfg))
	require.Equal(t, createDefaultConfig(), cfg)
}

// What stays is what was sent, to the byte.
func TestTheRestIsUnchanged(t *testing.T) {
	g, _ := newTestGate(t, "{strategy: ranks, ranks: '0,3'}")
	for signal := range ranks.Signals {
		var want []byte
		i := 0
		for name, body := range special(t, signal) {
			if name == "unknown fields everywhere" {
				each(body, func(field int32, whole, _ []byte) {
					if field != fieldResourceItems || i == 0 || i == 3 {
						want = append(want, whole...)
					}
					if field == fieldResourceItems {
						i++
					}
				})
				require.Equal(t, want, sift(g, signal, body))
			}
		}
		require.NotEmpty(t, want)
	}
}

// The cache never holds more than two halves, whatever comes.
func TestCacheIsBounded(t *testing.T) {
	g, _ := newTestGate(t, "{strategy: ranks, ranks: '0'}")
	c := g.decisions
	resource := func(i, pad int) []byte {
		attribute := func(key string, value []byte) []byte {
			return appendField(nil, 1, append(appendField(nil, 1, []byte(key)), appendField(nil, 2, value)...))
		}
		return append(attribute("dl.rank", []byte{0x18, byte(i % 2)}), attribute("pad", appendField(nil, 1, fmt.Appendf(nil, "%0*d", pad, i)))...)
	}
	for i := range 20_000 {
		d, _, ok := c.decide(ranks.Traces, resource(i, 2000), i%3 == 0)
		require.True(t, ok)
		require.Equal(t, i%2 == 0, d.Keep)
		require.LessOrEqual(t, c.size, maxCacheHalf)
	}
	bytes := 0
	for _, half := range []map[string]decisions{c.young, c.old} {
		require.NotEmpty(t, half)
		for key, d := range half {
			bytes += len(key) + entryCost
			if d.source != nil {
				bytes += d.source.Size()
			}
		}
	}
	require.LessOrEqual(t, bytes, 2*maxCacheHalf)

	// What is used stays, though the halves change.
	used := resource(2, 100)
	for i := range 20_000 {
		_, _, _ = c.decide(ranks.Logs, used, false)
		_, _, _ = c.decide(ranks.Logs, resource(i, 2000), false)
	}
	_, young := c.young[string(used)]
	_, old := c.old[string(used)]
	require.True(t, young || old)

	// A large one is decided and not kept.
	large := resource(1, maxCacheKey)
	d, _, ok := c.decide(ranks.Traces, large, true)
	require.True(t, ok)
	require.False(t, d.Keep)
	require.NotContains(t, c.young, string(large))

	_, _, ok = c.decide(ranks.Traces, []byte{0xff}, false)
	require.False(t, ok, "no resource")
}

// spansOf is a request of 64 spans with six attributes for each of those ranks of 1,024.
func spansOf(b testing.TB, ranks ...int) []byte {
	td := ptrace.NewTraces()
	for _, rank := range ranks {
		rs := td.ResourceSpans().AppendEmpty()
		identify(rs.Resource(), rank, 1024)
		for _, key := range []string{"nemo.run.id", "service.instance.id", "host.name", "slurm.job.id", "slurm.job.name", "telemetry.sdk.name"} {
			rs.Resource().Attributes().PutStr(key, "some value of it")
		}
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("nemo.lens")
		for i := range 64 {
			s := ss.Spans().AppendEmpty()
			s.SetName("megatron.train.iteration")
			s.SetTraceID(pcommon.TraceID{1, byte(i)})
			s.SetSpanID(pcommon.SpanID{2, byte(i)})
			s.SetParentSpanID(pcommon.SpanID{3})
			s.SetKind(ptrace.SpanKindInternal)
			s.SetStartTimestamp(1_700_000_000_000_000_000)
			s.SetEndTimestamp(1_700_000_000_100_000_000)
			s.SetFlags(0x103)
			for j := range 6 {
				s.Attributes().PutInt(fmt.Sprint("megatron.attribute", j), int64(i*j))
			}
		}
	}
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	require.NoError(b, err)
	return body
}

// What the gate costs for 512 spans, beside decoding them.
func BenchmarkSift(b *testing.B) {
	bodies := map[string][]byte{
		"all kept":    spansOf(b, 1023, 1023, 1023, 1023, 1023, 1023, 1023, 1023),
		"all dropped": spansOf(b, 0, 1, 2, 3, 4, 5, 6, 7),
		"1 of 8 kept": spansOf(b, 0, 1, 2, 1023, 4, 5, 6, 7),
	}
	for _, yaml := range []string{"{}", "{keep_errors: true, keep_names: ['*checkpoint*']}"} {
		g, _ := newTestGate(b, yaml)
		for _, name := range []string{"all kept", "all dropped", "1 of 8 kept"} {
			b.Run(yaml+"/"+name, func(b *testing.B) {
				data := mem.BufferSlice{mem.SliceBuffer(bodies[name])}
				b.ReportAllocs()
				for b.Loop() {
					g.sift(ranks.Traces, data, func(_ []byte, o outcome) { g.settle(b.Context(), o, true) })
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/span")
			})
		}
	}
	b.Run("decoding", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := ptraceotlp.NewExportRequest().UnmarshalProto(bodies["all kept"]); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/span")
	})
}
