// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import "math"

// chartColumns is how many columns the time line of a report has.
const chartColumns = 240

// chart is how much of the ranks' time was in which bucket, over the wall time.
type chart struct {
	begin, end int64
	columns    [chartColumns][]float64 // by bucket, rank nanoseconds
}

func newChart(begin, end int64) chart {
	c := chart{begin: begin, end: end}
	for i := range c.columns {
		c.columns[i] = make([]float64, len(bucketOrder))
	}
	return c
}

func (c *chart) add(b bucket, from, to int64) { c.addPart(b, from, to, 1) }

// addPart adds a part of a stretch of time.
func (c *chart) addPart(b bucket, from, to int64, part float64) {
	width := c.width()
	if width <= 0 || part <= 0 {
		return
	}
	from, to = from-c.begin, to-c.begin // Nanoseconds since 1970 are too many for a float64.
	first := int(float64(from) / width)
	for i := max(first, 0); i < chartColumns; i++ {
		left := float64(i) * width
		if left >= float64(to) {
			return
		}
		if share := min(float64(to), left+width) - max(float64(from), left); share > 0 {
			c.columns[i][b] += share * part
		}
	}
}

func (c *chart) width() float64 { return float64(c.end-c.begin) / chartColumns }

// TimeLine is what the ranks did over the wall time.
type TimeLine struct {
	ColumnNS float64              `json:"column_ns"` // the time that a column stands for; the first begins with the run
	Buckets  map[string][]float64 `json:"buckets"`   // by bucket, in every column its share of the ranks' time, 0 to 1
}

func (c *chart) timeLine(ranks int64) TimeLine {
	t := TimeLine{c.width(), map[string][]float64{}}
	if ranks == 0 || c.width() <= 0 {
		return t
	}
	for i, b := range bucketOrder {
		column, any := make([]float64, chartColumns), false
		for j := range c.columns {
			column[j] = math.Round(1e4*c.columns[j][i]/c.width()/float64(ranks)) / 1e4
			any = any || column[j] > 0
		}
		if any {
			t.Buckets[b.name] = column
		}
	}
	return t
}
