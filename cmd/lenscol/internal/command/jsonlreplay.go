// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/internal/archive"
)

func newJSONLReplayCommand() *cobra.Command {
	var endpoint, protocol, speed, state string
	var headers []string
	var rate float64
	var retryFor time.Duration
	var restart bool
	cmd := &cobra.Command{
		Use:   "replay --endpoint URL FILE...",
		Short: "Sends the records of files over OTLP again",
		Long: `Sends the records of files over OTLP again, with their ids and times, and keeps its progress beside the archive: the same command goes on where
an interrupted one ended, and sends what came since.

SIGINT and SIGTERM end it after the request in flight; then nothing is sent twice. A process that was killed repeats one request at most.
Another endpoint, another filter and files of another content have a progress of their own.`,
		Example: `  lenscol jsonl replay --endpoint http://127.0.0.1:4318 lens-data
  lenscol jsonl replay --endpoint https://otlp.example.com --header authorization="Bearer $TOKEN" --rank 0 lens-data
  lenscol jsonl replay --endpoint http://127.0.0.1:4317 --speed 60 lens-data   # an hour in a minute`,
		Args: cobra.MinimumNArgs(1),
	}
	filterText := filterFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&endpoint, "endpoint", "", "Base `URL` of an OTLP receiver, like http://127.0.0.1:4318; https is TLS")
	flags.StringVar(&protocol, "protocol", "", "`PROTOCOL`: grpc or http (default grpc for port 4317, else http)")
	flags.StringArrayVar(&headers, "header", nil, "Header of every request, as `KEY=VALUE`; may be repeated")
	flags.StringVar(&speed, "speed", "max", "`SPEED`: 1 takes as long as the records took, 60 a minute for an hour, max no longer than needed")
	flags.Float64Var(&rate, "rate", 0, "Most records a second, `N` (default no bound)")
	flags.DurationVar(&retryFor, "retry-for", 5*time.Minute, "`DURATION` for which a request is tried again; 0s is for ever")
	flags.StringVar(&state, "state", "", "`FILE` of the progress (default in the folder of the files)")
	flags.BoolVar(&restart, "restart", false, "Forget the progress and send everything")
	_ = cmd.MarkFlagRequired("endpoint") // Fails for an unknown flag alone.
	_ = cmd.RegisterFlagCompletionFunc("protocol", cobra.FixedCompletions([]string{"grpc", "http"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		replay := &archive.Replay{Rate: rate, RetryFor: retryFor}
		if replay.Speed, err = parseSpeed(speed); err != nil {
			return err
		}
		if !(rate >= 0) || retryFor < 0 {
			return usage(fmt.Errorf("--rate %v, --retry-for %s: neither may be negative", rate, retryFor))
		}
		if replay.Filter, err = archive.NewFilter(*filterText, time.Now()); err != nil {
			return usage(err)
		}
		if filterText.UntilMoves() { // The progress knows of a record that it was left out, not why.
			return usage(fmt.Errorf("--until: %q moves on with the clock, and what it leaves out now would never be sent; write a time like 2026-11-29T16:24:28Z", filterText.Until))
		}
		to, err := archive.ParseEndpoint(endpoint)
		if err != nil {
			return usage(err)
		}
		pairs, err := parseHeaders(headers)
		if err != nil {
			return usage(err)
		}
		inputs, err := archive.Find(args)
		if err != nil {
			return err
		}
		if replay.Sender, err = archive.NewSender(to, protocol, pairs); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, replay.Sender.Close()) }()
		if replay.Progress, err = archive.OpenProgress(inputs, to.Redacted(), describeFilter(filterText), state, restart); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, replay.Progress.Close()) }()

		r := readInputs(cmd, inputs) // For what is said of the files, not to read them.
		_, size := r.Progress()
		replay.OnProblem, replay.OnFile = r.problem, r.file
		replay.OnRetry = func(err error, wait time.Duration) {
			r.say("%s: %v; trying again in %s\n", to.Redacted(), err, wait.Round(100*time.Millisecond))
		}
		replay.OnBatch = func() {
			r.progress.calls = progressCalls - 1 // A look at the clock with every request.
			r.progress.update(func() (int64, int64) { return replay.Read(), size })
		}
		stop, release := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer release()
		context.AfterFunc(stop, release) // A second signal ends the process at once.
		sent, err := replay.Run(stop, inputs)
		r.progress.end()
		fmt.Fprintf(cmd.OutOrStdout(), "%s sent to %s in %s", count(sent.Records, "record"), to.Redacted(), count(sent.Requests, "request"))
		if sent.Before > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "; %s had been sent before", count(sent.Before, "record"))
		}
		fmt.Fprintln(cmd.OutOrStdout())
		switch {
		case errors.Is(err, archive.ErrStopped):
			return errors.New("stopped by a signal; the same command goes on from here")
		case err != nil:
			return err
		case sent.Rejected > 0:
			return fmt.Errorf("%s rejected %s: %s", to.Redacted(), count(sent.Rejected, "record"), sent.Reason)
		}
		return r.done()
	}
	return cmd
}

func parseSpeed(s string) (float64, error) {
	if s == "max" {
		return 0, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f > 0) || f > 1e9 {
		return 0, usage(fmt.Errorf("--speed: %q is neither max nor a number above 0, like 1 or 60", s))
	}
	return f, nil
}

// parseHeaders names the key alone in its errors: the value may be a secret.
func parseHeaders(pairs []string) (map[string]string, error) {
	headers := map[string]string{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if key = strings.ToLower(strings.TrimSpace(key)); !ok || key == "" {
			return nil, errors.New("--header: is not KEY=VALUE")
		}
		headers[key] = value
	}
	return headers, nil
}

// describeFilter is empty for a filter that keeps all.
func describeFilter(f *archive.FilterText) string {
	var parts []string
	add := func(flag, value string) {
		if value != "" {
			parts = append(parts, "--"+flag+" "+value)
		}
	}
	add("run", strings.Join(f.Runs, ","))
	add("rank", f.Ranks)
	add("name", strings.Join(f.Names, " --name "))
	add("since", f.Since)
	add("until", f.Until)
	add("status", strings.Join(f.Statuses, ","))
	return strings.Join(parts, " ")
}
