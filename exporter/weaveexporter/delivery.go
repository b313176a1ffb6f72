// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"

import (
	"context"
	"fmt"
	"math/bits"
	"net/http"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v7"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/shape"
)

// delivery brings one batch to Weave, in rounds: each sends what is left, and what may pass later is sent again after a pause. A
// request that is refused for its size or its data is halved until what is refused is one span, which is dropped.
type delivery struct {
	e            *weaveExporter
	acknowledged bool // to its sender, who does not send it again
	began        time.Time
	backoff      backoff.ExponentialBackOff
	round        time.Time // when this round began
	todo         []parcel  // of it
	later        []parcel  // of the next one
	failure      answer    // the last one
	failing      bool      // a request of this round failed, and will be sent again
	sent         int       // spans that were taken
	lost         int       // spans that were rejected or dropped
}

// parcel is a request on its way.
type parcel struct {
	shape.Request
	errors     int       // answers of status 500
	since      time.Time // of the first of them, of the whole request where this is a part
	unanswered int       // tries without an answer of Weave's: the first, and each after another request was taken since the one before
	failed     time.Time // the last try without an answer
	silent     int       // tries without an answer, of this request as it is
	doubt      *doubt    // nil: it was not refused
}

// doubt is shared by the parts of a request that was refused for its data, or may have been.
//
// A span at fault is found with two requests for each halving. Where no part is taken over as many refusals as finding one span can take, not a
// span is at fault but the whole, and halving ends.
type doubt struct {
	refusals int // in a row
	limit    int // of them
}

func newDoubt(p *parcel, a answer) *doubt {
	limit := 2*bits.Len(uint(p.Spans)) + 8
	if a.status == http.StatusForbidden {
		limit = min(limit, p.Spans) // Seldom for a span.
	}
	return &doubt{limit: limit}
}

const (
	// Status 500 is Weave's answer to most of what it does not expect in a span, and to what fails in itself: so often a
	// request is tried before it is halved, and a span before it is dropped.
	requestTries = 3
	spanTries    = 5

	// serverErrorPatience is how long a request that status 500 answers is tried while no request at all is taken.
	serverErrorPatience = 5 * time.Minute

	// A request that gets no answer, or that of a gateway, is tried without end while no request is taken: Weave is down. It is halved, as
	// with status 500, after so many tries between which others were taken: what a span does to a database comes out so.
	gatewayTries = 10

	// largeRequest is halved after as many tries too, whatever is taken: a gateway may not say that it is too large, and nothing smaller be on its way.
	largeRequest = 1 << 20

	// minPause stands between two rounds, whatever retry_on_failure says.
	minPause = 10 * time.Millisecond

	// quotaPause is the shortest Retry-After that means a used-up quota.
	quotaPause = time.Minute
)

func newDelivery(e *weaveExporter, shaped *shape.Result, acknowledged bool) *delivery {
	d := &delivery{e: e, acknowledged: acknowledged, began: e.now(), backoff: backoff.ExponentialBackOff{
		InitialInterval:     e.cfg.RetryConfig.InitialInterval,
		RandomizationFactor: e.cfg.RetryConfig.RandomizationFactor,
		Multiplier:          e.cfg.RetryConfig.Multiplier,
		MaxInterval:         e.cfg.RetryConfig.MaxInterval,
	}}
	d.countShaped(shaped)
	for _, r := range shaped.Requests {
		d.todo = append(d.todo, parcel{Request: r})
	}
	return d
}

func (d *delivery) run(ctx context.Context) error {
	for {
		last := d.e.isStopping()
		d.sendRound(ctx)
		if len(d.later) == 0 {
			return d.result(0)
		}
		if last {
			return d.end(dropShutdown)
		}
		if drop := d.pause(ctx); drop != "" {
			return d.end(drop)
		}
		d.todo, d.later = d.later, nil
	}
}

// sendRound sends what is to be sent, parts of what is halved included.
func (d *delivery) sendRound(ctx context.Context) {
	d.round = d.e.now()
	for i := range d.todo {
		if doubt := d.todo[i].doubt; doubt != nil {
			doubt.refusals = 0
		}
	}
	for len(d.todo) > 0 {
		p := d.todo[0]
		d.todo = d.todo[1:]
		d.send(ctx, p)
	}
}

func (d *delivery) send(ctx context.Context, p parcel) {
	e := d.e
	if wait := e.throttle.left(e.now()); wait > 0 || ctx.Err() != nil {
		d.later = append(d.later, p)
		return
	}
	a := e.client.send(ctx, &p.Request, e.now)
	if a.retryAfter > 0 {
		d.throttled(a)
	}
	switch a.verdict {
	case taken:
		e.lastTaken.Store(e.now().UnixNano())
		e.forbidden.remove(p.Target)
		if p.doubt != nil {
			p.doubt.refusals = 0
		}
		d.countTaken(&p, a)
	case unavailable, suspect:
		d.failed(p, a)
	case tooLarge:
		if !d.halve(p) {
			d.drop(p, a, a.drop)
		}
	case hopeless:
		d.drop(p, a, a.drop)
	}
}

// failed decides on a request that may pass later, or in parts.
func (d *delivery) failed(p parcel, a answer) {
	switch {
	case !d.mayPass(&p, a):
		d.refused(p, a)
	case p.silent >= gatewayTries && p.Bytes > largeRequest && d.halve(p):
	default:
		d.sendLater(p, a)
	}
}

