// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package closer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// behind returns a tracer of a provider that has c before a processor that keeps what ends.
func behind(c *Closer) (*sdktrace.TracerProvider, trace.Tracer, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(c), sdktrace.WithSpanProcessor(recorder))
	return tp, tp.Tracer("test"), recorder
}

func names(recorder *tracetest.SpanRecorder) (out []string) {
	for _, span := range recorder.Ended() {
		out = append(out, span.Name())
	}
	return out
}

func TestShutdownEndsWhatIsOpenInnermostFirst(t *testing.T) {
	c := New(DefaultLimit, 0, nil)
	tp, tracer, recorder := behind(c)
	ctx := t.Context()
	var want []string
	for i := range 40 { // over many shards
		var span trace.Span
		ctx, span = tracer.Start(ctx, fmt.Sprint(i))
		if i%4 == 0 {
			span.End()
		} else {
			want = append([]string{fmt.Sprint(i)}, want...)
		}
	}
	require.NoError(t, c.ForceFlush(ctx))
	require.Len(t, recorder.Ended(), 10)
	recorder.Reset()

	require.NoError(t, tp.Shutdown(ctx))
	require.Equal(t, want, names(recorder))
	require.EqualValues(t, 30, c.Closed())
	require.Zero(t, c.Untracked())
	require.NoError(t, tp.Shutdown(ctx))
	require.NoError(t, c.Shutdown(ctx))
	require.Len(t, recorder.Ended(), 30)
}

