// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// result is all that a file holds.
type result struct {
	batches []jsonlreader.Batch
	errs    []*jsonlreader.LineError
	torn    int64
	stats   jsonlreader.Stats
}

func readAll(t testing.TB, text string, opts ...jsonlreader.Option) result {
	t.Helper()
	return readFrom(t, strings.NewReader(text), opts...)
}

func readFrom(t testing.TB, src io.Reader, opts ...jsonlreader.Option) result {
	t.Helper()
	r := jsonlreader.New(src, "f.jsonl", opts...)
	var res result
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			res.torn, res.stats = r.Torn(), r.Stats()
			return res
		}
		var bad *jsonlreader.LineError
		if errors.As(err, &bad) {
			res.errs = append(res.errs, bad)
			continue
		}
		require.NoError(t, err)
		res.batches = append(res.batches, b)
	}
}

// readOne reads a file of one batch that has nothing wrong.
func readOne(t testing.TB, text string) jsonlreader.Batch {
	t.Helper()
	res := readAll(t, text)
	require.Empty(t, res.errs)
	require.Zero(t, res.torn)
	require.Zero(t, res.stats.UnknownKeys)
	require.Len(t, res.batches, 1)
	return res.batches[0]
}

// wire is the batch as protobuf bytes: equal bytes are equal telemetry, with the order of attributes and repeated keys.
func wire(t testing.TB, b jsonlreader.Batch) []byte {
	t.Helper()
	var data []byte
	var err error
	switch b.Signal {
	case pipeline.SignalTraces:
		data, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(b.Traces)
	case pipeline.SignalMetrics:
		data, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(b.Metrics)
	default:
		data, err = (&plog.ProtoMarshaler{}).MarshalLogs(b.Logs)
	}
	require.NoError(t, err)
	return data
}

// text is the batch as OTLP/JSON, for a difference that can be read.
func text(t testing.TB, b jsonlreader.Batch) string {
	t.Helper()
	var data []byte
	var err error
	switch b.Signal {
	case pipeline.SignalTraces:
		data, err = (&ptrace.JSONMarshaler{}).MarshalTraces(b.Traces)
	case pipeline.SignalMetrics:
		data, err = (&pmetric.JSONMarshaler{}).MarshalMetrics(b.Metrics)
	default:
		data, err = (&plog.JSONMarshaler{}).MarshalLogs(b.Logs)
	}
	require.NoError(t, err)
	return string(data)
}

func requireSame(t testing.TB, want, got jsonlreader.Batch) {
	t.Helper()
	require.Equal(t, text(t, want), text(t, got))
	require.Equal(t, wire(t, want), wire(t, got))
}

func traces(build func(ptrace.ResourceSpans)) jsonlreader.Batch {
	b := jsonlreader.Batch{Signal: pipeline.SignalTraces, Traces: ptrace.NewTraces()}
	build(b.Traces.ResourceSpans().AppendEmpty())
	return b
}

// oneSpan is a span of an empty scope and resource, internal, as a line without further keys is.
func oneSpan(build func(ptrace.Span)) jsonlreader.Batch {
	return traces(func(rs ptrace.ResourceSpans) {
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetKind(ptrace.SpanKindInternal)
		build(s)
	})
}

func oneMetric(build func(pmetric.Metric)) jsonlreader.Batch {
	b := jsonlreader.Batch{Signal: pipeline.SignalMetrics, Metrics: pmetric.NewMetrics()}
	build(b.Metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty())
	return b
}

func oneLog(build func(plog.LogRecord)) jsonlreader.Batch {
	b := jsonlreader.Batch{Signal: pipeline.SignalLogs, Logs: plog.NewLogs()}
	build(b.Logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
	return b
}

// names are the names of the spans, metrics or log bodies of all batches, in order, with the run of their resource.
func names(batches []jsonlreader.Batch) (all []string) {
	run := func(r pcommon.Resource) string {
		if v, ok := r.Attributes().Get("run"); ok {
			return v.Str() + "/"
		}
		return ""
	}
	for _, b := range batches {
		switch b.Signal {
		case pipeline.SignalTraces:
			for _, r := range b.Traces.ResourceSpans().All() {
				for _, s := range r.ScopeSpans().All() {
					for _, span := range s.Spans().All() {
						all = append(all, run(r.Resource())+span.Name())
					}
				}
			}
		case pipeline.SignalMetrics:
			for _, r := range b.Metrics.ResourceMetrics().All() {
				for _, s := range r.ScopeMetrics().All() {
					for _, m := range s.Metrics().All() {
						all = append(all, run(r.Resource())+m.Name())
					}
				}
			}
		default:
			for _, r := range b.Logs.ResourceLogs().All() {
				for _, s := range r.ScopeLogs().All() {
					for _, l := range s.LogRecords().All() {
						all = append(all, run(r.Resource())+l.Body().AsString())
					}
				}
			}
		}
	}
	return all
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
					one := jsonlreader.Batch{Signal: b.Signal, Metrics: pmetric.NewMetrics()}
					to := one.Metrics.ResourceMetrics().AppendEmpty()
					r.Resource().CopyTo(to.Resource())
					to.SetSchemaUrl(r.SchemaUrl())
					sm := to.ScopeMetrics().AppendEmpty()
					s.Scope().CopyTo(sm.Scope())
					sm.SetSchemaUrl(s.SchemaUrl())
					alone := sm.Metrics().AppendEmpty()
					m.CopyTo(alone)
					for i := range one.Metrics.DataPointCount() {
						m.CopyTo(alone)
						keepPoint(alone, i)
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
