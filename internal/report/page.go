// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"
)

// The page is one file without scripts, and asks the network for nothing: its policy forbids it. What comes from telemetry is escaped by
// html/template, each value for the place where it stands.

//go:embed page
var pageFiles embed.FS

// pageTemplate is parsed when it is needed: a collector that starts pays nothing for it.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Funcs(template.FuncMap{
		"duration": Duration,
		"percent":  percent,
		"time":     clockTime,
		"count":    humanize.Comma,
		"step":     stepOr,
		"add":      func(a, b int) int { return a + b },
		"restarts": restarts,
		"error":    func(x float64) string { return fmt.Sprintf("%.2g %%", 100*x) },
		"over":     func(x float64) string { return fmt.Sprintf("%+.1f %%", 100*x) },
		"join":     func(list []string) string { return strings.Join(list, ", ") },
		"class":    func(name string) string { return fmt.Sprintf("b%d", bucketOf[name]) },
		"rank":     func(r *Run, s Slow) Rank { return r.rankOf(s) },
		"width":    func(x float64) string { return fmt.Sprintf("%.3f", 100*x) },
		"first":    firstRows,
		"more":     moreRows,
	}).ParseFS(pageFiles, "page/page.html"))
})

// pageRows is how many rows of a table the page has.
const pageRows = 100

// firstRows are the first rows of a table, a slice, and moreRows how many come behind them.
func firstRows(rows any) any {
	v := reflect.ValueOf(rows)
	return v.Slice(0, min(pageRows, v.Len())).Interface()
}

func moreRows(rows any) int { return max(reflect.ValueOf(rows).Len()-pageRows, 0) }

// pageRun is a run with its charts.
type pageRun struct {
	*Run
	TimeLineChart, StepChart, RankChart *figure
}

// WritePage writes a Summary as one HTML page.
func WritePage(w io.Writer, s Summary) error {
	css, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		return err
	}
	data := struct {
		CSS   template.CSS
		Runs  []pageRun
		Left  Left
		Whole bool
	}{CSS: template.CSS(css), Left: s.Left, Whole: s.Left == Left{}} //nolint:gosec // It is our own.
	for i := range s.Runs {
		r := &s.Runs[i]
		data.Runs = append(data.Runs, pageRun{r, r.drawTimeLine(), r.drawSteps(), r.drawRanks()})
	}
	var page bytes.Buffer // Whole or not at all.
	if err := pageTemplate().Execute(&page, data); err != nil {
		return err
	}
	_, err = page.WriteTo(w)
	return err
}
