// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/archive"
	"github.com/lenscol/lenscol/internal/redact"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// errorList has the errors of a run, those of one name and type together.
type errorList map[errorKey]*errorGroup

type errorKey struct{ of, name, kind string }

type errorGroup struct {
	message string
	count   int64
	first   int64
	ranks   map[int]struct{}
}

// beyond takes the errors that found no room of their own.
var beyond = errorKey{name: "others"}

// secrets are taken out of messages: a report is handed around.
var secrets = sync.OnceValue(func() *redact.Redactor {
	cfg := redact.DefaultConfig()
	cfg.Patterns = redact.Ready()
	r, err := redact.New(cfg)
	if err != nil {
		panic(err) // The patterns are fixed.
	}
	return r
})

// span takes a span whose status is ERROR.
func (l errorList) span(span ptrace.Span, t told, m *member) {
	if !t.failed {
		return
	}
	key, message := errorKey{of: "span", name: clip(span.Name())}, span.Status().Message()
	for _, event := range span.Events().All() {
		if event.Name() == semconv.ExceptionEvent {
			key.kind = clip(text(event.Attributes(), semconv.ExceptionType))
			message = cmp.Or(text(event.Attributes(), semconv.ExceptionMessage), message)
		}
	}
	l.add(key, message, t.to, m)
}

// log takes a log record of severity ERROR and above.
func (l errorList) log(log plog.LogRecord, m *member) {
	if log.SeverityNumber() < plog.SeverityNumberError {
		return
	}
	key := errorKey{"log", clip(cmp.Or(log.EventName(), log.SeverityText(), "ERROR")), clip(text(log.Attributes(), semconv.ExceptionType))}
	l.add(key, log.Body().AsString(), clampTime(cmp.Or(log.Timestamp(), log.ObservedTimestamp())), m)
}

func (l errorList) add(key errorKey, message string, at int64, m *member) {
	g := l[key]
	if g == nil {
		if len(l) >= maxNames {
			key = beyond
		}
		if g = l[key]; g == nil {
			g = &errorGroup{ranks: map[int]struct{}{}}
			l[key] = g
		}
	}
	g.count++
	if g.first == 0 || at < g.first {
		const scanned = 4 * maxText // A secret that is cut must be seen whole.
		message, _ = secrets().Text(message[:min(len(message), scanned)], secrets().NewCounts())
		g.first, g.message = at, clip(message)
	}
	if m != nil {
		m.errors++
		g.ranks[m.rank] = struct{}{}
	}
}

// ErrorGroup is errors of one name and type.
type ErrorGroup struct {
	Of      string `json:"of"`      // span or log
	Name    string `json:"name"`    // of the span, or the event of the log record, else its severity
	Type    string `json:"type"`    // of the exception
	Message string `json:"message"` // of the first one, at most 200 bytes, without what looks like a secret
	Count   int64  `json:"count"`
	Ranks   string `json:"ranks"`
	FirstNS int64  `json:"first_ns"`
}

// list has the most frequent ones first.
func (l errorList) list() []ErrorGroup {
	groups := []ErrorGroup{}
	for key, g := range l {
		groups = append(groups, ErrorGroup{key.of, key.name, key.kind, g.message, g.count, archive.RankList(slices.Sorted(maps.Keys(g.ranks))), g.first})
	}
	slices.SortFunc(groups, func(a, b ErrorGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.FirstNS, b.FirstNS), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
	})
	return groups
}