// TestMarksAreThoseOfNeMoLens compares with the spans that NeMo Lens 0.2 closed.
func TestMarksAreThoseOfNeMoLens(t *testing.T) {
	type marked struct {
		Status     struct{ Status_code, Description string }
		Attributes map[string]any
		Events     []struct {
			Name       string
			Attributes map[string]any
		}
	}
	captures := filepath.Join("..", "..", "..", "..", "testdata", "captures")
	if _, err := os.Stat(captures); errors.Is(err, os.ErrNotExist) {
		t.Skip("the captures stand in the repository, not in the module")
	}
	f, err := os.Open(filepath.Join(captures, "0.2.0", "open_spans", "grpc", "console.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	var want []marked
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var span marked
		require.NoError(t, json.Unmarshal(lines.Bytes(), &span))
		if span.Attributes["nemo.span.truncated"] != nil {
			want = append(want, marked{span.Status, map[string]any{"nemo.span.truncated": span.Attributes["nemo.span.truncated"]}, span.Events})
		}
	}
	require.Len(t, want, 3)

	tp, tracer, recorder := behind(New(DefaultLimit, 0, nil))
	tracer.Start(t.Context(), "open")
	require.NoError(t, tp.Shutdown(t.Context()))
	span := recorder.Ended()[0]
	require.Equal(t, codes.Unset, span.Status().Code)
	got := marked{Status: want[0].Status, Attributes: map[string]any{}}
	for _, kv := range span.Attributes() {
		got.Attributes[string(kv.Key)] = kv.Value.AsInterface()
	}
	for _, event := range span.Events() {
		got.Events = append(got.Events, struct {
			Name       string
			Attributes map[string]any
		}{event.Name, map[string]any{string(event.Attributes[0].Key): event.Attributes[0].Value.AsInterface()}})
	}
	for _, want := range want {
		require.Equal(t, "UNSET", want.Status.Status_code)
		require.Equal(t, want, got)
	}
}

func TestStartsAfterShutdownAreNotTracked(t *testing.T) {
	c := New(DefaultLimit, 0, nil)
	_, tracer, recorder := behind(c)
	require.NoError(t, c.Shutdown(t.Context()))
	_, span := tracer.Start(t.Context(), "late")
	require.NoError(t, c.Shutdown(t.Context()))
	require.Empty(t, recorder.Ended())
	span.End()
	require.Empty(t, recorder.Ended()[0].Events())
	require.Zero(t, c.Closed())
	require.Zero(t, c.Untracked())
}

func TestOpenSpansAreLimited(t *testing.T) {
	const limit = 4096
	c := New(limit, 0, nil)
	_, tracer, _ := behind(c)
	room := len(c.few) + limit
	start := func(n int) (open []trace.Span) {
		for range n {
			_, span := tracer.Start(t.Context(), "leaked")
			open = append(open, span)
		}
		return open
	}
	const few = 5 // which find no room though there is some, by chance: one in a hundred thousand while half is free
	open := start(room / 2)
	require.Less(t, c.Untracked(), uint64(few))
	open = append(open, start(4*room)...)
	require.Greater(t, held(c), room*9/10)
	require.LessOrEqual(t, held(c), room)
	require.EqualValues(t, len(open), held(c)+int(c.Untracked()))

	for _, span := range open {
		span.End()
	}
	require.Zero(t, held(c))
	before := c.Untracked()
	start(limit / 2)
	require.Less(t, c.Untracked(), before+few, "there is room again")
}

// held is how many slots are taken. The others hold no span.
func held(c *Closer) (n int) {
	for _, table := range []table{c.few, c.makeMany()} {
		for i := range table {
			if table[i].id.Load() != free {
				n++
			} else if table[i].open != (openSpan{}) {
				panic("an ended span is held")
			}
		}
	}
	return n
}

func TestIDsThatAreNone(t *testing.T) {
	table := newTable(0)
	for id := range uint64(firstID) {
		require.False(t, table.put(id, openSpan{}))
		require.False(t, table.remove(id))
	}
	require.True(t, table.put(firstID, openSpan{}))
	require.Len(t, table.takeAll(nil), 1)
}

func TestShutdownFlushesBetween(t *testing.T) {
	const every = 100
	var (
		recorder *tracetest.SpanRecorder
		flushed  []int
	)
	c := New(DefaultLimit, every, func(context.Context) error {
		flushed = append(flushed, len(recorder.Ended()))
		return errors.New("the endpoint is dead")
	})
	_, tracer, r := behind(c)
	recorder = r
	for range 3 * every {
		tracer.Start(t.Context(), "open")
	}
	require.NoError(t, c.Shutdown(t.Context()))
	require.Equal(t, []int{every, 2 * every}, flushed)
	require.Len(t, recorder.Ended(), 3*every)
}

// TestShutdownIsBounded has a processor that flushes until the context is over: what is open is ended all the same.
func TestShutdownIsBounded(t *testing.T) {
	const every = 100
	ctx, cancel := context.WithCancel(t.Context())
	flushes := 0
	c := New(DefaultLimit, every, func(ctx context.Context) error {
		flushes++
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	_, tracer, recorder := behind(c)
	for range 3 * every {
		tracer.Start(t.Context(), "open")
	}
	require.ErrorIs(t, c.Shutdown(ctx), context.Canceled)
	require.Equal(t, 1, flushes)
	require.Len(t, recorder.Ended(), 3*every)
}

// TestSpansThatEndDuringShutdown end once, and are closed or not.
func TestSpansThatEndDuringShutdown(t *testing.T) {
	c := New(DefaultLimit, 0, nil)
	tp, tracer, recorder := behind(c)
	const workers, each = 16, 100
	var all sync.WaitGroup
	ready := make(chan struct{})
	for range workers {
		all.Go(func() {
			var open []trace.Span
			for range each {
				_, span := tracer.Start(context.Background(), "work")
				open = append(open, span)
			}
			ready <- struct{}{}
			for _, span := range open {
				span.End()
			}
		})
	}
	for range workers {
		<-ready
	}
	require.NoError(t, c.Shutdown(t.Context()))
	all.Wait()
	require.NoError(t, tp.Shutdown(t.Context()))
	require.Len(t, recorder.Ended(), workers*each)
	require.LessOrEqual(t, c.Closed(), uint64(workers*each))
}
