// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// figure is a chart. Its shapes stand in a square of size, (0,0) above on the left, that the page stretches; its labels are text of
// the page, so that they can be read at any width.
type figure struct {
	Shapes []shape
	Across []tick // below
	Up     []tick // on the left
	Marks  []tick // above: what stands out
	Bands  []band
	Note   string
}

// size is the side of the square, in units of SVG.
const size = 1000

// shape is an SVG path.
type shape struct{ Class, Path, Title string }

// tick is a label at a share of the side, in percent.
type tick struct {
	At    float64
	Label string
}

// band is a labelled stretch above a chart, in percent.
type band struct {
	From, Width float64
	Label       string
	Title       string
}

// path collects the commands of a path.
type path struct{ strings.Builder }

func (p *path) rect(x, y, width, height float64) {
	fmt.Fprintf(p, "M%s %sh%sv%sh%sz", unit(x), unit(y), unit(width), unit(height), unit(-width))
}

func (p *path) to(first bool, x, y float64) {
	command := "L"
	if first {
		command = "M"
	}
	fmt.Fprintf(p, "%s%s %s", command, unit(x), unit(y))
}

// unit writes a coordinate.
func unit(x float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}

// drawTimeLine stacks the buckets over the wall time, what is good at the bottom.
func (r *Run) drawTimeLine() *figure {
	if len(r.TimeLine.Buckets) == 0 {
		return nil
	}
	f := &figure{Up: []tick{{0, "100 %"}, {50, "50 %"}, {100, "0 %"}}}
	base := make([]float64, chartColumns)
	const width = size / float64(chartColumns)
	for i := len(bucketOrder) - 1; i >= 0; i-- {
		columns := r.TimeLine.Buckets[bucketOrder[i].name]
		if columns == nil {
			continue
		}
		var p path
		for x := 0; x < len(columns); {
			end := x + 1
			for end < len(columns) && columns[end] == columns[x] && base[end] == base[x] {
				end++
			}
			if columns[x] > 0 {
				p.rect(float64(x)*width, size*(1-base[x]-columns[x]), float64(end-x)*width, size*columns[x])
			}
			x = end
		}
		for x, share := range columns {
			base[x] += share
		}
		f.Shapes = append(f.Shapes, shape{fmt.Sprintf("b%d", i), p.String(), bucketOrder[i].name})
	}
	for _, at := range niceTicks(0, seconds(r.WallNS), 6) {
		if at <= seconds(r.WallNS) {
			f.Across = append(f.Across, tick{100 * at / seconds(r.WallNS), tickLabel(at)})
		}
	}
	for _, a := range r.Attempts[:min(len(r.Attempts), 50)] {
		f.Bands = append(f.Bands, band{r.along(a.BeginNS), max(r.along(a.EndNS)-r.along(a.BeginNS), 0), fmt.Sprintf("attempt %d", a.Number), "ended: " + a.Ended})
	}
	return f
}

// along is where a time stands in the wall time, in percent.
func (r *Run) along(ns int64) float64 {
	return 100 * min(max(ratio(float64(ns-r.BeginNS), float64(r.WallNS)), 0), 1)
}

// scale maps seconds to the height of a chart.
type scale struct{ low, high float64 }

func (s scale) y(seconds float64) float64 {
	return size * (1 - min(max((seconds-s.low)/(s.high-s.low), 0), 1))
}

// scaleFor covers values, but for the highest 2 % where they are far off, from 0 on unless all stand far from it.
func scaleFor(values []float64) (s scale, ticks []tick) {
	slices.Sort(values)
	high := values[len(values)-1]
	if most := values[(len(values)-1)*98/100]; high > 2*most {
		high = 1.3 * most
	}
	if high <= 0 {
		high = 1e-9
	}
	low := values[0]
	if low < 0.6*high {
		low = 0
	} else {
		low -= (high - low) / 2
	}
	marks := niceTicks(low, high, 4)
	s = scale{marks[0], marks[len(marks)-1]}
	for _, at := range marks {
		ticks = append(ticks, tick{s.y(at) / size * 100, tickLabel(at)})
	}
	return s, ticks
}

// niceTicks are about n round numbers from low or below to high or above.
func niceTicks(low, high float64, n int) []float64 {
	if high <= low {
		high = low + 1e-9
	}
	raw := (high - low) / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= raw {
			step = m * power
			break
		}
	}
	if raw >= 60 { // seconds: round minutes and hours
		for _, s := range []float64{60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400} {
			if s >= raw {
				step = s
				break
			}
		}
	}
	var ticks []float64
	for i := math.Floor(low / step); i <= math.Ceil(high/step+1e-9) && len(ticks) < 50; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

// tickLabel writes seconds that are a round number.
func tickLabel(at float64) string {
	text := time.Duration(math.Round(at * 1e9)).String()
	text = strings.TrimSuffix(text, "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	if text == "" || text[len(text)-1] <= '9' { // 0s, 10s
		text = time.Duration(math.Round(at * 1e9)).String()
	}
	return text
}

