// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/runview"
)

// notice is what a walk sees on its way for those who look at the runs (runview): which spans may be steps, and how many
// items are errors.
type notice struct {
	report *runview.Report // nil where nobody looks
	signal ranks.Signal
	spans  []spanAt // that may be steps, to be read when the walk has found all of them good
	errors int
	item   int  // the last one with a code, counted from 1
	failed bool // that is an error
}

// spanAt is where a span stands, and whether it is all plain.
type spanAt struct {
	start, end int
	plain      bool
}

// shortestStep is less than a span takes that is a step: a name, and an attribute with its number. So what is kept of a request
// is no larger than that.
const shortestStep = len("rl.x.step") + len("rl.step") + 10

// watch begins anew.
func (n *notice) watch(report *runview.Report, signal ranks.Signal) {
	*n = notice{report: report, signal: signal, spans: n.spans[:0]}
}

// code takes the status code of a span or the severity of a record. Of several the last holds.
func (n *notice) code(item int, code uint64) {
	if n.failed && item == n.item {
		n.errors--
	}
	n.item, n.failed = item, isError(n.signal, code)
	if n.failed {
		n.errors++
	}
}

// isError reports whether an item counts as an error: a span's status code, a record's severity.
func isError(signal ranks.Signal, code uint64) bool {
	if signal == ranks.Traces {
		return ptrace.StatusCode(code) == ptrace.StatusCodeError
	}
	return plog.SeverityNumber(code) >= plog.SeverityNumberError
}

// steps reports the steps among the spans that may be some.
func (w *walker) steps(buf []byte) {
	for _, at := range w.notice.spans {
		span := buf[at.start:at.end]
		step, ok := stepOf(span)
		if !ok {
			continue
		}
		w.notice.report.Step(step)
		if at.plain {
			w.forms.of(len(span)).learn(span)
		}
	}
}

// stepOf reads a span as runview.StepOf does, from bytes that the walker has found good.
func stepOf(span []byte) (step runview.Step, ok bool) {
	var name []byte
	var n runview.StepNumber
	for pos := 0; pos < len(span); {
		number, content, next := fieldAt(span, pos)
		switch number {
		case fieldSpanName:
			name = span[content:next]
		case fieldSpanStart:
			step.Start = binary.LittleEndian.Uint64(span[content:])
		case fieldSpanEnd:
			step.End = binary.LittleEndian.Uint64(span[content:])
		case fieldSpanAttribute:
			takeAttribute(&n, span[content:next])
		}
		pos = next
	}
	step.Number, ok = n.Number()
	return step, ok && runview.IsStep(name)
}

// takeAttribute reads any attribute: a key and a value, the last where there are several.
func takeAttribute(n *runview.StepNumber, kv []byte) {
	var key []byte
	var kind int32
	var value uint64
	for pos := 0; pos < len(kv); {
		number, content, next := fieldAt(kv, pos)
		switch number {
		case fieldKey:
			key = kv[content:next]
		case fieldValue: // It comes in pieces too.
			for pos := content; pos < next; {
				of, at, behind := fieldAt(kv[:next], pos)
				switch of {
				case fieldInt:
					value, _, _ = readVarint(kv, at)
				case fieldDouble:
					value = binary.LittleEndian.Uint64(kv[at:])
				}
				if of <= fieldsValue {
					kind = of
				}
				pos = behind
			}
		}
		pos = next
	}
	i := runview.StepKey(key)
	if i == runview.NoKey {
		return
	}
	switch kind {
	case fieldInt:
		n.Int(i, int64(value))
	case fieldDouble:
		n.Double(i, math.Float64frombits(value))
	default:
		n.Other(i)
	}
}
