// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ranktest // import "github.com/lenscol/lenscol/sdk/broadcast/internal/ranktest"

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	lens "github.com/lenscol/lenscol/sdk"
)

// Together broadcasts trace n among transports, one for each rank in order and all in this process, and expects that every
// rank gets it.
func Together(t *testing.T, n, source int, transports ...lens.Transport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	got := make([]map[string]string, len(transports))
	errs := make([]error, len(transports))
	var done sync.WaitGroup
	for rank, transport := range transports {
		ctx := ctx
		if rank == source {
			ctx = lens.Extract(ctx, map[string]string{"traceparent": Traceparent(n)})
		}
		done.Go(func() { got[rank], errs[rank] = lens.Broadcast(ctx, transport, source) })
	}
	done.Wait()
	for rank := range transports {
		require.NoErrorf(t, errs[rank], "rank %d", rank)
		require.Equalf(t, carriers(Traceparent(n))[0], got[rank], "rank %d", rank)
	}
}
