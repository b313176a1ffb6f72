// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"bufio"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/internal/archive"
)

func newJSONLCatCommand() *cobra.Command {
	var layout, mode, memory, temporary string
	var sorted bool
	cmd := &cobra.Command{
		Use:   "cat FILE...",
		Short: "Prints the records of files, one line each",
		Long: `Prints the records of files in the order in which they were written, rotated files before the active one, or by time with --sort.

Of the layout compact every line says its resource and scope itself, so that it can be cut, filtered and joined; --resource reference
is shorter and has them in lines of their own.`,
		Example: `  lenscol jsonl cat lens-data
  lenscol jsonl cat lens-data --rank 0 --name 'megatron.*' --since 2h | jq .duration_ns
  lenscol jsonl cat --sort rank*/traces.jsonl.zst --status error
  kubectl logs trainer-0 | lenscol jsonl cat -`,
		Args: cobra.MinimumNArgs(1),
	}
	filterText := filterFlags(cmd)
	layoutFlag(cmd, &layout, "`LAYOUT` of the output")
	cmd.Flags().StringVar(&mode, "resource", string(jsonlexporter.ResourceInline), "How compact lines name their resource and scope: `inline` or reference")
	cmd.Flags().BoolVar(&sorted, "sort", false, "Sort all records by time")
	cmd.Flags().StringVar(&memory, "sort-memory", "256MiB", "`BYTES` that --sort holds; the rest goes to temporary files")
	cmd.Flags().StringVar(&temporary, "sort-folder", "", "`FOLDER` of the temporary files of --sort (default the system's)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := archive.NewFilter(*filterText, time.Now())
		if err != nil {
			return usage(err)
		}
		bound, err := humanize.ParseBytes(memory)
		if err != nil {
			return usage(fmt.Errorf("--sort-memory: %q is not a number of bytes, like 268435456 or 256MiB", memory))
		}
		out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
		w, err := archive.NewWriter(out, jsonlexporter.Layout(layout), jsonlexporter.ResourceMode(mode))
		if err != nil {
			return usage(err)
		}
		r, err := startReading(cmd, args)
		if err != nil {
			return err
		}
		defer r.Close()
		write := w.Write
		var sorter *archive.Sorter
		if sorted {
			sorter = archive.NewSorter(int64(bound), temporary)
			defer sorter.Close()
			write = sorter.Add
		}
		for {
			rec, _, err := r.next(filter)
			if err != nil {
				break // io.EOF
			}
			if err := write(rec); err != nil {
				return err
			}
		}
		if sorter != nil {
			if err := sorter.Each(w.Write); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		return r.done()
	}
	return cmd
}
