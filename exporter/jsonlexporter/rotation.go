// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"os"
	"strings"
	"time"
)

// `traces.jsonl` is rotated to `traces-20261129T162428.123456789Z.jsonl`: the time of the rotation in UTC, always as long,
// so that names sort as the files were written.
const backupTime = "20060102T150405.000000000Z"

// splitBackup takes the path of a rotated file apart: the active path and the time. Only names that backupName gives are taken for one.
func splitBackup(path string) (active string, at time.Time, ok bool) {
	ext := extension(path)
	stem := strings.TrimSuffix(path, ext)
	cut := len(stem) - len(backupTime)
	if cut < 1 || stem[cut-1] != '-' {
		return "", time.Time{}, false
	}
	at, err := time.Parse(backupTime, stem[cut:])
	if err != nil || at.Format(backupTime) != stem[cut:] {
		return "", time.Time{}, false
	}
	return stem[:cut-1] + ext, at, true
}

// backupName is the path for a file that is rotated now: later than the newest before it, even where the clock was set
// back, and of no file that is there, since a rename would replace it.
func backupName(root *os.Root, active, newest string, now time.Time) (path string, at time.Time) {
	at = now.UTC()
	if _, last, ok := splitBackup(newest); ok && !at.After(last) {
		at = last.Add(1)
	}
	ext := extension(active)
	for {
		path = strings.TrimSuffix(active, ext) + "-" + at.Format(backupTime) + ext
		if _, err := root.Lstat(path); err != nil {
			return path, at
		}
		at = at.Add(1)
	}
}

// period is the day or hour that a time falls into, the zero time where a schedule has none.
func (s Schedule) period(t time.Time) time.Time {
	switch s {
	case ScheduleDaily:
		return t.UTC().Truncate(24 * time.Hour)
	case ScheduleHourly:
		return t.UTC().Truncate(time.Hour)
	default:
		return time.Time{}
	}
}

// due tells whether a file that began at a time is to be ended now, by its age or by the wall clock.
func (r *RotationConfig) due(born, now time.Time) bool {
	return r.MaxAge > 0 && now.Sub(born) >= r.MaxAge || r.Schedule != "" && !r.Schedule.period(born).Equal(r.Schedule.period(now))
}

// untilDue is how long until then, at most an hour.
func (r *RotationConfig) untilDue(born, now time.Time) time.Duration {
	if r.due(born, now) {
		return 0
	}
	wait := time.Hour
	if r.MaxAge > 0 {
		wait = min(wait, born.Add(r.MaxAge).Sub(now))
	}
	if r.Schedule != "" {
		wait = min(wait, r.Schedule.end(now).Sub(now))
	}
	return wait
}

// end is when the period of a time ends.
func (s Schedule) end(t time.Time) time.Time {
	if s == ScheduleDaily {
		return s.period(t).Add(24 * time.Hour)
	}
	return s.period(t).Add(time.Hour)
}
