// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/log"
	lognoop "go.opentelemetry.io/otel/log/noop"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/telemetry/internal/closer"
)

// DefaultTimeout bounds [Handle.ForceFlush] and [Handle.Shutdown] where the context has no deadline, as in NeMo Lens.
const DefaultTimeout = 5 * time.Second

// Handle is the telemetry that [Setup] started. Its methods may be called by several goroutines at once.
type Handle struct {
	identity
	exporting bool

	tracers trace.TracerProvider
	meters  metric.MeterProvider
	loggers log.LoggerProvider

	spans   *sdktrace.TracerProvider // nil where traces are off
	closer  *closer.Closer           // nil where traces are off
	signals []signalProvider         // those that are on

	life context.Context // is over when nothing is exported any more
	die  context.CancelFunc

	stopWatch func(context.Context) // of the groups' file
	undo      []func()              // what stop does at last, the last added first

	stopping atomic.Bool
	stopped  chan struct{} // is closed when stop is over
	stopErr  error
}

// signalProvider is what a provider of one signal can be told.
type signalProvider struct {
	name            string
	flush, shutdown func(context.Context) error
	install         func() (restore func()) // makes it OpenTelemetry's global one
}

// newHandle is a Handle that does nothing.
func newHandle(id identity) *Handle {
	h := &Handle{
		identity: id,
		tracers:  tracenoop.NewTracerProvider(),
		meters:   metricnoop.NewMeterProvider(),
		loggers:  lognoop.NewLoggerProvider(),
		stopped:  make(chan struct{}),
	}
	h.life, h.die = context.WithCancel(context.Background())
	return h
}

// IsExporting reports whether this process exports: it is enabled, and its rank is one that does.
func (h *Handle) IsExporting() bool { return h.exporting }

// RunID is the id of the run; empty where the Config is disabled.
func (h *Handle) RunID() string { return h.runID }

// Tracer is that of the scope nemo.lens.
func (h *Handle) Tracer() trace.Tracer { return h.tracers.Tracer(lens.ScopeName) }

// Meter is that of the scope nemo.lens.
func (h *Handle) Meter() metric.Meter { return h.meters.Meter(lens.ScopeName) }

// Logger is that of the scope nemo.lens.
func (h *Handle) Logger() log.Logger { return h.loggers.Logger(lens.ScopeName) }

// TracerProvider does nothing where this process does not export traces; so do the others.
func (h *Handle) TracerProvider() trace.TracerProvider { return h.tracers }

// MeterProvider makes meters of other scopes.
func (h *Handle) MeterProvider() metric.MeterProvider { return h.meters }

// LoggerProvider makes loggers of other scopes.
func (h *Handle) LoggerProvider() log.LoggerProvider { return h.loggers }

// RegisterSpanProcessor adds a processor while telemetry runs, behind those that are there. Where this process does not export
// traces it is never called.
func (h *Handle) RegisterSpanProcessor(p sdktrace.SpanProcessor) {
	if h.spans != nil {
		h.spans.RegisterSpanProcessor(p)
	}
}

// LeakedSpans is how many spans were still open at Shutdown, and were ended and marked by it.
func (h *Handle) LeakedSpans() uint64 {
	if h.closer == nil {
		return 0
	}
	return h.closer.Closed()
}

// UntrackedSpans is how many spans were started while there was no room to note them, with some 131,072 open: Shutdown does not
// end those.
func (h *Handle) UntrackedSpans() uint64 {
	if h.closer == nil {
		return 0
	}
	return h.closer.Untracked()
}

// ForceFlush exports what all signals hold, all at once, and returns when that is done or ctx is over, after [DefaultTimeout]
// where ctx has no deadline. The error names each signal that was not exported. After Shutdown it does nothing.
func (h *Handle) ForceFlush(ctx context.Context) error {
	if h.stopping.Load() {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	return h.each(ctx, "flush", func(p signalProvider) error { return p.flush(ctx) })
}

// Shutdown ends open spans with NeMo Lens's marks, exports what all signals hold, stops everything, and sets back what
// [Setup] set: the global providers and propagator, the groups, which are off then, and OTEL_RESOURCE_ATTRIBUTES. It
// returns when that is done or ctx is over, after [DefaultTimeout] where ctx has no deadline; what is not exported by then is
// lost. A context that is over already, such as the one that a signal ended, exports nothing.
//
// Only the first call does anything; every call returns its error, which names each signal that was not exported.
func (h *Handle) Shutdown(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if h.stopping.CompareAndSwap(false, true) {
		h.stopErr = h.stop(ctx)
		close(h.stopped)
		return h.stopErr
	}
	select {
	case <-h.stopped:
		return h.stopErr
	case <-ctx.Done():
		return fmt.Errorf("wait for the shutdown of telemetry: %w", context.Cause(ctx))
	}
}

func (h *Handle) stop(ctx context.Context) error {
	if h.stopWatch != nil {
		h.stopWatch(ctx)
	}
	err := h.each(ctx, "shut down", func(p signalProvider) error { return p.shutdown(ctx) })
	h.die()
	for _, undo := range slices.Backward(h.undo) {
		undo()
	}
	return err
}

// each does the same for every signal, all at once, so that none waits for the endpoint of another. It does not wait for what
// goes on after ctx is over.
func (h *Handle) each(ctx context.Context, what string, do func(signalProvider) error) error {
	results := make([]chan error, len(h.signals))
	for i, p := range h.signals {
		results[i] = make(chan error, 1)
		go func() { results[i] <- do(p) }()
	}
	var errs []error
	for i, p := range h.signals {
		var err error
		select {
		case err = <-results[i]:
		case <-ctx.Done():
			select {
			case err = <-results[i]: // it was done in time
			default:
				err = context.Cause(ctx)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", what, p.name, err))
		}
	}
	return errors.Join(errs...)
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, DefaultTimeout)
}
