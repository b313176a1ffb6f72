// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/runview"
)

// The consumers below stand behind the processor and report to whoever shows the runs, where somebody does (runview), what
// leaves it: with the answer, for what is refused comes again.

// handOn has next consume a batch, and then what was read of it before taken, unless it was refused.
func handOn[B any](ctx context.Context, f runview.Feed, batch B, read func(*runview.Report, B), next func(context.Context, B) error) error {
	model := runview.Current()
	if model == nil {
		return next(ctx, batch)
	}
	report := runview.NewReport()
	defer report.Release()
	read(report, batch) // Behind next it is no longer ours.
	if err := next(ctx, batch); err != nil {
		return err
	}
	model.Apply(f, report)
	return nil
}

type watchedTraces struct {
	consumer.Traces
	feed runview.Feed
}

func watchTraces(next consumer.Traces) consumer.Traces {
	return watchedTraces{next, runview.NewFeed(ranks.Traces)}
}

func (w watchedTraces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return handOn(ctx, w.feed, td, (*runview.Report).Traces, w.Traces.ConsumeTraces)
}

type watchedMetrics struct {
	consumer.Metrics
	feed runview.Feed
}

func watchMetrics(next consumer.Metrics) consumer.Metrics {
	return watchedMetrics{next, runview.NewFeed(ranks.Metrics)}
}

func (w watchedMetrics) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return handOn(ctx, w.feed, md, (*runview.Report).Metrics, w.Metrics.ConsumeMetrics)
}

type watchedLogs struct {
	consumer.Logs
	feed runview.Feed
}

func watchLogs(next consumer.Logs) consumer.Logs {
	return watchedLogs{next, runview.NewFeed(ranks.Logs)}
}

func (w watchedLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return handOn(ctx, w.feed, ld, (*runview.Report).Logs, w.Logs.ConsumeLogs)
}
