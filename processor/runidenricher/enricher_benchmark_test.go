// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/redactionprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourceprocessor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/lenscol/lenscol/internal/heapfloor"
)

// job is a batch of that many spans for each of the ranks, with the attributes that NeMo Lens 0.2 sends from SLURM.
func job(ranks, spans int) ptrace.Traces {
	td := ptrace.NewTraces()
	for rank := range ranks {
		rs := td.ResourceSpans().AppendEmpty()
		attrs := rs.Resource().Attributes()
		attrs.PutStr("telemetry.sdk.language", "python")
		attrs.PutStr("telemetry.sdk.name", "opentelemetry")
		attrs.PutStr("telemetry.sdk.version", "1.45.1")
		attrs.PutStr("service.instance.id", fmt.Sprint("12345-rank", rank))
		attrs.PutStr("service.name", "megatron")
		attrs.PutStr("service.version", "0.2.0")
		attrs.PutInt("dl.rank", int64(rank))
		attrs.PutInt("dl.world_size", 1024)
		attrs.PutStr("nemo.run.id", "12345")
		attrs.PutStr("host.name", "node-a")
		attrs.PutInt("process.pid", int64(4242+rank))
		attrs.PutStr("slurm.job.id", "12345")
		attrs.PutStr("slurm.job.name", "pretrain")
		attrs.PutStr("slurm.cluster.name", "cluster-a")
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("nemo.lens")
		for step := range spans {
			span := ss.Spans().AppendEmpty()
			span.SetName("megatron.train.iteration")
			a := span.Attributes()
			a.PutInt("megatron.iteration", int64(step))
			a.PutBool("megatron.skipped", false)
			a.PutStr("megatron.phase", "forward_backward of the pipeline's first stage")
			a.PutStr("command", "python pretrain_gpt.py --tensor-model-parallel-size 8 --save /checkpoints/run-7f3a")
			a.PutStr("note", "all is well")
			a.PutDouble("loss", 2.31)
		}
	}
	return td
}

func contrib(b testing.TB, factory processor.Factory, raw map[string]any) consumer.Traces {
	cfg := factory.CreateDefaultConfig()
	require.NoError(b, confmap.NewFromStringMap(raw).Unmarshal(cfg))
	p, err := factory.CreateTraces(b.Context(), processortest.NewNopSettings(factory.Type()), cfg, consumertest.NewNop())
	require.NoError(b, err)
	return p
}

func ours(b testing.TB, yaml string, vars env) consumer.Traces {
	cfg, err := config(b, yaml, system(b, "node-a", vars))
	require.NoError(b, err)
	p, err := NewFactory().CreateTraces(b.Context(), processortest.NewNopSettings(NewFactory().Type()), cfg, consumertest.NewNop())
	require.NoError(b, err)
	require.NoError(b, p.(component.Component).Start(b.Context(), nil))
	return p
}

// asInTheBinary gives the benchmark the heap of a collector at work: the binary's floor, and 20 MiB of batches that live. Without them the heap
// is some 4 MiB, so that the garbage collector works most of the time and is most of what is measured.
var asInTheBinary = sync.OnceValue(func() (live []ptrace.Traces) {
	heapfloor.Keep()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	body := encoded(job(8, 64))
	for until := m.HeapAlloc + 20<<20; m.HeapAlloc < until; runtime.ReadMemStats(&m) {
		live = append(live, decoded(body))
	}
	return live
})

func encoded(td ptrace.Traces) []byte {
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		panic(err)
	}
	return body
}

func decoded(body []byte) ptrace.Traces {
	td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(body)
	if err != nil {
		panic(err)
	}
	return td
}

// runResources sends batches of 64 resources without spans, each as it comes from the receiver: decoded a moment ago, which is not measured. It
// reports the time a resource: the mean, with what the garbage collector takes, and that of the median batch, since others may use the machine too.
func runResources(b *testing.B, p consumer.Traces) {
	body := encoded(job(64, 0))
	runBatches(b, p, func() ptrace.Traces { return decoded(body) })
}

// runCopies does so with batches as they come from a fan-out: in its copies a list of attributes has no room for one more.
func runCopies(b *testing.B, p consumer.Traces) {
	template := job(64, 0)
	runBatches(b, p, func() ptrace.Traces {
		td := ptrace.NewTraces()
		template.CopyTo(td)
		return td
	})
}

