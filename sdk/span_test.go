// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// record makes a provider the global one and returns what ends.
func record(t testing.TB, opts ...sdktrace.TracerProviderOption) *tracetest.SpanRecorder {
	recorder := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(append(opts, sdktrace.WithSpanProcessor(recorder))...))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	return recorder
}

// on switches the group step on for one test.
func on(t testing.TB) SpanGroup {
	restoreGroups(t)
	require.Empty(t, SetGroups("step"))
	return Group("step")
}

func attrsOf(kvs []attribute.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range kvs {
		out[string(kv.Key)] = kv.Value.AsInterface()
	}
	return out
}

func TestStartWhileTheGroupIsOff(t *testing.T) {
	recorder := record(t)
	ctx := t.Context()
	got, span := Group("step").Start(ctx, "train.step", Int("step", 1))
	require.Equal(t, ctx, got)
	require.Nil(t, span)
	require.Nil(t, Group("step").EmitSpan(ctx, "past", time.Unix(2, 0), time.Unix(1, 0)))
	require.Empty(t, recorder.Ended())
}

func TestNilSpanDoesNothing(t *testing.T) {
	var span *Span
	span.SetAttributes(Bool("a", true))
	span.AddEvent("e", Bool("a", true))
	span.AddLink(trace.SpanContext{})
	span.RecordError(errors.New("x"))
	span.Fail(errors.New("x"))
	span.SetStatus(codes.Error, "x")
	span.SetName("x")
	span.Finish(nil)
	span.End()
	require.False(t, span.IsRecording())
	require.False(t, span.SpanContext().IsValid())
	require.False(t, span.Otel().IsRecording())
}

func TestStartWhileTheGroupIsOn(t *testing.T) {
	recorder := record(t)
	step := on(t)
	ctx, outer := step.Start(t.Context(), "train.step", Int("step", 7))
	_, inner := step.StartWith(ctx, "rollout", SpanOptions{
		Kind:      trace.SpanKindClient,
		StartTime: time.Unix(100, 5),
		Links:     []trace.Link{{SpanContext: outer.SpanContext(), Attributes: []attribute.KeyValue{attribute.String("token", "hunter2")}}},
	})
	inner.SetName("model_call")
	inner.AddEvent("retry", Int("attempt", 2), String("key", "hunter2"))
	inner.AddLink(trace.SpanContext{})
	inner.AddLink(outer.SpanContext())
	inner.SetAttributes(Bool("late", true))
	inner.SetStatus(codes.Ok, "")
	require.True(t, inner.IsRecording())
	inner.End(trace.WithTimestamp(time.Unix(101, 0)))
	_, root := step.StartWith(ctx, "root", SpanOptions{Root: true})
	root.End()
	outer.End()

	spans := recorder.Ended()
	require.Len(t, spans, 3)
	require.Equal(t, "model_call", spans[0].Name())
	require.Equal(t, outer.SpanContext().SpanID(), spans[0].Parent().SpanID())
	require.Equal(t, trace.SpanKindClient, spans[0].SpanKind())
	require.Equal(t, time.Unix(100, 5), spans[0].StartTime())
	require.Equal(t, time.Unix(101, 0), spans[0].EndTime())
	require.Equal(t, map[string]any{"late": true}, attrsOf(spans[0].Attributes()))
	require.Len(t, spans[0].Links(), 2)
	require.Equal(t, map[string]any{"token": Redacted}, attrsOf(spans[0].Links()[0].Attributes))
	require.Equal(t, map[string]any{"attempt": int64(2), "key": Redacted}, attrsOf(spans[0].Events()[0].Attributes))
	require.Equal(t, codes.Ok, spans[0].Status().Code)
	require.False(t, spans[1].Parent().IsValid())
	require.Equal(t, trace.SpanKindInternal, spans[2].SpanKind())
	require.Equal(t, map[string]any{"step": int64(7)}, attrsOf(spans[2].Attributes()))
	require.Equal(t, "nemo.lens", spans[2].InstrumentationScope().Name)
	require.Empty(t, spans[2].InstrumentationScope().Version)
}

func TestStartStandsBehindNoGroup(t *testing.T) {
	recorder := record(t)
	ctx, outer := Start(t.Context(), "launch", Int("n", 1))
	_, inner := StartWith(ctx, "child", SpanOptions{Tracer: otel.Tracer("mine")})
	inner.Fail(errors.New("boom"))
	inner.End()
	outer.End()
	spans := recorder.Ended()
	require.Equal(t, "mine", spans[0].InstrumentationScope().Name)
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "*errors.errorString: boom"}, spans[0].Status())
	require.Equal(t, "launch", spans[1].Name())
}

