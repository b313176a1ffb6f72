// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/internal/archive"
)

func newJSONLConvertCommand() *cobra.Command {
	var layout, mode, output string
	var force bool
	cmd := &cobra.Command{
		Use:   "convert -o OUTPUT FILE...",
		Short: "Writes files in another layout",
		Long: `Writes files in another layout. OUTPUT is a file that takes the records of all, or a folder (one that is there, or a name that ends in /)
that takes a file for each, of the same name. A name that ends in .gz or .zst is compressed. No file is changed, and a new one is there
whole or not at all.`,
		Example: `  lenscol jsonl convert --to otlp_json -o converted/ lens-data
  lenscol jsonl convert -o run.jsonl.zst rank*.log
  lenscol jsonl convert --to console --run r1 -o lens_rank0.jsonl lens-data/traces.jsonl.zst`,
		Args: cobra.MinimumNArgs(1),
	}
	filterText := filterFlags(cmd)
	layoutFlag(cmd, &layout, "`LAYOUT` of the output")
	cmd.Flags().StringVar(&mode, "resource", string(jsonlexporter.ResourceReference), "How compact lines name their resource and scope: inline or `reference`")
	cmd.Flags().StringVarP(&output, "output", "o", "", "`FILE` or folder to write")
	cmd.Flags().BoolVar(&force, "force", false, "Replace files that are there")
	_ = cmd.MarkFlagRequired("output") // Fails for an unknown flag alone.
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := archive.NewFilter(*filterText, time.Now())
		if err != nil {
			return usage(err)
		}
		if _, err := jsonlexporter.NewEncoder(jsonlexporter.Layout(layout), jsonlexporter.ResourceMode(mode)); err != nil {
			return usage(err)
		}
		inputs, err := archive.Find(args)
		if err != nil {
			return err
		}
		c := converter{layout: jsonlexporter.Layout(layout), mode: jsonlexporter.ResourceMode(mode), force: force}
		if c.targets, err = targets(inputs, output); err != nil {
			return err
		}
		r := readInputs(cmd, inputs)
		defer r.Close()
		for {
			rec, in, err := r.next(filter)
			if err != nil {
				break // io.EOF
			}
			if err := c.write(rec, in); err != nil {
				return errors.Join(err, c.abort())
			}
		}
		if err := c.leave(); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s into %s\n", count(c.records, "record"), count(c.files, "file"))
		return r.done()
	}
	return cmd
}

var otherExtension = regexp.MustCompile(`\.(pb|proto)$`)

// targets are the files to write by the path of their input.
func targets(inputs []archive.Input, output string) (map[string]string, error) {
	info, err := os.Stat(output)
	folder := strings.HasSuffix(output, "/") || err == nil && info.IsDir()
	to, from := map[string]string{}, map[string]string{}
	for _, in := range inputs {
		target := output
		if folder {
			name := filepath.Base(in.Path)
			if in.Path == archive.Stdin {
				name = "stdin.jsonl"
			}
			if in.Root != "" {
				if name, err = filepath.Rel(in.Root, in.Path); err != nil {
					return nil, err
				}
			}
			stem, compression := name, ""
			if ext := filepath.Ext(name); ext == ".gz" || ext == ".zst" || ext == ".zstd" {
				stem, compression = strings.TrimSuffix(name, ext), ext
			}
			target = filepath.Join(output, otherExtension.ReplaceAllString(stem, ".jsonl")+compression)
			if other, taken := from[target]; taken {
				return nil, fmt.Errorf("%s and %s would both become %s; convert them apart", other, in.Name(), target)
			}
			from[target] = in.Name()
		}
		if a, err := os.Stat(target); err == nil && in.Path != archive.Stdin {
			if b, err := os.Stat(in.Path); err == nil && os.SameFile(a, b) {
				return nil, fmt.Errorf("%s: is read and would be replaced; write to another file or folder", target)
			}
		}
		to[in.Path] = target
	}
	return to, nil
}

// converter writes one file after the other.
type converter struct {
	layout  jsonlexporter.Layout
	mode    jsonlexporter.ResourceMode
	force   bool
	targets map[string]string

	target  string // in hand
	output  *archive.Output
	writer  *archive.Writer
	records int64
	files   int64
}

func (c *converter) write(rec archive.Record, in archive.Input) error {
	if target := c.targets[in.Path]; c.output == nil || target != c.target {
		if err := c.leave(); err != nil {
			return err
		}
		output, err := archive.CreateOutput(target, c.force)
		if err != nil {
			return err
		}
		c.target, c.output = target, output
		if c.writer, err = archive.NewWriter(output, c.layout, c.mode); err != nil {
			return err
		}
	}
	return c.writer.Write(rec)
}

// leave ends the file in hand.
func (c *converter) leave() error {
	if c.output == nil {
		return nil
	}
	if err := c.writer.Flush(); err != nil {
		return errors.Join(err, c.abort())
	}
	err := c.output.Commit()
	c.records += c.writer.Written()
	c.files++
	c.output = nil
	return err
}

func (c *converter) abort() error {
	if c.output == nil {
		return nil
	}
	err := c.output.Abort()
	c.output = nil
	return err
}
