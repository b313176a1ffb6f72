// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
)

// WriteText prints a Summary for a terminal.
func WriteText(out io.Writer, s Summary) error {
	var b strings.Builder
	for i := range s.Runs {
		if i > 0 {
			b.WriteString("\n\n")
		}
		s.Runs[i].write(&b)
	}
	if s.Left != (Left{}) {
		fmt.Fprintf(&b, "\nNo room was left for %d records, the time lines of %d ranks, %d stretches of time.\n", s.Left.Records, s.Left.TimeLines, s.Left.Segments)
	}
	for line := range strings.Lines(b.String()) {
		if _, err := io.WriteString(out, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) write(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, part := range []func(io.Writer){r.head, r.goodput, r.steps, r.slow, r.attempts, r.events, r.gaps, r.errors, r.notesText} {
		part(w)
		_ = w.Flush() // A strings.Builder takes all.
	}
}

func (r *Run) head(w io.Writer) {
	fmt.Fprintf(w, "run\t%s\n", cmp.Or(printable(r.Run), "(none named)"))
	fmt.Fprintf(w, "services\t%s\n", cmp.Or(printable(strings.Join(r.Services, ", ")), "-"))
	ranks := cmp.Or(r.Ranks, "-")
	if r.WorldSize > 0 {
		ranks += fmt.Sprintf(" of %d", r.WorldSize)
	}
	if r.Missing != "" {
		ranks += ", missing " + r.Missing
	}
	fmt.Fprintf(w, "ranks\t%s\n", ranks)
	fmt.Fprintf(w, "time\t%s to %s\n", clockTime(r.BeginNS), clockTime(r.EndNS))
	fmt.Fprintf(w, "wall time\t%s\n", Duration(r.WallNS))
	fmt.Fprintf(w, "records\t%s spans, %s points, %s log records\n", humanize.Comma(r.Spans), humanize.Comma(r.Points), humanize.Comma(r.Logs))
}

func (r *Run) goodput(w io.Writer) {
	g := r.Goodput
	fmt.Fprintf(w, "\nGOODPUT %s = scheduler %s × runtime %s × application %s\n\n", percent(g.Overall), percent(g.Scheduler), percent(g.Runtime), percent(g.Application))
	for line := range strings.Lines(r.Formula) {
		fmt.Fprintf(w, "  %s", line)
	}
	fmt.Fprint(w, "\n\nBUCKET\tFACTOR\tTIME\tSHARE\n")
	for _, bucket := range r.Buckets {
		if bucket.NS > 0 {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", bucket.Bucket, bucket.Factor, Duration(bucket.NS), percent(bucket.Share))
		}
	}
	fmt.Fprintf(w, "wall time\t\t%s\t\n", Duration(r.WallNS))
}

func (r *Run) steps(w io.Writer) {
	s := r.Steps
	if s.Times.Count == 0 {
		return
	}
	fmt.Fprintf(w, "\nSTEPS %s kept, %s lost, %s skipped; from %d to %d\n\n", humanize.Comma(s.Kept), humanize.Comma(s.Lost), humanize.Comma(s.Skipped), s.First, s.Last)
	fmt.Fprint(w, "STEP TIME\tP50\tP95\tP99\tMAX\tPACE\n")
	fmt.Fprintf(w, "all ranks\t%s\t%s\t%s\t%s\t%s\n", Duration(s.Times.P50), Duration(s.Times.P95), Duration(s.Times.P99), Duration(s.Times.Max), Duration(s.PaceNS))
	fmt.Fprintf(w, "\nQuantiles are within %.2g %%.\n", 100*s.Error)
}

func (r *Run) slow(w io.Writer) {
	if len(r.Slowest) == 0 {
		return
	}
	by, columns := "p50 of a step", "STEP P50"
	if r.Steps.ByWork {
		by, columns = "work a step: its time without communication", "WORK\tWAITS\tSTEP P50"
	}
	fmt.Fprintf(w, "\nSLOWEST RANKS, by %s\n\nRANK\tSERVICE\tHOST\tOVER THE MEDIAN\t%s\tP95\tP99\t\n", by, columns)
	for _, s := range r.Slowest {
		rank := r.rankOf(s)
		fmt.Fprintf(w, "%d\t%s\t%s\t%+.1f %%\t", s.Rank, cmp.Or(printable(s.Service), "-"), cmp.Or(printable(s.Host), "-"), 100*s.Over)
		if r.Steps.ByWork {
			fmt.Fprintf(w, "%s\t%s\t", Duration(rank.WorkNS), Duration(rank.WaitNS))
		}
		mark := ""
		if s.Stands {
			mark = "stands out"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", Duration(rank.Steps.P50), Duration(rank.Steps.P95), Duration(rank.Steps.P99), mark)
	}
}

// rankOf is the rank that a Slow is of.
func (r *Run) rankOf(s Slow) Rank {
	for _, rank := range r.PerRank {
		if rank.Rank == s.Rank && rank.Service == s.Service {
			return rank
		}
	}
	return Rank{}
}

func (r *Run) attempts(w io.Writer) {
	if len(r.Attempts) == 0 {
		return
	}
	fmt.Fprintf(w, "\nATTEMPTS, %s\n\nATTEMPT\tBEGIN\tLASTS FOR\tRANKS\tSTEPS\tKEPT\tLOST\tSAVED UP TO\tUNSAVED\tENDED\tSLURM\n", restarts(r.Attempts))
	for _, a := range r.Attempts {
		steps := stepOr(a.FirstStep)
		if a.LastStep >= 0 {
			steps += fmt.Sprintf(" to %d", a.LastStep)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t%d\t%d\t%s\t%d\t%s\t%s\n", a.Number, clockTime(a.BeginNS), Duration(a.Lasting()), a.Ranks, steps, a.Kept(), a.LostSteps,
			stepOr(a.SavedStep), a.UnsavedTail, a.Ended, cmp.Or(printable(a.SlurmState), "-"))
	}
}

func (r *Run) events(w io.Writer) {
	rows := []struct {
		name string
		o    Occasions
	}{{"checkpoints saved", r.Checkpoints}, {"checkpoints loaded", r.Loads}, {"evaluations", r.Evaluations}}
	fmt.Fprint(w, "\n\tCOUNT\tFAILED\tMEAN\tMAX\tIN ALL\n")
	for _, row := range rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\n", row.name, row.o.Count, row.o.Failed, Duration(row.o.MeanNS), Duration(row.o.MaxNS), Duration(row.o.TotalNS))
	}
	if r.AsyncSpans > 0 {
		fmt.Fprintf(w, "\n%s spans are of checkpoints that were written while training went on.\n", humanize.Comma(r.AsyncSpans))
	}
}

func restarts(attempts []Attempt) string {
	if n := len(attempts) - 1; n != 1 {
		return fmt.Sprintf("%d restarts", n)
	}
	return "1 restart"
}

// shown is how many rows of a table a terminal gets.
const shown = 10

func (r *Run) gaps(w io.Writer) {
	if len(r.Gaps) == 0 {
		return
	}
	fmt.Fprintf(w, "\nGAPS\tLASTS FOR\tRANKS\t\n")
	for _, g := range r.Gaps[:min(shown, len(r.Gaps))] {
		what := "no span"
		if g.Silent {
			what = "no span any more, while others of the attempt went on"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", clockTime(g.FromNS), Duration(g.Lasting()), g.Ranks, what)
	}
	more(w, len(r.Gaps))
}

func (r *Run) errors(w io.Writer) {
	if len(r.Errors) == 0 {
		return
	}
	fmt.Fprint(w, "\nERRORS\tNAME\tTYPE\tRANKS\tFIRST\tMESSAGE\n")
	for _, e := range r.Errors[:min(shown, len(r.Errors))] {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", humanize.Comma(e.Count), printable(e.Name), cmp.Or(printable(e.Type), "-"), cmp.Or(e.Ranks, "-"), clockTime(e.FirstNS), printable(e.Message))
	}
	more(w, len(r.Errors))
}

func more(w io.Writer, n int) {
	if n > shown {
		fmt.Fprintf(w, "and %d more: --json has them all\n", n-shown)
	}
}

func (r *Run) notesText(w io.Writer) {
	if len(r.Clocks) > 0 {
		fmt.Fprint(w, "\nCLOCK OF\tIS AHEAD BY\tWITHIN\tSTEPS COMPARED\n")
		for _, c := range r.Clocks[:min(shown, len(r.Clocks))] {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", cmp.Or(printable(c.Host), "-"), c.Offset(), Duration(c.Residual), c.Steps)
		}
		more(w, len(r.Clocks))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "\nNote: %s.\n", printable(note))
	}
}

func stepOr(n int64) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

func clockTime(ns int64) string {
	if ns == 0 {
		return "-"
	}
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z")
}

// Duration writes nanoseconds to about four digits: 3h05m12s, 8m36.5s, 1.150s, 49.9ms.
func Duration(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d <= 0:
		return "0s"
	case d < time.Millisecond:
		return fmt.Sprintf("%.1fµs", float64(d)/float64(time.Microsecond))
	case d < time.Second:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case d < time.Minute:
		return fmt.Sprintf("%.3fs", d.Seconds())
	case d < time.Hour:
		d = d.Round(100 * time.Millisecond)
		return fmt.Sprintf("%dm%04.1fs", d/time.Minute, (d % time.Minute).Seconds())
	default:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dh%02dm%02ds", d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second)
	}
}

// printable keeps what a sender wrote from moving the cursor or the columns, or from turning the writing round.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
