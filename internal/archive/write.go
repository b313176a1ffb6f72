// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"io"

	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// A batch ends at either bound; of the layout otlp_json it is a line.
const (
	batchRecords = 1000
	batchBytes   = 1 << 20
)

// Writer writes records as the jsonl exporter does.
type Writer struct {
	w       io.Writer
	encoder *jsonlexporter.Encoder
	batch   jsonlreader.Batcher
	signal  pipeline.Signal
	records int
	bytes   int
	buf     []byte
	written int64
}

// NewWriter returns a writer of one file. Its error names the layout or the mode that there is not.
func NewWriter(w io.Writer, layout jsonlexporter.Layout, mode jsonlexporter.ResourceMode) (*Writer, error) {
	encoder, err := jsonlexporter.NewEncoder(layout, mode)
	if err != nil {
		return nil, err
	}
	return &Writer{w: w, encoder: encoder}, nil
}

// Write takes a record, which must not be used afterwards.
func (w *Writer) Write(rec Record) error {
	if w.records > 0 && (rec.Signal != w.signal || w.records >= batchRecords || w.bytes+rec.Bytes > batchBytes) {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	w.signal = rec.Signal
	w.batch.Add(rec.Record)
	w.records++
	w.bytes += rec.Bytes
	return nil
}

// Flush writes what was taken.
func (w *Writer) Flush() error {
	if w.records == 0 {
		return nil
	}
	b := w.batch.Batch()
	switch b.Signal {
	case pipeline.SignalTraces:
		w.buf = w.encoder.AppendTraces(w.buf[:0], b.Traces)
	case pipeline.SignalMetrics:
		w.buf = w.encoder.AppendMetrics(w.buf[:0], b.Metrics)
	default:
		w.buf = w.encoder.AppendLogs(w.buf[:0], b.Logs)
	}
	w.written += int64(w.records)
	w.batch.Reset()
	w.records, w.bytes = 0, 0
	_, err := w.w.Write(w.buf)
	return err
}

// Written is the number of records that Flush wrote.
func (w *Writer) Written() int64 { return w.written }

// Changed is how many values could not be written as they came: texts that were repaired, lists and maps that were cut.
func (w *Writer) Changed() (repaired, cut int) { return w.encoder.Changed() }
