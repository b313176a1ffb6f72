// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package jsonlexporter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
)

// cpuTime is what the process has used, user and system, all threads.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// variedTraces makes requests whose ids and times differ as they do in life: a compressor must not find one request in another.
func variedTraces(n, spans int) []ptrace.Traces {
	random := rand.New(rand.NewPCG(7, uint64(n)))
	out := make([]ptrace.Traces, n)
	for i := range out {
		out[i] = benchTraces()
		list := out[i].ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		k := 0
		list.RemoveIf(func(ptrace.Span) bool { k++; return k > spans })
		for _, span := range list.All() {
			var trace pcommon.TraceID
			var id, parent pcommon.SpanID
			for j := range trace {
				trace[j] = byte(random.Uint32())
			}
			for j := range id {
				id[j], parent[j] = byte(random.Uint32()), byte(random.Uint32())
			}
			span.SetTraceID(trace)
			span.SetSpanID(id)
			span.SetParentSpanID(parent)
			start := span.StartTimestamp() + pcommon.Timestamp(random.IntN(1e9))
			span.SetStartTimestamp(start)
			span.SetEndTimestamp(start + pcommon.Timestamp(random.IntN(1e8)))
			span.Attributes().PutDouble("megatron.loss", 2+random.Float64())
		}
	}
	return out
}

func benchExporter(b *testing.B, name, compression, folder string) (exporter.Traces, string) {
	b.Helper()
	factory, path := NewFactory(), filepath.Join(folder, "traces.jsonl")
	settings := map[string]any{"path": path, "min_free_bytes": 0, "rotation": map[string]any{"max_bytes": 0}}
	set := exportertest.NewNopSettings(metadata.Type)
	if name == "contrib" {
		factory = fileexporter.NewFactory()
		set = exportertest.NewNopSettings(factory.Type())
		settings = map[string]any{"path": path}
	}
	if compression != "plain" {
		settings["compression"] = compression
		if name == "lenscol" {
			path += Compression(compression).extension()
		}
	}
	cfg := factory.CreateDefaultConfig()
	require.NoError(b, confmap.NewFromStringMap(settings).Unmarshal(cfg))
	e, err := factory.CreateTraces(context.Background(), set, cfg)
	require.NoError(b, err)
	require.NoError(b, e.Start(context.Background(), componenttest.NewNopHost()))
	return e, path
}

// BenchmarkArchive holds the whole exporter, encoding to file, against contrib's file exporter. CPU is what counts: ours
// works in goroutines of its own. Requests are sent by 16 senders, as a node's ranks do.
func BenchmarkArchive(b *testing.B) {
	requests := variedTraces(64, 512)
	for _, compression := range []string{"plain", "zstd", "gzip"} {
		for _, name := range []string{"lenscol", "contrib"} {
			if name == "contrib" && compression == "gzip" {
				continue // It has none.
			}
			b.Run(compression+"/"+name, func(b *testing.B) {
				e, path := benchExporter(b, name, compression, b.TempDir())
				b.SetParallelism(8)
				before := cpuTime(b)
				b.RunParallel(func(pb *testing.PB) {
					for i := rand.IntN(64); pb.Next(); i++ {
						if err := e.ConsumeTraces(context.Background(), requests[i%64]); err != nil {
							b.Error(err)
						}
					}
				})
				require.NoError(b, e.Shutdown(context.Background()))
				info, err := os.Stat(path)
				require.NoError(b, err)
				spans := float64(b.N) * 512
				b.ReportMetric(float64(cpuTime(b)-before)/spans, "cpu-ns/span")
				b.ReportMetric(float64(info.Size())/spans, "B/span")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkFlushInterval measures what waiting buys: bytes per span and the mean time to an acknowledgement, for 16 ranks that
// send at a rate together. It is what the default for compressed files was chosen from (docs/jsonl.md).
func BenchmarkFlushInterval(b *testing.B) {
	const senders, seconds = 16, 2
	for _, rate := range []int{10, 100, 1000, 10_000, 100_000} {
		per := min(max(rate/senders/5, 1), 512) // spans a request: an SDK sends what it has, at most 512
		requests := variedTraces(64, per)
		for _, interval := range []time.Duration{0, 200 * time.Millisecond, time.Second} {
			b.Run(fmt.Sprintf("rate=%d/interval=%s", rate, interval), func(b *testing.B) {
				folder := b.TempDir()
				cfg := createDefaultConfig().(*Config)
				cfg.Path = filepath.Join(folder, "traces.jsonl")
				cfg.MinFreeBytes, cfg.Compression, cfg.FlushInterval = 0, CompressionZstd, &interval
				e, err := NewFactory().CreateTraces(context.Background(), exportertest.NewNopSettings(metadata.Type), cfg)
				require.NoError(b, err)
				require.NoError(b, e.Start(context.Background(), componenttest.NewNopHost()))
				before := cpuTime(b)
				acks := make(chan time.Duration, 1<<20)
				done := make(chan int, senders)
				every := time.Duration(float64(time.Second) * float64(per*senders) / float64(rate))
				for s := range senders {
					go func() {
						tick := time.NewTicker(every)
						defer tick.Stop()
						sent := 0
						for end := time.Now().Add(seconds * time.Second); time.Now().Before(end); {
							<-tick.C
							begin := time.Now()
							if err := e.ConsumeTraces(context.Background(), requests[(s+sent)%64]); err != nil {
								b.Error(err)
							}
							acks <- time.Since(begin)
							sent++
						}
						done <- sent
					}()
				}
				sent := 0
				for range senders {
					sent += <-done
				}
				require.NoError(b, e.Shutdown(context.Background()))
				var total time.Duration
				for range sent {
					total += <-acks
				}
				info, err := os.Stat(cfg.Path + zstdExtension)
				require.NoError(b, err)
				b.ReportMetric(float64(info.Size())/float64(sent*per), "B/span")
				b.ReportMetric(float64(total.Milliseconds())/float64(sent), "ack-ms")
				b.ReportMetric(float64(cpuTime(b)-before)/float64(sent*per), "cpu-ns/span")
				b.ReportMetric(float64(sent*per)/seconds, "spans/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
