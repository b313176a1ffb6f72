// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// pairs are the figures of ours and of stock, round by round.
type pairs [][2]figures

// report is what is written to results/latest.json.
type report struct {
	Machine string      `json:"machine"`
	Commit  string      `json:"commit"`
	Date    string      `json:"date"`
	Rows    []reportRow `json:"rows"`

	table io.Writer
}

// reportRow is one figure of a work: medians of both sides and of the ratios of the pairs. Stock and the ratios are null where there is
// nothing to compare with.
type reportRow struct {
	Work     string   `json:"work"`
	Metric   metric   `json:"metric"`
	Ours     float64  `json:"ours"`
	Stock    *float64 `json:"stock"`
	Ratio    *float64 `json:"ratio"`
	RatioMin *float64 `json:"ratio_min"`
	RatioMax *float64 `json:"ratio_max"`
	Target   *float64 `json:"target"` // of the ratio, else of ours
	Reached  *bool    `json:"reached"`
}

func newReport(table io.Writer) report {
	r := report{Machine: machine(), Commit: commit(), Date: time.Now().UTC().Format(time.DateOnly), table: table}
	fmt.Fprintf(table, "%s, commit %s\n\n%-18s %-15s %12s %12s %7s %-13s %s\n", r.Machine, r.Commit, "work", "metric", "ours", "stock", "ratio", "min..max", "target")
	return r
}

// order is that of a work's lines. Metrics of which more is better have no target as a ratio.
var order = []metric{cpuPerMillion, spansPerS, peakRSS, bytesPerSpan, startMS, binaryBytes, refusedSpans, lostSpans}

func (r *report) add(work string, got pairs, targets map[metric]float64) {
	for _, m := range order {
		if _, ok := got[0][0][m]; !ok {
			continue
		}
		var ours, stock, ratios []float64
		for _, pair := range got {
			ours, stock = append(ours, pair[0][m]), append(stock, pair[1][m])
			ratios = append(ratios, pair[0][m]/pair[1][m])
		}
		row := reportRow{
			Work: work, Metric: m, Ours: median(ours), Stock: new(median(stock)),
			Ratio: new(median(ratios)), RatioMin: new(slices.Min(ratios)), RatioMax: new(slices.Max(ratios)),
		}
		if target, ok := targets[m]; ok {
			row.Target, row.Reached = &target, new(*row.Ratio <= target)
		}
		r.put(row)
	}
}

// alone adds figures that no stock collector is compared with: each is to be the target at most, spans_per_s at least, to a hundredth.
func (r *report) alone(work string, f figures, targets map[metric]float64) {
	for _, m := range order {
		ours, ok := f[m]
		if !ok {
			continue
		}
		row := reportRow{Work: work, Metric: m, Ours: ours}
		if target, ok := targets[m]; ok {
			row.Target, row.Reached = &target, new(ours <= target)
			if m == spansPerS {
				row.Reached = new(ours >= 0.99*target)
			}
		}
		r.put(row)
	}
}

func (r *report) put(row reportRow) {
	r.Rows = append(r.Rows, row)
	stock, ratio, span, target := "", "", "", ""
	if row.Stock != nil {
		stock, ratio = figure(*row.Stock), fmt.Sprintf("%.2f", *row.Ratio)
		span = fmt.Sprintf("%.2f..%.2f", *row.RatioMin, *row.RatioMax)
	}
	if row.Target != nil {
		target = strings.TrimSuffix(figure(*row.Target), ".00") + map[bool]string{true: "  reached", false: "  NOT REACHED"}[*row.Reached]
	}
	fmt.Fprintf(r.table, "%-18s %-15s %12s %12s %7s %-13s %s\n", row.Work, row.Metric, figure(row.Ours), stock, ratio, span, target)
}

func figure(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// machine is what counts of it: processors, memory, kernel, Go.
func machine() string {
	return fmt.Sprintf("%d CPUs (%s), %s, Linux %s, %s", runtime.NumCPU(), value("/proc/cpuinfo", "model name"), value("/proc/meminfo", "MemTotal"), kernel(), runtime.Version())
}

// value is the first one of a key in a file of `key : value` lines.
func value(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(release))
}

// commit is that of the checkout, with + where something is not committed.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty=+", "--abbrev=12", "--match=").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
