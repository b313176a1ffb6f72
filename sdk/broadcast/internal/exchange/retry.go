// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package exchange // import "github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Final marks an error after which asking again is of no use.
func Final(err error) error { return backoff.Permanent(err) }

// Retry calls try until it succeeds, fails finally, or ctx ends; then the error is that of ctx with the last one of try. It
// waits 10 ms at first and at most a second, spread at random, so that a thousand ranks do not ask at once.
func Retry[T any](ctx context.Context, try func() (T, error)) (T, error) {
	waits := &backoff.ExponentialBackOff{
		InitialInterval:     10 * time.Millisecond,
		RandomizationFactor: 0.5,
		Multiplier:          1.5,
		MaxInterval:         time.Second,
	}
	var last error
	out, err := backoff.Retry(ctx, func() (T, error) {
		out, err := try()
		// Once ctx has ended, try fails by that: what it said before tells more.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		return out, err
	}, backoff.WithBackOff(waits), backoff.WithMaxElapsedTime(0))
	if err != nil && ctx.Err() != nil && !errors.Is(last, context.Cause(ctx)) {
		return out, fmt.Errorf("%w: %w", context.Cause(ctx), last)
	}
	return out, err
}
