// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lenscol/lenscol/extension/lenshealth"
	"github.com/lenscol/lenscol/internal/runview"
)

// mostWorst is how many ranks lens_health lists of each kind at most.
const mostWorst = 8

// text is the picture with the run at an index, which is -1 where there is none, and no more than so many of the slowest, the farthest
// behind and the silent ranks. What a line begins with tells what it is: a title is in capitals.
func (p *picture) text(at, worst int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "lenscol %s: %s since %s\n\n", printable(p.Health.Version), printable(string(p.Health.Status)), timeOf(p.Health.Since))
	switch {
	case at >= 0:
		p.run(&b, at, worst)
	case p.sent():
		b.WriteString("Telemetry comes, and no run is seen in it: run_id_enricher and rank_gate see runs. Of the embedded configs lenscol:archive has neither;\nlenscol:sidecar and most others have one.\n\n")
	default:
		fmt.Fprintf(&b, "No run has sent anything yet. Point a job at this collector:\n  export OTEL_EXPORTER_OTLP_ENDPOINT=%s OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n\n", demoEndpoint())
	}
	p.exporters(&b)
	return b.String()
}

// sent says whether an exporter has sent anything.
func (p *picture) sent() bool {
	for _, pipeline := range p.Pipelines.Pipelines {
		for _, e := range pipeline.Exporters {
			if e.Sent > 0 {
				return true
			}
		}
	}
	return false
}

func (p *picture) run(b *strings.Builder, at, worst int) {
	run, now := &p.Runs.Runs[at], p.Runs.Time
	fmt.Fprintf(b, "run %s (%d of %d), last seen %s ago\n", printable(run.ID), at+1, len(p.Runs.Runs), since(now, run.LastSeen))
	ranks := strconv.Itoa(run.Ranks)
	if run.WorldSize > 0 {
		ranks += " of " + strconv.Itoa(run.WorldSize)
	}
	fmt.Fprintf(b, "front step %s, step time %s, ranks %s, farthest behind %s, silent %d, errors %d\n", known(run.FrontStep), stepTime(run.StepSeconds), ranks,
		known(run.MaxLag), run.Silent, run.Errors)
	fmt.Fprintf(b, "spans %d, points %d, records %d; dropped by rank_gate %d", run.Spans, run.Points, run.Records, run.Dropped)
	for i, by := range run.DroppedBy {
		fmt.Fprintf(b, "%s%s %d", map[bool]string{true: ": ", false: ", "}[i == 0], printable(by.Strategy), by.Items)
	}
	b.WriteString("\n\n")
	for _, list := range []struct {
		title string
		ranks []runview.Rank
	}{{"SLOWEST", run.Slowest}, {"BEHIND", run.Behind}, {"SILENT", run.SilentRanks}} {
		rankTable(b, list.title, list.ranks[:min(len(list.ranks), worst)], len(run.Services) > 1, now)
	}
}

// rankTable prints nothing where there are no ranks.
func rankTable(w io.Writer, title string, ranks []runview.Rank, several bool, now time.Time) {
	if len(ranks) == 0 {
		return
	}
	rows := [][]string{{title, "HOST", "STEP", "BEHIND", "LAST STEP", "MEDIAN STEP", "LAST SEEN"}}
	for _, rank := range ranks {
		name := "rank " + strconv.Itoa(rank.Rank)
		if several {
			name += " of " + rank.Service
		}
		rows = append(rows, []string{name, rank.Host, known(rank.Step), known(rank.Lag), stepTime(rank.StepSeconds), stepTime(rank.StepSecondsMedian), since(now, rank.LastSeen) + " ago"})
	}
	printTable(w, rows)
	fmt.Fprintln(w)
}

func (p *picture) exporters(w io.Writer) {
	rows := [][]string{{"EXPORTER", "PIPELINE", "STATUS", "RATE", "SENT", "NOT SENT", "NOT QUEUED", "QUEUE", "WHY"}}
	for _, pipeline := range p.Pipelines.Pipelines {
		for _, e := range pipeline.Exporters {
			queue := "-"
			if e.Queue != nil {
				queue = fmt.Sprintf("%d/%d", e.Queue.Size, e.Queue.Capacity)
			}
			rows = append(rows, []string{e.ID, pipeline.ID, string(e.Status), fmt.Sprintf("%.1f/s", e.Rate), strconv.FormatInt(e.Sent, 10),
				strconv.FormatInt(e.Dropped.SendFailed, 10), strconv.FormatInt(e.Dropped.QueueFull, 10), queue, reasonTexts(e.Reasons)})
		}
	}
	printTable(w, rows)
}

func reasonTexts(reasons []lenshealth.Reason) string {
	texts := make([]string, len(reasons))
	for i, reason := range reasons {
		texts[i] = reason.Text
	}
	return strings.Join(texts, "; ")
}

// printTable aligns the cells. What clients have named cannot move the cursor.
func printTable(w io.Writer, rows [][]string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = printable(row[i])
		}
		fmt.Fprintln(table, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	_ = table.Flush() // The writers here do not fail.
}

// known is a step or a lag; -1 is none.
func known(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// stepTime is seconds to three digits; 0 is none.
func stepTime(seconds float32) string {
	if seconds <= 0 {
		return "-"
	}
	return strconv.FormatFloat(float64(seconds), 'g', 3, 32) + "s"
}

func since(now, at time.Time) string { return max(0, now.Sub(at)).Round(time.Second).String() }
