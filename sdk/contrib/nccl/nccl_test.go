// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package nccl_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/contrib/nccl"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"

// What serialize_context of NeMo Lens 0.1.0 wrote, under OpenTelemetry Python, and what of ours its extract_nccl_context read as
// the same context.
const (
	python = `{"traceparent": "` + traceparent + `", "tracestate": "vendor=1", "baggage": "user=J%C3%BCrgen"}`
	ours   = `{"baggage":"user=J%C3%BCrgen","traceparent":"` + traceparent + `","tracestate":"vendor=1"}`
)

func Example() {
	// The stage before sends this beside its activations.
	ctx := lens.Extract(context.Background(), map[string]string{"traceparent": traceparent})
	message := nccl.SerializeContext(ctx)
	fmt.Printf("%s\n", message)

	// This stage links to it.
	_, span := lens.StartLinked(context.Background(), "forward", nccl.DeserializeContext(message))
	span.End()
	// Output: {"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"}
}

func TestBytesOfLens(t *testing.T) {
	require.Equal(t, map[string]string{"traceparent": traceparent, "tracestate": "vendor=1", "baggage": "user=J%C3%BCrgen"}, nccl.DeserializeContext([]byte(python)))
	ctx := nccl.ExtractContext(t.Context(), []byte(python))
	got := trace.SpanContextFromContext(ctx)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", got.TraceID().String())
	require.Equal(t, trace.TraceFlags(3), got.TraceFlags())
	require.Equal(t, "vendor=1", got.TraceState().String())
	require.Equal(t, "Jürgen", baggage.FromContext(ctx).Member("user").Value())
	require.Equal(t, ours, string(nccl.SerializeContext(ctx)))
	require.Equal(t, "{}", string(nccl.SerializeContext(t.Context())))
}

func TestBadBytesLeaveTheContext(t *testing.T) {
	ctx := nccl.ExtractContext(t.Context(), []byte(python))
	for _, data := range []string{"", "{", "null", "[]", "\xff\xfe", `{"traceparent": 7}`, `{"traceparent": "00-zz"}`, python + "x"} {
		t.Run(data, func(t *testing.T) {
			require.Equal(t, trace.SpanContextFromContext(ctx), trace.SpanContextFromContext(nccl.ExtractContext(ctx, []byte(data))))
		})
	}
	require.Nil(t, nccl.DeserializeContext([]byte("{")))
}

func FuzzExtractContext(f *testing.F) {
	for _, seed := range []string{python, "{}", `{"tracestate": "a=1", "baggage": "a=b;c"}`, "{", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := nccl.ExtractContext(t.Context(), data)
		again := nccl.ExtractContext(t.Context(), nccl.SerializeContext(got))
		require.Equal(t, trace.SpanContextFromContext(got), trace.SpanContextFromContext(again))
	})
}
