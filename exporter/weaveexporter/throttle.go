// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"

import (
	"sync"
	"time"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/shape"
)

// throttle is the pause that Weave asked for, of all requests.
type throttle struct {
	mu  sync.Mutex
	end time.Time
}

// extend makes the pause last until wait after now, unless it lasts longer already, and reports whether none was running.
func (t *throttle) extend(now time.Time, wait time.Duration) (began bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	began = !t.end.After(now)
	if end := now.Add(wait); end.After(t.end) {
		t.end = end
	}
	return began
}

// left is how long the pause lasts still; 0: there is none.
func (t *throttle) left(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.end.Sub(now), 0)
}

// targets remembers projects for a while.
type targets struct {
	mu    sync.Mutex
	until map[shape.Target]time.Time
}

const (
	targetsFor = 5 * time.Minute
	maxTargets = 1000 // The senders name them: what is beyond starts anew.
)

func (t *targets) add(target shape.Target, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until == nil || len(t.until) >= maxTargets {
		t.until = map[shape.Target]time.Time{}
	}
	t.until[target] = now.Add(targetsFor)
}

func (t *targets) has(target shape.Target, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Before(t.until[target])
}

func (t *targets) remove(target shape.Target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.until, target)
}
