// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"fmt"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/otelcol"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/internal/advice"
)

// advise makes upstream's validate print, to stderr, what of a valid config loses telemetry; the exit code stays 0. Which variables are not set it says
// of any.
func advise(cmd *cobra.Command, set otelcol.CollectorSettings) {
	uris := recordConfigFlags(cmd)
	validate := cmd.RunE
	cmd.Long = "Validates the config without running the collector, and exits with 1 where it is not valid. What is valid and loses telemetry all the\n" +
		"same is printed to stderr, a line each: no memory limiter, a queue in memory before a backend that bills, and the like; and\n" +
		"so is a listener that takes telemetry from every machine, and a variable that is not set and has no default. Of a component of otelcol-contrib that is not here, it says what does its work."
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		warn := func(lines []string) {
			for _, line := range lines {
				fmt.Fprintln(cmd.ErrOrStderr(), "lenscol: warning:", line)
			}
		}
		set.ConfigProviderSettings.ResolverSettings.URIs = uris.all()
		snap, err := readSnapshot(cmd.Context(), set, zap.NewNop())
		warn(snap.unsetVariables())
		if err != nil {
			return err
		}
		if err := validate(cmd, args); err != nil {
			return advice.Explain(err)
		}
		warn(advice.Of(snap.effective))
		return nil
	}
}
