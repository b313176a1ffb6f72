// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
)

// What a record costs, from the bytes of a file to the line that `cat` prints.
func BenchmarkCat(b *testing.B) {
	recs := captured(b, "")
	for _, layout := range []jsonlexporter.Layout{jsonlexporter.LayoutCompact, jsonlexporter.LayoutOTLPJSON, jsonlexporter.LayoutConsole} {
		text := bytes.Repeat(write(b, layout, captured(b, "")), 5)
		b.Run(string(layout), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(text), "all")
				require.NoError(b, err)
				w, err := NewWriter(io.Discard, jsonlexporter.LayoutCompact, jsonlexporter.ResourceInline)
				require.NoError(b, err)
				for {
					rec, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					require.NoError(b, err)
					require.NoError(b, w.Write(rec))
				}
				require.NoError(b, w.Flush())
				require.NoError(b, r.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*5*len(recs)), "ns/record")
		})
	}
}
