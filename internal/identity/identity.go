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

// Run names the run that a resource belongs to: the first of nemo.run.id, nv.dl.run.uuid (else nemo.lens.run_uuid), nv.dl.job.uuid (else
// nemo.lens.job_uuid) and the SLURM job id (with its array task) that is there and not empty; else "".
func Run(attrs pcommon.Map) string {
	for _, key := range [...]string{semconv.RunID, semconv.DLRunUUID, semconv.DLRunUUIDOld, semconv.DLJobUUID, semconv.DLJobUUIDOld} {
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
	id := Of(attrs)
	return id.Rank, id.HasRank
}

// Identity is the rank of a resource and where that rank stands in its world.
type Identity struct {
	rank.Identity // the rank as Rank reads it; world size and local rank Unknown where they cannot be read
	HasRank       bool
	Disagrees     bool // nv.dl.rank and dl.rank name different ranks; the first holds
}

// Of reads the identity in one walk over the attributes. Of a key that is there twice, the first holds.
func Of(attrs pcommon.Map) Identity {
	var rankNew, rankOld, worldNew, worldOld, localNew, localOld claim
	instance := ""
	for key, v := range attrs.All() {
		switch key {
		case semconv.DLRank:
			rankNew.read(v)
		case semconv.DLRankOld:
			rankOld.read(v)
		case semconv.DLWorldSize:
			worldNew.read(v)
		case semconv.DLWorldSizeOld:
			worldOld.read(v)
		case semconv.DLLocalRank:
			localNew.read(v)
		case semconv.DLLocalRankOld:
			localOld.read(v)
		case semconv.ServiceInstanceID:
			if instance == "" && v.Type() == pcommon.ValueTypeStr {
				instance = v.Str()
			}
		}
	}
	id := Identity{Disagrees: rankNew.ok && rankOld.ok && rankNew.n != rankOld.n}
	if id.Rank, id.HasRank = rankNew.or(rankOld); !id.HasRank {
		id.Rank, id.HasRank = rank.FromInstanceID(instance)
	}
	var ok bool
	if id.WorldSize, ok = worldNew.or(worldOld); !ok {
		id.WorldSize = rank.Unknown
	}
	if id.LocalRank, ok = localNew.or(localOld); !ok {
		id.LocalRank = rank.Unknown
	}
	return id
}

// claim is what the first attribute of a name says: n where it can be read.
type claim struct {
	n        int
	seen, ok bool
}

func (c *claim) read(v pcommon.Value) {
	if !c.seen {
		c.seen = true
		c.n, c.ok = number(v)
	}
}

func (c claim) or(other claim) (int, bool) {
	if c.ok {
		return c.n, true
	}
	return other.n, other.ok
}

// Service is the resource's service.name, or "".
func Service(attrs pcommon.Map) string { return text(attrs, semconv.ServiceName) }

// number reads a whole number or decimal text.
func number(v pcommon.Value) (int, bool) {
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
