// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader // import "github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-faster/jx"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// decoder turns one line at a time into pdata. What is absent keeps pdata's default, keys may stand in any order, and keys that
// are not known are counted and left out, so that a line of a newer minor version is read.
type decoder struct {
	jx.Decoder
	origin      lineOrigin
	names       map[string]string
	unknownKeys int64
	identity    bool // copies of the identity are needed

	attributeCount int // of the last map, a hint for the next
}

const (
	maxNames     = 4096 // names that are kept for reuse
	maxNameBytes = 128  // longer ones are not kept
)

func newDecoder() decoder { return decoder{names: map[string]string{}} }

func (d *decoder) reset(line []byte) {
	d.ResetBytes(line)
	d.origin = lineOrigin{}
}

// lineType is the value of "type", which the exporter writes first.
func (d *decoder) lineType(line []byte) (typ string, err error) {
	found, err := d.find(line, "type", func() (err error) {
		typ, err = d.name()
		return err
	})
	if err == nil && !found {
		err = errMissing("type")
	}
	return typ, err
}

// find calls read at the value of the first such key of the line, and looks no further.
func (d *decoder) find(line []byte, key string, read func() error) (found bool, err error) {
	d.reset(line)
	err = d.object(func(k []byte) error {
		if string(k) != key {
			return d.Skip()
		}
		found = true
		if err := read(); err != nil {
			return err
		}
		return errFound
	})
	if err == errFound {
		err = nil
	}
	return found, err
}

var errFound = errors.New("found")

var spanKinds = map[string]ptrace.SpanKind{
	"unspecified": ptrace.SpanKindUnspecified,
	"internal":    ptrace.SpanKindInternal,
	"server":      ptrace.SpanKindServer,
	"client":      ptrace.SpanKindClient,
	"producer":    ptrace.SpanKindProducer,
	"consumer":    ptrace.SpanKindConsumer,
}

var statusCodes = map[string]ptrace.StatusCode{
	"UNSET": ptrace.StatusCodeUnset,
	"OK":    ptrace.StatusCodeOk,
	"ERROR": ptrace.StatusCodeError,
}

func (d *decoder) span(s ptrace.Span) error {
	s.SetKind(ptrace.SpanKindInternal)
	var duration int64
	hasEnd := false
	err := d.line(func(key []byte) error {
		switch string(key) {
		case "name":
			return put(s.SetName, d.name)
		case "trace_id":
			return put(s.SetTraceID, d.traceID)
		case "span_id":
			return put(s.SetSpanID, d.spanID)
		case "parent_id":
			return put(s.SetParentSpanID, d.spanID)
		case "kind":
			kind, err := enum(d, spanKinds)
			s.SetKind(kind)
			return err
		case "start_ns":
			return put(s.SetStartTimestamp, d.time)
		case "duration_ns":
			return put(func(n int64) { duration = n }, d.int64)
		case "end_ns":
			hasEnd = true
			return put(s.SetEndTimestamp, d.time)
		case "status":
			code, err := enum(d, statusCodes)
			s.Status().SetCode(code)
			return err
		case "status_message":
			return put(s.Status().SetMessage, d.str)
		case "attributes":
			return d.attributes(s.Attributes())
		case "events":
			return d.array(func() error { return d.event(s.Events().AppendEmpty()) })
		case "links":
			return d.array(func() error { return d.link(s.Links().AppendEmpty()) })
		case "trace_state":
			return put(s.TraceState().FromRaw, d.str)
		case "flags":
			return put(s.SetFlags, d.uint32)
		case "dropped_attributes":
			return put(s.SetDroppedAttributesCount, d.uint32)
		case "dropped_events":
			return put(s.SetDroppedEventsCount, d.uint32)
		case "dropped_links":
			return put(s.SetDroppedLinksCount, d.uint32)
		default:
			return d.originField(key)
		}
	})
	if err != nil || hasEnd {
		return err
	}
	start := s.StartTimestamp()
	end := start + pcommon.Timestamp(duration)
	if (end < start) != (duration < 0) {
		return fmt.Errorf("key \"duration_ns\": %d ns after %d does not fit 64 bits", duration, start)
	}
	s.SetEndTimestamp(end)
	return nil
}

