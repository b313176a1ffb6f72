// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/configs/backendtest"
)

// BenchmarkConfig measures what docs/sizing.md says: CPU seconds of the collector for a million spans, and its largest resident
// memory, with one sender over gRPC whose requests have 512 spans of 8 resource and 6 span attributes.
//
//	LENSCOL_BIN=bin/lenscol go test -run '^$' -bench Config -benchtime 2000x ./test/configs
func BenchmarkConfig(b *testing.B) {
	for _, bm := range []struct {
		name string
		env  func(*testing.B) []string
	}{
		{"archive", nil},
		{"sidecar", nil},
		{"file", nil},
		{"redact", nil},
		{"goodput-routing", func(b *testing.B) []string {
			return []string{"HONEYCOMB_API_KEY=k", "HONEYCOMB_ENDPOINT=http://127.0.0.1:" + testbed.FreePort(b)}
		}},
		{"jaeger", func(b *testing.B) []string {
			return []string{"LENSCOL_JAEGER=" + backendtest.NewGRPC(b, nil).Address}
		}},
		{"daemonset", func(b *testing.B) []string { return []string{"LENSCOL_BACKEND=127.0.0.1:" + testbed.FreePort(b)} }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			args := []string{"--config", "lenscol:" + bm.name}
			var env []string
			if bm.env != nil {
				env = bm.env(b)
			}
			token := b.TempDir() + "/token"
			require.NoError(b, os.WriteFile(token, []byte("t"), 0o600))
			env = append(env, "LENSCOL_BACKEND_TOKEN_FILE="+token, "LENSCOL_HEALTH_PORT="+testbed.FreePort(b), "LENSCOL_PROMETHEUS_PORT="+testbed.FreePort(b))
			collector := testbed.Start(b, testbed.Options{Args: args, Env: env})
			client := collector.Client()
			defer client.Close()
			body := typical(b)
			before := cpuSeconds(b, collector.Pid())
			b.ResetTimer()
			for range b.N {
				require.NoError(b, client.GRPC(b.Context(), "traces", body, false))
			}
			b.StopTimer()
			b.ReportMetric((cpuSeconds(b, collector.Pid())-before)*1e6/float64(b.N*512), "cpu-s/Mspan")
			b.ReportMetric(peakMiB(b, collector.Pid()), "MiB-peak")
		})
	}
}

// typical is a request of one rank of 8, which is not the one that is exported.
func typical(b *testing.B) []byte {
	spans := make([]span, 512)
	for i := range spans {
		spans[i] = span{name: "megatron.train.iteration", attrs: attributes{
			"megatron.iteration": i, "megatron.skipped": false, "num_microbatches": 16, "purpose": []any{"goodput"}, "loss": 2.5, "note": "a text of some words"}}
	}
	td := traces(spans...)
	out := ptrace.NewTraces()
	rs := out.ResourceSpans().AppendEmpty()
	resource := rank(7, 8)
	resource["host.name"], resource["process.pid"], resource["slurm.job.id"] = "node-a", 4242, "4242"
	fill(rs.Resource().Attributes(), resource)
	ss := rs.ScopeSpans().AppendEmpty().Spans()
	for _, from := range td.ResourceSpans().All() {
		from.ScopeSpans().At(0).Spans().At(0).CopyTo(ss.AppendEmpty())
	}
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(out)
	require.NoError(b, err)
	return body
}

// cpuSeconds is the user and system time of a process, fields 14 and 15 of its stat in hundredths of a second.
func cpuSeconds(b *testing.B, pid int) float64 {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	user, err := strconv.ParseFloat(string(fields[11]), 64)
	require.NoError(b, err)
	system, err := strconv.ParseFloat(string(fields[12]), 64)
	require.NoError(b, err)
	return (user + system) / 100
}

func peakMiB(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(b, err)
	_, rest, found := bytes.Cut(status, []byte("VmHWM:"))
	require.True(b, found)
	kb, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
	require.NoError(b, err)
	return kb / 1024
}
