// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package slogbridge is NeMo Lens's logging bridge for log/slog: what a program logs becomes log records of OpenTelemetry too, by
// otelslog, with the trace of the context that was logged with.
//
//	slog.SetDefault(slogbridge.Bridge(slog.Default(), slogbridge.Options{}))
//	slog.InfoContext(ctx, "saved", "step", 100)
//
// It may be set up before the logger provider is: while there is none, nothing is bridged. It never fails: what the program
// logged elsewhere is there, whatever becomes of the record.
package slogbridge // import "github.com/lenscol/lenscol/sdk/contrib/slogbridge"

import (
	"context"
	"fmt"
	stdlog "log"
	"log/slog"
	"sync/atomic"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/log"

	lens "github.com/lenscol/lenscol/sdk"
)

// Options say what is bridged. The zero value is all from INFO on, to the global provider.
type Options struct {
	Scope    string             // instrumentation scope of the records; lens.ScopeName where it is empty
	Level    slog.Leveler       // least level; slog.LevelInfo where it is nil. A *slog.LevelVar can be changed later
	Provider log.LoggerProvider // the global one where it is nil
}

// Bridge is a logger that logs to where logger does, and bridges (Lens, setup_logging_bridge).
//
// Where logger is the one that Go begins with, its lines are those of [slog.TextHandler] from here on, without the attributes
// that were added to it: it writes by way of package log, whose output [slog.SetDefault] leads back into the new
// logger, and each would wait for the other for ever.
func Bridge(logger *slog.Logger, o Options) *slog.Logger {
	own := logger.Handler()
	if fmt.Sprintf("%T", own) == "*slog.defaultHandler" {
		own = slog.NewTextHandler(stdlog.Writer(), nil)
	}
	return slog.New(slog.NewMultiHandler(own, NewHandler(o)))
}

// NewHandler is a handler that bridges and does nothing else.
func NewHandler(o Options) slog.Handler {
	if o.Scope == "" {
		o.Scope = lens.ScopeName
	}
	if o.Level == nil {
		o.Level = slog.LevelInfo
	}
	return &handler{next: otelslog.NewHandler(o.Scope, otelslog.WithLoggerProvider(o.Provider)), level: o.Level, reported: new(atomic.Bool)}
}

// handler is otelslog's, with a level and without failures.
type handler struct {
	next     slog.Handler
	level    slog.Leveler
	reported *atomic.Bool
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer h.survive()
	return level >= h.level.Level() && h.next.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	defer h.survive()
	if err := h.next.Handle(ctx, record); err != nil {
		h.report(fmt.Errorf("a log record was not bridged: %w", err))
	}
	return nil
}

// report hands the first failure on, and no other: whoever hears of it may log it, which leads back here.
func (h *handler) report(err error) {
	if h.reported.CompareAndSwap(false, true) {
		otel.Handle(err)
	}
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func() slog.Handler { return h.next.WithAttrs(attrs) })
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(func() slog.Handler { return h.next.WithGroup(name) })
}

// with is h with another handler behind, or h as it is if making that one panics.
func (h *handler) with(next func() slog.Handler) slog.Handler {
	out := *h
	func() {
		defer h.survive()
		out.next = next()
	}()
	return &out
}

// survive ends a panic, as values that are logged cause it by their Error method.
func (h *handler) survive() {
	if p := recover(); p != nil {
		h.report(fmt.Errorf("a log record was not bridged: panic: %v", p))
	}
}
