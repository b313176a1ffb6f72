// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package lens

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// span is what the SDK and the archive both know of one.
type span struct {
	Name, TraceID, SpanID, ParentID string
	Kind                            string // as OTLP has it, in lower case
	StartNS, EndNS                  int64
	Status, Message                 string // UNSET, OK or ERROR
	Attributes                      attributes
	Events                          []event
	Links                           []link
	Resource                        attributes
}

type event struct {
	Name       string
	TimeNS     int64
	Attributes attributes
}

type link struct {
	TraceID, SpanID string
	Attributes      attributes
}

// attributes are those of JSON text with numbers as int64 and float64. Python and lenscol write these with a point or an exponent.
type attributes map[string]any

func (a *attributes) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	m := map[string]any{}
	if err := decoder.Decode(&m); err != nil {
		return err
	}
	*a = typed(m).(map[string]any)
	return nil
}

func typed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = typed(v[k])
		}
	case []any:
		for i := range v {
			v[i] = typed(v[i])
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// line is a line of the archive, as docs/format.md has it.
type line struct {
	Type          string     `json:"type"`
	ID            int        `json:"id"`       // of a resource or scope
	OfResource    int        `json:"resource"` // of a scope
	OfScope       int        `json:"scope"`
	Name          string     `json:"name"`
	TraceID       string     `json:"trace_id"`
	SpanID        string     `json:"span_id"`
	ParentID      string     `json:"parent_id"`
	Kind          string     `json:"kind"`
	Status        string     `json:"status"`
	StatusMessage string     `json:"status_message"`
	StartNS       int64      `json:"start_ns"`
	DurationNS    int64      `json:"duration_ns"`
	Attributes    attributes `json:"attributes"`
	Events        []struct {
		Name       string     `json:"name"`
		TimeNS     int64      `json:"time_ns"`
		Attributes attributes `json:"attributes"`
	} `json:"events"`
	Links []struct {
		TraceID    string     `json:"trace_id"`
		SpanID     string     `json:"span_id"`
		Attributes attributes `json:"attributes"`
	} `json:"links"`

	Unit        string  `json:"unit"`
	Temporality string  `json:"temporality"`
	Monotonic   bool    `json:"monotonic"`
	Value       any     `json:"value"`
	Count       int     `json:"count"`
	Sum         float64 `json:"sum"`
	Min         float64 `json:"min"`
	Max         float64 `json:"max"`
	Buckets     []int   `json:"buckets"`
	Scale       *int    `json:"scale"`
	Body        any     `json:"body"`
	Severity    int     `json:"severity_number"`
	Run         string  `json:"run"`
	Rank        *int    `json:"rank"`
	Service     string  `json:"service"`

	Resource attributes `json:"-"` // attributes of its resource
}

// lines are the spans, points or records of a file of the archive, up to its last whole line; none where there is no file.
func lines(t *testing.T, file string) (items []line) {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	resources, scopes := map[int]attributes{}, map[int]line{}
	for text := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) {
		var l line
		decode(t, text, &l)
		switch l.Type {
		case "resource":
			resources[l.ID] = l.Attributes
		case "scope":
			l.Resource = resources[l.OfResource]
			scopes[l.ID] = l
		default:
			scope, ok := scopes[l.OfScope]
			require.True(t, ok, "no scope %d above: %s", l.OfScope, text)
			l.Resource = scope.Resource
			items = append(items, l)
		}
	}
	return items
}

func decode(t *testing.T, text []byte, to any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(to), "%s", text)
}

func (l line) span() span {
	s := span{
		Name: l.Name, TraceID: l.TraceID, SpanID: l.SpanID, ParentID: l.ParentID, Kind: cmp.Or(l.Kind, "internal"),
		StartNS: l.StartNS, EndNS: l.StartNS + l.DurationNS, Status: cmp.Or(l.Status, "UNSET"), Message: l.StatusMessage,
		Attributes: orEmpty(l.Attributes), Resource: l.Resource,
	}
	for _, e := range l.Events {
		s.Events = append(s.Events, event{e.Name, e.TimeNS, orEmpty(e.Attributes)})
	}
	for _, l := range l.Links {
		s.Links = append(s.Links, link{l.TraceID, l.SpanID, orEmpty(l.Attributes)})
	}
	return s
}

func orEmpty(a attributes) attributes {
	if a == nil {
		return attributes{}
	}
	return a
}

// archived are the spans, points or records that a collector has written so far.
func archived(t *testing.T, c *testbed.Collector, signal string) []line {
	t.Helper()
	return lines(t, filepath.Join(c.Dir, "lens-data", signal+".jsonl"))
}

func spans(t *testing.T, c *testbed.Collector) (spans []span) {
	t.Helper()
	for _, l := range archived(t, c, "traces") {
		spans = append(spans, l.span())
	}
	return spans
}

// made are the spans that have ended in a process and its children, as the SDK says.
func (p *process) made() (spans []span) {
	p.t.Helper()
	for text := range strings.Lines(p.read(p.witness)) {
		var w struct {
			Span struct {
				Name    string
				Context ids
				Kind    string
				Parent  string `json:"parent_id"`
				Status  struct {
					Code        string `json:"status_code"`
					Description string
				}
				Attributes attributes
				Events     []struct {
					Name       string
					Attributes attributes
				}
				Links []struct {
					Context    ids
					Attributes attributes
				}
				Resource struct{ Attributes attributes }
			}
			Times struct {
				StartNS  int64   `json:"start_ns"`
				EndNS    int64   `json:"end_ns"`
				EventsNS []int64 `json:"events_ns"`
			}
		}
		decode(p.t, []byte(text), &w)
		s := span{
			Name: w.Span.Name, TraceID: hex(w.Span.Context.TraceID), SpanID: hex(w.Span.Context.SpanID), ParentID: hex(w.Span.Parent),
			Kind: strings.ToLower(strings.TrimPrefix(w.Span.Kind, "SpanKind.")), StartNS: w.Times.StartNS, EndNS: w.Times.EndNS,
			Status: w.Span.Status.Code, Message: w.Span.Status.Description, Attributes: w.Span.Attributes, Resource: w.Span.Resource.Attributes,
		}
		for i, e := range w.Span.Events {
			s.Events = append(s.Events, event{e.Name, w.Times.EventsNS[i], e.Attributes})
		}
		for _, l := range w.Span.Links {
			s.Links = append(s.Links, link{hex(l.Context.TraceID), hex(l.Context.SpanID), l.Attributes})
		}
		spans = append(spans, s)
	}
	return spans
}

type ids struct {
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`
}

func hex(id string) string { return strings.TrimPrefix(id, "0x") }

// requireSame fails unless both are the same spans, in any order.
func requireSame(t *testing.T, want, got []span) {
	t.Helper()
	require.Equal(t, names(want), names(got))
	byID := func(a, b span) int { return strings.Compare(a.TraceID+a.SpanID, b.TraceID+b.SpanID) }
	want, got = slices.SortedFunc(slices.Values(want), byID), slices.SortedFunc(slices.Values(got), byID)
	for i := range want {
		require.Equal(t, want[i], got[i], want[i].Name)
	}
}

// names are those of spans, sorted.
func names(spans []span) (names []string) {
	for _, s := range spans {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// one is the only span of that name.
func one(t *testing.T, spans []span, name string) span {
	t.Helper()
	found := named(spans, name)
	require.Len(t, found, 1, name)
	return found[0]
}

func named(spans []span, name string) (found []span) {
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}
