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
	on     bool
	signal ranks.Signal
	spans  []spanAt // that may be steps
	errors int
	item   int  // the last one with a code, counted from 1
	failed bool // that is an error
}

// spanAt is where a span stands, and its name in it: -1 where that is not known.
type spanAt struct{ start, end, name int }

// shortestStep is less than a span takes that is a step: a name, and an attribute with its number. So what is kept of a request
// is no larger than that.
const shortestStep = len("rl.x.step") + len("rl.step") + 10

// watch begins anew.
func (n *notice) watch(on bool, signal ranks.Signal) {
	*n = notice{on: on, signal: signal, spans: n.spans[:0]}
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

// stepAt reads a span that may be a step.
func stepAt(buf []byte, at spanAt) (step runview.Step, ok bool) {
	span := buf[at.start:at.end]
	if at.name >= 0 {
		if !runview.IsStep(span[at.name+2:][:span[at.name+1]]) {
			return step, false
		}
		if step, ok = plainStep(span, at.name); ok {
			return step, step.Number >= 0
		}
	}
	return stepOf(span)
}

// plainStep reads a step span that is all plain and has its name there, if its fields stand in rising order, as SDKs write
// them, or in falling order, as pdata does. It is false for others. Number is -1 where the span has none.
func plainStep(span []byte, name int) (step runview.Step, ok bool) {
	const start, end = fieldSpanStart<<3 | wireFixed64, fieldSpanEnd<<3 | wireFixed64
	var n runview.StepNumber
	behind := name + 2 + int(span[name+1])
	if areIDs(span[:name]) {
		at := skipKind(span, behind)
		if at+18 > len(span) || span[at] != start || span[at+9] != end {
			return step, false
		}
		step.Start, step.End = binary.LittleEndian.Uint64(span[at+1:]), binary.LittleEndian.Uint64(span[at+10:])
		ok = skipEmpty(span, takeAttributes(&n, span, at+18)) == len(span)
	} else if areIDs(span[behind:]) {
		at := takeAttributes(&n, span, skipEmpty(span, 0))
		if at+18 > name || span[at] != end || span[at+9] != start {
			return step, false
		}
		step.End, step.Start = binary.LittleEndian.Uint64(span[at+1:]), binary.LittleEndian.Uint64(span[at+10:])
		ok = skipKind(span, at+18) == name
	}
	step.Number = -1
	if number, has := n.Number(); has {
		step.Number = number
	}
	return step, ok
}

// areIDs reports whether those fields are the ids of trace, span and parent, in either order.
func areIDs(fields []byte) bool {
	const trace, span, parent = 1<<3 | wireLen, 2<<3 | wireLen, 4<<3 | wireLen
	return len(fields) == 38 && (fields[0] == trace && fields[18] == span && fields[28] == parent || fields[0] == parent && fields[10] == span && fields[20] == trace)
}

// skipKind skips a kind at a place.
func skipKind(span []byte, at int) int {
	if at < len(span) && span[at] == 6<<3|wireVarint {
		return at + 2
	}
	return at
}

// skipEmpty skips an empty status and flags.
func skipEmpty(span []byte, at int) int {
	for at < len(span) {
		switch span[at] {
		case fieldSpanStatus<<3 | wireLen:
			at += 2
		case 16<<3&0x7f | 0x80 | wireFixed32:
			at += 6
		default:
			return at
		}
	}
	return at
}

// takeAttributes reads attributes from a place on, and returns where they end.
func takeAttributes(n *runview.StepNumber, span []byte, at int) int {
	for at < len(span) && span[at] == fieldSpanAttribute<<3|wireLen {
		next := at + 2 + int(span[at+1])
		takePlain(n, span[at+2:next])
		at = next
	}
	return at
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

// takePlain reads an attribute that isPlain.
func takePlain(n *runview.StepNumber, kv []byte) {
	second := 2 + int(kv[1])
	key, value := kv[2:second], kv[second+2:]
	if kv[0] != fieldKey<<3|wireLen {
		key, value = value, key
	}
	i := runview.StepKey(key)
	if i == runview.NoKey {
		return
	}
	switch value[0] {
	case fieldInt<<3 | wireVarint:
		number, _, _ := readVarint(value, 1)
		n.Int(i, int64(number))
	case fieldDouble<<3 | wireFixed64:
		n.Double(i, math.Float64frombits(binary.LittleEndian.Uint64(value[1:])))
	default:
		n.Other(i)
	}
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
