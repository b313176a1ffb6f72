// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/sharing"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// renamer brings names to one generation, or attribute keys to both. Where both spellings are there with different values, both
// stay: nothing that a sender said is lost.
type renamer struct {
	shares            bool // keys may share values
	both              bool
	keys              []semconv.Renamer // both: to new, to old
	renames           filter            // keys that may have another name
	spanNames, metric semconv.Renamer   // a span has one name, so both leaves it alone
}

func newRenamer(names string) *renamer {
	toNew, toOld := semconv.ToNew, semconv.ToOld
	attributes, spans, metrics := semconv.Attributes(), semconv.Spans(), semconv.Metrics()
	r := &renamer{shares: sharing.Allowed(), renames: renames(attributes)}
	switch names {
	case namesBoth:
		r.both, r.keys = true, []semconv.Renamer{toNew(attributes), toOld(attributes)}
	case namesNew:
		r.keys, r.spanNames, r.metric = []semconv.Renamer{toNew(attributes)}, toNew(spans), toNew(metrics)
	case namesOld:
		r.keys, r.spanNames, r.metric = []semconv.Renamer{toOld(attributes)}, toOld(spans), toOld(metrics)
	default:
		return nil
	}
	return r
}

// renames are the keys that may have another name, in both generations.
func renames(table []semconv.Rename) (keys filter) {
	for _, line := range table {
		for _, name := range []string{line.Old, line.New} {
			if strings.HasSuffix(name, ".") { // the beginning of a key
				keys.addPrefix(name)
			} else {
				keys.add(name)
			}
		}
	}
	return keys
}

// attributes renames keys. A key may be there more than once (OTLP forbids it, decoders let it pass): the first one is renamed, and a
// further one with another value stays as it is. The work grows with the number of attributes and no faster.
func (r *renamer) attributes(m pcommon.Map, room *sharing.Room, others int) {
	type rename struct {
		from, to string
		repeated bool
	}
	var buffer [16]rename
	found := buffer[:0] // each key of the table once, however often it is there
	for key := range m.All() {
		if !r.renames.may(key) {
			continue
		}
		for _, keys := range r.keys {
			to, ok := keys.Rename(key)
			if !ok {
				continue
			}
			if i := slices.IndexFunc(found, func(f rename) bool { return f.from == key }); i >= 0 {
				found[i].repeated = true
			} else {
				found = append(found, rename{from: key, to: to})
			}
		}
	}
	if len(found) == 0 {
		return
	}
	room.Grow(r.shares, m, len(found), others)
	for _, f := range found {
		v, _ := m.Get(f.from)
		other, there := m.Get(f.to)
		switch {
		case !there:
			sharing.Put(r.shares, m, f.to, v)
		case r.both || !same(v, other):
			continue
		}
		switch {
		case r.both:
		case f.repeated:
			removeSame(m, f.from, v)
		default:
			m.RemoveIf(func(key string, _ pcommon.Value) bool { return key == f.from })
		}
	}
}

// removeSame removes the first attribute of the key, and the others that have that value.
func removeSame(m pcommon.Map, key string, value pcommon.Value) {
	kept := pcommon.NewValueEmpty()
	value.CopyTo(kept) // RemoveIf moves values.
	first := true
	m.RemoveIf(func(k string, v pcommon.Value) bool {
		if k != key {
			return false
		}
		remove := first || same(v, kept)
		first = false
		return remove
	})
}

// same reports whether two values are one. Lists and maps count as different: to compare maps takes the square of their size.
func same(a, b pcommon.Value) bool {
	return a.Type() != pcommon.ValueTypeMap && a.Type() != pcommon.ValueTypeSlice && a.Equal(b)
}

func (r *renamer) spans(rs ptrace.ResourceSpans, room *sharing.Room) {
	for i := range rs.ScopeSpans().Len() {
		ss := rs.ScopeSpans().At(i)
		for j := range ss.Spans().Len() {
			span := ss.Spans().At(j)
			if name, ok := r.spanNames.Rename(span.Name()); ok {
				span.SetName(name)
			}
			r.attributes(span.Attributes(), room, ss.Spans().Len()-j-1)
			for k := range span.Events().Len() {
				r.attributes(span.Events().At(k).Attributes(), room, 0)
			}
		}
	}
}

func (r *renamer) metrics(rm pmetric.ResourceMetrics, room *sharing.Room) {
	for i := range rm.ScopeMetrics().Len() {
		ms := rm.ScopeMetrics().At(i).Metrics()
		for j := range ms.Len() {
			m := ms.At(j)
			if name, ok := r.metric.Rename(m.Name()); ok {
				m.SetName(name)
			}
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				renamePoints(r, m.Gauge().DataPoints(), room)
			case pmetric.MetricTypeSum:
				renamePoints(r, m.Sum().DataPoints(), room)
			case pmetric.MetricTypeHistogram:
				renamePoints(r, m.Histogram().DataPoints(), room)
			case pmetric.MetricTypeExponentialHistogram:
				renamePoints(r, m.ExponentialHistogram().DataPoints(), room)
			case pmetric.MetricTypeSummary:
				renamePoints(r, m.Summary().DataPoints(), room)
			}
		}
	}
}

func renamePoints[P interface{ Attributes() pcommon.Map }, S interface {
	Len() int
	At(int) P
}](r *renamer, points S, room *sharing.Room) {
	for i := range points.Len() {
		r.attributes(points.At(i).Attributes(), room, points.Len()-i-1)
	}
}

func (r *renamer) logs(rl plog.ResourceLogs, room *sharing.Room) {
	for i := range rl.ScopeLogs().Len() {
		records := rl.ScopeLogs().At(i).LogRecords()
		for j := range records.Len() {
			r.attributes(records.At(j).Attributes(), room, records.Len()-j-1)
		}
	}
}
