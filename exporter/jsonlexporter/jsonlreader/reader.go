// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader // import "github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-faster/jx"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
)

const (
	defaultMaxLineBytes    = 256 << 20
	defaultMaxBatchRecords = 1000
	defaultMaxBatchBytes   = 16 << 20

	// readBytes is the size of the buffer in front of the file. A line that fits it is decoded in place.
	readBytes = 64 << 10
	// keepBytes is the largest buffer that stays allocated after a line that did not fit readBytes.
	keepBytes = 1 << 20
)

// Record is one span, metric point or log record.
type Record struct {
	Signal pipeline.Signal
	Span   ptrace.Span    // of SignalTraces
	Metric pmetric.Metric // of SignalMetrics, with one point
	Log    plog.LogRecord // of SignalLogs

	// Scope is where the record comes from, never nil. Records share it: it must not be changed.
	Scope *Scope

	Line   int64 // counted from 1
	Offset int64 // of the line's first byte
	Bytes  int   // of the line, its newline included

	desc descriptor
}

// Scope is an instrumentation scope as a file defines it. Two records whose Scope is the same pointer belong together.
type Scope struct {
	pcommon.InstrumentationScope
	SchemaURL string
	Resource  *Resource // never nil
}

// Resource is a resource as a file defines it.
type Resource struct {
	pcommon.Resource
	SchemaURL string
}

// Stats counts what a [Reader] has read so far.
type Stats struct {
	Lines        int64 // all whole lines
	Spans        int64
	Points       int64
	Logs         int64
	BadLines     int64 // lines that were a LineError
	UnknownLines int64 // lines of a type that this version does not know, left out
	UnknownKeys  int64 // keys and wrapped values that this version does not know; keys are left out
}

// Reader reads one file.
type Reader struct {
	cfg  config
	name string
	src  *bufio.Reader
	long []byte // a line that does not fit the buffer of src

	line, offset int64 // of the line in hand
	next         int64 // offset behind it
	torn         int64
	stats        Stats
	end          error // sticky: io.EOF or what src said

	dec       decoder
	scopes    map[int64]*Scope
	resources map[int64]*Resource
	doubtful  map[*Resource]struct{} // what the ids meant before damage that may have defined them again
	defined   bool                   // something since then
	inline    inlineOrigin

	// What NextRecord returns first: the record, or the error, that ended the last batch.
	heldRecord *Record
	heldErr    error
}

// New returns a reader of the lines in r. name stands for the file in errors.
func New(r io.Reader, name string, opts ...Option) *Reader {
	cfg := config{
		maxLineBytes:    defaultMaxLineBytes,
		maxBatchRecords: defaultMaxBatchRecords,
		maxBatchBytes:   defaultMaxBatchBytes,
	}
	for _, o := range opts {
		o.apply(&cfg)
	}
	return &Reader{
		cfg:       cfg,
		name:      name,
		src:       bufio.NewReaderSize(r, readBytes),
		dec:       newDecoder(),
		scopes:    map[int64]*Scope{},
		resources: map[int64]*Resource{},
	}
}

// Torn is the length in bytes of a last line that was never written whole: one without a newline, or one that is not JSON.
// It is known once the end is reached, and it is no error: the exporter acknowledges no such line.
func (r *Reader) Torn() int64 { return r.torn }

// Stats returns the counts so far.
func (r *Reader) Stats() Stats {
	s := r.stats
	s.UnknownKeys = r.dec.unknownKeys
	return s
}

// NextRecord returns the next record, io.EOF at the end, or a [*LineError], after which it goes on with the line behind. Any
// other error is of the underlying reader, and stays.
func (r *Reader) NextRecord() (Record, error) {
	if err := r.heldErr; err != nil {
		r.heldErr = nil
		return Record{}, err
	}
	if rec := r.heldRecord; rec != nil {
		r.heldRecord = nil
		return *rec, nil
	}
	for r.end == nil {
		line, err := r.readLine()
		if r.end != nil {
			break
		}
		var rec Record
		if err == nil {
			rec, err = r.decode(line)
		}
		if err != nil {
			r.forget(line) // before atEnd, which may overwrite it
			if errors.Is(err, ErrNotJSON) && r.atEnd() {
				r.torn = r.next - r.offset
				r.stats.Lines--
				break
			}
			r.stats.BadLines++
			return Record{}, &LineError{File: r.name, Line: r.line, Offset: r.offset, Err: err}
		}
		if rec.Scope == nil || r.cfg.filter != nil && !r.cfg.filter(rec) {
			continue
		}
		return rec, nil
	}
	return Record{}, r.end
}

