// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"math/big"
	"slices"
)

// Buckets of the wall time. Each moment of each rank is in one of them.
const (
	BucketQueue       = "queue"       // waiting for an allocation: deferred, queued, between two attempts (SLURM)
	BucketAllocation  = "allocation"  // allocated, and no step of the job runs (SLURM)
	BucketStartup     = "startup"     // of a process, until its first step
	BucketLoad        = "load"        // of a checkpoint
	BucketCheckpoint  = "checkpoint"  // saving, as far as training waits for it
	BucketRestart     = "restart"     // between two lives of a rank
	BucketLost        = "lost work"   // steps that were done again or did not end, and what NeMo RL calls wasted
	BucketUnobserved  = "unobserved"  // no span says what happened
	BucketEvaluation  = "evaluation"  //
	BucketOverhead    = "overhead"    // between steps, and what NeMo RL calls overhead
	BucketIdle        = "idle"        // what NeMo RL calls idle
	BucketSlow        = "slow steps"  // what steps took beyond the pace
	BucketProductive  = "productive"  // steps that were kept, at the pace
	FactorScheduler   = "scheduler"   // who loses the time of a bucket
	FactorRuntime     = "runtime"     //
	FactorApplication = "application" //
	FactorGood        = "good"        //
)

// bucketOrder are all buckets as they are shown, with their factors.
var bucketOrder = []struct{ name, factor string }{
	{BucketQueue, FactorScheduler}, {BucketAllocation, FactorScheduler},
	{BucketStartup, FactorRuntime}, {BucketLoad, FactorRuntime}, {BucketCheckpoint, FactorRuntime}, {BucketRestart, FactorRuntime},
	{BucketLost, FactorRuntime}, {BucketUnobserved, FactorRuntime},
	{BucketEvaluation, FactorApplication}, {BucketOverhead, FactorApplication}, {BucketIdle, FactorApplication}, {BucketSlow, FactorApplication},
	{BucketProductive, FactorGood},
}

// bucket is a place in bucketOrder.
type bucket int

var bucketOf = func() map[string]bucket {
	m := map[string]bucket{}
	for i, b := range bucketOrder {
		m[b.name] = bucket(i)
	}
	return m
}()

var (
	inQueue, inAllocation        = bucketOf[BucketQueue], bucketOf[BucketAllocation]
	inStartup, inLoad            = bucketOf[BucketStartup], bucketOf[BucketLoad]
	inCheckpoint, inRestart      = bucketOf[BucketCheckpoint], bucketOf[BucketRestart]
	inLost, inUnobserved         = bucketOf[BucketLost], bucketOf[BucketUnobserved]
	inEvaluation, inOverhead     = bucketOf[BucketEvaluation], bucketOf[BucketOverhead]
	inIdle, inSlow, inProductive = bucketOf[BucketIdle], bucketOf[BucketSlow], bucketOf[BucketProductive]
)

// Bucket is a share of the wall time, averaged over the ranks.
type Bucket struct {
	Bucket string  `json:"bucket"`
	Factor string  `json:"factor"`
	NS     int64   `json:"ns"` // those of all buckets sum up to the wall time
	Share  float64 `json:"share"`
}

// Goodput is which part of the wall time went into work that counts.
type Goodput struct {
	Scheduler   float64 `json:"scheduler"`
	Runtime     float64 `json:"runtime"`
	Application float64 `json:"application"`
	Overall     float64 `json:"overall"` // their product
}

// Formula is how Goodput follows from the buckets.
const Formula = `goodput = scheduler × runtime × application = productive / wall
scheduler   = 1 − (queue + allocation) / wall
runtime     = 1 − (startup + load + checkpoint + restart + lost work + unobserved) / (wall − queue − allocation)
application = productive / (productive + slow steps + evaluation + overhead + idle)`

// gap is a stretch in which a rank sent nothing.
type gap struct {
	from, to int64
	rank     int
	silent   bool // nothing came any more in this attempt
}

// accountant puts the time of the ranks of a run into buckets.
type accountant struct {
	begin, end int64 // of the wall time
	outer      []segment
	attempts   []Attempt
	places     map[attemptKey]int
	offset     func(host string) int64
	gap        int64

	sums  []*big.Int // by bucket, rank nanoseconds
	ranks int64
	gaps  []gap
	chart chart
}

func newAccountant(begin, end int64) *accountant {
	a := &accountant{begin: begin, end: end, chart: newChart(begin, end)}
	for range bucketOrder {
		a.sums = append(a.sums, new(big.Int))
	}
	return a
}

// rank accounts for one rank from the begin of the wall time to its end.
type rankAccount struct {
	*accountant
	at    int64 // up to where it is accounted for
	sums  []int64
	steps int64 // kept
	cells []cell
}

// cell is a stretch of a step that was kept: whether it is productive or slow is known at the end.
type cell struct{ from, to int64 }

// add accounts for a rank. pace is the time that a step needs.
func (a *accountant) add(m *member, lives []life, pace int64) {
	r := &rankAccount{accountant: a, at: a.begin, sums: make([]int64, len(bucketOrder))}
	hasSteps := m.steps.count() > 0
	for i := range lives {
		r.outside(lives[i].begin-a.offset(lives[i].host), i > 0)
		r.life(&lives[i], hasSteps)
	}
	r.outside(a.end, false)
	r.settle(pace, hasSteps)
	for i, sum := range r.sums {
		a.sums[i].Add(a.sums[i], big.NewInt(sum))
	}
	a.ranks++
}

