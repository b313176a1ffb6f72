// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lenscol/lenscol/internal/advice"
)

// noArguments refuses positional arguments and says what was probably meant.
//
// cobra's own check lets a subcommand without one take anything: `lenscol validate my.yaml` would say that the default
// config is valid.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	arg := args[0]
	if ext := filepath.Ext(arg); ext == ".yaml" || ext == ".yml" || strings.HasPrefix(arg, "lenscol:") {
		return usage(fmt.Errorf("%q takes no argument %q, did you mean --config %s?", cmd.CommandPath(), arg, arg))
	}
	if cmd.HasAvailableSubCommands() {
		cmd.SuggestionsMinimumDistance = 2 // Letters; cobra's default, which it sets only for errors of its own.
		known := cmd.SuggestionsFor(arg)
		if len(known) > 0 {
			return usage(fmt.Errorf("unknown command %q, did you mean %q? `%s --help` lists all commands",
				arg, cmd.CommandPath()+" "+known[0], cmd.CommandPath()))
		}
		return usage(fmt.Errorf("unknown command %q, `%s --help` lists all commands", arg, cmd.CommandPath()))
	}
	return usage(fmt.Errorf("%q takes no argument, got %q", cmd.CommandPath(), arg))
}

// suggestFlag adds the nearest flag to the error about an unknown one.
func suggestFlag(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return fmt.Errorf("%w, `%s --help` lists all flags", err, cmd.CommandPath())
	}
	nearest, best := "", 3 // Further away is another word.
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		d := advice.Distance(name, f.Name)
		if strings.HasPrefix(f.Name, name) && len(name) > 1 {
			d = 1
		}
		if d < best {
			nearest, best = f.Name, d
		}
	})
	if nearest == "" {
		return fmt.Errorf("%w, `%s --help` lists all flags", err, cmd.CommandPath())
	}
	return fmt.Errorf("%w, did you mean --%s?", err, nearest)
}
