// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/runview"
)

// stepScope is a scope of perStep's first rank, and stepSpan its first step.
func stepScope(t testing.TB) (scope, stepSpan []byte) {
	body, _ := perStep(t, 0)
	for resources := (fields{rest: body}); resources.next(); {
		for f := (fields{rest: resources.content}); f.next(); {
			if f.number != fieldScope {
				continue
			}
			for spans := (fields{rest: f.content}); spans.next(); {
				if spans.number == fieldItem {
					if _, ok := stepOf(spans.content); ok {
						return f.content, spans.content
					}
				}
			}
		}
	}
	require.Fail(t, "no step")
	return nil, nil
}

// A span of a known form is read without a walk, and says the same.
func TestStepsOfAKnownForm(t *testing.T) {
	scope, _ := stepScope(t)
	var w walker
	report := runview.NewReport()
	defer report.Release()
	for _, walked := range []int{5, 0} {
		w.notice.watch(report, ranks.Traces)
		items, ok := w.walk(mScopeSpans, scope, false)
		require.True(t, ok)
		require.Equal(t, 60, items)
		require.Len(t, w.notice.spans, walked)
		w.steps(scope)
	}
}

// What differs from a known form in any byte is what pdata takes it for: a step of other times and another number, none, or a
// request to be refused.
func TestStepsOfAlmostAKnownForm(t *testing.T) {
	_, span := stepScope(t)
	spans := append(spansIn(largeSteps(t)), span)
	for i, body := range stepRequests(t) {
		if i%60 == 0 {
			spans = append(spans, spansIn(body)...)
		}
	}
	now := uint64(1e18)
	refused, steps := 0, 0
	flips := []byte{0, 1, 0x80, 0x2a ^ 0x4a}
	for i, span := range spans {
		w := newWatched(t, dropAll)
		for at := range span {
			for j, bits := range flips {
				if i > 2 && (at+i)%len(flips) != j { // one for each byte is enough
					continue
				}
				other := slices.Clone(span)
				now += 1e9 // What was seen before would change nothing.
				setTimes(other, now)
				other[at] ^= bits
				w.check(t, ranks.Traces, ofRank(appendField(nil, fieldItem, span))) // It may have been driven out.
				request := ofRank(appendField(nil, fieldItem, other))
				w.check(t, ranks.Traces, request)
				if _, err := decode(ranks.Traces, request); err != nil {
					refused++
				} else if _, ok := stepOf(other); ok {
					steps++
				}
			}
		}
	}
	require.Greater(t, refused, 1000)
	require.Greater(t, steps, 1000)
}

// largeSteps is a request of two spans: of the last step that can be, as pdata writes it, and of one of two numbers.
func largeSteps(t testing.TB) []byte {
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for _, keys := range [][]string{{"rl.step"}, {"rl.step", "dl.iteration"}} {
		s := spans.AppendEmpty()
		s.SetName("rl.grpo.step")
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{2})
		s.SetParentSpanID(pcommon.SpanID{3})
		s.SetStartTimestamp(1)
		s.SetEndTimestamp(2)
		for i, key := range keys {
			s.Attributes().PutInt(key, runview.MaxStep>>i)
		}
	}
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	return body
}

// setTimes has a step start then, and take half a second.
func setTimes(span []byte, start uint64) {
	for pos := 0; pos < len(span); {
		number, content, next := fieldAt(span, pos)
		switch number {
		case fieldSpanStart:
			binary.LittleEndian.PutUint64(span[content:], start)
		case fieldSpanEnd:
			binary.LittleEndian.PutUint64(span[content:], start+5e8)
		}
		pos = next
	}
}

func spansIn(body []byte) (items [][]byte) {
	for resources := (fields{rest: body}); resources.next(); {
		for f := (fields{rest: resources.content}); f.next(); {
			for spans := (fields{rest: f.content}); f.number == fieldScope && spans.next(); {
				items = append(items, spans.content)
			}
		}
	}
	return items
}

// FuzzForm: the second span may have the form of the first one.
func FuzzForm(f *testing.F) {
	_, span := stepScope(f)
	f.Add(span, span)
	f.Add([]byte{'0'}, []byte{})
	for i, body := range stepRequests(f) {
		if items := spansIn(body); i%300 == 0 {
			f.Add(items[0], items[0])
		}
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		w := newWatched(t, dropAll)
		for _, span := range [][]byte{first, second, first} {
			w.check(t, ranks.Traces, ofRank(appendField(nil, fieldItem, span)))
		}
	})
}
