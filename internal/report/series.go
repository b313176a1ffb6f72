// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

// seriesPoints is how many points a series has at most, and half as many at least where there are as many steps.
const seriesPoints = 400

// series is how long steps took, over their numbers: 1<<shift steps in a row share a point.
type series struct {
	points [seriesPoints]seriesPoint
	base   int64 // of the first point, its steps >> shift
	shift  uint
	any    bool
}

type seriesPoint struct {
	n, sum, min, max int64
}

// add takes the duration of a step of one rank.
func (s *series) add(step, ns int64) {
	if step < 0 {
		return
	}
	if !s.any {
		s.any, s.base = true, step
	}
	for {
		i := step>>s.shift - s.base
		switch {
		case i >= seriesPoints:
			s.halve()
		case i < 0:
			s.makeRoom(-i)
		default:
			s.points[i].add(seriesPoint{1, ns, ns, ns})
			return
		}
	}
}

// halve makes one point of two.
func (s *series) halve() {
	var halved [seriesPoints]seriesPoint
	for i, p := range s.points {
		halved[(s.base+int64(i))>>1-s.base>>1].add(p)
	}
	s.points = halved
	s.base >>= 1
	s.shift++
}

// makeRoom moves the points to make room for some in front.
func (s *series) makeRoom(by int64) {
	last := int64(seriesPoints - 1)
	for last > 0 && s.points[last].n == 0 {
		last--
	}
	if last+by >= seriesPoints {
		s.halve()
		return
	}
	copy(s.points[by:], s.points[:seriesPoints-by])
	clear(s.points[:by])
	s.base -= by
}

func (p *seriesPoint) add(q seriesPoint) {
	switch {
	case q.n == 0:
	case p.n == 0:
		*p = q
	default:
		p.n, p.sum, p.min, p.max = p.n+q.n, p.sum+q.sum, min(p.min, q.min), max(p.max, q.max)
	}
}

// StepPoint is how long some steps in a row took, over all ranks.
type StepPoint struct {
	Step  int64 `json:"step"` // the first of them
	Steps int64 `json:"steps"`
	Mean  int64 `json:"mean_ns"`
	Min   int64 `json:"min_ns"`
	Max   int64 `json:"max_ns"`
}

func (s *series) list() []StepPoint {
	list := []StepPoint{}
	for i, p := range s.points {
		if p.n > 0 {
			list = append(list, StepPoint{(s.base + int64(i)) << s.shift, 1 << s.shift, p.sum / p.n, p.min, p.max})
		}
	}
	return list
}
