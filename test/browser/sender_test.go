// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package browser

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lenscol/lenscol/internal/testbed"
)

// job is a training run as Megatron-LM of November 2026 sends it: a span for each step of each rank, eight ranks a node.
type job struct {
	id       string // of the run; empty: it names none
	service  string
	ranks    int
	stepTime time.Duration
	slow     int // this rank takes half as long again; -1: none
	silent   int // this rank sends nothing any more from step silentAt on; -1: none
	silentAt int
	failing  int // this rank's steps end in an error; -1: none
}

func newJob(id string, ranks int) *job {
	return &job{id: id, service: "megatron", ranks: ranks, stepTime: 400 * time.Millisecond, slow: -1, silent: -1, failing: -1}
}

// step is a request with the spans of one step, which ended now.
func (j *job) step(number int) []byte {
	traces := ptrace.NewTraces()
	now := time.Now()
	for rank := range j.ranks {
		if rank == j.silent && number >= j.silentAt {
			continue
		}
		resource := traces.ResourceSpans().AppendEmpty()
		host := fmt.Sprintf("gpu-%03d", rank/8)
		attributes := resource.Resource().Attributes()
		attributes.PutStr("service.name", j.service)
		if j.id != "" {
			attributes.PutStr("nemo.run.id", j.id)
		}
		attributes.PutStr("host.name", host)
		attributes.PutInt("nv.dl.rank", int64(rank))
		attributes.PutInt("nv.dl.local_rank", int64(rank%8))
		attributes.PutInt("nv.dl.world_size", int64(j.ranks))
		took := j.stepTime + time.Duration(rank%5)*time.Millisecond
		if rank == j.slow {
			took += took / 2
		}
		span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetName("nv.dl.training.iteration")
		var id [24]byte
		_, _ = rand.Read(id[:])
		span.SetTraceID(pcommon.TraceID(id[:16]))
		span.SetSpanID(pcommon.SpanID(id[16:]))
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-took)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		span.Attributes().PutInt("nv.dl.training.step", int64(number))
		if rank == j.failing {
			span.Status().SetCode(ptrace.StatusCodeError)
		}
	}
	message, err := ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
	if err != nil {
		panic(err) // It is made above.
	}
	return message
}

// send sends steps from first to last at once.
func (j *job) send(t testing.TB, c *testbed.Collector, first, last int) {
	t.Helper()
	client := c.Client()
	defer client.Close()
	for number := first; number <= last; number++ {
		require.NoError(t, client.GRPC(t.Context(), "traces", j.step(number), true))
	}
}

// sendOn sends a step every second until the test ends.
func (j *job) sendOn(t testing.TB, c *testbed.Collector, first int) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	client := c.Client()
	go func() {
		defer close(done)
		defer client.Close()
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for number := first; ; number++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if err := client.GRPC(ctx, "traces", j.step(number), true); err != nil && ctx.Err() == nil {
					t.Errorf("send step %d: %v", number, err)
					return
				}
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}
