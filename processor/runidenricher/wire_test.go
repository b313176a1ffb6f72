// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lenscol/lenscol/internal/sharing"
	"github.com/lenscol/lenscol/sdk/resource"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// wire is a resource with a span as they come from the wire, where a key can be there more than once: pdata's own methods make no
// such attributes. Each of pairs is KEY=TEXT, and the span has them too.
func wire(t testing.TB, pairs ...string) ptrace.Traces {
	var list []string
	for _, pair := range pairs {
		key, text, _ := strings.Cut(pair, "=")
		list = append(list, fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, key, text))
	}
	attributes := `"attributes":[` + strings.Join(list, ",") + `]`
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(
		`{"resourceSpans":[{"resource":{` + attributes + `},"scopeSpans":[{"spans":[{"name":"s",` + attributes + `,"events":[{"name":"e",` + attributes + `}]}]}]}]}`))
	require.NoError(t, err)
	return td
}

// pairs lists attributes as wire takes them, in their order.
func pairs(m pcommon.Map) (list []string) {
	for key, v := range m.All() {
		list = append(list, key+"="+v.AsString())
	}
	return list
}

// A sender may repeat a key. Nothing ends the collector, and what is renamed, deleted, overwritten, redacted or made unique is so
// wherever it stands; what nobody said should change stays, every copy of it.
func TestRepeatedKeysFromTheWire(t *testing.T) {
	same, differ := []string{"dl.rank=3", "x=y", "dl.rank=3"}, []string{"dl.rank=3", "x=y", "dl.rank=4"}
	const hf = "hf_aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3f"
	gateway := only + "mode: gateway\n"
	tests := []struct {
		name     string
		yaml     string
		env      env
		in, want []string
		span     []string // nil: as it came
	}{
		{"names new, the same value", gateway + "names: new", nil, same, []string{"x=y", "nv.dl.rank=3"}, []string{"x=y", "nv.dl.rank=3"}},
		{"names new, another value", gateway + "names: new", nil, differ, []string{"x=y", "dl.rank=4", "nv.dl.rank=3"}, []string{"x=y", "dl.rank=4", "nv.dl.rank=3"}},
		{
			"names new, beside the new name", gateway + "names: new", nil, []string{"dl.rank=3", "nv.dl.rank=3", "dl.rank=3", "nv.dl.rank=5"},
			[]string{"nv.dl.rank=3", "nv.dl.rank=5"}, []string{"nv.dl.rank=3", "nv.dl.rank=5"},
		},
		{
			"names new, against the new name", gateway + "names: new", nil, []string{"dl.rank=3", "nv.dl.rank=5", "dl.rank=5"},
			[]string{"dl.rank=3", "nv.dl.rank=5", "dl.rank=5"}, nil,
		},
		{"names old", gateway + "names: old", nil, []string{"nv.dl.rank=3", "nv.dl.rank=3"}, []string{"dl.rank=3"}, []string{"dl.rank=3"}},
		{"names both", gateway + "names: both", nil, differ, append(differ, "nv.dl.rank=3"), append(differ, "nv.dl.rank=3")},
		{"names keep", gateway, nil, differ, differ, nil},
		{"delete", gateway + "delete: [dl.rank]", nil, differ, []string{"x=y"}, nil},
		{"overwrite", gateway + "overwrite: [a]\nattributes: {a: ours}", nil, []string{"a=1", "b=2", "a=3"}, []string{"a=ours", "b=2"}, nil},
		{"overwrite, where the first is ours", gateway + "overwrite: [a]\nattributes: {a: ours}", nil, []string{"a=ours", "a=3"}, []string{"a=ours"}, nil},
		{"no overwrite", gateway + "attributes: {a: ours}", nil, []string{"a=1", "b=2", "a=3"}, []string{"a=1", "b=2", "a=3"}, nil},
		{
			"run_id.replace", only + "run_id: {static: ours, replace: always}", nil, []string{"nemo.run.id=a", "nemo.run.id=b"},
			[]string{"nemo.run.id=ours", "nemo.run.id.original=a", "nv.dl.run.uuid=" + resource.UUID5("nemo.lens.run/local/ours/te0")}, nil,
		},
		{"the run from the first", gateway, nil, []string{"slurm.job.id=1", "slurm.job.id=2"}, []string{"slurm.job.id=1", "slurm.job.id=2", "nemo.run.id=1"}, nil},
		{
			"overwrite of the W&B target", only + "overwrite: [wandb.entity]", env{"WANDB_ENTITY": "e"}, []string{"wandb.entity=a", "wandb.entity=b"},
			[]string{"wandb.entity=e"}, nil,
		},
		{
			"redact", gateway + "redact: {patterns: [huggingface]}", nil, []string{"prompt=a", "x=" + hf, "prompt=b", "x=y", "x=" + hf},
			[]string{"prompt=[REDACTED]", "x=[REDACTED]", "prompt=[REDACTED]", "x=y", "x=[REDACTED]"},
			[]string{"prompt=[REDACTED]", "x=[REDACTED]", "prompt=[REDACTED]", "x=y", "x=[REDACTED]"},
		},
		{
			"instance_id", unique, nil, []string{"service.instance.id=taken", "process.pid=7", "service.instance.id=b", "process.pid=8"},
			[]string{"service.instance.id=taken-7", "process.pid=7", "process.pid=8", "service.instance.id.original=taken"}, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.yaml, system(t, "node-a", tt.env))
			if strings.Contains(tt.yaml, unique) {
				r.resource(t, attrs{"service.instance.id": "taken"})
			}
			td := wire(t, tt.in...)
			require.NoError(t, r.traces.ConsumeTraces(t.Context(), td))
			rs := td.ResourceSpans().At(0)
			require.Equal(t, tt.want, pairs(rs.Resource().Attributes()))
			if tt.span == nil {
				tt.span = tt.in
			}
			span := rs.ScopeSpans().At(0).Spans().At(0)
			require.Equal(t, tt.span, pairs(span.Attributes()))
			require.Equal(t, tt.span, pairs(span.Events().At(0).Attributes()))
		})
	}
}

