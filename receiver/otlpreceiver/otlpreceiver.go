// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpreceiver is the core's otlp receiver, with its settings, of which nobody who connected holds up the end. Whoever ends collectors waits for a
// while, and kills: what waited in memory is lost then.
//
// A gRPC server ends when its connections have ended, and gives one that has not yet spoken two minutes for that. No setting of the core says how long a
// connection may be silent at its beginning; here it is 10 seconds.
//
// A server ends when its requests have, and a request that waits for a full queue, of a backend that is away, waits for as long as its sender does. Here what
// is not through 5 seconds after the end began is answered with Unavailable (503): it was not acknowledged, and is sent again.
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
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.opentelemetry.io/collector/receiver"
	core "go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// handshakeTimeout is how long a connection has until it speaks TLS, where that is on, and HTTP/2. Tests shorten it.
var handshakeTimeout = 10 * time.Second

// endTimeout is how long requests may go on once the end began. Tests shorten it.
var endTimeout = 5 * time.Second

// NewFactory returns the factory of otlp.
func NewFactory() receiver.Factory {
	base := core.NewFactory().(xreceiver.Factory)
	f := &factory{servers: map[*core.Config]*server{}}
	return xreceiver.NewFactory(base.Type(), base.CreateDefaultConfig,
		xreceiver.WithTraces(func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
			s := f.server(cfg)
			next, err := consumer.NewTraces(until(s, next.ConsumeTraces), consumer.WithCapabilities(next.Capabilities()))
			if err != nil {
				return nil, err
			}
			r, err := base.CreateTraces(ctx, set, s.cfg, next)
			return bounded{r, s}, err
		}, base.TracesStability()),
		xreceiver.WithMetrics(func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			s := f.server(cfg)
			next, err := consumer.NewMetrics(until(s, next.ConsumeMetrics), consumer.WithCapabilities(next.Capabilities()))
			if err != nil {
				return nil, err
			}
			r, err := base.CreateMetrics(ctx, set, s.cfg, next)
			return bounded{r, s}, err
		}, base.MetricsStability()),
		xreceiver.WithLogs(func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
			s := f.server(cfg)
			next, err := consumer.NewLogs(until(s, next.ConsumeLogs), consumer.WithCapabilities(next.Capabilities()))
			if err != nil {
				return nil, err
			}
			r, err := base.CreateLogs(ctx, set, s.cfg, next)
			return bounded{r, s}, err
		}, base.LogsStability()),
		xreceiver.WithProfiles(func(ctx context.Context, set receiver.Settings, cfg component.Config, next xconsumer.Profiles) (xreceiver.Profiles, error) {
			s := f.server(cfg)
			next, err := xconsumer.NewProfiles(until(s, next.ConsumeProfiles), consumer.WithCapabilities(next.Capabilities()))
			if err != nil {
				return nil, err
			}
			r, err := base.CreateProfiles(ctx, set, s.cfg, next)
			return bounded{r, s}, err
		}, base.ProfilesStability()),
	)
}

// factory knows the servers: the signals of a receiver share one, by its config.
type factory struct {
	mu      sync.Mutex
	servers map[*core.Config]*server
}

// server is what the core gets in a config's place, and the end of its requests.
type server struct {
	factory  *factory
	own, cfg *core.Config
	ended    context.Context // done when its requests may go on no longer
	end      context.CancelFunc
}

// middleware is the id by which the server finds its timeout.
var middleware = component.MustNewIDWithName("lenscol", "handshake_timeout")

// server finds the config's, or makes it of a copy that names the middleware; the config itself is what a reload compares.
func (f *factory) server(cfg component.Config) *server {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := cfg.(*core.Config)
	if known, ok := f.servers[own]; ok {
		return known
	}
	copied := *own
	if own.Protocols.GRPC.HasValue() {
		grpc := *own.Protocols.GRPC.Get()
		grpc.Middlewares = append(slices.Clone(grpc.Middlewares), configmiddleware.Config{ID: middleware})
		copied.Protocols.GRPC = configoptional.Some(grpc)
	}
	s := &server{factory: f, own: own, cfg: &copied}
	s.ended, s.end = context.WithCancel(context.Background())
	f.servers[own] = s
	return s
}

func (f *factory) forget(cfg *core.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.servers, cfg)
}

var errEnding = status.Error(codes.Unavailable, "the collector ends, and could not hand this on in time; it was not acknowledged and is to be sent again")

// until is a consumer whose requests end with the server's.
func until[B any](s *server, next func(context.Context, B) error) func(context.Context, B) error {
	return func(ctx context.Context, batch B) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ended, cancel)()
		err := next(ctx, batch)
		if err != nil && s.ended.Err() != nil && !consumererror.IsPermanent(err) {
			return errEnding
		}
		return err
	}
}

// bounded is a receiver whose host has the middleware, and whose requests end with it.
type bounded struct {
	component.Component
	server *server
}

func (b bounded) Start(ctx context.Context, h component.Host) error {
	return b.Component.Start(ctx, host{h})
}

func (b bounded) Shutdown(ctx context.Context) error {
	b.server.factory.forget(b.server.own)
	defer time.AfterFunc(endTimeout, b.server.end).Stop()
	return b.Component.Shutdown(ctx)
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
