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
	begun int        // items of the part that is not ended yet
	done  chan error // holds the writer's answer, from commit on

	// handOn takes what there is of a request that became large, so that its lines are never all in memory: what they repeat can make them
	// many times the request. nil keeps the request whole.
	handOn func()
	err    error // of what was handed on
}

// part is a run of lines of one scope, nil where the lines need no definitions; it ends at this offset of the chunk's bytes.
type part struct {
	scope *scope
	end   int
}

// mostChunk is the bytes from which a request is written in several chunks.
const mostChunk = 16 << 20

// endLine ends a line of a part, which holds so many items.
func (c *chunk) endLine(s *scope, items int) {
	c.begun += items
	if len(c.buf) >= mostChunk && c.handOn != nil {
		c.endPart(s)
		c.handOn()
	}
}

func (c *chunk) endPart(s *scope) {
	if c.begun == 0 {
		return
	}
	c.parts = append(c.parts, part{scope: s, end: len(c.buf)})
	c.items += c.begun
	c.begun = 0
}

// takeParts takes the parts of a chunk that are ended for one of their own.
func (c *chunk) takeParts() *chunk {
	part := newChunk()
	part.buf, c.buf = c.buf, part.buf
	part.parts, c.parts = c.parts, part.parts
	part.items, c.items = c.items, 0
	part.faults, c.faults = c.faults, faults{}
	return part
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
	c.begun, c.handOn, c.err, c.faults = 0, nil, nil, faults{}
	chunks.Put(c)
}
