// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Encoder writes telemetry as the exporter does, for tools that write such files themselves: the lines of one file, with every
// scope and resource line that they need before them. It is not safe for concurrent use.
type Encoder struct {
	layout    layout
	chunk     chunk
	scopes    map[*scope]struct{}    // whose lines were written
	resources map[*resource]struct{} // likewise
}

// maxDefined bounds what an encoder remembers as defined. Beyond it definitions are written again, which is allowed.
const maxDefined = 1 << 16

// NewEncoder returns an encoder for one file. Its error names the layout or the resource mode that there is not.
func NewEncoder(l Layout, mode ResourceMode) (*Encoder, error) {
	cfg := createDefaultConfig().(*Config)
	cfg.Layout, cfg.Resource = l, mode
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Encoder{layout: cfg.newLayout(), scopes: map[*scope]struct{}{}, resources: map[*resource]struct{}{}}, nil
}

// AppendTraces appends the lines of spans to dst.
func (e *Encoder) AppendTraces(dst []byte, td ptrace.Traces) []byte {
	for _, rs := range td.ResourceSpans().All() {
		e.layout.addSpans(&e.chunk, rs)
	}
	return e.take(dst)
}

// AppendMetrics appends the lines of metric points to dst.
func (e *Encoder) AppendMetrics(dst []byte, md pmetric.Metrics) []byte {
	for _, rm := range md.ResourceMetrics().All() {
		e.layout.addMetrics(&e.chunk, rm)
	}
	return e.take(dst)
}

// AppendLogs appends the lines of log records to dst.
func (e *Encoder) AppendLogs(dst []byte, ld plog.Logs) []byte {
	for _, rl := range ld.ResourceLogs().All() {
		e.layout.addLogs(&e.chunk, rl)
	}
	return e.take(dst)
}

// Changed is how many values could not be written as they came: texts that were repaired, lists and maps that were cut.
func (e *Encoder) Changed() (repaired, cut int) { return e.chunk.repaired, e.chunk.cut }

func (e *Encoder) take(dst []byte) []byte {
	c, start := &e.chunk, 0
	for _, p := range c.parts {
		if p.scope != nil {
			dst = e.define(dst, p.scope)
		}
		dst = append(dst, c.buf[start:p.end]...)
		start = p.end
	}
	clear(c.parts)
	c.buf, c.parts, c.items = c.buf[:0], c.parts[:0], 0
	return dst
}

func (e *Encoder) define(dst []byte, s *scope) []byte {
	if _, ok := e.scopes[s]; ok || s.line == nil {
		return dst
	}
	if len(e.scopes) >= maxDefined {
		clear(e.scopes)
		clear(e.resources)
	}
	if _, ok := e.resources[s.resource]; !ok {
		dst = append(dst, s.resource.line...)
		e.resources[s.resource] = struct{}{}
	}
	e.scopes[s] = struct{}{}
	return append(dst, s.line...)
}
