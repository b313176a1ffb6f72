// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenstest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	logglobal "go.opentelemetry.io/otel/log/global"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/instruments"
	"github.com/lenscol/lenscol/sdk/lenstest"
	"github.com/lenscol/lenscol/sdk/rank"
	"github.com/lenscol/lenscol/sdk/semconv"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var step = lens.Group("step")

// train is code under test.
func train(ctx context.Context, n int) (err error) {
	ctx, span := step.Start(ctx, "train.step", lens.Int("step", n), lens.String("token", "hunter2"))
	defer span.Finish(&err)
	instruments.NewTraining(otel.Meter(lens.ScopeName), instruments.NewNames).Loss.Record(ctx, 2.5, attribute.Int("stage", 1))
	instruments.NewGym(otel.Meter(lens.ScopeName), instruments.NewNames).VerifyDuration.RecordDuration(ctx, 20*time.Millisecond)
	var record log.Record
	record.SetSeverity(log.SeverityWarn)
	record.SetBody(log.StringValue("loss is high"))
	record.AddAttributes(log.Float64("loss", 2.5), log.Map("where", log.Slice("at", log.Int64Value(1), log.BoolValue(true), log.BytesValue([]byte{1}))))
	logglobal.Logger(lens.ScopeName).Emit(ctx, record)
	_, inner := step.StartWith(ctx, "forward", lens.SpanOptions{Kind: trace.SpanKindClient, Links: []trace.Link{{SpanContext: span.SpanContext()}}})
	inner.End()
	return errors.New("diverged")
}

func TestWhatIsRecorded(t *testing.T) {
	tel := lenstest.New(t, lenstest.Options{})
	require.True(t, tel.IsExporting())
	require.ErrorContains(t, train(t.Context(), 7), "diverged")

	outer, inner := tel.Span("train.step"), tel.Span("forward")
	require.Equal(t, lenstest.Attributes{"step": int64(7), "token": lens.Redacted}, outer.Attributes)
	require.Equal(t, codes.Error, outer.Status)
	require.Equal(t, "diverged", outer.Description)
	require.Equal(t, "internal", outer.Kind)
	require.Equal(t, lens.ScopeName, outer.Scope)
	require.Equal(t, lenstest.RunID, outer.Resource[semconv.RunID])
	require.Empty(t, outer.ParentID)
	event, there := outer.Event("exception")
	require.True(t, there)
	require.Equal(t, "diverged", event.Attributes["exception.message"])
	_, there = outer.Event("none")
	require.False(t, there)

	require.Equal(t, outer.SpanID, inner.ParentID)
	require.Equal(t, outer.TraceID, inner.TraceID)
	require.False(t, inner.RemoteParent)
	require.Equal(t, "client", inner.Kind)
	require.Equal(t, outer.SpanID, inner.Links[0].SpanID)
	require.False(t, inner.End.Before(inner.Start))
	require.Len(t, tel.Spans(), 2)
	require.Len(t, tel.SpansNamed("forward"), 1)

	loss, verify := tel.Point("megatron.training.loss"), tel.Point("gym.verify.duration_ms")
	require.Equal(t, "gauge", loss.Kind)
	require.Equal(t, 2.5, loss.Value)
	require.Equal(t, lenstest.Attributes{"stage": int64(1)}, loss.Attributes)
	require.Equal(t, "histogram", verify.Kind)
	require.Equal(t, "ms", verify.Unit)
	require.EqualValues(t, 1, verify.Count)
	require.Equal(t, 20.0, verify.Sum)
	require.Len(t, verify.Buckets, len(verify.Bounds)+1)
	require.Len(t, tel.PointsNamed("megatron.training.loss"), 1)

	record := tel.Record("loss is high")
	require.Equal(t, "WARN", record.Severity)
	require.Equal(t, outer.SpanID, record.SpanID)
	require.Equal(t, outer.TraceID, record.TraceID)
	require.Equal(t, 2.5, record.Attributes["loss"])
	require.Equal(t, map[string]any{"at": []any{int64(1), true, []byte{1}}}, record.Attributes["where"])
	require.False(t, record.Time.IsZero())
	require.Len(t, tel.Records(), 1)
}

func TestProcessesThatRecordNothing(t *testing.T) {
	tests := []struct {
		name string
		opts lenstest.Options
	}{
		{"disabled", lenstest.Options{Disabled: true}},
		{"a rank that does not export", lenstest.Options{
			Config: func(c *telemetry.Config) { c.ExportStrategy = rank.NameSingleRank },
			Setup:  []telemetry.Option{telemetry.WithRank(0, 8)},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tel := lenstest.New(t, tt.opts)
			require.False(t, tel.IsExporting())
			require.False(t, step.Enabled())
			_, span := step.Start(t.Context(), "x")
			require.Nil(t, span)
			require.ErrorContains(t, train(t.Context(), 7), "diverged")
			require.Empty(t, tel.Spans())
			require.Empty(t, tel.Points())
			require.Empty(t, tel.Records())
		})
	}
}

