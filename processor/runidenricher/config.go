// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/lenscol/lenscol/internal/redact"
	"github.com/lenscol/lenscol/sdk/resource"
)

// Config is what is added to resources, and what is changed in them. Nothing that a sender said is replaced unless
// run_id.replace, instance_id, names, overwrite, delete, redact or skew says so.
type Config struct {
	// Mode is whose environment the collector has: sidecar (default), its job's, so it may stamp run, job, pod and host; node, of a
	// machine that runs many jobs: it stamps facts of the machine; gateway, nobody's: it stamps nothing of its own.
	Mode string `mapstructure:"mode"`
	// RunID is where nemo.run.id comes from.
	RunID RunIDConfig `mapstructure:"run_id"`

	// SLURM stamps the job's facts, slurm.*. Default true.
	SLURM bool `mapstructure:"slurm"`
	// Kubernetes stamps the pod's facts, k8s.*; on a node, its name. Default true.
	Kubernetes bool `mapstructure:"kubernetes"`
	// Host stamps host.name. Default true.
	Host bool `mapstructure:"host"`
	// GPU stamps the number of GPUs, their model and their driver. Default true.
	GPU bool `mapstructure:"gpu"`
	// Attributes are fixed attributes for every resource: text, integers, booleans, floating-point numbers. Default none.
	Attributes map[string]any `mapstructure:"attributes"`
	// Wandb is where wandb.entity, wandb.project and wandb.run.id come from.
	Wandb WandbConfig `mapstructure:"wandb"`

	// InstanceID says whether service.instance.id is made unique where two processes send the same: keep (default) or unique.
	InstanceID string `mapstructure:"instance_id"`
	// Names says in which generation of NeMo Lens's names attributes go on: keep (default), both, new or old.
	Names string `mapstructure:"names"`
	// Overwrite are keys of resource attributes of which the collector's value replaces the sender's. Default none.
	Overwrite []string `mapstructure:"overwrite"`
	// Delete are keys of resource attributes that do not go on. Default none.
	Delete []string `mapstructure:"delete"`
	// Redact says what is taken out of all telemetry. Default: off; with the key alone, NeMo Lens's keys.
	Redact configoptional.Optional[redact.Config] `mapstructure:"redact"`
	// Skew says what becomes of a span whose end lies before its start: keep (default) or clamp, to length zero.
	Skew string `mapstructure:"skew"`

	// The processors of all signals work with one state: a process has one instance id in traces and metrics.
	shared *shared
}

// RunIDConfig is where a run id comes from. What the resource itself says goes first.
type RunIDConfig struct {
	// Static is the run id of everything that has none. Default empty.
	Static string `mapstructure:"static"`
	// From are the sources of the run id where there is no static one, the first that has one: env:NAME, slurm, torchelastic, k8s_job,
	// file:/PATH. Default env:NEMO_LENS_RUN_ID, slurm, torchelastic, k8s_job.
	From []string `mapstructure:"from"`
	// Generate says what happens where no source has one: never (default, it is left empty) or per_collector (one is made up).
	Generate string `mapstructure:"generate"`
	// Replace says when the collector's ids replace a sender's: never (default), generated (those that NeMo Lens made up for one process) or
	// always. The old one stays as nemo.run.id.original.
	Replace string `mapstructure:"replace"`
}

// WandbConfig is where a W&B target comes from: the resource, else the first rule that matches, else, in a sidecar, the
// environment.
type WandbConfig struct {
	Rules []WandbRule `mapstructure:"rules"`
}

// WandbRule is the W&B target of some resources.
type WandbRule struct {
	// Match are resource attributes with globs (* and ?) for their values; all must match. Empty: every resource.
	Match map[string]string `mapstructure:"match"`
	// Entity, Project and RunID are the target; empty ones are left open.
	Entity  string `mapstructure:"entity"`
	Project string `mapstructure:"project"`
	RunID   string `mapstructure:"run_id"`
}

// The values of the settings, the default first.
const (
	modeSidecar = "sidecar"
	modeNode    = "node"
	modeGateway = "gateway"

	generateNever        = "never"
	generatePerCollector = "per_collector"

	replaceNever     = "never"
	replaceGenerated = "generated"
	replaceAlways    = "always"

	keep       = "keep"
	idUnique   = "unique"
	namesBoth  = "both"
	namesNew   = "new"
	namesOld   = "old"
	skewClamp  = "clamp"
	maxStamped = 256 // attributes and keys that are told apart in one walk over a resource
)

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Mode:       modeSidecar,
		RunID:      RunIDConfig{From: slices.Clone(resource.DefaultRunID), Generate: generateNever, Replace: replaceNever},
		SLURM:      true,
		Kubernetes: true,
		Host:       true,
		GPU:        true,
		InstanceID: keep,
		Names:      keep,
		Redact:     configoptional.Default(redact.DefaultConfig()),
		Skew:       keep,
		shared:     &shared{},
	}
}

// Validate names the key of every setting that cannot be.
func (c *Config) Validate() error {
	var errs []error
	oneOf := func(key, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			errs = append(errs, fmt.Errorf("%s: %q must be one of %s", key, value, strings.Join(allowed, ", ")))
		}
	}
	oneOf("mode", c.Mode, modeSidecar, modeNode, modeGateway)
	oneOf("run_id.generate", c.RunID.Generate, generateNever, generatePerCollector)
	oneOf("run_id.replace", c.RunID.Replace, replaceNever, replaceGenerated, replaceAlways)
	oneOf("instance_id", c.InstanceID, keep, idUnique)
	oneOf("names", c.Names, keep, namesBoth, namesNew, namesOld)
	oneOf("skew", c.Skew, keep, skewClamp)

	if c.Mode == modeNode || c.Mode == modeGateway {
		const why = "needs mode sidecar: a %s takes the telemetry of many runs"
		if c.RunID.Static != "" {
			errs = append(errs, fmt.Errorf("run_id.static: %q "+why, c.RunID.Static, c.Mode))
		}
		if c.RunID.Generate == generatePerCollector {
			errs = append(errs, fmt.Errorf("run_id.generate: %q "+why, c.RunID.Generate, c.Mode))
		}
	}
	for _, source := range c.RunID.From {
		if err := resource.CheckSource(source); err != nil {
			errs = append(errs, fmt.Errorf("run_id.from: %w", err))
		}
	}
	for key, value := range c.Attributes {
		switch value.(type) {
		case string, bool, int, int64, float64:
		default:
			errs = append(errs, fmt.Errorf("attributes: %s: %v must be text, a number or a boolean", key, value))
		}
	}
	for i, rule := range c.Wandb.Rules {
		if rule.Entity == "" && rule.Project == "" && rule.RunID == "" {
			errs = append(errs, fmt.Errorf("wandb.rules[%d]: has no target, it needs an entity, a project or a run_id", i))
		}
	}
	for key, list := range map[string][]string{"overwrite": c.Overwrite, "delete": c.Delete} {
		if slices.Contains(list, "") {
			errs = append(errs, fmt.Errorf("%s: %q is no attribute key", key, ""))
		}
	}
	if n := len(c.Attributes) + len(c.Overwrite); n > maxStamped/2 {
		errs = append(errs, fmt.Errorf("attributes and overwrite: %d keys, there can be %d", n, maxStamped/2))
	}
	return errors.Join(errs...)
}
