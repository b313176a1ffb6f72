// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
	"github.com/lenscol/lenscol/internal/archive"
	"github.com/lenscol/lenscol/internal/reckon"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

// infraVariable adds names of steps that do none of a job's work (NeMo Lens).
const infraVariable = "LENS_RECKON_INFRA_STEP_NAMES"

// reckoning are the flags of reckon.
type reckoning struct {
	job, from, zone    string
	layers, infra      []string
	endpoint, protocol string
	headers            []string
	output, layout     string
	force, dryRun      bool
	asJSON             bool
	retryFor           time.Duration
}

func newReckonCommand() *cobra.Command {
	var r reckoning
	cmd := &cobra.Command{
		Use:   "reckon --job ID | --from FILE",
		Short: "Sends spans of SLURM's accounting of a job, and prints where its wall time went",
		Long: `Asks sacct for a job, or reads what sacct wrote, makes spans of it and sends them: how long the job was deferred and queued, ran,
and stood between its steps, over all of its attempts. Ids follow from the accounting, so that a second run makes no
duplicates; of what is not over there are no spans yet. A table on stdout says where the wall time went.

They go where the environment says, as to NeMo Lens, or to --endpoint, or with -o to a file. NEMO_LENS_EXPORTER=console writes
lens_slurm.jsonl.gz in NeMo Lens's console layout.`,
		Example: `  sbatch --dependency=afterany:12345 --wrap 'lenscol reckon --job 12345'
  lenscol reckon --job 12345 --dry-run
  sacct -j 12345 -D -P -o ALL > job.sacct; lenscol reckon --from job.sacct -o lens_slurm.jsonl.gz`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&r.job, "job", "", "Job `ID`: 12345, 12345_7 of an array, 12345+1 of a heterogeneous job, or several with commas between")
	f.StringVar(&r.from, "from", "", "`FILE` with what sacct -D -P printed, - for stdin, in place of asking sacct")
	f.StringVar(&r.zone, "time-zone", "Local", "Time `ZONE` of times in --from that name none, such as UTC or Europe/Berlin")
	f.StringSliceVar(&r.layers, "layers", reckon.Layers, "Spans: records (flat, of sacct's rows and the phases between), job (a tree below slurm.job)")
	f.StringSliceVar(&r.infra, "infra-steps", reckon.DefaultInfra, "Names of steps that do none of the job's work; those of "+infraVariable+" too")
	f.StringVar(&r.endpoint, "endpoint", "", "Base `URL` of an OTLP receiver (default as OTEL_EXPORTER_OTLP_ENDPOINT has it)")
	f.StringVar(&r.protocol, "protocol", "", "`PROTOCOL` of --endpoint: grpc or http (default grpc for port 4317, else http)")
	f.StringArrayVar(&r.headers, "header", nil, "Header of every request, as `KEY=VALUE`; may be repeated")
	f.DurationVar(&r.retryFor, "retry-for", time.Minute, "`DURATION` for which a request is tried again")
	f.StringVarP(&r.output, "output", "o", "", "`FILE` for the spans, in place of sending them; .gz and .zst are compressed")
	f.StringVar(&r.layout, "to", "compact", "`LAYOUT` of the file: compact, console or otlp_json")
	f.BoolVar(&r.force, "force", false, "Replace the file")
	f.BoolVar(&r.dryRun, "dry-run", false, "Print the table, and neither send nor write")
	f.BoolVar(&r.asJSON, "json", false, "Print one JSON object with the list jobs")
	_ = cmd.RegisterFlagCompletionFunc("layers", cobra.FixedCompletions(reckon.Layers, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{"compact", "console", "otlp_json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (r *reckoning) run(cmd *cobra.Command) error {
	if (r.job == "") == (r.from == "") {
		return usage(errors.New("needs one of --job ID and --from FILE"))
	}
	if r.endpoint != "" && r.output != "" {
		return usage(errors.New("--endpoint and --output both say where the spans go: give one of them"))
	}
	for _, layer := range r.layers {
		if !slices.Contains(reckon.Layers, layer) {
			return usage(fmt.Errorf("--layers: %q must be records or job", layer))
		}
	}
	rows, err := r.rows(cmd)
	if err != nil {
		return err
	}
	infra := slices.Clone(r.infra)
	for name := range strings.SplitSeq(os.Getenv(infraVariable), ",") {
		infra = append(infra, strings.TrimSpace(name))
	}
	jobs := reckon.Jobs(rows, infra)
	all, open := ptrace.NewTraces(), 0
	for _, job := range jobs {
		td, n := reckon.Spans(job, r.layers)
		td.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
		open += n
	}
	if open > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "lenscol: not over yet: %s; run it again then\n", count(int64(open), "attempt"))
	}
	if !r.dryRun && all.SpanCount() > 0 {
		if err := r.deliver(cmd, all); err != nil {
			return err
		}
	}
	return printAccounts(cmd.OutOrStdout(), jobs, r.asJSON)
}

func (r *reckoning) rows(cmd *cobra.Command) ([]reckon.Row, error) {
	if r.from == "" {
		return reckon.Run(cmd.Context(), r.job)
	}
	zone, err := time.LoadLocation(r.zone)
	if err != nil {
		return nil, usage(fmt.Errorf("--time-zone %q: %w", r.zone, err))
	}
	in := cmd.InOrStdin()
	if r.from != archive.Stdin {
		f, err := os.Open(r.from)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	rows, err := reckon.Parse(in, zone)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.from, err)
	}
	return rows, nil
}

