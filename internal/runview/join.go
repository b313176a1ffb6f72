// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview // import "github.com/lenscol/lenscol/internal/runview"

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// process is the one model of the process. It stays when nobody looks any more: after a reload of the config the page
// knows what it knew.
var process struct {
	sync.Mutex
	model    *Model
	watchers int
}

var current atomic.Pointer[Model]

// Join is for who looks: the process's model, which is reported to until the last has left. Then the config has ended, and
// with it all who report: those of the next one count from their first report on.
func Join() (m *Model, leave func()) {
	process.Lock()
	defer process.Unlock()
	if process.model == nil {
		process.model = New()
	}
	process.watchers++
	current.Store(process.model)
	return process.model, sync.OnceFunc(func() {
		process.Lock()
		defer process.Unlock()
		if process.watchers--; process.watchers == 0 {
			current.Store(nil)
			retired.Store(feeds.Load())
		}
	})
}

// Current is for who reports: the model, or nil where nobody looks.
func Current() *Model { return current.Load() }

// Completer adds to a resource what run_id_enricher will add to it, the run above all. Who sees a resource before that
// asks it.
type Completer func(attrs pcommon.Map)

var completer atomic.Pointer[Completer]

// SetCompleter makes c the completer until it is removed, or another takes its place.
func SetCompleter(c Completer) (remove func()) {
	completer.Store(&c)
	return func() { completer.CompareAndSwap(&c, nil) }
}

// Complete has the completer complete a resource, where there is one.
func Complete(attrs pcommon.Map) {
	if c := completer.Load(); c != nil {
		(*c)(attrs)
	}
}
