// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package reckon // import "github.com/lenscol/lenscol/internal/reckon"

import (
	"slices"
	"time"
)

// Buckets of a job's wall time, in the order in which they come. Each second from the first submission to the last end is in
// one of them; where two would hold, the later one of this list does, but for a step's work, which goes before all.
const (
	BucketBetween  = "between attempts" // after an attempt, before the next was submitted
	BucketDeferred = "deferred"         // not yet eligible: a begin time, a dependency, a limit
	BucketQueued   = "queued"
	BucketSetup    = "setup"        // from the start to the first step
	BucketScript   = "batch script" // an attempt that runs no step: what its script does
	BucketGap      = "between steps"
	BucketTeardown = "teardown" // from the last step to the end
	BucketCleanup  = "cleanup"  // steps that end after their allocation
	BucketWork     = "steps"    // at least one step ran that is no infra step
)

// Buckets are all of them.
var Buckets = []string{
	BucketBetween, BucketDeferred, BucketQueued, BucketSetup, BucketScript, BucketGap, BucketTeardown, BucketCleanup, BucketWork,
}

// Share is a bucket and the time in it, of one attempt or of all.
type Share struct {
	Bucket string
	Time   time.Duration
}

// Account is where the wall time of a job went, from its first submission to its last end. The shares sum up to Wall.
type Account struct {
	Wall   time.Duration
	Shares []Share // those that are not zero
}

// piece is a stretch of time in a bucket.
type piece struct {
	bucket   int // place in Buckets: the higher one holds
	from, to time.Time
}

// AccountOf sums up the attempts of a job that are over.
func AccountOf(job Job) Account {
	var pieces []piece
	var begin, end time.Time
	put := func(bucket string, from, to time.Time) {
		if from.IsZero() || !to.After(from) {
			return
		}
		pieces = append(pieces, piece{slices.Index(Buckets, bucket), from, to})
		if begin.IsZero() || from.Before(begin) {
			begin = from
		}
		end = later(end, to)
	}
	for i := range job.Attempts {
		a := &job.Attempts[i]
		if !a.Ended() {
			continue
		}
		alloc := a.Allocation
		eligible, started := a.waiting()
		put(BucketDeferred, alloc.Submit, eligible)
		put(BucketQueued, eligible, started)
		put(BucketCleanup, alloc.End, a.lastEnd())
		work := a.work()
		if len(work) == 0 {
			put(BucketScript, alloc.Start, alloc.End)
			continue
		}
		lastWork := work[0].End
		for _, s := range work {
			lastWork = later(lastWork, s.End)
			put(BucketWork, s.Start, s.End)
		}
		put(BucketSetup, alloc.Start, work[0].Start)
		put(BucketGap, work[0].Start, lastWork)
		put(BucketTeardown, lastWork, alloc.End)
	}
	return account(pieces, begin, end)
}

// account sweeps over time: between two moments at which anything begins or ends, the highest bucket holds.
func account(pieces []piece, begin, end time.Time) Account {
	type moment struct {
		at     time.Time
		bucket int
		change int
	}
	var moments []moment
	for _, p := range pieces {
		moments = append(moments, moment{p.from, p.bucket, 1}, moment{p.to, p.bucket, -1})
	}
	slices.SortFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	running, sums := make([]int, len(Buckets)), make([]time.Duration, len(Buckets))
	running[0] = 1 // between attempts, where nothing else is
	for i, m := range moments {
		if i > 0 {
			highest := len(running) - 1
			for running[highest] == 0 {
				highest--
			}
			sums[highest] += m.at.Sub(moments[i-1].at)
		}
		running[m.bucket] += m.change
	}
	a := Account{Wall: end.Sub(begin)}
	for i, sum := range sums {
		if sum > 0 {
			a.Shares = append(a.Shares, Share{Buckets[i], sum})
		}
	}
	return a
}
