// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/lenstest"
	"github.com/lenscol/lenscol/sdk/semconv"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

// enable sets the environment of rank 3 of 8.
func enable(t *testing.T) {
	for name, value := range map[string]string{
		"NEMO_LENS_ENABLED": "true", "NEMO_LENS_LOGS_ENABLED": "true", "NEMO_LENS_SPAN_GROUPS": "per_step", "NEMO_LENS_EXPORT_STRATEGY": "all_ranks",
		"RANK": "3", "WORLD_SIZE": "8", "TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	} {
		t.Setenv(name, value)
	}
	t.Cleanup(func() { lens.DefaultRegistry().Clear() })
}

func TestRun(t *testing.T) {
	enable(t)
	memory := lenstest.NewMemory(t)
	require.NoError(t, run(t.Context(), []string{"-steps=20", "-step-time=1ns", "-microbatches=2"}, memory.Options()...))

	startup := memory.Span("nv.dl.training.startup")
	require.Equal(t, "b7ad6b7169203331", startup.ParentID, "it is the launcher's child")
	require.Equal(t, int64(3), startup.Resource[semconv.DLRank])
	passes := memory.SpansNamed("nv.dl.training.iter_block")
	require.Len(t, passes, 2)
	require.Equal(t, startup.SpanID, passes[0].Links[0].SpanID)
	require.Equal(t, passes[0].SpanID, passes[1].Links[0].SpanID)
	require.NotEqual(t, passes[0].TraceID, passes[1].TraceID)

	steps := memory.SpansNamed("nv.dl.training.iteration")
	require.Len(t, steps, 20)
	for i, step := range steps {
		require.Equal(t, int64(i+1), step.Attributes[semconv.TrainingStep])
		require.Equal(t, passes[i/10].SpanID, step.ParentID)
	}
	require.Equal(t, int64(2), memory.SpansNamed("nv.dl.training.iteration.forward_backward")[0].Attributes[semconv.NumMicrobatches])
	require.Equal(t, false, memory.SpansNamed("nv.dl.training.iteration.optimizer_step")[7].Attributes[semconv.OptimizerUpdateSuccessful])
	require.Len(t, memory.SpansNamed("nv.dl.training.checkpoint.save"), 2)
	require.Len(t, memory.SpansNamed("nv.dl.training.evaluate.step"), 4)
	report := memory.SpansNamed("nv.mlm.train.log")[0]
	event, there := report.Event("nv.dl.training.objective")
	require.True(t, there)
	require.InDelta(t, 9.24, event.Attributes["nv.dl.training.objective.value"], 0.01)

	require.EqualValues(t, 20, memory.Point("megatron.training.step_duration_ms").Count)
	require.Equal(t, 2.0, memory.Point("megatron.training.skipped_iters").Value)
	require.Equal(t, 20*4096.0, memory.Point("nv.dl.training.tokens.processed").Value)
	require.InDelta(t, 7.36, memory.Point("megatron.training.loss").Value, 0.01)
	require.Len(t, memory.Records(), 7)
	require.Equal(t, startup.SpanID, memory.Record("training starts").SpanID)
}

// stopAt calls stop when a span of that name starts.
type stopAt struct {
	sdktrace.SpanProcessor
	name string
	stop context.CancelFunc
}

func (s stopAt) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	if span.Name() == s.name {
		s.stop()
	}
}

// A rank that is stopped leaves spans open; the shutdown ends them, innermost first.
func TestRunThatIsStopped(t *testing.T) {
	enable(t)
	memory := lenstest.NewMemory(t)
	ctx, stop := context.WithCancel(t.Context())
	hook := telemetry.WithSpanProcessor(stopAt{tracetest.NewSpanRecorder(), "nv.dl.training.startup.model_init", stop})
	require.NoError(t, run(ctx, []string{"-step-time=1m"}, append(memory.Options(), hook)...))
	var open []string
	for _, span := range memory.Spans() {
		if span.Attributes[semconv.SpanTruncated] == true {
			open = append(open, span.Name)
		}
	}
	require.Equal(t, []string{"nv.dl.training.startup.model_init", "nv.dl.training.startup"}, open)
	memory.Record("stopped, the step that runs is given up")
}

func TestDisabledRunRecordsNothing(t *testing.T) {
	enable(t)
	t.Setenv("NEMO_LENS_ENABLED", "false")
	memory := lenstest.NewMemory(t)
	require.NoError(t, run(t.Context(), []string{"-steps=2", "-step-time=1ns"}, memory.Options()...))
	require.Empty(t, memory.Spans())
	require.Empty(t, memory.Points())
	require.Empty(t, memory.Records())
}

func TestFlagsThatAreRefused(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), []string{"-steps=0"}), "above 0")
}
