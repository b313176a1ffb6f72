// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/lenscol/lenscol/internal/archive"
)

func newManCommand() *cobra.Command {
	var folder string
	var force bool
	cmd := &cobra.Command{
		Use:   "man [COMMAND...]",
		Short: "Prints the manual page of a command, or writes those of all",
		Long: `Prints the manual page of lenscol, or of one of its commands, in roff, as man reads it. With --folder it writes the pages of all commands.

The pages are made of what --help says. They bear this month, or that of SOURCE_DATE_EPOCH.`,
		Example: `  lenscol man | man -l -
  lenscol man jsonl cat | man -l -
  lenscol man --folder /usr/local/share/man/man1`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if of := findCommand(cmd.Root(), args); of != nil {
				for _, sub := range of.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, sub.Name())
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if folder != "" {
				if len(args) > 0 {
					return usage(errors.New("--folder writes the pages of all commands, it takes no COMMAND"))
				}
				return writePages(root, folder, force)
			}
			of := findCommand(root, args)
			if of == nil {
				return usage(fmt.Errorf("unknown command %q, `%s --help` lists all commands", strings.Join(args, " "), root.Name()))
			}
			return writePage(cmd.OutOrStdout(), of)
		},
	}
	cmd.Flags().StringVar(&folder, "folder", "", "Write a page for each command into this `FOLDER`")
	cmd.Flags().BoolVar(&force, "force", false, "Replace pages that are there")
	_ = cmd.MarkFlagDirname("folder") // Fails for an unknown flag alone.
	return cmd
}

// findCommand is the command below root that the names lead to, nil where there is none.
func findCommand(root *cobra.Command, names []string) *cobra.Command {
	for _, name := range names {
		i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
		if i < 0 {
			return nil
		}
		root = root.Commands()[i]
	}
	return root
}

// writePage writes the page of one command.
func writePage(w io.Writer, cmd *cobra.Command) error {
	cmd.DisableAutoGenTag = true // No section that says how the page was made.
	return doc.GenMan(cmd, &doc.GenManHeader{
		Title: strings.ToUpper(pageName(cmd)), Section: "1", Source: "lenscol " + cmd.Root().Version, Manual: "lenscol",
	}, w)
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// writePages writes the pages of a command and of all below it.
func writePages(cmd *cobra.Command, folder string, force bool) error {
	path := filepath.Join(folder, pageName(cmd)+".1")
	out, err := archive.CreateOutput(path, force)
	if err != nil {
		return err
	}
	if err := writePage(out, cmd); err != nil {
		return errors.Join(err, out.Abort())
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // Everybody reads manual pages.
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			if err := writePages(sub, folder, force); err != nil {
				return err
			}
		}
	}
	return nil
}