func TestGroupsAndRank(t *testing.T) {
	tel := lenstest.New(t, lenstest.Options{Groups: "job", Setup: []telemetry.Option{telemetry.WithRank(3, 8)}})
	_, span := lens.Group("job").Start(t.Context(), "job")
	span.End()
	require.Error(t, train(t.Context(), 1))
	require.Len(t, tel.Spans(), 1, "step is off")
	require.Equal(t, int64(3), tel.Span("job").Resource[semconv.DLRank])
}

func TestShutdownOfTheCodeUnderTest(t *testing.T) {
	tel := lenstest.New(t, lenstest.Options{})
	sum, err := tel.Meter().Int64UpDownCounter("in.flight")
	require.NoError(t, err)
	sum.Add(t.Context(), 1, metric.WithAttributes(attribute.Bool("a", true)))
	lens.Start(t.Context(), "open")
	require.Empty(t, tel.Spans())
	require.NoError(t, tel.Shutdown(t.Context()))
	open := tel.Span("open")
	require.Equal(t, true, open.Attributes[semconv.SpanTruncated])
	point := tel.Point("in.flight")
	require.Equal(t, "sum", point.Kind)
	require.False(t, point.Monotonic)
	require.Equal(t, 1.0, point.Value)
}

func TestEverythingGlobalIsSetBack(t *testing.T) {
	tracers, meters, loggers, propagator := otel.GetTracerProvider(), otel.GetMeterProvider(), logglobal.GetLoggerProvider(), otel.GetTextMapPropagator()
	lens.SetGroups("checkpoint")
	t.Cleanup(func() { lens.SetGroups("") })
	for _, disabled := range []bool{false, true} {
		t.Run(fmt.Sprint("disabled ", disabled), func(t *testing.T) {
			lenstest.New(t, lenstest.Options{Disabled: disabled})
			require.False(t, lens.Group("checkpoint").Enabled() && disabled)
		})
		require.Equal(t, []string{"checkpoint"}, lens.EnabledGroups())
		require.Equal(t, tracers, otel.GetTracerProvider())
		require.Equal(t, meters, otel.GetMeterProvider())
		require.Equal(t, loggers, logglobal.GetLoggerProvider())
		require.Equal(t, propagator, otel.GetTextMapPropagator())
	}
}

// Nothing is lost, however many spans end before anybody looks.
func TestManySpans(t *testing.T) {
	tel := lenstest.New(t, lenstest.Options{})
	const goroutines, spans = 8, 1000
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range spans {
				_, span := step.Start(t.Context(), "x")
				span.End()
			}
		})
	}
	wg.Wait()
	require.Len(t, tel.Spans(), goroutines*spans)
}

func TestMemoryForCodeThatSetsUpItself(t *testing.T) {
	memory := lenstest.NewMemory(t)
	cfg := telemetry.Default()
	cfg.Enabled = true
	handle, err := telemetry.Setup(t.Context(), cfg, memory.Options()...)
	require.NoError(t, err)
	_, span := lens.Start(t.Context(), "own")
	span.End()
	require.NoError(t, handle.Shutdown(t.Context()))
	require.Equal(t, "own", memory.Span("own").Name)
}

// failing is a test that is expected to fail.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	panic(f)
}

func (f *failing) run(what func()) (message string) {
	defer func() {
		if p := recover(); p != f {
			panic(p)
		}
		message = f.message
	}()
	what()
	return ""
}

func TestMisuseFailsTheTest(t *testing.T) {
	f := &failing{TB: t}
	memory := lenstest.NewMemory(f)
	require.Equal(t, `lenstest: 0 spans "a", want one, of []`, f.run(func() { memory.Span("a") }))

	lenstest.New(t, lenstest.Options{})
	require.Equal(t, "lenstest: TestMisuseFailsTheTest has the telemetry of this process, which is global: one test at a time",
		f.run(func() { lenstest.New(f, lenstest.Options{}) }))
	t.Run("parallel", func(t *testing.T) {
		t.Parallel()
		require.Panics(t, func() { lenstest.New(t, lenstest.Options{}) })
	})
}

func TestConfigThatIsRefused(t *testing.T) {
	f := &failing{TB: t}
	message := f.run(func() {
		lenstest.New(f, lenstest.Options{Config: func(c *telemetry.Config) { c.Exporter = "paper" }})
	})
	require.Contains(t, message, `exporter: unknown exporter type "paper"`)
}
