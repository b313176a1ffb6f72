// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// clampSpans sets the end of every span that ends before it starts to its start, and writes down what the sender said, as NeMo
// Lens does with its own. A span without an end is not over yet and stays. It returns how many were clamped.
func clampSpans(rs ptrace.ResourceSpans) (n int64) {
	for i := range rs.ScopeSpans().Len() {
		spans := rs.ScopeSpans().At(i).Spans()
		for j := range spans.Len() {
			span := spans.At(j)
			start, end := span.StartTimestamp(), span.EndTimestamp()
			if end >= start || end == 0 {
				continue
			}
			attrs := span.Attributes()
			attrs.EnsureCapacity(attrs.Len() + 4)
			attrs.PutStr(semconv.InvertedSkew, "true")
			attrs.PutStr(semconv.InvertedStartSeconds, seconds(start))
			attrs.PutStr(semconv.InvertedEndSeconds, seconds(end))
			attrs.PutStr(semconv.InvertedDeltaSeconds, seconds(start-end))
			span.SetEndTimestamp(start)
			n++
		}
	}
	return n
}

// seconds writes nanoseconds as seconds, exactly: all nine digits behind the point.
func seconds(t pcommon.Timestamp) string {
	const second = 1_000_000_000
	text := strconv.AppendUint(make([]byte, 0, 24), uint64(t)/second, 10)
	nanos := strconv.AppendUint(make([]byte, 0, 10), second+uint64(t)%second, 10)
	nanos[0] = '.'
	return string(append(text, nanos...))
}
