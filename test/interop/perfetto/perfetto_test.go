// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package perfetto holds what `lenscol perfetto` writes against Perfetto's own reading of it: `make test-perfetto`.
package perfetto

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/internal/simrun"
	"github.com/lenscol/lenscol/internal/testbed"
)

// verdict is what judge.py prints.
type verdict struct {
	Errors     []string
	Processes  []string
	Threads    int
	Slices     map[string]int
	Instants   int
	Counts     int
	Flows      int
	LooseFlows int `json:"loose_flows"`
	Deepest    int
	Open       int
}

func (v verdict) slices() (n int) {
	for _, of := range v.Slices {
		n += of
	}
	return n
}

// errNoProcessor says that the trace processor's binary cannot be had.
var errNoProcessor = errors.New("no trace processor")

func judge(t *testing.T, args ...string) (verdict, error) {
	t.Helper()
	python := os.Getenv("LENSCOL_PERFETTO_PYTHON")
	if python == "" {
		t.Fatal("LENSCOL_PERFETTO_PYTHON names no Python that has the package perfetto: run make test-perfetto")
	}
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, append([]string{"judge.py"}, args...)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 3 {
		return verdict{}, errNoProcessor
	}
	require.NoError(t, err, errs.String())
	var v verdict
	require.NoError(t, json.Unmarshal(out, &v))
	return v, nil
}

// drawn runs the built binary and returns the trace's path.
func drawn(t *testing.T, args ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "run.pftrace")
	out, err := exec.CommandContext(t.Context(), testbed.Binary(t), append([]string{"perfetto", "-o", to}, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return to
}

func simulated(t *testing.T, change func(*simrun.Config)) (file string, truth simrun.Truth) {
	t.Helper()
	cfg := simrun.Default()
	change(&cfg)
	run, err := simrun.New(cfg)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, run.Write(&text, jsonlexporter.LayoutCompact))
	file = filepath.Join(t.TempDir(), "traces.jsonl")
	require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))
	return file, run.Truth()
}

func TestPerfettoReadsASimulatedRun(t *testing.T) {
	for name, generation := range map[string]simrun.Generation{"old names": simrun.OldNames, "new names": simrun.NewNames} {
		t.Run(name, func(t *testing.T) {
			file, truth := simulated(t, func(c *simrun.Config) { c.Ranks, c.RanksPerNode, c.SlowRank, c.Generation = 64, 8, 37, generation })
			trace := drawn(t, file)
			v, err := judge(t, trace)
			require.NoError(t, err)
			require.Empty(t, v.Errors)
			require.Len(t, v.Processes, 64)
			require.Equal(t, "rank 0017 | node002 | megatron", v.Processes[17])
			require.Equal(t, 64, v.Threads, "nothing overlaps: one lane a rank")
			require.Equal(t, truth.Spans, v.slices())
			require.Equal(t, truth.Links, v.Flows)
			require.Zero(t, v.LooseFlows)
			require.Equal(t, truth.Points, v.Counts)
			require.Equal(t, 4, v.Deepest, "train, iteration, forward_backward, grad_sync; train, exposed_save, save, io_write")
			t.Logf("%d ranks, %d slices, %d flows, %d counter values, %d instants", len(v.Processes), v.slices(), v.Flows, v.Counts, v.Instants)

			processor, err := judge(t, "--processor", trace)
			if errors.Is(err, errNoProcessor) {
				t.Log("SKIPPED: the trace processor's binary cannot be fetched here; read by the package's classes alone")
				return
			}
			require.Empty(t, processor.Errors)
			require.Equal(t, v.Processes, processor.Processes)
			require.Equal(t, []int{v.slices(), v.Flows, v.Counts, 0}, []int{processor.slices(), processor.Flows, processor.Counts, processor.Open})
		})
	}
}

func TestPerfettoReadsEveryCapture(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "captures", "*", "*", "*", "console.jsonl"))
	require.NoError(t, err)
	require.Greater(t, len(folders), 40)
	slices := 0
	for _, path := range folders {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		v, err := judge(t, drawn(t, path))
		require.NoError(t, err)
		require.Empty(t, v.Errors, path)
		require.Equal(t, strings.Count(string(text), `"parent_id"`), v.slices(), path)
		slices += v.slices()
	}
	t.Logf("%d files, %d slices", len(folders), slices)
}
