// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/testbed"
)

const nativeCompression = "exporter.file.nativeCompression"

// contribFiles has contrib's file exporter write all captured requests, a file each signal, and returns their folder.
func contribFiles(t *testing.T, config map[string]any) string {
	t.Helper()
	folder := t.TempDir()
	factory := fileexporter.NewFactory()
	set := exportertest.NewNopSettings(factory.Type())
	newConfig := func(name string) component.Config {
		cfg := factory.CreateDefaultConfig()
		config["path"] = filepath.Join(folder, name)
		require.NoError(t, confmap.NewFromStringMap(config).Unmarshal(cfg))
		return cfg
	}
	start := func(c component.Component) {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	}
	traces, err := factory.CreateTraces(t.Context(), set, newConfig("traces.json"))
	require.NoError(t, err)
	metrics, err := factory.CreateMetrics(t.Context(), set, newConfig("metrics.json"))
	require.NoError(t, err)
	logs, err := factory.CreateLogs(t.Context(), set, newConfig("logs.json"))
	require.NoError(t, err)
	start(traces)
	start(metrics)
	start(logs)
	send(t, traces, metrics, logs)
	require.NoError(t, traces.Shutdown(t.Context()))
	require.NoError(t, metrics.Shutdown(t.Context()))
	require.NoError(t, logs.Shutdown(t.Context()))
	return folder
}

func send(t *testing.T, traces exporter.Traces, metrics exporter.Metrics, logs exporter.Logs) {
	for _, c := range testbed.Captures(t) {
		switch c.Signal {
		case "traces":
			td, err := unmarshal(c.JSON, c.Body, (&ptrace.JSONUnmarshaler{}).UnmarshalTraces, (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces)
			require.NoError(t, err)
			require.NoError(t, traces.ConsumeTraces(t.Context(), td))
		case "metrics":
			md, err := unmarshal(c.JSON, c.Body, (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics, (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics)
			require.NoError(t, err)
			require.NoError(t, metrics.ConsumeMetrics(t.Context(), md))
		default:
			ld, err := unmarshal(c.JSON, c.Body, (&plog.JSONUnmarshaler{}).UnmarshalLogs, (&plog.ProtoUnmarshaler{}).UnmarshalLogs)
			require.NoError(t, err)
			require.NoError(t, logs.ConsumeLogs(t.Context(), ld))
		}
	}
}

func unmarshal[T any](isJSON bool, body []byte, fromJSON, fromProto func([]byte) (T, error)) (T, error) {
	if isJSON {
		return fromJSON(body)
	}
	return fromProto(body)
}

func TestFilesOfContribsFileExporter(t *testing.T) {
	want := wires(t, captured(t, ""))
	slices.Sort(want)
	for _, tt := range []struct {
		name        string
		config      map[string]any
		native      bool
		layout      Layout
		compression Compression
	}{
		{"json", map[string]any{}, false, LayoutOTLPJSON, Plain},
		{"json, zstd", map[string]any{"compression": "zstd"}, false, LayoutOTLPJSON, Zstd},
		{"json, native zstd", map[string]any{"compression": "zstd"}, true, LayoutOTLPJSON, Zstd},
		{"json, native zstd, rotated", map[string]any{"compression": "zstd", "rotation": map[string]any{}}, true, LayoutOTLPJSON, Zstd},
		{"proto", map[string]any{"format": "proto"}, false, LayoutOTLPProto, Plain},
		{"proto, zstd", map[string]any{"format": "proto", "compression": "zstd"}, false, LayoutOTLPProto, Zstd},
		{"proto, native zstd", map[string]any{"format": "proto", "compression": "zstd"}, true, LayoutOTLPProto, Zstd},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, featuregate.GlobalRegistry().Set(nativeCompression, tt.native))
			defer func() { require.NoError(t, featuregate.GlobalRegistry().Set(nativeCompression, false)) }()
			folder := contribFiles(t, tt.config)
			recs := readFolder(t, folder, func(in Input, s Stats) {
				require.Equal(t, tt.compression, s.Compression, in.Path)
				require.Equal(t, map[Layout]int64{tt.layout: s.Records()}, s.Layouts, in.Path)
			})
			got := wires(t, recs)
			slices.Sort(got)
			require.Equal(t, want, got)
		})
	}
}

// Where the file's name says nothing, the bytes of spans and logs do, and those of metrics.
func TestSignalOfMessagesIsTold(t *testing.T) {
	for _, c := range testbed.Captures(t) {
		if c.JSON {
			continue
		}
		signal, certain := protoSignal(c.Body)
		require.Equal(t, signalOf(c.Signal), signal, c.Name)
		require.True(t, certain || c.Signal == "metrics", c.Name)
	}
}

func TestTornMessageIsNoDamage(t *testing.T) {
	folder := contribFiles(t, map[string]any{"format": "proto", "compression": "zstd"})
	whole := readFile(t, filepath.Join(folder, "logs.json"))
	require.Greater(t, whole.stats.Lines, int64(1))
	content := mustRead(t, filepath.Join(folder, "logs.json"))
	for _, cut := range []int{1, 20} {
		res := readBytes(t, "logs.json", content[:len(content)-cut])
		require.Empty(t, res.damage)
		require.Positive(t, res.stats.Torn)
		require.Equal(t, whole.stats.Lines-1, res.stats.Lines)
	}
	content[len(content)-10] ^= 0x40
	res := readBytes(t, "logs.json", content)
	require.Len(t, res.damage, 1)
	require.Equal(t, whole.stats.Lines, res.stats.Lines)
}
