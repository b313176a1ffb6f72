// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lenscol/lenscol/internal/archive"
)

func newDemoCommand() *cobra.Command {
	var (
		endpoint, run string
		ranks, steps  int
		interval      time.Duration
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Sends a small training run to a collector that runs",
		Long: `Sends a small training run, as Megatron with NeMo Lens 0.2 would, over OTLP/HTTP: startup, training steps, a checkpoint
and a step that fails, with metrics and logs, from every rank. All but times and ids is the same each time.

Start lenscol in one terminal and this in another.`,
		Example: `  lenscol demo
  lenscol demo --ranks 64 --steps 100
  lenscol demo --interval 1s   # live, a step a second`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ranks < 1 || steps < 1 || interval < 0 {
				return usage(fmt.Errorf("--ranks %d, --steps %d, --interval %s: ranks and steps start at 1, the interval at 0s", ranks, steps, interval))
			}
			if run == "" {
				run = newRunID()
			}
			to, err := archive.ParseEndpoint(endpoint)
			if err != nil {
				return usage(err)
			}
			s := &otlpSender{base: to.String()}
			if err := sendDemo(cmd.Context(), s, demoRun{id: run, ranks: ranks, steps: steps}, interval); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), demoReport, run, ranks, steps, s.spans, s.points, s.records, s.requests, s.base,
				cmp.Or(os.Getenv("LENSCOL_DATA_DIR"), "lens-data"))
			return nil
		},
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", demoEndpoint(), "OTLP/HTTP endpoint of the collector; the default follows LENSCOL_HOST and LENSCOL_HTTP_PORT")
	cmd.Flags().IntVar(&ranks, "ranks", 4, "Number of ranks")
	cmd.Flags().IntVar(&steps, "steps", 20, "Number of training steps")
	cmd.Flags().StringVar(&run, "run-id", "", "Run id (default demo- and six random digits)")
	cmd.Flags().DurationVar(&interval, "interval", 0, "Time between two steps; 0s sends a run that has just ended, at once")
	return cmd
}

// demoReport reads the compact layout of the jsonl exporter, docs/format.md.
const demoReport = `run %[1]s: %[2]d ranks, %[3]d steps
sent and acknowledged: %[4]d spans, %[5]d metric points, %[6]d log records, in %[7]d requests to %[8]s

Where lenscol runs with its default config they are in %[9]s/ now. From its working directory, what took how often:
  jq -r 'select(.run == "%[1]s" and .type == "span") | .name' %[9]s/traces.jsonl | sort | uniq -c | sort -rn
what failed, on which rank:
  jq -c 'select(.run == "%[1]s" and .status == "ERROR") | {rank, name, status_message}' %[9]s/traces.jsonl
and the five slowest steps (rank, step, milliseconds), without jq:
  python3 -c 'import json; s = [r for r in map(json.loads, open("%[9]s/traces.jsonl")) if r.get("run") == "%[1]s" and r["name"] == "megatron.train.iteration"]; [print(r["rank"], r["attributes"]["megatron.iteration"], r["duration_ns"] // 10**6) for r in sorted(s, key=lambda r: -r["duration_ns"])[:5]]'
`

func demoEndpoint() string {
	return "http://" + net.JoinHostPort(listenHost(), cmp.Or(os.Getenv("LENSCOL_HTTP_PORT"), "4318"))
}

func newRunID() string {
	var id [3]byte
	_, _ = rand.Read(id[:]) // Never fails (crypto/rand).
	return "demo-" + hex.EncodeToString(id[:])
}

// sendDemo sends the run step by step, every rank in its own requests.
func sendDemo(ctx context.Context, s *otlpSender, run demoRun, interval time.Duration) error {
	step, start := demoStep, time.Now()
	if interval > 0 {
		step = interval
	} else {
		start = start.Add(-time.Duration(run.steps)*step - demoStartup)
	}
	ranks := run.start(start, step)
	for i := range run.steps + 1 { // 0 is the startup.
		if i > 0 && interval > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(interval):
			}
		}
		for _, rank := range ranks {
			if err := s.send(ctx, rank.batch(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// otlpSender sends to an OTLP/HTTP endpoint and counts what was acknowledged.
type otlpSender struct {
	base                             string // http://127.0.0.1:4318
	spans, points, records, requests int
}

func (s *otlpSender) send(ctx context.Context, b demoBatch) error {
	spans, points, records := b.traces.SpanCount(), b.metrics.DataPointCount(), b.logs.LogRecordCount()
	if spans > 0 {
		answer := ptraceotlp.NewExportResponse()
		if err := s.post(ctx, "/v1/traces", ptraceotlp.NewExportRequestFromTraces(b.traces), answer); err != nil {
			return err
		}
		if p := answer.PartialSuccess(); p.RejectedSpans() > 0 {
			return fmt.Errorf("%s rejected %d of %d spans: %s", s.base, p.RejectedSpans(), spans, p.ErrorMessage())
		}
	}
	if points > 0 {
		answer := pmetricotlp.NewExportResponse()
		if err := s.post(ctx, "/v1/metrics", pmetricotlp.NewExportRequestFromMetrics(b.metrics), answer); err != nil {
			return err
		}
		if p := answer.PartialSuccess(); p.RejectedDataPoints() > 0 {
			return fmt.Errorf("%s rejected %d of %d metric points: %s", s.base, p.RejectedDataPoints(), points, p.ErrorMessage())
		}
	}
	if records > 0 {
		answer := plogotlp.NewExportResponse()
		if err := s.post(ctx, "/v1/logs", plogotlp.NewExportRequestFromLogs(b.logs), answer); err != nil {
			return err
		}
		if p := answer.PartialSuccess(); p.RejectedLogRecords() > 0 {
			return fmt.Errorf("%s rejected %d of %d log records: %s", s.base, p.RejectedLogRecords(), records, p.ErrorMessage())
		}
	}
	s.spans, s.points, s.records = s.spans+spans, s.points+points, s.records+records
	return nil
}

// post sends one request and reads its answer.
func (s *otlpSender) post(ctx context.Context, path string, request interface{ MarshalProto() ([]byte, error) }, answer interface{ UnmarshalProto([]byte) error }) error {
	body, err := request.MarshalProto()
	if err != nil {
		return fmt.Errorf("encode a request for %s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("--endpoint %s: %w", s.base, err)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		var cause *url.Error
		if errors.As(err, &cause) {
			err = cause.Err // It names the URL once more.
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("no collector listens at %s: start one with `lenscol` in another terminal, or name another with --endpoint: %w", s.base, err)
		}
		return fmt.Errorf("send to %s%s: is that the HTTP port of a collector? %w", s.base, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read the answer of %s%s: %w", s.base, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s answered %s: %.200q", s.base, path, resp.Status, text)
	}
	if err := answer.UnmarshalProto(text); err != nil {
		return fmt.Errorf("%s%s answered with what is not OTLP: %w", s.base, path, err)
	}
	s.requests++
	return nil
}
