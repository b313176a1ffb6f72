// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/extension/lenshealth"
)

func newStatusCommand() *cobra.Command {
	var (
		flags  healthFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Prints how a collector that runs does, by pipeline and component",
		Long: `Prints what the lens_health extension of a collector says of every pipeline and component: status, since when, when items
last went through, how full the queue is, and what is wrong.

It exits with 0 when /health answers 200, with 1 when it does not, with 2 when it cannot be asked.`,
		Example: `  lenscol status
  lenscol status --port-file collector.env
  lenscol status --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := flags.client()
			if err != nil {
				return usage(fmt.Errorf("status: %w", err))
			}
			var answer json.RawMessage
			code, err := client.get(cmd.Context(), "/health", &answer)
			if err != nil {
				return usage(fmt.Errorf("status: %w", err))
			}
			var report lenshealth.Report
			if err := json.Unmarshal(answer, &report); err != nil || report.Schema != lenshealth.Schema {
				return usage(fmt.Errorf("status: %s answers with schema %d, and this lenscol knows %d", client.base, report.Schema, lenshealth.Schema))
			}
			if asJSON {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), string(answer))
			} else {
				err = printStatus(cmd.OutOrStdout(), &report)
			}
			if err != nil {
				return err
			}
			if code != http.StatusOK {
				return errors.New(summary(&report))
			}
			return nil
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print what /health answers")
	return cmd
}

// printStatus prints a line for the collector and a table with a line for each component of each pipeline.
func printStatus(w io.Writer, r *lenshealth.Report) error {
	up := r.Time.Sub(r.Started).Round(time.Second)
	fmt.Fprintf(w, "%s since %s, %s; lenscol %s, up %s\n\n", printable(string(r.Status)), timeOf(r.Since), map[bool]string{true: "ready", false: "not ready"}[r.Ready],
		printable(r.Version), up)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PIPELINE\tCOMPONENT\tSTATUS\tSINCE\tLAST SUCCESS\tQUEUE\tWHY")
	for _, pipeline := range r.Pipelines {
		for _, c := range pipeline.Components {
			printComponent(table, pipeline.ID, c, r.Time)
		}
	}
	for _, c := range r.Extensions {
		printComponent(table, "-", c, r.Time)
	}
	return table.Flush()
}

func printComponent(w io.Writer, pipeline string, c lenshealth.ComponentHealth, now time.Time) {
	success, queue := "-", "-"
	if c.LastSuccess != nil {
		success = now.Sub(*c.LastSuccess).Round(time.Second).String() + " ago"
	}
	if c.Queue != nil {
		queue = fmt.Sprintf("%d/%d", c.Queue.Size, c.Queue.Capacity)
	}
	why := make([]string, len(c.Reasons))
	for i, reason := range c.Reasons {
		why[i] = reason.Text
	}
	line := []string{pipeline, c.Kind + " " + c.ID, string(c.Status), timeOf(c.Since), success, queue, strings.Join(why, "; ")}
	for i := range line {
		line[i] = printable(line[i])
	}
	fmt.Fprintln(w, strings.TrimRight(strings.Join(line, "\t"), "\t"))
}

func timeOf(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05Z") }

// printable takes out what a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
}
