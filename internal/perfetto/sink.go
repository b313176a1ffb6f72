// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// sink writes one format of traces. Times are nanoseconds since 1970. What is given of a track stands in the order of time; of one
// time, in the order in which it nests. Errors of writing stay, and show in err.
type sink interface {
	begin(first int64, clocks Clocks)
	process(p *process)
	lane(t *track)          // before anything on it
	counterTrack(s *series) // likewise
	slice(t *track, at, end int64, s *slice)
	end(t *track, at int64)
	instant(t *track, at int64, s *slice)
	count(s *series, at int64, value float64, whole int64, isWhole bool)
	finish()
	err() error
}

// track is a line of the trace: a lane of slices, the log of a process, or a counter.
type track struct {
	kind    trackKind
	process *process
	id      uint64 // of its kind; of a lane, the thread's number
	name    string
	rank    int32 // its place among the lanes of its process
}

type trackKind uint64

const (
	trackProcess trackKind = iota
	trackLane
	trackCounter
	trackNotes
)

// uuid is never 0, and differs between all tracks.
func (t *track) uuid() uint64 { return uint64(t.kind)<<48 | t.id }

func (t *Trace) newTrack(kind trackKind, p *process) *track {
	t.tracks++
	return &track{kind: kind, process: p, id: t.tracks}
}

// slice is what is drawn of a span, an event or a log record. The sink must not keep it.
type slice struct {
	name       string
	categories []string
	args       []arg
	from, to   []uint64 // flows that begin and end here
}

// arg is one detail: value is a text, an int64, a bool or a pcommon.Value.
type arg struct {
	key   string
	value any
}

const (
	maxText  = 4096 // bytes of a text that are kept
	maxDepth = 16   // of a value

	cutValue = "[cut: nested deeper]"
)

// clean makes a text that both formats can hold: UTF-8, and cut where it is long.
func clean(s string) string {
	if len(s) > maxText {
		cut := maxText
		for cut > maxText-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // Each bad byte becomes U+FFFD.
	}
	return s
}

func appendArgs(args []arg, attrs pcommon.Map) []arg {
	for key, v := range attrs.All() {
		args = append(args, arg{key, v})
	}
	return args
}
