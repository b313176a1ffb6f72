// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate

import (
	"encoding/binary"
	"slices"
	"strings"
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
		w.check(t, ranks.Traces, ofRank(appendField(nil, fieldItem, span)))
		// Its form is looked up by the size modulo 8.
		w.check(t, ranks.Traces, ofRank(appendField(nil, fieldItem, append(slices.Clone(span), "\xff\xff\xff\xff\xff\xff\xff\xff"...))))
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

// A form is of steps that have all that it reads; where a span says a thing twice, it reads the one that holds.
func TestWhichStepsHaveAForm(t *testing.T) {
	twice := appendField(nil, fieldSpanAttribute, slices.Concat(
		appendField(nil, fieldKey, []byte("rl.step")), appendField(nil, fieldValue, []byte{fieldInt << 3, 9})))
	for _, test := range []struct {
		name   string
		set    func(s ptrace.Span)
		more   []byte
		walked int
	}{
		{"all of it", func(ptrace.Span) {}, nil, 0},
		{"number twice", func(ptrace.Span) {}, twice, 0},
		{"no start", func(s ptrace.Span) { s.SetStartTimestamp(0) }, nil, 1},
		{"no end", func(s ptrace.Span) { s.SetEndTimestamp(0) }, nil, 1},
		{"number with a fraction", func(s ptrace.Span) { s.Attributes().PutDouble("rl.step", 7) }, nil, 1},
		{"text before the number", func(s ptrace.Span) { s.Attributes().PutStr("dl.iteration", "1") }, nil, 1},
		{"bool before the number", func(s ptrace.Span) { s.Attributes().PutBool("dl.iteration", true) }, nil, 1},
		{"long", func(s ptrace.Span) {
			for _, key := range []string{"a", "b", "c"} {
				s.Attributes().PutStr(key, strings.Repeat("x", 100))
			}
		}, nil, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			span := append(protoStep(t, test.set), test.more...)
			request := ofRank(appendField(nil, fieldItem, span))
			w := newWatched(t, dropAll)
			w.check(t, ranks.Traces, request)
			w.check(t, ranks.Traces, request)

			var alone walker
			report := runview.NewReport()
			defer report.Release()
			for _, walked := range []int{1, test.walked} {
				alone.notice.watch(report, ranks.Traces)
				scope := appendField(nil, fieldItem, span)
				_, ok := alone.walk(mScopeSpans, scope, false)
				require.True(t, ok)
				require.Len(t, alone.notice.spans, walked)
				alone.steps(scope)
			}
		})
	}
}

// Of a step that comes twice the model takes the last: one of a known form must not pass one that has to be walked.
func TestStepsOfAKnownFormKeepTheirPlace(t *testing.T) {
	w := newWatched(t, dropAll)
	step := func(number int64, seconds int) []byte {
		return appendField(nil, fieldItem, protoStep(t, func(s ptrace.Span) {
			s.Attributes().PutInt("rl.step", number)
			s.SetEndTimestamp(pcommon.Timestamp(seconds * 1e9))
		}))
	}
	walked := appendField(nil, fieldItem, protoStep(t, func(s ptrace.Span) { s.Status().SetMessage("has a status, so is not plain") }))
	w.check(t, ranks.Traces, ofRank(step(6, 2)))
	w.check(t, ranks.Traces, ofRank(append(walked, step(7, 3)...)))
}

// protoStep is step 7 of a rank, or what set makes of it, with its fields in the order of their numbers, as protobuf's own encoders write them.
func protoStep(t testing.TB, set func(s ptrace.Span)) []byte {
	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName("rl.grpo.step")
	s.SetTraceID(pcommon.TraceID{15: 1})
	s.SetSpanID(pcommon.SpanID{2})
	s.SetStartTimestamp(1)
	s.SetEndTimestamp(2e9)
	s.Attributes().PutInt("rl.step", 7)
	set(s)
	return spansIn(inOrder(t, td))[0]
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
				if spans.number == fieldItem {
					items = append(items, spans.content)
				}
			}
		}
	}
	return items
}

// FuzzForm: the second span may have the form of the first one.
func FuzzForm(f *testing.F) {
	_, span := stepScope(f)
	f.Add(span, span)
	if large := spansIn(largeSteps(f)); len(large) > 1 {
		f.Add(large[0], large[1])
	}
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