// mayPass tells whether the same request may pass later: the failure may be of Weave and not of what it holds. It counts what speaks against
// the request, and nothing else: not that Weave is busy, nor that it is down.
func (d *delivery) mayPass(p *parcel, a answer) bool {
	now := d.e.now()
	switch {
	case a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable:
		return true
	case a.verdict == unavailable:
		if p.unanswered == 0 || d.e.takenSince(p.failed) {
			p.unanswered++
		}
		p.failed = now
		p.silent++
		return p.unanswered < gatewayTries
	case a.status != http.StatusInternalServerError:
		return false
	}
	if p.errors++; p.since.IsZero() {
		p.since = now
	}
	if p.Spans > 1 {
		return p.errors < requestTries
	}
	return p.errors < spanTries
}

// refused halves a request, or drops it where there is nothing to halve, or where all of it is at fault.
func (d *delivery) refused(p parcel, a answer) {
	now := d.e.now()
	if p.doubt == nil {
		p.doubt = newDoubt(&p, a)
	}
	p.doubt.refusals++
	whole := p.doubt.refusals > p.doubt.limit
	closed := a.status == http.StatusForbidden && (whole || d.e.forbidden.has(p.Target, now))
	if closed {
		d.e.forbidden.add(p.Target, now)
	}
	if !whole && !closed && d.halve(p) {
		return
	}
	parts := []parcel{p}
	if whole || closed {
		parts = append(parts, d.take(p.doubt)...)
	}
	down := d.down(&p, a, whole)
	for _, part := range parts {
		if down {
			part.unanswered = 0
			d.sendLater(part, a)
		} else {
			d.drop(part, a, a.drop)
		}
	}
}

// down tells whether Weave is at fault for a refusal, and not what was sent: it takes nothing from anybody. Of the whole of a request the round counts
// in which it is refused: what was taken before says nothing of Weave now.
func (d *delivery) down(p *parcel, a answer, whole bool) bool {
	since := p.since
	if whole {
		since = d.round
	}
	switch {
	case d.e.takenSince(since):
		return false
	case a.status == http.StatusInternalServerError:
		return d.e.now().Sub(p.since) < serverErrorPatience
	}
	return a.verdict == unavailable && whole
}

// takenSince tells whether Weave took any request since then: it works, and what fails is at fault itself.
func (e *weaveExporter) takenSince(then time.Time) bool { return e.lastTaken.Load() >= then.UnixNano() }

// halve puts the halves of p behind what is to be sent, so that larger parts come first: those are likelier to be taken, and to clear doubt.
func (d *delivery) halve(p parcel) bool {
	first, second, ok := p.Split()
	if !ok {
		return false
	}
	for _, half := range []shape.Request{first, second} {
		part := p
		part.Request, part.silent = half, 0
		if half.Spans == 1 {
			part.errors, part.unanswered = 0, 0
		}
		d.todo = append(d.todo, part)
	}
	return true
}

// take takes the parts of a request out of what is to be sent.
func (d *delivery) take(of *doubt) (parts []parcel) {
	d.todo = slices.DeleteFunc(d.todo, func(p parcel) bool {
		if p.doubt == of {
			parts = append(parts, p)
		}
		return p.doubt == of
	})
	return parts
}

func (d *delivery) drop(p parcel, a answer, reason string) {
	d.failure = a
	d.countDropped(&p, a, reason)
}

func (d *delivery) sendLater(p parcel, a answer) {
	d.failure, d.failing = a, true
	d.later = append(d.later, p)
}

// throttled has all requests wait as an answer asks.
func (d *delivery) throttled(a answer) {
	began := d.e.throttle.extend(d.e.now(), a.retryAfter)
	if began && a.status == http.StatusTooManyRequests && a.retryAfter >= quotaPause {
		d.e.logger.Error("Weave takes nothing for a long while, as when a quota is used up; spans wait in the queue",
			zap.String("answer", a.text), zap.Duration("retry_after", a.retryAfter))
	}
}

// pause waits until the next round. Where none follows, it says what to count what is left as.
func (d *delivery) pause(ctx context.Context) (drop string) {
	e := d.e
	wait := max(d.backoff.NextBackOff(), minPause, e.throttle.left(e.now()))
	if limit := e.cfg.RetryConfig.MaxElapsedTime; !e.cfg.RetryConfig.Enabled || limit > 0 && e.now().Add(wait).Sub(d.began) > limit {
		return dropRetries
	}
	if d.failing {
		// As exporterhelper says it of other exporters; whoever judges them by their log judges this one too.
		e.attempts.Info("Exporting failed. Will retry the request after interval.", zap.Error(failure{d.failure}), zap.Stringer("interval", wait))
		d.failing = false
	}
	select {
	case <-ctx.Done():
		return dropShutdown
	case <-e.stopping: // One more round.
	case <-e.after(wait):
	}
	return ""
}

// end gives up what is left, unless somebody else has it.
func (d *delivery) end(reason string) error {
	if !d.acknowledged || d.e.persistent && reason == dropShutdown {
		left := 0
		for _, p := range d.later {
			left += p.Spans
		}
		return d.result(left)
	}
	for _, p := range d.later {
		d.drop(p, d.failure, reason)
	}
	return d.result(0)
}

// result is the error of a batch of which that many spans are left to somebody else. A batch of which nothing was taken is an error too, so
// that the helper counts it as failed.
func (d *delivery) result(left int) error {
	switch {
	case left > 0:
		return fmt.Errorf("%d spans were not sent: %s", left, d.failure.text)
	case d.sent == 0 && d.lost > 0:
		return consumererror.NewPermanent(fmt.Errorf("none of %d spans was taken: %s", d.lost, d.failure.text))
	}
	return nil
}
