// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/rank"
)

// ErrAlreadySetUp is of a second Setup in one process.
var ErrAlreadySetUp = errors.New("telemetry is set up already in this process")

var isSetUp atomic.Bool

// Setup starts the telemetry of this process: it finds the run id, decides whether this rank exports, makes the providers
// and makes them OpenTelemetry's global ones, with W3C trace context and baggage as the global propagator, and switches the
// span groups on (NeMo Lens, setup_telemetry).
//
// Where the Config is disabled, or the strategy picks other ranks, nothing is started, no goroutine and no connection: the
// Handle's providers do nothing, and the global ones and the groups stay as they are, off unless the program switched any on.
//
// Of the environment, blank variables OTEL_* are taken out, and members that cannot be read of OTEL_RESOURCE_ATTRIBUTES and of
// headers: OpenTelemetry's SDK, which reads them too, does not know that they say nothing.
//
// The error is of the Config, of an option, or [ErrAlreadySetUp]; an endpoint that cannot be reached is none. The Handle
// is never nil: beside an error it is one that does nothing. ctx bounds Setup alone.
func Setup(ctx context.Context, cfg Config, opts ...Option) (*Handle, error) {
	o := newOptions(opts)
	if !cfg.Enabled {
		return newHandle(identity{}), nil
	}
	before := isSetUp.Swap(true)
	if before && !o.reinit {
		return newHandle(identity{}), fmt.Errorf("set up telemetry: %w", ErrAlreadySetUp)
	}
	h, err := setup(ctx, cfg, o)
	if err != nil {
		isSetUp.Store(before)
		return newHandle(identity{}), fmt.Errorf("set up telemetry: %w", err)
	}
	return h, nil
}

func setup(ctx context.Context, cfg Config, o *options) (*Handle, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	id, err := identify(ctx, cfg, o)
	if err != nil {
		return nil, err
	}
	exports, err := id.exports(ctx, cfg, o)
	if err != nil {
		return nil, err
	}
	h := newHandle(id)
	if exports {
		if err := h.start(ctx, cfg, o); err != nil {
			return nil, errors.Join(err, h.Shutdown(ctx))
		}
	}
	if o.publish {
		restore, err := publish(id.resource)
		if err != nil {
			return nil, errors.Join(err, h.Shutdown(ctx))
		}
		h.undo = append(h.undo, restore)
	}
	return h, nil
}

// exports decides whether this process exports. One that has no rank does, and so does one of which the strategy cannot tell.
func (id identity) exports(ctx context.Context, cfg Config, o *options) (bool, error) {
	strategy, who := o.strategy, id.rank
	if !id.isRank {
		if strategy == nil {
			return true, nil
		}
		who = rank.Identity{Rank: 0, WorldSize: 1}
	}
	if strategy == nil {
		var err error
		if strategy, err = cfg.strategy(who.WorldSize); err != nil {
			return false, fmt.Errorf("export_strategy: %q: %w", cfg.ExportStrategy, err)
		}
	}
	if who.LocalRank < 0 {
		who.LocalRank = 0 // NeMo Lens: LOCAL_RANK or 0
	}
	if !strategy.Decides(who) {
		slog.WarnContext(ctx, "the strategy cannot tell whether this rank exports, so it does: the world size is not known",
			"strategy", cfg.ExportStrategy, "rank", who.Rank)
		return true, nil
	}
	return strategy.Exports(who), nil
}

// start makes the providers, and then all else that runs while the process exports.
func (h *Handle) start(ctx context.Context, cfg Config, o *options) error {
	h.exporting = true
	if err := errors.Join(checkBatches(), mendEnvironment()); err != nil {
		return err
	}
	if cfg.Exporter == ExporterConsole {
		for _, signal := range signals {
			signal.of(&cfg).toConsole()
		}
	}
	warnOfTimeouts(ctx, cfg)
	if cfg.TracesEnabled {
		if err := h.startTraces(ctx, cfg, o); err != nil {
			return fmt.Errorf("traces: %w", err)
		}
	}
	if cfg.MetricsEnabled {
		if err := h.startMetrics(ctx, cfg, o); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	if cfg.LogsEnabled {
		if err := h.startLogs(ctx, cfg, o); err != nil {
			return fmt.Errorf("logs: %w", err)
		}
	}
	for _, p := range h.signals {
		h.undo = append(h.undo, p.install())
	}
	h.undo = append(h.undo, replace(otel.GetTextMapPropagator, otel.SetTextMapPropagator, newPropagator()))
	h.undo = append(h.undo, func() { lens.SetGroups("") })
	lens.SetGroups(cfg.SpanGroups)
	if o.groupsFile != "" {
		h.stopWatch = watchGroups(ctx, o.groupsFile, o.groupsSignals)
	}
	return nil
}

// shortTimeout is a time in which hardly an export succeeds.
const shortTimeout = 100 * time.Millisecond

// warnOfTimeouts tells of a timeout that was meant for OpenTelemetry's SDK for Python, which reads seconds where the specification
// has milliseconds (opentelemetry-python #4044).
func warnOfTimeouts(ctx context.Context, cfg Config) {
	for _, signal := range signals {
		if t := signal.of(&cfg); t.sends() && t.timeout() < shortTimeout {
			slog.WarnContext(ctx, "exports have hardly any time: OTEL_EXPORTER_OTLP_TIMEOUT is in milliseconds, though the SDK for Python reads seconds",
				"signal", signal.name, "timeout", t.timeout())
			return
		}
	}
}

// replace sets a global, and returns what sets it back unless somebody else has set it meanwhile.
func replace[T comparable](get func() T, set func(T), value T) (restore func()) {
	before := get()
	set(value)
	return func() {
		if get() == value {
			set(before)
		}
	}
}

// newPropagator is lens.Propagator as a pointer, which can be compared.
func newPropagator() propagation.TextMapPropagator {
	return &struct{ propagation.TextMapPropagator }{lens.Propagator()}
}
