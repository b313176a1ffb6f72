// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens // import "github.com/lenscol/lenscol/sdk"

import (
	"context"
	"fmt"
	"time"
)

// Broadcast hands the trace and baggage of ctx at rank source to all ranks of the job, and returns them as a carrier, at
// the source too (NeMo Lens, broadcast_trace_context). With it, all ranks stand in one trace, or link to one span:
//
//	carrier, err := lens.Broadcast(ctx, transport, 0)
//	if err != nil {
//		slog.Warn("this rank has a trace of its own", "error", err)
//	}
//	ctx, span := lens.StartLinked(ctx, "train", carrier) // or lens.Extract(ctx, carrier), to be a child
//
// It is a collective operation: all ranks call it, as often as each other. The source waits until all others have the
// carrier. All wait at most until ctx ends, and [BroadcastLimit] where ctx has no deadline.
//
// An error is to be logged, not to stop training: what is returned beside it may be used as it is. That is the own
// carrier at the source, some ranks of which lack it, and nil elsewhere, of which [Extract] and [StartLinked] make nothing.
// A source without a trace hands on an empty carrier. Without a transport (nil) there is nobody else: nil and no error.
func Broadcast(ctx context.Context, transport Transport, source int) (map[string]string, error) {
	if transport == nil {
		return nil, nil
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, BroadcastLimit)
		defer cancel()
	}
	if transport.Rank() == source {
		data := MarshalContext(ctx)
		_, err := transport.Broadcast(ctx, source, data)
		return UnmarshalCarrier(data), wrapBroadcast(err, source)
	}
	data, err := transport.Broadcast(ctx, source, nil)
	if err != nil {
		return nil, wrapBroadcast(err, source)
	}
	carrier := UnmarshalCarrier(data)
	if carrier == nil {
		err = fmt.Errorf("%d bytes that are no JSON object came; they must be a carrier, as MarshalContext writes it", len(data))
	}
	return carrier, wrapBroadcast(err, source)
}

// Transport moves bytes between the ranks of a job. Ready ones are in broadcast/tcp, broadcast/folder and broadcast/rpc; a
// collective library is another in a few lines.
type Transport interface {
	// Rank is the rank of this process.
	Rank() int
	// Broadcast hands data of rank source to all ranks and returns it; elsewhere data is nil. The n-th call at one
	// rank meets the n-th call at the others. It returns when ctx ends, at the latest. data is at most
	// MaxBroadcast bytes and is not changed.
	Broadcast(ctx context.Context, source int, data []byte) ([]byte, error)
}

const (
	// MaxBroadcast is how many bytes a transport moves, at most: above what W3C lets trace state and baggage be.
	MaxBroadcast = 256 << 10
	// BroadcastLimit is how long [Broadcast] waits when its context has no deadline.
	BroadcastLimit = 5 * time.Minute
)

func wrapBroadcast(err error, source int) error {
	if err != nil {
		return fmt.Errorf("broadcast of the trace context of rank %d: %w", source, err)
	}
	return nil
}
