// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/resource"
)

func job(vars map[string]string) resource.System {
	return resource.System{
		LookupEnv: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
		Hostname:  func() (string, error) { return "node-a", nil },
	}
}

func TestResourceExport(t *testing.T) {
	slurm := map[string]string{
		"SLURM_JOB_ID": "12345", "SLURM_JOB_NAME": "it's a run", "SLURM_TOPOLOGY_ADDR": "s1.node-a", "SLURMD_NODENAME": "node-a",
	}
	const base = "slurm.job.id=12345,slurm.job.id.raw=12345,slurm.array.job_id=12345,slurm.array.task_id=0,slurm.array.count=1,slurm.restart_count=0," +
		"slurm.job.name=it%27s%20a%20run"
	with := func(key, value string) map[string]string {
		vars := map[string]string{key: value}
		for k, v := range slurm {
			vars[k] = v
		}
		return vars
	}
	for _, c := range []struct {
		name, stage, image string
		vars               map[string]string
		want               string
	}{
		{"batch script", StageSbatch, "", slurm, base + ",slurm.head_node.name=node-a"},
		{"task", StageTask, "nemo:25.09", slurm, base + ",slurm.topology.addr=s1.node-a,slurm.head_node.name=node-a,host.name=node-a,nv.dl.launch.container.image=nemo:25.09"},
		{"task of a step", StageTask, "", with("SLURM_STEP_ID", "0"), base + ",slurm.topology.addr=s1.node-a,host.name=node-a"},
		{"what is there wins", StageSbatch, "", with("OTEL_RESOURCE_ATTRIBUTES", "slurm.job.name=mine,team=a b"),
			"'slurm.job.name=mine,team=a b," + strings.TrimSuffix(base, ",slurm.job.name=it%27s%20a%20run") + ",slurm.head_node.name=node-a'"},
		{"outside of SLURM", StageSbatch, "", map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "a=b"}, "a=b"},
		{"nothing", StageSbatch, "", nil, "''"},
	} {
		t.Run(c.name, func(t *testing.T) {
			line, errs := ResourceExport(c.stage, c.image, job(c.vars))
			require.Empty(t, errs)
			require.Equal(t, "export OTEL_RESOURCE_ATTRIBUTES="+c.want, line)
		})
	}
	_, errs := ResourceExport(StageSbatch, "", job(map[string]string{"SLURM_JOB_ID": "12; rm"}))
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "env:SLURM_JOB_ID")
	require.NotContains(t, errs[0].Error(), "rm")
}

// A shell that evaluates the line has what was meant, whatever it holds, and runs nothing of it.
func TestResourceExportInAShell(t *testing.T) {
	for _, inherited := range []string{"a=b", "a=it's", `a=$(echo x)`, "a=`echo x`;echo y", `a=\"b\" c`, "a=b\nc", "ä=ö", "a=!x"} {
		line, _ := ResourceExport(StageSbatch, "", job(map[string]string{"OTEL_RESOURCE_ATTRIBUTES": inherited}))
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line+`; printf %s "$OTEL_RESOURCE_ATTRIBUTES"`).Output()
		require.NoError(t, err)
		require.Equal(t, inherited, string(out))
	}
}

func TestParseSpans(t *testing.T) {
	at := func(nanos int64) time.Time { return time.Unix(0, nanos) }
	spans, err := ParseSpans(
		[]string{"pull,1.5,2,setup", "setup,1,1700000000.123456789", " extract , 2 , 1e1 , pull ", "alone,-.5,+3."},
		[]string{"pull,cached,1.75"},
		[]string{"pull,error,no disk, none at all", "setup,OK"},
	)
	require.NoError(t, err)
	require.Equal(t, []Span{
		{Name: "setup", Start: at(1e9), End: at(1700000000123456789), More: lens.EmitOptions{Status: codes.Ok}},
		{Name: "pull", Parent: "setup", Start: at(15e8), End: at(2e9), More: lens.EmitOptions{
			Events: []lens.Event{{Name: "cached", Time: at(175e7)}}, Status: codes.Error, Description: "no disk, none at all"}},
		{Name: "extract", Parent: "pull", Start: at(2e9), End: at(10e9)},
		{Name: "alone", Start: at(-5e8), End: at(3e9)},
	}, spans)
}

