// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Command trainer is one rank of a training run, with the telemetry of Megatron-LM and without its arithmetic:
// startup, steps with forward, backward and optimizer, checkpoints, evaluation; metrics; logs.
//
//	MEGATRON_OTEL_ENABLED=true MEGATRON_OTEL_EXPORTER=console MEGATRON_OTEL_SPAN_GROUPS=per_step go run ./examples/trainer
//
// Its rank is RANK of WORLD_SIZE, as torchrun sets them. On SIGTERM it does not wait for the step that runs, since a
// collective on a GPU cannot be interrupted: telemetry is shut down, which ends the open spans and marks them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/contrib/slogbridge"
	"github.com/lenscol/lenscol/sdk/examples/internal/envcarrier"
	"github.com/lenscol/lenscol/sdk/instruments"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "trainer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, opts ...telemetry.Option) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if err := lens.DefaultRegistry().Register(lens.MegatronGroups(), true); err != nil {
		return err
	}
	cfg, err := telemetry.FromEnv(telemetry.Source{Prefix: telemetry.PrefixMegatron, Fallback: telemetry.PrefixLens})
	if err != nil {
		return err
	}
	tel, err := telemetry.Setup(ctx, cfg, append(opts, telemetry.WithRankFromEnv())...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(context.WithoutCancel(ctx))) }()

	t := trainer{
		settings: s,
		metrics:  instruments.NewTraining(tel.Meter(), instruments.NewNames),
		log:      slogbridge.Bridge(slog.Default(), slogbridge.Options{Provider: tel.LoggerProvider()}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.train(envcarrier.Context(ctx))
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.log.WarnContext(ctx, "stopped, the step that runs is given up")
	}
	return nil
}
