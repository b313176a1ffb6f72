// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/internal/archive"
	"github.com/lenscol/lenscol/internal/perfetto"
)

func newPerfettoCommand() *cobra.Command {
	var opts perfetto.Options
	var output, memory string
	var force bool
	cmd := &cobra.Command{
		Use:   "perfetto -o OUTPUT FILE...",
		Short: "Draws a run as a trace that ui.perfetto.dev opens",
		Long: `Draws files of telemetry as one trace: a process for every rank, slices for spans, arrows for links, counters for metrics, instants
for events and log records. OUTPUT is Perfetto's protobuf, or with --json Chrome's trace events; a name that ends in .gz is compressed.

Clocks of nodes differ. By how much is read off the steps, which end on all ranks at once, corrected, and said in the trace, with
what it may be wrong by. FILE is as of lenscol jsonl.`,
		Example: `  lenscol perfetto -o run.pftrace lens-data
  lenscol perfetto -o start.pftrace --run r1 --rank 0-15 --until 2026-11-29T12:10:00Z node*.jsonl.zst
  lenscol perfetto --json -o run.json.gz lens-data   # for chrome://tracing and scripts`,
		Args: cobra.MinimumNArgs(1),
	}
	filterText := filterFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "", "`FILE` to write")
	flags.BoolVar(&force, "force", false, "Replace the file")
	flags.BoolVar(&opts.JSON, "json", false, "Write Chrome's trace events, as JSON")
	flags.BoolVar(&opts.RawClocks, "no-clock-correction", false, "Leave all times as they came; the trace says what the clocks are off by")
	flags.StringArrayVar(&opts.ClockSpans, "clock-span", nil, "Read clocks off spans whose name matches a `GLOB` and that carry a step (default Megatron's iterations); may be repeated")
	flags.StringVar(&memory, "sort-memory", humanize.IBytes(perfetto.DefaultSortMemory), "`BYTES` of records that are held; the rest goes to temporary files")
	flags.StringVar(&opts.SortFolder, "sort-folder", "", "`FOLDER` of the temporary files (default the system's)")
	_ = cmd.MarkFlagRequired("output") // Fails for an unknown flag alone.
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := archive.NewFilter(*filterText, time.Now())
		if err != nil {
			return usage(err)
		}
		bound, err := humanize.ParseBytes(memory)
		if err != nil {
			return usage(fmt.Errorf("--sort-memory: %q is not a number of bytes, like 4194304 or 4MiB", memory))
		}
		opts.SortMemory = int64(bound)
		return drawRun(cmd, args, filter, opts, output, force)
	}
	return cmd
}

// gcPercent keeps the garbage small beside what is held, which is small itself: it takes a tenth of the memory and costs a twentieth of
// the time.
const gcPercent = 50

func drawRun(cmd *cobra.Command, args []string, filter *archive.Filter, opts perfetto.Options, output string, force bool) error {
	inputs, err := archive.Find(args)
	if err != nil {
		return err
	}
	if there, err := os.Stat(output); err == nil {
		for _, in := range inputs {
			if info, err := os.Stat(in.Path); err == nil && os.SameFile(info, there) {
				return usage(fmt.Errorf("%s: is read and would be replaced; write to another file", output))
			}
		}
	}
	r := readInputs(cmd, inputs)
	defer r.Close()
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	bytes := int64(0) // of the records that are drawn: what the bar of the second half counts
	var drawing *progress
	opts.Progress = func(done, total int64) {
		drawing.update(func() (read, size int64) { return int64(float64(bytes) * float64(done) / float64(total)), bytes })
	}
	trace := perfetto.New(opts)
	defer trace.Close()
	for {
		rec, _, err := r.next(filter)
		if err != nil {
			break // io.EOF
		}
		bytes += int64(rec.Bytes)
		if err := trace.Add(rec); err != nil {
			return err
		}
	}
	out, err := archive.CreateOutput(output, force)
	if err != nil {
		return err
	}
	drawing = newProgress(cmd)
	summary, err := trace.Write(out)
	drawing.end()
	if err != nil {
		return errors.Join(err, out.Abort())
	}
	if err := out.Commit(); err != nil {
		return err
	}
	printTraceSummary(cmd.OutOrStdout(), output, summary)
	return r.done()
}

func printTraceSummary(w io.Writer, output string, s perfetto.Summary) {
	parts := []string{count(s.Spans, "span")}
	for _, part := range []struct {
		n    int64
		noun string
	}{{s.Events, "event"}, {s.Logs, "log record"}, {s.Flows, "flow"}, {s.Counters, "counter"}} {
		if part.n > 0 {
			parts = append(parts, count(part.n, part.noun))
		}
	}
	fmt.Fprintf(w, "%s: %s on %s; %s\n", output, count(int64(s.Ranks), "rank"), count(int64(s.Nodes), "node"), strings.Join(parts, ", "))
	if others := int64(s.Processes - s.Ranks); others > 0 {
		fmt.Fprintf(w, "without a rank: %d of %d processes\n", others, s.Processes)
	}
	if s.Open+s.Truncated > 0 {
		fmt.Fprintf(w, "never ended: %s open, %s truncated\n", humanize.Comma(s.Open), humanize.Comma(s.Truncated))
	}
	if s.Timeless+s.Unnumbered+s.Crowded > 0 {
		fmt.Fprintf(w, "left out: %s without a time, %s that are no number, %s beyond what is kept apart\n",
			count(s.Timeless, "record"), count(s.Unnumbered, "point"), count(s.Crowded, "link and point"))
	}
	fmt.Fprintln(w, s.Clocks.Sentence())
}
