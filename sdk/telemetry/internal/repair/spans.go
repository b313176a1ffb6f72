// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package repair // import "github.com/lenscol/lenscol/sdk/telemetry/internal/repair"

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Spans are batch in UTF-8, all but their resource.
func Spans(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	batch, _ = list(batch, mendSpan)
	return batch
}

// span is one with what was bad in it mended.
type span struct {
	sdktrace.ReadOnlySpan
	name       string
	attributes []attribute.KeyValue
	events     []sdktrace.Event
	links      []sdktrace.Link
	status     sdktrace.Status
	scope      instrumentation.Scope
}

func (s *span) Name() string                                { return s.name }
func (s *span) Attributes() []attribute.KeyValue            { return s.attributes }
func (s *span) Events() []sdktrace.Event                    { return s.events }
func (s *span) Links() []sdktrace.Link                      { return s.links }
func (s *span) Status() sdktrace.Status                     { return s.status }
func (s *span) InstrumentationScope() instrumentation.Scope { return s.scope }

// InstrumentationLibrary is InstrumentationScope under its old name.
func (s *span) InstrumentationLibrary() instrumentation.Scope { return s.scope }

func mendSpan(in sdktrace.ReadOnlySpan) (mended sdktrace.ReadOnlySpan, bad bool) {
	name, badName := Text(in.Name())
	attributes, badAttributes := Attributes(in.Attributes())
	events, badEvents := list(in.Events(), event)
	links, badLinks := list(in.Links(), link)
	status := in.Status()
	description, badStatus := Text(status.Description)
	scope, badScope := scope(in.InstrumentationScope())
	if !badName && !badAttributes && !badEvents && !badLinks && !badStatus && !badScope {
		return in, false
	}
	status.Description = description
	return &span{in, name, attributes, events, links, status, scope}, true
}

func event(e sdktrace.Event) (mended sdktrace.Event, bad bool) {
	name, badName := Text(e.Name)
	attributes, badAttributes := Attributes(e.Attributes)
	e.Name, e.Attributes = name, attributes
	return e, badName || badAttributes
}

func link(l sdktrace.Link) (mended sdktrace.Link, bad bool) {
	l.Attributes, bad = Attributes(l.Attributes)
	return l, bad
}
