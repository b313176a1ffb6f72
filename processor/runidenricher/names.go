// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

import (
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
	asked             filter
	keys              keyset          // every name of the table, in both generations
	other             []int           // by slot: that of the name that a key gets, or -1
	spanNames, metric semconv.Renamer // a span has one name, so both leaves it alone
}

func newRenamer(names string) *renamer {
	r := &renamer{shares: sharing.Allowed(), both: names == namesBoth}
	table := semconv.Attributes()
	var to []semconv.Renamer
	switch names {
	case namesBoth:
		to = []semconv.Renamer{semconv.ToNew(table), semconv.ToOld(table)}
	case namesNew:
		to = []semconv.Renamer{semconv.ToNew(table)}
		r.spanNames, r.metric = semconv.ToNew(semconv.Spans()), semconv.ToNew(semconv.Metrics())
	case namesOld:
		to = []semconv.Renamer{semconv.ToOld(table)}
		r.spanNames, r.metric = semconv.ToOld(semconv.Spans()), semconv.ToOld(semconv.Metrics())
	default:
		return nil
	}
	for _, line := range table {
		for _, name := range []string{line.Old, line.New} {
			r.asked.add(name)
			r.keys.add(name)
		}
	}
	for _, name := range r.keys.keys {
		other := -1
		for _, to := range to { // A name is an old one or a new one.
			if name, ok := to.Rename(name); ok {
				other = r.keys.slot(name)
			}
		}
		r.other = append(r.other, other)
	}
	return r
}

// attributes renames keys. A key may be there more than once (OTLP forbids it, decoders let it pass): the first one is renamed, and a
// further one with another value stays as it is. The work grows with the number of attributes and no faster.
func (r *renamer) attributes(m pcommon.Map, room *sharing.Room, others int) {
	type rename struct {
		from, to int
		value    pcommon.Value
	}
	var buffer [16]rename
	found := buffer[:0] // each key of the table once, however often it is there
	var has, repeated bits
	for key, v := range m.All() {
		if !r.asked.may(key) {
			continue
		}
		slot := r.keys.slot(key)
		switch {
		case slot < 0:
		case has.is(slot):
			repeated.set(slot)
		default:
			has.set(slot)
			if r.other[slot] >= 0 {
				found = append(found, rename{slot, r.other[slot], v})
			}
		}
	}
	if len(found) == 0 {
		return
	}
	room.Grow(r.shares, m, len(found), others)
	for _, f := range found {
		from, to := r.keys.keys[f.from], r.keys.keys[f.to]
		if r.both {
			if !has.is(f.to) {
				sharing.Put(r.shares, m, to, f.value)
				has.set(f.to)
			}
			continue
		}
		v, _ := m.Get(from) // f.value is another by now where something was removed.
		if !has.is(f.to) {
			sharing.Put(r.shares, m, to, v)
			has.set(f.to)
		} else if other, _ := m.Get(to); !same(v, other) {
			continue
		}
		if repeated.is(f.from) {
			removeSame(m, from, v)
		} else {
			m.RemoveIf(func(key string, _ pcommon.Value) bool { return key == from })
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
