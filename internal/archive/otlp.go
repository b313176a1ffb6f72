// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-faster/jx"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// decodeOTLPJSON gives the records of a line that holds an OTLP/JSON request. One line may hold several signals.
func decodeOTLPJSON(object []byte, add func(jsonlreader.Record)) error {
	keys := map[string]bool{}
	if err := jx.DecodeBytes(object).ObjBytes(func(d *jx.Decoder, key []byte) error {
		keys[string(key)] = true
		return d.Skip()
	}); err != nil {
		return err
	}
	if keys["resourceSpans"] || keys["resource_spans"] {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(object)
		if err != nil {
			return err
		}
		addTraces(td, add)
	}
	if keys["resourceMetrics"] {
		md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(object)
		if err != nil {
			return err
		}
		addMetrics(md, add)
	}
	if keys["resourceLogs"] || keys["resource_logs"] {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(object)
		if err != nil {
			return err
		}
		addLogs(ld, add)
	}
	return nil
}

// decodeOTLPProto gives the records of an OTLP request. A request does not say of which signal it is: signal is what the file's
// name says, for requests whose bytes do not tell; without it, those are taken for metrics.
func decodeOTLPProto(message []byte, signal pipeline.Signal, add func(jsonlreader.Record)) error {
	told, certain := protoSignal(message)
	if certain || signal == (pipeline.Signal{}) {
		signal = told
	}
	switch signal {
	case pipeline.SignalTraces:
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(message)
		if err != nil {
			return fmt.Errorf("no OTLP request of traces: %w", err)
		}
		addTraces(td, add)
	case pipeline.SignalMetrics:
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(message)
		if err != nil {
			return fmt.Errorf("no OTLP request of metrics: %w", err)
		}
		addMetrics(md, add)
	case pipeline.SignalLogs:
		ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(message)
		if err != nil {
			return fmt.Errorf("no OTLP request of logs: %w", err)
		}
		addLogs(ld, add)
	default:
		return errors.New("the signal of this request cannot be told; name the file traces, metrics or logs")
	}
	return nil
}

// protoSignal tells the signal of a request by the wire types of its records: only a span has a fixed64 of number 7 or 8, only a log record
// one of 1 or 11, and only a metric, if it is a sum, a message of number 7 (opentelemetry-proto 1.10).
func protoSignal(message []byte) (signal pipeline.Signal, certain bool) {
	eachField(message, 1, func(resource []byte) bool { // Request.resource_*
		eachField(resource, 2, func(scope []byte) bool { // Resource*.scope_*
			eachField(scope, 2, func(record []byte) bool { // Scope*.spans, metrics, log_records
				signal, certain = recordSignal(record)
				return !certain
			})
			return !certain
		})
		return !certain
	})
	return signal, certain
}

func recordSignal(record []byte) (pipeline.Signal, bool) {
	sum := false
	for len(record) > 0 {
		number, wire, n := protowire.ConsumeTag(record)
		if n < 0 {
			return pipeline.Signal{}, false
		}
		length := protowire.ConsumeFieldValue(number, wire, record[n:])
		if length < 0 {
			return pipeline.Signal{}, false
		}
		record = record[n+length:]
		switch {
		case wire == protowire.Fixed64Type && (number == 7 || number == 8): // The times of a span.
			return pipeline.SignalTraces, true
		case wire == protowire.Fixed64Type && (number == 1 || number == 11): // The times of a log record.
			return pipeline.SignalLogs, true
		case wire == protowire.BytesType && number == 7:
			sum = true
		}
	}
	return pipeline.SignalMetrics, sum
}

