// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter // import "github.com/lenscol/lenscol/processor/rankfilter"

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/sharing"
	"github.com/lenscol/lenscol/processor/rankfilter/internal/metadata"
)

// filter decides once per resource. Only what may be picked out of a resource, errors and names of dropped ranks or
// span groups, has it look at spans and log records.
type filter struct {
	decider   *ranks.Decider
	reporter  *ranks.Reporter
	groups    *spanGroups // nil: all
	shares    bool        // batches may share elements
	telemetry *metadata.TelemetryBuilder
}

func newFilter(set processor.Settings, cfg *Config) (*filter, error) {
	decider, err := ranks.NewDecider(&cfg.Ranks)
	if err != nil {
		return nil, err
	}
	groups, err := newSpanGroups(cfg.SpanGroups)
	if err != nil {
		return nil, err
	}
	tb, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	var counters ranks.Counters
	counters.Kept[ranks.Traces], counters.Dropped[ranks.Traces] = tb.ProcessorRankFilterKeptSpans, tb.ProcessorRankFilterDroppedSpans
	counters.Kept[ranks.Metrics], counters.Dropped[ranks.Metrics] = tb.ProcessorRankFilterKeptPoints, tb.ProcessorRankFilterDroppedPoints
	counters.Kept[ranks.Logs], counters.Dropped[ranks.Logs] = tb.ProcessorRankFilterKeptRecords, tb.ProcessorRankFilterDroppedRecords
	counters.Disagreements = tb.ProcessorRankFilterDisagreements
	return &filter{
		decider:   decider,
		reporter:  ranks.NewReporter(decider, counters, set.Logger),
		groups:    groups,
		shares:    sharing.Allowed(),
		telemetry: tb,
	}, nil
}

func (f *filter) shutdown(context.Context) error {
	f.telemetry.Shutdown()
	return nil
}

func (f *filter) traces(ctx context.Context, in ptrace.Traces) (ptrace.Traces, error) {
	o := outcomeOf(ctx)
	tally := o.tally
	return sift(f.shares, in, ptrace.NewTraces, ptrace.Traces.ResourceSpans, func(rs ptrace.ResourceSpans) (share, ranks.Decision) {
		d := f.decide(ranks.Traces, rs.Resource(), tally)
		if f.groups == nil && (d.Keep || !f.decider.PicksSpans()) {
			return whole(d, tally, spanCount(rs))
		}
		kept, n := f.countSpans(rs, d, o)
		return shareOf(kept, n, d), d
	}, f.someSpans)
}

func (f *filter) metrics(ctx context.Context, in pmetric.Metrics) (pmetric.Metrics, error) {
	tally := outcomeOf(ctx).tally
	return sift(f.shares, in, pmetric.NewMetrics, pmetric.Metrics.ResourceMetrics, func(rm pmetric.ResourceMetrics) (share, ranks.Decision) {
		d := f.decide(ranks.Metrics, rm.Resource(), tally)
		return whole(d, tally, ranks.PointCount(rm))
	}, nil)
}

func (f *filter) logs(ctx context.Context, in plog.Logs) (plog.Logs, error) {
	tally := outcomeOf(ctx).tally
	return sift(f.shares, in, plog.NewLogs, plog.Logs.ResourceLogs, func(rl plog.ResourceLogs) (share, ranks.Decision) {
		d := f.decide(ranks.Logs, rl.Resource(), tally)
		if d.Keep || !f.decider.PicksRecords() {
			return whole(d, tally, recordCount(rl))
		}
		kept, n := f.countRecords(rl, d, tally)
		return shareOf(kept, n, d), d
	}, f.someRecords)
}

func (f *filter) decide(signal ranks.Signal, r pcommon.Resource, tally *ranks.Tally) ranks.Decision {
	d := f.decider.Decide(signal, r.Attributes())
	tally.Resource(d)
	return d
}

// share is how much of a resource goes on.
type share uint8

const (
	none share = iota
	some
	all
)

// whole is the share of a resource that its decision keeps or drops with all of its n items.
func whole(d ranks.Decision, tally *ranks.Tally, n int) (share, ranks.Decision) {
	if d.Keep {
		tally.Kept(d, d.Reason, n)
		return all, d
	}
	tally.Dropped(d, d.Reason, n)
	return none, d
}

func shareOf(kept, n int, d ranks.Decision) share {
	switch {
	case kept == n && (n > 0 || d.Keep):
		return all
	case kept == 0:
		return none
	default:
		return some
	}
}

// batch is ptrace.Traces, pmetric.Metrics or plog.Logs.
type batch interface {
	IsReadOnly() bool
	MarkReadOnly()
}

// sift hands on the batch itself where all of it goes on, and else a new one that shares what does, or has copies of it.
// A resource of which some goes on is added by pick.
func sift[B batch, S sharing.List[E], E interface{ CopyTo(E) }](
	shares bool, in B, newBatch func() B, list func(B) S,
	judge func(E) (share, ranks.Decision), pick func(from, to E, d ranks.Decision),
) (B, error) {
	from := list(in)
	var out B
	var to S
	prefix, opened := 0, false // how many resources from the first on go on whole; whether there is a new batch
	open := func() {
		out, opened = newBatch(), true
		to = list(out)
		for i := range prefix {
			sharing.Append(shares, to, from.At(i))
		}
	}
	for i := range from.Len() {
		e := from.At(i)
		goes, d := judge(e)
		switch {
		case goes == none:
			continue
		case goes == all && !opened && prefix == i:
			prefix++
			continue
		case !opened:
			open()
		}
		if goes == all {
			sharing.Append(shares, to, e)
		} else {
			pick(e, to.AppendEmpty(), d)
		}
	}
	switch {
	case opened:
	case prefix == 0:
		return in, processorhelper.ErrSkipProcessingData
	case prefix == from.Len():
		return in, nil
	default:
		open()
	}
	if in.IsReadOnly() {
		out.MarkReadOnly()
	}
	return out, nil
}

func spanCount(rs ptrace.ResourceSpans) (n int) {
	for i := range rs.ScopeSpans().Len() {
		n += rs.ScopeSpans().At(i).Spans().Len()
	}
	return n
}

func recordCount(rl plog.ResourceLogs) (n int) {
	for i := range rl.ScopeLogs().Len() {
		n += rl.ScopeLogs().At(i).LogRecords().Len()
	}
	return n
}
