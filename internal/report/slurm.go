// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// slurmJob has the attempts of a job as SLURM's accounting knows them.
type slurmJob []slurmAttempt

type slurmAttempt struct {
	from, to int64
	state    string
}

const maxSlurmAttempts = 1 << 10

// take takes the span of an allocation.
func (j *slurmJob) take(span ptrace.Span, t told) {
	if span.Name() != "slurm.record.allocation" || len(*j) >= maxSlurmAttempts {
		return
	}
	*j = append(*j, slurmAttempt{t.from, t.to, clip(text(span.Attributes(), semconv.SlurmState))})
}

// name tells attempts of the run SLURM's state: of the allocation that they began in.
func (j slurmJob) name(attempts []Attempt) {
	const second = 1_000_000_000 // accounting has whole ones
	for i := range attempts {
		for _, s := range j {
			if attempts[i].BeginNS >= s.from-second && attempts[i].BeginNS < s.to {
				attempts[i].SlurmState = s.state
			}
		}
	}
}
