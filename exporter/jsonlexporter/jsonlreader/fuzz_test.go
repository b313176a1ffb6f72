// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// FuzzReader: whatever the bytes, the reader ends without a panic, every error is a LineError further down the file, no line is
// lost without a count, and batches hold what single records hold.
func FuzzReader(f *testing.F) {
	seeds, err := os.ReadFile("testdata/every_kind.jsonl")
	require.NoError(f, err)
	f.Add(seeds)
	for line := range bytes.Lines(seeds) {
		f.Add(bytes.Clone(line))
	}
	for _, s := range []string{
		"", "\n", "{", "{}\n", "[1]\n", "\x00\n\xff\n", `{"type":"span"}{"type":"span"}` + "\n",
		`{"type":"log","body":{"@map":{"@map":{"@pairs":[["a",{"@bytes":"AA=="}]]}},"b":1}}` + "\n",
		`{"type":"log","body":"\ud800\ud800\n"}` + "\n", `{"type":"span","start_ns":1,"duration_ns":-9223372036854775808}` + "\n",
		`{"type":"log","body":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}\n",
		strings.Join(archive, "\n"),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		opts := []jsonlreader.Option{jsonlreader.WithMaxLineBytes(1 << 12), jsonlreader.WithMaxBatchRecords(3)}
		lines := int64(bytes.Count(data, []byte("\n")))

		var whole [][]byte
		r := jsonlreader.New(bytes.NewReader(data), "f", opts...)
		var last, bad int64
		for {
			b, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				last, bad = requireLineError(t, err, last), bad+1
				continue
			}
			require.Positive(t, b.Records)
			require.Greater(t, b.FirstLine, last)
			last = b.LastLine
			whole = append(whole, records(t, b)...)
		}
		stats := r.Stats()
		require.Equal(t, bad, stats.BadLines)
		require.Equal(t, int64(len(whole)), stats.Spans+stats.Points+stats.Logs)
		require.LessOrEqual(t, stats.Spans+stats.Points+stats.Logs+stats.BadLines+stats.UnknownLines, stats.Lines)
		if r.Torn() == 0 {
			require.Equal(t, lines, stats.Lines)
		}

		var single [][]byte
		r = jsonlreader.New(bytes.NewReader(data), "f", opts...)
		last = 0
		for {
			rec, err := r.NextRecord()
			if err == io.EOF {
				break
			}
			if err != nil {
				last = requireLineError(t, err, last)
				continue
			}
			last = rec.Line
			single = append(single, records(t, batchOf(rec))...)
		}
		require.Equal(t, single, whole)
		require.Equal(t, stats, r.Stats())
	})
}

func requireLineError(t *testing.T, err error, after int64) int64 {
	var bad *jsonlreader.LineError
	require.True(t, errors.As(err, &bad), "%v", err)
	require.Greater(t, bad.Line, after)
	require.NotEmpty(t, err.Error())
	return bad.Line
}

// records are the spans, points and log records of a batch, each with its origin and its metric, as protobuf bytes. Batches of
// equal records are equal up to grouping.
func records(t testing.TB, b jsonlreader.Batch) (all [][]byte) {
	t.Helper()
	add := func(one jsonlreader.Batch) { all = append(all, wire(t, one)) }
	switch b.Signal {
	case pipeline.SignalTraces:
		for _, r := range b.Traces.ResourceSpans().All() {
			for _, s := range r.ScopeSpans().All() {
				for _, span := range s.Spans().All() {
					one := traces(func(to ptrace.ResourceSpans) {
						r.Resource().CopyTo(to.Resource())
						to.SetSchemaUrl(r.SchemaUrl())
						ss := to.ScopeSpans().AppendEmpty()
						s.Scope().CopyTo(ss.Scope())
						ss.SetSchemaUrl(s.SchemaUrl())
						span.CopyTo(ss.Spans().AppendEmpty())
					})
					add(one)
				}
			}
		}
	case pipeline.SignalMetrics:
		for _, r := range b.Metrics.ResourceMetrics().All() {
			for _, s := range r.ScopeMetrics().All() {
				for _, m := range s.Metrics().All() {
					for i := range points(m) {
						one := jsonlreader.Batch{Signal: b.Signal, Metrics: pmetric.NewMetrics()}
						to := one.Metrics.ResourceMetrics().AppendEmpty()
						r.Resource().CopyTo(to.Resource())
						to.SetSchemaUrl(r.SchemaUrl())
						sm := to.ScopeMetrics().AppendEmpty()
						s.Scope().CopyTo(sm.Scope())
						sm.SetSchemaUrl(s.SchemaUrl())
						m.CopyTo(sm.Metrics().AppendEmpty())
						keepPoint(sm.Metrics().At(0), i)
						add(one)
					}
				}
			}
		}
	default:
		for _, r := range b.Logs.ResourceLogs().All() {
			for _, s := range r.ScopeLogs().All() {
				for _, l := range s.LogRecords().All() {
					one := jsonlreader.Batch{Signal: b.Signal, Logs: plog.NewLogs()}
					to := one.Logs.ResourceLogs().AppendEmpty()
					r.Resource().CopyTo(to.Resource())
					to.SetSchemaUrl(r.SchemaUrl())
					sl := to.ScopeLogs().AppendEmpty()
					s.Scope().CopyTo(sl.Scope())
					sl.SetSchemaUrl(s.SchemaUrl())
					l.CopyTo(sl.LogRecords().AppendEmpty())
					add(one)
				}
			}
		}
	}
	return all
}

func points(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	default:
		return 0
	}
}

// keepPoint leaves m its point i alone.
func keepPoint(m pmetric.Metric, i int) {
	n := -1
	other := func() bool { n++; return n != i }
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return other() })
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return other() })
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().RemoveIf(func(pmetric.HistogramDataPoint) bool { return other() })
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().DataPoints().RemoveIf(func(pmetric.ExponentialHistogramDataPoint) bool { return other() })
	case pmetric.MetricTypeSummary:
		m.Summary().DataPoints().RemoveIf(func(pmetric.SummaryDataPoint) bool { return other() })
	}
}

func batchOf(rec jsonlreader.Record) jsonlreader.Batch {
	b := jsonlreader.Batch{Signal: rec.Signal}
	switch rec.Signal {
	case pipeline.SignalTraces:
		b.Traces = ptrace.NewTraces()
		r := b.Traces.ResourceSpans().AppendEmpty()
		rec.Scope.Resource.CopyTo(r.Resource())
		r.SetSchemaUrl(rec.Scope.Resource.SchemaURL)
		s := r.ScopeSpans().AppendEmpty()
		rec.Scope.CopyTo(s.Scope())
		s.SetSchemaUrl(rec.Scope.SchemaURL)
		rec.Span.CopyTo(s.Spans().AppendEmpty())
	case pipeline.SignalMetrics:
		b.Metrics = pmetric.NewMetrics()
		r := b.Metrics.ResourceMetrics().AppendEmpty()
		rec.Scope.Resource.CopyTo(r.Resource())
		r.SetSchemaUrl(rec.Scope.Resource.SchemaURL)
		s := r.ScopeMetrics().AppendEmpty()
		rec.Scope.CopyTo(s.Scope())
		s.SetSchemaUrl(rec.Scope.SchemaURL)
		rec.Metric.CopyTo(s.Metrics().AppendEmpty())
	default:
		b.Logs = plog.NewLogs()
		r := b.Logs.ResourceLogs().AppendEmpty()
		rec.Scope.Resource.CopyTo(r.Resource())
		r.SetSchemaUrl(rec.Scope.Resource.SchemaURL)
		s := r.ScopeLogs().AppendEmpty()
		rec.Scope.CopyTo(s.Scope())
		s.SetSchemaUrl(rec.Scope.SchemaURL)
		rec.Log.CopyTo(s.LogRecords().AppendEmpty())
	}
	return b
}