func TestSpansGoToTheProviderThatIsGlobalNow(t *testing.T) {
	first := record(t)
	_, span := Start(t.Context(), "one")
	span.End()
	second := record(t)
	_, span = Start(t.Context(), "two")
	span.End()
	otel.SetTracerProvider(noop.NewTracerProvider()) // not a pointer: never kept
	_, span = Start(t.Context(), "none")
	span.End()
	require.Len(t, first.Ended(), 1)
	require.Len(t, second.Ended(), 1)
	require.Equal(t, "two", second.Ended()[0].Name())
}

type panicker struct{ n int }

func TestErrorsOfManagedAndWrapped(t *testing.T) {
	boom := errors.New("boom")
	managed := func(g SpanGroup, fn func() error) error {
		return Managed(context.Background(), g, "work", func(context.Context, *Span) error { return fn() })
	}
	wrapped := func(g SpanGroup, fn func() error) error {
		return Wrap(g, "work", func(context.Context) error { return fn() })(context.Background())
	}
	for _, c := range []struct {
		name        string
		run         func(SpanGroup, func() error) error
		fn          func() error
		panics      any
		description string // of the status; without one, the span is fine
		kind        string
		message     string
	}{
		{"managed, no error", managed, func() error { return nil }, nil, "", "", ""},
		{"managed, an error", managed, func() error { return boom }, nil, "boom", "*errors.errorString", "boom"},
		{"managed, a wrapped error", managed, func() error { return fmt.Errorf("save: %w", boom) }, nil, "save: boom", "*fmt.wrapError", "save: boom"},
		{"managed, a panic with an error", managed, func() error { panic(boom) }, boom, "boom", "*errors.errorString", "boom"},
		{"managed, a panic with a value", managed, func() error { panic(panicker{3}) }, panicker{3}, "{3}", "lens.panicker", "{3}"},
		{"wrapped, no error", wrapped, func() error { return nil }, nil, "", "", ""},
		{"wrapped, an error", wrapped, func() error { return boom }, nil, "*errors.errorString: boom", "*errors.errorString", "boom"},
		{"wrapped, a panic", wrapped, func() error { panic("no") }, "no", "string: no", "string", "no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			recorder := record(t)
			run := func(g SpanGroup) (p any, err error) {
				defer func() { p = recover() }()
				return nil, c.run(g, c.fn)
			}
			p, off := run(Group("off"))
			require.Equal(t, c.panics, p)
			require.Empty(t, recorder.Ended(), "the body runs without a span")
			p, err := run(on(t))
			require.Equal(t, c.panics, p)
			require.Equal(t, off, err)
			require.Len(t, recorder.Ended(), 1)
			span := recorder.Ended()[0]
			if c.description == "" {
				require.Equal(t, sdktrace.Status{}, span.Status())
				require.Empty(t, span.Events())
				return
			}
			require.Equal(t, sdktrace.Status{Code: codes.Error, Description: c.description}, span.Status())
			require.Len(t, span.Events(), 1)
			require.Equal(t, "exception", span.Events()[0].Name)
			keys := []attribute.Key{}
			for _, kv := range span.Events()[0].Attributes {
				keys = append(keys, kv.Key)
			}
			require.Equal(t, []attribute.Key{"exception.type", "exception.message", "exception.stacktrace", "exception.escaped"}, keys)
			attrs := attrsOf(span.Events()[0].Attributes)
			require.Equal(t, c.kind, attrs["exception.type"])
			require.Equal(t, c.message, attrs["exception.message"])
			require.Equal(t, "False", attrs["exception.escaped"])
			require.Contains(t, attrs["exception.stacktrace"], "goroutine ")
			if c.panics != nil {
				require.Contains(t, attrs["exception.stacktrace"], "TestErrorsOfManagedAndWrapped.func", "the stack is that of the panic")
			}
		})
	}
}

func TestManagedHandsTheSpanAndItsContextOn(t *testing.T) {
	recorder := record(t)
	err := Managed(t.Context(), on(t), "work", func(ctx context.Context, span *Span) error {
		require.Equal(t, span.SpanContext(), trace.SpanContextFromContext(ctx))
		span.RecordError(errors.New("seen, not fatal"))
		return nil
	}, Int("n", 1))
	require.NoError(t, err)
	span := recorder.Ended()[0]
	require.Equal(t, map[string]any{"n": int64(1)}, attrsOf(span.Attributes()))
	require.Len(t, span.Events(), 1)
	require.Equal(t, codes.Unset, span.Status().Code)
}

