// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/collector/otelcol"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// portAttempts bounds how often `--ports auto` picks anew after another process was faster.
const portAttempts = 5

// startGrace is how long an agent that is told to end waits for a start that has begun.
const startGrace = 10 * time.Second

// runCommand makes root, which upstream built, run an agent instead of a bare collector.
func runCommand(root *cobra.Command, set otelcol.CollectorSettings) {
	a := &agent{set: set, now: time.Now}
	uris := recordConfigFlags(root)
	root.Flags().Var(&a.ports, "ports", "Listener ports, as a `LIST`: auto picks free ones, grpc=N,http=N,metrics=N sets them; for configs that read LENSCOL_<NAME>_PORT")
	root.Flags().StringVar(&a.portFile, "port-file", "", "`FILE` to write once lenscol listens, as shell exports: OTEL_EXPORTER_OTLP_ENDPOINT and the ports; removed at exit")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		a.stderr = cmd.ErrOrStderr()
		a.set.ConfigProviderSettings.ResolverSettings.URIs = uris.all()
		a.implicit = !cmd.Flag("config").Changed
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		defer signal.Stop(hangup)
		a.hangup = hangup
		a.ownHangup = func() {
			// Upstream's Run has asked for SIGHUP by now and would act on it as well. Ignore takes the signal from
			// everybody without restoring its default, death, for the moment until Notify. Where Run is late with
			// asking nothing is lost: it reloads the snapshot that it runs from, which changes nothing.
			signal.Ignore(syscall.SIGHUP)
			signal.Notify(hangup, syscall.SIGHUP)
		}
		return a.run(ctx)
	}
}

// agent runs a config for as long as the process lives, one collector after the other: a reload ends the one that
// runs and starts the next.
//
// Upstream's own reload shuts the old service down before it knows whether the new config is any good, and ends the process when
// it is not. A training job would lose its telemetry for the rest of the night over a typo. So here a collector runs from a
// snapshot of its config; a reload reads a new snapshot and validates it beside the running collector, and changes over only then.
// Where the new one validates but does not start, the agent goes back to the last that ran.
//
// The price: each reload restarts all pipelines, after they were drained, where upstream would restart only the
// receivers if nothing else had changed.
type agent struct {
	set      otelcol.CollectorSettings
	implicit bool // no --config was given
	ports    portsFlag
	portFile string

	portFileWritten string // the text that was written last, empty for none

	stderr    io.Writer
	hangup    <-chan os.Signal
	ownHangup func()
	now       func() time.Time
}

// run serves until ctx is done or a collector ends by itself, which is an error.
func (a *agent) run(ctx context.Context) error {
	defer a.removePortFile()
	if err := a.removeStalePortFile(); err != nil {
		return err
	}
	next, release, err := a.prepare(ctx)
	if err != nil || next == nil {
		return err
	}
	var previous *snapshot // What ran before next, and runs again when next does not start.
	for attempt, ranOnce := 1, false; ; attempt++ {
		release()
		reload, started, err := a.serve(ctx, next)
		ranOnce = ranOnce || started
		switch {
		case reload != nil:
			previous, next = next, reload
		case err == nil || started:
			return err
		case previous != nil:
			a.log("reload: the new config is valid but does not start, going back to the one that ran before: %v", next.explain(err))
			previous, next = nil, previous
		case a.ports.auto && !ranOnce && attempt < portAttempts && errors.Is(err, syscall.EADDRINUSE):
			// The ports were free when they were picked and until release; another process was faster.
			if next, release, err = a.prepare(ctx); err != nil || next == nil {
				return err
			}
		default:
			return next.explain(err)
		}
	}
}

// prepare reads the config for the first start, nil where ctx ends before. release frees the ports that are held for it, to be
// called just before the start.
func (a *agent) prepare(ctx context.Context) (*snapshot, func(), error) {
	type result struct {
		snap    *snapshot
		release func()
		err     error
	}
	done := make(chan result, 1)
	// A source may hang, an HTTP server for one, and its provider may not care about ctx.
	go func() {
		snap, release, err := a.readForStart(ctx)
		done <- result{snap, release, err}
	}()
	select {
	case r := <-done:
		return r.snap, r.release, r.err
	case <-ctx.Done():
		return nil, nil, nil
	}
}

func (a *agent) readForStart(ctx context.Context) (*snapshot, func(), error) {
	snap, err := readSnapshot(ctx, a.set, a.configLogger())
	if err != nil || !a.ports.given() {
		return snap, func() {}, err
	}
	release, err := a.ports.export(snap.ports())
	if err != nil {
		return nil, nil, err
	}
	// Again, now with the variables set.
	if snap, err = readSnapshot(ctx, a.set, zap.NewNop()); err != nil {
		release()
		return nil, nil, err
	}
	return snap, release, nil
}

