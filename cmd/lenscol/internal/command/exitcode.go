// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"errors"
	"fmt"
)

// Exit codes: 0, it is done; 1, the data or the world says no; 2, the command line cannot be meant so. `emit-spans` and
// `set-slurm-resource-attrs` have those of NeMo Lens, `exec` has its command's.
const (
	exitNo    = 1
	exitUsage = 2
)

// exitError is an error with an exit code of its own, or, without an error, that code alone.
type exitError struct {
	err  error
	code int
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// usage marks err as one of the command line.
func usage(err error) error { return exitError{err, exitUsage} }

// exitCodeOf is the exit code of a command that returned err, and whether there is something to print.
func exitCodeOf(err error) (code int, print bool) {
	var coded exitError
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &coded):
		return coded.code, coded.err != nil
	}
	return exitNo, true
}
