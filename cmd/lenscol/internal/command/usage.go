// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"errors"

	"github.com/spf13/cobra"
)

// markUsage makes what cobra finds wrong with arguments an error of the command line, of a command and all below it: what it is about
// arguments, and flags that are required, of which it only says after them.
func markUsage(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		markUsage(sub)
	}
	check := cmd.Args
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			err = cmd.ValidateRequiredFlags()
		}
		if err == nil || errors.As(err, new(exitError)) {
			return err
		}
		return usage(err)
	}
}
