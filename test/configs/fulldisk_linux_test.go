// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/configs/backendtest"
)

// While the archive's disk is full, the paid backends get each span at most once: also when so much waits for the disk that senders are
// refused, again and again, and repeat what they have. With space again everything is archived.
func TestFanoutWithAFullDisk(t *testing.T) {
	for _, tt := range []struct {
		name    string
		disk    string
		batches int
		refused bool // until there is space
		args    []string
	}{
		{name: "what waits fits into memory", disk: "16m", batches: 100},
		// A process of 120 MiB.
		{name: "memory runs short", disk: "128m", batches: 20000, refused: true, args: []string{
			"--set", "processors.memory_limiter.limit_percentage=0", "--set", "processors.memory_limiter.spike_limit_percentage=0",
			"--set", "processors.memory_limiter.limit_mib=120", "--set", "processors.memory_limiter.spike_limit_mib=32", "--set", "processors.memory_limiter.check_interval=50ms"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disk := testbed.Tmpfs(t, tt.disk)
			weave := weavetest.New(t, weavetest.Options{})
			honeycomb, jaeger := newHoneycomb(t, key, "", "lens-metrics"), backendtest.NewGRPC(t, nil)
			collector := start(t, "fanout", testbed.Options{
				Args: append(tt.args, "--set", "exporters.jsonl.min_free_bytes=0", "--set", "exporters.jsonl.retry_on_failure.max_interval=1s"),
				Env:  append(weaveEnv(weave), "LENSCOL_DATA_DIR="+disk, "HONEYCOMB_API_KEY="+key, "HONEYCOMB_ENDPOINT="+honeycomb.URL, "LENSCOL_JAEGER="+jaeger.Address)})
			ballast := fillUp(t, disk)

			sender := retrying{t: t, client: collector.Client()}
			defer sender.client.Close()
			sent := 0
			for ; sent < tt.batches && (!tt.refused || sender.refusals < 10); sent++ {
				if !sender.send(sent, tt.refused) {
					break
				}
			}
			require.Equal(t, tt.refused, sender.refusals >= 10, "%d batches, %d refusals", sent, sender.refusals)
			require.Contains(t, collector.Stderr(), "no space left on device")
			requireAtMostOnce(t, honeycomb.Counts(), jaeger.Counts(), weave.Stats())

			require.NoError(t, os.Remove(ballast))
			if tt.refused {
				require.True(t, sender.send(sent, false), "senders go on")
				sent++
			}
			all := sent * spansPerBatch
			eventually(t, func() bool { return len(archived(t, disk, "traces", "span")) >= all }, "%d spans in the archive", all)
			eventually(t, func() bool {
				return len(honeycomb.Counts()) == all && len(jaeger.Counts()) == all && weave.Stats().Spans >= all
			}, "%d spans everywhere", all)
			requireAtMostOnce(t, honeycomb.Counts(), jaeger.Counts(), weave.Stats())
			require.Len(t, archived(t, disk, "traces", "span"), all)
			collector.Stop()
		})
	}
}

// fillUp leaves no byte on a disk, and returns the file that takes it.
func fillUp(t *testing.T, disk string) string {
	t.Helper()
	ballast := filepath.Join(disk, "ballast")
	file, err := os.Create(ballast)
	require.NoError(t, err)
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	return ballast
}

const spansPerBatch = 10

// retrying is a sender as OTLP has it: what is refused retryably is sent again.
type retrying struct {
	t        *testing.T
	client   *testbed.Client
	refusals int
}

// send sends a batch until it is taken; or, with giveUp, gives up after ten refusals and says false.
func (r *retrying) send(n int, giveUp bool) bool {
	r.t.Helper()
	var spans []span
	for i := range spansPerBatch {
		spans = append(spans, span{name: fmt.Sprint("step ", n, " ", i), resource: rank(0, 1), attrs: attributes{"text": strings.Repeat("x", 128)}})
	}
	signal, body := message(r.t, traces(spans...))
	for begin := time.Now(); ; {
		ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second) // OTLP's own
		err := r.client.HTTP(ctx, signal, testbed.Protobuf, body, false)
		cancel()
		if err == nil {
			return true
		}
		require.True(r.t, testbed.Retryable(err) || errors.Is(err, context.DeadlineExceeded), "%v", err)
		require.Less(r.t, time.Since(begin), time.Minute, "%v", err)
		if r.refusals++; giveUp && r.refusals >= 10 {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func requireAtMostOnce(t *testing.T, honeycomb, jaeger map[string]int, weave weavetest.Stats) {
	t.Helper()
	for _, counts := range []map[string]int{honeycomb, jaeger} {
		for id, n := range counts {
			require.Equal(t, 1, n, "span %s", id)
		}
	}
	require.Zero(t, weave.Resent, "at Weave")
}
