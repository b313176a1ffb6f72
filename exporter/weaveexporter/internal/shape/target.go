// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/binary"
	"hash/fnv"
	"strings"
	"unicode"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// maxTargetBytes is more than a name of W&B has; longer ones lead nowhere.
const maxTargetBytes = 256

// targeted fills in the halves of the project that a resource does not say, and returns the project. Weave routes by these two attributes, and
// drops spans without them in silence.
func (s *Shaper) targeted(list []attr, n *Counts) ([]attr, Target) {
	var t Target
	list = halved(list, n)
	list, t.Entity = filled(list, semconv.WandbEntity, s.opts.Target.Entity, n)
	list, t.Project = filled(list, semconv.WandbProject, s.opts.Target.Project, n)
	return list, t
}

// halved takes ENTITY/PROJECT, as W&B's pages show it, for both halves where the resource says it as its project and no other entity.
func halved(list []attr, n *Counts) []attr {
	i := find(list, semconv.WandbProject)
	if i < 0 {
		return list
	}
	entity, project, ok := strings.Cut(asText(list[i].val), "/")
	j := find(list, semconv.WandbEntity)
	if !ok || entity == "" || project == "" || j >= 0 && asText(list[j].val) != entity {
		return list
	}
	n[TypedKey]++
	list[i] = text(semconv.WandbProject, project)
	if j < 0 {
		list = append(list, text(semconv.WandbEntity, entity))
	}
	return list
}

func filled(list []attr, key, value string, n *Counts) ([]attr, string) {
	i := find(list, key)
	if i < 0 {
		if value == "" {
			return list, ""
		}
		return append(list, text(key, value)), value
	}
	said := asText(list[i].val)
	if name := strings.TrimSpace(said); name != "" { // It may come from a file, with a line break at its end.
		value = name
		if name != said {
			n[TypedKey]++
		}
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

// known tells whether there can be such a project.
func (t Target) known() bool {
	return t.Entity != "" && t.Project != "" && IsName(t.Entity) && IsName(t.Project)
}

// IsName tells whether the name of a W&B entity or project can be so: no path, and nothing that a header cannot hold.
func IsName(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool { return c == '/' || c == ':' || unicode.IsControl(c) })
}

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
