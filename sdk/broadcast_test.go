// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
)

// bus is a job within one process: what a source sends, all others get.
type bus chan []byte

// seat is a rank's place in it.
type seat struct {
	bus   bus
	rank  int
	world int
}

func (s seat) Rank() int { return s.rank }

func (s seat) Broadcast(ctx context.Context, source int, data []byte) ([]byte, error) {
	if s.rank != source {
		select {
		case data = <-s.bus:
			return data, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for range s.world - 1 {
		select {
		case s.bus <- data:
		case <-ctx.Done():
			return data, context.Cause(ctx)
		}
	}
	return data, nil
}

func TestBroadcast(t *testing.T) {
	for _, c := range []struct {
		name string
		ctx  context.Context
		want map[string]string
	}{
		{"a trace", Extract(t.Context(), map[string]string{"traceparent": traceparent}), map[string]string{"traceparent": traceparent}},
		{"a trace and all that goes with it", Extract(t.Context(), map[string]string{"traceparent": traceparent, "tracestate": tracestate, "baggage": "run=a"}),
			map[string]string{"traceparent": traceparent, "tracestate": tracestate, "baggage": "run=a"}},
		{"no trace", t.Context(), map[string]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const world, source = 4, 2
			bus := make(bus)
			got := make([]map[string]string, world)
			errs := make([]error, world)
			done := make(chan struct{})
			for rank := range world {
				ctx := t.Context()
				if rank == source {
					ctx = c.ctx
				}
				go func() {
					defer func() { done <- struct{}{} }()
					got[rank], errs[rank] = Broadcast(ctx, seat{bus, rank, world}, source)
				}()
			}
			for range world {
				<-done
			}
			for rank := range world {
				require.NoError(t, errs[rank])
				require.Equal(t, c.want, got[rank])
			}
		})
	}
}

// answers is a transport that answers as it is told.
type answers struct {
	rank int
	data []byte
	err  error
	seen *context.Context
}

func (a answers) Rank() int { return a.rank }
func (a answers) Broadcast(ctx context.Context, _ int, _ []byte) ([]byte, error) {
	if a.seen != nil {
		*a.seen = ctx
	}
	return a.data, a.err
}

func TestBroadcastThatFails(t *testing.T) {
	ctx := Extract(t.Context(), map[string]string{"traceparent": traceparent})
	broken := errors.New("link down")

	carrier, err := Broadcast(ctx, answers{rank: 0, err: broken}, 0)
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "broadcast of the trace context of rank 0: link down")
	require.Equal(t, map[string]string{"traceparent": traceparent}, carrier, "the source has its own")

	carrier, err = Broadcast(ctx, answers{rank: 1, data: []byte(`{"traceparent":"half`), err: broken}, 0)
	require.ErrorIs(t, err, broken)
	require.Nil(t, carrier)

	for _, bad := range []string{"", "null", "[]", `{"traceparent":"half`, "\xff"} {
		carrier, err = Broadcast(ctx, answers{rank: 1, data: []byte(bad)}, 0)
		require.ErrorContains(t, err, "bytes that are no JSON object came")
		require.Nil(t, carrier)
	}

	// What comes beside an error serves as it is.
	require.Equal(t, ctx, Extract(ctx, carrier))
	_, span := StartLinked(ctx, "train", carrier)
	span.End()
}

func TestBroadcastWithoutATransport(t *testing.T) {
	carrier, err := Broadcast(t.Context(), nil, 0)
	require.NoError(t, err)
	require.Nil(t, carrier)
}

func TestBroadcastIsBounded(t *testing.T) {
	var seen context.Context
	_, _ = Broadcast(t.Context(), answers{rank: 1, data: []byte("{}"), seen: &seen}, 0)
	_, bounded := seen.Deadline()
	require.True(t, bounded, "also where the caller's context is not")
	require.Error(t, seen.Err(), "its timer is released")

	mine, cancel := context.WithTimeout(t.Context(), 2*BroadcastLimit)
	defer cancel()
	_, _ = Broadcast(mine, answers{rank: 1, data: []byte("{}"), seen: &seen}, 0)
	require.Equal(t, mine, seen, "the caller's own deadline holds, a later one too")
}

// All that W3C lets a context carry is below what transports move.
func TestTheLargestContextFits(t *testing.T) {
	state := trace.TraceState{}
	for i := range 32 {
		var err error
		value := make([]byte, 256)
		for j := range value {
			value[j] = '<' // six bytes in JSON
		}
		state, err = state.Insert(string(rune('a'+i%26))+string(rune('a'+i/26)), string(value))
		require.NoError(t, err)
	}
	long := make([]byte, 4000)
	for i := range long {
		long[i] = '&'
	}
	bag, err := baggage.Parse("a=" + string(long) + ",b=" + string(long))
	require.NoError(t, err)
	parent := trace.SpanContextFromContext(Extract(t.Context(), map[string]string{"traceparent": traceparent}))
	ctx := baggage.ContextWithBaggage(trace.ContextWithRemoteSpanContext(t.Context(), parent.WithTraceState(state)), bag)
	data := MarshalContext(ctx)
	require.Greater(t, len(data), 60_000)
	require.LessOrEqual(t, len(data), MaxBroadcast)
}
