// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity reads from a resource whose telemetry it is: which run, which rank, which service.
// Both generations of names are accepted, the new one first.
package identity // import "github.com/lenscol/lenscol/internal/identity"

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/sdk/rank"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// Run names the run that a resource belongs to: the first of nemo.run.id, nv.dl.run.uuid, nv.dl.job.uuid and the
// SLURM job id (with its array task) that is there and not empty; else "".
func Run(attrs pcommon.Map) string {
	for _, key := range [...]string{semconv.RunID, semconv.DLRunUUID, semconv.DLJobUUID} {
		if v := text(attrs, key); v != "" {
			return v
		}
	}
	return slurmJob(attrs)
}

// slurmJob is the id of the SLURM job. NeMo Lens up to 0.2 sends the raw id, newer ones `{array job}_{task}`; a raw
// id next to the array's own attributes is brought to that form.
func slurmJob(attrs pcommon.Map) string {
	id := text(attrs, semconv.SlurmJobID)
	array, task := text(attrs, semconv.SlurmArrayJobID), text(attrs, semconv.SlurmArrayTaskID)
	if id == "" || array == "" || task == "" || array == id || strings.Contains(id, "_") {
		return id
	}
	return array + "_" + task
}

// Rank is the rank that a resource claims: nv.dl.rank, else dl.rank, else the `-rank<N>` end of service.instance.id.
// It is false where there is none, or none that can be read: a whole number or decimal text, 0 to 2^31-1.
func Rank(attrs pcommon.Map) (int, bool) {
	for _, key := range [...]string{semconv.DLRank, semconv.DLRankOld} {
		if n, ok := number(attrs, key); ok {
			return n, true
		}
	}
	return rank.FromInstanceID(text(attrs, semconv.ServiceInstanceID))
}

// Service is the resource's service.name, or "".
func Service(attrs pcommon.Map) string { return text(attrs, semconv.ServiceName) }

// number reads a whole number or decimal text.
func number(attrs pcommon.Map, key string) (int, bool) {
	v, ok := attrs.Get(key)
	if !ok {
		return 0, false
	}
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return rank.FromInt(v.Int())
	case pcommon.ValueTypeStr:
		return rank.Parse(v.Str())
	default:
		return 0, false
	}
}

// text reads a text, or a whole number as its decimal text (a SLURM id may come as either).
func text(attrs pcommon.Map, key string) string {
	v, ok := attrs.Get(key)
	if !ok {
		return ""
	}
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(v.Int(), 10)
	default:
		return ""
	}
}
