// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheusremotewriteexporter is contrib's prometheus_remote_write, with its settings, for a Prometheus that is away for a while.
//
// contrib tries again within one send, and a send may take `timeout`, 5 seconds: what does not get through in that time is lost, whatever
// retry_on_failure says. At the end each request that waits takes as long, one after the other, so that whoever ends collectors kills them. Here a send is one
// attempt, of `timeout` at most, and what is between attempts is exporterhelper's, as in every other exporter: retry_on_failure says how long, and at the
// end each request is tried once, until one gets no answer. A backend that limits rates (429) is one to try again.
//
// With `wal` it is contrib's as it is.
package prometheusremotewriteexporter // import "github.com/lenscol/lenscol/exporter/prometheusremotewriteexporter"

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	contrib "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewFactory returns the factory of prometheus_remote_write.
func NewFactory() exporter.Factory {
	base := contrib.NewFactory()
	return factory{base, base.(aliased)}
}

// factory is contrib's, but for what it creates.
type factory struct {
	exporter.Factory
	aliased
}

// aliased is how the core knows the older spelling of a type.
type aliased interface {
	DeprecatedAlias() component.Type
	SetDeprecatedAlias(component.Type)
}

// Feature gates of contrib's exporter.
const (
	retryOn429      = "exporter.prometheusremotewritexporter.RetryOn429"
	multipleWorkers = "exporter.prometheusremotewritexporter.EnableMultipleWorkers"
)

func (f factory) CreateMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	own := cfg.(*contrib.Config)
	if own.WAL.HasValue() {
		return f.Factory.CreateMetrics(ctx, set, cfg)
	}
	if err := featuregate.GlobalRegistry().Set(retryOn429, true); err != nil {
		return nil, err
	}
	once := *own // The config itself is what a reload compares.
	once.BackOffConfig.Enabled = false
	once.RemoteWriteQueue.Enabled = false
	once.TimeoutSettings.Timeout = 0
	sender, err := f.Factory.CreateMetrics(ctx, inside(set), &once)
	if err != nil {
		return nil, err
	}
	queue := configoptional.None[exporterhelper.QueueBatchConfig]()
	if own.RemoteWriteQueue.Enabled {
		queue = configoptional.Some(exporterhelper.QueueBatchConfig{
			Sizer: exporterhelper.RequestSizerTypeRequests, QueueSize: int64(own.RemoteWriteQueue.QueueSize), NumConsumers: consumers(own),
		})
	}
	exp := &remoteWrite{sender: sender}
	exp.Metrics, err = exporterhelper.NewMetrics(ctx, set, cfg, exp.send,
		exporterhelper.WithCapabilities(sender.Capabilities()),
		exporterhelper.WithStart(sender.Start),
		exporterhelper.WithShutdown(sender.Shutdown),
		exporterhelper.WithTimeout(own.TimeoutSettings),
		exporterhelper.WithRetry(own.BackOffConfig),
		exporterhelper.WithQueue(queue),
	)
	return exp, err
}

// remoteWrite is exporterhelper's exporter around contrib's.
type remoteWrite struct {
	exporter.Metrics
	sender       exporter.Metrics
	ending, late atomic.Bool // the end has begun; the last send got no answer in time
}

var errEnding = errors.New("not tried: there was no answer to what was sent before, and the end has begun")

func (w *remoteWrite) send(ctx context.Context, md pmetric.Metrics) error {
	if w.ending.Load() && w.late.Load() {
		return errEnding
	}
	err := w.sender.ConsumeMetrics(ctx, md)
	if err == nil {
		err = ctx.Err() // contrib leaves the rest out where the time is over between two requests.
	}
	w.late.Store(errors.Is(err, context.DeadlineExceeded))
	return retryable(err)
}

// Shutdown ends the retries, and then the queue, which sends what waits.
func (w *remoteWrite) Shutdown(ctx context.Context) error {
	w.ending.Store(true)
	return w.Metrics.Shutdown(ctx)
}

// consumers of the queue are one, so that the points of a series stay in their order, unless contrib's gate is open.
func consumers(cfg *contrib.Config) (n int) {
	n = 1
	featuregate.GlobalRegistry().VisitAll(func(gate *featuregate.Gate) {
		if gate.ID() == multipleWorkers && gate.IsEnabled() {
			n = cfg.RemoteWriteQueue.NumConsumers
		}
	})
	return n
}

// retryable takes from an error of several requests those that are permanent, unless there are no others. Time that is over is none:
// contrib calls it permanent, since it has tried again by then. A point that Prometheus has already it takes once more.
func retryable(err error) error {
	errs := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		errs = several.Unwrap()
	}
	var again []error
	for _, err := range errs {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			again = append(again, fmt.Errorf("no answer in time: %w", context.DeadlineExceeded))
		case err != nil && !consumererror.IsPermanent(err):
			again = append(again, err)
		}
	}
	if len(again) == 0 {
		return err
	}
	return errors.Join(again...)
}

// inside are settings for what is within the exporter: what exporterhelper counts and logs of a send, it does outside.
func inside(set exporter.Settings) exporter.Settings {
	set.MeterProvider = withoutHelper{set.MeterProvider}
	set.Logger = set.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return withoutRefusals{core} }))
	return set
}

type withoutHelper struct{ metric.MeterProvider }

func (p withoutHelper) Meter(name string, opts ...metric.MeterOption) metric.Meter {
	if name == "go.opentelemetry.io/collector/exporter/exporterhelper" {
		return metricnoop.Meter{}
	}
	return p.MeterProvider.Meter(name, opts...)
}

type withoutRefusals struct{ zapcore.Core }

func (c withoutRefusals) With(fields []zapcore.Field) zapcore.Core {
	return withoutRefusals{c.Core.With(fields)}
}

func (c withoutRefusals) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if strings.HasPrefix(entry.Message, "Exporting failed.") {
		return checked
	}
	return c.Core.Check(entry, checked)
}
