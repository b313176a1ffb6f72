// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader // import "github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"

import (
	"errors"
	"fmt"
)

// What can be wrong with a line beside a key's value, for errors.Is on a [LineError].
var (
	// ErrNotJSON says that the line is not JSON, or not UTF-8.
	ErrNotJSON = errors.New("not JSON")
	// ErrUndefined says that the line names a scope or a resource that no line above it defines.
	ErrUndefined = errors.New("no line above defines it")
	// ErrTooLong says that the line is longer than [WithMaxLineBytes] allows.
	ErrTooLong = errors.New("line too long")
)

// LineError is what is wrong with one line. It costs that line alone: the reader stands behind it and can go on.
type LineError struct {
	File   string // as given to New
	Line   int64  // counted from 1
	Offset int64  // of the line's first byte, counted from 0
	Err    error  // names the key and the value at fault
}

func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *LineError) Unwrap() error { return e.Err }
