// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package weaveexporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// BenchmarkAllIn sends the same batches by this exporter and by the stock otlp_http with gzip, in turn, to one sink that reads and discards. It
// reports the medians of the CPU time of the process for a span, the sink's share included, and their ratio.
func BenchmarkAllIn(b *testing.B) {
	var wire [2]int64 // bytes
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if strings.HasPrefix(r.URL.Path, "/otel") {
			wire[0] += n
		} else {
			wire[1] += n
		}
	}))
	defer sink.Close()
	ours := validConfig()
	ours.BaseURL = sink.URL
	ours.QueueConfig = configoptional.None[exporterhelper.QueueBatchConfig]()
	stock := otlphttpexporter.NewFactory().CreateDefaultConfig().(*otlphttpexporter.Config)
	stock.ClientConfig.Endpoint = sink.URL
	stock.QueueConfig = ours.QueueConfig

	const batches = 20
	var cpu [2][]float64
	exporters := []exporter.Traces{benchExporter(b, NewFactory(), ours), benchExporter(b, otlphttpexporter.NewFactory(), stock)}
	for i := 0; b.Loop(); i++ {
		for k := range exporters {
			which := (i + k) % len(exporters)
			var load []ptrace.Traces
			for n := range batches {
				load = append(load, training((i*batches+n)*512, 512))
			}
			began := cpuTime(b)
			for _, td := range load {
				require.NoError(b, exporters[which].ConsumeTraces(b.Context(), td))
			}
			cpu[which] = append(cpu[which], float64(cpuTime(b)-began)/(batches*512))
		}
	}
	b.ReportMetric(median(cpu[0]), "ours-ns/span")
	b.ReportMetric(median(cpu[1]), "stock-ns/span")
	b.ReportMetric(median(cpu[0])/median(cpu[1]), "ratio")
	b.ReportMetric(float64(wire[0])/float64(len(cpu[0])*batches*512), "ours-B/span")
	b.ReportMetric(float64(wire[1])/float64(len(cpu[1])*batches*512), "stock-B/span")
}

func benchExporter(b *testing.B, factory exporter.Factory, cfg component.Config) exporter.Traces {
	e, err := factory.CreateTraces(b.Context(), exportertest.NewNopSettings(factory.Type()), cfg)
	require.NoError(b, err)
	require.NoError(b, e.Start(b.Context(), componenttest.NewNopHost()))
	b.Cleanup(func() { require.NoError(b, e.Shutdown(context.Background())) })
	return e
}

// training are spans such as Megatron with NeMo Lens sends.
func training(first, n int) ptrace.Traces {
	td := ptrace.NewTraces()
	all := addSpans(td, "", first, n)
	resource := td.ResourceSpans().At(0).Resource().Attributes()
	for i := range 12 {
		resource.PutStr(fmt.Sprintf("host.fact.%d", i), fmt.Sprintf("value-%d", i))
	}
	resource.PutInt("nv.dl.rank", 3)
	resource.PutInt("nv.dl.world_size", 64)
	resource.PutStr("nemo.run.id", "12345")
	td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName("megatron")
	for i := range all.Len() {
		span := all.At(i)
		span.SetName("megatron.train.iteration.forward_backward")
		if i > 0 {
			span.SetParentSpanID(spanID(first))
		}
		span.SetTraceID([16]byte(append(spanIDBytes(first), spanIDBytes(i)...)))
		span.Attributes().PutInt("megatron.iteration", int64(first+i))
		span.Attributes().PutInt("megatron.microbatch", int64(i%8))
		span.Attributes().PutDouble("megatron.loss", 1.0/float64(first+i+1))
		span.Attributes().PutBool("megatron.checkpoint", i%100 == 0)
		span.Attributes().PutStr("nemo.span.group", "train")
	}
	return td
}

func spanIDBytes(n int) []byte {
	id := spanID(n)
	return id[:]
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// BenchmarkGzip compresses what is sent of a batch, with the standard library as confighttp does, and as the client does.
func BenchmarkGzip(b *testing.B) {
	var body []byte
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { body, _ = io.ReadAll(r.Body) }))
	defer sink.Close()
	cfg := validConfig()
	cfg.BaseURL = sink.URL
	cfg.ClientConfig.Compression = "none"
	cfg.QueueConfig = configoptional.None[exporterhelper.QueueBatchConfig]()
	require.NoError(b, benchExporter(b, NewFactory(), cfg).ConsumeTraces(b.Context(), training(0, 4096)))
	require.NotEmpty(b, body)

	compressed := cfg.ClientConfig
	compressed.Compression = "gzip"
	c := &client{cfg: &Config{ClientConfig: compressed}}
	require.NoError(b, c.start(b.Context(), nil, componenttest.NewNopTelemetrySettings()))
	standard, err := gzip.NewWriterLevel(nil, int(compressed.CompressionParams.Level))
	require.NoError(b, err)
	for name, compress := range map[string]func() int{
		"standard": func() int {
			out := bytes.NewBuffer(nil)
			standard.Reset(out)
			_, _ = standard.Write(body)
			_ = standard.Close()
			return out.Len()
		},
		"client": func() int { return len(c.compress(body)) },
	} {
		b.Run(name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = compress()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/span")
			b.ReportMetric(float64(size)/4096, "B/span")
		})
	}
}
