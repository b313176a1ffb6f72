// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package redact // import "github.com/lenscol/lenscol/internal/redact"

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// maxDepth is how deep a walk goes. What lies deeper cannot be looked at and is redacted as a whole.
const maxDepth = 64

// Patterns look at every text but attribute keys, units and schema URLs; keys, at attributes and bodies.

// Spans redacts a resource, its scopes and its spans: attributes at any depth, names, status messages, trace states, events and links.
func (r *Redactor) Spans(rs ptrace.ResourceSpans, counts Counts) {
	r.Map(rs.Resource().Attributes(), counts)
	for i := range rs.ScopeSpans().Len() {
		ss := rs.ScopeSpans().At(i)
		r.scope(ss.Scope(), counts)
		for j := range ss.Spans().Len() {
			r.span(ss.Spans().At(j), counts)
		}
	}
}

func (r *Redactor) scope(scope pcommon.InstrumentationScope, counts Counts) {
	if name, ok := r.Text(scope.Name(), counts); ok {
		scope.SetName(name)
	}
	if version, ok := r.Text(scope.Version(), counts); ok {
		scope.SetVersion(version)
	}
	r.Map(scope.Attributes(), counts)
}

func (r *Redactor) traceState(state pcommon.TraceState, counts Counts) {
	if text, ok := r.Text(state.AsRaw(), counts); ok {
		state.FromRaw(text)
	}
}

func (r *Redactor) span(span ptrace.Span, counts Counts) {
	if name, ok := r.Text(span.Name(), counts); ok {
		span.SetName(name)
	}
	if message, ok := r.Text(span.Status().Message(), counts); ok {
		span.Status().SetMessage(message)
	}
	r.traceState(span.TraceState(), counts)
	r.Map(span.Attributes(), counts)
	for i := range span.Events().Len() {
		event := span.Events().At(i)
		if name, ok := r.Text(event.Name(), counts); ok {
			event.SetName(name)
		}
		r.Map(event.Attributes(), counts)
	}
	for i := range span.Links().Len() {
		r.traceState(span.Links().At(i).TraceState(), counts)
		r.Map(span.Links().At(i).Attributes(), counts)
	}
}

// Metrics redacts a resource, its scopes, the names and descriptions of its metrics, and its data points with their exemplars.
func (r *Redactor) Metrics(rm pmetric.ResourceMetrics, counts Counts) {
	r.Map(rm.Resource().Attributes(), counts)
	for i := range rm.ScopeMetrics().Len() {
		sm := rm.ScopeMetrics().At(i)
		r.scope(sm.Scope(), counts)
		for j := range sm.Metrics().Len() {
			m := sm.Metrics().At(j)
			if name, ok := r.Text(m.Name(), counts); ok {
				m.SetName(name)
			}
			if description, ok := r.Text(m.Description(), counts); ok {
				m.SetDescription(description)
			}
			r.Map(m.Metadata(), counts)
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				points(r, m.Gauge().DataPoints(), counts)
			case pmetric.MetricTypeSum:
				points(r, m.Sum().DataPoints(), counts)
			case pmetric.MetricTypeHistogram:
				points(r, m.Histogram().DataPoints(), counts)
			case pmetric.MetricTypeExponentialHistogram:
				points(r, m.ExponentialHistogram().DataPoints(), counts)
			case pmetric.MetricTypeSummary:
				ps := m.Summary().DataPoints()
				for k := range ps.Len() {
					r.Map(ps.At(k).Attributes(), counts)
				}
			}
		}
	}
}

type point interface {
	Attributes() pcommon.Map
	Exemplars() pmetric.ExemplarSlice
}

func points[P point, S interface {
	Len() int
	At(int) P
}](r *Redactor, list S, counts Counts) {
	for i := range list.Len() {
		p := list.At(i)
		r.Map(p.Attributes(), counts)
		for j := range p.Exemplars().Len() {
			r.Map(p.Exemplars().At(j).FilteredAttributes(), counts)
		}
	}
}

// Logs redacts a resource, its scopes and its records with their bodies, event names and severities.
func (r *Redactor) Logs(rl plog.ResourceLogs, counts Counts) {
	r.Map(rl.Resource().Attributes(), counts)
	for i := range rl.ScopeLogs().Len() {
		sl := rl.ScopeLogs().At(i)
		r.scope(sl.Scope(), counts)
		for j := range sl.LogRecords().Len() {
			record := sl.LogRecords().At(j)
			if name, ok := r.Text(record.EventName(), counts); ok {
				record.SetEventName(name)
			}
			if severity, ok := r.Text(record.SeverityText(), counts); ok {
				record.SetSeverityText(severity)
			}
			r.Map(record.Attributes(), counts)
			r.value(record.Body(), false, 0, counts)
		}
	}
}

// Map redacts attributes.
func (r *Redactor) Map(m pcommon.Map, counts Counts) { r.maps(m, false, 1, counts) }

// maps redacts a map at that depth; secret says that it stands below a key that is one.
func (r *Redactor) maps(m pcommon.Map, secret bool, depth int, counts Counts) {
	for key, v := range m.All() {
		r.value(v, secret || r.isKey(key), depth, counts)
	}
}

func (r *Redactor) value(v pcommon.Value, secret bool, depth int, counts Counts) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		if secret {
			if s := v.Str(); s != Redacted { // what Lens redacted counts once
				v.SetStr(r.mark(s))
				counts[byKey]++
			}
		} else if s, ok := r.Text(v.Str(), counts); ok {
			v.SetStr(s)
		}
	case pcommon.ValueTypeBytes:
		if secret {
			v.SetStr(r.mark(string(v.Bytes().AsRaw())))
			counts[byKey]++
		}
	case pcommon.ValueTypeMap, pcommon.ValueTypeSlice:
		switch {
		case depth >= maxDepth:
			v.SetStr(Redacted)
			counts[byDepth]++
		case v.Type() == pcommon.ValueTypeMap:
			r.maps(v.Map(), secret, depth+1, counts)
		default:
			list := v.Slice()
			for i := range list.Len() {
				r.value(list.At(i), secret, depth+1, counts)
			}
		}
	}
}
