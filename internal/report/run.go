// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"cmp"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// run is what is known of one run.
type run struct {
	id         string
	worldSize  int
	counts     Counts
	services   nameCounts // resources of each
	members    map[memberKey]*member
	outer      timeline // SLURM's and the launcher's
	others     extents  // of what has no rank
	slurm      slurmJob
	series     series
	errors     errorList
	unknown    nameCounts
	asyncSaves int64
	segments   int
	full       bool // no time line grows any more
}

// memberKey tells the processes of a run apart: a rank of a service.
type memberKey struct {
	service string
	rank    int
}

func (k memberKey) compare(other memberKey) int {
	return cmp.Or(cmp.Compare(k.service, other.service), cmp.Compare(k.rank, other.rank))
}

// member is one rank, over all of its lives.
type member struct {
	memberKey
	spans    int64
	errors   int64
	steps    *sketch // the durations of completed ones
	skipped  int64
	wait     int64 // nanoseconds of communication
	saves    occasions
	loads    occasions
	evals    occasions
	sessions []*session
	segments int  // of the time lines of its sessions
	undrawn  bool // these were given up
	crowded  bool // there was no room for all sessions: the last one is of several processes
}

// session is one process of a rank.
type session struct {
	host, pid, attempt string // attempt: what the resource says of which attempt it is, "" for nothing
	begin, end         int64
	line               timeline
	steps              int64
	trains             bool  // it starts up, trains, saves or the like; else it is beside the point, as a launcher is
	truncated          bool  // a shutdown closed a step or more than that
	failedAt, wentOn   int64 // when a step or more than that last failed; when the last whole step ended
}

// occasions count the saves, loads or evaluations of a rank, by level.
type occasions [levels]occasion

type occasion struct {
	n, failed      int64
	total, longest int64 // nanoseconds
}

func newRun(id string) *run {
	return &run{id: id, services: nameCounts{}, members: map[memberKey]*member{}, others: extents{}, errors: errorList{}, unknown: nameCounts{}}
}

func newMember(key memberKey) *member { return &member{memberKey: key, steps: newSketch()} }

// session finds or makes the process that a resource is of. The first one always has room.
func (m *member) session(attrs pcommon.Map, host string, room bool) *session {
	pid, attempt := clip(text(attrs, semconv.ProcessPID)), attemptOf(attrs)
	for _, s := range m.sessions {
		if s.host == host && s.pid == pid && s.attempt == attempt {
			return s
		}
	}
	if n := len(m.sessions); n > 0 && (!room || n >= maxLives) {
		m.crowded = true
		return m.sessions[n-1]
	}
	s := &session{host: host, pid: pid, attempt: attempt}
	m.sessions = append(m.sessions, s)
	return s
}

// attemptOf is what a resource says of which attempt it is of, all that differs from one to the next.
func attemptOf(attrs pcommon.Map) string {
	var parts []string
	for _, key := range [...]string{semconv.DLRunUUID, semconv.DLRunUUIDOld, semconv.SlurmRestartCount, semconv.SlurmTorchelasticRestartCountOld} {
		if v := text(attrs, key); v != "" {
			parts = append(parts, v)
		}
	}
	return clip(strings.Join(parts, "/"))
}

func (s *session) extend(t told) {
	if s.begin == 0 || t.from < s.begin {
		s.begin = t.from
	}
	s.end = max(s.end, t.to)
	s.trains = s.trains || t.kind.onTimeLine()
	if t.kind == kindStep {
		s.steps++
	}
	if t.kind == kindStep || t.kind == kindLoop || t.kind == kindUmbrella {
		s.truncated = s.truncated || t.truncated
		switch {
		case t.failed:
			s.failedAt = max(s.failedAt, t.to)
		case t.kind == kindStep && !t.truncated:
			s.wentOn = max(s.wentOn, t.to)
		}
	}
}

// failed reports whether the process ended by an error: training did not go on after the last one.
func (s *session) failed() bool { return s.failedAt > 0 && s.failedAt >= s.wentOn }

// trained is when a process that takes steps ended; 0 of others.
func (s *session) trained() int64 {
	if s.steps == 0 {
		return 0
	}
	return s.end
}

// take counts a span of the rank.
func (m *member) take(t told) {
	m.spans++
	switch t.kind {
	case kindStep:
		if t.torn() {
			return
		}
		m.steps.add(t.to - t.from)
		if t.skipped {
			m.skipped++
		}
	case kindWait:
		m.wait += t.to - t.from
	case kindSave:
		m.saves.add(t)
	case kindLoad:
		m.loads.add(t)
	case kindEvaluate:
		m.evals.add(t)
	}
}

func (o *occasions) add(t told) {
	at := &o[t.level]
	at.n++
	if t.failed || t.truncated {
		at.failed++
	}
	at.total += t.to - t.from
	at.longest = max(at.longest, t.to-t.from)
}

// whole are the occasions of the highest level.
func (o *occasions) whole() occasion {
	for level := levels - 1; level > levelPart; level-- {
		if o[level].n > 0 {
			return o[level]
		}
	}
	return occasion{}
}

// giveUp forgets the time lines of the highest rank that has some, and returns their length. It is false where only one is left.
func (r *run) giveUp() (int, bool) {
	var victim *member
	drawn := 0
	for _, m := range r.members {
		if m.undrawn || m.segments == 0 {
			continue
		}
		drawn++
		if victim == nil || m.rank > victim.rank || m.rank == victim.rank && m.service > victim.service {
			victim = m
		}
	}
	if drawn < 2 {
		return 0, false
	}
	freed := victim.segments
	for _, s := range victim.sessions {
		s.line = timeline{}
	}
	victim.segments, victim.undrawn = 0, true
	r.segments -= freed
	return freed, true
}

// extents are begin and end of what has no rank, by host.
type extents map[string][2]int64

func (e extents) extend(host string, t told) {
	at, ok := e[host]
	if !ok {
		if len(e) >= maxHosts {
			return
		}
		at = [2]int64{t.from, t.to}
	}
	e[host] = [2]int64{min(at[0], t.from), max(at[1], t.to)}
}

// nameCounts count names, as many as there is room for.
type nameCounts map[string]int64

func (n nameCounts) add(name string) {
	name = clip(name)
	if _, ok := n[name]; ok || len(n) < maxNames {
		n[name]++
	}
}