// The points of metrics go the same way.
func TestRepeatedKeysOfAPoint(t *testing.T) {
	md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics([]byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":[{"attributes":[
		{"key":"dl.rank","value":{"intValue":"3"}},{"key":"dl.rank","value":{"intValue":"3"}}]}]}}]}]}]}`))
	require.NoError(t, err)
	r := newRig(t, only+"mode: gateway\nnames: new", system(t, "n", nil))
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), md))
	require.Equal(t, []string{"nv.dl.rank=3"}, pairs(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes()))
}

// However often a key is repeated, it is renamed once: the work does not grow with the square of their number.
func TestRepeatedKeysAreRenamedOnce(t *testing.T) {
	many := make([]string, 200_000)
	for i := range many {
		many[i] = "dl.rank=3"
	}
	td := wire(t, many...)
	for _, names := range []string{"both", "new"} {
		m := pcommon.NewMap()
		td.ResourceSpans().At(0).Resource().Attributes().CopyTo(m)
		newRenamer(names).attributes(m, &sharing.Room{}, 0)
		if names == "both" {
			require.Equal(t, len(many)+1, m.Len())
		} else {
			require.Equal(t, []string{"nv.dl.rank=3"}, pairs(m))
		}
	}
}

// Whatever bytes come in, nothing panics, in any setting, and names lose no value.
func FuzzWireBytes(f *testing.F) {
	add := func(td ptrace.Traces) {
		body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
		require.NoError(f, err)
		f.Add(body)
	}
	add(wire(f, "dl.rank=3", "dl.rank=3", "nv.dl.rank=4", "dl.rank=4"))
	add(wire(f, "nemo.run.id=0123456789ab", "nemo.run.id=", "service.instance.id=r-rank0", "service.instance.id=r", "prompt=p", "prompt=q", "host.name=x", "host.name=y"))
	add(wire(f, "nemo.lens.job_uuid=j", "slurm.job.id=12345", "slurm.job.id=9", "nemo.lens.run_uuid=", "wandb.entity=e", "wandb.entity=f", ""))
	attributes := semconv.Attributes()
	other := []semconv.Renamer{semconv.ToNew(attributes), semconv.ToOld(attributes)}
	var plain, full []*rig
	for _, names := range []string{"keep", "both", "new", "old"} {
		plain = append(plain, newRig(f, only+"mode: gateway\nnames: "+names, system(f, "node-a", nil)))
		full = append(full, newRig(f, "instance_id: unique\nskew: clamp\nrun_id: {replace: always}\noverwrite: [host.name, nv.dl.job.uuid, slurm.job.id, wandb.entity]\ndelete: [x]\n"+
			"redact: {patterns: [wandb, aws, email]}\nnames: "+names, system(f, "node-a", plusEnv(slurm, "WANDB_ENTITY", "e"))))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		decode := func() (ptrace.Traces, bool) {
			req := ptraceotlp.NewExportRequest()
			return req.Traces(), req.UnmarshalProto(body) == nil
		}
		for i := range plain {
			td, ok := decode()
			if !ok {
				return
			}
			came, _ := decode()
			require.NoError(t, plain[i].traces.ConsumeTraces(t.Context(), td))
			for j := range came.ResourceSpans().Len() {
				have := map[string]bool{}
				for _, pair := range pairs(td.ResourceSpans().At(j).Resource().Attributes()) {
					have[pair] = true
				}
				for key, v := range came.ResourceSpans().At(j).Resource().Attributes().All() {
					found := have[key+"="+v.AsString()] || key == semconv.RunID && v.AsString() == "" // An empty id is none.
					for _, r := range other {
						if to, ok := r.Rename(key); ok {
							found = found || have[to+"="+v.AsString()]
						}
					}
					require.True(t, found, "%s=%s is lost", key, v.AsString())
				}
			}
			td, _ = decode()
			require.NoError(t, full[i].traces.ConsumeTraces(t.Context(), td))
		}
	})
}

// No name of the table is taken for one that has no other.
func TestEveryNameOfTheTableIsRenamed(t *testing.T) {
	table := semconv.Attributes()
	for names, renamer := range map[string]semconv.Renamer{namesNew: semconv.ToNew(table), namesOld: semconv.ToOld(table)} {
		renamed := 0
		for _, line := range table {
			for _, key := range []string{line.Old, line.New, line.Old + "x", line.New + "x"} {
				want, ok := renamer.Rename(key)
				if !ok {
					want = key
				} else {
					renamed++
					again, ok := renamer.Rename(want)
					require.False(t, ok, "%s becomes %s becomes %s", key, want, again)
				}
				m := pcommon.NewMap()
				m.PutStr(key, "value")
				newRenamer(names).attributes(m, &sharing.Room{}, 0)
				require.Equal(t, map[string]any{want: "value"}, m.AsRaw(), "%s %s", names, key)
			}
		}
		require.GreaterOrEqual(t, renamed, len(table)/2)
	}
}
