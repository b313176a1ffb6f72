// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
)

// The archive as the exporter writes it: partitions, rotation, every compression and layout, read as a folder.
func TestArchiveOfTheExporterReadsWhole(t *testing.T) {
	want := wires(t, captured(t, ""))
	slices.Sort(want)
	for _, compression := range []string{"none", "gzip", "zstd"} {
		for _, layout := range []string{"compact", "otlp_json"} {
			t.Run(compression+" "+layout, func(t *testing.T) {
				folder := t.TempDir()
				factory := jsonlexporter.NewFactory()
				cfg := factory.CreateDefaultConfig()
				require.NoError(t, confmap.NewFromStringMap(map[string]any{
					"path": filepath.Join(folder, "{run}", "{rank}", "{signal}.jsonl"), "compression": compression, "layout": layout,
					"rotation": map[string]any{"max_bytes": "20KiB"}, "min_free_bytes": 0, "flush_interval": "0s",
				}).Unmarshal(cfg))
				set := exportertest.NewNopSettings(factory.Type())
				traces, err := factory.CreateTraces(t.Context(), set, cfg)
				require.NoError(t, err)
				metrics, err := factory.CreateMetrics(t.Context(), set, cfg)
				require.NoError(t, err)
				logs, err := factory.CreateLogs(t.Context(), set, cfg)
				require.NoError(t, err)
				all := []component.Component{traces, metrics, logs}
				for _, c := range all {
					require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
				}
				send(t, traces, metrics, logs)

				// Read while the exporter still has the files open: whole up to the last acknowledged record.
				rotated := 0
				recs := readFolder(t, folder, func(in Input, s Stats) {
					require.Equal(t, Compression(compression), s.Compression, in.Path)
					if in.Rotated {
						rotated++
					}
				})
				require.Positive(t, rotated)
				for _, c := range all {
					require.NoError(t, c.Shutdown(t.Context()))
				}
				got := wires(t, recs)
				slices.Sort(got)
				require.Equal(t, want, got)
			})
		}
	}
}
