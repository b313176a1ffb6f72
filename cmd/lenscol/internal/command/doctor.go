// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/internal/redact"
	"github.com/lenscol/lenscol/sdk/resource"
)

var errNoRunID = errors.New("doctor: this machine and job have no run id: set NEMO_LENS_RUN_ID, the same on every rank")

// diagnosis is what doctor finds.
type diagnosis struct {
	Identity []fact   `json:"identity"`
	Refused  []string `json:"refused,omitempty"` // what was there and cannot be taken, without its value
}

// fact is one attribute of the identity, and where it comes from.
type fact struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

func newDoctorCommand(system resource.System) *cobra.Command {
	asJSON, weave := false, false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Prints whose telemetry this machine and job produce",
		Long: `Prints the identity of this machine and job, one line a fact with where it comes from: the run and its ids, the SLURM job,
the pod, the host and its GPUs, the rank, the W&B target. It is what run_id_enricher stamps in a sidecar with its default
sources, but for rank, world size, local rank and container name: those are this process's own, and never stamped onto
another's telemetry. It reads the environment and small files, and runs no program. Without a run id it exits with 1.

With --weave it goes the way of a span to W&B Weave instead, as WANDB_API_KEY, WANDB_ENTITY, WANDB_PROJECT and WF_TRACE_SERVER_URL
have it: the form of the key, project, address, DNS, TLS, and an export without spans. Where a step fails it exits with 1.`,
		Example: `  lenscol doctor
  lenscol doctor --weave
  srun --ntasks-per-node=1 lenscol doctor --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if weave {
				lookupEnv := system.LookupEnv
				if lookupEnv == nil {
					lookupEnv = os.LookupEnv
				}
				return doctorWeave(cmd.Context(), cmd.OutOrStdout(), lookupEnv, asJSON)
			}
			d, hasRun := diagnose(system)
			if err := d.print(cmd.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if !hasRun {
				return errNoRunID
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print one JSON object with the list identity: key, value and source of each fact; or the list weave: check, status and detail")
	cmd.Flags().BoolVar(&weave, "weave", false, "Check whether spans would reach W&B Weave")
	return cmd
}

// diagnose finds out the identity, and whether it has a run id.
func diagnose(system resource.System) (d diagnosis, hasRun bool) {
	detector := resource.New(system)
	d.Identity = []fact{}
	run, hasRun := detector.RunID(resource.DefaultRunID...)
	if hasRun = hasRun && d.add(run); !hasRun {
		run = resource.Attribute{}
	}
	for _, a := range slices.Concat(detector.IDs(run.Text()), detector.SLURM(), detector.Kubernetes(), detector.Host(), detector.GPU(), detector.Torch(), detector.Wandb()) {
		d.add(a)
	}
	d.Refused = append(d.Refused, detector.Refused()...)
	return d, hasRun
}

// add adds a fact, unless it looks like a token.
func (d *diagnosis) add(a resource.Attribute) bool {
	if redact.LooksLikeToken(a.Text()) {
		d.Refused = append(d.Refused, a.Source+": looks like a token")
		return false
	}
	d.Identity = append(d.Identity, fact{a.Key, a.Text(), a.Source})
	return true
}

func (d *diagnosis) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(d)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range d.Identity {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.Key, f.Value, f.Source)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, line := range d.Refused {
		if _, err := fmt.Fprintf(w, "refused: %s\n", line); err != nil {
			return err
		}
	}
	return nil
}
