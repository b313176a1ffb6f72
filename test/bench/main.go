// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command bench measures lenscol beside what would be used without it: a stock collector of the same release, built of upstream's parts.
// `make bench` runs it; docs/performance.md says how each figure is had.
//
// Both sides of a row get the same requests over gRPC, in turn, several times, and each figure is a median of the ratios of such pairs: on
// a machine that does other things too, they hold where times do not.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type bench struct {
	ours, stock, stockAll string // binaries
	rounds, spans         int
	ranks                 []int // of the row flat; the others are compared to the first
	hold                  time.Duration
	out                   string
	report                report
}

func main() {
	b := bench{ranks: []int{10, 100, 1000, 10_000}}
	flag.StringVar(&b.ours, "ours", "bin/lenscol", "lenscol")
	flag.StringVar(&b.stock, "stock", "build/stock/stock", "a collector of the parts that the rows need")
	flag.StringVar(&b.stockAll, "stock-all", "build/stock-all/stock", "a collector of all upstream parts that lenscol has")
	flag.IntVar(&b.rounds, "rounds", 5, "pairs of each row")
	flag.IntVar(&b.spans, "spans", 1_000_000, "spans that each side of a pair gets")
	flag.DurationVar(&b.hold, "hold", time.Minute, "how long 100,000 spans/s are held")
	flag.StringVar(&b.out, "out", "", "JSON file of the results")
	which := flag.String("rows", "", "rows to run, those that begin with one of these, by spaces; empty: all")
	flag.Parse()
	if err := b.run(strings.Fields(*which)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs rows, prints each as it is done, and writes what was measured, even if a row fails.
func (b *bench) run(which []string) (err error) {
	wanted := func(work string) bool {
		return len(which) == 0 || slices.ContainsFunc(which, func(w string) bool { return strings.HasPrefix(work, w) })
	}
	for _, binary := range []*string{&b.ours, &b.stock, &b.stockAll} {
		if *binary, err = filepath.Abs(*binary); err != nil {
			return err
		}
	}
	b.report = newReport(os.Stdout)
	var errs []error
	do := func(work string, run func(work string) error) {
		if !wanted(work) {
			return
		}
		if err := run(work); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", work, err))
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", work, err)
		}
	}
	for _, r := range rows {
		do(r.work, func(string) error { return b.pairs(&r) })
	}
	do("flat", b.flat)
	do("hold-100k", b.held)
	do("start", b.start)
	do("binary", b.size)
	if b.out != "" {
		errs = append(errs, b.report.write(b.out))
	}
	if len(b.report.Rows) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("no row begins with any of %v", which))
	}
	return errors.Join(errs...)
}

// pairs runs a row, each side first in every other round.
func (b *bench) pairs(r *row) error {
	l := closed(r.traffic(), b.spans)
	sides := []struct {
		binary string
		setup  setup
	}{{b.ours, r.ours}, {b.stock, r.stock}}
	var got pairs
	for round := range b.rounds {
		var pair [2]figures
		for i := range sides {
			side := (i + round) % 2
			f, err := r.measure(sides[side].binary, sides[side].setup, l)
			if err != nil {
				return err
			}
			pair[side] = f
		}
		got = append(got, pair)
	}
	b.report.add(r.work, got, r.targets)
	return nil
}

// flat measures whether a span costs the same from however many ranks, to an archive, at 64 spans a request. What costs from 10 ranks
// stands in the place of a stock collector.
func (b *bench) flat(work string) error {
	r := row{ours: setup{exporters: []part{jsonl}}, archive: true}
	got := map[int]pairs{}
	for round := range b.rounds {
		costs := map[int]figures{}
		for i := range b.ranks {
			ranks := b.ranks[(i+round)%len(b.ranks)]
			l := closed(small(ranks), b.spans)
			l.warm = max(l.warm, ranks) // each has sent before the clock starts
			f, err := r.measure(b.ours, r.ours, l)
			if err != nil {
				return err
			}
			costs[ranks] = figures{cpuPerMillion: f[cpuPerMillion], peakRSS: f[peakRSS]}
		}
		for _, ranks := range b.ranks[1:] {
			got[ranks] = append(got[ranks], [2]figures{costs[ranks], costs[b.ranks[0]]})
		}
	}
	for _, ranks := range b.ranks[1:] {
		b.report.add(fmt.Sprint(work, "-", ranks), got[ranks], map[metric]float64{cpuPerMillion: 1.10})
	}
	return nil
}

// held sends 100,000 spans/s from 1,000 ranks, each on a connection of its own, to `lenscol` as it starts without a config.
func (b *bench) held(work string) error {
	const rate, connections = 100_000, 1000
	t := megatron(connections)
	l := load{traffic: t, warm: connections, conns: connections, workers: 64, rate: rate}
	l.requests = int(b.hold.Seconds() * rate / float64(t.count(0, 1)))
	c, err := startCollector(b.ours, func(c *collector) ([]string, []string, error) {
		return nil, []string{"LENSCOL_GRPC_PORT=" + port(c.endpoint), "LENSCOL_HTTP_PORT=" + port(freeAddress()),
			"LENSCOL_METRICS_PORT=" + port(c.metrics), "LENSCOL_HEALTH_PORT=" + port(freeAddress()), "LENSCOL_DATA_DIR=" + c.dir}, nil
	})
	if err != nil {
		return err
	}
	defer c.remove()
	f, err := c.under(l, func(int) error { return nil })
	if err := errors.Join(err, c.stop()); err != nil {
		return fmt.Errorf("%w\n%s", err, c.logTail())
	}
	got, _, err := readArchive(c.dir)
	if err != nil {
		return err
	}
	sent := t.books(l.warm+l.requests, nil)
	f[lostSpans] = float64(sent.spans) - f[refusedSpans] - float64(got.spans)
	if f[refusedSpans] == 0 && f[lostSpans] == 0 && got != sent {
		return errors.New("the archive has other spans than were sent")
	}
	delete(f, startMS)
	b.report.alone(work, f, map[metric]float64{spansPerS: rate, peakRSS: 300, refusedSpans: 0, lostSpans: 0})
	return nil
}

// start measures the time to ready and the memory then, of both with all of upstream's parts.
func (b *bench) start(work string) error {
	var got pairs
	for round := range 2 * b.rounds {
		var pair [2]figures
		for i := range pair {
			side := (i + round) % 2
			c, err := startCollector([]string{b.ours, b.stockAll}[side], func(c *collector) ([]string, []string, error) {
				args, err := c.writeConfig(start.config(c, nil))
				return args, nil, err
			})
			if err != nil {
				return err
			}
			defer c.remove()
			peak, err := c.peak()
			c.kill() // It accepts before it heeds SIGTERM.
			if err != nil {
				return err
			}
			pair[side] = figures{startMS: float64(c.ready.Microseconds()) / 1000, peakRSS: peak}
		}
		got = append(got, pair)
	}
	b.report.add(work, got, map[metric]float64{startMS: 1.2})
	return nil
}

// size compares the binaries of the same upstream parts.
func (b *bench) size(work string) error {
	var pair [2]figures
	for i, path := range []string{b.ours, b.stockAll} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		pair[i] = figures{binaryBytes: float64(info.Size())}
	}
	b.report.add(work, pairs{pair}, map[metric]float64{binaryBytes: (pair[1][binaryBytes] + 8e6) / pair[1][binaryBytes]})
	return nil
}
