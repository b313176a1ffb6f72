// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	lens "github.com/lenscol/lenscol/sdk"
)

// print is a provider that prints what ends. A program sets one that exports.
func print() {
	exporter := tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(printer{exporter})))
}

type printer struct{ sdktrace.SpanExporter }

func (printer) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, span := range spans {
		fmt.Print(span.Name(), " ", span.Status().Code)
		for _, kv := range span.Attributes() {
			fmt.Print(" ", kv.Key, "=", kv.Value.String())
		}
		fmt.Println()
	}
	return nil
}

var step = lens.Group("step")

func ExampleSpanGroup_Start() {
	print()
	train := func(n int) {
		_, span := step.Start(context.Background(), "train.step", lens.Int("step", n), lens.String("token", "hunter2"))
		defer span.End()
		span.SetAttributes(lens.Float64("loss", 0.5))
	}
	train(1) // the group is off
	lens.SetGroups("per_step")
	train(2)
	lens.SetGroups("")
	train(3)
	// Output: train.step Unset step=2 token=[REDACTED] loss=0.5
}

func ExampleManaged() {
	print()
	lens.SetGroups("checkpoint")
	defer lens.SetGroups("")
	err := lens.Managed(context.Background(), lens.Group("checkpoint"), "checkpoint.save",
		func(context.Context, *lens.Span) error { return errors.New("disk full") }, lens.Int("step", 100))
	fmt.Println(err)
	// Output:
	// checkpoint.save Error step=100
	// disk full
}

func ExampleSpan_Finish() {
	print()
	lens.SetGroups("checkpoint")
	defer lens.SetGroups("")
	save := func(ctx context.Context) (err error) {
		_, span := lens.Group("checkpoint").Start(ctx, "checkpoint.save")
		defer span.Finish(&err)
		return errors.New("disk full")
	}
	fmt.Println(save(context.Background()))
	// Output:
	// checkpoint.save Error
	// disk full
}

func ExampleWrapInOut() {
	print()
	lens.SetGroups("evaluate")
	defer lens.SetGroups("")
	score := lens.WrapInOut(lens.Group("evaluate"), "evaluate.score",
		func(_ context.Context, answer string) (int, error) { return len(answer), nil })
	fmt.Println(score(context.Background(), "42"))
	// Output:
	// evaluate.score Unset
	// 2 <nil>
}

func ExampleEmitSpan() {
	print()
	start := time.Unix(1_760_000_000, 0)
	lens.EmitSpan(context.Background(), "pre_startup", start, start.Add(time.Second))
	// Output: pre_startup Unset
}

func ExampleRegistry_Register() {
	if err := lens.DefaultRegistry().Register(lens.GymGroups(), false); err != nil {
		fmt.Println(err)
	}
	defer lens.DefaultRegistry().Clear()
	lens.SetGroups("default")
	defer lens.SetGroups("")
	fmt.Println(lens.EnabledGroups())
	// Output: [http_client job rollout server startup]
}

func ExampleInjectArguments() {
	print()
	ctx, span := lens.Start(context.Background(), "dispatch")
	arguments := map[string]any{"prompt_id": 7}
	lens.InjectArguments(ctx, arguments)

	// In the other process:
	there := lens.ExtractArguments(context.Background(), arguments)
	fmt.Println(trace.SpanContextFromContext(there).SpanID() == span.SpanContext().SpanID())
	span.End()
	// Output:
	// true
	// dispatch Unset
}
