// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lenscol/lenscol/extension/lenshealth"
	"github.com/lenscol/lenscol/internal/runview"
)

func newTopCommand() *cobra.Command {
	var (
		flags        healthFlags
		run          string
		once, asJSON bool
		interval     time.Duration
	)
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Shows what the training run does: its worst ranks, and the exporters",
		Long: `Shows what the lens_health extension of a collector knows of the runs that send to it, every two seconds: the run's step and step
time, the ranks that are slowest, farthest behind and silent, and what the exporters send and lose.

Up and down, or k and j, choose the run, q ends it. With --once or --json it prints once and ends: it exits with 0, with 1
when there is no such run, with 2 when the collector cannot be asked.`,
		Example: `  lenscol top
  lenscol top --once --run 48213
  lenscol top --json | jq '.runs[0].slowest'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < minInterval {
				return usage(fmt.Errorf("top: --interval %s must be %s or more", interval, minInterval))
			}
			client, err := flags.client()
			if err != nil {
				return usage(fmt.Errorf("top: %w", err))
			}
			if !once && !asJSON {
				if out, ok := cmd.OutOrStdout().(*os.File); !ok || !term.IsTerminal(int(out.Fd())) {
					return usage(errors.New("top: it needs a terminal: with --once it prints a text, with --json what programs read"))
				}
				return watchTop(cmd.Context(), client, run, interval)
			}
			picture, err := takePicture(cmd.Context(), client)
			if err != nil {
				return usage(fmt.Errorf("top: %w", err))
			}
			at := picture.find(run)
			if at < 0 && run != "" {
				return fmt.Errorf("top: there is no run %q, only %q", run, picture.ids())
			}
			if asJSON {
				if run != "" {
					picture.Runs.Runs = picture.Runs.Runs[at : at+1]
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(picture.asJSON())
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), picture.text(at, mostWorst))
			return err
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().StringVar(&run, "run", "", "`ID` of the run to show (default the one that was seen last)")
	cmd.Flags().BoolVar(&once, "once", false, "Print it once")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print once what /api/runs answers, with the answers of /api/pipelines and /health beside it")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "How often to ask")
	return cmd
}

// minInterval is the least that top waits between two pictures.
const minInterval = 500 * time.Millisecond

// picture is what top shows: three answers of lens_health.
type picture struct {
	Runs      runview.Runs
	Pipelines lenshealth.Pipelines
	Health    lenshealth.Report
}

func takePicture(ctx context.Context, client *healthClient) (*picture, error) {
	var p picture
	for _, part := range []struct {
		path   string
		answer any
	}{{"/api/runs", &p.Runs}, {"/api/pipelines", &p.Pipelines}, {"/health", &p.Health}} {
		if _, err := client.get(ctx, part.path, part.answer); err != nil {
			return nil, err
		}
	}
	if p.Runs.Schema != runview.Schema || p.Pipelines.Schema != lenshealth.Schema || p.Health.Schema != lenshealth.Schema {
		return nil, fmt.Errorf("%w: %s answers with the schemas %d, %d and %d, and this lenscol knows %d, %d and %d", errRefused, client.base,
			p.Runs.Schema, p.Pipelines.Schema, p.Health.Schema, runview.Schema, lenshealth.Schema, lenshealth.Schema)
	}
	return &p, nil
}

// find is the index of a run, of the one that was seen last for an empty id, -1 where there is none.
func (p *picture) find(id string) int {
	if id == "" {
		return min(0, len(p.Runs.Runs)-1)
	}
	return slices.IndexFunc(p.Runs.Runs, func(run runview.Run) bool { return run.ID == id })
}

func (p *picture) ids() []string {
	ids := make([]string, len(p.Runs.Runs))
	for i, run := range p.Runs.Runs {
		ids[i] = run.ID
	}
	return ids
}

func (p *picture) asJSON() any {
	return struct {
		runview.Runs
		Pipelines lenshealth.Pipelines `json:"pipelines"`
		Health    lenshealth.Report    `json:"health"`
	}{p.Runs, p.Pipelines, p.Health}
}
