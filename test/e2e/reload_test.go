// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// TestReloadUnderLoad changes the config on disk and sends SIGHUP while senders run: the process lives, the files' locks
// are never in the way, and nothing that was acknowledged is lost.
func TestReloadUnderLoad(t *testing.T) {
	for name, settings := range map[string][]string{
		"without queue": {"rotation: {max_bytes: 4MB}"},
		"with queue":    {"rotation: {max_bytes: 4MB}", "sending_queue: {queue_size: 50}"},
	} {
		t.Run(name, func(t *testing.T) {
			first := jsonl{"jsonl", settings}
			collector := testbed.Start(t, testbed.Options{Config: exporters{first}.yaml()})
			l := &load{}
			ctx, stop := context.WithCancel(t.Context())
			wait := l.start(ctx, collector, testbed.Retryable)
			var seconds []string
			for i := range 5 {
				requireAnswers(t, l, 20)
				second := fmt.Sprintf("second-%d", i)
				collector.WriteConfig(exporters{first, {"jsonl/second", []string{"path: " + second + "/{signal}.jsonl"}}}.yaml())
				collector.Reload()
				requireGrows(t, filepath.Join(collector.Dir, second, "traces.jsonl"))
				seconds = append(seconds, second)
			}

			collector.WriteConfig("exporters: {jsonl: {path: ''}}")
			collector.Reload()
			require.Eventually(t, func() bool { return strings.Contains(collector.Stderr(), "the new config is refused") }, time.Minute, 10*time.Millisecond)
			requireAnswers(t, l, 20)

			collector.WriteConfig(exporters{first, {"jsonl/third", []string{"path: third/{signal}.jsonl"}}}.yaml())
			collector.Reload()
			requireGrows(t, filepath.Join(collector.Dir, "third", "logs.jsonl"))
			requireAnswers(t, l, 20)

			stop()
			require.NoError(t, wait())
			collector.RequireRunning()
			collector.Stop()
			require.NotContains(t, collector.Stderr(), "is being written by")
			require.NotContains(t, collector.Stderr(), "going back to the one that ran before")
			l.requireGenuine(t, newArchive(t, filepath.Join(collector.Dir, "lens-data")).requireNext(t))
			l.requireNothingLost(t)
			for _, second := range seconds {
				newArchive(t, filepath.Join(collector.Dir, second)).requireNext(t)
			}
		})
	}
}

// requireAnswers waits for n more acknowledged requests.
func requireAnswers(t *testing.T, l *load, n int) {
	t.Helper()
	select {
	case <-l.after(n):
	case <-time.After(time.Minute):
		require.Fail(t, "the senders get no answers")
	}
}

// requireGrows waits until the file is there and has bytes.
func requireGrows(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > 0
	}, time.Minute, 10*time.Millisecond, "nothing is written to %s", path)
}