func TestWrappersKeepArgumentsAndResults(t *testing.T) {
	recorder := record(t)
	boom := errors.New("boom")
	in := WrapIn(Group("step"), "in", func(ctx context.Context, n int) error {
		require.Equal(t, 3, n)
		require.Equal(t, Group("step").Enabled(), trace.SpanContextFromContext(ctx).IsValid())
		return boom
	})
	out := WrapOut(Group("step"), "out", func(context.Context) (string, error) { return "kept", boom })
	inOut := WrapInOut(Group("step"), "in.out", func(_ context.Context, n int) (string, error) { return fmt.Sprint(n), nil })
	call := func() {
		require.Equal(t, boom, in(t.Context(), 3))
		text, err := out(t.Context())
		require.Equal(t, "kept", text)
		require.Equal(t, boom, err)
		text, err = inOut(t.Context(), 5)
		require.NoError(t, err)
		require.Equal(t, "5", text)
	}
	call()
	require.Empty(t, recorder.Ended())
	on(t) // the group is asked at each call
	call()
	require.Len(t, recorder.Ended(), 3)
	require.Equal(t, "*errors.errorString: boom", recorder.Ended()[1].Status().Description)
}

func TestEmitSpanWithOptions(t *testing.T) {
	recorder := record(t)
	start := time.Unix(1700000000, 5)
	require.Nil(t, Group("step").EmitSpanWith(t.Context(), "off", start, start, EmitOptions{}))
	require.NotNil(t, EmitSpanWith(t.Context(), "no group", start, start, EmitOptions{}))
	on(t).EmitSpanWith(t.Context(), "past", start, start.Add(time.Second), EmitOptions{
		Events: []Event{{"cached", start.Add(time.Millisecond)}}, Status: codes.Error, Description: "no disk",
	}, Int("a", 1))
	require.Len(t, recorder.Ended(), 2)
	span := recorder.Ended()[1]
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "no disk"}, span.Status())
	require.Len(t, span.Events(), 1)
	require.Equal(t, "cached", span.Events()[0].Name)
	require.True(t, start.Add(time.Millisecond).Equal(span.Events()[0].Time))
	require.True(t, start.Add(time.Second).Equal(span.EndTime()))
}

func TestEmitSpan(t *testing.T) {
	at := func(nanos int64) time.Time { return time.Unix(0, nanos) }
	for _, c := range []struct {
		name       string
		start, end time.Time
		wantEnd    time.Time
		want       map[string]any
	}{
		{"in order", at(1_000_000_000), at(1_500_000_000), at(1_500_000_000), map[string]any{"a": int64(1)}},
		{"no time at all", at(1_000_000_000), at(1_000_000_000), at(1_000_000_000), map[string]any{"a": int64(1)}},
		{"one nanosecond back", at(1_790_038_547_061_741_440), at(1_790_038_547_061_741_439), at(1_790_038_547_061_741_440), map[string]any{
			"a": int64(1), "inverted.skew": "true",
			"inverted.start_epoch_seconds": "1790038547.061741440", "inverted.end_epoch_seconds": "1790038547.061741439",
			"inverted.delta_seconds": "0.000000001",
		}},
		{"an hour back, to before the epoch", at(1_000_000_000), at(-3_599_500_000_000), at(1_000_000_000), map[string]any{
			"a": int64(1), "inverted.skew": "true",
			"inverted.start_epoch_seconds": "1.000000000", "inverted.end_epoch_seconds": "-3599.500000000",
			"inverted.delta_seconds": "3600.500000000",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := logged(t)
			recorder := record(t)
			ctx, parent := Start(t.Context(), "parent")
			span := EmitSpan(ctx, "past", c.start, c.end, Int("a", 1))
			require.False(t, span.IsRecording())
			got := recorder.Ended()[0]
			require.Equal(t, span.SpanContext(), got.SpanContext())
			require.Equal(t, parent.SpanContext().SpanID(), got.Parent().SpanID())
			require.Equal(t, c.start, got.StartTime())
			require.Equal(t, c.wantEnd, got.EndTime())
			require.Equal(t, c.want, attrsOf(got.Attributes()))
			require.Equal(t, len(c.want) > 1, strings.Contains(log.String(), "level=WARN"))
			require.NotNil(t, on(t).EmitSpan(ctx, "grouped", c.start, c.end))
		})
	}
}

type phase string

