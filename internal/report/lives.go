// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"cmp"
	"slices"
)

// life is the time of a rank in one attempt of the run. Times are of its own clock.
type life struct {
	member            *member
	host              string
	attempt           string // what its resource says of the attempt, "" for nothing
	ordinal           int    // of the attempt, among those of which resources say the same
	begin, end        int64
	segments          []segment // flat; nil where the time line was given up
	failed, truncated bool
}

const maxLives = 1 << 10 // of a rank

// lives cuts the time of a rank into lives. A process begins a new one, unless it runs beside another one of the rank; of two that take steps,
// the first must have ended, whatever else still runs. Within a process, so does a step whose number is not behind that of the step before it,
// where they do not follow each other without a pause: the process has gone back to a checkpoint.
func (m *member) lives() []life {
	sessions := slices.Clone(m.sessions)
	slices.SortStableFunc(sessions, func(a, b *session) int { return cmp.Compare(a.begin, b.begin) })
	var processes []life
	var beside [][]*session // those of each
	trained := int64(0)     // when those of the last one that take steps have ended, 0: none does
	for _, s := range sessions {
		if !s.trains {
			continue
		}
		if n := len(processes); n > 0 {
			last := &processes[n-1]
			goesOn := s.steps > 0 && trained > 0 && s.begin >= trained
			if s.begin < last.end && s.attempt == last.attempt && !goesOn {
				trained = max(trained, s.trained())
				last.end = max(last.end, s.end)
				last.failed, last.truncated = last.failed || s.failed(), last.truncated || s.truncated
				beside[n-1] = append(beside[n-1], s)
				continue
			}
			last.end = min(last.end, s.begin)
			if goesOn {
				last.end = trained
			}
		}
		processes = append(processes, life{member: m, attempt: s.attempt, begin: s.begin, end: s.end, failed: s.failed(), truncated: s.truncated})
		beside = append(beside, []*session{s})
		trained = s.trained()
	}
	var all []life
	for i := range processes {
		l := &processes[i]
		l.host, l.segments = together(beside[i])
		if i+1 < len(processes) {
			l.segments, _ = cutAt(l.segments, processes[i+1].begin)
		}
		all = append(all, l.splitAtJumps(maxLives-len(all))...)
	}
	seen := map[string]int{}
	for i := range all {
		all[i].ordinal = seen[all[i].attempt]
		seen[all[i].attempt]++
	}
	return all
}

// together is what processes did that ran beside each other: what the one with the most steps says; before it what the others say, and after
// it those that take steps, too, or all where none does. It says where that one runs.
func together(sessions []*session) (host string, _ []segment) {
	main := slices.MaxFunc(sessions, func(a, b *session) int {
		return cmp.Or(cmp.Compare(a.steps, b.steps), cmp.Compare(a.end-a.begin, b.end-b.begin))
	})
	for _, other := range sessions {
		if other == main {
			continue
		}
		for _, s := range other.line.segments {
			before, after := s, s
			if before.to = min(s.to, main.begin); before.from < before.to {
				main.line.segments = append(main.line.segments, before)
			}
			if after.from = max(s.from, main.end); after.from < after.to && (other.steps > 0 || main.steps == 0) {
				main.line.segments = append(main.line.segments, after)
			}
		}
	}
	main.line.flatten()
	return main.host, main.line.segments
}

// cutAt parts flat segments into those that begin before a time and those that do not.
func cutAt(segments []segment, at int64) (before, after []segment) {
	n, _ := slices.BinarySearchFunc(segments, at, func(s segment, t int64) int { return cmp.Compare(s.from, t) })
	return segments[:n:n], segments[n:]
}

// align tells which attempt each life is of. The rank that has the most lives, of those that take steps, says what attempts there were. Where another has
// as many, its n-th life is of the n-th attempt, whatever its clock shows. Else it was not in all attempts, or what it sent does not tell
// them apart, and time decides.
func align(lives [][]life, hasSteps bool) {
	most := map[string][]life{}
	for _, member := range lives {
		for attempt, own := range byAttempt(member) {
			if len(own) > len(most[attempt]) && (own[0].member.steps.count() > 0 || !hasSteps) {
				most[attempt] = own
			}
		}
	}
	for i, member := range lives {
		own, aligned := byAttempt(member), []life{}
		for _, l := range member {
			if n := len(most[l.attempt]); n > 0 && n != len(own[l.attempt]) {
				aligned = append(aligned, l.along(most[l.attempt])...)
			} else {
				aligned = append(aligned, l)
			}
		}
		lives[i] = aligned
	}
}

func byAttempt(member []life) map[string][]life {
	of := map[string][]life{}
	for _, l := range member {
		of[l.attempt] = append(of[l.attempt], l)
	}
	return of
}

// along makes of a life those of the other rank's in the middle of which it was there, at least one.
func (l life) along(others []life) (parts []life) {
	var in *life
	for i := range others {
		other := &others[i]
		if middle := other.middle(); middle < l.begin || middle > l.end {
			if in == nil && other.begin <= l.middle() {
				l.ordinal = other.ordinal
			}
			continue
		}
		if in != nil {
			before := l
			before.segments, l.segments = cutAt(l.segments, other.begin)
			before.end, before.failed, before.truncated = in.end, false, false
			if n := len(before.segments); n > 0 {
				before.end = max(before.end, before.segments[n-1].to)
			}
			parts = append(parts, before)
			l.begin = other.begin
		}
		l.ordinal, in = other.ordinal, other
	}
	return append(parts, l)
}

func (l *life) middle() int64 { return l.begin + (l.end-l.begin)/2 }

// splitAtJumps cuts a life where the number of the step goes back, into room lives at most.
func (l life) splitAtJumps(room int) (parts []life) {
	last := -1 // place of the last step
	for i := 0; i < len(l.segments); i++ {
		s := l.segments[i]
		if s.kind != kindStep && s.kind != kindTorn || s.step < 0 {
			continue
		}
		if last >= 0 && s.step <= l.segments[last].step && !follow(l.segments[last:i+1]) && len(parts) < room-1 {
			cut := last + 1
			for cut < i && l.segments[cut].kind != kindStartup && l.segments[cut].kind != kindLoad {
				cut++
			}
			before, after := l, l
			before.segments, before.end = l.segments[:cut:cut], l.segments[cut-1].to
			before.failed, before.truncated = l.segments[last].kind == kindTorn, false
			after.segments, after.begin = l.segments[cut:], l.segments[cut].from
			parts = append(parts, before)
			l, i, last = after, i-cut, i-cut
			continue
		}
		last = i
	}
	return append(parts, l)
}

// follow reports whether segments follow each other without a pause, and without a start or a load.
func follow(segments []segment) bool {
	for i := 1; i < len(segments); i++ {
		if segments[i].from != segments[i-1].to || segments[i].kind == kindStartup || segments[i].kind == kindLoad {
			return false
		}
	}
	return true
}
