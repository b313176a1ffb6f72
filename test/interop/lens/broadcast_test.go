// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package lens

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// TestBroadcast runs four ranks of torch.distributed over gloo: rank 0's context reaches all by Lens's broadcast_trace_context, and
// they are one trace.
func TestBroadcast(t *testing.T) {
	t.Parallel()
	torch := os.Getenv("LENSCOL_TORCH")
	if torch == "" {
		t.Skip("LENSCOL_TORCH names no folder with torch: make interop says why it could not get one")
	}
	const world = 4
	c := testbed.Start(t, testbed.Options{})
	port := testbed.FreePort(t)
	var ranks []*process
	for rank := range world {
		ranks = append(ranks, launch(t, c, []string{
			"PYTHONPATH=" + torch, "MASTER_PORT=" + port, "OMP_NUM_THREADS=1", fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("WORLD_SIZE=%d", world),
		}, "broadcast.py"))
	}
	var made []span
	for _, p := range ranks {
		p.wait()
		require.NoError(t, p.err)
		made = append(made, p.made()...)
	}
	c.Stop()
	got := spans(t, c)
	requireSame(t, made, got)
	job := one(t, got, "job")
	steps := map[any]int{}
	for _, s := range named(got, "step") {
		require.Equal(t, []string{job.TraceID, job.SpanID}, []string{s.TraceID, s.ParentID})
		require.Equal(t, 6.0, s.Attributes["loss"], "of all ranks")
		steps[s.Resource["dl.rank"]]++
	}
	require.Equal(t, map[any]int{int64(0): 2, int64(1): 2, int64(2): 2, int64(3): 2}, steps)
	recv := one(t, got, "recv_forward")
	require.Equal(t, []link{{job.TraceID, job.SpanID, attributes{}}}, recv.Links)
}
