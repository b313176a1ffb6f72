// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"

	"github.com/lenscol/lenscol/internal/ranks"
)

// GetGRPCServerOptions puts the gate between the server and its codec.
//
// The codec sees a request's bytes before pdata does, but not which call they are of, nor whether that was authorised
// and accepted. The stats handler does: right after the codec, and on the same goroutine, grpc shows it the message that
// the codec filled, and when the call ends, its error. So what was dropped is counted with the answer.
func (g *gate) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	inner := encoding.GetCodecV2(proto.Name)
	if inner == nil {
		return nil, fmt.Errorf("rank_gate: no codec %q is registered", proto.Name)
	}
	if err := messageErr; err != nil {
		return nil, err
	}
	c := &codec{CodecV2: inner, gate: g}
	return []grpc.ServerOption{grpc.ForceServerCodecV2(c), grpc.StatsHandler(&callStats{codec: c})}, nil
}

// codec is the registered codec, to which requests of the three signals come sifted.
type codec struct {
	encoding.CodecV2
	gate *gate
	// pending has the outcome of a message between its decoding and grpc showing it to the stats handler, which follows
	// whenever decoding succeeds.
	pending sync.Map // the message → outcome
}

func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	signal, ok := signalOf(v)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	var err error
	c.gate.sift(signal, data, func(kept []byte, o outcome) {
		if err = c.CodecV2.Unmarshal(mem.BufferSlice{mem.SliceBuffer(kept)}, v); err != nil {
			c.gate.settle(context.Background(), o, false)
			return
		}
		c.pending.Store(v, o)
	})
	return err
}

// The messages that grpc has the codec fill: what the public types of pdata wrap.
var (
	tracesMessage  = messageOf[ptraceotlp.ExportRequest]()
	metricsMessage = messageOf[pmetricotlp.ExportRequest]()
	logsMessage    = messageOf[plogotlp.ExportRequest]()

	messageErr = func() error {
		for _, m := range []reflect.Type{tracesMessage, metricsMessage, logsMessage} {
			if m == nil {
				return fmt.Errorf("rank_gate: this release of pdata wraps its requests differently: build with %s", "go.opentelemetry.io/collector/pdata v1.64.0")
			}
		}
		return nil
	}()
)

func messageOf[T any]() reflect.Type {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct || t.NumField() == 0 || t.Field(0).Type.Kind() != reflect.Pointer {
		return nil
	}
	return t.Field(0).Type
}

func signalOf(v any) (ranks.Signal, bool) {
	switch reflect.TypeOf(v) {
	case tracesMessage:
		return ranks.Traces, true
	case metricsMessage:
		return ranks.Metrics, true
	case logsMessage:
		return ranks.Logs, true
	default:
		return 0, false
	}
}

// callStats ties outcomes to calls.
type callStats struct{ codec *codec }

type callKey struct{}

// call is the outcome of one call, once there is one.
type call struct{ outcome }

func (*callStats) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, callKey{}, &call{})
}

func (h *callStats) HandleRPC(ctx context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.InPayload:
		if o, ok := h.codec.pending.LoadAndDelete(s.Payload); ok {
			if c, ok := ctx.Value(callKey{}).(*call); ok {
				c.outcome = o.(outcome)
			}
		}
	case *stats.End:
		if c, ok := ctx.Value(callKey{}).(*call); ok && c.tally != nil {
			h.codec.gate.settle(ctx, c.outcome, s.Error == nil)
			c.tally = nil
		}
	}
}

func (*callStats) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*callStats) HandleConn(context.Context, stats.ConnStats)                       {}