// deliver sends the spans, or writes them to a file.
func (r *reckoning) deliver(cmd *cobra.Command, td ptrace.Traces) error {
	batch := jsonlreader.Batch{Signal: pipeline.SignalTraces, Traces: td, Records: td.SpanCount()}
	target, err := r.target()
	if err != nil {
		return err
	}
	if target == nil {
		if err := writeBatch(r.output, jsonlexporter.Layout(r.layout), r.force, batch); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.ErrOrStderr(), "%s written to %s\n", count(int64(batch.Records), "span"), r.output)
		return err
	}
	rejected, reason, err := sendFor(cmd.Context(), target.sender, batch, r.retryFor)
	err = errors.Join(err, target.sender.Close())
	switch {
	case err != nil:
		return err
	case rejected > 0:
		return fmt.Errorf("%s rejected %s: %s", target.name, count(rejected, "span"), reason)
	}
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s sent to %s\n", count(int64(batch.Records), "span"), target.name)
	return err
}

// target is a receiver of spans.
type target struct {
	sender archive.Sender
	name   string // without credentials
}

// target is that of --endpoint, else that of the environment, or nil where the spans go to a file.
func (r *reckoning) target() (*target, error) {
	endpoint, protocol := r.endpoint, r.protocol
	named := func(err error) error { return err }
	if endpoint != "" {
		named = usage
	}
	headers, err := parseHeaders(r.headers)
	if err != nil {
		return nil, usage(err)
	}
	if endpoint == "" && r.output == "" {
		cfg, err := telemetry.FromEnv(telemetry.Source{})
		if err != nil {
			return nil, err
		}
		switch {
		case cfg.Exporter == telemetry.ExporterConsole || cfg.Traces.Protocol == telemetry.ProtocolConsole:
			r.output, r.layout = "lens_slurm.jsonl.gz", "console"
		case cfg.Traces.Protocol == telemetry.ProtocolNone:
			return nil, errors.New("OTEL_EXPORTER_OTLP_PROTOCOL is none: name an --endpoint, or a file with -o, or give --dry-run")
		default:
			endpoint, protocol = cfg.Traces.Endpoint, "http"
			if cfg.Traces.Protocol == telemetry.ProtocolGRPC {
				protocol = "grpc"
			}
			if !strings.Contains(endpoint, "://") {
				endpoint = "http://" + endpoint
			}
			for key, value := range cfg.Traces.Headers {
				if _, given := headers[strings.ToLower(key)]; !given {
					headers[strings.ToLower(key)] = string(value)
				}
			}
		}
	}
	if endpoint == "" {
		return nil, nil
	}
	url, err := archive.ParseEndpoint(endpoint)
	if err != nil {
		return nil, named(err)
	}
	sender, err := archive.NewSender(url, protocol, headers)
	if err != nil {
		return nil, named(err)
	}
	return &target{sender, url.Redacted()}, nil
}

// sendFor sends a batch, and tries again what may be tried again, from half a second to ten seconds apart.
func sendFor(ctx context.Context, s archive.Sender, batch jsonlreader.Batch, limit time.Duration) (rejected int64, reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(limit, time.Millisecond))
	defer cancel()
	for wait := 500 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		rejected, reason, err = s.Send(ctx, batch)
		retry := (*archive.RetryError)(nil)
		if !errors.As(err, &retry) {
			return rejected, reason, err
		}
		select {
		case <-time.After(max(wait, retry.After)):
		case <-ctx.Done():
			return 0, "", err
		}
	}
}

func writeBatch(path string, layout jsonlexporter.Layout, replace bool, batch jsonlreader.Batch) error {
	encoder, err := jsonlexporter.NewEncoder(layout, jsonlexporter.ResourceInline)
	if err != nil {
		return usage(err)
	}
	out, err := archive.CreateOutput(path, replace)
	if err != nil {
		return err
	}
	if _, err := out.Write(encoder.AppendTraces(nil, batch.Traces)); err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Commit()
}

// jobAccount is a job in the JSON form of the table. Times are seconds.
type jobAccount struct {
	Job      string             `json:"job"`
	Name     string             `json:"name"`
	State    string             `json:"state"` // of the last attempt
	Attempts int                `json:"attempts"`
	Wall     float64            `json:"wall_seconds"`
	Buckets  map[string]float64 `json:"buckets"` // they sum up to wall_seconds
}

func printAccounts(w io.Writer, jobs []reckon.Job, asJSON bool) error {
	accounts := []jobAccount{}
	var text strings.Builder
	for _, job := range jobs {
		a := reckon.AccountOf(job)
		j := jobAccount{job.ID, job.Name, job.Attempts[len(job.Attempts)-1].Allocation.State, len(job.Attempts), a.Wall.Seconds(), map[string]float64{}}
		fmt.Fprintf(&text, "job %s  %s  %s  %s\n", job.ID, job.Name, j.State, count(int64(j.Attempts), "attempt"))
		for _, share := range a.Shares {
			j.Buckets[share.Bucket] = share.Time.Seconds()
			fmt.Fprintf(&text, "  %-17s %14s %5.1f %%\n", share.Bucket, share.Time, 100*share.Time.Seconds()/a.Wall.Seconds())
		}
		fmt.Fprintf(&text, "  %-17s %14s\n", "wall time", a.Wall)
		accounts = append(accounts, j)
	}
	if asJSON {
		return json.NewEncoder(w).Encode(map[string]any{"jobs": accounts})
	}
	_, err := io.WriteString(w, text.String())
	return err
}
