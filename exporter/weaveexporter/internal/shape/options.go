// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"errors"
	"fmt"
	"strings"
)

// Target is a W&B project.
type Target struct{ Entity, Project string }

func (t Target) String() string { return t.Entity + "/" + t.Project }

// Endpoint is one of Weave's two ways in.
type Endpoint uint8

// Calls go to /otel/v1/traces (Traces view, runs, steps); Agents to /agents/otel/v1/traces (Agents view).
const (
	Calls Endpoint = iota
	Agents
)

func (e Endpoint) String() string {
	if e == Agents {
		return "agents"
	}
	return "calls"
}

// Values of [Options.Mode].
const (
	ModeCalls  = "calls"  // every span
	ModeAgents = "agents" // every span
	ModeAuto   = "auto"   // gen_ai agent spans to Agents, the rest to Calls
)

// Values of [Options.Threads].
const (
	ThreadsOff  = "off"
	ThreadsRun  = "run"  // one thread a run
	ThreadsRank = "rank" // one thread a rank of a run: RUN/rankN
)

// Values of [Options.DuplicateIDs].
const (
	DuplicatesRewrite = "rewrite" // the later span gets another id, and those that name it too
	DuplicatesCount   = "count"
	DuplicatesOff     = "off" // no memory of ids
)

// Options are what shaping needs of the exporter's config.
type Options struct {
	// Target is the project of resources that have no wandb.entity or no wandb.project. Each half is filled in by itself.
	Target Target
	// Mode is one of the Mode constants.
	Mode string
	// RunID is the bare id of the W&B run of spans for which none of RunIDFrom says another. Empty: none.
	RunID string
	// RunIDFrom are keys of the run id, of the span or its resource; the first that is there is taken. wandb.wb_run_id is always the first.
	RunIDFrom []string
	// StepFrom are keys of the step of the run, an integer ≥ 0, of the span or its nearest ancestor in the batch.
	StepFrom []string
	// StepOffset is added to steps that StepFrom finds. Weave does not store step 0.
	StepOffset int64
	// Promote are keys of the span, its scope or its resource that are put onto the span and under wandb.attributes, where Weave can filter
	// on them. `x.*` is every key below x of the span itself. otel.scope.name and otel.scope.version are the scope's.
	Promote []string
	// DisplayName is a template with {name}, {step}, {rank} and {attr:KEY}. A word whose placeholder has no value is left out. Empty: no display
	// name unless the span's name had to be changed.
	DisplayName string
	// TemplateNames replaces the numbers in span names by N: Weave keeps an object for each name.
	TemplateNames bool
	// Threads is one of the Threads constants.
	Threads string
	// DuplicateIDs is one of the Duplicates constants.
	DuplicateIDs string
	// RequestBytes bounds a request before compression.
	RequestBytes int
	// SpanBytes bounds the text that Weave makes of a span with its resource; half of RequestBytes if that is less. Weave stores attributes
	// twice, in a row of at most 3.5 MiB.
	SpanBytes int
}

// Limits of [Options], in bytes.
const (
	MinSpanBytes        = 16 << 10
	DefaultSpanBytes    = 1_700 << 10
	MinRequestBytes     = requestShare * MinSpanBytes
	DefaultRequestBytes = 31 << 20

	requestShare = 2 // a span with its resource, its scope and what encoding adds may take half of a request
)

// DefaultOptions are the options of an exporter whose config says nothing.
func DefaultOptions() Options {
	return Options{
		Mode:      ModeCalls,
		RunIDFrom: []string{"wandb.run.id"},
		StepFrom:  []string{"nv.dl.training.step", "megatron.iteration", "dl.iteration", "rl.step", "rl.iteration"},
		Promote: []string{
			"nv.dl.rank", "dl.rank", "nv.dl.world_size", "dl.world_size", "nv.dl.role", "nemo.run.id", "host.name", "service.name", "slurm.job.id", "k8s.pod.name",
			"otel.scope.name", "otel.scope.version", "nv.dl.*", "dl.*", "megatron.*", "nemo.*", "rl.*",
		},
		TemplateNames: true,
		Threads:       ThreadsOff,
		DuplicateIDs:  DuplicatesRewrite,
		RequestBytes:  DefaultRequestBytes,
		SpanBytes:     DefaultSpanBytes,
	}
}

// Validate tells what shaping could not work with. Its errors name the field by the exporter's YAML key.
func (o *Options) Validate() error {
	_, err := parseTemplate(o.DisplayName)
	return errors.Join(
		err,
		oneOf("mode", o.Mode, ModeCalls, ModeAgents, ModeAuto),
		oneOf("threads", o.Threads, ThreadsOff, ThreadsRun, ThreadsRank),
		oneOf("duplicate_ids", o.DuplicateIDs, DuplicatesRewrite, DuplicatesCount, DuplicatesOff),
		o.validateRun(),
		o.validateLimits(),
	)
}

func (o *Options) validateRun() error {
	if o.RunID != "" && !isRunID(o.RunID) {
		return fmt.Errorf("run::id is %q: give the bare id of the run, what follows the last slash of its address", o.RunID)
	}
	if o.StepOffset < 0 {
		return fmt.Errorf("step::offset is %d: must not be negative", o.StepOffset)
	}
	return nil
}

func (o *Options) validateLimits() error {
	if o.SpanBytes < MinSpanBytes {
		return fmt.Errorf("limits::span_bytes is %d: must be at least %d", o.SpanBytes, MinSpanBytes)
	}
	if o.RequestBytes < MinRequestBytes {
		return fmt.Errorf("limits::request_bytes is %d: must be at least %d", o.RequestBytes, MinRequestBytes)
	}
	return nil
}

func oneOf(key, value string, known ...string) error {
	for _, k := range known {
		if value == k {
			return nil
		}
	}
	return fmt.Errorf("%s is %q: must be one of %s", key, value, strings.Join(known, ", "))
}
