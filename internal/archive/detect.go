// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"bytes"
	"errors"

	"github.com/go-faster/jx"
)

// Layout is how telemetry is written as JSON, or that it is protobuf.
type Layout string

// The layouts that are read.
const (
	LayoutNone       Layout = ""           // no telemetry
	LayoutCompact    Layout = "compact"    // docs/format.md
	LayoutConsole    Layout = "console"    // NeMo Lens's console exporter, one object a line or indented
	LayoutOTLPJSON   Layout = "otlp_json"  // an OTLP/JSON request
	LayoutSpanRecord Layout = "span"       // a span as a hand-written exporter writes it: flat, with *_unix_nano
	LayoutOTLPProto  Layout = "otlp_proto" // an OTLP request as protobuf, behind its length
)

// errDecided ends the walk over an object's keys.
var errDecided = errors.New("decided")

// detect tells what an object is by its own keys, and no deeper: an object that only resembles telemetry is an application's.
func detect(object []byte) Layout {
	layout, seen := LayoutNone, key(0)
	d := jx.DecodeBytes(object)
	err := d.ObjBytes(func(d *jx.Decoder, name []byte) error {
		switch string(name) {
		case "resourceSpans", "resourceMetrics", "resourceLogs", "resource_spans", "resource_logs":
			if d.Next() == jx.Array {
				layout = LayoutOTLPJSON
				return errDecided
			}
		case "resource_metrics":
			if d.Next() == jx.Array {
				layout = LayoutConsole
				return errDecided
			}
		case "type":
			if d.Next() == jx.String {
				switch text, err := d.StrBytes(); {
				case err != nil:
					return err
				case isCompact(string(text)) && hasCompactKey(object):
					layout = LayoutCompact
					return errDecided
				}
				return nil
			}
		default:
			seen |= keys[string(name)] & typed(d.Next())
		}
		if layout = seen.layout(); layout != LayoutNone {
			return errDecided
		}
		return d.Skip()
	})
	if err != nil && !errors.Is(err, errDecided) {
		return LayoutNone
	}
	return layout
}

func isCompact(typ string) bool {
	switch typ {
	case "span", "metric", "log", "scope", "resource":
		return true
	default:
		return false
	}
}

// key is a set of keys that together make a layout.
type key uint16

const (
	keyName key = 1 << iota
	keyContext
	keyStartTime
	keyBody
	keySeverity
	keyObserved
	keyTraceID
	keySpanID
	keyStartNano
	keyEndNano

	consoleSpan = keyName | keyContext | keyStartTime
	consoleLog  = keyBody | keySeverity | keyObserved
	spanRecord  = keyName | keyTraceID | keySpanID | keyStartNano | keyEndNano
)

var keys = map[string]key{
	"name": keyName, "context": keyContext, "start_time": keyStartTime,
	"body": keyBody, "severity_number": keySeverity, "observed_timestamp": keyObserved,
	"trace_id": keyTraceID, "span_id": keySpanID, "start_time_unix_nano": keyStartNano, "end_time_unix_nano": keyEndNano,
}

// typed are the keys whose value may be of that type.
func typed(t jx.Type) key {
	switch t {
	case jx.Object:
		return keyContext | keyBody
	case jx.String:
		return keyName | keyStartTime | keyBody | keySeverity | keyObserved | keyTraceID | keySpanID | keyStartNano | keyEndNano
	case jx.Number:
		return keyBody | keySeverity | keyStartNano | keyEndNano
	case jx.Null:
		return keyBody | keySeverity | keyObserved | keyStartTime | keyEndNano
	default:
		return keyBody
	}
}

func (k key) layout() Layout {
	switch {
	case k&consoleSpan == consoleSpan, k&consoleLog == consoleLog:
		return LayoutConsole
	case k&spanRecord == spanRecord:
		return LayoutSpanRecord
	default:
		return LayoutNone
	}
}

// compactHeads are the beginnings of the lines that the jsonl exporter writes; only these are recognised without a look at the rest.
var compactHeads = [][]byte{
	[]byte(`{"type":"span"`), []byte(`{"type":"metric"`), []byte(`{"type":"log"`), []byte(`{"type":"scope"`), []byte(`{"type":"resource"`),
}

func beginsCompact(line []byte) bool {
	for _, head := range compactHeads {
		if bytes.HasPrefix(line, head) {
			return true
		}
	}
	return false
}

// hasCompactKey tells whether a key may be there that the lines of the compact layout never lack.
func hasCompactKey(line []byte) bool {
	return bytes.Contains(line, []byte(`_ns"`)) || bytes.Contains(line, []byte(`"id"`))
}

// telemetryHeads are the beginnings of objects that can stand behind other text in one line: a progress bar ends without a newline. A line
// that begins with one and is no whole object is damaged telemetry, no application's line.
var telemetryHeads = [][]byte{
	[]byte(`{"name": "`), []byte(`{"resource_metrics": [`), []byte(`{"body": `), []byte(`{"name":"`),
	[]byte(`{"resourceSpans":[`), []byte(`{"resourceMetrics":[`), []byte(`{"resourceLogs":[`),
}

// nextHead is the offset of the first such beginning in a line from an offset on, or -1.
func nextHead(line []byte, from int) int {
	first := -1
	for _, head := range telemetryHeads {
		if i := bytes.Index(line[from:], head); i >= 0 && (first < 0 || from+i < first) {
			first = from + i
		}
	}
	return first
}

// maxJSONDepth bounds the objects and arrays in each other of what is decoded as telemetry. An attribute of OTLP/JSON takes up to
// six a level, and the compact layout keeps 64 levels.
const maxJSONDepth = 512

// objectScan finds the end of an object that may be given in parts.
type objectScan struct {
	depth             int
	inString, escaped bool
	bare              bool // NaN or Infinity stands outside of strings, as Python writes them
	deep              bool // beyond maxJSONDepth
}

// end is the offset behind the object's last brace, or -1 where it is not in b.
func (s *objectScan) end(b []byte) int {
	for i := 0; i < len(b); i++ {
		c := b[i]
		if s.inString {
			switch {
			case s.escaped:
				s.escaped = false
			case c == '\\':
				s.escaped = true
			case c == '"':
				s.inString = false
			}
			continue
		}
		switch c {
		case '"':
			s.inString = true
		case '{', '[':
			s.depth++
			s.deep = s.deep || s.depth > maxJSONDepth
		case '}', ']':
			if s.depth--; s.depth <= 0 {
				return i + 1
			}
		case 'N', 'I':
			s.bare = true
		}
	}
	return -1
}

// quoteBare writes Python's NaN, Infinity and -Infinity as the compact layout does.
func quoteBare(object []byte) []byte {
	out := make([]byte, 0, len(object)+64)
	inString := false
	for i := 0; i < len(object); {
		rest := object[i:]
		c := rest[0]
		switch {
		case inString && c == '\\' && len(rest) > 1:
			out = append(out, c, rest[1])
			i += 2
			continue
		case c == '"':
			inString = !inString
		case !inString:
			if name := bareNumber(rest); name != "" {
				out = append(append(append(out, `{"@double":"`...), name...), `"}`...)
				i += len(name)
				continue
			}
		}
		out = append(out, c)
		i++
	}
	return out
}

func bareNumber(b []byte) string {
	for _, name := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if len(b) >= len(name) && string(b[:len(name)]) == name {
			return name
		}
	}
	return ""
}