// readLine returns the next whole line without its newline, or what was held of one that is too long; it stays valid until the
// next call. At the end, and on an error of the underlying reader, it sets r.end.
func (r *Reader) readLine() ([]byte, error) {
	if cap(r.long) > keepBytes {
		r.long = nil
	}
	r.long = r.long[:0]
	r.offset = r.next
	r.line++
	tooLong := false
	for {
		part, err := r.src.ReadSlice('\n')
		r.next += int64(len(part))
		switch {
		case err == nil:
			r.stats.Lines++
			part = part[:len(part)-1]
			if tooLong || len(r.long)+len(part) > r.cfg.maxLineBytes {
				if len(r.long) == 0 {
					r.long = append(r.long, part...)
				}
				return r.long, fmt.Errorf("%w: %d bytes, more than %d", ErrTooLong, r.next-r.offset-1, r.cfg.maxLineBytes)
			}
			if len(r.long) == 0 {
				return part, nil
			}
			r.long = append(r.long, part...)
			return r.long, nil
		case errors.Is(err, bufio.ErrBufferFull):
			if !tooLong {
				r.long = append(r.long, part...)
			}
			tooLong = len(r.long) > r.cfg.maxLineBytes
		case errors.Is(err, io.EOF):
			r.torn = r.next - r.offset
			r.end = io.EOF
			return nil, nil
		default:
			r.end = fmt.Errorf("read %s: line %d: %w", r.name, r.line, err)
			return nil, nil
		}
	}
}

// atEnd says whether nothing follows the line in hand, which it may overwrite.
func (r *Reader) atEnd() bool {
	_, err := r.src.Peek(1)
	if errors.Is(err, io.EOF) {
		r.end = io.EOF
	}
	return r.end != nil
}

// decode takes one line. The record has no Scope when the line holds none: a scope, a resource, an unknown type.
func (r *Reader) decode(line []byte) (Record, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return Record{}, nil
	}
	if !utf8.Valid(line) {
		return Record{}, fmt.Errorf("%w: invalid UTF-8", ErrNotJSON)
	}
	rec, err := r.decodeObject(line)
	// Only now: a line that decodes is JSON, so that good lines are read once.
	if err != nil && !jx.Valid(line) {
		err = fmt.Errorf("%w: %w", ErrNotJSON, err)
	}
	return rec, err
}

func (r *Reader) decodeObject(line []byte) (Record, error) {
	d := &r.dec
	typ, err := d.lineType(line)
	if err != nil {
		return Record{}, err
	}
	d.reset(line)
	rec := Record{Line: r.line, Offset: r.offset, Bytes: len(line) + 1}
	var count *int64
	switch typ {
	case "span":
		rec.Signal, rec.Span, count = pipeline.SignalTraces, ptrace.NewSpan(), &r.stats.Spans
		err = d.span(rec.Span)
	case "metric":
		rec.Signal, rec.Metric, count = pipeline.SignalMetrics, pmetric.NewMetric(), &r.stats.Points
		rec.desc, err = d.metric(rec.Metric)
	case "log":
		rec.Signal, rec.Log, count = pipeline.SignalLogs, plog.NewLogRecord(), &r.stats.Logs
		err = d.log(rec.Log)
	case "scope":
		return Record{}, r.defineScope()
	case "resource":
		return Record{}, r.defineResource()
	default:
		if err = d.Skip(); err == nil {
			err = d.lineEnd()
		}
		if err == nil {
			r.stats.UnknownLines++
		}
		return Record{}, err
	}
	if err != nil {
		return Record{}, err
	}
	if rec.Scope, err = r.origin(); err != nil {
		return Record{}, err
	}
	*count++
	return rec, nil
}