func (d *decoder) event(e ptrace.SpanEvent) error {
	return d.object(func(key []byte) error {
		switch string(key) {
		case "name":
			return put(e.SetName, d.name)
		case "time_ns":
			return put(e.SetTimestamp, d.time)
		case "attributes":
			return d.attributes(e.Attributes())
		case "dropped_attributes":
			return put(e.SetDroppedAttributesCount, d.uint32)
		default:
			return d.unknown()
		}
	})
}

func (d *decoder) link(l ptrace.SpanLink) error {
	return d.object(func(key []byte) error {
		switch string(key) {
		case "trace_id":
			return put(l.SetTraceID, d.traceID)
		case "span_id":
			return put(l.SetSpanID, d.spanID)
		case "attributes":
			return d.attributes(l.Attributes())
		case "trace_state":
			return put(l.TraceState().FromRaw, d.str)
		case "flags":
			return put(l.SetFlags, d.uint32)
		case "dropped_attributes":
			return put(l.SetDroppedAttributesCount, d.uint32)
		default:
			return d.unknown()
		}
	})
}

func (d *decoder) log(l plog.LogRecord) error {
	return d.line(func(key []byte) error {
		switch string(key) {
		case "time_ns":
			return put(l.SetTimestamp, d.time)
		case "observed_ns":
			return put(l.SetObservedTimestamp, d.time)
		case "severity_number":
			return put(func(n int32) { l.SetSeverityNumber(plog.SeverityNumber(n)) }, d.int32)
		case "severity_text":
			return put(l.SetSeverityText, d.name)
		case "event_name":
			return put(l.SetEventName, d.name)
		case "body":
			return d.value(l.Body(), 1)
		case "trace_id":
			return put(l.SetTraceID, d.traceID)
		case "span_id":
			return put(l.SetSpanID, d.spanID)
		case "flags":
			return put(func(n uint32) { l.SetFlags(plog.LogRecordFlags(n)) }, d.uint32)
		case "attributes":
			return d.attributes(l.Attributes())
		case "dropped_attributes":
			return put(l.SetDroppedAttributesCount, d.uint32)
		default:
			return d.originField(key)
		}
	})
}

// line reads the object that a line is, to the line's end.
func (d *decoder) line(field func(key []byte) error) error {
	if err := d.object(field); err != nil {
		return err
	}
	return d.lineEnd()
}

func (d *decoder) lineEnd() error {
	if err := d.Skip(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value in the line")
	}
	return nil
}

// object calls field with each key of the object ahead; field must read the key's value.
func (d *decoder) object(field func(key []byte) error) error {
	if err := d.want(jx.Object); err != nil {
		return err
	}
	it, err := d.ObjIter()
	if err != nil {
		return err
	}
	for it.Next() {
		if err := field(it.Key()); err == errFound {
			return err
		} else if err != nil {
			return errKey(it.Key(), err)
		}
	}
	return it.Err()
}

