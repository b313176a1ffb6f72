// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/extension/lenshealth"
)

// waitEvery is how often a waiting command asks.
const waitEvery = 200 * time.Millisecond

func newWaitCommand() *cobra.Command {
	var (
		flags   healthFlags
		timeout time.Duration
		what    string
	)
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Waits until a collector is ready, or healthy",
		Long: `Waits until the lens_health extension of a collector says that it is ready: all pipelines have started. With
--for healthy it waits until /health answers 200: nothing is lost, and all that was sent gets through.

It exits with 0 when it is so, with 1 when the timeout is over, with 2 after an error that waiting does not mend.`,
		Example: `  lenscol --ports auto --port-file collector.env &
  lenscol wait --port-file collector.env --timeout 30s && . ./collector.env
  lenscol wait --for healthy`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if what != "ready" && what != "healthy" {
				return usage(fmt.Errorf("wait: --for %q is neither ready nor healthy", what))
			}
			if timeout <= 0 {
				return usage(fmt.Errorf("wait: --timeout %s must be above 0", timeout))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			last, err := wait(ctx, &flags, what)
			switch {
			case err != nil:
				return usage(fmt.Errorf("wait: %w", err))
			case last != "":
				return fmt.Errorf("wait: not %s after %s: %s", what, timeout, last)
			}
			return nil
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "How long to wait")
	cmd.Flags().StringVar(&what, "for", "ready", "What to wait for: ready or healthy")
	return cmd
}

// wait asks until it is so, and returns an empty text then. When ctx ends it returns why it was not; an error is what waiting cannot
// mend.
func wait(ctx context.Context, flags *healthFlags, what string) (last string, err error) {
	last = "there was no time to ask"
	ticker := time.NewTicker(waitEvery)
	defer ticker.Stop()
	for {
		why, err := ask(ctx, flags, what)
		switch {
		case err != nil || why == "":
			return "", err
		case ctx.Err() == nil:
			last = why
		}
		select {
		case <-ctx.Done():
			return last, nil
		case <-ticker.C:
		}
	}
}

// ask returns why it is not so yet, and nothing when it is.
func ask(ctx context.Context, flags *healthFlags, what string) (why string, err error) {
	client, err := flags.client()
	if errors.Is(err, fs.ErrNotExist) && flags.portFile != "" {
		return err.Error(), nil
	} else if err != nil {
		return "", err
	}
	if what == "ready" {
		var answer struct{ Ready bool }
		_, err = client.get(ctx, "/ready", &answer)
		if err == nil && !answer.Ready {
			return "not all pipelines have started", nil
		}
	} else {
		var report lenshealth.Report
		var code int
		code, err = client.get(ctx, "/health", &report)
		if err == nil && code != http.StatusOK {
			return summary(&report), nil
		}
	}
	if err != nil && !errors.Is(err, errRefused) {
		return err.Error(), nil // Nothing listens yet.
	}
	return "", err
}

// summary says in one line what is wrong: it is unhealthy: exporter otlp_http of traces: no send has succeeded since …
func summary(report *lenshealth.Report) string {
	parts := []string{"it is " + printable(string(report.Status))}
	for _, pipeline := range report.Pipelines {
		for _, c := range pipeline.Components {
			for _, reason := range c.Reasons {
				parts = append(parts, printable(fmt.Sprintf("%s %s of %s: %s", c.Kind, c.ID, pipeline.ID, reason.Text)))
			}
		}
	}
	return strings.Join(parts, "; ")
}
