// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/configs"
)

func newConfigsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "configs",
		Short: "Lists the configs that are embedded into lenscol",
		Long: `Lists the configs that are embedded into lenscol, one line each: name and purpose.

An embedded config is run with --config lenscol:NAME; without --config, lenscol runs lenscol:` + configs.Default + `.`,
		Example: `  lenscol configs
  lenscol configs show archive
  lenscol configs show archive > my.yaml && lenscol --config my.yaml`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := []embedded{}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, name := range configs.Names() {
				text, err := configs.Read(name)
				if err != nil {
					return err
				}
				list = append(list, embedded{name, configs.Summary(text)})
				fmt.Fprintf(w, "%s\t%s\n", name, configs.Summary(text))
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string][]embedded{"configs": list})
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print one JSON object: configs, each with name and summary")
	cmd.AddCommand(newConfigsShowCommand())
	return cmd
}

// embedded is a config in the list.
type embedded struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

func newConfigsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Prints an embedded config",
		Example: "  lenscol configs show archive",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return configs.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := configs.Read(args[0])
			if err != nil {
				return usage(err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}
