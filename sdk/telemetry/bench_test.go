// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/telemetry"
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

// The same, from thousands of goroutines at once.
func BenchmarkSpanParallel(b *testing.B) {
	each(b, func(b *testing.B, span func(context.Context)) {
		inFlight(b.N, func() { span(b.Context()) })
	})
}

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
		b.ResetTimer()
		run(b, func(ctx context.Context) {
			_, span := tracer.Start(ctx, "train.step", trace.WithAttributes(
				attribute.Int("step", 7), attribute.String("phase", "warm"), attribute.Float64("loss", 0.5)))
			span.End()
		})
	})
	b.Run("lens", func(b *testing.B) {
		step := lensSpans(b)
		b.ReportAllocs()
		b.ResetTimer()
		run(b, func(ctx context.Context) {
			_, span := step.Start(ctx, "train.step", lens.Int("step", 7), lens.String("phase", "warm"), lens.Float64("loss", 0.5))
			span.End()
		})
	})
}

// lensSpans is a group that is on, behind what Setup installs.
func lensSpans(tb testing.TB) lens.SpanGroup {
	cfg := telemetry.Default()
	cfg.Enabled, cfg.MetricsEnabled, cfg.SpanGroups = true, false, "step"
	h, err := telemetry.Setup(tb.Context(), cfg, telemetry.WithRank(0, 1),
		telemetry.WithSpanExporter(nowhere{}), telemetry.WithReinit())
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = h.Shutdown(context.Background()) })
	return lens.Group("step")
}

func provider(tb testing.TB) *sdktrace.TracerProvider {
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(nowhere{}))
	tb.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return p
}

type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }

// TestSpansShareNoLockOfOurs reads from the mutex profile, with all goroutines at it, which functions held a lock that others
// waited for: OpenTelemetry's may be, none of ours is.
func TestSpansShareNoLockOfOurs(t *testing.T) {
	step := lensSpans(t)
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	before := lockHolders()
	inFlight(4*goroutines, func() {
		ctx, span := step.Start(t.Context(), "train.step", lens.Int("step", 7), lens.String("phase", "warm"), lens.Float64("loss", 0.5))
		_, child := step.Start(ctx, "forward")
		child.End()
		span.End()
	})
	waits := 0
	for function, n := range lockHolders() {
		n -= before[function]
		waits += n
		if strings.Contains(function, "lenscol") {
			require.Zero(t, n, "%s holds a lock that others wait for", function)
		}
	}
	t.Logf("%d waits for a mutex in all", waits)
}

// lockHolders counts, by the function that held a mutex, how often others waited for it. Locks of the runtime, as of the
// memory that a function allocates, are not that function's.
func lockHolders() map[string]int {
	records := make([]runtime.BlockProfileRecord, 1000)
	n, ok := runtime.MutexProfile(records)
	for !ok {
		records = make([]runtime.BlockProfileRecord, 2*n)
		n, ok = runtime.MutexProfile(records)
	}
	holders := map[string]int{}
	for _, record := range records[:n] {
		mutex := false
		for frames := runtime.CallersFrames(record.Stack()); ; {
			frame, more := frames.Next()
			isMutex := strings.Contains(frame.Function, "Mutex).")
			if mutex = mutex || isMutex; !isMutex || !more {
				if mutex {
					holders[frame.Function] += int(record.Count)
				}
				break
			}
		}
	}
	return holders
}