// array calls item for each item of the array ahead; item must read it.
func (d *decoder) array(item func() error) error {
	if err := d.want(jx.Array); err != nil {
		return err
	}
	it, err := d.ArrIter()
	if err != nil {
		return err
	}
	for i := 0; it.Next(); i++ {
		if err := item(); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return it.Err()
}

// inlineObject reads an object that stood in the line in hand as text, nil when it was absent.
func (d *decoder) inlineObject(name string, text []byte, field func(key []byte) error) error {
	if text == nil {
		return nil
	}
	d.ResetBytes(text)
	if err := d.object(field); err != nil {
		return errKey([]byte(name), err)
	}
	return nil
}

func (d *decoder) rawObject() ([]byte, error) {
	if err := d.want(jx.Object); err != nil {
		return nil, err
	}
	return d.Raw()
}

// unknown leaves out the value ahead.
func (d *decoder) unknown() error {
	d.unknownKeys++
	return d.Skip()
}

// want checks the type of the value ahead.
func (d *decoder) want(t jx.Type) error {
	got := d.Next()
	if got == t {
		return nil
	}
	text, err := d.Raw()
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is not of type %s", clip(text), t)
}

// put hands what read returns to set, unless it is an error.
func put[T any](set func(T), read func() (T, error)) error {
	v, err := read()
	if err == nil {
		set(v)
	}
	return err
}

func (d *decoder) str() (string, error) {
	if err := d.want(jx.String); err != nil {
		return "", err
	}
	return d.Str()
}

// name is str for text of which there is little that is different: it is kept once.
func (d *decoder) name() (string, error) {
	if err := d.want(jx.String); err != nil {
		return "", err
	}
	b, err := d.StrBytes()
	return d.intern(b), err
}

func (d *decoder) intern(b []byte) string {
	if s, ok := d.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(s) <= maxNameBytes && len(d.names) < maxNames {
		d.names[s] = s
	}
	return s
}

func (d *decoder) num() (jx.Num, error) {
	if err := d.want(jx.Number); err != nil {
		return nil, err
	}
	return d.Num()
}

func (d *decoder) signed(bits int) (int64, error) {
	n, err := d.num()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(string(n), 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%s is not an integer of %d bits", clip(n), bits)
	}
	return v, nil
}

func (d *decoder) unsigned(bits int) (uint64, error) {
	n, err := d.num()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(string(n), 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%s is not an unsigned integer of %d bits", clip(n), bits)
	}
	return v, nil
}

func (d *decoder) int64() (int64, error)   { return d.signed(64) }
func (d *decoder) uint64() (uint64, error) { return d.unsigned(64) }

func (d *decoder) int32() (int32, error) {
	n, err := d.signed(32)
	return int32(n), err
}

func (d *decoder) uint32() (uint32, error) {
	n, err := d.unsigned(32)
	return uint32(n), err
}

func (d *decoder) bool() (bool, error) {
	if err := d.want(jx.Bool); err != nil {
		return false, err
	}
	return d.Bool()
}

func (d *decoder) time() (pcommon.Timestamp, error) {
	n, err := d.uint64()
	return pcommon.Timestamp(n), err
}

func (d *decoder) traceID() (id pcommon.TraceID, err error) {
	err = d.hex(id[:])
	return id, err
}

func (d *decoder) spanID() (id pcommon.SpanID, err error) {
	err = d.hex(id[:])
	return id, err
}

func (d *decoder) hex(dst []byte) error {
	if err := d.want(jx.String); err != nil {
		return err
	}
	b, err := d.StrBytes()
	if err != nil {
		return err
	}
	if len(b) == hex.EncodedLen(len(dst)) {
		if _, err = hex.Decode(dst, b); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%q is not %d hex digits", clip(b), hex.EncodedLen(len(dst)))
}

// enum is a name, or the integer of a value that had no name when it was written.
func enum[T ~int32](d *decoder, names map[string]T) (T, error) {
	if d.Next() == jx.Number {
		n, err := d.int32()
		return T(n), err
	}
	name, err := d.name()
	if err != nil {
		return 0, err
	}
	v, ok := names[name]
	if !ok {
		return 0, fmt.Errorf("%q is not known", clip([]byte(name)))
	}
	return v, nil
}

func errKey(key []byte, err error) error { return fmt.Errorf("key %q: %w", clip(key), err) }

func errMissing(key string) error { return fmt.Errorf("key %q is missing", key) }

// clip keeps hostile values out of messages.
func clip(b []byte) string {
	const most = 64
	if len(b) > most {
		return strings.ToValidUTF8(string(b[:most]), "") + "…"
	}
	return string(b)
}
