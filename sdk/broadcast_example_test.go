// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/trace"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/folder"
)

// A job of two ranks, which are processes of their own elsewhere.
func ExampleBroadcast() {
	print()
	shared, err := os.MkdirTemp("", "rendezvous")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(shared)

	rank := func(ctx context.Context, n int) map[string]string {
		transport, err := folder.New(folder.Config{
			Member: broadcast.Member{Job: "job 7, attempt 1", Rank: n, WorldSize: 2}, // broadcast.FromEnv, on a cluster
			Path:   shared,
		})
		if err != nil {
			fmt.Println(err)
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		carrier, err := lens.Broadcast(ctx, transport, 0)
		if err != nil {
			fmt.Println("this rank has a trace of its own:", err)
		}
		return carrier
	}

	ctx, job := lens.Start(context.Background(), "job")
	done := make(chan bool)
	go func() {
		there := lens.Extract(context.Background(), rank(context.Background(), 1))
		_, train := lens.Start(there, "train on rank 1")
		train.End()
		done <- trace.SpanContextFromContext(there).TraceID() == job.SpanContext().TraceID()
	}()
	rank(ctx, 0)
	fmt.Println("one trace:", <-done)
	job.End()
	// Output:
	// train on rank 1 Unset
	// one trace: true
	// job Unset
}
