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
	for _, tt := range []struct {
		name     string
		kills    int
		settings []string
	}{
		{"plain", 50, []string{"rotation: {max_bytes: 1MB}"}},
		{"gzip", 10, []string{"rotation: {max_bytes: 200kB}", "compression: gzip"}},
		{"zstd", 10, []string{"rotation: {max_bytes: 200kB}", "compression: zstd"}},
		{"partitions", 15, []string{"rotation: {max_bytes: 500kB}", `path: "lens-data/{run}/{rank}/{signal}.jsonl"`, "max_open_files: 5"}},
		{"partitions zstd", 15, []string{"rotation: {max_bytes: 100kB}", `path: "lens-data/{rank}/{signal}.jsonl"`, "compression: zstd"}},
	} {
		t.Run(tt.name, func(t *testing.T) { testKills(t, tt.kills, tt.settings) })
	}
}

func testKills(t *testing.T, kills int, settings []string) {
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -kill.seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	config := func(kill int) string {
		ways := []string{"sync: none", "flush_interval: 5ms", "sync: always"}
		return exporters{{"jsonl", append([]string{ways[kill%len(ways)]}, settings...)}}.yaml()
	}
	collector := testbed.New(t, testbed.Options{Config: config(0)})
	data := filepath.Join(collector.Dir, "lens-data")
	files := newArchive(t, data)
	l := &load{}
	tornByHand := 0
	for kill := range kills {
		collector.WriteConfig(config(kill))
		collector.Start()
		repairAll(t, collector, l)
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
	repairAll(t, collector, l)
	l.requireGenuine(t, files.requireNext(t))
	collector.Stop()
	l.requireGenuine(t, files.requireNext(t))
	l.requireNothingLost(t)

	paths, err := filesBelow(data)
	require.NoError(t, err)
	rotated := 0
	for _, path := range paths {
		if strings.Contains(filepath.Base(path), "-") {
			rotated++
		}
	}
	require.NotZero(t, rotated, "the load must rotate")
	torn := strings.Count(collector.Stderr(), "cut off the torn end")
	require.GreaterOrEqual(t, torn, tornByHand)
	t.Logf("%d kills, %d files, %d of them rotated, %d torn ends cut, %d of them made by the test", kills, len(paths), rotated, torn, tornByHand)
}

// repairAll has every file that may be torn opened: the file of a partition is opened by the first record for it alone.
func repairAll(t *testing.T, collector *testbed.Collector, l *load) {
	t.Helper()
	client := collector.Client()
	defer client.Close()
	for _, signal := range (exporters{}).Signals() {
		s := sender{signal: signal, items: 1}
		for range 4 { // A resource is chosen by the number of its first item: these are all four ranks.
			_, body, numbers, err := l.request(s)
			require.NoError(t, err)
			require.NoError(t, s.deliver(client, signal, body, func(error) bool { return false }))
			l.answer(numbers)
		}
	}
}

// tear appends the beginning of a line, or of a frame, to each active file, as a write that was interrupted leaves it.
func tear(t *testing.T, random *rand.Rand, data string) (torn int) {
	t.Helper()
	line := `{"type":"span","name":"torn","trace_id":"0102030405060708090a0b0c0d0e0f10","attributes":{"text":"` + strings.Repeat("y", random.IntN(200_000))
	paths, err := filesBelow(data)
	require.NoError(t, err)
	for _, path := range paths {
		if strings.Contains(filepath.Base(path), "-") {
			continue // A rotated file.
		}
		piece := []byte(line)
		if filepath.Ext(path) != ".jsonl" {
			// The beginning of the file is the beginning of a frame.
			piece, err = os.ReadFile(path)
			require.NoError(t, err)
			piece = piece[:min(len(piece), 60)]
		}
		if len(piece) == 0 {
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		_, err = f.Write(piece[:1+random.IntN(len(piece)-1)])
		require.NoError(t, err)
		require.NoError(t, f.Close())
		torn++
	}
	return torn
}
