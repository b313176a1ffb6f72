// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ranks // import "github.com/lenscol/lenscol/internal/ranks"

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
)

// Counters are a component's instruments: kept and dropped items by signal, resources whose ranks disagree.
type Counters struct {
	Kept, Dropped [Signals]metric.Int64Counter
	Disagreements metric.Int64Counter
}

// Reporter turns tallies into metrics and log lines. It is safe for concurrent use.
type Reporter struct {
	counters Counters
	logger   *zap.Logger
	now      func() time.Time

	rules   []rule
	labels  []metric.AddOption // by rule and reason, as a tally's items
	tallies sync.Pool

	mu     sync.Mutex
	logged [reasons]time.Time // when a reason was logged last
}

// NewReporter makes the reporter for the rules of d.
func NewReporter(d *Decider, counters Counters, logger *zap.Logger) *Reporter {
	r := &Reporter{counters: counters, logger: logger, now: time.Now, rules: d.all}
	for _, rule := range d.all {
		for _, reason := range reasonText {
			r.labels = append(r.labels, metric.WithAttributeSet(attribute.NewSet(
				attribute.String("strategy", rule.name), attribute.String("reason", reason))))
		}
	}
	r.tallies.New = func() any { return &Tally{items: make([]items, len(r.labels))} }
	return r
}

// Tally counts what became of one request or batch. It is for one goroutine.
type Tally struct {
	items     []items // by rule and reason
	disagrees int64
	toLog     [reasons]Decision // the first of each reason that is to be logged
	log       bool              // there is one
}

type items struct{ kept, dropped int64 }

// Tally is an empty tally; it goes back with Report or Discard.
func (r *Reporter) Tally() *Tally { return r.tallies.Get().(*Tally) }

// Resource counts a decision, apart from its items.
func (t *Tally) Resource(d Decision) {
	if d.Disagrees {
		t.disagrees++
	}
	if d.log && !t.toLog[d.Reason].log {
		t.toLog[d.Reason], t.log = d, true
	}
}

// Kept counts n items of a resource that go on for that reason.
func (t *Tally) Kept(d Decision, reason Reason, n int) {
	t.items[int(d.rule)*int(reasons)+int(reason)].kept += int64(n)
}

// Dropped counts n items of a resource that do not go on for that reason.
func (t *Tally) Dropped(d Decision, reason Reason, n int) {
	t.items[int(d.rule)*int(reasons)+int(reason)].dropped += int64(n)
}

// Report adds the tally to the metrics, logs what is to be logged, and takes the tally back.
func (r *Reporter) Report(ctx context.Context, signal Signal, t *Tally) {
	for i, n := range t.items {
		if n.kept > 0 {
			r.counters.Kept[signal].Add(ctx, n.kept, r.labels[i:i+1]...)
		}
		if n.dropped > 0 {
			r.counters.Dropped[signal].Add(ctx, n.dropped, r.labels[i:i+1]...)
		}
	}
	if t.disagrees > 0 {
		r.counters.Disagreements.Add(ctx, t.disagrees)
	}
	if t.log {
		for _, d := range t.toLog {
			if d.log {
				r.warn(d)
			}
		}
	}
	r.Discard(t)
}

// Discard takes a tally back without counting it: the request was refused.
func (r *Reporter) Discard(t *Tally) {
	clear(t.items)
	if t.log {
		t.toLog = [reasons]Decision{}
	}
	t.disagrees, t.log = 0, false
	r.tallies.Put(t)
}

// warn logs that a rule could not decide, once a minute for each reason.
func (r *Reporter) warn(d Decision) {
	now := r.now()
	r.mu.Lock()
	due := now.Sub(r.logged[d.Reason]) >= time.Minute
	if due {
		r.logged[d.Reason] = now
	}
	r.mu.Unlock()
	if !due {
		return
	}
	missing := MissingDrop
	if d.Keep {
		missing = MissingKeep
	}
	r.logger.Warn("the strategy cannot decide about a resource: the setting `missing` does",
		zap.String("reason", reasonText[d.Reason]), zap.String("strategy", r.rules[d.rule].name),
		zap.String("service.name", clip(d.service)), zap.String("missing", string(missing)))
}

// clip keeps a name that a client chose, however long, out of the log beyond its first 256 bytes.
func clip(name string) string {
	const most = 256
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}
