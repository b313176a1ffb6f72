// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/internal/launch"
)

func newEmitSpansCommand() *cobra.Command {
	var (
		session                        launch.Session
		spans, events, statuses, attrs []string
		dryRun, asJSON                 bool
	)
	cmd := &cobra.Command{
		Use:   "emit-spans --service S --span NAME,START,END[,PARENT] ...",
		Short: "Sends spans of what is over already, such as the phases of a launch script",
		Long: `Sends spans of intervals that are over. Times are decimal epoch seconds, as date +%s.%N prints them. A PARENT is the name of
another --span; a span without one begins a trace. An end before its start is set to it, and inverted.* say so. Where they
go, and in which form, the environment says, as to NeMo Lens: NEMO_LENS_EXPORTER, OTEL_EXPORTER_OTLP_*,
OTEL_RESOURCE_ATTRIBUTES. What was sent is printed to stderr as a table.

It exits with 1, and sends nothing, where a field is bad, a name is there twice, a parent is missing or below its own child; and
with 2 where the spans did not arrive.`,
		Example: `  lenscol emit-spans --service launcher --span setup,1700000000,1700000012.5 --span pull,1700000001,1700000009,setup
  lenscol emit-spans --service launcher --span setup,$T0,$T1 --status setup,error,"no GPU" --attr cluster.name=a --dry-run`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(spans) == 0 {
				return usage(errors.New("--span is missing: NAME,START,END or NAME,START,END,PARENT"))
			}
			parsed, err := launch.ParseSpans(spans, events, statuses)
			if err != nil {
				return err
			}
			more, err := launch.ParseAttrs(attrs)
			if err != nil {
				return err
			}
			if dryRun {
				var planned []launch.Emitted
				for _, span := range parsed {
					planned = append(planned, launch.Emitted{Span: span})
				}
				return printSpans(cmd, planned, asJSON)
			}
			session.Out = cmd.OutOrStdout()
			emitted, err := launch.Emit(cmd.Context(), session, parsed, more...)
			if err != nil {
				return exitError{fmt.Errorf("emit spans: %w", err), 2}
			}
			return printSpans(cmd, emitted, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&session.Service, "service", "", "service.name; goes before that of the environment")
	f.StringArrayVar(&spans, "span", nil, "Span as `NAME,START,END[,PARENT]`; may be repeated")
	f.StringArrayVar(&events, "events", nil, "Event as `SPAN,NAME,TIME`; may be repeated")
	f.StringArrayVar(&statuses, "status", nil, "Status as `SPAN,ok|error[,MESSAGE]`; may be repeated")
	f.StringArrayVar(&attrs, "attr", nil, "Attribute of every span, a text, as `KEY=VALUE`; may be repeated")
	f.StringVar(&session.RunID, "run-id", "", "nemo.run.id; goes before that of the environment")
	f.BoolVar(&dryRun, "dry-run", false, "Print the table and send nothing")
	f.BoolVar(&asJSON, "json", false, "Print one JSON object with the list spans to stdout, in place of the table")
	return cmd
}

// emittedSpan is a row of the table as JSON. Ids are empty in a dry run.
type emittedSpan struct {
	Name    string    `json:"name"`
	Parent  string    `json:"parent,omitempty"`
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"`
	TraceID string    `json:"trace_id,omitempty"`
	SpanID  string    `json:"span_id,omitempty"`
}

func printSpans(cmd *cobra.Command, spans []launch.Emitted, asJSON bool) error {
	if asJSON {
		rows := []emittedSpan{}
		for _, s := range spans {
			row := emittedSpan{Name: s.Name, Parent: s.Parent, Start: s.Start.UTC(), Seconds: s.End.Sub(s.Start).Seconds()}
			if s.Context.IsValid() {
				row.TraceID, row.SpanID = s.Context.TraceID().String(), s.Context.SpanID().String()
			}
			rows = append(rows, row)
		}
		return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"spans": rows})
	}
	w := cmd.ErrOrStderr()
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SPAN\tPARENT\tSTART\tSECONDS\tTRACE ID\tSPAN ID")
	for _, s := range spans {
		trace, span := "-", "-"
		if s.Context.IsValid() {
			trace, span = s.Context.TraceID().String(), s.Context.SpanID().String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.3f\t%s\t%s\n", s.Name, cmp.Or(s.Parent, "-"), s.Start.UTC().Format(time.RFC3339Nano), s.End.Sub(s.Start).Seconds(), trace, span)
	}
	return table.Flush()
}
