// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import "sync"

// chunk is one request on its way into a file: its lines, ready to be written, and the scopes that they refer to.
//
// It belongs to the request until it is submitted, then to the file's writer until done is answered.
type chunk struct {
	encoder
	buf   []byte
	parts []part
	items int        // spans, points or records
	done  chan error // holds the writer's answer, from commit on
}

// part is a run of lines of one scope, nil where the lines need no definitions; it ends at this offset of the chunk's bytes.
type part struct {
	scope *scope
	end   int
}

func (c *chunk) endPart(s *scope, items int) {
	c.parts = append(c.parts, part{scope: s, end: len(c.buf)})
	c.items += items
}

// alone is how many bytes the chunk takes, at most, in a file that has none of its definitions.
func (c *chunk) alone() int64 {
	n := len(c.buf)
	for _, p := range c.parts {
		if p.scope != nil {
			n += p.scope.definitionBytes()
		}
	}
	return int64(n)
}

var chunks = sync.Pool{New: func() any { return new(chunk) }}

func newChunk() *chunk { return chunks.Get().(*chunk) }

// maxPooledBytes keeps one huge request from holding its buffer for ever.
const maxPooledBytes = 4 << 20

// release gives a chunk back that was answered, or never committed.
func (c *chunk) release() {
	if cap(c.buf) > maxPooledBytes || cap(c.scratch) > maxPooledBytes {
		return
	}
	clear(c.parts) // so that the pool keeps no scope alive
	c.buf, c.parts, c.items, c.done = c.buf[:0], c.parts[:0], 0, nil
	c.faults = faults{}
	chunks.Put(c)
}
