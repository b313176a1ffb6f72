// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/go-faster/jx"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// chromeSink writes Chrome's trace events ("Trace Event Format"): X for slices, i for instants, C for counters, M for names and order,
// s and f for the ends of a flow. Times are microseconds since the trace's begin, to three digits: readers take them for doubles,
// in which a time since 1970 would lose its nanoseconds and with them the nesting. "metadata" says when the trace began.
type chromeSink struct {
	w      io.Writer
	failed error
	json   jx.Writer
	first  int64
	clocks Clocks
	some   bool
}

func newChromeSink(w io.Writer) *chromeSink { return &chromeSink{w: w} }

func (s *chromeSink) err() error { return s.failed }

func (s *chromeSink) begin(first int64, clocks Clocks) {
	s.first, s.clocks = first, clocks
	s.write([]byte(`{"displayTimeUnit":"ms","traceEvents":[`))
}

// finish writes the metadata behind the events, where readers that stream have not to wait for it.
func (s *chromeSink) finish() {
	j := &s.json
	j.Reset()
	j.RawStr("\n],\"metadata\":{\"begin_unix_ns\":")
	j.Str(strconv.FormatInt(s.first, 10))
	j.RawStr(",\"clocks\":[")
	for i, note := range notesOf(s.clocks) {
		if i > 0 {
			j.RawStr(",")
		}
		j.RawStr("{\"note\":")
		j.Str(clean(note.name))
		s.members(note.args)
		j.RawStr("}")
	}
	j.RawStr("]}}\n")
	s.write(j.Buf)
}

func (s *chromeSink) process(p *process) {
	s.meta("process_name", p.pid, uint64(p.pid), "name", p.name)
	s.meta("process_sort_index", p.pid, uint64(p.pid), "sort_index", int64(p.pid))
	if p.label != "" {
		s.meta("process_labels", p.pid, uint64(p.pid), "labels", p.label)
	}
}

func (s *chromeSink) lane(t *track) {
	s.meta("thread_name", t.process.pid, t.id, "name", t.name)
	s.meta("thread_sort_index", t.process.pid, t.id, "sort_index", int64(t.rank))
}

func (s *chromeSink) counterTrack(*series) {}

func (s *chromeSink) meta(name string, pid int32, tid uint64, key string, value any) {
	s.open("M", name, pid, tid)
	s.args([]arg{{key, value}})
	s.close()
}

func (s *chromeSink) slice(t *track, at, end int64, of *slice) {
	s.open("X", of.name, t.process.pid, t.id)
	s.time("ts", at-s.first)
	s.time("dur", end-at)
	s.categories(of.categories)
	s.args(of.args)
	s.close()
	for _, id := range of.from {
		s.flow("s", t, at, id)
	}
	for _, id := range of.to {
		s.flow("f", t, at, id)
	}
}

// flow binds an end of a flow to the slice that is open at its time.
func (s *chromeSink) flow(phase string, t *track, at int64, id uint64) {
	s.open(phase, "link", t.process.pid, t.id)
	s.time("ts", at-s.first)
	s.categories([]string{"link"})
	s.json.RawStr(",\"id\":")
	s.json.Str(fmt.Sprintf("%#x", id))
	if phase == "f" {
		s.json.RawStr(`,"bp":"e"`)
	}
	s.close()
}

func (s *chromeSink) end(*track, int64) {}

func (s *chromeSink) instant(t *track, at int64, of *slice) {
	s.open("i", of.name, t.process.pid, t.id)
	s.time("ts", at-s.first)
	s.json.RawStr(`,"s":"t"`)
	s.categories(of.categories)
	s.args(of.args)
	s.close()
}

func (s *chromeSink) count(c *series, at int64, value float64, whole int64, isWhole bool) {
	s.open("C", c.name, c.process.pid, uint64(c.process.pid))
	s.time("ts", at-s.first)
	var v any = value
	if isWhole {
		v = whole
	}
	key := c.unit
	if key == "" {
		key = "value"
	}
	s.args([]arg{{key, v}})
	s.close()
}

func (s *chromeSink) open(phase, name string, pid int32, tid uint64) {
	j := &s.json
	j.Reset()
	if s.some {
		j.RawStr(",")
	}
	s.some = true
	j.RawStr("\n{\"ph\":")
	j.Str(phase)
	j.RawStr(",\"name\":")
	j.Str(clean(name))
	j.RawStr(",\"pid\":")
	j.Int32(pid)
	j.RawStr(",\"tid\":")
	j.UInt64(tid)
}

func (s *chromeSink) close() {
	s.json.RawStr("}")
	s.write(s.json.Buf)
}

func (s *chromeSink) write(b []byte) {
	if s.failed == nil {
		if _, err := s.w.Write(b); err != nil {
			s.failed = fmt.Errorf("write the trace: %w", err)
		}
	}
}

// time writes nanoseconds as microseconds.
func (s *chromeSink) time(key string, ns int64) {
	ns = max(ns, 0)
	s.json.RawStr(fmt.Sprintf(",%q:%d.%03d", key, ns/1000, ns%1000))
}

func (s *chromeSink) categories(of []string) {
	if len(of) == 0 {
		return
	}
	all := of[0]
	for _, category := range of[1:] {
		all += "," + category
	}
	s.json.RawStr(",\"cat\":")
	s.json.Str(clean(all))
}

func (s *chromeSink) args(of []arg) {
	if len(of) == 0 {
		return
	}
	j := &s.json
	j.RawStr(",\"args\":{")
	for i, a := range of {
		if i > 0 {
			j.RawStr(",")
		}
		j.Str(clean(a.key))
		j.RawStr(":")
		s.value(a.value, 0)
	}
	j.RawStr("}")
}

func (s *chromeSink) members(of []arg) {
	for _, a := range of {
		s.json.RawStr(",")
		s.json.Str(a.key)
		s.json.RawStr(":")
		s.value(a.value, 0)
	}
}

func (s *chromeSink) value(value any, depth int) {
	switch v := value.(type) {
	case string:
		s.json.Str(clean(v))
	case int64:
		s.json.Int64(v)
	case bool:
		s.json.Bool(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has none.
			s.json.Str(strconv.FormatFloat(v, 'g', -1, 64))
			return
		}
		s.json.Float64(v)
	case pcommon.Value:
		s.pdata(v, depth)
	}
}

func (s *chromeSink) pdata(v pcommon.Value, depth int) {
	j := &s.json
	switch v.Type() {
	case pcommon.ValueTypeBool:
		s.value(v.Bool(), depth)
	case pcommon.ValueTypeInt:
		s.value(v.Int(), depth)
	case pcommon.ValueTypeDouble:
		s.value(v.Double(), depth)
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		if depth >= maxDepth {
			j.Str(cutValue)
			return
		}
		s.container(v, depth)
	default:
		s.value(v.AsString(), depth)
	}
}

func (s *chromeSink) container(v pcommon.Value, depth int) {
	j := &s.json
	separator := ""
	if v.Type() == pcommon.ValueTypeSlice {
		j.RawStr("[")
		for _, element := range v.Slice().All() {
			j.RawStr(separator)
			s.pdata(element, depth+1)
			separator = ","
		}
		j.RawStr("]")
		return
	}
	j.RawStr("{")
	for key, element := range v.Map().All() {
		j.RawStr(separator)
		j.Str(clean(key))
		j.RawStr(":")
		s.pdata(element, depth+1)
		separator = ","
	}
	j.RawStr("}")
}
