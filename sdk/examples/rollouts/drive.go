// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/instruments"
	"github.com/lenscol/lenscol/sdk/semconv"
)

var rollout = lens.Group("rollout")

type driver struct {
	settings
	client  *http.Client
	metrics instruments.Gym
}

func newDriver(s settings, meter metric.Meter) driver {
	return driver{s, newClient(s), instruments.NewGym(meter, instruments.NewNames)}
}

// result is what the driver prints.
type result struct {
	Rollouts int     `json:"rollouts"`
	OK       int     `json:"ok"`
	InFlight int     `json:"in_flight"` // most at once
	Reward   float64 `json:"reward"`    // mean
}

// run collects all rollouts. Its error is that of the first that failed.
func (d driver) run(ctx context.Context) (result, error) {
	var (
		mu    sync.Mutex
		total = result{Rollouts: d.rollouts}
		first error
		wg    sync.WaitGroup
	)
	defer d.client.CloseIdleConnections()
	places := make(chan struct{}, d.inFlight)
	for id := range d.rollouts {
		begin := time.Now()
		places <- struct{}{}
		d.metrics.QueueWait.RecordDuration(ctx, time.Since(begin))
		wg.Go(func() {
			defer func() { <-places }()
			a, err := d.rollout(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if first == nil {
					first = fmt.Errorf("rollout %d: %w", id, err)
				}
				return
			}
			total.OK++
			total.Reward += a.Reward
			total.InFlight = max(total.InFlight, a.InFlight)
		})
	}
	wg.Wait()
	if total.OK > 0 {
		total.Reward /= float64(total.OK)
	}
	return total, first
}

// rollout is a trace of its own.
func (d driver) rollout(ctx context.Context, id int) (a answer, err error) {
	begin := time.Now()
	ctx, span := rollout.StartWith(ctx, "gym.rollout", lens.SpanOptions{Root: true}, lens.Int(semconv.GymRolloutID, id))
	defer span.Finish(&err)
	a, err = ask(ctx, d.client, d.target+"/run", question{ID: id})
	outcome := "scored"
	if err != nil {
		outcome = "dropped"
	}
	d.metrics.RolloutsCompleted.Record(ctx, 1, attribute.String(semconv.GymRolloutOutcome, outcome))
	d.metrics.RolloutDuration.RecordDuration(ctx, time.Since(begin))
	return a, err
}
