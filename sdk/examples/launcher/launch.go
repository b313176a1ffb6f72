// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/examples/internal/envcarrier"
	"github.com/lenscol/lenscol/sdk/semconv"
)

var (
	job = lens.Group("nvrx.job")
	ft  = lens.Group("nvrx.ft")
)

type launch struct {
	ranks   int
	grace   time.Duration
	command []string
}

// run starts all ranks and waits until all have ended. Its error is that of the first rank that failed.
func (l launch) run(ctx context.Context, signals <-chan os.Signal) (err error) {
	ctx, span := job.Start(envcarrier.Context(ctx), "nv.nvrx.ftl.run", lens.Int(semconv.DLWorldSize, l.ranks))
	defer span.Finish(&err)
	ended := make(chan error, l.ranks)
	var running []*os.Process
	for rank := range l.ranks {
		process, startErr := l.start(ctx, rank, ended)
		if startErr != nil {
			ended <- startErr
			continue
		}
		running = append(running, process)
	}

	outcome := "completed"
	var kill <-chan time.Time
	stop := func(s os.Signal) {
		for _, p := range running {
			_ = p.Signal(s) // one that has ended needs none
		}
		if kill == nil {
			kill = time.After(l.grace)
		}
	}
	for left := l.ranks; left > 0; {
		select {
		case rankErr := <-ended:
			left--
			if rankErr != nil && err == nil {
				err = rankErr
				stop(syscall.SIGTERM)
			}
		case s := <-signals:
			outcome = "terminated"
			stop(s)
		case <-kill:
			for _, p := range running {
				_ = p.Kill()
			}
		}
	}
	if err != nil && outcome == "completed" {
		outcome = "failed"
	}
	span.SetAttributes(lens.String(semconv.NVRxCycleOutcome, outcome))
	return err
}

// start starts a rank, which is a span from its start to its end; the rank's own trace is below it.
func (l launch) start(ctx context.Context, rank int, ended chan<- error) (*os.Process, error) {
	ctx, span := ft.Start(ctx, "nv.nvrx.ftl.worker_launch", lens.Int(semconv.NVRxGroupRank, rank))
	cmd := exec.Command(l.command[0], l.command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), envcarrier.Environ(ctx)...)
	cmd.Env = append(cmd.Env, fmt.Sprint("RANK=", rank), fmt.Sprint("LOCAL_RANK=", rank), fmt.Sprint("WORLD_SIZE=", l.ranks))
	if err := cmd.Start(); err != nil {
		span.Fail(err)
		span.End()
		return nil, fmt.Errorf("rank %d: %w", rank, err)
	}
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("rank %d: %w", rank, err)
		}
		span.SetAttributes(lens.Int(semconv.ProcessExitCode, cmd.ProcessState.ExitCode()))
		span.Fail(err)
		span.End()
		ended <- err
	}()
	return cmd.Process, nil
}
