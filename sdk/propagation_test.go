// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
)

const (
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"
	tracestate  = "vendor=1"
)

// remote is a context with a trace, its state and baggage.
func remote(t testing.TB) context.Context {
	members, err := baggage.Parse("run=a,user=b")
	require.NoError(t, err)
	ctx := Extract(t.Context(), map[string]string{"traceparent": traceparent, "tracestate": tracestate})
	return baggage.ContextWithBaggage(ctx, members)
}

func TestInjectAndExtract(t *testing.T) {
	carrier := map[string]string{"mine": "stays"}
	Inject(remote(t), carrier)
	require.Contains(t, []string{"run=a,user=b", "user=b,run=a"}, carrier["baggage"])
	delete(carrier, "baggage")
	require.Equal(t, map[string]string{"mine": "stays", "traceparent": traceparent, "tracestate": tracestate}, carrier)

	header := http.Header{}
	InjectHeader(remote(t), header)
	require.Equal(t, traceparent, header.Get("Traceparent"))
	got := ExtractHeader(t.Context(), header)
	require.Equal(t, trace.SpanContextFromContext(remote(t)), trace.SpanContextFromContext(got))
	require.Equal(t, 2, baggage.FromContext(got).Len())
	require.Equal(t, t.Context(), ExtractHeader(t.Context(), nil))

	empty := map[string]string{}
	Inject(t.Context(), empty)
	require.Empty(t, empty)
}

// A carrier that was never made is a program's mistake, which would show only where telemetry is on.
func TestInjectIntoNothing(t *testing.T) {
	require.NotPanics(t, func() {
		Inject(remote(t), nil)
		InjectHeader(remote(t), nil)
		InjectArguments(remote(t), nil)
	})
}

func TestExtractOfBadCarriersLeavesTheContext(t *testing.T) {
	ctx := remote(t)
	for _, c := range []struct {
		name    string
		carrier map[string]string
	}{
		{"nil", nil},
		{"empty", map[string]string{}},
		{"not a traceparent", map[string]string{"traceparent": "00-zz"}},
		{"zero ids", map[string]string{"traceparent": "00-00000000000000000000000000000000-0000000000000000-01"}},
		{"upper case key", map[string]string{"Traceparent": traceparent}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Extract(ctx, c.carrier)
			require.Equal(t, trace.SpanContextFromContext(ctx), trace.SpanContextFromContext(got))
			require.Equal(t, 2, baggage.FromContext(got).Len())
			_, ok := LinkTo(c.carrier)
			require.False(t, ok)
		})
	}
}

func TestStartLinked(t *testing.T) {
	recorder := record(t)
	step := Group("step")
	carrier := map[string]string{"traceparent": traceparent}
	ctx, parent := Start(t.Context(), "parent")
	got, span := step.StartLinked(ctx, "off", carrier)
	require.Nil(t, span)
	require.Equal(t, ctx, got)
	on(t)
	_, span = step.StartLinked(ctx, "grouped", carrier, Int("stage", 1))
	span.End()
	_, span = StartLinked(ctx, "free", carrier)
	span.End()
	_, span = StartLinked(ctx, "no link", map[string]string{"traceparent": "bad"})
	span.End()
	spans := recorder.Ended()
	require.Len(t, spans, 3)
	for _, got := range spans[:2] {
		require.Len(t, got.Links(), 1)
		require.Equal(t, "0af7651916cd43dd8448eb211c80319c", got.Links()[0].SpanContext.TraceID().String())
		require.Equal(t, "b7ad6b7169203331", got.Links()[0].SpanContext.SpanID().String())
		require.Equal(t, parent.SpanContext().SpanID(), got.Parent().SpanID())
	}
	require.Equal(t, map[string]any{"stage": int64(1)}, attrsOf(spans[0].Attributes()))
	require.Empty(t, spans[2].Links())
}

