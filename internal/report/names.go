// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package report // import "github.com/lenscol/lenscol/internal/report"

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/runview"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// kind is what a stretch of time was spent on. Where two hold at once, the later one of this list does: what stands inside stands
// behind what it is inside of.
type kind uint8

const (
	kindNone kind = iota

	// Of the run as a whole, from SLURM's accounting and from NVRx's launcher.
	kindQueue
	kindAllocation
	kindJobStep // a step of the SLURM job runs: not the scheduler's time
	kindOrchestration

	// Of a rank.
	kindStartup
	kindLoad
	kindLoop // it trains: the umbrella over steps and what is between them
	kindTorn // a step that did not end, or failed
	kindStep
	kindProductive // rl.bucket, inside a step
	kindOverhead
	kindIdle
	kindWasted
	kindSave
	kindEvaluate

	// Not on the time line.
	kindWait      // for other ranks: communication
	kindAsyncSave // a checkpoint worker writes, while training goes on
	kindUmbrella  // a whole that says nothing about its parts
)

// ofRun reports whether the kind comes from outside of the ranks.
func (k kind) ofRun() bool { return k >= kindQueue && k <= kindOrchestration }

// onTimeLine reports whether a rank's time line has it.
func (k kind) onTimeLine() bool { return k >= kindStartup && k <= kindEvaluate }

// exact and below say what spans are of, by their newest names: those of Megatron-LM, NeMo RL, NeMo Gym, NVRx and of the reckoner
// of SLURM's accounting. The captured example of NeMo Lens 0.1 has megatron.save_checkpoint.
var (
	exact = map[string]kind{
		"nv.dl.training.startup":         kindStartup,
		"pre_startup":                    kindStartup,
		"workload":                       kindUmbrella,
		"megatron.pretrain":              kindUmbrella,
		"megatron.model_init":            kindStartup,
		"megatron.load_checkpoint":       kindLoad,
		"nv.dl.training.checkpoint.load": kindLoad,
		"nv.dl.training.iter_block":      kindLoop,
		"nv.dl.training.evaluate":        kindEvaluate,
		"megatron.save_checkpoint":       kindSave,
		"nv.mlm.checkpoint.ft_heartbeat": kindUmbrella, // every step, no time to speak of
		"rl.startup":                     kindStartup,
		"rl.init.total":                  kindStartup,
		"gym.startup":                    kindStartup,
		"gym.job":                        kindUmbrella,
		"gym.rollout":                    kindProductive,
		"slurm.job":                      kindUmbrella,
		"slurm.job_attempt.synthesized":  kindUmbrella,
		"slurm.job_setup":                kindAllocation,
		"slurm.job_teardown":             kindAllocation,
		"slurm.inter_step_gap":           kindAllocation,
		"slurm.inter_attempt_gap":        kindQueue,
		"slurm.phase.deferred":           kindQueue,
		"slurm.phase.queued":             kindQueue,
		"slurm.phase.cleanup_tail":       kindAllocation,
		"slurm.record.allocation":        kindAllocation,
		"slurm.record.batch":             kindUmbrella,
		"slurm.record.extern":            kindUmbrella,
		"slurm.step":                     kindJobStep,
		"slurm.record.step":              kindJobStep,
		"nv.nvrx.ftl.cycle":              kindUmbrella,
		"nv.nvrx.ftl.run":                kindUmbrella,
		"nv.nvrx.ftl.run_start":          kindUmbrella,
		"nv.nvrx.ftl.fault":              kindUmbrella,
	}
	below = []struct {
		prefix string
		kind   kind
	}{
		{"nv.dl.training.startup.", kindStartup},
		{"workload.startup.", kindStartup},
		{"slurm.startup.", kindStartup},
		{"nv.dl.training.checkpoint.load.", kindLoad},
		{"nv.dl.training.checkpoint.", kindSave},
		{"nv.mlm.checkpoint.", kindSave},
		{"nv.dl.training.evaluate.", kindEvaluate},
		{"nv.mcore.p2p.", kindWait},
		{"nv.mcore.grad_sync.", kindWait},
		{"nccl.", kindWait},
		{"nv.nvrx.ckpt.", kindAsyncSave},
		{"nv.nvrx.ftl.", kindOrchestration},
		{"rl.setup.", kindStartup},
		{"gym.startup.", kindStartup},
		{"gym.server.startup", kindStartup},
	}
	newNames = semconv.ToNew(semconv.Spans())
)

// kindOfName is what a span of that name is of, and whether the name is known.
func kindOfName(name string) (kind, bool) {
	if runview.IsStep(name) {
		return kindStep, true
	}
	if renamed, ok := newNames.Rename(name); ok {
		name = renamed
	}
	if k, ok := exact[name]; ok {
		return k, true
	}
	for _, b := range below {
		if strings.HasPrefix(name, b.prefix) {
			return b.kind, true
		}
	}
	if algorithm, part, ok := strings.Cut(strings.TrimPrefix(name, "rl."), "."); ok && strings.HasPrefix(name, "rl.") && algorithm != "" {
		if algorithm == "idle" {
			return kindIdle, true
		}
		if k, ok := rlParts[part]; ok {
			return k, true
		}
	}
	return kindNone, false
}

