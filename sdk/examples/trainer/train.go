// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"math"
	"time"

	"go.opentelemetry.io/otel/trace"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/instruments"
	"github.com/lenscol/lenscol/sdk/semconv"
)

var (
	job        = lens.Group("megatron.job")
	train      = lens.Group("megatron.train")
	checkpoint = lens.Group("megatron.ckpt")
	evaluate   = lens.Group("megatron.eval")
)

type settings struct {
	steps, microbatches, saveEvery, evaluateEvery, logEvery, skipEvery, tokens int
	stepTime                                                                   time.Duration
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("trainer", flag.ContinueOnError)
	flags.IntVar(&s.steps, "steps", 20, "training steps")
	flags.DurationVar(&s.stepTime, "step-time", 50*time.Millisecond, "how long a step takes")
	flags.IntVar(&s.microbatches, "microbatches", 4, "microbatches in a step")
	flags.IntVar(&s.tokens, "tokens", 4096, "tokens in a step, over all ranks")
	flags.IntVar(&s.saveEvery, "save-every", 10, "steps between checkpoints")
	flags.IntVar(&s.evaluateEvery, "evaluate-every", 10, "steps between evaluations")
	flags.IntVar(&s.logEvery, "log-every", 5, "steps between reports")
	flags.IntVar(&s.skipEvery, "skip-every", 8, "steps between those that an overflow makes the optimizer skip")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	for _, n := range []int{s.steps, s.microbatches, s.tokens, s.saveEvery, s.evaluateEvery, s.logEvery, s.skipEvery} {
		if n <= 0 {
			return s, errors.New("every flag must be above 0")
		}
	}
	return s, nil
}

type trainer struct {
	settings
	metrics instruments.Training
	log     *slog.Logger
}

// train is the run: the startup is a trace, and so is each pass through the loop from one checkpoint to the next, linked
// to what was before it, so that no trace is as long as the run. It does not end before the run does, whatever becomes of ctx.
func (t trainer) train(ctx context.Context) {
	before := t.startup(ctx)
	for from := 1; from <= t.steps; from += t.saveEvery {
		before = t.pass(ctx, from, min(from+t.saveEvery-1, t.steps), before)
	}
}

// startup is a span from the start of the process on, though telemetry was set up later.
func (t trainer) startup(ctx context.Context) trace.SpanContext {
	start, err := lens.ProcessStartTime()
	if err != nil {
		start = time.Now()
	}
	ctx, span := job.StartWith(ctx, "nv.dl.training.startup", lens.SpanOptions{StartTime: start})
	defer span.End()
	job.EmitSpan(ctx, "nv.dl.training.startup.process", start, time.Now())
	_, model := job.Start(ctx, "nv.dl.training.startup.model_init")
	t.work(1)
	model.End()
	t.log.InfoContext(ctx, "training starts", "steps", t.steps)
	return span.SpanContext()
}

func (t trainer) pass(ctx context.Context, from, to int, before trace.SpanContext) trace.SpanContext {
	ctx, span := job.StartWith(ctx, "nv.dl.training.iter_block", lens.SpanOptions{Root: true}, lens.Int(semconv.TrainingStep, from))
	defer span.End()
	span.AddLink(before)
	for step := from; step <= to; step++ {
		t.step(ctx, step)
		if step%t.logEvery == 0 {
			t.report(ctx, step)
		}
		if step%t.evaluateEvery == 0 {
			t.evaluate(ctx)
		}
	}
	t.save(ctx, to)
	return span.SpanContext()
}

func (t trainer) step(ctx context.Context, step int) {
	begin := time.Now()
	skipped := step%t.skipEvery == 0
	ctx, span := train.Start(ctx, "nv.dl.training.iteration", lens.Int(semconv.TrainingStep, step), lens.Bool(semconv.TrainingStepSkipped, skipped))
	defer span.End()

	_, pass := train.Start(ctx, "nv.dl.training.iteration.forward_backward", lens.Int(semconv.NumMicrobatches, t.microbatches))
	t.work(0.8)
	pass.End()
	_, optimizer := train.Start(ctx, "nv.dl.training.iteration.optimizer_step", lens.Bool(semconv.OptimizerUpdateSuccessful, !skipped))
	t.work(0.2)
	optimizer.End()

	t.metrics.TokensProcessed.Record(ctx, float64(t.tokens))
	t.metrics.StepDuration.RecordDuration(ctx, time.Since(begin))
	if skipped {
		t.metrics.SkippedIters.Record(ctx, 1)
	}
}

// report is what Megatron-LM prints every few steps: events of its span, gauges, and a line of the log.
func (t trainer) report(ctx context.Context, step int) {
	loss := 2 + 8*math.Exp(-float64(step)/50)
	ctx, span := train.Start(ctx, "nv.mlm.train.log")
	defer span.End()
	span.AddEvent("nv.dl.training.objective", lens.Int(semconv.TrainingStep, step),
		lens.String("nv.dl.training.objective.name", "lm loss"), lens.Float64("nv.dl.training.objective.value", loss),
		lens.String("nv.dl.measurement.domain", "dp_mean"))
	t.metrics.Loss.Record(ctx, loss)
	t.metrics.TokensPerSecond.Record(ctx, float64(t.tokens)/t.stepTime.Seconds())
	t.metrics.LearningRate.Record(ctx, 3e-4)
	t.log.InfoContext(ctx, "iteration", "step", step, "loss", loss)
}

func (t trainer) evaluate(ctx context.Context) {
	ctx, span := evaluate.Start(ctx, "nv.dl.training.evaluate")
	defer span.End()
	for range 2 {
		_, step := evaluate.Start(ctx, "nv.dl.training.evaluate.step")
		t.work(0.2)
		step.End()
	}
}

func (t trainer) save(ctx context.Context, step int) {
	ctx, span := checkpoint.Start(ctx, "nv.dl.training.checkpoint.save", lens.Int(semconv.TrainingStep, step))
	defer span.End()
	for _, phase := range []string{"state_dict", "io_write", "finalize"} {
		_, part := checkpoint.Start(ctx, "nv.dl.training.checkpoint.save."+phase)
		t.work(0.1)
		part.End()
	}
	t.log.InfoContext(ctx, "checkpoint saved", "step", step)
}

// work stands for what a rank does in that share of a step. It cannot be interrupted.
func (t trainer) work(share float64) { time.Sleep(time.Duration(share * float64(t.stepTime))) }
