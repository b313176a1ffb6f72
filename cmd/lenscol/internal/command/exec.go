// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/internal/launch"
)

func newExecCommand() *cobra.Command {
	var (
		session launch.Session
		command launch.Command
		attrs   []string
	)
	cmd := &cobra.Command{
		Use:   "exec [--name N] -- COMMAND [ARGUMENT ...]",
		Short: "Runs a command inside a span",
		Long: `Runs a command, and sends a span of its run: exit code or signal, CPU time, most memory. The span is a child of the TRACEPARENT of the
environment, and the command gets its own as TRACEPARENT. Where it goes the environment says, as to NeMo Lens. Arguments
are not sent: they may hold secrets.

Signals are handed on, and the exit code is the command's: 128 and the number where a signal ended it, 127 where there is no
such program, 126 where it cannot be started. A collector that is away changes nothing but a line on stderr.`,
		Example: `  lenscol exec --name preprocess -- python preprocess.py --shards 64
  srun lenscol exec --attr phase=eval -- ./evaluate.sh`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("the command is missing: lenscol exec -- COMMAND"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if command.Attrs, err = launch.ParseAttrs(attrs); err != nil {
				return usage(err)
			}
			signals := make(chan os.Signal, 16)
			signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT)
			defer signal.Stop(signals)
			session.Out = os.Stdout
			command.Args, command.Signals = args, signals
			command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
			code, err := launch.Exec(cmd.Context(), session, command)
			if err != nil {
				fmt.Fprintln(os.Stderr, "lenscol exec: the span was not sent:", err)
			}
			if code != 0 {
				return exitError{code: code}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // What stands behind the command is its own.
	f.StringVar(&command.Name, "name", "", "Name of the span (default the program's)")
	f.StringVar(&session.Service, "service", "", "service.name; goes before that of the environment")
	f.StringVar(&session.RunID, "run-id", "", "nemo.run.id; goes before that of the environment")
	f.StringArrayVar(&attrs, "attr", nil, "Attribute of the span, a text, as `KEY=VALUE`; may be repeated")
	f.DurationVar(&command.FlushTimeout, "flush-timeout", 2*time.Second, "How long the end may wait for a collector that can be reached")
	return cmd
}
