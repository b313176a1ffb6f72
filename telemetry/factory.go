// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry is the collector's own telemetry, readable from inside the process.
//
// Its factory is upstream's, otelconftelemetry, with the same configuration, and gives in addition what no extension can
// have otherwise:
//
//   - the collector's metrics at any moment, whatever readers the config has, and at level none too;
//   - which exporters' sends fail, as their logs say it, at any log level. No metric tells before the retries of a send
//     end, which is minutes later.
//
// Both are had from [Current]. A collector that was built without this factory runs as well; there Current is nil.
package telemetry // import "github.com/lenscol/lenscol/telemetry"

import (
	"context"
	"fmt"

	otelconf "go.opentelemetry.io/contrib/otelconf/v0.3.0"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configtelemetry"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/service/telemetry"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// NewFactory makes the factory of the collector's own telemetry. In a builder config it stands under `telemetry`.
func NewFactory() telemetry.Factory {
	base := otelconftelemetry.NewFactory()
	f := &factory{base: base}
	return telemetry.NewFactory(base.CreateDefaultConfig,
		telemetry.WithCreateResource(base.CreateResource),
		telemetry.WithCreateLogger(f.createLogger),
		telemetry.WithCreateMeterProvider(f.createMeterProvider),
		telemetry.WithCreateTracerProvider(base.CreateTracerProvider),
	)
}

// factory keeps what a service's logger and meter provider share. A service makes the logger first, and each service has
// a factory of its own: the collector asks for its factories whenever it makes one.
type factory struct {
	base     telemetry.Factory
	failures *failures
}

func (f *factory) createLogger(
	ctx context.Context, set telemetry.LoggerSettings, cfg component.Config,
) (*zap.Logger, component.ShutdownFunc, error) {
	logger, shutdown, err := f.base.CreateLogger(ctx, set, cfg)
	if err != nil {
		return nil, nil, err
	}
	f.failures = &failures{}
	return logger.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return &failureCore{Core: plainCore{c}, failures: f.failures}
	})), shutdown, nil
}

// createMeterProvider does what upstream's does, and adds a reader. Upstream has no way to add one, so that its few lines
// stand here again (otelconftelemetry/metrics.go of v0.158).
func (f *factory) createMeterProvider(
	ctx context.Context, set telemetry.MeterSettings, componentConfig component.Config,
) (telemetry.MeterProvider, error) {
	cfg := componentConfig.(*otelconftelemetry.Config)
	if cfg.Metrics.MigratedFromV02 {
		set.Logger.Warn("Telemetry metrics configuration is using the deprecated v0.2.0 Declarative Configuration format, please migrate to the v0.3.0 format",
			zap.String("url", "https://opentelemetry.io/docs/specs/otel/configuration/#declarative-configuration"))
	}
	provider := cfg.Metrics.MeterProvider
	if cfg.Metrics.Level == configtelemetry.LevelNone {
		set.Logger.Info("Internal metrics telemetry disabled")
		provider.Readers = nil
	}
	if provider.Views == nil && set.DefaultViews != nil {
		provider.Views = set.DefaultViews(cfg.Metrics.Level)
	}

	source := &Source{reader: sdkmetric.NewManualReader(), failures: f.failures}
	sdk, err := otelconf.NewSDK(otelconf.WithContext(ctx),
		otelconf.WithMeterProviderOptions(sdkmetric.WithReader(source.reader)),
		otelconf.WithOpenTelemetryConfiguration(otelconf.OpenTelemetryConfiguration{
			Resource:      resourceConfig(&cfg.Resource, set.Resource),
			MeterProvider: &provider,
		}))
	if err != nil {
		return nil, err
	}
	made, ok := sdk.MeterProvider().(telemetry.MeterProvider)
	if !ok {
		return nil, fmt.Errorf("the meter provider of otelconf, a %T, cannot be shut down", sdk.MeterProvider())
	}
	current.Store(source)
	return made, nil
}

// resourceConfig is the resource that the service has made for all its telemetry.
func resourceConfig(cfg *otelconftelemetry.ResourceConfig, resource *pcommon.Resource) *otelconf.Resource {
	config := &otelconf.Resource{SchemaUrl: cfg.SchemaUrl}
	if resource == nil {
		return config
	}
	for key, value := range resource.Attributes().All() {
		config.Attributes = append(config.Attributes, otelconf.AttributeNameValue{Name: key, Value: value.AsRaw()})
	}
	return config
}
