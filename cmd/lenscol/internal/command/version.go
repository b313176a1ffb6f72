// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/component"
)

// build says which build this is. A part that the build did not record is "unknown".
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	Core    string `json:"core"` // release of the OpenTelemetry Collector core
}

func newVersionCommand(info component.BuildInfo, commit string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Prints the version, the commit, and the Go and collector core releases",
		Example: "  lenscol version\n  lenscol version --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			goInfo, _ := debug.ReadBuildInfo()
			b := describeBuild(info.Version, commit, goInfo)
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(b)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "lenscol %s\ncommit  %s\ngo      %s\ncore    %s\n", b.Version, b.Commit, b.Go, b.Core)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print one JSON object with version, commit, go and core")
	return cmd
}

// describeBuild completes what the linker was told with what the Go toolchain recorded; info may be nil.
func describeBuild(version, commit string, info *debug.BuildInfo) build {
	b := build{Version: version, Commit: commit, Go: runtime.Version(), Core: "unknown"}
	if info != nil {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && b.Commit == "" {
				b.Commit = s.Value
			}
		}
		for _, dep := range info.Deps {
			if dep.Path == "go.opentelemetry.io/collector/otelcol" {
				b.Core = dep.Version
			}
		}
	}
	if b.Commit == "" {
		b.Commit = "unknown"
	}
	return b
}
