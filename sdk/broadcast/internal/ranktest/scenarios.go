// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ranktest // import "github.com/lenscol/lenscol/sdk/broadcast/internal/ranktest"

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/sdk/broadcast"
)

const (
	worldSize = 4
	ample     = time.Minute            // for what ends by itself
	short     = 500 * time.Millisecond // for what the context must end
)

// Run tries a transport among four processes. where makes an address or a folder.
func Run(t *testing.T, where func(*testing.T) string) {
	spec := func(t *testing.T) Spec {
		return Spec{
			Member:       broadcast.Member{Job: "job 7 of " + t.Name(), WorldSize: worldSize},
			Where:        where(t),
			Traceparents: []string{Traceparent(1)},
			Timeout:      ample,
		}
	}
	t.Run("several rounds, one without a trace", func(t *testing.T) {
		spec := spec(t)
		spec.Traceparents = []string{Traceparent(1), "", Traceparent(3), Traceparent(4)}
		spec.all(t)
	})
	t.Run("another source than rank 0", func(t *testing.T) {
		spec := spec(t)
		spec.Source = 2
		spec.all(t)
	})
	t.Run("a late joiner", func(t *testing.T) {
		spec := spec(t)
		source := spec.Start(t, 0)
		for _, rank := range []*Process{spec.Start(t, 1), spec.Start(t, 2)} {
			spec.good(t, rank)
		}
		require.True(t, source.Running(), "rank 3 has not come")
		spec.good(t, spec.Start(t, 3))
		spec.good(t, source)
	})
	t.Run("a source that comes last", func(t *testing.T) {
		spec := spec(t)
		others := []*Process{spec.Start(t, 1), spec.Start(t, 2), spec.Start(t, 3)}
		for _, rank := range others {
			require.True(t, rank.Running())
		}
		spec.good(t, spec.Start(t, 0))
		for _, rank := range others {
			spec.good(t, rank)
		}
	})
	t.Run("a dead source", func(t *testing.T) {
		spec := spec(t)
		spec.Timeout = short
		others := []*Process{spec.Start(t, 1), spec.Start(t, 2), spec.Start(t, 3)}
		for _, rank := range others {
			nothing(t, rank)
		}
	})
	t.Run("missing ranks", func(t *testing.T) {
		spec := spec(t)
		one := spec.Start(t, 1)
		spec.Timeout = 6 * short // in which rank 1, which waits already, must have come
		source := spec.Start(t, 0)
		spec.good(t, one)
		report := source.Report()
		require.Contains(t, report.Errors[0], "2 of 4 ranks did not come for it (2, 3)")
		require.True(t, report.TimedOut[0])
		require.Equal(t, carriers(spec.Traceparents...), report.Carriers, "the source has its own")
	})
	t.Run("a source that is killed, and the job again under its name", func(t *testing.T) {
		spec := spec(t)
		source := spec.Start(t, 0)
		spec.good(t, spec.Start(t, 1))
		source.Kill()
		late := spec
		late.Timeout = short
		nothing(t, late.Start(t, 2))
		spec.Traceparents = []string{Traceparent(2)}
		spec.all(t)
	})
}

// all starts all ranks and expects that each has what the source sent.
func (s Spec) all(t *testing.T) {
	t.Helper()
	var ranks []*Process
	for rank := range worldSize {
		ranks = append(ranks, s.Start(t, rank))
	}
	for _, rank := range ranks {
		s.good(t, rank)
	}
}

// good expects that a rank has what the source sent.
func (s Spec) good(t *testing.T, rank *Process) {
	t.Helper()
	report := rank.Report()
	require.Equalf(t, make([]string, len(s.Traceparents)), report.Errors, "rank %d", rank.rank)
	require.Equalf(t, carriers(s.Traceparents...), report.Carriers, "rank %d", rank.rank)
}

// nothing expects that the context ended the wait of a rank.
func nothing(t *testing.T, rank *Process) {
	t.Helper()
	report := rank.Report()
	require.Truef(t, report.TimedOut[0], "rank %d: %v", rank.rank, report.Errors)
	require.Nil(t, report.Carriers[0])
}
