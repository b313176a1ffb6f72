// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto_test

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// The judge reads a trace as Perfetto's trace processor does, by Perfetto's own definitions of the protos (testdata/trace.binpb, cut from
// the PyPI package perfetto 0.59.1 by test/interop/perfetto/definitions.py). It shares no code with what writes them. What the trace
// processor would count as an error, it refuses: fields that do not exist, events that need state which is not there, numbers of names and
// tracks that nobody gave, ends without a begin, begins without an end.

//go:embed testdata/trace.binpb
var definitions []byte

var traceMessage = sync.OnceValues(func() (protoreflect.MessageDescriptor, error) {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(definitions, &set); err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, err
	}
	found, err := files.FindDescriptorByName("perfetto.protos.Trace")
	if err != nil {
		return nil, err
	}
	return found.(protoreflect.MessageDescriptor), nil
})

// judged is what a reader makes of a trace.
type judged struct {
	processes map[int64]judgedProcess // by pid
	lanes     map[uint64]string       // thread names
	slices    []*judgedSlice          // in the order of time
	instants  []*judgedSlice
	counters  map[string][]float64 // values by `process/name [unit]`
	flows     map[uint64][]*judgedSlice
}

type judgedProcess struct {
	name   string
	labels string
	sort   int64
}

type judgedSlice struct {
	pid        int64
	process    string
	track      uint64
	lane       string
	name       string
	categories []string
	at, end    int64
	depth      int
	parent     *judgedSlice // that it lies in
	args       map[string]any
	flows      []uint64
}

// message is one message as a map of its fields by name; lists are []any.
type message map[string]any

func (m message) int(name string) int64 {
	switch v := m[name].(type) {
	case int64:
		return v
	case uint64:
		return int64(v)
	}
	return 0
}

func (m message) text(name string) string    { s, _ := m[name].(string); return s }
func (m message) sub(name string) message    { s, _ := m[name].(message); return s }
func (m message) list(name string) []any     { l, _ := m[name].([]any); return l }
func (m message) has(name string) bool       { _, ok := m[name]; return ok }
func (m message) uint(name string) uint64    { return uint64(m.int(name)) }
func (m message) enum(name string) string    { return m.text(name) }
func (m message) number(name string) float64 { f, _ := m[name].(float64); return f }