// drawSteps draws how long steps took over their numbers: the mean, and from the shortest to the longest.
func (r *Run) drawSteps() *figure {
	points := r.StepTimes
	if len(points) < 2 {
		return nil
	}
	var values []float64
	for _, p := range points {
		values = append(values, seconds(p.Min), seconds(p.Max))
	}
	s, up := scaleFor(values)
	f := &figure{Up: up}
	first, last := points[0].Step, points[len(points)-1].Step
	x := func(step int64) float64 { return size * float64(step-first) / float64(last-first) }
	var area, line path
	for i, p := range points {
		area.to(i == 0, x(p.Step), s.y(seconds(p.Max)))
		line.to(i == 0, x(p.Step), s.y(seconds(p.Mean)))
	}
	for _, p := range slices.Backward(points) {
		area.to(false, x(p.Step), s.y(seconds(p.Min)))
	}
	area.WriteByte('Z')
	f.Shapes = []shape{{"range", area.String(), "shortest to longest"}, {"line", line.String(), "mean over the ranks"}}
	for i := range 5 {
		step := first + int64(i)*(last-first)/4
		f.Across = append(f.Across, tick{x(step) / size * 100, fmt.Sprint(step)})
	}
	longest := slices.MaxFunc(points, func(a, b StepPoint) int { return cmp.Compare(a.Max, b.Max) })
	if seconds(longest.Max) > s.high {
		f.Note = fmt.Sprintf("Not all fits in: the longest step took %s, at %d.", Duration(longest.Max), longest.Step)
	}
	if points[0].Steps > 1 {
		f.Note += fmt.Sprintf(" A point stands for %d steps.", points[0].Steps)
	}
	return f
}

// maxBars is how many ranks have a bar of their own.
const maxBars = 2048

// drawRanks draws a bar for each rank: its work and, above it, its waiting, or where that is not known, p50 and up to p99.
func (r *Run) drawRanks() *figure {
	var bars []Rank
	for _, rank := range r.PerRank {
		if rank.Steps.Count > 0 {
			bars = append(bars, rank)
		}
	}
	if len(bars) < 2 {
		return nil
	}
	lower := func(k Rank) int64 {
		if r.Steps.ByWork {
			return k.WorkNS
		}
		return k.Steps.P50
	}
	upper := func(k Rank) int64 {
		if r.Steps.ByWork {
			return k.WorkNS + k.WaitNS
		}
		return k.Steps.P99
	}
	f := &figure{}
	if each := (len(bars) + maxBars - 1) / maxBars; each > 1 {
		f.Note = fmt.Sprintf("Each bar is the slowest of %d ranks.", each)
		var slowest []Rank
		for some := range slices.Chunk(bars, each) {
			slowest = append(slowest, slices.MaxFunc(some, func(a, b Rank) int { return cmp.Compare(lower(a), lower(b)) }))
		}
		bars = slowest
	}
	var values []float64
	for _, k := range bars {
		values = append(values, seconds(lower(k)), seconds(upper(k)))
	}
	s, up := scaleFor(append(values, 0))
	f.Up = up
	stands := map[memberKey]bool{}
	for _, slow := range r.Slowest {
		stands[memberKey{slow.Service, slow.Rank}] = slow.Stands
	}
	var low, high, marked path
	width := size / float64(len(bars))
	space := width * 0.1 // on either side
	if len(bars) > 200 {
		space = 0
	}
	for i, k := range bars {
		at, top, thick := float64(i)*width+space, s.y(seconds(lower(k))), width-2*space
		p := &low
		if stands[memberKey{k.Service, k.Rank}] {
			p = &marked
			f.Marks = append(f.Marks, tick{100 * (float64(i) + 0.5) / float64(len(bars)), k.label()})
		}
		if p == &marked {
			thick = max(thick, size/300) // It must be seen.
		}
		p.rect(at, top, thick, size-top)
		high.rect(at, s.y(seconds(upper(k))), thick, top-s.y(seconds(upper(k))))
	}
	f.Marks = f.Marks[:min(len(f.Marks), 3)]
	names := [2]string{"p50", "up to p99"}
	if r.Steps.ByWork {
		names = [2]string{"work", "communication, waiting for other ranks"}
	}
	f.Shapes = []shape{{"work", low.String(), names[0]}, {"wait", high.String(), names[1]}, {"marked", marked.String(), names[0] + ", stands out"}}
	for i := range 5 {
		at := i * (len(bars) - 1) / 4
		f.Across = append(f.Across, tick{100 * (float64(at) + 0.5) / float64(len(bars)), fmt.Sprint(bars[at].Rank)})
	}
	f.Across = slices.Compact(f.Across)
	return f
}

func (r Rank) label() string { return fmt.Sprintf("rank %d", r.Rank) }
