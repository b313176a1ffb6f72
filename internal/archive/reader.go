// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-faster/jx"
	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// maxObject bounds a line, an object and a message that is held in memory.
const maxObject = 256 << 20

// Damage is what is wrong at one place of a file. It costs what stood there alone: the reader goes on behind it.
type Damage struct {
	File   string // as Input.Name says it
	Line   int64  // counted from 1; of messages behind their length, the message
	Offset int64  // of the line's first byte in what the file holds, decompressed
	Err    error  // what is wrong
}

func (d *Damage) Error() string { return fmt.Sprintf("%s:%d: %v", d.File, d.Line, d.Err) }
func (d *Damage) Unwrap() error { return d.Err }

// Stats counts what was read of one file so far. The bytes are of what the file holds, decompressed.
type Stats struct {
	Compression Compression
	Layouts     map[Layout]int64 // records by layout
	Lines       int64            // all, or messages
	Bytes       int64
	Spans       int64
	Points      int64
	Logs        int64
	SpanBytes   int64 // of the lines of spans; of a request, its share
	Foreign     int64 // lines that are no telemetry: an application's output
	Unknown     int64 // lines and keys of a newer version of the compact layout
	Damaged     int64
	Torn        int64 // bytes of a last line or frame that was never written whole, as they stand in the file
}

// Records is the number of spans, points and log records.
func (s Stats) Records() int64 { return s.Spans + s.Points + s.Logs }

// Record is a record of one of several files.
type Record struct {
	jsonlreader.Record
	Layout Layout
	Bytes  int // of its line, or its share of an object that holds many

	// Of a replay: the file, the record's number in it from 1 on, and the file's name.
	from   *position
	number int64
	name   string
}

// Time is when the record happened: a span's start, a point's time, a log record's time or else when it was observed. It is what
// records are filtered and sorted by.
func (r Record) Time() pcommon.Timestamp {
	switch r.Signal {
	case pipeline.SignalTraces:
		return r.Span.StartTimestamp()
	case pipeline.SignalMetrics:
		return pointTime(r.Metric)
	default:
		if t := r.Log.Timestamp(); t != 0 {
			return t
		}
		return r.Log.ObservedTimestamp()
	}
}

// End is when the record was complete: a span's end, else its time.
func (r Record) End() pcommon.Timestamp {
	if r.Signal == pipeline.SignalTraces {
		return max(r.Span.StartTimestamp(), r.Span.EndTimestamp())
	}
	return r.Time()
}

// Reader reads the records of one file.
type Reader struct {
	name   string
	signal pipeline.Signal
	closer []io.Closer
	file   *os.File // nil where what is read is none
	raw    *counter // what was read of the file
	stats  Stats

	text     *bufio.Reader // what the file holds
	messages *messages     // where it holds messages behind their lengths
	long     []byte        // a line that does not fit the buffer of text
	line     int64         // number of the line in hand
	offset   int64         // of its first byte
	next     int64         // behind it
	held     error         // of the first look at the content
	end      error         // sticky

	compact *jsonlreader.LineDecoder
	objects objects
	indent  indented
	origin  origin

	queue []Record
	errs  []error
}

// indented is an object over several lines that is not complete yet.
type indented struct {
	text         []byte
	scan         objectScan
	line, offset int64
}

// origin is who writes a file, told by the first record: a program that writes nothing else, so that everything else in it is damage, or
// also an application, whose lines are passed over.
type origin struct {
	known, alone bool
	waiting      []*Damage // lines before the first record, at most maxWaiting
	foreign      int64
}

const maxWaiting = 16

// Open opens a file that was found, which may have another name by now.
func Open(in Input) (*Reader, error) {
	if in.Path == Stdin {
		return NewReader(os.Stdin, in.Name())
	}
	f, err := in.open()
	if err != nil {
		return nil, err
	}
	r, err := NewReader(f, f.Name())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", f.Name(), err), f.Close())
	}
	r.file = f
	r.closer = append(r.closer, f)
	return r, nil
}

// NewReader reads what a file holds. name stands for it in errors, and tells the signal of protobuf messages that do not.
func NewReader(file io.Reader, name string) (*Reader, error) { return newReader(file, name, maxHeld) }

