// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package reckon

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var update = flag.Bool("update", false, "write the golden files")

func recorded(t testing.TB, name string) []Row {
	text, err := os.ReadFile(filepath.Join("testdata", name+".sacct"))
	require.NoError(t, err)
	rows, err := Parse(bytes.NewReader(text), time.UTC)
	require.NoError(t, err)
	return rows
}

// line is what a golden file shows of a span.
func line(span ptrace.Span, zero time.Time) string {
	attrs := span.Attributes().AsRaw()
	at := func(t time.Time) string { return fmt.Sprintf("%+d", int(t.Sub(zero).Seconds())) }
	text := fmt.Sprintf("  %-32s %5s to %5s", span.Name(), at(span.StartTimestamp().AsTime()), at(span.EndTimestamp().AsTime()))
	for _, key := range []string{"slurm.attempt", "slurm.step.name", "slurm.step.role", "slurm.state", "slurm.reason", "slurm.exit_code"} {
		if v, ok := attrs[key]; ok {
			text += fmt.Sprintf(" %s=%v", strings.TrimPrefix(key, "slurm."), v)
		}
	}
	if span.Status().Code() == ptrace.StatusCodeError {
		text += " ERROR"
	}
	if !span.ParentSpanID().IsEmpty() {
		text += " child"
	}
	return text
}

// What a real SLURM wrote of jobs of every kind, as spans and as an account. testdata/*.sacct were recorded from test/slurm.
func TestRecordedJobs(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sacct")
	require.NoError(t, err)
	require.Len(t, files, 11)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sacct")
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			for _, job := range Jobs(recorded(t, name), DefaultInfra) {
				td, open := Spans(job, Layers)
				account := AccountOf(job)
				fmt.Fprintf(&out, "job %s %q: %d attempts, %d open, wall %s, %v\n", job.ID, job.Name, len(job.Attempts), open, account.Wall, account.Shares)
				ids := map[string]bool{}
				for _, rs := range td.ResourceSpans().All() {
					resource, err := json.Marshal(rs.Resource().Attributes().AsRaw())
					require.NoError(t, err)
					fmt.Fprintf(&out, " %s\n", resource)
					for _, span := range rs.ScopeSpans().At(0).Spans().All() {
						fmt.Fprintln(&out, line(span, job.Attempts[0].Allocation.Submit))
						require.False(t, span.TraceID().IsEmpty())
						require.False(t, ids[span.SpanID().String()], "two spans of one id")
						ids[span.SpanID().String()] = true
						require.GreaterOrEqual(t, span.EndTimestamp(), span.StartTimestamp())
					}
				}
				var sum time.Duration
				for _, share := range account.Shares {
					sum += share.Time
				}
				require.Equal(t, account.Wall, sum, "the shares are all of the wall time")
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), out.String())
		})
	}
}

// A second run over the same accounting makes the same spans, byte for byte; a job of another cluster, or of another time with
// the same id, has others.
func TestIdsFollowFromTheRows(t *testing.T) {
	marshal := func(rows []Row) string {
		out, err := new(ptrace.JSONMarshaler).MarshalTraces(first(Spans(Jobs(rows, DefaultInfra)[0], Layers)))
		require.NoError(t, err)
		return string(out)
	}
	require.Equal(t, marshal(recorded(t, "requeued")), marshal(recorded(t, "requeued")))

	trace := func(change func(*Row)) string {
		rows := recorded(t, "single")
		for i := range rows {
			change(&rows[i])
		}
		return first(Spans(Jobs(rows, nil)[0], Layers)).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).TraceID().String()
	}
	same := trace(func(*Row) {})
	require.NotEqual(t, same, trace(func(r *Row) { r.Cluster = "other" }))
	require.NotEqual(t, same, trace(func(r *Row) { r.Submit = r.Submit.AddDate(1, 0, 0) }))
}

// What is sent of an attempt that is over stays as it is when the job goes on: a run of reckon while it runs makes no duplicate.
func TestARunningJobGetsNoOtherSpansLater(t *testing.T) {
	later := map[string]string{}
	for _, span := range spans(t, "requeued") {
		later[span.SpanID().String()] = span.Name()
	}
	now := spans(t, "running")
	require.NotEmpty(t, now)
	for _, span := range now {
		require.Equal(t, span.Name(), later[span.SpanID().String()])
	}
	require.Greater(t, len(later), len(now))
}

func spans(t *testing.T, name string) (list []ptrace.Span) {
	td, _ := Spans(Jobs(recorded(t, name), DefaultInfra)[0], Layers)
	for _, rs := range td.ResourceSpans().All() {
		for _, span := range rs.ScopeSpans().At(0).Spans().All() {
			list = append(list, span)
		}
	}
	return list
}

