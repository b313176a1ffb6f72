// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview // import "github.com/lenscol/lenscol/internal/runview"

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/sdk/rank"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// Source says whose telemetry a resource is. Numbers are rank.Unknown and texts "" where it does not say.
type Source struct {
	run, service, host, node   string
	rank, localRank, worldSize int

	entry *entry // where the model had it last; the model's lock guards it
}

// maxName is what a run, a service, a host or a node may have for a name, in bytes; the rest is cut off.
const maxName = 128

// NoRun stands for the run of ranks that name none.
const NoRun = "(none)"

// SourceOf reads a resource. What it returns points into the texts of the attributes, see Clone.
func SourceOf(attrs pcommon.Map) Source {
	id := identity.Of(attrs)
	s := Source{
		run: name(identity.Run(attrs)), service: name(identity.Service(attrs)),
		host: textOf(attrs, semconv.HostName), node: textOf(attrs, semconv.K8sNodeName),
		rank: rank.Unknown, localRank: id.LocalRank, worldSize: id.WorldSize,
	}
	if s.node == "" {
		s.node = s.host
	}
	if id.HasRank {
		s.rank = id.Rank
		if s.run == "" {
			s.run = NoRun
		}
	}
	return s
}

// Clone is for a source that is kept: it keeps no batch in memory.
func (s *Source) Clone() *Source {
	c := *s
	c.entry = nil
	for _, text := range []*string{&c.run, &c.service, &c.host, &c.node} {
		*text = strings.Clone(*text)
	}
	return &c
}

// Size is about how many bytes a clone takes.
func (s *Source) Size() int { return 128 + len(s.run) + len(s.service) + len(s.host) + len(s.node) }

func textOf(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
		return name(v.Str())
	}
	return ""
}

// name makes of a sender's text one that can be shown and kept: UTF-8, and not too long.
func name(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxName)], "")
}
