// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/metadata"
)

// NewFactory creates the factory of the weave exporter. Weave takes traces alone.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithTraces(createTraces, metadata.TracesStability),
	)
}

func createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	e, err := newWeaveExporter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	set.Logger = e.logger
	inner, err := exporterhelper.NewTraces(ctx, set, cfg, e.pushTraces, e.options()...)
	if err != nil {
		return nil, err
	}
	return &traces{Traces: inner, e: e}, nil
}

// options leave timeouts to the HTTP client, which has one for each request, and retries to pushTraces, which alone knows what of a batch
// was not delivered. The helper's own retries serve one purpose: with their end, at the shutdown, they tell a persistent queue to
// keep what could not be sent.
func (e *weaveExporter) options() []exporterhelper.Option {
	options := []exporterhelper.Option{
		exporterhelper.WithStart(e.start),
		exporterhelper.WithShutdown(e.shutdown),
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithQueue(e.cfg.QueueConfig),
	}
	if e.persistent {
		untilShutdown := configretry.BackOffConfig{Enabled: true, InitialInterval: 24 * time.Hour, MaxInterval: 24 * time.Hour, Multiplier: 1}
		options = append(options, exporterhelper.WithRetry(untilShutdown))
	}
	return options
}
