// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter // import "github.com/lenscol/lenscol/processor/rankfilter"

import (
	"context"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/lenscol/lenscol/internal/ranks"
)

// outcome is what a batch would count. It travels with the batch's context, which processorhelper hands to the filter.
type outcome struct {
	tally        *ranks.Tally
	unknownNames int64
}

type outcomeKey struct{}

func outcomeOf(ctx context.Context) *outcome { return ctx.Value(outcomeKey{}).(*outcome) }

// settle has a batch consumed, by the filter and all that follows, and counts with the answer: what was refused counts
// nothing, for it comes again.
func settle[B any](ctx context.Context, f *filter, signal ranks.Signal, consume func(context.Context, B) error, in B) error {
	o := &outcome{tally: f.reporter.Tally()}
	if err := consume(context.WithValue(ctx, outcomeKey{}, o), in); err != nil {
		f.reporter.Discard(o.tally)
		return err
	}
	f.reporter.Report(ctx, signal, o.tally)
	if o.unknownNames > 0 {
		f.telemetry.ProcessorRankFilterUnknownSpanNames.Add(ctx, o.unknownNames)
	}
	return nil
}

type settledTraces struct {
	processor.Traces
	filter *filter
}

func (p settledTraces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return settle(ctx, p.filter, ranks.Traces, p.Traces.ConsumeTraces, td)
}

type settledMetrics struct {
	processor.Metrics
	filter *filter
}

func (p settledMetrics) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return settle(ctx, p.filter, ranks.Metrics, p.Metrics.ConsumeMetrics, md)
}

type settledLogs struct {
	processor.Logs
	filter *filter
}

func (p settledLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return settle(ctx, p.filter, ranks.Logs, p.Logs.ConsumeLogs, ld)
}
