// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ray_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/contrib/ray"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"

// generate is a method of a worker.
func generate(_ context.Context, arguments map[string]any) (string, error) {
	if len(arguments) != 1 {
		return "", fmt.Errorf("unexpected arguments: %v", arguments)
	}
	return fmt.Sprint("answer to ", arguments["prompt_id"]), nil
}

// wire is a remote call whose arguments go by way of JSON.
func wire(worker ray.Call[string]) ray.Call[string] {
	return func(_ context.Context, arguments map[string]any) (string, error) {
		message, err := json.Marshal(arguments)
		if err != nil {
			return "", err
		}
		var there map[string]any
		if err := json.Unmarshal(message, &there); err != nil {
			return "", err
		}
		return worker(context.Background(), there)
	}
}

func Example() {
	worker := ray.TracedRemoteCall("Worker.generate", generate, nil)
	answer, err := ray.Dispatch(context.Background(), wire(worker), map[string]any{"prompt_id": 7})
	fmt.Println(answer, err)
	// Output: answer to 7 <nil>
}

func record(t *testing.T) *tracetest.SpanRecorder {
	recorder := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	return recorder
}

func TestOneTraceFromDriverToWorker(t *testing.T) {
	worker := ray.TracedRemoteCall("Worker.generate", generate, nil)
	recorder := record(t) // set after the wrapper was made
	ctx, driver := lens.Start(t.Context(), "driver")
	arguments := map[string]any{"prompt_id": 7}
	answer, err := ray.Dispatch(ctx, wire(worker), arguments)
	driver.End()
	require.NoError(t, err)
	require.Equal(t, "answer to 7", answer)
	require.Equal(t, map[string]any{"prompt_id": 7}, arguments, "the caller's are not changed")
	spans := recorder.Ended()
	require.Len(t, spans, 2)
	require.Equal(t, "Worker.generate", spans[0].Name())
	require.Equal(t, "nemo.lens.ray", spans[0].InstrumentationScope().Name)
	require.Equal(t, driver.SpanContext().TraceID(), spans[0].SpanContext().TraceID())
	require.Equal(t, driver.SpanContext().SpanID(), spans[0].Parent().SpanID())
}

// The arguments as ray_dispatch_with_context of NeMo Lens 0.1.0 sent them, as JSON.
func TestArgumentsOfLens(t *testing.T) {
	recorder := record(t)
	var arguments map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"_otel_carrier": {"traceparent": "`+traceparent+`", "tracestate": "vendor=1", "baggage": "user=J%C3%BCrgen"}, "prompt_id": 7}`), &arguments))
	_, err := ray.TracedRemoteCall("Worker.generate", generate, nil)(t.Context(), arguments)
	require.NoError(t, err)
	require.Len(t, arguments, 2, "the caller's are not changed")
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", recorder.Ended()[0].SpanContext().TraceID().String())

	var sent map[string]any
	take := func(_ context.Context, arguments map[string]any) (any, error) { sent = arguments; return nil, nil }
	ctx := ray.ExtractContext(t.Context(), map[string]string{"traceparent": traceparent})
	_, _ = ray.Dispatch(ctx, take, nil)
	require.Equal(t, map[string]any{"_otel_carrier": map[string]string{"traceparent": traceparent}}, sent)
	own := map[string]any{"_otel_carrier": map[string]string{"traceparent": "own"}}
	_, _ = ray.Dispatch(ctx, take, own)
	require.Equal(t, own, sent, "a carrier that is there goes along")
	require.Equal(t, map[string]string{"traceparent": traceparent}, ray.InjectContext(ctx))
	require.Equal(t, ctx, ray.ExtractContext(ctx, nil))
}

func TestErrorsOfAMethod(t *testing.T) {
	recorder := record(t)
	own := otel.GetTracerProvider().Tracer("mine")
	full := errors.New("disk full")
	fail := ray.TracedRemoteCall("Worker.save", func(context.Context, map[string]any) (int, error) { return 3, full }, own)
	out, err := fail(t.Context(), nil)
	require.Equal(t, full, err)
	require.Equal(t, 3, out)
	span := recorder.Ended()[0]
	require.Equal(t, "mine", span.InstrumentationScope().Name)
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "*errors.errorString: disk full"}, span.Status())
	require.Equal(t, "exception", span.Events()[0].Name)
	require.PanicsWithValue(t, "boom", func() {
		_, _ = ray.TracedRemoteCall("Worker.crash", func(context.Context, map[string]any) (int, error) { panic("boom") }, nil)(t.Context(), nil)
	})
	require.Equal(t, codes.Error, recorder.Ended()[1].Status().Code)
}

func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"_otel_carrier": {"traceparent": "` + traceparent + `"}}`, `{"_otel_carrier": 7}`, `{"_otel_carrier": {"traceparent": null}}`, "null", "{"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var arguments map[string]any
		_ = json.Unmarshal(data, &arguments)
		_, err := ray.TracedRemoteCall("m", func(_ context.Context, arguments map[string]any) (any, error) {
			require.NotContains(t, arguments, lens.CarrierKey)
			return nil, nil
		}, nil)(t.Context(), arguments)
		require.NoError(t, err)
	})
}
