// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter // import "github.com/lenscol/lenscol/processor/rankfilter"

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/processor/rankfilter/internal/metadata"
)

// NewFactory makes the factory of rank_filter.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		func() component.Config { return &Config{Ranks: ranks.DefaultConfig()} },
		processor.WithTraces(createTraces, metadata.TracesStability),
		processor.WithMetrics(createMetrics, metadata.MetricsStability),
		processor.WithLogs(createLogs, metadata.LogsStability),
	)
}

// What goes on is a new batch: the one that came in is not changed, so whoever shares it needs no copy.
var capabilities = processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: false})

func createTraces(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	f, err := newFilter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	p, err := processorhelper.NewTraces(ctx, set, cfg, next, f.traces, capabilities, processorhelper.WithShutdown(f.shutdown))
	return settledTraces{p, f}, err
}

func createMetrics(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	f, err := newFilter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	p, err := processorhelper.NewMetrics(ctx, set, cfg, next, f.metrics, capabilities, processorhelper.WithShutdown(f.shutdown))
	return settledMetrics{p, f}, err
}

func createLogs(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	f, err := newFilter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	p, err := processorhelper.NewLogs(ctx, set, cfg, next, f.logs, capabilities, processorhelper.WithShutdown(f.shutdown))
	return settledLogs{p, f}, err
}
