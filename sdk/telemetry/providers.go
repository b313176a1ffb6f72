// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel"
	logglobal "go.opentelemetry.io/otel/log/global"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lenscol/lenscol/sdk/telemetry/internal/closer"
	"github.com/lenscol/lenscol/sdk/telemetry/internal/ids"
	"github.com/lenscol/lenscol/sdk/telemetry/internal/repair"
	"github.com/lenscol/lenscol/sdk/telemetry/internal/sampler"
)

func (h *Handle) startTraces(ctx context.Context, cfg Config, o *options) error {
	exporter, target := o.spanExporter, Target{}
	if exporter == nil {
		target = cfg.Traces
		var err error
		if exporter, err = h.newSpanExporter(ctx, target, o.lines); err != nil {
			return newGuard(h.life, target).clean(err)
		}
	}
	guarded := &guardedSpans{SpanExporter: exporter, guard: newGuard(h.life, target)}
	own := []sdktrace.SpanProcessor{}
	var flush func(context.Context) error
	if exporter != nil {
		batch := sdktrace.NewBatchSpanProcessor(guarded)
		own, flush = append(own, batch), batch.ForceFlush
	}
	h.closer = closer.New(closer.DefaultLimit, max(1, spanQueue()/4), flush)

	opts := []sdktrace.TracerProviderOption{sdktrace.WithResource(h.resource), sdktrace.WithIDGenerator(ids.New())}
	for _, p := range slices.Concat([]sdktrace.SpanProcessor{h.closer}, o.spanProcessors, own) {
		opts = append(opts, sdktrace.WithSpanProcessor(p))
	}
	if o.sampler != nil {
		opts = append(opts, sdktrace.WithSampler(o.sampler))
	} else if cfg.SamplerEnabled && h.isRank {
		opts = append(opts, sdktrace.WithSampler(RankAwareSampler(h.rank.Rank, cfg.ExportSampleRate)))
	}
	provider := sdktrace.NewTracerProvider(opts...)
	h.spans, h.tracers = provider, ids.WithRandomFlag(provider)
	h.signals = append(h.signals, signalProvider{
		name:  "traces",
		flush: provider.ForceFlush,
		shutdown: func(ctx context.Context) error {
			guarded.stopping.Store(true)
			err := provider.Shutdown(ctx)
			for _, p := range own { // a provider whose time is over leaves its processors running
				err = errors.Join(err, p.Shutdown(ctx))
			}
			err = errors.Join(err, guarded.lastError())
			if sampled, taken := h.closer.Sampled(), guarded.taken.Load(); err == nil && o.spanExporter == nil && len(own) > 0 && taken < sampled {
				slog.WarnContext(ctx, "spans ended faster than they could be exported: OTEL_BSP_MAX_QUEUE_SIZE is the room for those that wait",
					"lost", sampled-taken, "exported", taken)
			}
			return err
		},
		install: func() func() { return replace(otel.GetTracerProvider, otel.SetTracerProvider, h.tracers) },
	})
	return nil
}

func (h *Handle) startMetrics(ctx context.Context, cfg Config, o *options) error {
	opts := []sdkmetric.Option{sdkmetric.WithResource(h.resource)}
	reader := o.metricReader
	if reader == nil {
		exporter, err := h.newMetricExporter(ctx, cfg.Metrics, o.lines)
		if err != nil {
			return newGuard(h.life, cfg.Metrics).clean(err)
		}
		if exporter != nil {
			reader = sdkmetric.NewPeriodicReader(guardedMetrics{exporter, newGuard(h.life, cfg.Metrics)},
				sdkmetric.WithInterval(cfg.MetricExportInterval))
		}
	}
	if reader != nil {
		opts = append(opts, sdkmetric.WithReader(reader))
	}
	provider := sdkmetric.NewMeterProvider(opts...)
	h.meters = provider
	h.signals = append(h.signals, signalProvider{
		name:     "metrics",
		flush:    provider.ForceFlush,
		shutdown: provider.Shutdown,
		install:  func() func() { return replace(otel.GetMeterProvider, otel.SetMeterProvider, h.meters) },
	})
	return nil
}

func (h *Handle) startLogs(ctx context.Context, cfg Config, o *options) error {
	opts := []sdklog.LoggerProviderOption{sdklog.WithResource(h.resource)}
	processor := o.logProcessor
	if processor == nil {
		exporter, err := h.newLogExporter(ctx, cfg.Logs, o.lines)
		if err != nil {
			return newGuard(h.life, cfg.Logs).clean(err)
		}
		if exporter != nil {
			processor = sdklog.NewBatchProcessor(guardedLogs{exporter, newGuard(h.life, cfg.Logs)})
		}
	}
	if processor != nil {
		opts = append(opts, sdklog.WithProcessor(processor))
	}
	provider := sdklog.NewLoggerProvider(opts...)
	h.loggers = repair.Loggers(provider)
	h.signals = append(h.signals, signalProvider{
		name:     "logs",
		flush:    provider.ForceFlush,
		shutdown: provider.Shutdown,
		install:  func() func() { return replace(logglobal.GetLoggerProvider, logglobal.SetLoggerProvider, h.loggers) },
	})
	return nil
}

// RankAwareSampler records all spans of a process or none, by the hash that the strategy sampled uses: all where the hash of
// the rank is below rate, a number from 0 to 1. The decision of a parent does not count (NeMo Lens, RankAwareSampler).
func RankAwareSampler(rank int, rate float64) sdktrace.Sampler { return sampler.New(rank, rate) }

// ParentBasedRankAwareSampler is RankAwareSampler for spans without a parent; all others follow theirs, so that a trace
// which comes in sampled keeps its children.
func ParentBasedRankAwareSampler(rank int, rate float64) sdktrace.Sampler {
	return sampler.NewParentBased(rank, rate)
}
