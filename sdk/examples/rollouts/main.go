// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Command rollouts collects rollouts as NeMo Gym does: a driver asks a gateway, which asks the server of an environment. Each
// rollout is one trace through three processes, and as many are in flight at once as -in-flight says:
//
//	NEMO_GYM_OTEL_ENABLED=true NEMO_GYM_OTEL_SPAN_GROUPS=all go run ./examples/rollouts -n 16384 -in-flight 16384
//
// The driver starts the two servers itself. They run alone with -role environment and -role gateway; the driver does with
// -role driver.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "rollouts:", err)
		os.Exit(1)
	}
}

type settings struct {
	role               string
	listen, target     string
	rollouts, inFlight int
	gather             int
	timeout            time.Duration
	parent             bool
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("rollouts", flag.ContinueOnError)
	flags.StringVar(&s.role, "role", "all", "all, environment, gateway or driver")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:0", "address of a server")
	flags.StringVar(&s.target, "target", "", "URL of whom a gateway or driver asks")
	flags.IntVar(&s.rollouts, "n", 1024, "rollouts")
	flags.IntVar(&s.inFlight, "in-flight", 16384, "most rollouts at once")
	flags.IntVar(&s.gather, "gather", 0, "the environment answers nobody before that many rollouts are in flight")
	flags.DurationVar(&s.timeout, "timeout", time.Minute, "of one rollout")
	flags.BoolVar(&s.parent, "parent", false, "a server ends when its standard input does")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case s.rollouts < 1 || s.inFlight < 1:
		return s, errors.New("-n and -in-flight must be above 0")
	case s.gather > min(s.rollouts, s.inFlight):
		return s, fmt.Errorf("-gather %d must be at most -n and -in-flight, or it waits for ever", s.gather)
	case (s.role == "gateway" || s.role == "driver") && s.target == "":
		return s, fmt.Errorf("-role %s needs -target", s.role)
	}
	return s, nil
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer, opts ...telemetry.Option) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if err := lens.DefaultRegistry().Register(lens.GymGroups(), true); err != nil {
		return err
	}
	// Thousands of rollouts end at once, and the queue's 2,048 places would be too few for their spans.
	if os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE") == "" {
		if err := os.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "131072"); err != nil {
			return err
		}
	}
	cfg, err := telemetry.FromEnv(telemetry.Source{Prefix: telemetry.PrefixGym, Fallback: telemetry.PrefixLens})
	if err != nil {
		return err
	}
	cfg.ServiceName = "nemo-gym/" + strings.Replace(s.role, "all", "driver", 1)
	tel, err := telemetry.Setup(ctx, cfg, append(opts, telemetry.WithPublishedResource())...)
	if err != nil {
		return err
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // the queue may be full
		defer cancel()
		err = errors.Join(err, tel.Shutdown(bounded))
	}()

	switch s.role {
	case "environment":
		return serve(ctx, s, newEnvironment(s, tel.Meter()), stdin, stdout)
	case "gateway":
		return serve(ctx, s, newGateway(s), stdin, stdout)
	case "driver":
		return report(ctx, newDriver(s, tel.Meter()), stdout)
	case "all":
		return all(ctx, s, stdout, func(target string) error {
			s.target = target
			return report(ctx, newDriver(s, tel.Meter()), stdout)
		})
	}
	return fmt.Errorf("-role %q is none of all, environment, gateway and driver", s.role)
}

func report(ctx context.Context, d driver, stdout io.Writer) error {
	result, err := d.run(ctx)
	return errors.Join(err, json.NewEncoder(stdout).Encode(result))
}

// all starts the two servers, lets drive ask the gateway, and ends them.
func all(ctx context.Context, s settings, stdout io.Writer, drive func(target string) error) (err error) {
	target := ""
	for _, role := range []string{"environment", "gateway"} {
		url, stop, err := start(ctx, s, role, target, stdout)
		if err != nil {
			return fmt.Errorf("%s: %w", role, err)
		}
		defer func() {
			if stopErr := stop(); stopErr != nil {
				fmt.Fprintf(os.Stderr, "rollouts: %s: %v\n", role, stopErr)
			}
		}()
		target = url
	}
	return drive(target)
}

const listening = "listening on "

// start starts a server as a process of its own, which ends when stop is called or this process ends. What it writes, console
// lines for instance, goes to out.
func start(ctx context.Context, s settings, role, target string, out io.Writer) (url string, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, "-parent", "-role="+role, "-target="+target, fmt.Sprint("-n=", s.rollouts),
		fmt.Sprint("-in-flight=", s.inFlight), fmt.Sprint("-gather=", s.gather), fmt.Sprint("-timeout=", s.timeout))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		copyLines(out, lines)
	}()
	stop = func() error {
		kill := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		err := stdin.Close()
		<-copied
		return errors.Join(err, cmd.Wait())
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), listening)
	if !ok {
		return "", nil, errors.Join(fmt.Errorf("does not say where it listens: %q", line), err, stop())
	}
	return url, stop, ctx.Err()
}

// copyLines copies whole lines, so that those of several processes do not mix.
func copyLines(out io.Writer, lines *bufio.Reader) {
	for {
		line, err := lines.ReadBytes('\n')
		_, _ = out.Write(line) // Where nobody takes it, the server goes on all the same.
		if err != nil {
			return
		}
	}
}
