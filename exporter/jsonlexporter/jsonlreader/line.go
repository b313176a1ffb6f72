// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader // import "github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// LineDecoder decodes the compact lines of one file for a caller that finds the lines itself, among lines of other layouts.
type LineDecoder struct{ r Reader }

// NewLineDecoder returns a decoder that has seen no definition yet. name stands for the file in errors.
func NewLineDecoder(name string) *LineDecoder {
	return &LineDecoder{Reader{name: name, dec: newDecoder(), scopes: map[int64]*Scope{}, resources: map[int64]*Resource{}}}
}

// Decode takes the next compact line, without its newline. number counts from 1 and offset is that of its first byte; both are for the
// record and for errors. It is false for a line that holds no record: a scope, a resource, an unknown type. An error is a [*LineError].
func (d *LineDecoder) Decode(line []byte, number, offset int64) (Record, bool, error) {
	d.r.line, d.r.offset = number, offset
	rec, err := d.r.decode(line)
	if err != nil {
		d.r.forget(line)
		return Record{}, false, &LineError{File: d.r.name, Line: number, Offset: offset, Err: err}
	}
	return rec, rec.Scope != nil, nil
}

// Doubt says that something could not be read that may have held definitions. A line behind it is an error of [ErrUndefined] where its
// copies of the identity contradict what its scope meant before.
func (d *LineDecoder) Doubt() { d.r.doubt() }

// Stats returns the counts so far; lines are the caller's to count.
func (d *LineDecoder) Stats() Stats { return d.r.Stats() }

// Batcher puts records into batches, as [Reader.Next] does: those of a signal, in their order, each below the scope of the record before
// it where that is the same pointer. The zero value is ready for use.
type Batcher struct{ b batchBuilder }

// Add takes a record, which must not be used afterwards. All records of a batch are of one signal; Metric has one point.
func (b *Batcher) Add(rec Record) {
	if rec.desc == (descriptor{}) {
		rec.desc = describe(rec.Metric)
	}
	b.b.add(rec)
}

// Batch is what was added since Reset. Its lines and offsets say something only where all records are of one file.
func (b *Batcher) Batch() Batch { return b.b.Batch }

// Reset begins a new batch.
func (b *Batcher) Reset() { b.b = batchBuilder{} }

// describe is the descriptor of a metric that was not read from a line.
func describe(m pmetric.Metric) descriptor {
	if m == (pmetric.Metric{}) {
		return descriptor{}
	}
	d := descriptor{name: m.Name(), unit: m.Unit(), description: m.Description(), kind: m.Type()}
	switch d.kind {
	case pmetric.MetricTypeSum:
		d.temporality, d.monotonic = m.Sum().AggregationTemporality(), m.Sum().IsMonotonic()
	case pmetric.MetricTypeHistogram:
		d.temporality = m.Histogram().AggregationTemporality()
	case pmetric.MetricTypeExponentialHistogram:
		d.temporality = m.ExponentialHistogram().AggregationTemporality()
	}
	if m.Metadata().Len() > 0 {
		d.metadata = fmt.Sprintf("%#v", m.Metadata().AsRaw()) // Sorted, and with the types of values.
	}
	return d
}
