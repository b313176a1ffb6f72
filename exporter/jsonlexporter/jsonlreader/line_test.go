// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

func TestLinesThatSomebodyElseFinds(t *testing.T) {
	d := jsonlreader.NewLineDecoder("f.jsonl")
	var batcher jsonlreader.Batcher
	records := 0
	for i, line := range []string{
		`{"type":"resource","id":1,"attributes":{"run":"a"}}`,
		`{"type":"scope","id":1,"resource":1}`,
		`{"type":"span","name":"x","start_ns":1,"scope":1}`,
		`{"type":"profile"}`,
		`{"type":"span","name":"y","start_ns":1,"scope":1}`,
	} {
		rec, ok, err := d.Decode([]byte(line), int64(i+1), int64(10*i))
		require.NoError(t, err)
		if ok {
			require.Equal(t, int64(i+1), rec.Line)
			require.Equal(t, int64(10*i), rec.Offset)
			records++
			batcher.Add(rec)
		}
	}
	require.Equal(t, 2, records)
	b := batcher.Batch()
	require.Equal(t, []string{"a/x", "a/y"}, names([]jsonlreader.Batch{b}))
	require.Equal(t, 1, b.Traces.ResourceSpans().Len())
	require.EqualValues(t, 1, d.Stats().UnknownLines)

	_, ok, err := d.Decode([]byte(`{"type":"scope","id":1,"resource":7}`), 9, 90)
	require.False(t, ok)
	require.EqualError(t, err, `f.jsonl:9: key "resource": resource 7: no line above defines it`)
	_, _, err = d.Decode([]byte(`{"type":"span","start_ns":1,"scope":1}`), 10, 99)
	require.ErrorIs(t, err, jsonlreader.ErrUndefined, "a damaged definition ends what its id meant")
}

// Points that were not read from lines are one metric where all that describes the metric is equal.
func TestBatcherJoinsPointsOfOneMetric(t *testing.T) {
	scope := readRecord(t, `{"type":"log","time_ns":1}`).Scope
	point := func(name string, monotonic bool, metadata int64) jsonlreader.Record {
		m := pmetric.NewMetric()
		m.SetName(name)
		if metadata != 0 {
			m.Metadata().PutInt("k", metadata)
		}
		s := m.SetEmptySum()
		s.SetIsMonotonic(monotonic)
		s.DataPoints().AppendEmpty()
		return jsonlreader.Record{Signal: pipeline.SignalMetrics, Metric: m, Scope: scope}
	}
	var batcher jsonlreader.Batcher
	for _, rec := range []jsonlreader.Record{
		point("a", true, 0), point("a", true, 0), point("a", false, 0), point("b", false, 0), point("b", false, 1), point("b", false, 1), point("b", false, 2),
	} {
		batcher.Add(rec)
	}
	b := batcher.Batch()
	require.Equal(t, 7, b.Records)
	var points []int
	for _, m := range b.Metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		points = append(points, m.Sum().DataPoints().Len())
	}
	require.Equal(t, []int{2, 1, 1, 2, 1}, points)
	batcher.Reset()
	require.Zero(t, batcher.Batch().Records)
}

func readRecord(t *testing.T, line string) jsonlreader.Record {
	t.Helper()
	rec, ok, err := jsonlreader.NewLineDecoder("f").Decode([]byte(line), 1, 0)
	require.NoError(t, err)
	require.True(t, ok)
	return rec
}
