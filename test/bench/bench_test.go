// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/internal/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRequestsAreOTLP decodes what is sent with pdata: every process is in it, ids are new and those that the books say.
func TestRequestsAreOTLP(t *testing.T) {
	for name, tr := range map[string]traffic{"megatron": megatron(100_000), "small": small(3), "job": job(16)} {
		t.Run(name, func(t *testing.T) {
			const requests = 100
			var got books
			ids, processes := map[pcommon.SpanID]bool{}, map[string]bool{}
			parents, known := 0, 0
			for n := range requests {
				resource, kind, variant := tr.request(n)
				body := &tr.streams[kind].spans[variant]
				body.renew(uint64(n))
				parts := request(resource, body.encoded)
				r := ptraceotlp.NewExportRequest()
				require.NoError(t, r.UnmarshalProto(parts.Materialize()))
				require.Equal(t, 1, r.Traces().ResourceSpans().Len())
				rs := r.Traces().ResourceSpans().At(0)
				instance, ok := rs.Resource().Attributes().Get("service.instance.id")
				require.True(t, ok)
				processes[instance.Str()] = true
				for _, span := range rs.ScopeSpans().At(0).Spans().All() {
					require.False(t, ids[span.SpanID()], "an id comes twice")
					require.Greater(t, span.EndTimestamp(), span.StartTimestamp())
					require.NotEmpty(t, span.Name())
					require.False(t, span.TraceID().IsEmpty())
					ids[span.SpanID()] = true
					got.spans++
					id := span.SpanID()
					got.ids += binary.BigEndian.Uint64(id[:])
				}
				for _, span := range rs.ScopeSpans().At(0).Spans().All() {
					if parent := span.ParentSpanID(); !parent.IsEmpty() {
						parents++
						if ids[parent] {
							known++
						}
					}
				}
			}
			require.Equal(t, tr.books(requests, nil), got)
			require.Equal(t, got.spans, tr.count(0, requests))
			want := min(requests, len(tr.streams[0].resources))
			if len(tr.streams) > 1 {
				want = 16 + 2 + 10 // ranks of Megatron, of RL, and the servers that 10 requests of 100 are of
			}
			require.Len(t, processes, want)
			require.Greater(t, float64(known)/float64(parents), 0.6, "parents are in the request, but for a step that is cut off")
		})
	}
}

// TestBench runs every row for a moment. That a row ends without an error says that both sides did all their work: nothing was lost.
func TestBench(t *testing.T) {
	stock := "../../build/stock/stock"
	if _, err := os.Stat(stock); err != nil {
		t.Skip("build/stock/stock is not there: make stock builds it")
	}
	b := bench{ours: testbed.Binary(t), stock: stock, stockAll: stock, rounds: 1, spans: 20_000, ranks: []int{10, 1000}, hold: time.Second, out: filepath.Join(t.TempDir(), "results", "latest.json")}
	require.NoError(t, b.run(nil))
	text, err := os.ReadFile(b.out)
	require.NoError(t, err)
	var got report
	require.NoError(t, json.Unmarshal(text, &got))
	require.NotEmpty(t, got.Machine)
	var works []string
	for _, row := range got.Rows {
		works = append(works, row.Work)
		switch row.Metric {
		case refusedSpans, lostSpans:
			require.Zero(t, row.Ours, "%s %s", row.Work, row.Metric)
		case cpuPerMillion: // In steps of 10 ms: it may be 0 here.
		default:
			require.Positive(t, row.Ours, "%s %s", row.Work, row.Metric)
		}
	}
	require.Equal(t, []string{
		"archive-plain", "archive-zstd", "gate-1of8-archive", "gate-1of1000-nop", "enrich-nop", "weave-gzip", "fanout",
		"flat-1000", "hold-100k", "start", "binary",
	}, slices.Compact(works))
}

// TestALossIsSeen: the books of an archive that lacks a span, or has one twice, are others.
func TestALossIsSeen(t *testing.T) {
	tr := small(2)
	want := tr.books(1, nil)
	var lines []string
	for _, p := range tr.streams[0].spans[0].places {
		line, err := json.Marshal(map[string]any{"span_id": fmt.Sprintf("%016x", p.spanID(0)), "parent_id": "0102030405060708"})
		require.NoError(t, err)
		lines = append(lines, string(line)+"\n")
	}
	read := func(lines []string) books {
		dir := t.TempDir()
		var text []byte
		for _, line := range lines {
			text = append(text, line...)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "traces.jsonl"), text, 0o600))
		got, size, err := readArchive(dir)
		require.NoError(t, err)
		require.EqualValues(t, len(text), size)
		return got
	}
	require.Equal(t, want, read(lines))
	require.NotEqual(t, want, read(lines[1:]))
	require.NotEqual(t, want, read(append(slices.Clone(lines[1:]), lines[1])))
}