func TestAny(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		want  any // nil: left out
	}{
		{"nil", nil, nil},
		{"bool", false, false},
		{"int", -3, int64(-3)},
		{"uint8", uint8(255), int64(255)},
		{"uint64", uint64(math.MaxInt64), int64(math.MaxInt64)},
		{"uint64 beyond", uint64(1) << 63, nil},
		{"float32", float32(0.5), 0.5},
		{"text", "x", "x"},
		{"a named type", phase("warm"), "warm"},
		{"a pointer", new(int), nil},
		{"a struct", struct{}{}, nil},
		{"a map", map[string]int{"a": 1}, nil},
		{"bytes", []byte("x"), nil},
		{"ints", []int32{1, 2}, []int64{1, 2}},
		{"an array", [2]bool{true, false}, []bool{true, false}},
		{"floats", []float64{1.5}, []float64{1.5}},
		{"texts", []phase{"a"}, []string{"a"}},
		{"a list of anything", []any{"a", phase("b")}, []string{"a", "b"}},
		{"an empty list", []any{}, []string{}},
		{"a mixed list", []any{1, "a"}, nil},
		{"a list with nil", []any{1, nil}, nil},
		{"a list of lists", [][]int{{1}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			recorder := record(t)
			_, span := Start(t.Context(), "s", Any("a", c.value), Any("", 1))
			span.SetAttributes(Any("b", c.value))
			span.End()
			want := map[string]any{}
			if c.want != nil {
				want = map[string]any{"a": c.want, "b": c.want}
			}
			require.Equal(t, want, attrsOf(recorder.Ended()[0].Attributes()))
		})
	}
}

func TestAttrHoldsItsValue(t *testing.T) {
	text := "warm"
	for _, c := range []struct {
		name string
		attr Attr
		want any
	}{
		{"text", String("a", text), "warm"},
		{"an empty text", String("a", ""), ""},
		{"the empty end of a text", String("a", text[4:]), ""},
		{"a text that is not a constant", String("a", strings.Repeat("x", 1<<16)), strings.Repeat("x", 1<<16)},
		{"int", Int("a", math.MinInt), int64(math.MinInt)},
		{"int64", Int64("a", math.MaxInt64), int64(math.MaxInt64)},
		{"zero", Int("a", 0), int64(0)},
		{"float", Float64("a", -0.5), -0.5},
		{"infinity", Float64("a", math.Inf(-1)), math.Inf(-1)},
		{"true", Bool("a", true), true},
		{"false", Bool("a", false), false},
		{"OpenTelemetry's", KeyValue(attribute.Float64Slice("a", []float64{1, 2})), []float64{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.GC() // what an Attr points to is kept
			require.Equal(t, map[string]any{"a": c.want}, attrsOf(safe([]Attr{c.attr})))
		})
	}
	require.Equal(t, uintptr(32), unsafe.Sizeof(Attr{}))
}

func TestSpansLeaveOutOtherKinds(t *testing.T) {
	recorder := record(t)
	_, span := Start(t.Context(), "s", KeyValue(attribute.Map("m", attribute.String("password", "x"))),
		KeyValue(attribute.ByteSlice("b", []byte("x"))), Attr{})
	span.End()
	require.Empty(t, recorder.Ended()[0].Attributes())
}

func TestRedactionKeys(t *testing.T) {
	recorder := record(t)
	_, span := Start(t.Context(), "prompt",
		String("prompt", "x"), String("input_text", "x"), String("output_text", "x"), String("text", "x"),
		String("password", "x"), String("token", "x"), String("secret", "x"), String("key", "x"),
		String("Password", "case matters"), String("my.token", "exact"),
		Any("secret", []string{"a list"}))
	span.RecordError(errors.New("token in text"))
	span.End()
	got := recorder.Ended()[0]
	require.Equal(t, "prompt", got.Name())
	want := map[string]any{"Password": "case matters", "my.token": "exact", "secret": []string{"a list"}}
	for _, key := range []string{"prompt", "input_text", "output_text", "text", "password", "token", "key"} {
		want[key] = Redacted
	}
	require.Equal(t, want, attrsOf(got.Attributes()))
	require.Equal(t, "token in text", attrsOf(got.Events()[0].Attributes)["exception.message"])
}