func TestPipelineCarrier(t *testing.T) {
	var p PipelineCarrier
	require.Nil(t, p.Load())
	mine := map[string]string{"traceparent": traceparent}
	p.Store(mine)
	mine["traceparent"] = "changed later"
	p.Load()["traceparent"] = "changed by a reader"
	require.Equal(t, map[string]string{"traceparent": traceparent}, p.Load())
	p.Store(nil)
	require.Nil(t, p.Load())
}

func TestPipelineCarrierConcurrently(t *testing.T) {
	var p PipelineCarrier
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			text := fmt.Sprint(i)
			for range 200 {
				p.Store(map[string]string{"a": text, "b": text})
				got := p.Load()
				if got["a"] != got["b"] {
					t.Errorf("half of one carrier and half of another: %v", got)
				}
				got["a"] = "a reader's own"
			}
		})
	}
	wg.Wait()
}

// What NeMo Lens 0.2 writes with json.dumps, and what else may come.
func TestUnmarshalCarrier(t *testing.T) {
	for _, c := range []struct {
		name string
		data string
		want map[string]string
	}{
		{"NeMo Lens", `{"traceparent": "` + traceparent + `", "baggage": "user=J%C3%BCrgen"}`, map[string]string{"traceparent": traceparent, "baggage": "user=J%C3%BCrgen"}},
		{"escapes", `{"tracestate": "\u0061=1"}`, map[string]string{"tracestate": "a=1"}},
		{"empty", `{}`, map[string]string{}},
		{"not text", `{"traceparent": 1, "tracestate": null, "baggage": "a=b"}`, map[string]string{"baggage": "a=b"}},
		{"null", `null`, nil},
		{"a list", `["traceparent"]`, nil},
		{"cut off", `{"traceparent": "00-`, nil},
		{"no JSON", "\xff\x00", nil},
		{"nothing", ``, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, UnmarshalCarrier([]byte(c.data)))
		})
	}
}

func TestMarshalContextIsReadBack(t *testing.T) {
	data := MarshalContext(Extract(t.Context(), map[string]string{"traceparent": traceparent}))
	require.Equal(t, `{"traceparent":"`+traceparent+`"}`, string(data))
	require.Equal(t, "{}", string(MarshalContext(t.Context())))
	got := UnmarshalContext(t.Context(), MarshalContext(remote(t)))
	require.Equal(t, trace.SpanContextFromContext(remote(t)), trace.SpanContextFromContext(got))
	require.Equal(t, 2, baggage.FromContext(got).Len())
	ctx := remote(t)
	require.Equal(t, ctx, UnmarshalContext(ctx, []byte("bad")))
}

func TestArguments(t *testing.T) {
	want := trace.SpanContextFromContext(remote(t))
	arguments := map[string]any{"prompt_id": 7.0}
	InjectArguments(remote(t), arguments)
	message, err := json.Marshal(arguments)
	require.NoError(t, err)
	require.Contains(t, string(message), `"_otel_carrier":{`)
	var decoded map[string]any
	require.NoError(t, json.Unmarshal(message, &decoded))
	for name, arguments := range map[string]map[string]any{"as they are": arguments, "by way of JSON": decoded} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, want, trace.SpanContextFromContext(ExtractArguments(t.Context(), arguments)))
			require.Equal(t, map[string]any{"prompt_id": 7.0}, arguments, "the function does not see the carrier")
		})
	}
	for name, value := range map[string]any{"none": nil, "a text": "x", "a list": []any{1}} {
		t.Run(name, func(t *testing.T) {
			ctx := remote(t)
			require.Equal(t, ctx, ExtractArguments(ctx, map[string]any{CarrierKey: value}))
			require.Equal(t, ctx, ExtractArguments(ctx, nil))
		})
	}
}

func FuzzUnmarshalContext(f *testing.F) {
	for _, seed := range []string{`{"traceparent": "` + traceparent + `"}`, `{"tracestate": "a=1", "baggage": "a=b;c"}`, `{`, `[]`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := UnmarshalContext(t.Context(), data)
		again := UnmarshalContext(t.Context(), MarshalContext(got))
		require.Equal(t, trace.SpanContextFromContext(got), trace.SpanContextFromContext(again))
	})
}