// eachField calls f with every message of that number until it returns false or the bytes are no message.
func eachField(b []byte, number protowire.Number, f func([]byte) bool) {
	for len(b) > 0 {
		num, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		if num == number && wire == protowire.BytesType {
			field, n := protowire.ConsumeBytes(b)
			if n < 0 || !f(field) {
				return
			}
			b = b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(num, wire, b); n < 0 {
			return
		}
		b = b[n:]
	}
}

// signalOf is the signal that a file's name tells.
func signalOf(name string) pipeline.Signal {
	name = strings.ToLower(name)
	switch {
	case strings.Contains(name, "trace") || strings.Contains(name, "span"):
		return pipeline.SignalTraces
	case strings.Contains(name, "metric"):
		return pipeline.SignalMetrics
	case strings.Contains(name, "log"):
		return pipeline.SignalLogs
	default:
		return pipeline.Signal{}
	}
}

// halves splits a batch of two records or more. Its telemetry is theirs then.
func halves(b jsonlreader.Batch) (first, second jsonlreader.Batch) {
	var parts [2]jsonlreader.Batcher
	n := 0
	add := func(rec jsonlreader.Record) {
		parts[2*n/b.Records].Add(rec)
		n++
	}
	switch b.Signal {
	case pipeline.SignalTraces:
		addTraces(b.Traces, add)
	case pipeline.SignalMetrics:
		addMetrics(b.Metrics, add)
	default:
		addLogs(b.Logs, add)
	}
	return parts[0].Batch(), parts[1].Batch()
}

func newResource(r pcommon.Resource, schemaURL string) *jsonlreader.Resource {
	return &jsonlreader.Resource{Resource: r, SchemaURL: schemaURL}
}

func newScope(s pcommon.InstrumentationScope, schemaURL string, r *jsonlreader.Resource) *jsonlreader.Scope {
	return &jsonlreader.Scope{InstrumentationScope: s, SchemaURL: schemaURL, Resource: r}
}

func addTraces(td ptrace.Traces, add func(jsonlreader.Record)) {
	for _, rs := range td.ResourceSpans().All() {
		resource := newResource(rs.Resource(), rs.SchemaUrl())
		for _, ss := range rs.ScopeSpans().All() {
			scope := newScope(ss.Scope(), ss.SchemaUrl(), resource)
			for _, span := range ss.Spans().All() {
				add(jsonlreader.Record{Signal: pipeline.SignalTraces, Span: span, Scope: scope})
			}
		}
	}
}

func addLogs(ld plog.Logs, add func(jsonlreader.Record)) {
	for _, rl := range ld.ResourceLogs().All() {
		resource := newResource(rl.Resource(), rl.SchemaUrl())
		for _, sl := range rl.ScopeLogs().All() {
			scope := newScope(sl.Scope(), sl.SchemaUrl(), resource)
			for _, log := range sl.LogRecords().All() {
				add(jsonlreader.Record{Signal: pipeline.SignalLogs, Log: log, Scope: scope})
			}
		}
	}
}

// addMetrics gives every point as a metric of its own.
func addMetrics(md pmetric.Metrics, add func(jsonlreader.Record)) {
	for _, rm := range md.ResourceMetrics().All() {
		resource := newResource(rm.Resource(), rm.SchemaUrl())
		for _, sm := range rm.ScopeMetrics().All() {
			scope := newScope(sm.Scope(), sm.SchemaUrl(), resource)
			for _, m := range sm.Metrics().All() {
				eachPoint(m, func(one pmetric.Metric) {
					add(jsonlreader.Record{Signal: pipeline.SignalMetrics, Metric: one, Scope: scope})
				})
			}
		}
	}
}

func eachPoint(m pmetric.Metric, add func(pmetric.Metric)) {
	next := func() pmetric.Metric {
		one := pmetric.NewMetric()
		one.SetName(m.Name())
		one.SetUnit(m.Unit())
		one.SetDescription(m.Description())
		m.Metadata().CopyTo(one.Metadata())
		return one
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			one := next()
			p.MoveTo(one.SetEmptyGauge().DataPoints().AppendEmpty())
			add(one)
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			one := next()
			s := one.SetEmptySum()
			s.SetAggregationTemporality(m.Sum().AggregationTemporality())
			s.SetIsMonotonic(m.Sum().IsMonotonic())
			p.MoveTo(s.DataPoints().AppendEmpty())
			add(one)
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			one := next()
			h := one.SetEmptyHistogram()
			h.SetAggregationTemporality(m.Histogram().AggregationTemporality())
			p.MoveTo(h.DataPoints().AppendEmpty())
			add(one)
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			one := next()
			h := one.SetEmptyExponentialHistogram()
			h.SetAggregationTemporality(m.ExponentialHistogram().AggregationTemporality())
			p.MoveTo(h.DataPoints().AppendEmpty())
			add(one)
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			one := next()
			p.MoveTo(one.SetEmptySummary().DataPoints().AppendEmpty())
			add(one)
		}
	}
}
