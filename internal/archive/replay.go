// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// Replay sends the records of files to an OTLP receiver, as they were: ids, times, order of a file.
//
// One request is in flight at a time, and its records count as sent once it was acknowledged and the progress is saved. So a replay that is stopped
// goes on with the next record, and one that is killed repeats at most the request that it was about.
type Replay struct {
	Sender   Sender
	Progress *Progress
	Filter   *Filter       // nil keeps all
	Speed    float64       // 1: in the time that the records took when they came, 2: in half of it; 0: as fast as it goes
	Rate     float64       // at most so many records a second; 0: any number
	RetryFor time.Duration // how long a request is tried again; 0: for ever

	OnProblem func(Input, error)                        // as of Files
	OnFile    func(Input, Stats)                        // likewise
	OnRetry   func(err error, wait time.Duration)       // a request is tried again after wait
	OnBatch   func()                                    // a request was acknowledged. May be nil, as OnRetry and OnFile
	now       func() time.Time                          // time.Now
	wait      func(context.Context, time.Duration) bool // false when the context ends first

	sent     Sent
	batch    jsonlreader.Batcher
	pending  []Record // of the batch, for their places; their telemetry is in batch
	bytes    int
	origin   time.Time // when the first record was sent, and its time
	first    pcommon.Timestamp
	nextSend time.Time // by rate
	sources  []*replaySource
	read     int64 // bytes of files that were left
}

// Sent is what a replay did.
type Sent struct {
	Records, Requests int64
	Before            int64  // records that an earlier replay had sent
	Rejected          int64  // records that the receiver took and rejected for good
	Reason            string // the first of these
}

// ErrStopped says that a replay was stopped before its end. Its progress is saved.
var ErrStopped = errors.New("stopped")

const (
	// Records that are due within early of each other share a request.
	early = 200 * time.Millisecond

	backoffFirst = 500 * time.Millisecond
	backoffMost  = 30 * time.Second
)

// Run replays until the end, an error, or until stop ends, which lets the request in flight finish.
func (r *Replay) Run(stop context.Context, inputs []Input) (Sent, error) {
	if r.now == nil {
		r.now, r.wait = time.Now, wait
	}
	defer func() {
		for _, s := range r.sources {
			s.close()
		}
	}()
	add := func(files []Input) func() (Record, error) {
		s := &replaySource{replay: r, inputs: files}
		r.sources = append(r.sources, s)
		return s.next
	}
	var sources []func() (Record, error)
	if r.Speed == 0 {
		sources = append(sources, add(inputs))
	} else { // The files of a series follow each other, the series are side by side.
		for len(inputs) > 0 {
			n := 1
			for n < len(inputs) && inputs[n].Series == inputs[0].Series {
				n++
			}
			sources = append(sources, add(inputs[:n]))
			inputs = inputs[n:]
		}
	}
	err := merge(sources, Record.End, func(rec Record) error { return r.take(stop, rec) })
	if err == nil {
		err = r.flush(stop)
	}
	if err == nil {
		r.endFiles() // Also those of which the filter kept nothing.
		err = r.Progress.save()
	}
	return r.sent, err
}

// Read is how many bytes of the files were read so far.
func (r *Replay) Read() int64 {
	n := r.read
	for _, s := range r.sources {
		if s.current != nil {
			n += s.current.Read()
		}
	}
	return n
}

// Sent is what was done so far.
func (r *Replay) Sent() Sent { return r.sent }

// endFiles marks the files that were read to their end as done. Their last record was taken before, so once the batch was acknowledged
// all of them were.
func (r *Replay) endFiles() {
	for _, s := range r.sources {
		for _, end := range s.ended {
			end()
		}
		s.ended = nil
	}
}

// take puts a record into the batch, when it is due.
func (r *Replay) take(stop context.Context, rec Record) error {
	if stop.Err() != nil {
		return ErrStopped
	}
	if len(r.pending) > 0 && (rec.Signal != r.pending[0].Signal || len(r.pending) >= r.batchRecords() || r.bytes+rec.Bytes > batchBytes) {
		if err := r.flush(stop); err != nil {
			return err
		}
	}
	if r.Speed > 0 && rec.End() > 0 {
		if r.first == 0 {
			r.origin, r.first = r.now(), rec.End()
		}
		passed := time.Duration(float64(int64(rec.End()-r.first)) / r.Speed)
		if left := r.origin.Add(passed).Sub(r.now()); left > early {
			if err := r.flush(stop); err != nil {
				return err
			}
			if left = r.origin.Add(passed).Sub(r.now()); left > 0 && !r.wait(stop, left) {
				return ErrStopped
			}
		}
	}
	r.batch.Add(rec.Record)
	r.pending = append(r.pending, rec)
	r.bytes += rec.Bytes
	return nil
}

// batchRecords keeps a slow rate from coming in bursts: four requests a second or more.
func (r *Replay) batchRecords() int {
	if r.Rate == 0 {
		return batchRecords
	}
	return int(min(max(r.Rate/4, 1), batchRecords))
}

