// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// clamped makes kind, status code and end of s what OTLP knows, and keeps what they were as attributes. changed tells whether it did anything.
func (s *span) clamped(n *Counts) (changed bool) {
	if s.kind < ptrace.SpanKindUnspecified || s.kind > ptrace.SpanKindConsumer {
		n[SpanKind]++
		s.attrs = append(s.attrs, integer(originalPrefix+"span.kind", int64(s.kind)))
		s.kind, changed = ptrace.SpanKindUnspecified, true
	}
	if s.code < ptrace.StatusCodeUnset || s.code > ptrace.StatusCodeError {
		n[StatusCode]++
		s.attrs = append(s.attrs, integer(originalPrefix+"status.code", int64(s.code)))
		s.code, changed = ptrace.StatusCodeUnset, true
	}
	if s.end < s.start {
		n[Timestamp]++
		s.attrs = append(s.attrs, timestamp(originalPrefix+"end_time_unix_nano", s.end))
		s.end, changed = s.start, true
	}
	return changed
}

// unexplained is the message of an error that says none.
const unexplained = "error"

// explained gives an error without a message that of its last exception: Weave shows an error without a message as a success.
func (s *span) explained(n *Counts) {
	if s.code != ptrace.StatusCodeError || s.message != "" {
		return
	}
	n[StatusMessage]++
	s.message = unexplained
	for _, e := range s.events {
		for _, key := range []string{semconv.ExceptionType, semconv.ExceptionMessage} {
			if i := findMoved(e.attrs, key); e.name == semconv.ExceptionEvent && i >= 0 && asText(e.attrs[i].val) != "" {
				s.message = asText(e.attrs[i].val)
			}
		}
	}
}

// timestamp is a text where an integer of OTLP is too small.
func timestamp(key string, t pcommon.Timestamp) attr {
	if t > math.MaxInt64 {
		return text(key, strconv.FormatUint(uint64(t), 10))
	}
	return integer(key, int64(t))
}
