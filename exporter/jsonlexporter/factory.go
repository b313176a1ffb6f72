// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
)

// NewFactory creates the factory of the jsonl exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithTraces(createTraces, metadata.TracesStability),
		exporter.WithMetrics(createMetrics, metadata.MetricsStability),
		exporter.WithLogs(createLogs, metadata.LogsStability),
	)
}

func createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	e, err := newJSONLExporter(set, cfg.(*Config), "traces")
	if err != nil {
		return nil, err
	}
	inner, err := exporterhelper.NewTraces(ctx, set, cfg, e.pushTraces, e.options()...)
	if err != nil || !e.cfg.QueueConfig.HasValue() {
		return inner, err
	}
	return &gatedTraces{Traces: inner}, nil
}

func createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	e, err := newJSONLExporter(set, cfg.(*Config), "metrics")
	if err != nil {
		return nil, err
	}
	inner, err := exporterhelper.NewMetrics(ctx, set, cfg, e.pushMetrics, e.options()...)
	if err != nil || !e.cfg.QueueConfig.HasValue() {
		return inner, err
	}
	return &gatedMetrics{Metrics: inner}, nil
}

func createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	e, err := newJSONLExporter(set, cfg.(*Config), "logs")
	if err != nil {
		return nil, err
	}
	inner, err := exporterhelper.NewLogs(ctx, set, cfg, e.pushLogs, e.options()...)
	if err != nil || !e.cfg.QueueConfig.HasValue() {
		return inner, err
	}
	return &gatedLogs{Logs: inner}, nil
}

func (e *jsonlExporter) options() []exporterhelper.Option {
	return []exporterhelper.Option{
		exporterhelper.WithStart(e.start),
		exporterhelper.WithShutdown(e.shutdown),
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: e.cfg.Timeout}),
		exporterhelper.WithRetry(e.cfg.RetryConfig),
		exporterhelper.WithQueue(e.cfg.QueueConfig),
	}
}
