// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"errors"
	"io"
)

// Files reads several files, one after the other, as one stream of records. What is wrong with one costs the others nothing.
type Files struct {
	// OnProblem is told of every [*Damage], and of files that cannot be opened or read on. Not nil.
	OnProblem func(Input, error)
	// OnFile is told of every file that was read to its end. May be nil.
	OnFile func(Input, Stats)

	inputs  []Input
	current *Reader
	done    int64 // bytes of the files before
	size    int64 // bytes of all files when they were found
}

// NewFiles returns a reader of the inputs in their order.
func NewFiles(inputs []Input, onProblem func(Input, error)) *Files {
	f := &Files{OnProblem: onProblem, inputs: inputs}
	for _, in := range inputs {
		f.size += in.Size
	}
	return f
}

// Next returns the next record and the file that it is of, or io.EOF, never another error.
func (f *Files) Next() (Record, Input, error) {
	for len(f.inputs) > 0 {
		in := f.inputs[0]
		if f.current == nil {
			r, err := Open(in)
			if err != nil {
				f.OnProblem(in, err)
				f.inputs = f.inputs[1:]
				continue
			}
			f.current = r
		}
		rec, err := f.current.Next()
		var bad *Damage
		switch {
		case err == nil:
			return rec, in, nil
		case errors.As(err, &bad):
			f.OnProblem(in, err)
		default:
			if !errors.Is(err, io.EOF) {
				f.OnProblem(in, err)
			}
			f.leave(in)
		}
	}
	return Record{}, Input{}, io.EOF
}

func (f *Files) leave(in Input) {
	stats := f.current.Stats()
	f.done += f.current.Read()
	if err := f.current.Close(); err != nil {
		f.OnProblem(in, err)
	}
	f.current, f.inputs = nil, f.inputs[1:]
	if f.OnFile != nil {
		f.OnFile(in, stats)
	}
}

// Progress is how many bytes of all files were read, and how many there were when the files were found, 0 where that is not known.
func (f *Files) Progress() (read, size int64) {
	if f.current != nil {
		return f.done + f.current.Read(), f.size
	}
	return f.done, f.size
}

// Close leaves the file in hand.
func (f *Files) Close() error {
	if f.current == nil {
		return nil
	}
	err := f.current.Close()
	f.current, f.inputs = nil, nil
	return err
}
