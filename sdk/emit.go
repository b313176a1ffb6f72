// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens // import "github.com/lenscol/lenscol/sdk"

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// EmitSpan writes a span of an interval that is over, in the trace of ctx, and returns it, ended. Times are wall clock, between
// the years 1678 and 2262.
//
// An end before the start is a clock that was set back, or two clocks: the end is set to the start, the attributes inverted.*
// hold the times as they came, as texts in epoch seconds, and a warning is logged (NeMo Lens, emit_span).
func EmitSpan(ctx context.Context, name string, start, end time.Time, attrs ...Attr) *Span {
	return emit(ctx, name, start, end, EmitOptions{}, attrs)
}

// EmitSpanWith is [EmitSpan] with options.
func EmitSpanWith(ctx context.Context, name string, start, end time.Time, o EmitOptions, attrs ...Attr) *Span {
	return emit(ctx, name, start, end, o, attrs)
}

// EmitOptions are what few emitted spans have. The zero value adds nothing.
type EmitOptions struct {
	Events      []Event
	Status      codes.Code
	Description string // of Status, where that is an error
}

// Event is a moment in a span, with the wall clock's time.
type Event struct {
	Name string
	Time time.Time
}

// EmitSpan is [EmitSpan] while g is on; while it is off, it returns nil.
func (g SpanGroup) EmitSpan(ctx context.Context, name string, start, end time.Time, attrs ...Attr) *Span {
	if !g.Enabled() {
		return nil
	}
	return emit(ctx, name, start, end, EmitOptions{}, attrs)
}

// EmitSpanWith is [SpanGroup.EmitSpan] with options.
func (g SpanGroup) EmitSpanWith(ctx context.Context, name string, start, end time.Time, o EmitOptions, attrs ...Attr) *Span {
	if !g.Enabled() {
		return nil
	}
	return emit(ctx, name, start, end, o, attrs)
}

func emit(ctx context.Context, name string, from, to time.Time, o EmitOptions, attrs []Attr) *Span {
	// Without their monotonic readings: the times that are exported are those of the wall clock.
	from, to = from.Round(0), to.Round(0)
	if to.Before(from) {
		start, end, delta := seconds(from.UnixNano()), seconds(to.UnixNano()), seconds(from.UnixNano()-to.UnixNano())
		slog.Warn("span ends before it starts, its end is set to its start", "span", name,
			"start_epoch_seconds", start, "end_epoch_seconds", end, "delta_seconds", delta)
		attrs = append(slices.Clone(attrs),
			String(semconv.InvertedSkew, "true"),
			String(semconv.InvertedStartSeconds, start),
			String(semconv.InvertedEndSeconds, end),
			String(semconv.InvertedDeltaSeconds, delta))
		to = from
	}
	_, span := startWith(ctx, name, SpanOptions{StartTime: from}, attrs)
	for _, e := range o.Events {
		span.span.AddEvent(e.Name, trace.WithTimestamp(e.Time.Round(0)))
	}
	span.SetStatus(o.Status, o.Description)
	span.span.End(trace.WithTimestamp(to))
	return span
}

// seconds writes nanoseconds as seconds, exactly: all nine digits behind the point.
func seconds(nanos int64) string {
	sign := ""
	if nanos < 0 {
		sign, nanos = "-", -nanos
	}
	return fmt.Sprintf("%s%d.%09d", sign, nanos/1e9, nanos%1e9)
}
