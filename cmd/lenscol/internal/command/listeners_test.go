// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func readTestSnapshot(t *testing.T, uris ...string) *snapshot {
	set := testSettings()
	set.ConfigProviderSettings.ResolverSettings.URIs = uris
	snap, err := readSnapshot(t.Context(), set, zap.NewNop())
	require.NoError(t, err)
	return snap
}

func TestStartLine(t *testing.T) {
	for _, tt := range []struct {
		name     string
		config   string
		implicit bool
		want     string
	}{
		{
			"default config", "lenscol:archive", true,
			"lenscol 0.0.1: OTLP on 127.0.0.1:4317 (gRPC) and 127.0.0.1:4318 (HTTP); writing lens-data/{traces,metrics,logs}.jsonl; " +
				"config lenscol:archive (lenscol configs show archive)",
		},
		{
			"the same, asked for", "lenscol:archive", false,
			"lenscol 0.0.1: OTLP on 127.0.0.1:4317 (gRPC) and 127.0.0.1:4318 (HTTP); writing lens-data/{traces,metrics,logs}.jsonl",
		},
		{
			"defaults of the components", `yaml:
receivers: {otlp: {protocols: {grpc: }}}
exporters: {jsonl: }
service: {pipelines: {logs: {receivers: [otlp], exporters: [jsonl]}}}`, false,
			"lenscol 0.0.1: OTLP on localhost:4317 (gRPC); writing lens-data/logs.jsonl",
		},
		{
			"several, and some in no pipeline", `yaml:
receivers:
  otlp/a: {protocols: {http: {endpoint: "127.0.0.1:1"}}}
  otlp/b: {protocols: {grpc: {endpoint: /run/otlp.sock, transport: unix}}}
  otlp/unused: {protocols: {grpc: }}
exporters: {jsonl/x: {path: /data/x.jsonl}, jsonl/y: {path: "y-{signal}.jsonl"}, jsonl/unused: {}, nop: {}}
service:
  pipelines:
    traces/1: {receivers: [otlp/a], exporters: [jsonl/x, jsonl/y]}
    traces/2: {receivers: [otlp/b], exporters: [jsonl/y, nop]}
    metrics: {receivers: [otlp/b], exporters: [jsonl/y]}`, false,
			"lenscol 0.0.1: OTLP on 127.0.0.1:1 (HTTP) and /run/otlp.sock (gRPC); writing /data/x.jsonl and y-{traces,metrics}.jsonl",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, startLine(testSettings().BuildInfo, readTestSnapshot(t, tt.config).effective, tt.implicit))
		})
	}
}

func TestKeyOfPort(t *testing.T) {
	snap := readTestSnapshot(t, `yaml:
receivers:
  otlp/a: {protocols: {http: {endpoint: "localhost:1"}}}
  otlp/b: {protocols: {http: {endpoint: "127.0.0.1:1"}, grpc: {endpoint: "0.0.0.0:2"}}}
exporters: {nop: {}}
service: {pipelines: {traces: {receivers: [otlp/a, otlp/b], exporters: [nop]}}}`)
	for _, tt := range []struct{ name, host, port, want string }{
		{"exact goes first", "127.0.0.1", "1", "receivers.otlp/b.protocols.http.endpoint"},
		{"by a name of the host", "::1", "1", "receivers.otlp/a.protocols.http.endpoint"},
		{"every address", "::", "2", "receivers.otlp/b.protocols.grpc.endpoint"},
		{"the default of the collector's metrics", "127.0.0.1", "8888", "service.telemetry.metrics.readers[0].pull.exporter.prometheus.port"},
		{"unknown", "127.0.0.1", "3", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, keyOfPort(snap.effective, tt.host, tt.port))
		})
	}
}

func TestSnapshotPorts(t *testing.T) {
	t.Setenv("LENSCOL_HTTP_PORT", "14318")
	require.Equal(t, map[string]int{"grpc": 4317, "health": 13133, "http": 14318, "metrics": 8888}, readTestSnapshot(t, "lenscol:archive").ports())
	require.Empty(t, readTestSnapshot(t, "yaml:"+httpConfig(1)).ports())
}
