// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/internal/archive"
)

func newJSONLVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE...",
		Short: "Reads files to their end and names everything that is wrong with them",
		Long: `Reads files to their end, frames and checksums included, and prints everything that is wrong with them, by file and line. It exits with 1 if
anything is damaged, with 0 if all is whole.

A torn end is no damage, unless the file was ended by a rotation: it is being written, or was left by a killed writer that never
acknowledged it.`,
		Example: "  lenscol jsonl verify lens-data",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := startReading(cmd, args)
			if err != nil {
				return err
			}
			defer r.Close()
			out := cmd.OutOrStdout()
			say := func(format string, args ...any) {
				r.progress.clear()
				fmt.Fprintf(out, format, args...)
			}
			var files, records, damaged int64
			r.OnProblem = func(_ archive.Input, err error) {
				damaged++
				say("%v\n", err)
			}
			r.OnFile = func(in archive.Input, s archive.Stats) {
				files++
				records += s.Records()
				if s.Torn > 0 {
					say("%s: %s\n", in.Name(), describeTorn(in, s))
					if in.Rotated {
						damaged++
					}
				}
				if s.Foreign > 0 {
					say("%s: %s of other output passed over\n", in.Name(), count(s.Foreign, "line"))
				}
				if s.Unknown > 0 {
					say("%s: keys or lines of a newer version left out: %d\n", in.Name(), s.Unknown)
				}
			}
			for {
				if _, _, err := r.next(nil); err != nil {
					break // io.EOF
				}
			}
			whole := "whole"
			if damaged > 0 {
				whole = "damaged in " + count(damaged, "place")
			}
			say("%s, %s: %s\n", count(files, "file"), count(records, "record"), whole)
			if damaged > 0 {
				return fmt.Errorf("%s, named above", count(damaged, "damaged place"))
			}
			return nil
		},
	}
}