// newReader returns a reader that holds up to so many bytes of a frame until its end is known.
func newReader(file io.Reader, name string, hold int64) (*Reader, error) {
	src := newSource(file)
	r := &Reader{name: name, signal: signalOf(name), raw: src.counted, compact: jsonlreader.NewLineDecoder(name)}
	r.stats.Layouts = map[Layout]int64{}
	content, compression, closer, err := decompress(src, hold)
	if err != nil {
		return nil, err
	}
	r.stats.Compression = compression
	r.closer = append(r.closer, closer)
	r.text = bufio.NewReaderSize(content, sourceBytes)
	var isFramed bool
	if isFramed, r.held = framed(r.text); isFramed {
		r.messages = &messages{src: r.text}
	}
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error {
	var errs []error
	for _, c := range r.closer {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Stats returns the counts so far.
func (r *Reader) Stats() Stats {
	s := r.stats
	compact := r.compact.Stats()
	s.Unknown = compact.UnknownLines + compact.UnknownKeys
	s.Bytes = r.next
	return s
}

// Read is how many bytes of the file itself were read.
func (r *Reader) Read() int64 { return r.raw.n }

// Next returns the next record, io.EOF at the end, or a [*Damage], after which it goes on. Any other error is of the file, and stays.
func (r *Reader) Next() (Record, error) {
	for {
		if len(r.errs) > 0 {
			err := r.errs[0]
			r.errs = r.errs[1:]
			return Record{}, err
		}
		if len(r.queue) > 0 {
			rec := r.queue[0]
			r.queue = r.queue[1:]
			return rec, nil
		}
		if r.end != nil {
			return Record{}, r.end
		}
		r.queue = r.queue[:0]
		if r.messages != nil {
			r.readMessage()
		} else {
			r.readLine()
		}
	}
}

// readLine takes the next line, or the end.
func (r *Reader) readLine() {
	if cap(r.long) > maxKept {
		r.long = nil
	}
	r.long = r.long[:0]
	r.offset = r.next
	r.line++
	tooLong := false
	for {
		part, err := r.text.ReadSlice('\n')
		if err != nil && r.held != nil {
			err, r.held = r.held, nil
		}
		r.next += int64(len(part))
		if err == nil && len(r.long) == 0 && !tooLong {
			r.stats.Lines++
			r.take(part[:len(part)-1])
			return
		}
		if !tooLong {
			r.long = append(r.long, part...)
			tooLong = len(r.long) > maxObject
		}
		var bad *frameError
		switch {
		case err == nil && tooLong:
			r.stats.Lines++
			r.lost(fmt.Errorf("%w: more than %d bytes", jsonlreader.ErrTooLong, maxObject))
			return
		case err == nil:
			r.stats.Lines++
			r.take(r.long[:len(r.long)-1])
			return
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.As(err, &bad):
			r.lost(bad) // With what was read of its last line.
			return
		default:
			r.finish(err, r.long)
			return
		}
	}
}

// maxKept is the largest buffer that stays allocated.
const maxKept = 1 << 20

// finish ends the file. rest is what stands behind its last newline.
func (r *Reader) finish(err error, rest []byte) {
	var torn *tornError
	switch {
	case errors.As(err, &torn):
		r.end, r.stats.Torn = io.EOF, torn.bytes
		rest = nil
	case errors.Is(err, io.EOF):
		r.end = io.EOF
	default:
		r.end = fmt.Errorf("read %s: line %d: %w", r.name, r.line, err)
		return
	}
	switch text := bytes.TrimSpace(rest); {
	case len(text) == 0:
	case len(r.indent.text) > 0 || endsWhole(text):
		r.take(rest)
	case r.origin.alone || text[0] == '{' || text[0] == 0:
		r.stats.Torn += int64(len(rest))
	default:
		r.stats.Foreign++
	}
	if n := int64(len(r.indent.text)); n > 0 {
		r.stats.Torn += n
		r.indent = indented{}
	}
	r.settle(false)
}

// endsWhole tells whether a last line without a newline counts. In the compact layout it never does: its end may be missing though
// it looks whole. Any other object is whole or is not.
func endsWhole(text []byte) bool {
	var scan objectScan
	return text[0] == '{' && !beginsCompact(text) && scan.end(text) == len(text)
}

// take takes one line, without its newline.
func (r *Reader) take(line []byte) {
	if len(r.indent.text) > 0 && r.takeIndented(line) {
		return
	}
	text := bytes.TrimSpace(line)
	if len(text) == 0 {
		return
	}
	if isCompactLine(text, r.origin.alone) {
		r.takeCompact(text)
		return
	}
	text, _ = r.takeObjects(text, r.line, r.offset)
	if len(text) == 0 {
		return
	}
	if len(text) == 1 && text[0] == '{' {
		r.indent = indented{line: r.line, offset: r.offset}
		r.takeIndented(text)
		return
	}
	broken := beginsTelemetry(text) && !jx.Valid(text)
	if broken {
		r.origin.settleOn(false)
		r.lost(errors.New("the object is not whole"))
	}
	// Text, and perhaps telemetry behind it: a progress bar ends without a newline.
	found := false
	for at, tries := nextHead(text, 1), 0; at >= 0 && tries < 8; tries++ {
		rest, ok := r.takeObjects(text[at:], r.line, r.offset)
		found = found || ok
		from := at + 1
		if ok {
			from = len(text) - len(rest)
		}
		at = nextHead(text, from)
	}
	if !broken && !found {
		r.foreign(text, 1)
	}
}

func beginsTelemetry(text []byte) bool { return nextHead(text, 0) == 0 || beginsCompact(text) }

// isCompactLine tells the compact layout by the beginning of a line, and among other lines also by a key that its lines never lack. In a
// file of its own, a type that is not known is one of a newer version.
func isCompactLine(text []byte, alone bool) bool {
	if alone {
		return bytes.HasPrefix(text, []byte(`{"type":"`))
	}
	return beginsCompact(text) && hasCompactKey(text)
}

// takeObjects takes the objects at the beginning of text, as long as they are telemetry, and returns what is behind them. It is false
// where there was none.
func (r *Reader) takeObjects(text []byte, line, offset int64) (rest []byte, ok bool) {
	for len(text) > 0 && text[0] == '{' {
		var scan objectScan
		end := scan.end(text)
		if end < 0 || !r.takeObject(text[:end], scan, line, offset) {
			break
		}
		ok = true
		text = bytes.TrimSpace(text[end:])
	}
	return text, ok
}

// takeObject takes a whole object if it is telemetry.
func (r *Reader) takeObject(object []byte, scan objectScan, line, offset int64) bool {
	if scan.deep {
		return false
	}
	if scan.bare {
		object = quoteBare(object)
	}
	layout := detect(object)
	first := len(r.queue)
	add := func(rec jsonlreader.Record) { r.add(rec, layout, line, offset) }
	var err error
	switch layout {
	case LayoutNone:
		return false
	case LayoutCompact:
		r.takeCompact(object)
		return true
	case LayoutOTLPJSON:
		err = decodeOTLPJSON(object, add)
	default:
		err = r.objects.decode(object, layout, add)
	}
	r.origin.settleOn(layout == LayoutOTLPJSON)
	r.share(first, len(object)+1)
	if err != nil {
		r.drop(first)
		r.damagedAt(line, offset, err)
	}
	r.settle(true)
	return true
}

// takeCompact takes a line of the compact layout.
func (r *Reader) takeCompact(line []byte) {
	rec, ok, err := r.compact.Decode(line, r.line, r.offset)
	r.origin.settleOn(true)
	switch {
	case err != nil:
		var bad *jsonlreader.LineError
		if errors.As(err, &bad) {
			err = bad.Err // Damage says the place.
		}
		r.damaged(err)
	case ok:
		first := len(r.queue)
		r.add(rec, LayoutCompact, r.line, r.offset)
		r.share(first, len(line)+1)
	}
	r.settle(true)
}

// takeIndented takes a line of an object that is written over several. It is false where the line begins something else.
func (r *Reader) takeIndented(line []byte) bool {
	in := &r.indent
	trimmed := bytes.TrimSpace(line)
	if len(in.text) > 0 && (len(trimmed) == 0 || !continues(line, trimmed)) {
		if len(line) > 0 && line[0] == '{' {
			r.breakIndented()
			return false
		}
		if len(trimmed) > 0 {
			r.foreign(trimmed, 1) // An application's line between those of the object.
		}
		return true
	}
	end := in.scan.end(line)
	if end < 0 {
		in.text = append(append(in.text, line...), '\n')
		if in.scan.inString || in.scan.deep || len(in.text) > maxObject {
			r.breakIndented()
		}
		return true
	}
	in.text = append(in.text, line[:end]...)
	object := r.indent
	r.indent = indented{}
	if !r.takeObject(object.text, object.scan, object.line, object.offset) {
		r.foreign(object.text, 1+int64(bytes.Count(object.text, []byte("\n"))))
	}
	if rest := bytes.TrimSpace(line[end:]); len(rest) > 0 {
		r.take(rest)
	}
	return true
}

// continues tells whether a line may stand within an indented object: it is indented, or closes it, and holds JSON.
func continues(line, trimmed []byte) bool {
	if line[0] != ' ' && line[0] != '\t' {
		return line[0] == '}' || line[0] == ']'
	}
	switch c := trimmed[0]; {
	case c == '"', c == '{', c == '}', c == '[', c == ']', c == '-', c >= '0' && c <= '9':
		return true
	default:
		word := string(bytes.TrimSuffix(trimmed, []byte(",")))
		return word == "true" || word == "false" || word == "null" || word == "NaN" || word == "Infinity"
	}
}

// breakIndented gives an indented object up whose end did not come. Only where it began as telemetry does that say anything.
func (r *Reader) breakIndented() {
	in := r.indent
	r.indent = indented{}
	if text := bytes.TrimSpace(bytes.TrimPrefix(in.text, []byte("{"))); bytes.HasPrefix(text, []byte(`"name": `)) ||
		bytes.HasPrefix(text, []byte(`"body": `)) || bytes.HasPrefix(text, []byte(`"resource_metrics": `)) {
		r.damagedAt(in.line, in.offset, errors.New("the object is not whole"))
		return
	}
	r.stats.Foreign += int64(bytes.Count(in.text, []byte("\n")))
}

func (r *Reader) add(rec jsonlreader.Record, layout Layout, line, offset int64) {
	rec.Line, rec.Offset = line, offset
	r.queue = append(r.queue, Record{Record: rec, Layout: layout})
}

// share gives every record since first its share of the bytes of their line, and counts it.
func (r *Reader) share(first, bytes int) {
	for i := first; i < len(r.queue); i++ {
		rec := &r.queue[i]
		rec.Bytes = bytes / (len(r.queue) - first)
		r.stats.Layouts[rec.Layout]++
		switch rec.Signal {
		case pipeline.SignalTraces:
			r.stats.Spans++
			r.stats.SpanBytes += int64(rec.Bytes)
		case pipeline.SignalMetrics:
			r.stats.Points++
		default:
			r.stats.Logs++
		}
	}
}

// drop takes back what an object gave before it turned out to be damaged: half an object would be a lie.
func (r *Reader) drop(first int) {
	for _, rec := range r.queue[first:] {
		r.stats.Layouts[rec.Layout]--
		switch rec.Signal {
		case pipeline.SignalTraces:
			r.stats.Spans--
			r.stats.SpanBytes -= int64(rec.Bytes)
		case pipeline.SignalMetrics:
			r.stats.Points--
		default:
			r.stats.Logs--
		}
	}
	r.queue = r.queue[:first]
}

// lost is damage that may have held anything, definitions too.
func (r *Reader) lost(err error) {
	r.compact.Doubt()
	r.damaged(err)
}

func (r *Reader) damaged(err error) { r.damagedAt(r.line, r.offset, err) }

func (r *Reader) damagedAt(line, offset int64, err error) {
	r.stats.Damaged++
	r.errs = append(r.errs, &Damage{File: r.name, Line: line, Offset: offset, Err: err})
}

// foreign takes lines that are no telemetry.
func (r *Reader) foreign(text []byte, lines int64) {
	switch {
	case r.origin.alone:
		r.lost(notTelemetry(text))
	case r.origin.known:
		r.stats.Foreign += lines
	default:
		r.origin.foreign += lines
		if len(r.origin.waiting) < maxWaiting {
			r.origin.waiting = append(r.origin.waiting, &Damage{File: r.name, Line: r.line, Offset: r.offset, Err: notTelemetry(text)})
		}
	}
}

func notTelemetry(text []byte) error {
	if jx.Valid(text) {
		return fmt.Errorf("no telemetry: %s", clip(text))
	}
	return fmt.Errorf("%w: %s", jsonlreader.ErrNotJSON, clip(text))
}

// settleOn is told what kind of record was found. A file is an application's from the first such record on.
func (o *origin) settleOn(alone bool) {
	if !o.known {
		o.known, o.alone = true, alone
	} else if !alone {
		o.alone = false
	}
}

// settle decides on the lines that came before the first record.
func (r *Reader) settle(found bool) {
	o := &r.origin
	if !found && o.known || o.foreign == 0 {
		return
	}
	if found && o.alone {
		r.stats.Damaged += o.foreign
		for _, d := range o.waiting {
			r.errs = append(r.errs, d)
		}
	} else {
		r.stats.Foreign += o.foreign
	}
	o.waiting, o.foreign = nil, 0
}

// clip is the beginning of a text for an error.
func clip(text []byte) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return fmt.Sprintf("%q", text)
}

// messages is what contrib's file exporter writes with `format: proto` or `compression: zstd`: messages behind their length in four
// bytes, big endian. With zstd every message is a frame of its own.
type messages struct {
	src *bufio.Reader
	zst *zstd.Decoder
	buf bytes.Buffer
}

// framed tells whether a message behind its length is ahead. Text never begins so: its first byte would be a control character.
// The error is one of the content, which Peek would say once only.
func framed(src *bufio.Reader) (bool, error) {
	head, err := src.Peek(8)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if len(head) < 5 || head[0] >= '\t' {
		return false, err
	}
	return isZstd(head[4:]) || head[4] == '\n' || head[4] == '{', err // A request's field 1, or JSON.
}

func (r *Reader) readMessage() {
	m := r.messages
	r.line++
	r.offset = r.next
	var length [4]byte
	if n, err := io.ReadFull(m.src, length[:]); err != nil {
		r.endMessages(int64(n), err)
		return
	}
	size := int64(binary.BigEndian.Uint32(length[:]))
	m.buf.Reset()
	n, err := io.CopyN(&m.buf, m.src, min(size, maxObject))
	if n < min(size, maxObject) {
		r.endMessages(4+n, err)
		return
	}
	r.stats.Lines++
	if size > maxObject {
		skipped, err := io.CopyN(io.Discard, m.src, size-maxObject)
		if n += skipped; n < size {
			r.endMessages(4+n, err)
			return
		}
		r.next += 4 + size
		r.damaged(fmt.Errorf("%w: %d bytes, more than %d", jsonlreader.ErrTooLong, size, maxObject))
		return
	}
	r.next += 4 + size
	if err := r.takeMessage(m.buf.Bytes()); err != nil {
		r.damaged(err)
	}
	if m.buf.Cap() > maxKept {
		m.buf = bytes.Buffer{}
	}
}

// endMessages ends the file within a message of which n bytes are there.
func (r *Reader) endMessages(n int64, err error) {
	var torn *tornError
	var bad *frameError
	switch {
	case errors.As(err, &torn):
		r.end, r.stats.Torn = io.EOF, torn.bytes
	case errors.As(err, &bad): // Where the next message begins cannot be told.
		r.damaged(bad)
		r.end = io.EOF
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r.end, r.stats.Torn = io.EOF, n
	default:
		r.end = fmt.Errorf("read %s: message %d: %w", r.name, r.line, err)
	}
}

func (r *Reader) takeMessage(message []byte) error {
	first := len(r.queue)
	if isZstd(message) {
		if r.messages.zst == nil {
			dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxObject))
			if err != nil {
				return err
			}
			r.messages.zst = dec
			r.closer = append(r.closer, dec.IOReadCloser())
			r.stats.Compression = Zstd
		}
		content, err := r.messages.zst.DecodeAll(message, nil)
		if err != nil {
			return fmt.Errorf("message at byte %d: %w", r.offset, err)
		}
		message = content
	}
	layout := LayoutOTLPProto
	add := func(rec jsonlreader.Record) { r.add(rec, layout, r.line, r.offset) }
	var err error
	if text := bytes.TrimSpace(message); len(text) > 0 && text[0] == '{' {
		layout = LayoutOTLPJSON
		var scan objectScan
		switch end := scan.end(text); {
		case end < 0:
			err = fmt.Errorf("%w: the object has no end", jsonlreader.ErrNotJSON)
		case scan.deep:
			err = fmt.Errorf("nested deeper than %d levels", maxJSONDepth)
		default:
			err = decodeOTLPJSON(text[:end], add)
		}
	} else if len(message) > 0 {
		err = decodeOTLPProto(message, r.signal, add)
	}
	if err != nil {
		r.queue = r.queue[:first]
		return err
	}
	r.share(first, len(message))
	return nil
}
