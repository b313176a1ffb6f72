// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Command launcher starts the ranks of a run on this machine, and gives all of them its run id, its resource and its trace:
//
//	go build -o bin/ ./examples/...
//	NEMO_LENS_ENABLED=true NEMO_LENS_EXPORTER=console bin/launcher -n 4 -- bin/trainer -steps 10
//
// A rank finds RANK, WORLD_SIZE and LOCAL_RANK as torchrun sets them, OTEL_RESOURCE_ATTRIBUTES and TRACEPARENT. Signals go on to all
// ranks. One that fails ends the others by SIGTERM, and after -grace by SIGKILL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := run(context.Background(), os.Args[1:], signals); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "launcher:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, signals <-chan os.Signal, opts ...telemetry.Option) (err error) {
	var l launch
	flags := flag.NewFlagSet("launcher", flag.ContinueOnError)
	flags.IntVar(&l.ranks, "n", 2, "ranks")
	flags.DurationVar(&l.grace, "grace", 10*time.Second, "how long ranks have to end after a signal or a failure")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if l.command = flags.Args(); len(l.command) == 0 || l.ranks < 1 {
		return errors.New("want -n above 0 and a command: launcher -n 4 -- trainer -steps 100")
	}
	if err := lens.DefaultRegistry().Register(lens.NVRxGroups(), true); err != nil {
		return err
	}
	cfg, err := telemetry.FromEnv(telemetry.Source{Prefix: telemetry.PrefixNVRx, Fallback: telemetry.PrefixLens})
	if err != nil {
		return err
	}
	cfg.ServiceName = "nvrx.ft_launcher" // OTEL_SERVICE_NAME is that of the ranks
	tel, err := telemetry.Setup(ctx, cfg, append(opts, telemetry.WithPublishedResource())...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(ctx)) }()
	return l.run(ctx, signals)
}