// rlParts are the spans rl.<algorithm>.<part> of NeMo RL. Which of them are productive is what its rl.bucket says where it has one.
var rlParts = map[string]kind{
	"job":                           kindUmbrella,
	"load_model":                    kindStartup,
	"checkpointing":                 kindSave,
	"evaluate":                      kindEvaluate,
	"generation":                    kindProductive,
	"reward_calculation":            kindProductive,
	"policy_training":               kindProductive,
	"value_training":                kindProductive,
	"data_processing":               kindOverhead,
	"policy_and_reference_logprobs": kindOverhead,
	"teacher_logprob_inference":     kindOverhead,
	"advantage_calculation":         kindOverhead,
}

// bucketKinds are the values of rl.bucket.
var bucketKinds = map[string]kind{"productive": kindProductive, "overhead": kindOverhead, "idle": kindIdle, "wasted": kindWasted}

// told is what the report reads of a span.
type told struct {
	kind      kind
	from, to  int64 // nanoseconds since 1970, by the sender's clock; to ≥ from
	step      int64 // noStep without one
	failed    bool  // status ERROR
	truncated bool  // closed by a shutdown, not by who opened it
	skipped   bool  // a step whose update was left out
	infra     bool  // a SLURM step that does none of the job's work
	level     int   // how much of a save, a load, an evaluation the span is: see levelOf
	unknown   bool  // it is tagged as counting for goodput, but nobody knows the name
}

const noStep = -1

// tell reads a span.
func tell(span ptrace.Span) told {
	t := told{from: clampTime(span.StartTimestamp()), to: clampTime(span.EndTimestamp()), step: noStep}
	t.to = max(t.to, t.from)
	t.failed = span.Status().Code() == ptrace.StatusCodeError
	var known bool
	t.kind, known = kindOfName(span.Name())
	var number runview.StepNumber
	tagged, bucket := false, kindNone
	for key, v := range span.Attributes().All() {
		switch key {
		case semconv.SpanTruncated:
			t.truncated = v.Type() == pcommon.ValueTypeBool && v.Bool()
		case semconv.TrainingStepSkipped, semconv.TrainingStepSkippedOld:
			t.skipped = v.Type() == pcommon.ValueTypeBool && v.Bool() || v.Type() == pcommon.ValueTypeInt && v.Int() > 0
		case semconv.SlurmStepRole:
			t.infra = v.AsString() == "infra"
		case "rl.bucket":
			bucket = bucketKinds[v.AsString()]
		case semconv.Purpose, "lens.span_category", "is_goodput_span":
			tagged = tagged || saysGoodput(v)
		default:
			readStep(&number, key, v)
		}
	}
	if n, ok := number.Number(); ok {
		t.step = n
	}
	if bucket != kindNone && (!known || t.kind >= kindProductive && t.kind <= kindWasted) {
		t.kind, known = bucket, true
	}
	t.unknown = tagged && !known
	t.level = levelOf(span.Name())
	return t
}

func readStep(n *runview.StepNumber, key string, v pcommon.Value) {
	i := runview.StepKey(key)
	if i == runview.NoKey {
		return
	}
	switch v.Type() {
	case pcommon.ValueTypeInt:
		n.Int(i, v.Int())
	case pcommon.ValueTypeDouble:
		n.Double(i, v.Double())
	default:
		n.Other(i)
	}
}

// saysGoodput reads the tags of all three generations: purpose (a list), lens.span_category, is_goodput_span.
func saysGoodput(v pcommon.Value) bool {
	switch v.Type() {
	case pcommon.ValueTypeBool:
		return v.Bool()
	case pcommon.ValueTypeStr:
		return v.Str() == "goodput"
	case pcommon.ValueTypeSlice:
		for _, item := range v.Slice().All() {
			if item.Type() == pcommon.ValueTypeStr && item.Str() == "goodput" {
				return true
			}
		}
	}
	return false
}

// levels of the spans of one save, load or evaluation.
const (
	levelPart  = iota // a part of it
	levelWhole        // all of it
	levelHold         // a save, with what is around it while training is held up
	levels
)

// levelOf ranks the spans of a save, a load or an evaluation, so that each is counted once: by the highest level that a rank sends.
func levelOf(name string) int {
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch last {
	case "exposed_save":
		return levelHold
	case "save", "save_checkpoint", "checkpointing", "load", "load_checkpoint", "evaluate":
		return levelWhole
	}
	return levelPart
}

// clampTime keeps differences of times within an int64: nothing after 2116 is a time of a run.
func clampTime(t pcommon.Timestamp) int64 { return int64(min(uint64(t), 1<<62)) }
