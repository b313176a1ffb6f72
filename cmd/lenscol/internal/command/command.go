// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of lenscol: upstream's own (run, validate, print-config, components, featuregate)
// with a default config, and what is ours beside it (configs, version, demo). One file holds one command.
package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/otelcol"

	"github.com/lenscol/lenscol/configs"
)

// defaultURI is the config that runs when none is given.
const defaultURI = "lenscol:" + configs.Default

// Main runs the command line of the process and returns its exit code: 0, or 1 after an error was printed to stderr, once.
func Main(set otelcol.CollectorSettings, commit string) int {
	root := New(set, commit)
	if err := root.Execute(); err != nil {
		fmt.Fprintf(os.Stderr, "lenscol: error: %v\n", err)
		return 1
	}
	return 0
}

// New builds the command tree on upstream's own.
func New(set otelcol.CollectorSettings, commit string) *cobra.Command {
	root := otelcol.NewCommand(set)
	root.SilenceErrors = true // Main prints them.
	root.PersistentPreRunE = useDefaultConfig
	runCommand(root, set)
	root.AddCommand(newConfigsCommand(), newVersionCommand(set.BuildInfo, commit), newDemoCommand())
	root.SetFlagErrorFunc(suggestFlag)
	for _, cmd := range append(root.Commands(), root) {
		if cmd.Name() != "featuregate" {
			cmd.Args = noArguments
		}
	}
	return root
}

// useDefaultConfig gives a command that takes --config the embedded default where no --config was given.
//
// A default in ResolverSettings.URIs would not do: upstream replaces it as soon as there is a --set. A command
// of ours must not have a PersistentPreRun of its own, which would hide this one.
func useDefaultConfig(cmd *cobra.Command, _ []string) error {
	if flag := cmd.Flags().Lookup("config"); flag != nil && !flag.Changed {
		return flag.Value.Set(defaultURI)
	}
	return nil
}
