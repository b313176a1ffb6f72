// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpreceiver is the core's otlp receiver, with its settings, of which a connection that says nothing does not hold up the end.
//
// A gRPC server ends when its connections have ended, and gives one that has not yet spoken two minutes for that. Whoever ends collectors waits for less, and
// kills: what waited in memory is lost then. No setting of the core says how long a connection may be silent at its beginning; here it is 10 seconds.
package otlpreceiver // import "github.com/lenscol/lenscol/receiver/otlpreceiver"

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/configmiddleware"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.opentelemetry.io/collector/receiver"
	core "go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"google.golang.org/grpc"
)

// handshakeTimeout is how long a connection has until it speaks TLS, where that is on, and HTTP/2. Tests shorten it.
var handshakeTimeout = 10 * time.Second

// NewFactory returns the factory of otlp.
func NewFactory() receiver.Factory {
	base := core.NewFactory().(xreceiver.Factory)
	f := &factory{configs: map[*core.Config]*core.Config{}}
	return xreceiver.NewFactory(base.Type(), base.CreateDefaultConfig,
		xreceiver.WithTraces(func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
			r, err := base.CreateTraces(ctx, set, f.config(cfg), next)
			return bounded{r, f, cfg}, err
		}, base.TracesStability()),
		xreceiver.WithMetrics(func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			r, err := base.CreateMetrics(ctx, set, f.config(cfg), next)
			return bounded{r, f, cfg}, err
		}, base.MetricsStability()),
		xreceiver.WithLogs(func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
			r, err := base.CreateLogs(ctx, set, f.config(cfg), next)
			return bounded{r, f, cfg}, err
		}, base.LogsStability()),
		xreceiver.WithProfiles(func(ctx context.Context, set receiver.Settings, cfg component.Config, next xconsumer.Profiles) (xreceiver.Profiles, error) {
			r, err := base.CreateProfiles(ctx, set, f.config(cfg), next)
			return bounded{r, f, cfg}, err
		}, base.ProfilesStability()),
	)
}

// factory knows for each config what the core gets in its place: the signals of a receiver share one server, by its config.
type factory struct {
	mu      sync.Mutex
	configs map[*core.Config]*core.Config
}

// middleware is the id by which the server finds its timeout.
var middleware = component.MustNewIDWithName("lenscol", "handshake_timeout")

// config is a copy that names the middleware; the config itself is what a reload compares.
func (f *factory) config(cfg component.Config) *core.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := cfg.(*core.Config)
	if known, ok := f.configs[own]; ok {
		return known
	}
	copied := *own
	if own.Protocols.GRPC.HasValue() {
		server := *own.Protocols.GRPC.Get()
		server.Middlewares = append(slices.Clone(server.Middlewares), configmiddleware.Config{ID: middleware})
		copied.Protocols.GRPC = configoptional.Some(server)
	}
	f.configs[own] = &copied
	return &copied
}

// bounded is a receiver whose host has the middleware.
type bounded struct {
	component.Component
	factory *factory
	cfg     component.Config
}

func (b bounded) Start(ctx context.Context, h component.Host) error {
	return b.Component.Start(ctx, host{h})
}

func (b bounded) Shutdown(ctx context.Context) error {
	b.factory.forget(b.cfg)
	return b.Component.Shutdown(ctx)
}

func (f *factory) forget(cfg component.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.configs, cfg.(*core.Config))
}

type host struct{ component.Host }

var _ componentstatus.Reporter = host{}

func (h host) Report(event *componentstatus.Event) { componentstatus.ReportStatus(h.Host, event) }

func (h host) GetExtensions() map[component.ID]component.Component {
	extensions := maps.Clone(h.Host.GetExtensions())
	if extensions == nil {
		extensions = map[component.ID]component.Component{}
	}
	extensions[middleware] = handshake{}
	return extensions
}

type handshake struct {
	component.StartFunc
	component.ShutdownFunc
}

var _ extensionmiddleware.GRPCServer = handshake{}

func (handshake) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	return []grpc.ServerOption{grpc.ConnectionTimeout(handshakeTimeout)}, nil
}
