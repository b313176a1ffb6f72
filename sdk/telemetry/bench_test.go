// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/telemetry/internal/closer"
	"github.com/lenscol/lenscol/sdk/telemetry/internal/ids"
)

// A span of three attributes, started and ended, with a batch processor: by OpenTelemetry alone, and by lens with its ids
// and its open-span closer.
func BenchmarkSpan(b *testing.B) {
	each(b, func(b *testing.B, span func(context.Context)) {
		for b.Loop() {
			span(b.Context())
		}
	})
}

// The same, from as many goroutines as a rollout gateway has rollouts in flight.
func BenchmarkSpanParallel(b *testing.B) {
	each(b, func(b *testing.B, span func(context.Context)) {
		inFlight(b.N, func() { span(b.Context()) })
	})
}

const goroutines = 16384

// inFlight calls fn n times, from all goroutines.
func inFlight(n int, fn func()) {
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for range (n + i) / goroutines {
				fn()
			}
		})
	}
	all.Wait()
}

func each(b *testing.B, run func(b *testing.B, span func(context.Context))) {
	b.Run("otel", func(b *testing.B) {
		tracer := provider(b).Tracer("bench")
		b.ReportAllocs()
		run(b, func(ctx context.Context) {
			_, span := tracer.Start(ctx, "train.step", trace.WithAttributes(
				attribute.Int("step", 7), attribute.String("phase", "warm"), attribute.Float64("loss", 0.5)))
			span.End()
		})
	})
	b.Run("lens", func(b *testing.B) {
		step := lensSpans(b)
		b.ReportAllocs()
		run(b, func(ctx context.Context) {
			_, span := step.Start(ctx, "train.step", lens.Int("step", 7), lens.String("phase", "warm"), lens.Float64("loss", 0.5))
			span.End()
		})
	})
}

// lensSpans is a group that is on, behind what Setup installs.
func lensSpans(tb testing.TB) lens.SpanGroup {
	otel.SetTracerProvider(ids.WithRandomFlag(provider(tb, sdktrace.WithIDGenerator(ids.New()),
		sdktrace.WithSpanProcessor(closer.New(closer.DefaultLimit, nil)))))
	tb.Cleanup(func() { otel.SetTracerProvider(noop.NewTracerProvider()) })
	lens.SetGroups("step")
	tb.Cleanup(func() { lens.SetGroups("") })
	return lens.Group("step")
}

func provider(tb testing.TB, opts ...sdktrace.TracerProviderOption) *sdktrace.TracerProvider {
	p := sdktrace.NewTracerProvider(append(opts, sdktrace.WithBatcher(nowhere{}))...)
	tb.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return p
}

type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }
