// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Result is what a batch became. Every span of the batch is in one request, or counted in Dropped.
type Result struct {
	Requests  []Request
	Dropped   Counts // spans
	Rewritten Counts // changes
	// Unroutable are service names of resources without a project, a few of them, for a log line.
	Unroutable []string
}

// Shaper shapes batches. It may be used by many goroutines at once.
type Shaper struct {
	opts Options
}

// New returns a shaper. Its error is that of [Options.Validate].
func New(o Options) (*Shaper, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Shaper{opts: o}, nil
}

// Shape turns td into requests, and does not touch it. The same batches in the same order, given to a new shaper, give the same requests.
func (s *Shaper) Shape(td ptrace.Traces) Result {
	return Result{}
}
