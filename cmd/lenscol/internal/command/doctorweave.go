// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/lenscol/lenscol/exporter/weaveexporter"
)

var errWeave = errors.New("doctor: spans of this environment would not reach Weave")

// doctorWeave goes the way of a span to Weave, as the variables of an environment have it, and prints a line for each step.
func doctorWeave(ctx context.Context, w io.Writer, lookupEnv func(string) (string, bool), asJSON bool) error {
	checks := weaveexporter.Diagnose(ctx, weaveexporter.ConfigOf(lookupEnv))
	if err := printChecks(w, checks, asJSON); err != nil {
		return err
	}
	if slices.ContainsFunc(checks, func(c weaveexporter.Check) bool { return c.Status == weaveexporter.CheckFailed }) {
		return errWeave
	}
	return nil
}

func printChecks(w io.Writer, checks []weaveexporter.Check, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(map[string][]weaveexporter.Check{"weave": checks})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.Name, c.Status, c.Detail)
	}
	return table.Flush()
}