// serve runs a collector from snap until ctx is done, a reload is due, or it ends by itself. started says whether it came to listen;
// without that, err is why it did not.
func (a *agent) serve(ctx context.Context, snap *snapshot) (reload *snapshot, started bool, err error) {
	set := snap.serve(a.set)
	set.DisableGracefulShutdown = true // The signals are the agent's, between two collectors too.
	col, err := otelcol.NewCollector(set)
	if err != nil {
		return nil, false, err
	}
	done := make(chan error, 1)
	// Not ctx: a component may hold on to the context of its start and would then be cut off before it has flushed.
	go func() { done <- col.Run(context.WithoutCancel(ctx)) }()
	stop := func() error {
		col.Shutdown()
		return <-done
	}

	// Upstream reports its state on request only. Whatever hooks into its log misses at a high level.
	poll := time.NewTicker(5 * time.Millisecond)
	for col.GetState() != otelcol.StateRunning {
		select {
		case err := <-done:
			poll.Stop()
			return nil, err == nil, ended(ctx, err)
		case <-ctx.Done():
			poll.Stop()
			go col.Shutdown()
			select {
			case err := <-done:
				return nil, false, err
			case <-time.After(startGrace):
				return nil, false, errors.New("ended before the start was done, which hangs")
			}
		case <-poll.C:
		}
	}
	poll.Stop()
	a.ownHangup()
	fmt.Fprintln(a.stderr, startLine(a.set.BuildInfo, snap.effective, a.implicit))
	if err := a.writePortFile(snap); err != nil {
		if a.portFileWritten == "" {
			return nil, true, errors.Join(err, stop())
		}
		a.log("reload: %v", err) // Senders have read it long since; that it is out of date must not end anything.
	}

	hangup, fresh := a.hangup, make(chan *snapshot, 1)
	for {
		select {
		case err := <-done:
			return nil, true, ended(ctx, err)
		case <-ctx.Done():
			return nil, true, stop()
		case <-hangup:
			hangup = nil // A SIGHUP from here on waits in the channel until this one is done with.
			go func() { fresh <- a.read(ctx, snap) }()
		case reload = <-fresh:
			if reload == nil {
				hangup = a.hangup
				continue
			}
			if err := stop(); err != nil {
				a.log("reload: shutting down what ran before: %v", err)
			}
			return reload, true, nil
		}
	}
}

// ended is the error of a collector that ended without being told to. Upstream has none after a fatal error of a component, and the
// process would exit with 0.
func ended(ctx context.Context, err error) error {
	if err == nil && ctx.Err() == nil {
		return errors.New("the collector ended by itself after a fatal error of a component, which stands in the log above")
	}
	return err
}

// read reads the config for a reload and returns nil where the one that runs is to go on.
func (a *agent) read(ctx context.Context, running *snapshot) *snapshot {
	fresh, err := readSnapshot(ctx, a.set, a.configLogger())
	if err == nil {
		err = dryRun(ctx, fresh.serve(a.set))
	}
	switch {
	case err != nil:
		a.log("reload: the new config is refused, the one that ran before runs on: %v", err)
		return nil
	case fresh.equal(running):
		a.log("reload: the config has not changed, it runs on")
		return nil
	}
	return fresh
}

func dryRun(ctx context.Context, set otelcol.CollectorSettings) error {
	col, err := otelcol.NewCollector(set)
	if err != nil {
		return err
	}
	return col.DryRun(ctx)
}

// log writes one line that must be seen at every log level and in every log encoding.
func (a *agent) log(format string, args ...any) {
	lines := strings.FieldsFunc(fmt.Sprintf(format, args...), func(r rune) bool { return r == '\n' })
	text := strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
	fmt.Fprintf(a.stderr, "%s %s %s: %s\n", a.now().UTC().Format(time.RFC3339), a.set.BuildInfo.Command, a.set.BuildInfo.Version, text)
}

// configLogger takes what the providers say while a config is read: variables that are not set, for one.
func (a *agent) configLogger() *zap.Logger {
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.AddSync(a.stderr), zapcore.WarnLevel))
}

// configURIs records the values of --config and --set, which upstream keeps to itself.
type configURIs struct{ configs, sets []string }

// all returns the URIs in upstream's order: a --set overrides every --config.
func (u *configURIs) all() []string { return append(append([]string(nil), u.configs...), u.sets...) }

// recordConfigFlags makes root's flags record their values beside what upstream does with them.
func recordConfigFlags(root *cobra.Command) *configURIs {
	uris := &configURIs{}
	config, set := root.Flags().Lookup("config"), root.Flags().Lookup("set")
	config.Value = recordedFlag{config.Value, func(v string) { uris.configs = append(uris.configs, v) }}
	set.Value = recordedFlag{set.Value, func(v string) {
		// As upstream's flags.go writes it, which has checked for the equal sign.
		key, value, _ := strings.Cut(v, "=")
		uris.sets = append(uris.sets, "yaml:"+strings.TrimSpace(strings.ReplaceAll(key, ".", "::"))+": "+strings.TrimSpace(value))
	}}
	return uris
}

type recordedFlag struct {
	pflag.Value
	record func(string)
}

func (f recordedFlag) Set(v string) error {
	if err := f.Value.Set(v); err != nil {
		return err
	}
	f.record(v)
	return nil
}
