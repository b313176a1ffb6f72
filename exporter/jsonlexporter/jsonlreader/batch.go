// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader // import "github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"

import (
	"errors"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
)

// Batch is consecutive records of one signal.
type Batch struct {
	Signal  pipeline.Signal
	Traces  ptrace.Traces   // of SignalTraces
	Metrics pmetric.Metrics // of SignalMetrics
	Logs    plog.Logs       // of SignalLogs
	Records int             // spans, points or log records, at least 1

	FirstLine, LastLine int64 // of its records, counted from 1
	Offset, End         int64 // of its first record's first byte, and behind its last record's newline
}

// Next returns the next records of one signal, io.EOF at the end, or a [*LineError], after which it goes on with the line behind.
// Any other error is of the underlying reader, and stays. Records before an error are returned first.
//
// A batch ends where the signal changes, at a bad line, and at the bounds of [WithMaxBatchRecords] and [WithMaxBatchBytes].
// Next and [Reader.NextRecord] can be mixed.
func (r *Reader) Next() (Batch, error) {
	var b batchBuilder
	var size int
	for {
		rec, err := r.NextRecord()
		if err != nil {
			if b.Records == 0 {
				return Batch{}, err
			}
			var bad *LineError
			if errors.As(err, &bad) {
				r.heldErr = err
			}
			return b.Batch, nil
		}
		if b.Records > 0 && (rec.Signal != b.Signal || size+rec.Bytes > r.cfg.maxBatchBytes) {
			r.heldRecord = &rec
			return b.Batch, nil
		}
		b.add(rec)
		size += rec.Bytes
		if b.Records >= r.cfg.maxBatchRecords {
			return b.Batch, nil
		}
	}
}

// batchBuilder puts records into a batch, each below the scope, and each point below the metric, of the record before it where
// those are the same.
type batchBuilder struct {
	Batch
	scope *Scope     // of the last record
	desc  descriptor // of the last record

	spans        ptrace.ResourceSpans
	scopeSpans   ptrace.ScopeSpans
	metrics      pmetric.ResourceMetrics
	scopeMetrics pmetric.ScopeMetrics
	metric       pmetric.Metric
	logs         plog.ResourceLogs
	scopeLogs    plog.ScopeLogs
}

func (b *batchBuilder) add(rec Record) {
	if b.Records == 0 {
		b.Signal, b.FirstLine, b.Offset = rec.Signal, rec.Line, rec.Offset
	}
	switch rec.Signal {
	case pipeline.SignalTraces:
		b.addSpan(rec)
	case pipeline.SignalMetrics:
		b.addPoint(rec)
	default:
		b.addLog(rec)
	}
	b.scope, b.desc = rec.Scope, rec.desc
	b.Records++
	b.LastLine, b.End = rec.Line, rec.Offset+int64(rec.Bytes)
}

func (b *batchBuilder) addSpan(rec Record) {
	if b.Records == 0 {
		b.Traces = ptrace.NewTraces()
	}
	if b.newResource(rec.Scope) {
		b.spans = b.Traces.ResourceSpans().AppendEmpty()
		rec.Scope.Resource.CopyTo(b.spans.Resource())
		b.spans.SetSchemaUrl(rec.Scope.Resource.SchemaURL)
	}
	if b.scope != rec.Scope {
		b.scopeSpans = b.spans.ScopeSpans().AppendEmpty()
		rec.Scope.CopyTo(b.scopeSpans.Scope())
		b.scopeSpans.SetSchemaUrl(rec.Scope.SchemaURL)
	}
	rec.Span.MoveTo(b.scopeSpans.Spans().AppendEmpty())
}

func (b *batchBuilder) addLog(rec Record) {
	if b.Records == 0 {
		b.Logs = plog.NewLogs()
	}
	if b.newResource(rec.Scope) {
		b.logs = b.Logs.ResourceLogs().AppendEmpty()
		rec.Scope.Resource.CopyTo(b.logs.Resource())
		b.logs.SetSchemaUrl(rec.Scope.Resource.SchemaURL)
	}
	if b.scope != rec.Scope {
		b.scopeLogs = b.logs.ScopeLogs().AppendEmpty()
		rec.Scope.CopyTo(b.scopeLogs.Scope())
		b.scopeLogs.SetSchemaUrl(rec.Scope.SchemaURL)
	}
	rec.Log.MoveTo(b.scopeLogs.LogRecords().AppendEmpty())
}

func (b *batchBuilder) addPoint(rec Record) {
	if b.Records == 0 {
		b.Metrics = pmetric.NewMetrics()
	}
	if b.newResource(rec.Scope) {
		b.metrics = b.Metrics.ResourceMetrics().AppendEmpty()
		rec.Scope.Resource.CopyTo(b.metrics.Resource())
		b.metrics.SetSchemaUrl(rec.Scope.Resource.SchemaURL)
	}
	if b.scope != rec.Scope {
		b.scopeMetrics = b.metrics.ScopeMetrics().AppendEmpty()
		rec.Scope.CopyTo(b.scopeMetrics.Scope())
		b.scopeMetrics.SetSchemaUrl(rec.Scope.SchemaURL)
	}
	if b.scope != rec.Scope || b.desc != rec.desc {
		b.metric = b.scopeMetrics.Metrics().AppendEmpty()
		rec.Metric.MoveTo(b.metric)
		return
	}
	switch from := rec.Metric; rec.desc.kind {
	case pmetric.MetricTypeGauge:
		from.Gauge().DataPoints().MoveAndAppendTo(b.metric.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		from.Sum().DataPoints().MoveAndAppendTo(b.metric.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		from.Histogram().DataPoints().MoveAndAppendTo(b.metric.Histogram().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		from.ExponentialHistogram().DataPoints().MoveAndAppendTo(b.metric.ExponentialHistogram().DataPoints())
	case pmetric.MetricTypeSummary:
		from.Summary().DataPoints().MoveAndAppendTo(b.metric.Summary().DataPoints())
	}
}

// newResource says whether a record of s begins a resource.
func (b *batchBuilder) newResource(s *Scope) bool {
	return b.scope == nil || b.scope.Resource != s.Resource
}