func readMessage(m protoreflect.Message) (message, error) {
	if len(m.GetUnknown()) > 0 {
		return nil, fmt.Errorf("%s: unknown fields %x", m.Descriptor().Name(), m.GetUnknown())
	}
	read := message{}
	var failed error
	value := func(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
		switch f.Kind() {
		case protoreflect.MessageKind:
			sub, err := readMessage(v.Message())
			failed = cmpErr(failed, err)
			return sub
		case protoreflect.EnumKind:
			if named := f.Enum().Values().ByNumber(v.Enum()); named != nil {
				return string(named.Name())
			}
			failed = cmpErr(failed, fmt.Errorf("%s: no value %d", f.FullName(), v.Enum()))
			return ""
		}
		switch v := v.Interface().(type) {
		case int32:
			return int64(v)
		case uint32:
			return uint64(v)
		default:
			return v
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !f.IsList() {
			read[string(f.Name())] = value(f, v)
			return true
		}
		list := []any{}
		for i := range v.List().Len() {
			list = append(list, value(f, v.List().Get(i)))
		}
		read[string(f.Name())] = list
		return true
	})
	return read, failed
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// event is a TrackEvent with its time, and its names looked up.
type judgedEvent struct {
	message
	at    int64
	slice judgedSlice
}

// judge reads a trace, or says what is wrong with it.
func judge(trace []byte) (*judged, error) {
	descriptor, err := traceMessage()
	if err != nil {
		return nil, err
	}
	decoded := dynamicpb.NewMessage(descriptor)
	if err := proto.Unmarshal(trace, decoded); err != nil {
		return nil, err
	}
	read, err := readMessage(decoded)
	if err != nil {
		return nil, err
	}
	j := &judged{processes: map[int64]judgedProcess{}, lanes: map[uint64]string{}, counters: map[string][]float64{}, flows: map[uint64][]*judgedSlice{}}
	r := reader{judged: j, tracks: map[uint64]message{}, last: map[uint64]int64{}}
	for i, p := range read.list("packet") {
		if err := r.packet(i, p.(message)); err != nil {
			return nil, fmt.Errorf("packet %d: %w", i, err)
		}
	}
	return j, r.replay()
}

type reader struct {
	*judged
	interned map[string]map[uint64]string // nil before the state was cleared once
	tracks   map[uint64]message
	tids     []int64
	last     map[uint64]int64 // by track
	events   []judgedEvent
	clocked  bool
}

func (r *reader) packet(i int, p message) error {
	if p.int("trusted_packet_sequence_id") == 0 {
		return fmt.Errorf("belongs to no sequence")
	}
	flags := p.int("sequence_flags")
	if flags&1 != 0 {
		r.interned = map[string]map[uint64]string{"event_categories": {}, "event_names": {}, "debug_annotation_names": {}}
	}
	if flags&2 != 0 && r.interned == nil {
		return fmt.Errorf("needs state that is not there")
	}
	for table, entries := range p.sub("interned_data") {
		for _, e := range entries.([]any) {
			iid, name := e.(message).uint("iid"), e.(message).text("name")
			if old, taken := r.interned[table][iid]; taken && old != name || iid == 0 {
				return fmt.Errorf("%s: number %d is %q and %q", table, iid, old, name)
			}
			r.interned[table][iid] = name
		}
	}
	switch {
	case p.has("clock_snapshot"):
		r.clocked = true
		clocks := map[int64]int64{}
		for _, c := range p.sub("clock_snapshot").list("clocks") {
			clocks[c.(message).int("clock_id")] = c.(message).int("timestamp")
		}
		if clocks[1] != clocks[6] || clocks[1] == 0 {
			return fmt.Errorf("clocks %v", clocks)
		}
	case p.has("track_descriptor"):
		return r.descriptor(p.sub("track_descriptor"))
	case p.has("track_event"):
		return r.event(p.int("timestamp"), p.sub("track_event"), flags&2 != 0)
	}
	return nil
}

func (r *reader) descriptor(d message) error {
	uuid := d.uint("uuid")
	if _, there := r.tracks[uuid]; there {
		return fmt.Errorf("track %d is there twice", uuid)
	}
	if parent := d.uint("parent_uuid"); parent != 0 && r.tracks[parent] == nil {
		return fmt.Errorf("the parent of track %d is not there", uuid)
	}
	r.tracks[uuid] = d
	if d.has("process") {
		p := d.sub("process")
		if _, there := r.processes[p.int("pid")]; there || p.int("pid") == 0 {
			return fmt.Errorf("pid %d", p.int("pid"))
		}
		r.processes[p.int("pid")] = judgedProcess{p.text("process_name"), fmt.Sprint(p.list("process_labels")...), p.int("legacy_sort_index")}
	}
	if d.has("thread") {
		t := d.sub("thread")
		if slices.Contains(r.tids, t.int("tid")) || t.int("tid") == 0 {
			return fmt.Errorf("tid %d", t.int("tid"))
		}
		r.tids = append(r.tids, t.int("tid"))
		if r.tracks[d.uint("parent_uuid")].sub("process").int("pid") != t.int("pid") {
			return fmt.Errorf("thread %d of another process", t.int("tid"))
		}
		r.lanes[uuid] = t.text("thread_name")
	}
	return nil
}

func (r *reader) event(at int64, e message, hasState bool) error {
	track := r.tracks[e.uint("track_uuid")]
	if track == nil || e.uint("track_uuid") == 0 {
		return fmt.Errorf("track %d is not there", e.uint("track_uuid"))
	}
	if !r.clocked || at == 0 {
		return fmt.Errorf("time %d, clock known: %v", at, r.clocked)
	}
	event := judgedEvent{message: e, at: at, slice: judgedSlice{at: at, track: e.uint("track_uuid"), name: e.text("name"), args: map[string]any{}}}
	s := &event.slice
	s.pid = cmp.Or(track.sub("thread").int("pid"), r.tracks[track.uint("parent_uuid")].sub("process").int("pid"))
	s.process, s.lane = r.processes[s.pid].name, r.lanes[s.track]
	look := func(table string, iid uint64) (string, error) {
		name, ok := r.interned[table][iid]
		if !ok || !hasState {
			return "", fmt.Errorf("%s: nobody gave number %d", table, iid)
		}
		return name, nil
	}
	var err error
	if e.has("name_iid") {
		if s.name, err = look("event_names", e.uint("name_iid")); err != nil {
			return err
		}
	}
	for _, iid := range e.list("category_iids") {
		category, err := look("event_categories", iid.(uint64))
		if err != nil {
			return err
		}
		s.categories = append(s.categories, category)
	}
	for _, category := range e.list("categories") {
		s.categories = append(s.categories, category.(string))
	}
	for _, a := range e.list("debug_annotations") {
		a := a.(message)
		key := a.text("name")
		if a.has("name_iid") {
			if key, err = look("debug_annotation_names", a.uint("name_iid")); err != nil {
				return err
			}
		}
		s.args[key] = annotation(a)
	}
	for _, id := range e.list("flow_ids") {
		s.flows = append(s.flows, id.(uint64))
	}
	if last := r.last[s.track]; at < last && e.enum("type") != "TYPE_COUNTER" && s.lane != "logs" {
		return fmt.Errorf("%s: an event at %d behind one at %d", s.lane, at, last)
	}
	r.last[s.track] = at
	r.events = append(r.events, event)
	return nil
}

// annotation is the value of a debug annotation.
func annotation(a message) any {
	for _, field := range []string{"bool_value", "int_value", "double_value", "string_value"} {
		if v, ok := a[field]; ok {
			return v
		}
	}
	if list := a.list("array_values"); list != nil {
		values := []any{}
		for _, v := range list {
			values = append(values, annotation(v.(message)))
		}
		return values
	}
	values := map[string]any{}
	for _, v := range a.list("dict_entries") {
		values[v.(message).text("name")] = annotation(v.(message))
	}
	return values
}

// replay puts the events into the order of time, as the trace processor's sorter does, and ends slices by its rule: an end is of the
// innermost slice of its track.
func (r *reader) replay() error {
	slices.SortStableFunc(r.events, func(a, b judgedEvent) int { return cmp.Compare(a.at, b.at) })
	open := map[uint64][]*judgedSlice{}
	for i := range r.events {
		e := &r.events[i]
		s := &e.slice
		stack := open[s.track]
		switch e.enum("type") {
		case "TYPE_SLICE_BEGIN", "TYPE_INSTANT":
			s.depth = len(stack)
			if len(stack) > 0 {
				s.parent = stack[len(stack)-1]
			}
			if e.enum("type") == "TYPE_INSTANT" {
				s.end = s.at
				r.instants = append(r.instants, s)
				continue
			}
			for _, id := range s.flows {
				r.flows[id] = append(r.flows[id], s)
			}
			open[s.track] = append(stack, s)
			r.slices = append(r.slices, s)
		case "TYPE_SLICE_END":
			if len(stack) == 0 {
				return fmt.Errorf("%s, %s: an end at %d without a begin", s.process, s.lane, e.at)
			}
			stack[len(stack)-1].end = e.at
			open[s.track] = stack[:len(stack)-1]
		case "TYPE_COUNTER":
			track := r.tracks[s.track]
			value := e.number("double_counter_value")
			if e.has("counter_value") {
				value = float64(e.int("counter_value"))
			}
			unit := cmp.Or(track.sub("counter").text("unit_name"), track.sub("counter").text("unit"))
			key := fmt.Sprintf("%s/%s [%s]", s.process, track.text("name"), unit)
			r.counters[key] = append(r.counters[key], value)
		default:
			return fmt.Errorf("type %q", e.enum("type"))
		}
	}
	for _, stack := range open {
		if len(stack) > 0 {
			return fmt.Errorf("%s, %s: %s never ends", stack[0].process, stack[0].lane, stack[0].name)
		}
	}
	return r.compareEnds()
}

// compareEnds says where a slice did not end when its span did: the span's own duration is not in the trace, but where a slice lies in
// another one that one must outlast it.
func (r *reader) compareEnds() error {
	for _, s := range r.slices {
		if s.end < s.at || s.parent != nil && s.end > s.parent.end {
			return fmt.Errorf("%s: %s from %d to %d lies in %v", s.process, s.name, s.at, s.end, s.parent)
		}
	}
	return nil
}

// mustJudge is judge for tests, with what holds of every trace besides: what lies in a slice is of it or of its descendant.
func mustJudge(t testing.TB, trace []byte) *judged {
	t.Helper()
	j, err := judge(trace)
	require.NoError(t, err)
	for _, s := range j.slices {
		if s.parent != nil && s.lane != "logs" {
			require.Equal(t, s.parent.args["span_id"], s.args["parent_id"], "%s lies in %s", s.name, s.parent.name)
		}
	}
	return j
}

func (j *judged) named(name string) (found []*judgedSlice) {
	for _, s := range j.slices {
		if s.name == name {
			found = append(found, s)
		}
	}
	return found
}

// notes are the notes on clocks by node, "" for the one of all.
func (j *judged) notes() map[string]*judgedSlice {
	found := map[string]*judgedSlice{}
	for _, s := range j.instants {
		if slices.Contains(s.categories, "clock") {
			node, _ := s.args["node"].(string)
			found[node] = s
		}
	}
	return found
}

// drawn is a slice as a line, for golden tables: lane, times, name.
func (s *judgedSlice) String() string {
	lane := cmp.Or(strings.TrimPrefix(s.lane, "spans, lane "), "?")
	if s.lane == "spans" {
		lane = "1"
	}
	return fmt.Sprintf("%s%s %s %d-%d", strings.Repeat("  ", s.depth), lane, s.name, s.at, s.end)
}
