// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// BenchmarkNext reads files of 10,000 records, 512 of a scope in a row.
func BenchmarkNext(b *testing.B) {
	const n = 10_000
	for _, bb := range []struct{ name, line string }{
		{"span", `{"type":"span","name":"training_step","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"%016x","parent_id":"53995c3f42cd8ad8",` +
			`"start_ns":1767225600000000000,"duration_ns":1250000000,"attributes":{"step":12,"loss":2.125,"phase":"forward","lr":0.0003,"tokens":8192,"compiled":true},` +
			`"run":"llama-7b","rank":3,"service":"trainer","scope":%d}`},
		{"metric", `{"type":"metric","name":"tokens","kind":"sum","unit":"{token}","temporality":"cumulative","monotonic":true,"start_ns":1767225500000000000,` +
			`"time_ns":1767225600000000000,"value":%d,"attributes":{"gpu":0,"phase":"forward"},"run":"llama-7b","rank":3,"service":"trainer","scope":%d}`},
		{"log", `{"type":"log","time_ns":1767225600000000000,"observed_ns":1767225600000000100,"severity_number":9,"severity_text":"INFO","body":"step %d done",` +
			`"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7","attributes":{"step":12,"logger":"trainer"},"run":"llama-7b","rank":3,"service":"trainer","scope":%d}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var text strings.Builder
			for id := 1; id <= 8; id++ {
				fmt.Fprintf(&text, `{"type":"resource","id":%d,"attributes":{"service.name":"trainer","nv.dl.rank":%d,"nv.dl.world_size":8,"host.name":"h","nemo.run.id":"llama-7b"}}`+"\n", id, id)
				fmt.Fprintf(&text, `{"type":"scope","id":%d,"resource":%d,"name":"nemo.lens","version":"0.2.0"}`+"\n", id, id)
			}
			for i := range n {
				fmt.Fprintf(&text, bb.line+"\n", i+1, i/512%8+1)
			}
			data := []byte(text.String())
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r := jsonlreader.New(bytes.NewReader(data), "f")
				got := 0
				for {
					batch, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					require.NoError(b, err)
					got += batch.Records
				}
				require.Equal(b, n, got)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}
