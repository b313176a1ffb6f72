// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/internal/archive"
	"github.com/lenscol/lenscol/internal/perfetto"
	"github.com/lenscol/lenscol/internal/simrun"
)

// drawOnly makes this binary draw a file, write it to another one and end: what the benchmark measures is a process that does nothing else.
const drawOnly = "LENSCOL_TEST_DRAW"

func TestMain(m *testing.M) {
	if from := os.Getenv(drawOnly); from != "" {
		debug.SetGCPercent(50) // As the command does.
		if err := drawFile(from, os.Getenv(drawOnly+"_TO"), perfetto.Options{JSON: os.Getenv(drawOnly+"_JSON") != ""}); err != nil {
			_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
			os.Exit(1)
		}
		status, _ := os.ReadFile("/proc/self/status") // Of its own: what wait4 says is at least what its parent has, which started it by vfork.
		_, _ = os.Stdout.Write(status)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func drawFile(from, to string, opts perfetto.Options) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	trace := perfetto.New(opts)
	defer trace.Close()
	files := archive.NewFiles([]archive.Input{{Path: from}}, func(archive.Input, error) {})
	defer files.Close()
	for {
		rec, _, err := files.Next()
		if err != nil {
			break
		}
		if err := trace.Add(rec); err != nil {
			return err
		}
	}
	_, err = trace.Write(out)
	return err
}

// BenchmarkRun draws archives of whole runs, of 1,024 ranks and 20 steps first, and reports seconds, the peak of resident memory of the process that does it, and the sizes.
func BenchmarkRun(b *testing.B) {
	for _, bb := range []struct {
		name         string
		ranks, steps int
		zst, json    bool
	}{
		{"1024x20", 1024, 20, false, false},
		{"1024x20/zstd", 1024, 20, true, false},
		{"1024x20/json", 1024, 20, false, true},
		{"1024x100", 1024, 100, true, false},
		{"64x2000", 64, 2000, true, false},
	} {
		b.Run(bb.name, func(b *testing.B) {
			from := filepath.Join(b.TempDir(), "traces.jsonl")
			writeRun(b, from, bb.ranks, bb.steps, bb.zst)
			to := filepath.Join(b.TempDir(), "run.pftrace")
			var most int64
			var seconds time.Duration
			for b.Loop() {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), drawOnly+"="+from, drawOnly+"_TO="+to, "GOMAXPROCS=2")
				if bb.json {
					cmd.Env = append(cmd.Env, drawOnly+"_JSON=1")
				}
				begin := time.Now()
				out, err := cmd.CombinedOutput()
				require.NoError(b, err, string(out))
				seconds += time.Since(begin)
				most = max(most, peak(b, out))
			}
			b.ReportMetric(seconds.Seconds()/float64(b.N), "s/run")
			b.ReportMetric(float64(most)/1024, "MiB-peak")
			b.ReportMetric(float64(size(b, from))/1e6, "MB-in")
			b.ReportMetric(float64(size(b, to))/1e6, "MB-out")
		})
	}
}

// peak is the most that a process ever had in memory, KiB, of what /proc says of it. Where there is no /proc it is 0.
func peak(tb testing.TB, status []byte) (kib int64) {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, err := fmt.Sscan(rest, &kib)
			require.NoError(tb, err)
		}
	}
	return kib
}

func size(tb testing.TB, path string) int64 {
	info, err := os.Stat(path)
	require.NoError(tb, err)
	return info.Size()
}

// writeRun writes a run without crashes as the jsonl exporter does.
func writeRun(tb testing.TB, path string, ranks, steps int, compress bool) simrun.Truth {
	cfg := simrun.Default()
	cfg.Ranks, cfg.RanksPerNode, cfg.Steps, cfg.Crashes = ranks, 8, steps, nil
	run, err := simrun.New(cfg)
	require.NoError(tb, err)
	f, err := os.Create(path)
	require.NoError(tb, err)
	defer f.Close()
	var w io.WriteCloser = f
	if compress {
		w, err = zstd.NewWriter(f)
		require.NoError(tb, err)
	}
	buffered := bufio.NewWriter(w)
	require.NoError(tb, run.Write(buffered, jsonlexporter.LayoutCompact))
	require.NoError(tb, buffered.Flush())
	if compress {
		require.NoError(tb, w.Close())
	}
	return run.Truth()
}
