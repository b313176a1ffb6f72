// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/internal/archive"
)

func newJSONLStatCommand() *cobra.Command {
	var asJSON, files bool
	var gap time.Duration
	cmd := &cobra.Command{
		Use:   "stat FILE...",
		Short: "Counts what files hold, by run and rank",
		Long: `Counts what files hold: spans, metric points and log records, of which runs and ranks, of which time, with which gaps.

A gap is a time in which no record of a rank began or ended. Missing are ranks below the world size that sent nothing.`,
		Example: `  lenscol jsonl stat lens-data
  lenscol jsonl stat lens-data --since 1d --gap 10m
  lenscol jsonl stat lens-data --json | jq '.runs[] | select(.missing != "")'`,
		Args: cobra.MinimumNArgs(1),
	}
	filterText := filterFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print one JSON object, docs/cli.md")
	cmd.Flags().BoolVar(&files, "files", false, "List the files too")
	cmd.Flags().DurationVar(&gap, "gap", time.Minute, "Shortest `DURATION` without a record of a rank that is a gap")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := archive.NewFilter(*filterText, time.Now())
		if err != nil {
			return usage(err)
		}
		if gap <= 0 {
			return usage(fmt.Errorf("--gap: must be greater than 0, is %s", gap))
		}
		r, err := startReading(cmd, args)
		if err != nil {
			return err
		}
		defer r.Close()
		stat := archive.NewStat(gap)
		read := int64(0)
		r.OnFile = func(in archive.Input, s archive.Stats) {
			all, _ := r.Progress()
			stat.File(in, s, all-read)
			read = all
			r.file(in, s)
		}
		for {
			rec, _, err := r.next(filter)
			if err != nil {
				break // io.EOF
			}
			stat.Add(rec)
		}
		sum := stat.Summary()
		if asJSON {
			if err := json.NewEncoder(cmd.OutOrStdout()).Encode(sum); err != nil {
				return err
			}
		} else if err := printSummary(cmd.OutOrStdout(), sum, files); err != nil {
			return err
		}
		return r.done()
	}
	return cmd
}

func printSummary(out io.Writer, sum archive.Summary, files bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "files\t%s\t%s on disk, %s of content\n", humanize.Comma(int64(len(sum.Files))), humanize.IBytes(uint64(sum.Bytes)), humanize.IBytes(uint64(sum.ContentBytes)))
	fmt.Fprintf(w, "spans\t%s", humanize.Comma(sum.Spans))
	if sum.Spans > 0 {
		fmt.Fprintf(w, "\t%.1f bytes each on disk", sum.BytesPerSpan)
	}
	fmt.Fprintf(w, "\npoints\t%s\nlogs\t%s\n", humanize.Comma(sum.Points), humanize.Comma(sum.Logs))
	fmt.Fprintf(w, "time\t%s\n", timeRange(sum.Counts))
	fmt.Fprintf(w, "torn\t%s\nother lines\t%s\ndamaged\t%s\n", count(sum.TornBytes, "byte"), humanize.Comma(sum.OtherLines), humanize.Comma(sum.Damaged))
	if err := w.Flush(); err != nil {
		return err
	}
	if len(sum.Runs) > 0 {
		fmt.Fprintln(w, "\nRUN\tSERVICES\tRANKS\tMISSING\tSPANS\tPOINTS\tLOGS\tFIRST\tLASTS FOR\tGAPS")
	}
	for _, run := range sum.Runs {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(run.Run, "-"), cmp.Or(strings.Join(run.Services, ","), "-"), ranksOf(run), cmp.Or(run.Missing, "-"),
			humanize.Comma(run.Spans), humanize.Comma(run.Points), humanize.Comma(run.Logs), instant(run.FirstNS), lasts(run.Counts), gapsOf(run))
	}
	if files {
		fmt.Fprintln(w, "\nFILE\tHOLDS\tCOMPRESSION\tBYTES\tCONTENT\tSPANS\tPOINTS\tLOGS\tTORN\tOTHER\tDAMAGED")
		for _, f := range sum.Files {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", f.Path, layoutsOf(f), f.Compression, f.Bytes, f.ContentBytes,
				f.Spans, f.Points, f.Logs, f.TornBytes, f.OtherLines, f.Damaged)
		}
	}
	if sum.Incomplete {
		fmt.Fprintln(w, "\nThere are more runs, ranks or gaps than are kept apart: the sums are exact, the table is not.")
	}
	return w.Flush()
}

func ranksOf(run archive.RunSummary) string {
	var ranks []int
	for _, r := range run.Ranks {
		if r.Rank != nil {
			ranks = append(ranks, *r.Rank)
		}
	}
	switch {
	case len(ranks) == 0:
		return "-"
	case run.WorldSize > 0:
		return fmt.Sprintf("%s of %d", archive.RankList(ranks), run.WorldSize)
	default:
		return archive.RankList(ranks)
	}
}

// gapsOf is how many gaps the ranks of a run have, and the longest.
func gapsOf(run archive.RunSummary) string {
	n, longest, of := 0, archive.Gap{}, ""
	for _, r := range run.Ranks {
		n += len(r.Gaps)
		for _, g := range r.Gaps {
			if g.ToNS-g.FromNS > longest.ToNS-longest.FromNS {
				longest, of = g, ""
				if r.Rank != nil {
					of = fmt.Sprintf(" of rank %d", *r.Rank)
				}
			}
		}
	}
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%d, the longest %s%s from %s", n, short(longest.ToNS-longest.FromNS), of, instant(longest.FromNS))
}

func layoutsOf(f archive.FileSummary) string {
	var names []string
	for _, l := range []archive.Layout{archive.LayoutCompact, archive.LayoutConsole, archive.LayoutOTLPJSON, archive.LayoutOTLPProto, archive.LayoutSpanRecord} {
		if f.Layouts[l] > 0 {
			names = append(names, string(l))
		}
	}
	return cmp.Or(strings.Join(names, ","), "-")
}

func timeRange(c archive.Counts) string {
	if c.FirstNS == 0 {
		return "-"
	}
	return fmt.Sprintf("%s to %s, %s", instant(c.FirstNS), instant(c.LastNS), lasts(c))
}

func instant(ns int64) string {
	if ns == 0 {
		return "-"
	}
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z")
}

func lasts(c archive.Counts) string { return short(c.LastNS - c.FirstNS) }

// short is a duration to the millisecond.
func short(ns int64) string { return time.Duration(ns).Round(time.Millisecond).String() }
