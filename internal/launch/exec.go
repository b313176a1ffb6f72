// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package launch // import "github.com/lenscol/lenscol/internal/launch"

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/codes"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/semconv"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

// Command is a command that runs inside a span.
type Command struct {
	Args    []string // the program and its arguments; they are not exported, for they may hold secrets
	Name    string   // of the span; "": the program's
	Attrs   []lens.Attr
	Signals <-chan os.Signal // handed on to the command

	Stdin          *os.File
	Stdout, Stderr *os.File

	FlushTimeout time.Duration // how long the exit may wait for a collector that can be reached
}

// What a shell answers for a program that it cannot start (POSIX, 2.8.2).
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// Exec runs the command inside a span and returns its exit code: 128 and the signal's number where a signal ended it, 127 where there
// is no such program, 126 where it cannot be started. The command gets TRACEPARENT, TRACESTATE and BAGGAGE of the span, which
// is itself a child of those in this process's environment.
//
// err is why the span did not reach the collector: it changes nothing about the command. One that cannot be reached delays nothing:
// whether it can is found out while the command runs.
func Exec(ctx context.Context, s Session, c Command) (exitCode int, err error) {
	name := c.Name
	if name == "" {
		name = filepath.Base(c.Args[0])
	}
	environ := os.Environ() // as it came: Setup mends what it cannot use
	h, target, setupErr := s.start(ctx, telemetry.WithRankFromEnv())
	if setupErr != nil {
		exitCode, _, _ = c.run(environ)
		return exitCode, setupErr
	}
	reached := func() error { return nil }
	if h.IsExporting() {
		reached = reach(target)
	}

	ctx, span := lens.Start(lens.Extract(ctx, fromEnviron()), name, c.Attrs...)
	carrier := map[string]string{}
	lens.Inject(ctx, carrier)
	exitCode, state, startErr := c.run(append(environ, toEnviron(carrier)...))
	describe(span, exitCode, state, startErr)
	span.End()

	timeout := c.FlushTimeout
	unreached := reached()
	if unreached != nil {
		timeout = 0 // nothing is tried any more
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	err = h.Shutdown(flush)
	return exitCode, cmp.Or(unreached, err)
}

// describe says in the span how the command ended.
func describe(span *lens.Span, exitCode int, state *os.ProcessState, startErr error) {
	if startErr != nil {
		span.Fail(startErr)
	}
	if state == nil {
		return
	}
	span.SetAttributes(lens.Int(semconv.ProcessPID, state.Pid()), lens.Int(semconv.ProcessExitCode, exitCode),
		lens.Float64(semconv.ProcessCPUUser, state.UserTime().Seconds()), lens.Float64(semconv.ProcessCPUSystem, state.SystemTime().Seconds()))
	if bytes := maxRSS(state); bytes > 0 {
		span.SetAttributes(lens.Int64(semconv.ProcessMaxRSS, bytes))
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		span.SetAttributes(lens.String(semconv.ProcessExitSignal, signalName(status.Signal())))
		span.SetStatus(codes.Error, "ended by "+signalName(status.Signal()))
	} else if exitCode != 0 && startErr == nil {
		span.SetStatus(codes.Error, fmt.Sprintf("exit code %d", exitCode))
	}
}

// run runs the command to its end in that environment.
func (c Command) run(environ []string) (exitCode int, state *os.ProcessState, err error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.Env = environ
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return exitNotFound, nil, err
		}
		return exitNotExecutable, nil, err
	}
	ended := make(chan struct{})
	handedOn := make(chan struct{})
	go func() {
		defer close(handedOn)
		for {
			select {
			case sig := <-c.Signals:
				_ = cmd.Process.Signal(sig) // It may have ended by now.
			case <-ended:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(ended)
	<-handedOn
	state = cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), state, nil
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return exitNotExecutable, state, err
	}
	return state.ExitCode(), state, nil
}
