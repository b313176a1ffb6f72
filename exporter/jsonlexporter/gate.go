// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// gate stands before a sending queue and refuses what comes once the shutdown has begun. exporterhelper's queue (v0.158)
// takes a request, and says that it did, when nobody is left to read it.
type gate struct {
	closed atomic.Bool
	inside sync.RWMutex // read-locked by each request that is on its way into the queue
}

// gateGrace bounds how long a shutdown waits for requests that wait for room in the queue. They are refused by the queue's end.
const gateGrace = 5 * time.Second

func (g *gate) enter(offer func() error) error {
	if g.closed.Load() {
		return errClosed
	}
	g.inside.RLock()
	defer g.inside.RUnlock()
	if g.closed.Load() {
		return errClosed
	}
	return offer()
}

// close lets the requests that are inside pass, then shuts the queue down.
func (g *gate) close(ctx context.Context, shutdown func(context.Context) error) error {
	g.closed.Store(true)
	empty := make(chan struct{})
	go func() {
		g.inside.Lock()
		defer g.inside.Unlock()
		close(empty)
	}()
	select {
	case <-empty:
	case <-ctx.Done():
	case <-time.After(gateGrace):
	}
	return shutdown(ctx)
}

type gatedTraces struct {
	exporter.Traces
	gate
}

func (g *gatedTraces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return g.enter(func() error { return g.Traces.ConsumeTraces(ctx, td) })
}

func (g *gatedTraces) Shutdown(ctx context.Context) error { return g.close(ctx, g.Traces.Shutdown) }

type gatedMetrics struct {
	exporter.Metrics
	gate
}

func (g *gatedMetrics) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return g.enter(func() error { return g.Metrics.ConsumeMetrics(ctx, md) })
}

func (g *gatedMetrics) Shutdown(ctx context.Context) error { return g.close(ctx, g.Metrics.Shutdown) }

type gatedLogs struct {
	exporter.Logs
	gate
}

func (g *gatedLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return g.enter(func() error { return g.Logs.ConsumeLogs(ctx, ld) })
}

func (g *gatedLogs) Shutdown(ctx context.Context) error { return g.close(ctx, g.Logs.Shutdown) }
