// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/internal/archive"
	"github.com/lenscol/lenscol/internal/report"
)

// reporting is one call of `lenscol report`.
type reporting struct {
	report.Options
	archive.FilterText
	html          string
	asJSON, force bool
}

func newReportCommand() *cobra.Command {
	var r reporting
	cmd := &cobra.Command{
		Use:   "report FILE...",
		Short: "Tells what a training run did: where its time went, its steps, slow ranks, restarts, errors, goodput",
		Long: `Tells what a training run did, from the telemetry that is kept of it: wall time and where it went, step time by rank, the slowest ranks,
gaps, restarts, checkpoints, evaluations, errors, and goodput with its formula. Of several runs it makes a report each.

FILE is a file, a folder or - for stdin, in every layout that lenscol jsonl reads. Both generations of span names count, and those of NeMo RL,
of NVRx and of lenscol reckon, whose spans of SLURM's accounting give the scheduler's share. Durations are those of each rank's own clock; the clocks of
nodes are brought together by the ends of the steps that their ranks share.

It exits with 1 where nothing tells of a run, and where something could not be read.`,
		Example: `  lenscol report lens-data
  lenscol report lens-data --html report.html
  lenscol report lens-data --run 12345 --json | jq '.runs[0].goodput'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.MinimumNArgs(1)(cmd, args); err != nil {
				return usage(fmt.Errorf("%w: a file, a folder or -", err))
			}
			return nil
		},
		RunE: r.run,
	}
	f := cmd.Flags()
	f.StringSliceVar(&r.Runs, "run", nil, "Report on these runs: `GLOB`s, commas between")
	f.StringVar(&r.Since, "since", "", "Take what began at this `TIME` or later: RFC 3339, or a duration before now like 90m, 2h, 3d")
	f.StringVar(&r.Until, "until", "", "Take what began before this `TIME`, written likewise")
	f.StringVar(&r.html, "html", "", "Write a page that needs nothing else to `FILE`; .gz and .zst are compressed")
	f.BoolVar(&r.force, "force", false, "Replace that file if it is there")
	f.BoolVar(&r.asJSON, "json", false, "Print one JSON object, docs/report.md")
	f.DurationVar(&r.Gap, "gap", time.Minute, "Shortest `DURATION` without a span of a rank that is a gap")
	f.IntVar(&r.Slowest, "slowest", 8, "How many of the slowest ranks are named, `N`")
	return cmd
}

func (r *reporting) run(cmd *cobra.Command, args []string) error {
	if r.Gap <= 0 {
		return usage(fmt.Errorf("--gap %s: must be greater than 0", r.Gap))
	}
	if r.Slowest < 0 {
		return usage(fmt.Errorf("--slowest %d: must not be negative", r.Slowest))
	}
	filter, err := archive.NewFilter(r.FilterText, time.Now())
	if err != nil {
		return usage(err)
	}
	in, err := startReading(cmd, args)
	if err != nil {
		return err
	}
	defer in.Close()
	collector := report.NewCollector(r.Options)
	for {
		rec, _, err := in.next(filter)
		if err != nil {
			break // io.EOF
		}
		collector.Add(rec)
	}
	summary := collector.Summary()
	if len(summary.Runs) == 0 {
		return errors.Join(r.nothing(), in.done())
	}
	if r.html != "" {
		if err := r.writePage(summary); err != nil {
			return err
		}
		in.say("written to %s\n", r.html)
	}
	if err := r.print(cmd.OutOrStdout(), summary); err != nil {
		return err
	}
	return in.done()
}

func (r *reporting) nothing() error {
	if len(r.Runs) > 0 {
		return fmt.Errorf("--run %s: there are no spans of such a run; lenscol jsonl stat lists the runs that there are", strings.Join(r.Runs, ","))
	}
	return errors.New("there are no spans to report on")
}

func (r *reporting) print(w io.Writer, s report.Summary) error {
	if r.asJSON {
		return json.NewEncoder(w).Encode(s)
	}
	return report.WriteText(w, s)
}

func (r *reporting) writePage(s report.Summary) error {
	out, err := archive.CreateOutput(r.html, r.force)
	if err != nil {
		return err
	}
	if err := report.WritePage(out, s); err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Commit()
}
