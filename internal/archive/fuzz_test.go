// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever a file holds, reading it ends, every line is counted once, and what was read can be written and read again.
func FuzzReader(f *testing.F) {
	compact := []byte(spanLine("a", 1, 0) + `{"type":"metric","name":"m","kind":"gauge","time_ns":1,"start_ns":0,"value":1}` + "\n" + spanLine("b", 2, 1))
	for _, seed := range [][]byte{
		nil, compact, []byte(consoleSpanLine), []byte("x\n" + consoleIndented + "y"), []byte(recordOfAHandWrittenExporter),
		[]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a"}]}]}]}` + "\n"),
		[]byte(`{"resource_metrics": [{"resource": {}, "scope_metrics": [{"scope": {}, "metrics": [{"name": "m", "data": {"data_points": [{"value": NaN}]}}]}]}]}` + "\n"),
		[]byte(`{"body": null, "severity_number": "<SeverityNumber.INFO: 9>", "observed_timestamp": null}` + "\n"),
		gzipped(f, compact, compact), zstded(f, compact, compact), gzipped(f, compact)[:40], zstded(f, compact)[:40],
		append([]byte{0, 0, 0, 12}, "\n\n\x12\b\x12\x06\x11\x01\x00\x00\x00\x00"...), append([]byte{0, 0, 0, 2}, "{}"...),
		{0, 0, 0, 0}, {0x1f, 0x8b, 8}, {0x28, 0xb5, 0x2f, 0xfd, 0xff},
		bytes.Repeat([]byte("{"), 2000), []byte("{\n{\n{\n"), []byte(`{"name": "{"name": "`),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := NewReader(bytes.NewReader(content), "traces")
		require.NoError(t, err)
		defer r.Close()
		var out bytes.Buffer
		w, err := NewWriter(&out, "compact", "inline")
		require.NoError(t, err)
		damage := int64(0)
		for {
			rec, err := r.Next()
			var bad *Damage
			if errors.As(err, &bad) {
				damage++
				continue
			}
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			_, _ = rec.Time(), rec.End()
			require.NoError(t, w.Write(rec))
		}
		stats := r.Stats()
		require.GreaterOrEqual(t, stats.Damaged, damage)
		require.GreaterOrEqual(t, stats.Foreign, int64(0))
		require.NoError(t, w.Flush())
		require.Equal(t, stats.Records(), w.Written())
		layouts := int64(0)
		for _, n := range stats.Layouts {
			layouts += n
		}
		require.Equal(t, stats.Records(), layouts)

		again := readBytes(t, "again", out.Bytes())
		require.Equal(t, stats.Records(), again.stats.Records())
		require.Empty(t, again.damage)
	})
}

// The detector takes nothing for telemetry that its decoder then does not know, and never panics.
func FuzzDetect(f *testing.F) {
	for _, seed := range []string{
		spanLine("a", 1, 0), consoleSpanLine, consoleIndented, recordOfAHandWrittenExporter, `{"resourceLogs":[]}`, `{"resource_metrics":[]}`,
		`{"type":"log","msg":"x"}`, `{"name":"x","context":{}}`, `{"level":"info"}`, `{"a":{"resourceSpans":[]}}`, `{}`, `{"name": NaN}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var scan objectScan
		end := scan.end(text)
		if end < 0 || text[0] != '{' || scan.deep {
			return
		}
		object := text[:end]
		if scan.bare {
			object = quoteBare(object)
		}
		layout := detect(object)
		require.Contains(t, []Layout{LayoutNone, LayoutCompact, LayoutConsole, LayoutOTLPJSON, LayoutSpanRecord}, layout)
		if nested := append(append([]byte(`{"x":`), object...), '}'); layout != LayoutNone {
			require.Equal(t, LayoutNone, detect(nested), "what stands within another object is not telemetry")
		}
	})
}