func runBatches(b *testing.B, p consumer.Traces, batch func() ptrace.Traces) {
	defer runtime.KeepAlive(asInTheBinary())
	var times []time.Duration
	var sum time.Duration
	for b.Loop() {
		td := batch()
		begin := time.Now()
		err := p.ConsumeTraces(b.Context(), td)
		times = append(times, time.Since(begin))
		sum += times[len(times)-1]
		if err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(sum)/float64(len(times))/64, "ns/resource")
	b.ReportMetric(float64(times[len(times)/2])/64, "median-ns/resource")
	b.ReportMetric(0, "ns/op")
}

// The same number of fixed attributes, by this processor and by contrib's resource processor, which adds them alone.
func BenchmarkAttributes(b *testing.B) {
	for _, n := range []int{1, 4, 16} {
		fixed := only + "mode: gateway\nattributes:\n"
		var actions []any
		for i := range n {
			key := fmt.Sprintf("cluster.attribute.%d", i)
			fixed += "  " + key + ": value\n"
			actions = append(actions, map[string]any{"key": key, "value": "value", "action": "insert"})
		}
		b.Run(fmt.Sprint(n, "/run_id_enricher"), func(b *testing.B) { runResources(b, ours(b, fixed, nil)) })
		b.Run(fmt.Sprint(n, "/contrib"), func(b *testing.B) {
			runResources(b, contrib(b, resourceprocessor.NewFactory(), map[string]any{"attributes": actions}))
		})
	}
}

// What a sidecar of the job adds to a rank of NeMo Lens 0.2, and what a gateway does that changes nothing.
func BenchmarkResources(b *testing.B) {
	for _, test := range []struct {
		name, yaml string
		vars       env
	}{
		{"gateway", "mode: gateway", nil},
		{"sidecar, run and job", only, slurm},
		{"sidecar, all groups", "", slurm},
		{"instance_id", "mode: gateway\ninstance_id: unique", nil},
		{"names both", "mode: gateway\nnames: both", nil},
	} {
		b.Run(test.name, func(b *testing.B) { runResources(b, ours(b, test.yaml, test.vars)) })
		b.Run(test.name+", of a fan-out", func(b *testing.B) { runCopies(b, ours(b, test.yaml, test.vars)) })
	}
}

// The ten expressions are those that people write for such tokens.
var tenPatterns = []string{
	`\bwandb_v1_[A-Za-z0-9_]{40,}`, `\blocal-[0-9a-f]{40}\b`, `\bhf_[A-Za-z0-9]{34,40}\b`, `\bsk-proj-[A-Za-z0-9_-]{40,}`, `\bsk-[A-Za-z0-9]{48}\b`,
	`\b(?:AKIA|ASIA)[A-Z2-7]{16}\b`, `\bgh[pousr]_[A-Za-z0-9]{36,251}\b`, `\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b`,
	`[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b`, `\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`,
}

// Ten patterns over spans in which there is nothing to be found: this processor, with NeMo Lens's keys beside, and contrib's
// redaction processor with the same expressions.
func BenchmarkRedaction(b *testing.B) {
	yaml := only + "mode: gateway\nredact:\n  patterns:\n"
	var blocked []any
	for _, re := range tenPatterns {
		yaml += "    - '" + re + "'\n"
		blocked = append(blocked, re)
	}
	for _, p := range []struct {
		name string
		p    consumer.Traces
	}{
		{"off", ours(b, only+"mode: gateway", nil)},
		{"run_id_enricher", ours(b, yaml, nil)},
		{"contrib", contrib(b, redactionprocessor.NewFactory(), map[string]any{"allow_all_keys": true, "blocked_values": blocked, "summary": "silent"})},
	} {
		b.Run(p.name, func(b *testing.B) {
			td := job(8, 64)
			b.ReportAllocs()
			for b.Loop() {
				if err := p.p.ConsumeTraces(b.Context(), td); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(8*64), "ns/span")
		})
	}
}

// Nothing is allocated for a span, whether redaction is off or finds nothing, and nothing for a resource that has it all.
func TestSpansCostNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has pools forget what they hold")
	}
	for name, yaml := range map[string]string{
		"off":            only + "mode: gateway",
		"keys":           only + "mode: gateway\nredact:",
		"ready patterns": only + "mode: gateway\nredact: {patterns: [wandb, huggingface, openai, aws, github, email]}",
		"skew":           only + "mode: gateway\nskew: clamp",
	} {
		cfg, err := config(t, yaml, system(t, "node-a", nil))
		require.NoError(t, err)
		e, err := newEnricher(processortest.NewNopSettings(NewFactory().Type()), cfg)
		require.NoError(t, err)
		td := job(3, 100)
		require.Zero(t, testing.AllocsPerRun(20, func() { _, _ = e.traces(t.Context(), td) }), name)
	}
}
