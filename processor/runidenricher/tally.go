// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lenscol/lenscol/internal/redact"
	"github.com/lenscol/lenscol/internal/sharing"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// from is where a resource's run id comes from.
type from uint8

const (
	fromNone from = iota
	fromSender
	fromResource
	fromOwn
	fromReplaced
	fromOtherJob
	froms
)

var fromText = [froms]string{"none", "sender", "resource", "own", "replaced", "other_job"}

// tally counts what was done to one batch.
type tally struct {
	from        [froms]int64
	overwritten int64
	renamed     int64
	forgotten   int64
	tooLong     int64
	clamped     int64
	redacted    redact.Counts
	otherJob    string       // the first job that is not the collector's
	room        sharing.Room // for what resources get
}

func (e *enricher) tally() *tally { return e.tallies.Get().(*tally) }

// report counts the tally and takes it back.
func (e *enricher) report(ctx context.Context, t *tally) {
	for i, n := range t.from {
		if n > 0 {
			e.telemetry.ProcessorRunIDEnricherResources.Add(ctx, n, e.fromLabel[i]...)
		}
	}
	for i, n := range t.redacted {
		if n > 0 {
			e.telemetry.ProcessorRunIDEnricherRedactedValues.Add(ctx, n, e.ruleLabel[i]...)
		}
	}
	if t.overwritten > 0 {
		e.telemetry.ProcessorRunIDEnricherOverwrittenValues.Add(ctx, t.overwritten)
	}
	if t.renamed > 0 {
		e.telemetry.ProcessorRunIDEnricherRenamedInstances.Add(ctx, t.renamed)
	}
	if t.forgotten > 0 {
		e.telemetry.ProcessorRunIDEnricherForgottenInstances.Add(ctx, t.forgotten)
	}
	if t.tooLong > 0 {
		e.telemetry.ProcessorRunIDEnricherLongInstances.Add(ctx, t.tooLong)
	}
	if t.clamped > 0 {
		e.telemetry.ProcessorRunIDEnricherClampedSpans.Add(ctx, t.clamped)
	}
	if t.otherJob != "" && e.otherJob.allows(time.Now()) {
		e.logger.Warn("telemetry of a job that is not this collector's: run and job are not stamped; where it takes many jobs, set mode to node or gateway",
			zap.String(semconv.SlurmJobID, cut(t.otherJob)), zap.String("own", e.jobs[0]))
	}
	redacted := t.redacted
	clear(redacted)
	*t = tally{redacted: redacted}
	e.tallies.Put(t)
}

// cut is what a log shows of a sender's text.
func cut(text string) string {
	const maxShown = 256
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// limiter lets one of a kind through in a minute.
type limiter struct {
	mu   sync.Mutex
	last time.Time
}

func (l *limiter) allows(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < time.Minute {
		return false
	}
	l.last = now
	return true
}
