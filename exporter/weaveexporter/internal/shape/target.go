// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/binary"
	"hash/fnv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// maxTargetBytes is more than a name of W&B has; longer ones lead nowhere.
const maxTargetBytes = 256

// targeted fills in the halves of the project that a resource does not say, and returns the project. Weave routes by these two attributes, and
// drops spans without them in silence.
func (s *Shaper) targeted(list []attr, n *Counts) ([]attr, Target) {
	var t Target
	list, t.Entity = filled(list, semconv.WandbEntity, s.opts.Target.Entity, n)
	list, t.Project = filled(list, semconv.WandbProject, s.opts.Target.Project, n)
	return list, t
}

func filled(list []attr, key, value string, n *Counts) ([]attr, string) {
	i := find(list, key)
	if i < 0 {
		if value == "" {
			return list, ""
		}
		return append(list, text(key, value)), value
	}
	if said := asText(list[i].val); said != "" {
		value = said
	}
	if len(value) > maxTargetBytes {
		n[Truncated]++
		value = cutText(value, maxTargetBytes)
	}
	if list[i].val.Type() != pcommon.ValueTypeStr || list[i].val.Str() != value {
		list[i] = text(key, value)
	}
	return list, value
}

func (t Target) known() bool { return t.Entity != "" && t.Project != "" }

// whoKeys tell processes apart. Shaping changes none of them, so that a batch that comes back is of the same process.
var whoKeys = []string{
	"service.name", semconv.ServiceInstanceID, semconv.DLRank, semconv.DLRankOld, semconv.HostName, "process.pid", "nv.dl.role", semconv.K8sPodName,
}

// who is a hash of the process that a resource is. Never 0.
func who(list []attr) uint64 {
	h := fnv.New64a()
	for _, key := range whoKeys {
		var value []byte
		if i := find(list, key); i >= 0 {
			value = appendJSON(nil, list[i].val)
		}
		h.Write(binary.AppendUvarint(nil, uint64(len(value))))
		h.Write(value)
	}
	return h.Sum64() | 1
}

func (t Target) hash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(t.String()))
	return h.Sum64()
}
