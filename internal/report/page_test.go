// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/lenscol/lenscol/internal/report"
	"github.com/lenscol/lenscol/internal/simrun"
)

// page writes a Summary and reads it back as a browser does.
func page(t testing.TB, s report.Summary) (string, *html.Node) {
	var out bytes.Buffer
	require.NoError(t, report.WritePage(&out, s))
	root, err := html.Parse(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	return out.String(), root
}

func elements(root *html.Node, name string) (list []*html.Node) {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			list = append(list, n)
		}
	}
	return list
}

func textOf(root *html.Node) string {
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data + " ")
		}
	}
	return b.String()
}

func TestThePageNeedsNothingElse(t *testing.T) {
	run, _ := simulated(t, func(c *simrun.Config) { c.MaxOffset = time.Second })
	text, root := page(t, report.Summary{Runs: []report.Run{run}})
	for _, forbidden := range []string{"<script", "http:", "https:", "url(", "@import", " src=", "<link", "<iframe", "<img", "ZgotmplZ", "NaN", "+Inf"} {
		require.NotContains(t, text, forbidden)
	}
	require.Contains(t, text, `content="default-src 'none'; style-src 'unsafe-inline'"`)
	require.Contains(t, text, "prefers-color-scheme: dark")
	require.Len(t, elements(root, "svg"), 3, "time line, steps, ranks")
	require.Less(t, len(text), 200_000)

	read := textOf(root)
	for _, part := range []string{"rank 5", "stands out", "goodput = scheduler × runtime × application", "attempt 2", "checkpoints saved", "CUDA error"} {
		require.Contains(t, read, part)
	}
	var cells []string
	for _, td := range elements(root, "td") {
		cells = append(cells, strings.TrimSpace(textOf(td)))
	}
	for _, b := range run.Buckets {
		require.Equal(t, b.NS > 0, slices.Contains(cells, b.Bucket), b.Bucket)
	}
}

// The paths of the time line cover the square, and no more: the shares of each column sum up to one.
func TestTheTimeLineIsFull(t *testing.T) {
	run, _ := simulated(t, func(*simrun.Config) {})
	for i := range 240 {
		sum := 0.0
		for _, columns := range run.TimeLine.Buckets {
			sum += columns[i]
		}
		require.InDelta(t, 1, sum, 1e-3)
	}
	_, root := page(t, report.Summary{Runs: []report.Run{run}})
	area := 0.0
	for _, path := range elements(elements(root, "svg")[0], "path") {
		for _, a := range path.Attr {
			if a.Key != "d" {
				continue
			}
			for _, m := range regexp.MustCompile(`M[-\d.]+ [-\d.]+h([\d.]+)v([\d.]+)h-[\d.]+z`).FindAllStringSubmatch(a.Val, -1) {
				var width, height float64
				require.NoError(t, json.Unmarshal([]byte("["+m[1]+","+m[2]+"]"), &[]any{&width, &height}))
				area += width * height
			}
		}
	}
	require.InDelta(t, 1000*1000, area, 3000)
}

