// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

var killSeed = flag.Uint64("kill.seed", 0, "seed of TestSIGKILL; 0 draws one")

// TestSIGKILL kills the collector at random moments under load and starts it again on the same files. Nothing that was
// acknowledged is lost, and no line is torn or glued: acknowledged means that the bytes are in the page cache.
func TestSIGKILL(t *testing.T) {
	const kills = 50
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -kill.seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	config := func(kill int) string {
		ways := []string{"sync: none", "flush_interval: 5ms", "sync: always"}
		return exporters{{"jsonl", []string{"rotation: {max_bytes: 1MB}", ways[kill%len(ways)]}}}.yaml()
	}
	collector := testbed.New(t, testbed.Options{Config: config(0)})
	data := filepath.Join(collector.Dir, "lens-data")
	files := newArchive(t, data)
	l := &load{}
	tornByHand := 0
	for kill := range kills {
		collector.WriteConfig(config(kill))
		collector.Start()
		l.requireGenuine(t, files.requireNext(t))
		enough := l.after(1 + random.IntN(40))
		wait := l.start(context.Background(), collector, func(error) bool { return false })
		select {
		case <-enough:
		case <-time.After(time.Minute):
			require.Fail(t, "the senders get no answers")
		}
		moment := time.NewTimer(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
		<-moment.C
		collector.Kill()
		err := wait()
		require.True(t, testbed.Retryable(err), "kill %d: a sender was refused: %v", kill, err)
		if kill%5 == 0 {
			// A write is seldom torn by a kill alone, as the kernel finishes what it has begun.
			tornByHand += tear(t, random, data)
		}
	}
	collector.Start()
	l.requireGenuine(t, files.requireNext(t))
	collector.Stop()
	l.requireGenuine(t, files.requireNext(t))
	l.requireNothingLost(t)

	rotated, err := filepath.Glob(filepath.Join(data, "*-*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, rotated, "the load must rotate")
	torn := strings.Count(collector.Stderr(), "cut off the torn last line")
	require.GreaterOrEqual(t, torn, tornByHand)
	t.Logf("%d kills, %d rotated files, %d torn lines cut, %d of them made by the test", kills, len(rotated), torn, tornByHand)
}

// tear appends the beginning of a line to each active file, as a write that was interrupted leaves it.
func tear(t *testing.T, random *rand.Rand, data string) (torn int) {
	t.Helper()
	line := `{"type":"span","name":"torn","trace_id":"0102030405060708090a0b0c0d0e0f10","attributes":{"text":"` + strings.Repeat("y", random.IntN(200_000))
	for _, signal := range (exporters{}).Signals() {
		f, err := os.OpenFile(filepath.Join(data, signal+".jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		if os.IsNotExist(err) {
			continue // Killed between a rotation and its next file.
		}
		require.NoError(t, err)
		_, err = f.WriteString(line[:1+random.IntN(len(line)-1)])
		require.NoError(t, err)
		require.NoError(t, f.Close())
		torn++
	}
	return torn
}
