// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"encoding/hex"
	"net/http"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// span is Weave's Span: what both endpoints read before they differ.
type span struct {
	pb         *tracepb.Span
	project    string
	run        string // of the wb_run_id header
	resource   map[string]any
	attributes map[string]any
	events     []any
	links      []any
}

// read is Weave's Span.from_proto. An error of status 0 rejects the span alone.
func (s *span) read() (err error) {
	if kind := s.pb.Kind; kind < 0 || kind > tracepb.Span_SPAN_KIND_CONSUMER {
		return fail(http.StatusBadRequest, "%d is not a valid SpanKind", kind)
	}
	if s.attributes, err = expand(s.pb.Attributes); err != nil {
		return err
	}
	for _, e := range s.pb.Events {
		attributes, err := expand(e.Attributes)
		if err != nil {
			return err
		}
		s.events = append(s.events, map[string]any{"name": e.Name, "timestamp": stamp(e.TimeUnixNano), "attributes": attributes})
	}
	for _, l := range s.pb.Links {
		attributes, err := expand(l.Attributes)
		if err != nil {
			return err
		}
		s.links = append(s.links, map[string]any{
			"trace_id": hex.EncodeToString(l.TraceId), "span_id": hex.EncodeToString(l.SpanId), "trace_state": l.TraceState, "attributes": attributes,
		})
	}
	if code := s.pb.GetStatus().GetCode(); code < 0 || code > tracepb.Status_STATUS_CODE_ERROR {
		return fail(http.StatusBadRequest, "%d is not a valid StatusCode", code)
	}
	return nil
}

// depth is the deepest of all that the span's dump holds.
func (s *span) depth() int {
	return max(depth(s.attributes), depth(s.resource), depth(s.events)-2, depth(s.links)-2)
}

// dump is the whole span, which Weave keeps beside what it made of it.
func (s *span) dump() map[string]any {
	return serializable(map[string]any{
		"name":       s.pb.Name,
		"context":    map[string]any{"trace_id": s.traceID(), "span_id": s.id(), "trace_state": s.pb.TraceState},
		"kind":       int64(s.pb.Kind),
		"parent_id":  s.parent(),
		"start_time": stamp(s.pb.StartTimeUnixNano),
		"end_time":   stamp(s.pb.EndTimeUnixNano),
		"status":     map[string]any{"code": int64(s.pb.GetStatus().GetCode()), "message": s.pb.GetStatus().GetMessage()},
		"attributes": s.attributes,
		"events":     s.events,
		"links":      s.links,
		"resource":   s.resource,
	}).(map[string]any)
}

func (s *span) id() string      { return hex.EncodeToString(s.pb.SpanId) }
func (s *span) traceID() string { return hex.EncodeToString(s.pb.TraceId) }

// parent is empty for a root. A parent of zeros is none.
func (s *span) parent() string {
	if zeros(s.pb.ParentSpanId) {
		return ""
	}
	return hex.EncodeToString(s.pb.ParentSpanId)
}

func zeros(id []byte) bool {
	for _, b := range id {
		if b != 0 {
			return false
		}
	}
	return true
}

// moment is a time as Weave keeps it, to the microsecond.
func moment(ns uint64) time.Time {
	return time.Unix(int64(ns/1e9), int64(ns%1e9)).UTC().Truncate(time.Microsecond)
}

func stamp(ns uint64) string { return moment(ns).Format("2006-01-02T15:04:05.999999") }

// route says which project a resource's spans go to; empty: none, they are dropped.
func route(attributes []*commonpb.KeyValue, header string) string {
	names := map[string]string{}
	for _, kv := range attributes {
		names[kv.Key] = kv.GetValue().GetStringValue()
	}
	if entity, project := names["wandb.entity"], names["wandb.project"]; entity != "" && project != "" {
		return entity + "/" + project
	}
	return header
}