// flush sends the batch and saves that it was.
func (r *Replay) flush(stop context.Context) error {
	if len(r.pending) == 0 {
		return nil
	}
	if r.Rate > 0 {
		if left := r.nextSend.Sub(r.now()); left > 0 && !r.wait(stop, left) {
			return ErrStopped
		}
		begin := r.now()
		if r.nextSend.After(begin) {
			begin = r.nextSend
		}
		r.nextSend = begin.Add(time.Duration(float64(len(r.pending)) / r.Rate * float64(time.Second)))
	}
	if err := r.deliver(stop, r.batch.Batch(), r.pending); err != nil {
		return err
	}
	r.endFiles()
	r.batch.Reset()
	clear(r.pending)
	r.pending, r.bytes = r.pending[:0], 0
	if err := r.Progress.save(); err != nil {
		return err
	}
	if r.OnBatch != nil {
		r.OnBatch()
	}
	return nil
}

// deliver sends a batch of these records, in halves where it is more than the receiver takes at once: what its records share, they may
// repeat in a request, so that their lines do not tell how large it is.
func (r *Replay) deliver(stop context.Context, b jsonlreader.Batch, records []Record) error {
	err := r.send(stop, b, records)
	var size *SizeError
	switch {
	case err == nil:
		for _, rec := range records {
			rec.from.Records = rec.number
		}
		r.sent.Requests++
		r.sent.Records += int64(len(records))
		return nil
	case len(records) == 1 || !errors.As(err, &size):
		return err
	}
	first, second := halves(b)
	if err := r.deliver(stop, first, records[:first.Records]); err != nil {
		return err
	}
	if err := r.Progress.save(); err != nil {
		return err
	}
	return r.deliver(stop, second, records[first.Records:])
}

// send sends a batch until it is acknowledged. A request in flight is not cut off by stop: whether it arrived would be unknown.
func (r *Replay) send(stop context.Context, b jsonlreader.Batch, records []Record) error {
	begin := r.now()
	for try := 0; ; try++ {
		if stop.Err() != nil {
			return ErrStopped
		}
		rejected, reason, err := r.Sender.Send(context.WithoutCancel(stop), b)
		if err == nil {
			r.sent.Rejected += rejected
			if r.sent.Reason == "" {
				r.sent.Reason = reason
			}
			return nil
		}
		var again *RetryError
		if !errors.As(err, &again) {
			return fmt.Errorf("%s: the receiver refuses them for good: %w", placeOf(records), err)
		}
		left := max(again.After, backoff(try))
		if r.RetryFor > 0 && r.now().Add(left).Sub(begin) > r.RetryFor {
			return fmt.Errorf("%s: tried for %s: %w", placeOf(records), r.RetryFor, err)
		}
		if r.OnRetry != nil {
			r.OnRetry(err, left)
		}
		if !r.wait(stop, left) {
			return ErrStopped
		}
	}
}

// placeOf says where records stand.
func placeOf(records []Record) string {
	first, last := records[0], records[len(records)-1]
	if first.from != last.from {
		return fmt.Sprintf("%s:%d to %s:%d", first.name, first.Line, last.name, last.Line)
	}
	return fmt.Sprintf("%s, lines %d to %d", first.name, first.Line, last.Line)
}

// backoff doubles with every try, up to backoffMost, and differs by a fifth so that senders do not come at once.
func backoff(try int) time.Duration {
	d := backoffMost
	if try < 6 {
		d = backoffFirst << try
	}
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// replaySource reads files one after the other, from where the progress stands.
type replaySource struct {
	replay  *Replay
	inputs  []Input
	current *Reader
	number  int64    // of the record in hand
	ended   []func() // what is true of files that were read to their end, once all is sent
}

func (s *replaySource) next() (Record, error) {
	r := s.replay
	for len(s.inputs) > 0 {
		in := s.inputs[0]
		pos := r.Progress.positions[in.Path]
		if s.current == nil {
			if r.Progress.sent(in) {
				r.sent.Before += pos.Records
				s.inputs = s.inputs[1:]
				continue
			}
			reader, err := Open(in)
			if err == nil {
				if err = r.Progress.begin(in, reader.file); err != nil {
					err = errors.Join(err, reader.Close())
				}
			}
			if err != nil {
				r.OnProblem(in, err)
				s.inputs = s.inputs[1:]
				continue
			}
			s.current, s.number = reader, 0
		}
		rec, err := s.current.Next()
		var bad *Damage
		switch {
		case err == nil:
			s.number++
			if s.number <= pos.Records {
				r.sent.Before++
				continue
			}
			if r.Filter != nil && !r.Filter.Keep(rec) {
				continue
			}
			rec.from, rec.number, rec.name = pos, s.number, in.Name()
			return rec, nil
		case errors.As(err, &bad):
			r.OnProblem(in, err)
		default:
			if !errors.Is(err, io.EOF) {
				r.OnProblem(in, err)
			}
			s.leave(in, pos, errors.Is(err, io.EOF))
		}
	}
	return Record{}, io.EOF
}

func (s *replaySource) leave(in Input, pos *position, whole bool) {
	size, number := s.current.Read(), s.number
	if whole && in.Path != Stdin {
		s.ended = append(s.ended, func() { pos.Size, pos.Records, pos.Done = size, number, true })
	}
	s.replay.read += size
	stats := s.current.Stats()
	s.close()
	s.inputs = s.inputs[1:]
	if s.replay.OnFile != nil {
		s.replay.OnFile(in, stats)
	}
}

func (s *replaySource) close() {
	if s.current != nil {
		if err := s.current.Close(); err != nil {
			s.replay.OnProblem(s.inputs[0], err)
		}
		s.current = nil
	}
}