// put accounts for the time until to.
func (r *rankAccount) put(b bucket, to int64) {
	to = min(to, r.end)
	if to <= r.at {
		return
	}
	r.sums[b] += to - r.at
	if b == inProductive {
		r.cells = append(r.cells, cell{r.at, to})
	} else {
		r.chart.add(b, r.at, to)
	}
	r.at = to
}

// outside accounts for the time until to, in which the rank does not live: by what SLURM and the launcher say.
func (r *rankAccount) outside(to int64, between bool) {
	other := inUnobserved
	if between {
		other = inRestart
	}
	i, _ := slices.BinarySearchFunc(r.outer, r.at, func(s segment, t int64) int {
		if s.to <= t {
			return -1
		}
		return 1
	})
	for ; i < len(r.outer) && r.outer[i].from < to && r.at < to; i++ {
		s := r.outer[i]
		r.put(other, min(s.from, to))
		switch s.kind {
		case kindQueue:
			r.put(inQueue, min(s.to, to))
		case kindAllocation:
			r.put(inAllocation, min(s.to, to))
		case kindOrchestration:
			r.put(inRestart, min(s.to, to))
		default:
			r.put(other, min(s.to, to))
		}
	}
	r.put(other, to)
}

// life accounts for a life.
func (r *rankAccount) life(l *life, hasSteps bool) {
	offset := r.offset(l.host)
	attempt := &r.attempts[r.places[attemptKey{l.attempt, l.ordinal}]]
	trained, step := false, int64(noStep)
	for _, s := range l.segments {
		if s.kind == kindLoop && hasSteps {
			continue // What it holds beside steps is between them.
		}
		r.pause(s.from-offset, trained, l)
		lost := s.step >= attempt.resume
		b := inProductive
		switch s.kind {
		case kindStartup:
			b = inStartup
		case kindLoad:
			b = inLoad
		case kindTorn, kindWasted:
			b = inLost
		case kindSave:
			b, lost = inCheckpoint, false
		case kindEvaluate:
			b, lost = inEvaluation, false
		case kindOverhead:
			b = inOverhead
		case kindIdle:
			b = inIdle
		}
		if b != inStartup && b != inLoad {
			trained = true
		}
		if lost {
			b = inLost
		} else if s.kind >= kindStep && s.kind <= kindWasted && s.step >= 0 && s.step != step {
			r.steps++
			step = s.step
		}
		r.put(b, s.to-offset)
	}
	r.pause(l.end-offset, trained, l)
	if silence := attempt.EndNS - max(r.at, l.end-offset); silence >= r.gap {
		r.gaps = append(r.gaps, gap{l.end - offset, attempt.EndNS, l.member.rank, true})
	}
}

// pause accounts for a time of a life that no span covers.
func (r *rankAccount) pause(to int64, trained bool, l *life) {
	to = min(to, r.end)
	switch {
	case to-r.at >= r.gap:
		r.gaps = append(r.gaps, gap{r.at, to, l.member.rank, false})
		r.put(inUnobserved, to)
	case trained:
		r.put(inOverhead, to)
	default:
		r.put(inStartup, to)
	}
}

// settle parts the time of kept steps into what they need at the pace and the rest. Without steps, all of it is productive.
func (r *rankAccount) settle(pace int64, hasSteps bool) {
	total := r.sums[inProductive]
	slow := int64(0)
	if hasSteps && r.steps > 0 && pace <= total/r.steps {
		slow = total - r.steps*pace
	}
	r.sums[inProductive], r.sums[inSlow] = total-slow, r.sums[inSlow]+slow
	for _, c := range r.cells {
		r.chart.addPart(inSlow, c.from, c.to, float64(slow)/float64(total))
		r.chart.addPart(inProductive, c.from, c.to, 1-float64(slow)/float64(total))
	}
}

// buckets are the averages over the ranks. They are whole nanoseconds that sum up to the wall time: what division leaves over goes to
// the buckets that it takes the most from.
func (a *accountant) buckets() []Bucket {
	wall := a.end - a.begin
	list := make([]Bucket, len(bucketOrder))
	order, rests := make([]int, len(list)), make([]int64, len(list))
	left := wall
	for i, b := range bucketOrder {
		list[i] = Bucket{Bucket: b.name, Factor: b.factor}
		order[i] = i
		quotient, rest := new(big.Int).QuoRem(a.sums[i], big.NewInt(a.ranks), new(big.Int))
		list[i].NS, rests[i] = quotient.Int64(), rest.Int64()
		left -= list[i].NS
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(min(max(rests[j]-rests[i], -1), 1)) })
	for _, i := range order[:min(left, int64(len(order)))] {
		list[i].NS++
	}
	for i := range list {
		if wall > 0 {
			list[i].Share = float64(list[i].NS) / float64(wall)
		}
	}
	return list
}

// goodputOf applies the Formula. A factor of nothing is 0.
func goodputOf(buckets []Bucket, wall int64) Goodput {
	lost := map[string]float64{}
	for _, b := range buckets {
		lost[b.Factor] += float64(b.NS)
	}
	all := float64(wall)
	allocated := all - lost[FactorScheduler]
	running := allocated - lost[FactorRuntime]
	return Goodput{ratio(allocated, all), ratio(running, allocated), ratio(lost[FactorGood], running), ratio(lost[FactorGood], all)}
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
