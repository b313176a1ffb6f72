// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/sdk/rank"
)

// FilterText is a filter as people write it. What is empty keeps all.
type FilterText struct {
	Runs     []string // globs
	Ranks    string   // as sdk/rank.Ranks reads it: 0,8-15,0-1023/64,-1
	Names    []string // globs: of spans, metrics, and the event names of log records
	Since    string   // RFC 3339, or a duration before now: 2h, 3d
	Until    string   // likewise
	Statuses []string // ok, error, unset: of spans, which alone have one
}

// Filter keeps the records that match every part that it has.
type Filter struct {
	runs         []string
	ranks        rank.Strategy
	names        []string
	since, until pcommon.Timestamp // [since, until); 0 is open
	statuses     []ptrace.StatusCode
	identities   identities
}

// NewFilter reads a filter. Its error names the flag and the value at fault.
func NewFilter(text FilterText, now time.Time) (*Filter, error) {
	f := &Filter{runs: text.Runs, names: text.Names}
	var errs []error
	var err error
	if text.Ranks != "" {
		if f.ranks, err = rank.Ranks(text.Ranks); err != nil {
			errs = append(errs, fmt.Errorf("--rank: %w", err))
		}
	}
	for _, end := range []struct {
		flag, text string
		to         *pcommon.Timestamp
	}{{"--since", text.Since, &f.since}, {"--until", text.Until, &f.until}} {
		if end.text == "" {
			continue
		}
		t, ok := parseTime(end.text, now)
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %q is neither a time like 2026-11-29T16:24:28Z nor a duration before now like 90m, 2h or 3d", end.flag, end.text))
		}
		switch { // Nanoseconds in 63 bits: what is outside is before or behind all records.
		case t.Before(time.Unix(0, 1)):
			*end.to = 1
		case t.After(time.Unix(0, math.MaxInt64)):
			*end.to = math.MaxUint64
		default:
			*end.to = pcommon.NewTimestampFromTime(t)
		}
	}
	for _, s := range text.Statuses {
		switch strings.ToLower(s) {
		case "ok":
			f.statuses = append(f.statuses, ptrace.StatusCodeOk)
		case "error":
			f.statuses = append(f.statuses, ptrace.StatusCodeError)
		case "unset":
			f.statuses = append(f.statuses, ptrace.StatusCodeUnset)
		default:
			errs = append(errs, fmt.Errorf("--status: %q is not one of ok, error, unset", s))
		}
	}
	return f, errors.Join(errs...)
}

// UntilMoves tells whether the end of a filter moves on with the clock: it is a duration before now.
func (t FilterText) UntilMoves() bool {
	_, err := time.Parse(time.RFC3339Nano, t.Until)
	return t.Until != "" && err != nil
}

func parseTime(s string, now time.Time) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, true
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), true
		}
	}
	d, err := time.ParseDuration(s)
	return now.Add(-d), err == nil && d >= 0
}

// Keep tells whether a record matches.
func (f *Filter) Keep(rec Record) bool {
	if f.since > 0 || f.until > 0 {
		if t := rec.Time(); t < f.since || f.until > 0 && t >= f.until {
			return false
		}
	}
	if len(f.statuses) > 0 && (rec.Signal != pipeline.SignalTraces || !slices.Contains(f.statuses, rec.Span.Status().Code())) {
		return false
	}
	if len(f.names) > 0 && !matchesAny(f.names, recordName(rec)) {
		return false
	}
	if len(f.runs) == 0 && f.ranks == nil {
		return true
	}
	who := f.identities.of(rec.Scope.Resource)
	if len(f.runs) > 0 && !matchesAny(f.runs, who.run) {
		return false
	}
	return f.ranks == nil || who.HasRank && f.ranks.Exports(who.Identity.Identity)
}

func matchesAny(globs []string, s string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { return ranks.Matches(glob, s) })
}

func recordName(rec Record) string {
	switch rec.Signal {
	case pipeline.SignalTraces:
		return rec.Span.Name()
	case pipeline.SignalMetrics:
		return rec.Metric.Name()
	default:
		return rec.Log.EventName()
	}
}

// identities remembers whose telemetry a resource is: many records share one.
type identities struct{ seen map[*jsonlreader.Resource]who }

type who struct {
	identity.Identity
	run, service string
}

const maxIdentities = 4096

func (ids *identities) of(r *jsonlreader.Resource) who {
	w, ok := ids.seen[r]
	if !ok {
		w = who{Identity: identity.Of(r.Attributes()), run: identity.Run(r.Attributes()), service: identity.Service(r.Attributes())}
		if ids.seen == nil || len(ids.seen) >= maxIdentities {
			ids.seen = map[*jsonlreader.Resource]who{}
		}
		ids.seen[r] = w
	}
	return w
}
