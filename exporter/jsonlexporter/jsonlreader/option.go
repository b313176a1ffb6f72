// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader // import "github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"

type config struct {
	maxLineBytes    int
	maxBatchRecords int
	maxBatchBytes   int
	filter          func(Record) bool
}

// Option changes how a [Reader] reads.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// WithMaxLineBytes bounds the line that is held in memory, in bytes without its newline, 256 MiB by default. A longer line is
// read past without being held, and is a [LineError] of [ErrTooLong].
func WithMaxLineBytes(n int) Option {
	return optionFunc(func(c *config) { c.maxLineBytes = n })
}

// WithMaxBatchRecords bounds the spans, points or log records of a [Batch], 1,000 by default.
func WithMaxBatchRecords(n int) Option {
	return optionFunc(func(c *config) { c.maxBatchRecords = n })
}

// WithMaxBatchBytes bounds the lines that a [Batch] is made from, in bytes, 16 MiB by default. A batch takes one record however
// long it is.
func WithMaxBatchBytes(n int) Option {
	return optionFunc(func(c *config) { c.maxBatchBytes = n })
}

// WithFilter leaves out the records for which keep is false. keep must not change the record.
func WithFilter(keep func(Record) bool) Option {
	return optionFunc(func(c *config) { c.filter = keep })
}