func TestParseSpansRefuses(t *testing.T) {
	for _, c := range []struct {
		spans, events, statuses string // with semicolons between
		want                    string
	}{
		{spans: "a", want: `--span "a": it has 1 fields`},
		{spans: "a,1,2,b,c", want: "it has 5 fields"},
		{spans: ",1,2", want: "name is empty"},
		{spans: "a,1,2,", want: "parent is empty"},
		{spans: "a,x,2", want: `its start: "x" must be decimal epoch seconds`},
		{spans: "a,1,NaN", want: `its end: "NaN"`},
		{spans: "a,1,inf", want: `"inf"`},
		{spans: "a,0x10,2", want: `"0x10"`},
		{spans: "a,1/3,2", want: `"1/3"`},
		{spans: "a,1_0,2", want: `"1_0"`},
		{spans: "a,1e999,2", want: "outside of the years"},
		{spans: "a,1,2;a,3,4", want: "of this name already"},
		{spans: "a,1,2,b", want: `span "a": there is no span "b", which is its parent`},
		{spans: "a,1,2,a", want: `its parent "a" is below it`},
		{spans: "a,1,2,b;b,1,2,c;c,1,2,a;d,1,2,a", want: "is below it"},
		{spans: "a,1,2", events: "b,e,1", want: `--events "b,e,1": there is no span "b"`},
		{spans: "a,1,2", events: "a,e", want: "must be SPAN,NAME,TIME"},
		{spans: "a,1,2", events: "a,e,now", want: "its time"},
		{spans: "a,1,2", statuses: "a", want: "must be SPAN,ok"},
		{spans: "a,1,2", statuses: "a,bad", want: "must be SPAN,ok"},
		{spans: "a,1,2", statuses: "a,ok,message", want: "must be SPAN,ok"},
		{spans: "a,1,2", statuses: "b,ok", want: `no span "b"`},
	} {
		split := func(text string) []string {
			return strings.FieldsFunc(text, func(r rune) bool { return r == ';' })
		}
		spans, err := ParseSpans(split(c.spans), split(c.events), split(c.statuses))
		require.ErrorContains(t, err, c.want)
		require.Nil(t, spans)
	}
}

func TestParseAttrs(t *testing.T) {
	attrs, err := ParseAttrs([]string{"a=b", "c=d=e", "f="})
	require.NoError(t, err)
	recorder := tracetest.NewSpanRecorder()
	_, span := lens.StartWith(t.Context(), "s", lens.SpanOptions{
		Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer(""),
	}, attrs...)
	span.End()
	require.Equal(t, []attribute.KeyValue{attribute.String("a", "b"), attribute.String("c", "d=e"), attribute.String("f", "")},
		recorder.Ended()[0].Attributes())
	for _, bad := range []string{"a", "=b", ""} {
		_, err := ParseAttrs([]string{"a=b", bad})
		require.ErrorContains(t, err, "must be KEY=VALUE")
	}
}

// Whatever the texts are, the answer is an error or a list in which each span stands once, behind its parent.
func FuzzParseSpans(f *testing.F) {
	f.Add("a,1,2;b,1,2,a", "a,e,1", "b,error,m")
	f.Add("a,1,2,b;b,1,2,a", "", "")
	f.Add("a,1e-300,2.0000000001", "", "")
	f.Fuzz(func(t *testing.T, spans, events, statuses string) {
		texts := strings.Split(spans, ";")
		parsed, err := ParseSpans(texts, strings.Split(events, ";"), strings.Split(statuses, ";"))
		if err != nil {
			return
		}
		require.Len(t, parsed, len(texts))
		seen := map[string]bool{"": true}
		for _, span := range parsed {
			require.True(t, seen[span.Parent])
			require.False(t, seen[span.Name])
			seen[span.Name] = true
		}
	})
}