// What a sender writes is text wherever it stands.
func TestHostileTextIsText(t *testing.T) {
	const attack = `"><script>alert(1)</script><img src=x onerror=alert(2)>'` + "\x1b[2J\u2028\u202e"
	s := reportOn(t, options, lines(
		span("megatron.train.iteration", 0, 10, 0, map[string]any{"megatron.iteration": 1}, "nemo.run.id", attack, "service.name", attack, "host.name", attack),
		span("megatron.train.iteration", 0, 10, 1, map[string]any{"megatron.iteration": 1}, "nemo.run.id", attack, "service.name", attack, "host.name", attack),
		strings.Replace(span(attack, 10, 11, 0, map[string]any{"purpose": "goodput"}, "nemo.run.id", attack), `"type":"span"`, `"type":"span","status":"ERROR","status_message":`+quote(attack), 1),
		span("slurm.record.allocation", 0, 10, nil, map[string]any{"slurm.state": attack}, "nemo.run.id", attack),
	))
	require.Len(t, s.Runs, 1)
	require.Len(t, s.Runs[0].Errors, 1)
	text, root := page(t, s)
	require.Empty(t, elements(root, "script"))
	require.Empty(t, elements(root, "img"))
	require.NotContains(t, text, "<script")
	require.Contains(t, textOf(root), "alert(1)", "it is shown, though")

	var out bytes.Buffer
	require.NoError(t, report.WriteText(&out, s))
	require.NotContains(t, out.String(), "\x1b")
	require.NotContains(t, out.String(), "\u2028")
	require.NotContains(t, out.String(), "\u202e", "what comes behind it would be written from right to left")
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestThePageOfSeveralRuns(t *testing.T) {
	s := reportOn(t, options, lines(
		span("megatron.train.iteration", 20, 30, 0, map[string]any{"megatron.iteration": 1}, "nemo.run.id", "b"),
		span("megatron.train.iteration", 0, 10, 0, map[string]any{"megatron.iteration": 1}, "nemo.run.id", "a"),
		span("x", 0, 10, nil, nil, "nemo.run.id", ""),
	))
	_, root := page(t, s)
	require.Len(t, elements(root, "article"), 3)
	var targets []string
	for _, a := range elements(root, "a") {
		targets = append(targets, a.Attr[0].Val)
	}
	require.Equal(t, []string{"#run0", "#run1", "#run2"}, targets)
}

// A table of the page is cut, and says so.
func TestThePageSaysWhatItLeavesOut(t *testing.T) {
	var all []string
	for n := range 152 {
		all = append(all, span("megatron.train.iteration", 100*n, 100*n+10, 0, map[string]any{"megatron.iteration": n}))
	}
	_, root := page(t, reportOn(t, options, lines(all...)))
	require.Contains(t, textOf(root), "and 51 more: --json has them all")
	require.NotContains(t, textOf(root), "and 0 more")

	for n := 152; n < 1102; n++ {
		all = append(all, span("megatron.train.iteration", 100*n, 100*n+10, 0, map[string]any{"megatron.iteration": n}))
	}
	run := reportOn(t, options, lines(all...)).Runs[0]
	require.Len(t, run.Gaps, 1000)
	require.Equal(t, []string{"of 1101 gaps these are the 1000 longest, the longest first"}, run.Notes)
}

// FuzzReport gives a report of any bytes: it ends, its figures hold together, and each form of it can be written.
func FuzzReport(f *testing.F) {
	captures, err := filepath.Glob(filepath.Join("..", "..", "testdata", "captures", "0.2.0", "*", "grpc", "console.jsonl"))
	require.NoError(f, err)
	for _, path := range captures {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		if len(text) < 8<<10 { // Larger ones are slow to make smaller.
			f.Add(text)
		}
	}
	f.Add([]byte(span("megatron.train.iteration", 0, 1<<33, 0, map[string]any{"megatron.iteration": 1 << 53}) + span("slurm.phase.queued", -1<<30, 5, nil, nil)))
	f.Add([]byte(`{"type":"span","name":"megatron.train.iteration","start_ns":18446744073709551615,"duration_ns":-5,"run":"r","rank":0,"resource":{"attributes":{"nv.dl.rank":0}},"attributes":{"megatron.iteration":3}}` + "\n"))
	f.Add([]byte(`{"type":"span","name":"megatron.checkpoint.save","start_ns":1,"duration_ns":18446744073709551614,"resource":{"attributes":{"nv.dl.rank":2147483647,"nv.dl.world_size":2147483647}}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := reportOn(t, report.Options{Gap: time.Millisecond, Slowest: 3}, bytes.NewReader(data))
		for _, run := range s.Runs {
			requireWhole(t, run)
			for _, x := range []float64{run.Goodput.Overall, run.Goodput.Scheduler, run.Goodput.Runtime, run.Goodput.Application} {
				require.True(t, x >= 0 && x <= 1.000001, "%v", run.Goodput)
			}
		}
		_, err := json.Marshal(s)
		require.NoError(t, err)
		require.NoError(t, report.WriteText(new(bytes.Buffer), s))
		text, root := page(t, s)
		require.Empty(t, elements(root, "script"))
		require.NotContains(t, text, "ZgotmplZ")
	})
}
