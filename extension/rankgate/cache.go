// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"

import (
	"encoding/binary"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/runview"
)

// cache holds the decisions about resources by the bytes that they come in. A process sends the same ones with every
// request, so a resource is decoded once.
//
// It is bounded by the bytes of its keys: when the young half is full it becomes the old half, and what was in the old
// half is gone unless it was used since.
type cache struct {
	decider *ranks.Decider

	mu         sync.RWMutex
	young, old map[string]decisions
	size       int // bytes of the keys in young
}

// decisions are what is known of a resource.
type decisions struct {
	bySignal [ranks.Signals]ranks.Decision
	source   *runview.Source // nil where nobody looks at the runs
}

const (
	maxCacheHalf = 8 << 20  // bytes of keys
	maxCacheKey  = 16 << 10 // bytes of a resource; larger ones are decoded each time
	entryCost    = 256      // bytes, about, that an entry takes beside its key
)

func newCache(d *ranks.Decider) *cache {
	return &cache{decider: d, young: map[string]decisions{}}
}

// decide is the decision about the resource with those bytes, and whose it is, where somebody looks at the runs. It is false
// where they are no resource.
func (c *cache) decide(signal ranks.Signal, resource []byte, watched bool) (ranks.Decision, *runview.Source, bool) {
	c.mu.RLock()
	d, young := c.young[string(resource)]
	old := false
	if !young {
		d, old = c.old[string(resource)]
	}
	c.mu.RUnlock()
	known := (young || old) && (d.source != nil || !watched)
	if young && known {
		return d.bySignal[signal], d.source, true
	}
	if !known {
		attrs, ok := decodeResource(resource)
		if !ok {
			return ranks.Decision{}, nil, false
		}
		for i := range d.bySignal {
			d.bySignal[i] = c.decider.Decide(ranks.Signal(i), attrs)
		}
		if watched {
			runview.Complete(attrs)
			source := runview.SourceOf(attrs)
			d.source = source.Clone()
		}
	}
	c.add(resource, d)
	return d.bySignal[signal], d.source, true
}

func (c *cache) add(resource []byte, d decisions) {
	if len(resource) > maxCacheKey {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.young[string(resource)]; ok && have.source != nil {
		return
	} else if ok {
		c.size -= len(resource) + entryCost
	}
	cost := len(resource) + entryCost
	if d.source != nil {
		cost += d.source.Size()
	}
	if c.size += cost; c.size > maxCacheHalf {
		c.old, c.young, c.size = c.young, map[string]decisions{}, cost
	}
	c.young[string(resource)] = d
}

// decodeResource has pdata decode a request that holds the resource alone, so that what is read of it is what a
// processor would read.
func decodeResource(resource []byte) (pcommon.Map, bool) {
	inner := appendField(nil, fieldResource, resource)
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(appendField(nil, fieldResourceItems, inner)); err != nil {
		return pcommon.Map{}, false
	}
	return request.Traces().ResourceSpans().At(0).Resource().Attributes(), true
}

// appendField appends a field of bytes: tag, length, content.
func appendField(dst []byte, field int, content []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(field)<<3|wireLen)
	dst = binary.AppendUvarint(dst, uint64(len(content)))
	return append(dst, content...)
}
