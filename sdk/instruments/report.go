// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments // import "github.com/lenscol/lenscol/sdk/instruments"

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// report counts values that are left out, and logs the first of each key. The zero value lacks skipped only.
type report struct {
	group   string
	skipped *atomic.Uint64

	mu   sync.Mutex
	seen map[string]struct{}
}

// maxReported bounds how many keys are logged: keys that are made of data would have no end.
const maxReported = 256

func (r *report) once(key, message string, args ...any) { r.many(1, key, message, args...) }

func (r *report) many(n int, key, message string, args ...any) {
	if n == 0 {
		return
	}
	r.skipped.Add(uint64(n))
	if r.first(key) {
		if r.group != "" {
			args = append(args, "group", r.group, "key", key)
		}
		slog.Warn(message, args...)
	}
}

func (r *report) first(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, seen := r.seen[key]; seen || len(r.seen) >= maxReported {
		return false
	}
	if r.seen == nil {
		r.seen = make(map[string]struct{})
	}
	r.seen[key] = struct{}{}
	return true
}

func (r *report) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, key)
}
