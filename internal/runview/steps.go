// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview // import "github.com/lenscol/lenscol/internal/runview"

import "slices"

// RecentSteps is how many steps back step times are kept.
const RecentSteps = 100

// steps is which step a rank has done last, and how long those before it took.
//
// The last step is the one that started last, by the sender's own clock: batches may overtake each other, and after a
// restart from a checkpoint the number goes back. A clock that is ahead of the collector's counts as the collector's.
type steps struct {
	known   bool
	number  int64
	start   uint64
	seconds float32
	times   []stepTime // at number % RecentSteps, nil before the first
}

// stepTime is how long a step took. What step that was is kept as far as it takes to tell it from others in its place.
type stepTime struct {
	number  uint32
	seconds float32
}

// done takes a step. To take one again changes nothing.
func (s *steps) done(step Step, now int64) {
	seconds := step.seconds()
	step.Start = min(step.Start, uint64(now))
	if !s.known || step.Start >= s.start {
		s.known, s.number, s.start, s.seconds = true, step.Number, step.Start, seconds
	}
	if seconds == 0 || step.Number > s.number || s.number-step.Number >= RecentSteps {
		return
	}
	at := int(step.Number % RecentSteps)
	if at >= len(s.times) {
		// They grow with the run: one that is seen for a moment costs little.
		s.times = append(s.times, make([]stepTime, at+1-len(s.times))...)
	}
	s.times[at] = stepTime{uint32(step.Number), seconds}
}

// of is how long a step took; 0 where that is not known, or is not one of the last.
func (s *steps) of(number int64) float32 {
	if number < 0 || number > s.number || s.number-number >= RecentSteps {
		return 0
	}
	if at := int(number % RecentSteps); at < len(s.times) && s.times[at].number == uint32(number) {
		return s.times[at].seconds
	}
	return 0
}

// appendRecent appends the times of the last steps that are known, in no order.
func (s *steps) appendRecent(to []float32) []float32 {
	for at, t := range s.times {
		back := (s.number - int64(at)) % RecentSteps // how far back the step is that belongs there
		if back < 0 {
			back += RecentSteps
		}
		if t.seconds > 0 && t.number == uint32(s.number-back) {
			to = append(to, t.seconds)
		}
	}
	return to
}

// median sorts times and returns the median; 0 of none.
func median(times []float32) float32 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	middle := len(times) / 2
	if len(times)%2 == 1 {
		return times[middle]
	}
	return (times[middle-1] + times[middle]) / 2
}
