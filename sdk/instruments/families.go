// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments // import "github.com/lenscol/lenscol/sdk/instruments"

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// The groups of [Families].
const (
	GroupInference = "inference"
	GroupRL        = "rl"
	GroupGym       = "gym"
	GroupTraining  = "training"
)

// Families are the series of NeMo Lens and its users, by group, under their new names. Sources: NeMo Lens 0.2,
// inference, rl and gym; Megatron-LM, training; and what NeMo RL, NeMo Gym and Megatron-LM added since. Keys are the
// arguments of Lens's functions.
func Families() map[string][]Spec {
	return map[string][]Spec{
		GroupInference: inferenceSpecs(),
		GroupRL:        rlSpecs(),
		GroupGym:       gymSpecs(),
		GroupTraining:  trainingSpecs(),
	}
}

// Inference are the metrics of a model server (OpenTelemetry semantic conventions, GenAI).
type Inference struct {
	RequestDuration *Instrument // s
	TokenUsage      *Instrument // tokens of a request; gen_ai.token.type says which
}

func inferenceSpecs() []Spec {
	return []Spec{
		{Key: "server_request_duration", Name: "gen_ai.server.request.duration", Kind: Histogram, Unit: "s", Description: "GenAI server request duration.",
			Bounds: []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}}, // of the conventions
		{Key: "token_usage", Name: "gen_ai.client.token.usage", Kind: Histogram, Unit: "{token}", Description: "Number of input and output tokens used."},
	}
}

// NewInference makes the metrics of a model server.
func NewInference(meter metric.Meter, names Names) Inference {
	g := family(meter, names, GroupInference, inferenceSpecs())
	return Inference{RequestDuration: g["server_request_duration"], TokenUsage: g["token_usage"]}
}

// Request is one request to a model. What is nil is not recorded.
type Request struct {
	Duration     *time.Duration
	InputTokens  *int
	OutputTokens *int
	Model        string // no attribute where it is empty
	Provider     string // "nemo", unless it is set
	Operation    string // "text_completion", unless it is set
}

// Record records a request (NeMo Lens, record_inference_metrics).
func (i Inference) Record(ctx context.Context, r Request, attrs ...attribute.KeyValue) {
	if !i.RequestDuration.Enabled(ctx) && !i.TokenUsage.Enabled(ctx) {
		return
	}
	all := make([]attribute.KeyValue, 0, len(attrs)+4)
	all = append(all, attribute.String(semconv.GenAIOperationName, or(r.Operation, "text_completion")), attribute.String(semconv.GenAIProviderName, or(r.Provider, "nemo")))
	if r.Model != "" {
		all = append(all, attribute.String(semconv.GenAIRequestModel, r.Model))
	}
	all = append(all, attrs...)
	if r.Duration != nil {
		i.RequestDuration.RecordDuration(ctx, *r.Duration, all...)
	}
	if r.InputTokens != nil {
		i.TokenUsage.Record(ctx, float64(*r.InputTokens), append(all, attribute.String(semconv.GenAITokenType, "input"))...)
	}
	if r.OutputTokens != nil {
		i.TokenUsage.Record(ctx, float64(*r.OutputTokens), append(all, attribute.String(semconv.GenAITokenType, "output"))...)
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Training are the metrics of a trainer. Megatron-LM's newest sends TokensProcessed alone; the others it had up to August 2026.
type Training struct {
	StepDuration     *Instrument // ms
	Loss             *Instrument
	ThroughputTFLOPS *Instrument // of a GPU
	GradNorm         *Instrument
	LearningRate     *Instrument
	TokensPerSecond  *Instrument
	MemoryAllocated  *Instrument // GB
	SkippedIters     *Instrument // nothing is sent before the first
	TokensProcessed  *Instrument // of all ranks together
}

func trainingSpecs() []Spec {
	return []Spec{
		{Key: "step_duration_ms", Name: "megatron.training.step_duration_ms", Kind: Histogram, Unit: "ms", Description: "Duration of one training step in milliseconds."},
		{Key: "loss", Name: "megatron.training.loss", Description: "Training loss value at each log interval."},
		{Key: "throughput_tflops", Name: "megatron.training.throughput_tflops", Description: "Training throughput in TFLOP/s/GPU."},
		{Key: "grad_norm", Name: "megatron.training.grad_norm", Description: "Global gradient norm."},
		{Key: "learning_rate", Name: "megatron.training.learning_rate", Description: "Current learning rate."},
		{Key: "tokens_per_sec", Name: "megatron.training.tokens_per_sec", Description: "Training throughput in tokens/second."},
		{Key: "memory_allocated_gb", Name: "megatron.training.memory_allocated_gb", Description: "GPU memory allocated in GB."},
		{Key: "skipped_iters", Name: "megatron.training.skipped_iters", Kind: Counter, Integer: true, SkipZero: true, Description: "Number of training iterations skipped."},
		{Key: "tokens_processed", Name: "nv.dl.training.tokens.processed", Kind: Counter, Integer: true, Unit: "{token}", Description: "Global tokens processed per executed training iteration."},
	}
}

// NewTraining makes the metrics of a trainer.
func NewTraining(meter metric.Meter, names Names) Training {
	g := family(meter, names, GroupTraining, trainingSpecs())
	return Training{
		StepDuration:     g["step_duration_ms"],
		Loss:             g["loss"],
		ThroughputTFLOPS: g["throughput_tflops"],
		GradNorm:         g["grad_norm"],
		LearningRate:     g["learning_rate"],
		TokensPerSecond:  g["tokens_per_sec"],
		MemoryAllocated:  g["memory_allocated_gb"],
		SkippedIters:     g["skipped_iters"],
		TokensProcessed:  g["tokens_processed"],
	}
}

// family makes the instruments of a family. What they leave out counts in the default registry.
func family(meter metric.Meter, names Names, name string, specs []Spec) map[string]*Instrument {
	if meter == nil {
		meter = noop.Meter{}
	}
	return build(meter, names, specs, &report{group: name, skipped: &defaultRegistry.skipped})
}
