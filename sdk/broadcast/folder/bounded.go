// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package folder // import "github.com/lenscol/lenscol/sdk/broadcast/folder"

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// grace is how long bounded waits for what do says of the end of ctx, which tells more than that it has ended.
const grace = time.Second

var errHangs = errors.New("the file system does not answer")

// bounded calls do, which may hang whatever becomes of ctx, as calls of a shared file system do, and returns when do does, or a
// second after ctx has ended. What hangs goes on in the background, and what it returns is lost.
func bounded[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
		var none T
		return none, fmt.Errorf("%w: %w", context.Cause(ctx), errHangs)
	}
}
