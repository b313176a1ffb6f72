// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/testbed"
)

// BenchmarkWeaveAllIn runs the binary with the weave exporter and with the stock otlp_http, in turn, from the receiver to a sink that reads and
// discards, both with their default queue and gzip. It reports the medians of the CPU time of a span, without that of start and end, and
// their ratio.
func BenchmarkWeaveAllIn(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	exporters := []string{
		fmt.Sprintf("weave: {api_key: %s, entity: acme, project: llm, base_url: %q}", "0123456789abcdef0123456789abcdef01234567", sink.URL),
		fmt.Sprintf("otlp_http: {endpoint: %q}", sink.URL),
	}
	const requests, size = 300, 512
	var bodies [][]byte
	for i := range uint64(requests) {
		td := ptrace.NewTraces()
		addWeaveSpans(td, "llm", i*size+1, size)
		for k, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			span.Attributes().PutInt("megatron.iteration", int64(k))
			span.Attributes().PutInt("megatron.microbatch", int64(k%8))
			span.Attributes().PutDouble("megatron.loss", 1/float64(k+1))
			span.Attributes().PutStr("nemo.span.group", "train")
		}
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(b, err)
		bodies = append(bodies, body)
	}
	var cpu [2][]float64
	for i := 0; b.Loop(); i++ {
		for k := range exporters {
			which := (i + k) % len(exporters)
			idle := collectorCPU(b, exporters[which], nil)
			busy := collectorCPU(b, exporters[which], bodies)
			cpu[which] = append(cpu[which], float64(busy-idle)/(requests*size))
		}
	}
	medians := []float64{}
	for _, c := range cpu {
		slices.Sort(c)
		medians = append(medians, c[len(c)/2])
	}
	b.ReportMetric(medians[0], "weave-ns/span")
	b.ReportMetric(medians[1], "otlp_http-ns/span")
	b.ReportMetric(medians[0]/medians[1], "ratio")
}

// collectorCPU is the CPU time of a collector that takes requests and ends after all are sent on.
func collectorCPU(b *testing.B, exporter string, bodies [][]byte) time.Duration {
	name, _, _ := strings.Cut(exporter, ":")
	collector := testbed.Start(b, testbed.Options{Config: `
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}, http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}}}}
exporters:
  ` + exporter + `
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [` + name + `]}}
`})
	client := collector.Client()
	for _, body := range bodies {
		require.NoError(b, client.GRPC(b.Context(), "traces", body, false))
	}
	client.Close()
	before := childrenCPU(b)
	collector.Stop()
	return childrenCPU(b) - before
}

// childrenCPU is the CPU time of processes that have ended: of one, whole, as soon as it was waited for.
func childrenCPU(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