func TestRedactionPatterns(t *testing.T) {
	t.Cleanup(func() { SetRedaction(DefaultRedaction()) })
	SetRedaction(Redaction{Keys: []string{"mine"}, Patterns: []*regexp.Regexp{regexp.MustCompile(`sk-\w+`)}})
	recorder := record(t)
	list := []string{"sk-1", "b"}
	_, span := Start(t.Context(), "s", String("mine", "x"), String("password", "not ours any more"),
		String("url", "?a=sk-abc&b=1"), KeyValue(attribute.StringSlice("list", list)), Int("n", 1))
	span.Fail(errors.New("refused sk-abc"))
	span.End()
	got := recorder.Ended()[0]
	require.Equal(t, map[string]any{"mine": Redacted, "password": "not ours any more", "url": "?a=[REDACTED]&b=1",
		"list": []string{Redacted, "b"}, "n": int64(1)}, attrsOf(got.Attributes()))
	require.Equal(t, []string{"sk-1", "b"}, list)
	require.Equal(t, "*errors.errorString: refused [REDACTED]", got.Status().Description)
	require.Equal(t, "refused [REDACTED]", attrsOf(got.Events()[0].Attributes)["exception.message"])

	_, span = Start(t.Context(), "s")
	span.SetStatus(codes.Error, "refused sk-abc")
	span.End()
	require.Equal(t, "refused [REDACTED]", recorder.Ended()[1].Status().Description)
}

// An error's own method must not fail what the error is of.
func TestErrorThatPanics(t *testing.T) {
	recorder := record(t)
	err := func() (err error) {
		_, span := Start(t.Context(), "s")
		defer span.Finish(&err)
		return (*errorOfNil)(nil)
	}()
	require.Equal(t, (*errorOfNil)(nil), err)
	require.Equal(t, "*lens.errorOfNil: <nil>", recorder.Ended()[0].Status().Description)
}

type errorOfNil struct{ text string }

func (e *errorOfNil) Error() string { return e.text }

func TestManyGoroutines(t *testing.T) {
	recorder := record(t)
	step := on(t)
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			_, span := step.Start(context.Background(), "rollout", Int("n", 1))
			defer span.End()
			span.SetAttributes(Bool("done", true))
		})
	}
	wg.Wait()
	require.Len(t, recorder.Ended(), 1000)
}

func TestNothingIsAllocatedWhileTheGroupIsOff(t *testing.T) {
	step := Group("step")
	ctx := t.Context()
	n := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n++
		ctx, span := step.Start(ctx, "s", Int("step", n), String("phase", "warm"), Float64("loss", 0.5))
		span.SetAttributes(Int("late", n))
		span.AddEvent("e", Int("n", n))
		span.End()
		_, span = step.StartWith(ctx, "s", SpanOptions{Kind: trace.SpanKindClient, StartTime: time.Unix(1, 0)}, Int("n", n))
		var err error
		span.Finish(&err)
		step.EmitSpan(ctx, "e", time.Unix(1, 0), time.Unix(2, 0), Int("n", n))
	}))
}

func BenchmarkStartDisabled(b *testing.B) {
	b.ReportAllocs()
	step := Group("step")
	ctx := b.Context()
	n := 0
	for b.Loop() {
		n++
		_, span := step.Start(ctx, "train.step", Int("step", n), String("phase", "warm"), Float64("loss", 0.5))
		span.End()
	}
}

// TestSpansKeepTheirOwnAttributes starts spans at once, whose attributes pass through memory that is used again.
func TestSpansKeepTheirOwnAttributes(t *testing.T) {
	recorder := record(t)
	step := on(t)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 50 {
				attrs := []Attr{Int("n", worker*50+i), String("token", "hidden")}
				for len(attrs) < i%12 { // some are more than fewAttrs
					attrs = append(attrs, Int(fmt.Sprint(len(attrs)), i), KeyValue(attribute.ByteSlice("left out", nil)))
				}
				_, span := step.Start(t.Context(), fmt.Sprint(worker*50+i), attrs...)
				span.End()
			}
		})
	}
	all.Wait()
	require.Len(t, recorder.Ended(), 400)
	for _, span := range recorder.Ended() {
		attrs := attrsOf(span.Attributes())
		n := attrs["n"].(int64)
		require.Equal(t, fmt.Sprint(n), span.Name())
		require.Equal(t, Redacted, attrs["token"])
		for key, value := range attrs {
			if key != "n" && key != "token" {
				require.Equal(t, n%50, value)
			}
		}
	}
}

// TestTextThatIsNotUTF8 is repaired: OTLP's exporters drop a whole batch for one bad byte.
func TestTextThatIsNotUTF8(t *testing.T) {
	recorder := record(t)
	_, span := on(t).Start(t.Context(), "read", String("line", "bad \xff\xfe"), Any("lines", []string{"good é", "\xc0"}))
	span.Fail(errors.New("parse \xff"))
	span.End()
	got := recorder.Ended()[0]
	require.Equal(t, map[string]any{"line": "bad \uFFFD", "lines": []string{"good é", "\uFFFD"}}, attrsOf(got.Attributes()))
	require.Equal(t, "parse \uFFFD", got.Status().Description)
	require.Equal(t, "parse \uFFFD", attrsOf(got.Events()[0].Attributes)["exception.message"])
}
