// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/internal/archive"
	"github.com/lenscol/lenscol/internal/perfetto"
	"github.com/lenscol/lenscol/internal/simrun"
	"github.com/lenscol/lenscol/internal/testbed"
)

// draw draws what a file holds.
func draw(t testing.TB, content []byte, opts perfetto.Options) ([]byte, perfetto.Summary) {
	t.Helper()
	trace := perfetto.New(opts)
	defer trace.Close()
	addFile(t, trace, "traces.jsonl", content)
	var out bytes.Buffer
	summary, err := trace.Write(&out)
	require.NoError(t, err)
	return out.Bytes(), summary
}

func addFile(t testing.TB, trace *perfetto.Trace, name string, content []byte) (spans int) {
	t.Helper()
	r, err := archive.NewReader(bytes.NewReader(content), name)
	require.NoError(t, err)
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return spans
		}
		if err != nil {
			continue // Damage.
		}
		if rec.Span != (ptrace.Span{}) {
			spans++
		}
		require.NoError(t, trace.Add(rec))
	}
}

// simulated is a made-up run as a file, and the truth about it.
func simulated(t testing.TB, change func(*simrun.Config)) ([]byte, simrun.Truth) {
	t.Helper()
	cfg := simrun.Default()
	change(&cfg)
	run, err := simrun.New(cfg)
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, run.Write(&file, jsonlexporter.LayoutCompact))
	return file.Bytes(), run.Truth()
}

// TestARunOf64RanksWithASlowOne draws a run with a crash, and finds in the trace all that was sent, in its place.
func TestARunOf64RanksWithASlowOne(t *testing.T) {
	for name, generation := range map[string]simrun.Generation{"old names": simrun.OldNames, "new names": simrun.NewNames} {
		t.Run(name, func(t *testing.T) {
			file, truth := simulated(t, func(c *simrun.Config) {
				c.Ranks, c.RanksPerNode, c.SlowRank, c.Generation, c.FailingRank = 64, 8, 37, generation, 12
			})
			out, summary := draw(t, file, perfetto.Options{})
			j := mustJudge(t, out)

			require.Len(t, j.processes, 64)
			require.Equal(t, "rank 0000 | node000 | megatron", j.processes[1].name)
			require.Equal(t, "rank 0037 | node004 | megatron", j.processes[38].name)
			require.EqualValues(t, 38, j.processes[38].sort)
			require.Contains(t, j.processes[38].labels, "clock ")
			require.Len(t, j.slices, truth.Spans)
			require.Len(t, j.flows, truth.Links)
			for _, ends := range j.flows {
				require.Len(t, ends, 2)
			}
			for _, lane := range j.lanes {
				require.Equal(t, "spans", lane, "nothing overlaps")
			}
			points := 0
			for _, values := range j.counters {
				points += len(values)
			}
			require.Equal(t, truth.Points, points)
			require.Equal(t, [3]int64{int64(truth.Spans), int64(truth.Links), int64(truth.TruncatedSpans)}, [3]int64{summary.Spans, summary.Flows, summary.Truncated})
			require.Equal(t, [3]int{64, 64, 8}, [3]int{summary.Ranks, summary.Processes, summary.Nodes})

			waits, errs, truncated := map[string]int64{}, 0, 0
			for _, s := range j.slices {
				if strings.HasSuffix(s.name, "grad_sync.finish") {
					waits[s.process] += s.end - s.at
				}
				errs += strings.Count(fmt.Sprint(s.categories), "error")
				truncated += strings.Count(s.name, " (truncated)")
			}
			require.Equal(t, [2]int{truth.ErrorSpans, truth.TruncatedSpans}, [2]int{errs, truncated})
			for process, wait := range waits {
				if process != "rank 0037 | node004 | megatron" {
					require.Greater(t, wait, 2*waits["rank 0037 | node004 | megatron"], "the slow rank waits least")
				}
			}
		})
	}
}

// TestDrawingIsBoundedByRanksNotByLength draws with next to no memory for sorting what fits easily, and gets the same trace.
func TestDrawingIsBoundedByRanksNotByLength(t *testing.T) {
	file, _ := simulated(t, func(*simrun.Config) {})
	whole, _ := draw(t, file, perfetto.Options{})
	folder := t.TempDir()
	spilled, _ := draw(t, file, perfetto.Options{SortMemory: 8 << 10, SortFolder: folder})
	require.Equal(t, whole, spilled)
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left, "temporary files are removed")
}

func TestEveryCaptureIsDrawn(t *testing.T) {
	content := map[string][]byte{}
	for _, c := range testbed.Captures(t) {
		if c.JSON {
			content[c.Name] = append(c.Body, '\n')
		}
	}
	consoles, err := filepath.Glob(filepath.Join("..", "..", "testdata", "captures", "*", "*", "*", "console.jsonl"))
	require.NoError(t, err)
	for _, path := range consoles {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		content[path] = text
	}
	require.Greater(t, len(content), 40)
	for name, text := range content {
		t.Run(name, func(t *testing.T) {
			trace := perfetto.New(perfetto.Options{})
			defer trace.Close()
			spans := addFile(t, trace, name, text)
			var out bytes.Buffer
			_, err := trace.Write(&out)
			require.NoError(t, err)
			j := mustJudge(t, out.Bytes())
			require.Len(t, j.slices, spans)
			for _, s := range j.slices {
				if strings.Contains(fmt.Sprint(s.args["nemo.span.truncated"]), "true") {
					require.Contains(t, s.name, " (truncated)")
				}
			}
		})
	}
}

func TestALinkOfACaptureIsAFlow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "captures", "0.2.0", "links", "grpc", "console.jsonl"))
	require.NoError(t, err)
	out, summary := draw(t, text, perfetto.Options{})
	complete := int64(0)
	for _, ends := range mustJudge(t, out).flows {
		if len(ends) == 2 {
			complete++
		}
	}
	require.Positive(t, complete)
	require.Equal(t, complete, summary.Flows)
}

func TestNothingToDrawIsAnError(t *testing.T) {
	trace := perfetto.New(perfetto.Options{})
	defer trace.Close()
	_, err := trace.Write(io.Discard)
	require.ErrorIs(t, err, perfetto.ErrNothing)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAnErrorOfWritingIsNamed(t *testing.T) {
	file, _ := simulated(t, func(*simrun.Config) {})
	for _, json := range []bool{false, true} {
		trace := perfetto.New(perfetto.Options{JSON: json})
		addFile(t, trace, "traces.jsonl", file)
		_, err := trace.Write(fullDisk{})
		require.ErrorContains(t, err, "write the trace: no space left on device")
		require.NoError(t, trace.Close())
	}
}

func TestAFolderThatIsNotThereIsNamed(t *testing.T) {
	file, _ := simulated(t, func(*simrun.Config) {})
	trace := perfetto.New(perfetto.Options{SortMemory: 1, SortFolder: filepath.Join(t.TempDir(), "nowhere")})
	defer trace.Close()
	r, err := archive.NewReader(bytes.NewReader(file), "traces.jsonl")
	require.NoError(t, err)
	for err == nil {
		var rec archive.Record
		if rec, err = r.Next(); err == nil {
			err = trace.Add(rec)
		}
	}
	require.ErrorContains(t, err, "nowhere")
}
