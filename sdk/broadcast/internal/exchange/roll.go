// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package exchange // import "github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Roll is the list of ranks that a source has yet to serve. It is safe for concurrent use.
type Roll struct {
	mu      sync.Mutex
	served  []bool // by rank
	missing int
	all     chan struct{} // closed when nobody is missing
}

// NewRoll is that of a world in which source alone has been served.
func NewRoll(worldSize, source int) *Roll {
	r := &Roll{served: make([]bool, worldSize), missing: worldSize, all: make(chan struct{})}
	r.Served(source)
	return r
}

// Served notes that a rank of the world has what was sent.
func (r *Roll) Served(rank int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.served[rank] {
		return
	}
	r.served[rank] = true
	if r.missing--; r.missing == 0 {
		close(r.all)
	}
}

// Wait returns nil when every rank has been served, and else when ctx ends: its error and that of [Roll.Missing].
func (r *Roll) Wait(ctx context.Context) error {
	select {
	case <-r.all:
	case <-ctx.Done():
	}
	if err := r.Missing(); err != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return nil
}

// maxNamed is how many missing ranks an error names.
const maxNamed = 8

// Missing is nil when every rank has been served, and else an error that names those who have not.
func (r *Roll) Missing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing == 0 {
		return nil
	}
	var names []string
	for rank, served := range r.served {
		if served {
			continue
		}
		if len(names) == maxNamed {
			names = append(names, "…")
			break
		}
		names = append(names, strconv.Itoa(rank))
	}
	return fmt.Errorf("%d of %d ranks did not come for it (%s)", r.missing, len(r.served), strings.Join(names, ", "))
}