func first[A, B any](a A, _ B) A { return a }

func TestParseForms(t *testing.T) {
	const iso = "JobIDRaw|Submit|Start|End|State|JobName\n5|2026-11-29T21:13:06|2026-11-29T21:13:10|Unknown|RUNNING|a|b\n"
	zone := time.FixedZone("", 3600)
	rows, err := Parse(strings.NewReader(iso), zone)
	require.NoError(t, err)
	require.Equal(t, int64(1795986786-3600), rows[0].Submit.Unix(), "a time without a zone is of the zone that is given")
	require.True(t, rows[0].End.IsZero())
	require.Equal(t, "a|b", rows[0].Name)
	require.Equal(t, -1, rows[0].Restarts)

	// Without a heading: NeMo Lens's own columns, epoch seconds.
	rows, err = Parse(strings.NewReader("s-1|5|1795986786|1795986787|1795986788|1795986799|COMPLETED|0:0|0:0|None|2|1|n1|train\r\n\n"), zone)
	require.NoError(t, err)
	require.Equal(t, Row{
		JobID: "5", Raw: "5", Attempt: "s-1", SLUID: "s-1", Restarts: 2, State: "COMPLETED", ExitCode: "0:0", DerivedExitCode: "0:0", Nodes: 1, NodeList: "n1", Name: "train",
		Submit: time.Unix(1795986786, 0), Eligible: time.Unix(1795986787, 0), Start: time.Unix(1795986788, 0), End: time.Unix(1795986799, 0),
	}, rows[0])

	for text, want := range map[string]string{
		"":                                       "no row",
		"JobIDRaw|Submit|Start|End\n":            "no row",
		"JobIDRaw|Submit|Start|End\n5|1|2\n":     "line 2: it has 3 columns, must be 4",
		"JobIDRaw|Submit|Start|End\nx|1|2|3\n":   `JobIDRaw "x" is no job id`,
		"JobIDRaw|Submit|Start|End\n5|now|2|3\n": `Submit "now" is no time`,
		"JobIDRaw|Submit|Start|End\n5|-1|2|3\n":  `Submit "-1" is no time`,
		"JobIDRaw|Submit|Start|End\n5|1|2|3|4\n": "line 2: it has 5 columns",
		"JobIDRaw|Submit|Start|End|SubmitLine\n5|1|2|3|sbatch --wrap a | b\n": "so ask sacct for few columns and JobName last: -o JobID,JobIDRaw,DBIndex,",
		"hello\n": "it has 1 columns, must be 14",
	} {
		_, err := Parse(strings.NewReader(text), zone)
		require.ErrorContains(t, err, want, text)
	}
}

// Steps that overlap, infra steps, an allocation that ends before its step: every second is counted once.
func TestAccount(t *testing.T) {
	const heading = "JobIDRaw|DBIndex|Submit|Eligible|Start|End|State|NodeList|JobName\n"
	rows, err := Parse(strings.NewReader(heading+
		"5|1|1000|1010|1030|1100|REQUEUED|n1|j\n5.0|1|1030|1030|1030|1100|COMPLETED|n1|lenscol\n5.1|1|1040|1040|1040|1060|COMPLETED|n1|a\n"+
		"5.2|1|1050|1050|1050|1070|COMPLETED|n1|b\n5.3|1|1080|1080|1080|1105|COMPLETED|n1|c\n"+
		"5|2|1110|1110|1120|1130|COMPLETED|n1|j\n5.batch|2|1120|1120|1120|1130|COMPLETED|n1|batch\n"), time.UTC)
	require.NoError(t, err)
	s := time.Second
	require.Equal(t, Account{Wall: 130 * s, Shares: []Share{
		{BucketBetween, 5 * s}, {BucketDeferred, 10 * s}, {BucketQueued, 30 * s}, {BucketSetup, 10 * s}, {BucketScript, 10 * s},
		{BucketGap, 10 * s}, {BucketWork, 55 * s},
	}}, AccountOf(Jobs(rows, DefaultInfra)[0]))
}

// No text makes Parse, or what follows, panic, and the shares of every account are its wall time.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"single", "array", "requeued", "het", "never", "running"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".sacct"))
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := Parse(bytes.NewReader(text), time.UTC)
		if err != nil {
			return
		}
		for _, job := range Jobs(rows, DefaultInfra) {
			td, _ := Spans(job, Layers)
			for _, rs := range td.ResourceSpans().All() {
				require.NotZero(t, rs.Resource().Attributes().Len())
			}
			account := AccountOf(job)
			var sum time.Duration
			for _, share := range account.Shares {
				sum += share.Time
			}
			require.Equal(t, account.Wall, sum)
		}
	})
}
