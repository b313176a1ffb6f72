// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/e2e/oracle"
)

// TestRestart appends: both parts are there, and nothing is glued at the seam.
func TestRestart(t *testing.T) {
	collector := testbed.New(t, testbed.Options{Config: exporters{{Name: "jsonl"}}.yaml()})
	want, before := map[string][]oracle.Item{}, map[string][]byte{}
	all := deliveries(t)
	for part, some := range [][]delivery{all[:len(all)/2], all[len(all)/2:], nil} {
		collector.Start()
		client := collector.Client()
		for _, d := range some {
			require.NoError(t, d.send(t.Context(), client), d.name)
			want[d.signal] = append(want[d.signal], d.want...)
		}
		client.Close()
		collector.Stop()

		got := newArchive(t, filepath.Join(collector.Dir, "lens-data")).requireNext(t)
		for signal := range want {
			require.NoError(t, oracle.SameInOrder(want[signal], got[signal]), "%s after part %d", signal, part)
			text, err := os.ReadFile(filepath.Join(collector.Dir, "lens-data", signal+".jsonl"))
			require.NoError(t, err)
			require.Equal(t, string(before[signal]), string(text[:len(before[signal])]), "what was there is not touched")
			before[signal] = text
		}
	}
}

// TestTwoProcessesOnOneFile lets the first write on and ends the second, which says who has the file.
func TestTwoProcessesOnOneFile(t *testing.T) {
	config := exporters{{Name: "jsonl"}}.yaml()
	first := testbed.Start(t, testbed.Options{Config: config})
	code, stderr := testbed.New(t, testbed.Options{Config: config, Dir: first.Dir}).RunToEnd()
	require.NotZero(t, code)
	require.Contains(t, stderr, "lens-data")
	require.Regexp(t, fmt.Sprintf(`process %d\b`, first.Pid()), stderr)

	files := newArchive(t, filepath.Join(first.Dir, "lens-data"))
	client := first.Client()
	for _, d := range deliveries(t)[:20] {
		require.NoError(t, d.send(t.Context(), client), d.name)
		require.NoError(t, oracle.SameInOrder(d.want, files.requireNext(t)[d.signal]))
	}
	first.Kill()
	testbed.Start(t, testbed.Options{Config: config, Dir: first.Dir}).Stop() // The lock went with its holder.
}

// TestFileMovedFromOutside renames and removes the active files under load, as logrotate does. New files take their
// places, each to be read alone, and all that was acknowledged is in one of them.
func TestFileMovedFromOutside(t *testing.T) {
	for name, settings := range map[string][]string{"at once": nil, "flush interval": {"flush_interval: 20ms"}} {
		t.Run(name, func(t *testing.T) {
			collector := testbed.Start(t, testbed.Options{Config: exporters{{"jsonl", settings}}.yaml()})
			data := filepath.Join(collector.Dir, "lens-data")
			files := newArchive(t, data)
			l := &load{}
			ctx, stop := context.WithCancel(t.Context())
			wait := l.start(ctx, collector, testbed.Retryable)
			for i := range 4 {
				requireAnswers(t, l, 20)
				for _, signal := range (exporters{}).Signals() {
					active := filepath.Join(data, signal+".jsonl")
					requireGrows(t, active)
					require.NoError(t, files.find()) // Opens it, so that its end can be read when it is gone.
					if i%2 == 0 {
						require.NoError(t, os.Rename(active, fmt.Sprintf("%s.%d", active, i)))
					} else {
						require.NoError(t, os.Remove(active))
					}
					requireGrows(t, active)
				}
			}
			requireAnswers(t, l, 20)
			stop()
			require.NoError(t, wait())
			collector.Stop()
			l.requireGenuine(t, files.requireNext(t))
			l.requireNothingLost(t)
			require.GreaterOrEqual(t, len(files.files), 5*len(exporters{}.Signals()))
		})
	}
}

// TestFileTruncatedFromOutside empties the active files under load, as logrotate's copytruncate does: what is in them
// is gone, and what is acknowledged afterwards is there, in files that can be read alone.
func TestFileTruncatedFromOutside(t *testing.T) {
	collector := testbed.Start(t, testbed.Options{Config: exporters{{Name: "jsonl"}}.yaml()})
	data := filepath.Join(collector.Dir, "lens-data")
	for range 3 {
		l := &load{}
		ctx, stop := context.WithCancel(t.Context())
		wait := l.start(ctx, collector, testbed.Retryable)
		requireAnswers(t, l, 20)
		for _, signal := range (exporters{}).Signals() {
			require.NoError(t, os.Truncate(filepath.Join(data, signal+".jsonl"), 0))
		}
		requireAnswers(t, l, 20)
		stop()
		require.NoError(t, wait())
	}
	// One more request a file finds the last truncation at the latest; from then on every file is whole.
	client := collector.Client()
	for _, signal := range (exporters{}).Signals() {
		require.NoError(t, os.Truncate(filepath.Join(data, signal+".jsonl"), 0))
	}
	want := map[string][]oracle.Item{}
	for _, d := range deliveries(t) {
		require.NoError(t, d.send(t.Context(), client), d.name)
		want[d.signal] = append(want[d.signal], d.want...)
	}
	got := newArchive(t, data).requireNext(t)
	for signal := range want {
		require.NoError(t, oracle.SameInOrder(want[signal], got[signal]), signal)
	}
}

// TestRecordLargerThanRotation gives a record that no file has room for one of its own, and its neighbours their places.
func TestRecordLargerThanRotation(t *testing.T) {
	collector := testbed.Start(t, testbed.Options{Config: exporters{{"jsonl", []string{"rotation: {max_bytes: 20kB}"}}}.yaml()})
	files := newArchive(t, filepath.Join(collector.Dir, "lens-data"))
	client, l := collector.Client(), &load{}
	for _, s := range []sender{
		{signal: "traces", items: 3}, {signal: "traces", items: 1, text: 100_000}, {signal: "traces", items: 3, text: 30_000},
		{signal: "traces", items: 100, text: 500}, {signal: "logs", items: 2, text: 50_000}, {signal: "metrics", items: 500},
	} {
		signal, body, numbers, err := l.request(s)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		require.NoError(t, client.GRPC(ctx, signal, body, false))
		cancel()
		l.answer(numbers)
	}
	l.requireGenuine(t, files.requireNext(t))
	l.requireNothingLost(t)
	for _, f := range files.files {
		info, err := f.f.Stat()
		require.NoError(t, err)
		if info.Size() > 20_000 {
			require.Len(t, readItems(t, f.f.Name()), 1, "%s is larger than rotation::max_bytes", f.f.Name())
		}
	}
}

func readItems(t *testing.T, path string) []oracle.Item {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var r oracle.Reader
	items, err := r.Feed(text)
	require.NoError(t, err)
	return items
}
