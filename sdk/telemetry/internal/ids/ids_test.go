// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"fmt"
	seeded "math/rand"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
)

// TestNeverZero has a source that is stuck at zero for a while.
func TestNeverZero(t *testing.T) {
	zeros := 0
	g := generator{func() uint64 {
		if zeros++; zeros%5 == 0 {
			return 7
		}
		return 0
	}}
	traceID, spanID := g.NewIDs(t.Context())
	require.Equal(t, "00000000000000000000000000000007", traceID.String())
	require.Equal(t, "0000000000000007", spanID.String())
	require.Equal(t, "0000000000000007", g.NewSpanID(t.Context(), traceID).String())
}

func TestIDsDifferAmongGoroutines(t *testing.T) {
	g := New()
	var (
		all  sync.WaitGroup
		seen sync.Map
	)
	for range 64 {
		all.Go(func() {
			for range 200 {
				traceID, spanID := g.NewIDs(t.Context())
				for _, id := range []any{traceID, spanID, g.NewSpanID(t.Context(), traceID)} {
					if _, twice := seen.LoadOrStore(id, nil); twice {
						t.Errorf("%v came twice", id)
					}
				}
			}
		})
	}
	all.Wait()
}

// TestIDsAreIndependentOfSeeds runs two processes that seed alike, as ranks do.
func TestIDsAreIndependentOfSeeds(t *testing.T) {
	const child = "LENS_TEST_IDS"
	if os.Getenv(child) != "" {
		traceID, spanID := New().NewIDs(t.Context())
		fmt.Printf("ids: %d %v %v\n", seeded.Int63(), traceID, spanID)
		return
	}
	run := func() []string {
		exe, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestIDsAreIndependentOfSeeds$")
		cmd.Env = append(os.Environ(), child+"=1", "GODEBUG=randautoseed=0")
		out, err := cmd.Output()
		require.NoError(t, err)
		_, line, found := strings.Cut(string(out), "ids: ")
		require.True(t, found, "%s", out)
		return strings.Fields(line)[:3]
	}
	a, b := run(), run()
	require.Equal(t, a[0], b[0], "the seeds are not alike")
	require.NotEqual(t, a[1], b[1])
	require.NotEqual(t, a[2], b[2])
}

func BenchmarkNewIDs(b *testing.B) {
	b.ReportAllocs()
	g := New()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var id trace.TraceID
			if id, _ = g.NewIDs(b.Context()); !id.IsValid() {
				b.Error("zero")
			}
		}
	})
}
