// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/internal/launch"
	"github.com/lenscol/lenscol/sdk/resource"
)

func newSlurmAttrsCommand(system resource.System) *cobra.Command {
	var stage, image string
	cmd := &cobra.Command{
		Use:   "set-slurm-resource-attrs --stage sbatch|task",
		Short: "Prints OTEL_RESOURCE_ATTRIBUTES with the facts of this SLURM job, for a shell to evaluate",
		Long: `Prints one line, export OTEL_RESOURCE_ATTRIBUTES=..., with the facts of this SLURM job: its id, name, user, partition, array,
restarts, nodes. All that the shell starts after evaluating it sends them. What the variable holds already wins.

--stage sbatch is for the batch script, and leaves out slurm.topology.*, which is another one on each node; --stage task is for a
task of a step, and adds host.name and the container image. As nemo-lens of NeMo Lens does it.`,
		Example: `  eval "$(lenscol set-slurm-resource-attrs --stage sbatch)"
  srun bash -c 'eval "$(lenscol set-slurm-resource-attrs --stage task --container-image nemo:25.09)"; exec python train.py'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case stage != launch.StageSbatch && stage != launch.StageTask:
				return usage(fmt.Errorf("--stage %q: must be sbatch or task", stage))
			case image != "" && stage != launch.StageTask:
				return usage(errors.New("--container-image: needs --stage task, in the batch script no container runs"))
			}
			line, errs := launch.ResourceExport(stage, image, system)
			for _, err := range errs {
				fmt.Fprintln(cmd.ErrOrStderr(), "lenscol:", err)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), line)
			return err
		},
	}
	cmd.Flags().StringVar(&stage, "stage", "", "Where it runs: sbatch or task")
	cmd.Flags().StringVar(&image, "container-image", "", "Container image of the task, nv.dl.launch.container.image")
	_ = cmd.RegisterFlagCompletionFunc("stage", cobra.FixedCompletions([]string{launch.StageSbatch, launch.StageTask}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
