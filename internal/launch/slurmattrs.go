// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package launch is what launch scripts need around the processes that they start: the job's facts for their environment, spans of
// what happened outside of any process, and a span around a command.
package launch // import "github.com/lenscol/lenscol/internal/launch"

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/lenscol/lenscol/sdk/resource"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// Stages of a job in which its facts are published.
const (
	StageSbatch = "sbatch" // in the batch script: facts of the job
	StageTask   = "task"   // in a task of a step: facts of its node too
)

const resourceVariable = "OTEL_RESOURCE_ATTRIBUTES"

// ResourceExport is the line `export OTEL_RESOURCE_ATTRIBUTES=…` that gives a shell, and all that it starts, the facts of its SLURM
// job. What the variable holds already wins, byte for byte. The stage sbatch leaves out slurm.topology.*, which is another one on
// each node; the stage task adds host.name and the container image, "" for none (NeMo Lens, nemo-lens set-slurm-resource-attrs).
//
// The uuids of job and run are not published: each process computes the same ones, with its own elastic restart. errs are
// attributes that were left out, and what was in the environment and could not be taken.
func ResourceExport(stage, image string, system resource.System) (line string, errs []error) {
	d := resource.New(system)
	attrs := d.SLURM()
	if stage == StageSbatch {
		attrs = slices.DeleteFunc(attrs, func(a resource.Attribute) bool { return strings.HasPrefix(a.Key, "slurm.topology.") })
	} else {
		attrs = append(attrs, d.Host()...)
		if image != "" {
			attrs = append(attrs, resource.Attribute{Key: semconv.DLLaunchContainerImage, Value: image, Source: "flag"})
		}
	}
	lookupEnv := system.LookupEnv
	if lookupEnv == nil {
		lookupEnv = os.LookupEnv
	}
	inherited, _ := lookupEnv(resourceVariable)
	merged, errs := resource.Merge(inherited, attrs, false)
	for _, refused := range d.Refused() {
		errs = append(errs, fmt.Errorf("left out %s", refused))
	}
	return "export " + resourceVariable + "=" + shellQuote(merged), errs
}

var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellQuote writes text as one word of a POSIX shell.
func shellQuote(text string) string {
	if shellSafe.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'"
}
