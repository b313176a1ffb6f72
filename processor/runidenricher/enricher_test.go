// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/processor/runidenricher/internal/metadata"
	"github.com/lenscol/lenscol/processor/runidenricher/internal/metadatatest"
	"github.com/lenscol/lenscol/sdk/resource"
	"github.com/lenscol/lenscol/sdk/semconv"
)

type env map[string]string

// system is a machine named host with these variables and no files.
func system(t testing.TB, host string, vars env) resource.System {
	return resource.System{
		LookupEnv: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
		Hostname:  func() (string, error) { return host, nil },
		Root:      t.TempDir(),
	}
}

func config(t testing.TB, yaml string, system resource.System) (*Config, error) {
	raw, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := raw.AsConf()
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	if err := conf.Unmarshal(cfg); err != nil {
		return nil, err
	}
	cfg.shared.system = system
	return cfg, confmap.Validate(cfg)
}

// rig is a processor of each signal with its sinks, its telemetry and its log.
type rig struct {
	tel     *componenttest.Telemetry
	log     *observer.ObservedLogs
	traces  processor.Traces
	metrics processor.Metrics
	logs    processor.Logs
	spans   consumertest.TracesSink
	points  consumertest.MetricsSink
	records consumertest.LogsSink
}

func newRig(t testing.TB, yaml string, system resource.System) *rig {
	cfg, err := config(t, yaml, system)
	require.NoError(t, err)
	r := &rig{tel: componenttest.NewTelemetry()}
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = r.tel.NewTelemetrySettings()
	core, log := observer.New(zap.DebugLevel)
	set.Logger, r.log = zap.New(core), log
	r.traces, err = NewFactory().CreateTraces(t.Context(), set, cfg, &r.spans)
	require.NoError(t, err)
	r.metrics, err = NewFactory().CreateMetrics(t.Context(), set, cfg, &r.points)
	require.NoError(t, err)
	r.logs, err = NewFactory().CreateLogs(t.Context(), set, cfg, &r.records)
	require.NoError(t, err)
	for _, p := range []component.Component{r.traces, r.metrics, r.logs} {
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	}
	return r
}

// resource sends a resource with those attributes and returns what it became.
func (r *rig) resource(t testing.TB, raw map[string]any) map[string]any {
	td := ptrace.NewTraces()
	require.NoError(t, td.ResourceSpans().AppendEmpty().Resource().Attributes().FromRaw(raw))
	r.spans.Reset()
	require.NoError(t, r.traces.ConsumeTraces(t.Context(), td))
	became := r.spans.AllTraces()[0].ResourceSpans().At(0).Resource().Attributes()
	require.Len(t, became.AsRaw(), became.Len(), "a key is there twice")
	return became.AsRaw()
}

func (r *rig) requireFrom(t *testing.T, want map[string]int64) {
	var points []metricdata.DataPoint[int64]
	for from, n := range want {
		points = append(points, metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("from", from))})
	}
	metadatatest.AssertEqualProcessorRunIDEnricherResources(t, r.tel, points, metricdatatest.IgnoreTimestamp())
}

type attrs = map[string]any

func plus(base attrs, more attrs) attrs {
	all := maps.Clone(base)
	maps.Copy(all, more)
	return all
}

var slurm = env{"SLURM_JOB_ID": "12345", "SLURM_CLUSTER_NAME": "cluster-a", "SLURM_JOB_NAME": "pretrain", "SLURM_NNODES": "4", "SLURM_RESTART_COUNT": "0"}

// What a sidecar of that job stamps onto a resource that says nothing.
var slurmStamps = attrs{
	"nemo.run.id": "12345", "nv.dl.job.uuid": "be34ba0f-41ed-5d53-84c1-e3f3dd25bfd7", "nv.dl.run.uuid": "1a280c0a-71d2-54bd-bd00-fa82efd94290",
	"slurm.job.id": "12345", "slurm.job.id.raw": "12345", "slurm.array.job_id": "12345", "slurm.array.task_id": "0", "slurm.array.count": int64(1),
	"slurm.restart_count": int64(0), "slurm.job.name": "pretrain", "slurm.cluster.name": "cluster-a", "slurm.nnodes": int64(4), "host.name": "node-a",
}

const only = "slurm: false\nkubernetes: false\nhost: false\ngpu: false\n"

func TestResources(t *testing.T) {
	torch := env{"TORCHELASTIC_RUN_ID": "abc"}
	pod := env{"KUBERNETES_SERVICE_HOST": "x", "K8S_POD_NAME": "pretrain-0", "K8S_NAMESPACE": "train", "K8S_CONTAINER_NAME": "lenscol", "K8S_JOB_NAME": "pretrain"}
	tests := []struct {
		name     string
		yaml     string
		env      env
		in, want attrs
		from     string
	}{
		{"nothing is known", only, nil, attrs{"a": "b"}, attrs{"a": "b"}, "none"},
		{"slurm", "", slurm, nil, slurmStamps, "own"},
		{
			"what a sender says stays", "", slurm,
			attrs{"nemo.run.id": "mine", "slurm.nnodes": "4", "nv.dl.job.uuid": "j", "host.name": "node-a"},
			plus(slurmStamps, attrs{"nemo.run.id": "mine", "slurm.nnodes": "4", "nv.dl.job.uuid": "j"}), "sender",
		},
		{"an empty run id is none", only, torch, attrs{"nemo.run.id": ""}, attrs{"nemo.run.id": "abc", "nv.dl.run.uuid": "1f7fbf31-9cd2-5d2b-a5f7-705f3076e62c"}, "own"},
		{"a run id that is no text stays", only, torch, attrs{"nemo.run.id": true}, attrs{"nemo.run.id": true}, "sender"},
		{"the run uuid is that of the run", only, torch, attrs{"nemo.run.id": "other"}, attrs{"nemo.run.id": "other"}, "sender"},
		{"the run from the resource's uuid", only, torch, attrs{"nv.dl.run.uuid": "u"}, attrs{"nv.dl.run.uuid": "u", "nemo.run.id": "u"}, "resource"},
		{"the run from the resource's job", only, nil, attrs{"slurm.job.id": int64(17)}, attrs{"slurm.job.id": int64(17), "nemo.run.id": "17"}, "resource"},
		{
			"the run from the resource's array task", "mode: gateway", nil, attrs{"slurm.job.id": "18", "slurm.array.job_id": "17", "slurm.array.task_id": "6"},
			attrs{"slurm.job.id": "18", "slurm.array.job_id": "17", "slurm.array.task_id": "6", "nemo.run.id": "17_6"}, "resource",
		},
		{
			"uuids under their old names stay, and are the only ones", only, slurm, attrs{"nemo.lens.job_uuid": "j", "nemo.lens.run_uuid": "r"},
			attrs{"nemo.lens.job_uuid": "j", "nemo.lens.run_uuid": "r", "nemo.run.id": "r"}, "resource",
		},
		{
			"the run from the resource's job uuid under its old name", "mode: gateway", nil, attrs{"nemo.lens.job_uuid": "j", "slurm.job.id": "1"},
			attrs{"nemo.lens.job_uuid": "j", "slurm.job.id": "1", "nemo.run.id": "j"}, "resource",
		},
		{
			"uuids under their old names go on under both", "names: both\nmode: gateway", nil, attrs{"nemo.lens.run_uuid": "r"},
			attrs{"nemo.lens.run_uuid": "r", "nv.dl.run.uuid": "r", "nemo.run.id": "r"}, "resource",
		},
		{
			"an empty uuid under its old name is none", only, torch, attrs{"nemo.lens.run_uuid": ""},
			attrs{"nemo.lens.run_uuid": "", "nemo.run.id": "abc", "nv.dl.run.uuid": "1f7fbf31-9cd2-5d2b-a5f7-705f3076e62c"}, "own",
		},
		{
			"uuids are replaced under the names they have", only + "run_id: {replace: always}", slurm,
			attrs{"nemo.run.id": "12345", "nemo.lens.job_uuid": "j", "nemo.lens.run_uuid": "r", "nv.dl.run.uuid": "R"},
			attrs{
				"nemo.run.id": "12345", "nemo.lens.job_uuid": "be34ba0f-41ed-5d53-84c1-e3f3dd25bfd7", "nv.dl.job.uuid.original": "j",
				"nemo.lens.run_uuid": "1a280c0a-71d2-54bd-bd00-fa82efd94290", "nv.dl.run.uuid": "1a280c0a-71d2-54bd-bd00-fa82efd94290", "nv.dl.run.uuid.original": "R",
			}, "sender",
		},
		{"static goes before the environment", only + "run_id: {static: s}", torch, nil, attrs{"nemo.run.id": "s", "nv.dl.run.uuid": resource.UUID5("nemo.lens.run/local/s/te0")}, "own"},
		{
			"sources in their order", only + "run_id: {from: [torchelastic, 'env:X']}", env{"TORCHELASTIC_RUN_ID": "none", "X": "x"}, nil,
			attrs{"nemo.run.id": "x", "nv.dl.run.uuid": resource.UUID5("nemo.lens.run/local/x/te0")}, "own",
		},
		{
			"a made-up id gives way", only + "run_id: {replace: generated}", torch, attrs{"nemo.run.id": "0123456789ab", "nv.dl.run.uuid": "u"},
			attrs{
				"nemo.run.id": "abc", "nemo.run.id.original": "0123456789ab",
				"nv.dl.run.uuid": "1f7fbf31-9cd2-5d2b-a5f7-705f3076e62c", "nv.dl.run.uuid.original": "u",
			}, "replaced",
		},
		{"a given id does not give way", only + "run_id: {replace: generated}", torch, attrs{"nemo.run.id": "run-7f3a"}, attrs{"nemo.run.id": "run-7f3a"}, "sender"},
		{"by default no id gives way", only, torch, attrs{"nemo.run.id": "0123456789ab"}, attrs{"nemo.run.id": "0123456789ab"}, "sender"},
		{"without an own one no id gives way", only + "run_id: {replace: always}", nil, attrs{"nemo.run.id": "0123456789ab"}, attrs{"nemo.run.id": "0123456789ab"}, "sender"},
		{
			"always", only + "run_id: {replace: always}", slurm, attrs{"nemo.run.id": "run-7f3a", "nv.dl.job.uuid": "j", "nv.dl.run.uuid": "r"},
			attrs{
				"nemo.run.id": "12345", "nemo.run.id.original": "run-7f3a",
				"nv.dl.job.uuid": "be34ba0f-41ed-5d53-84c1-e3f3dd25bfd7", "nv.dl.job.uuid.original": "j",
				"nv.dl.run.uuid": "1a280c0a-71d2-54bd-bd00-fa82efd94290", "nv.dl.run.uuid.original": "r",
			}, "replaced",
		},
		{
			"overwrite", "overwrite: [cluster.name, slurm.job.name]\nattributes: {cluster.name: a, n: 3, x: 1.5}\nkubernetes: false\nhost: false\ngpu: false", env{"SLURM_JOB_NAME": "pretrain"},
			attrs{"cluster.name": "b", "slurm.job.name": "c", "n": int64(4)}, attrs{"cluster.name": "a", "slurm.job.name": "pretrain", "n": int64(4), "x": 1.5}, "none",
		},
		{"overwrite of the host", "gpu: false\noverwrite: [host.name]", slurm, attrs{"host.name": "node-b"}, slurmStamps, "own"},
		{"overwrite of a host that is not stamped", "host: false\noverwrite: [host.name]", plusEnv(slurm, "CUDA_VISIBLE_DEVICES", "0,1"), attrs{"host.name": "node-b"}, plus(slurmStamps, attrs{"host.name": "node-b"}), "own"},
		{
			"overwrite of the pod", "host: false\nrun_id: {from: []}\noverwrite: [k8s.pod.name]", pod, attrs{"k8s.pod.name": "p2"},
			attrs{"k8s.pod.name": "pretrain-0", "k8s.namespace.name": "train", "k8s.job.name": "pretrain"}, "none",
		},
		{"overwrite of the job", "overwrite: [slurm.job.id]", slurm, attrs{"slurm.job.id": "999"}, slurmStamps, "own"},
		{"overwrite of the job leaves the run", "overwrite: [slurm.job.id]", slurm, attrs{"slurm.job.id": "999", "nemo.run.id": "r"}, plus(slurmStamps, attrs{"nemo.run.id": "r"}), "sender"},
		{
			"overwrite of a fact does not reach another job", "overwrite: [slurm.job.name]", slurm, attrs{"slurm.job.id": "999", "slurm.job.name": "theirs"},
			attrs{"slurm.job.id": "999", "slurm.job.name": "theirs", "nemo.run.id": "999", "host.name": "node-a"}, "resource",
		},
		{"delete", only + "delete: [a, b]", nil, attrs{"a": 1, "c": "d"}, attrs{"c": "d"}, "none"},
		{
			"another part of a heterogeneous job", only, env{"SLURM_JOB_ID": "700", "SLURM_HET_SIZE": "2"}, attrs{"slurm.job.id": "701", "nemo.run.id": "701"},
			attrs{
				"slurm.job.id": "701", "nemo.run.id": "701",
				"nv.dl.job.uuid": resource.UUID5("nemo.lens.job/nocluster/700"), "nv.dl.run.uuid": resource.UUID5("nemo.lens.run/nocluster/700/sr0"),
			}, "sender",
		},
		{
			"another part of a heterogeneous job has the job's run", only, env{"SLURM_JOB_ID": "1001", "SLURM_HET_JOB_ID": "1000", "SLURM_HET_SIZE": "2"}, attrs{"slurm.job.id": "1001"},
			attrs{
				"slurm.job.id": "1001", "nemo.run.id": "1000",
				"nv.dl.job.uuid": resource.UUID5("nemo.lens.job/nocluster/1000"), "nv.dl.run.uuid": resource.UUID5("nemo.lens.run/nocluster/1000/sr0"),
			}, "own",
		},
		{
			"an array's task under its other id has the job's run", only, env{"SLURM_JOB_ID": "2001", "SLURM_ARRAY_JOB_ID": "2000", "SLURM_ARRAY_TASK_ID": "3"}, attrs{"slurm.job.id": "2000_3"},
			attrs{
				"slurm.job.id": "2000_3", "nemo.run.id": "2001",
				"nv.dl.job.uuid": resource.UUID5("nemo.lens.job/nocluster/2000"), "nv.dl.run.uuid": resource.UUID5("nemo.lens.run/nocluster/2000"),
			}, "own",
		},
		{"another job's resource", "", plusEnv(slurm, "WANDB_ENTITY", "e"), attrs{"slurm.job.id": "999"}, attrs{"slurm.job.id": "999", "nemo.run.id": "999", "host.name": "node-a"}, "resource"},
		{"another host's rank of the same job", "gpu: true", plusEnv(slurm, "CUDA_VISIBLE_DEVICES", "0,1"), attrs{"host.name": "node-b"}, plus(slurmStamps, attrs{"host.name": "node-b"}), "own"},
		{
			"pod", "host: false\nrun_id: {from: [k8s_job]}", pod, nil,
			attrs{
				"k8s.pod.name": "pretrain-0", "k8s.namespace.name": "train", "k8s.job.name": "pretrain",
				"nemo.run.id": "pretrain", "nv.dl.run.uuid": resource.UUID5("nemo.lens.run/local/pretrain/te0"),
			}, "own",
		},
		{"another pod's resource", "host: false\nrun_id: {from: []}", pod, attrs{"k8s.pod.name": "p2"}, attrs{"k8s.pod.name": "p2"}, "none"},
		{"gateway", "mode: gateway\nattributes: {cluster.name: a}", plusEnv(slurm, "WANDB_ENTITY", "e"), nil, attrs{"cluster.name": "a"}, "none"},
		{"node", "mode: node", plusEnv(slurm, "CUDA_VISIBLE_DEVICES", "0,1"), nil, attrs{"host.name": "node-a"}, "none"},
		{"node in kubernetes", "mode: node", plusEnv(pod, "K8S_NODE_NAME", "gpu-07"), attrs{"k8s.pod.name": "p"}, attrs{"k8s.pod.name": "p", "k8s.node.name": "gpu-07", "host.name": "gpu-07"}, "none"},
		{"node in kubernetes that does not know its name", "mode: node", pod, nil, attrs{}, "none"},
		{"a value that looks like a token is not stamped", only, env{"NEMO_LENS_RUN_ID": "hf_aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3f"}, nil, attrs{}, "none"},
		{"old names", "names: old\nhost: false\ngpu: false\nkubernetes: false", env{"SLURM_JOB_ID": "1", "SLURM_NNODES": "4", "SLURM_NODELIST": "n[1-4]"}, attrs{"nv.dl.rank": 3},
			attrs{
				"slurm.job.id": "1", "slurm.nnodes": "4", "slurm.nodelist": "n[1-4]", "dl.rank": int64(3), "nemo.run.id": "1",
				"nemo.lens.job_uuid": resource.UUID5("nemo.lens.job/nocluster/1"), "nemo.lens.run_uuid": resource.UUID5("nemo.lens.run/nocluster/1/sr0"),
			}, "own"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.yaml, system(t, "node-a", tt.env))
			require.Equal(t, tt.want, r.resource(t, tt.in))
			r.requireFrom(t, map[string]int64{tt.from: 1})
		})
	}
}

// What overwrite replaces is counted, ids too; what another setting replaces is not.
func TestOverwrittenValuesAreCounted(t *testing.T) {
	r := newRig(t, "overwrite: [nv.dl.job.uuid, nv.dl.run.uuid, nemo.run.id, host.name]", system(t, "node-a", slurm))
	want := plus(slurmStamps, attrs{"nv.dl.job.uuid.original": "j", "nv.dl.run.uuid.original": "r", "nemo.run.id.original": "x"})
	require.Equal(t, want, r.resource(t, attrs{"nv.dl.job.uuid": "j", "nv.dl.run.uuid": "r", "nemo.run.id": "x", "host.name": "node-b"}))
	metadatatest.AssertEqualProcessorRunIDEnricherOverwrittenValues(t, r.tel, []metricdata.DataPoint[int64]{{Value: 4}}, metricdatatest.IgnoreTimestamp())
	require.Equal(t, want, r.resource(t, want), "what is ours is not replaced again")
	metadatatest.AssertEqualProcessorRunIDEnricherOverwrittenValues(t, r.tel, []metricdata.DataPoint[int64]{{Value: 4}}, metricdatatest.IgnoreTimestamp())

	r = newRig(t, "run_id: {replace: always}", system(t, "node-a", slurm))
	r.resource(t, attrs{"nv.dl.job.uuid": "j", "nemo.run.id": "x"})
	_, err := r.tel.GetMetric("otelcol_processor_run_id_enricher_overwritten_values")
	require.Error(t, err)
}

func plusEnv(base env, more ...string) env {
	all := maps.Clone(base)
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func TestWandb(t *testing.T) {
	rules := only + `
wandb:
  rules:
    - {match: {service.name: "megatron*", dl.rank: "0"}, entity: acme, project: llm, run_id: r1}
    - {match: {slurm.job.user: "?lice"}, project: hers}
`
	sidecar := env{"WANDB_ENTITY": "e", "WANDB_PROJECT": "p", "WANDB_RUN_ID": "r"}
	tests := []struct {
		name     string
		yaml     string
		env      env
		in, want attrs
	}{
		{"environment", only, sidecar, attrs{}, attrs{"wandb.entity": "e", "wandb.project": "p", "wandb.run.id": "r"}},
		{"what the resource says stays", only, sidecar, attrs{"wandb.entity": "e", "wandb.project": "p", "wandb.run.id": "r"}, attrs{"wandb.entity": "e", "wandb.project": "p", "wandb.run.id": "r"}},
		{"what it leaves open is filled", only, sidecar, attrs{"wandb.entity": "e"}, attrs{"wandb.entity": "e", "wandb.project": "p", "wandb.run.id": "r"}},
		{"targets are not mixed", only, sidecar, attrs{"wandb.entity": "other"}, attrs{"wandb.entity": "other"}},
		{"a gateway's environment is nobody's", "mode: gateway", sidecar, attrs{}, attrs{}},
		{
			"a rule goes before the environment", rules, sidecar, attrs{"service.name": "megatron-lm", "dl.rank": 0},
			attrs{"service.name": "megatron-lm", "dl.rank": int64(0), "wandb.entity": "acme", "wandb.project": "llm", "wandb.run.id": "r1"},
		},
		{"all of a rule must match", rules, nil, attrs{"service.name": "megatron-lm", "dl.rank": 1}, attrs{"service.name": "megatron-lm", "dl.rank": int64(1)}},
		{"a rule that leaves open", rules, nil, attrs{"slurm.job.user": "alice"}, attrs{"slurm.job.user": "alice", "wandb.project": "hers"}},
		{"a rule does not mix targets", rules, nil, attrs{"slurm.job.user": "alice", "wandb.project": "theirs"}, attrs{"slurm.job.user": "alice", "wandb.project": "theirs"}},
		{"overwrite", only + "overwrite: [wandb.entity]", sidecar, attrs{"wandb.entity": "other"}, attrs{"wandb.entity": "e", "wandb.project": "p", "wandb.run.id": "r"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, newRig(t, tt.yaml, system(t, "node-a", tt.env)).resource(t, tt.in))
		})
	}
}

// The environment of a node agent is no job's: each keeps its own run, and neither gets a fact of the other.
func TestTwoJobsThroughOneNodeAgent(t *testing.T) {
	r := newRig(t, "mode: node", system(t, "node-a", plusEnv(slurm, "NEMO_LENS_RUN_ID", "agent", "WANDB_ENTITY", "agent")))
	first, second := attrs{"slurm.job.id": "1", "nv.dl.rank": int64(0)}, attrs{"nemo.run.id": "two", "nv.dl.rank": int64(0)}
	require.Equal(t, plus(first, attrs{"nemo.run.id": "1", "host.name": "node-a"}), r.resource(t, first))
	require.Equal(t, plus(second, attrs{"host.name": "node-a"}), r.resource(t, second))
	require.Equal(t, attrs{"host.name": "node-a"}, r.resource(t, nil), "neither's run is stamped onto what says nothing")
}

func TestGenerateIsOneIDPerCollector(t *testing.T) {
	a := newRig(t, only+"run_id: {generate: per_collector}", system(t, "n", nil)).resource(t, nil)["nemo.run.id"]
	b := newRig(t, only+"run_id: {generate: per_collector}", system(t, "n", nil)).resource(t, nil)["nemo.run.id"]
	require.Len(t, a, 12)
	require.Equal(t, a, b)
}

func TestTelemetryOfAnotherJobIsLoggedOnce(t *testing.T) {
	r := newRig(t, "", system(t, "node-a", slurm))
	for range 3 {
		require.NotContains(t, r.resource(t, attrs{"slurm.job.id": "999"}), "nv.dl.job.uuid")
	}
	require.Equal(t, slurmStamps, r.resource(t, nil), "what comes after another job's")
	lines := r.log.FilterLevelExact(zap.WarnLevel).All()
	require.Len(t, lines, 1)
	require.Equal(t, map[string]any{"slurm.job.id": "999", "own": "12345"}, lines[0].ContextMap())

	r = newRig(t, "", system(t, "node-a", slurm))
	r.resource(t, attrs{"slurm.job.id": "9" + strings.Repeat("é", 1<<20)})
	lines = r.log.FilterLevelExact(zap.WarnLevel).All()
	require.Len(t, lines, 1)
	require.Equal(t, "9"+strings.Repeat("é", 127)+"…", lines[0].ContextMap()["slurm.job.id"], "of a long one, 256 bytes")
}

func TestStartLine(t *testing.T) {
	token := "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
	r := newRig(t, fmt.Sprintf("attributes: {cluster.name: a, password: hunter2, note: %s}", token),
		system(t, "node-a", env{"NEMO_LENS_RUN_ID": "run-7f3a", "SLURM_JOB_ID": "1", "SLURM_JOB_USER": token, "SLURM_JOB_NAME": "x\ny", "WANDB_API_KEY": "secret"}))
	lines := r.log.FilterMessageSnippet("stamped").All()
	require.Len(t, lines, 1, "one line, not one a signal")
	text := fmt.Sprint(lines[0].ContextMap())
	for _, part := range []string{
		"nemo.run.id=run-7f3a (env:NEMO_LENS_RUN_ID)", "slurm.job.id=1 (env:SLURM_JOB_ID)", "host.name=node-a (hostname)", "cluster.name=a (config)",
		"password=[REDACTED] (config)", "note=[REDACTED] (config)", "(uuid5)", "env:SLURM_JOB_USER: looks like a token", "env:SLURM_JOB_NAME: has control characters",
	} {
		require.Contains(t, text, part)
	}
	for _, secret := range []string{token, "hunter2", "secret"} {
		require.NotContains(t, text, secret)
	}
}

// The start line says what is stamped: of a key that the config and the machine know, one value with its own source.
func TestStartLineShowsWhatIsStamped(t *testing.T) {
	r := newRig(t, "attributes: {host.name: from-config, nemo.run.id: fixed, slurm.nnodes: 2, wandb.entity: fixed}", system(t, "node-a", plusEnv(slurm, "WANDB_ENTITY", "e")))
	stamped := r.resource(t, nil)
	lines := r.log.FilterMessageSnippet("stamped").All()
	require.Len(t, lines, 1)
	shown := lines[0].ContextMap()["values"].([]any)
	require.Len(t, shown, len(stamped))
	for _, line := range shown {
		key, value, _ := strings.Cut(line.(string), "=")
		value, _, _ = strings.Cut(value, " (")
		require.Equal(t, fmt.Sprint(stamped[key]), value, key)
	}
	for _, line := range []string{"host.name=from-config (config)", "nemo.run.id=12345 (env:SLURM_JOB_ID)", "slurm.nnodes=2 (config)", "wandb.entity=e (env:WANDB_ENTITY)"} {
		require.Contains(t, shown, line)
	}
}

// Lens 0.1, 0.2 and newer in the same job: whatever they send, it is the same run, rank and W&B target that comes out.
func TestCapturesOfEveryLensGiveTheSameIdentity(t *testing.T) {
	type who struct {
		run, service, host, entity, project, job string
		rank                                     identity.Identity
	}
	sidecars := map[string]env{
		"slurm": {"SLURM_JOB_ID": "123456", "SLURM_ARRAY_JOB_ID": "123450", "SLURM_ARRAY_TASK_ID": "6", "SLURM_RESTART_COUNT": "2", "SLURM_CLUSTER_NAME": "alpha"},
		"k8s":   {"KUBERNETES_SERVICE_HOST": "x", "K8S_POD_NAME": "pretrain-0", "K8S_JOB_NAME": "pretrain", "NEMO_LENS_RUN_ID": "run-7f3a", "WANDB_ENTITY": "acme", "WANDB_PROJECT": "llm-70b"},
	}
	found := map[string]map[string]who{"slurm": {}, "k8s": {}}
	for _, c := range testbed.Captures(t) {
		parts := strings.Split(filepath.ToSlash(c.Name), "/")
		version, scenario := parts[0], parts[1]
		vars, ok := sidecars[scenario]
		if !ok || c.Signal != "traces" || c.JSON {
			continue
		}
		req := ptraceotlp.NewExportRequest()
		require.NoError(t, req.UnmarshalProto(c.Body))
		r := newRig(t, "names: both\nrun_id: {replace: generated}", system(t, "node-a", vars))
		require.NoError(t, r.traces.ConsumeTraces(t.Context(), req.Traces()))
		m := r.spans.AllTraces()[0].ResourceSpans().At(0).Resource().Attributes()
		id := identity.Of(m)
		id.LocalRank = 0 // Lens 0.1 and 0.2 do not send it
		for _, key := range []string{"dl.rank", "nv.dl.rank", "dl.world_size", "nv.dl.world_size", "nv.dl.run.uuid", "nemo.lens.run_uuid"} {
			_, there := m.Get(key)
			require.True(t, there, "%s of %s", key, version)
		}
		found[scenario][version] = who{
			identity.Run(m), identity.Service(m), text(m, "host.name"), text(m, "wandb.entity"), text(m, "wandb.project"), text(m, "k8s.job.name") + text(m, "slurm.array.job_id"), id,
		}
	}
	for scenario, versions := range found {
		require.Len(t, versions, 3, scenario)
		require.Equal(t, versions["0.1.0"], versions["0.2.0"], scenario)
		require.Equal(t, versions["0.1.0"], versions["pr42"], scenario)
	}
}

func TestNames(t *testing.T) {
	old := attrs{"dl.rank": int64(3), "megatron.iteration": int64(5), "other": "x"}
	renamed := attrs{"nv.dl.rank": int64(3), "nv.dl.training.step": int64(5), "other": "x"}
	tests := []struct {
		names    string
		in, want attrs
		span     string
	}{
		{"keep", old, old, "megatron.train.iteration"},
		{"new", old, renamed, "nv.dl.training.iteration"},
		{"new", renamed, renamed, "nv.dl.training.iteration"},
		{"old", renamed, old, "megatron.train.iteration"},
		{"both", old, plus(old, renamed), "megatron.train.iteration"},
		{"both", renamed, plus(old, renamed), "megatron.train.iteration"},
		{"both", plus(old, attrs{"nv.dl.rank": int64(4)}), plus(plus(old, renamed), attrs{"nv.dl.rank": int64(4)}), "megatron.train.iteration"},
		{"new", attrs{"dl.rank": "3", "nv.dl.rank": "3"}, attrs{"nv.dl.rank": "3"}, "nv.dl.training.iteration"},
		{"new", attrs{"dl.rank": "3", "nv.dl.rank": "4"}, attrs{"dl.rank": "3", "nv.dl.rank": "4"}, "nv.dl.training.iteration"},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i, " ", tt.names), func(t *testing.T) {
			r := newRig(t, only+"names: "+tt.names+"\nmode: gateway", system(t, "n", nil))
			fill := func(m pcommon.Map) { require.NoError(t, m.FromRaw(tt.in)) }

			td := ptrace.NewTraces()
			rs := td.ResourceSpans().AppendEmpty()
			span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			span.SetName("megatron.train.iteration")
			event := span.Events().AppendEmpty()
			for _, m := range []pcommon.Map{rs.Resource().Attributes(), span.Attributes(), event.Attributes()} {
				fill(m)
			}
			require.NoError(t, r.traces.ConsumeTraces(t.Context(), td))
			if tt.names != "old" {
				require.Equal(t, tt.span, span.Name())
			}
			for _, m := range []pcommon.Map{rs.Resource().Attributes(), span.Attributes(), event.Attributes()} {
				require.Equal(t, tt.want, m.AsRaw())
			}

			md := pmetric.NewMetrics()
			ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
			points := []pcommon.Map{
				ms.AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().Attributes(), ms.AppendEmpty().SetEmptySum().DataPoints().AppendEmpty().Attributes(),
				ms.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty().Attributes(), ms.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty().Attributes(),
				ms.AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Attributes(),
			}
			for _, m := range points {
				fill(m)
			}
			ms.At(0).SetName("rl.kl_divergence")
			require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), md))
			for _, m := range points {
				require.Equal(t, tt.want, m.AsRaw())
			}
			if tt.names == "new" {
				require.Equal(t, "rl.kl.divergence", ms.At(0).Name())
			} else {
				require.Equal(t, "rl.kl_divergence", ms.At(0).Name())
			}

			ld := plog.NewLogs()
			record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			fill(record.Attributes())
			require.NoError(t, r.logs.ConsumeLogs(t.Context(), ld))
			require.Equal(t, tt.want, record.Attributes().AsRaw())
		})
	}
}

func TestSkew(t *testing.T) {
	tests := []struct {
		name       string
		start, end pcommon.Timestamp
		want       attrs
	}{
		{"in order", 1, 2, attrs{"a": "b"}},
		{"of length zero", 5, 5, attrs{"a": "b"}},
		{"not ended", 5, 0, attrs{"a": "b"}},
		{"inverted", 1790038547061741440, 1790038547061741439, attrs{
			"a": "b", "inverted.skew": "true", "inverted.start_epoch_seconds": "1790038547.061741440", "inverted.end_epoch_seconds": "1790038547.061741439", "inverted.delta_seconds": "0.000000001",
		}},
		{"by more than int64", 1<<64 - 1, 1, attrs{
			"a": "b", "inverted.skew": "true", "inverted.start_epoch_seconds": "18446744073.709551615", "inverted.end_epoch_seconds": "0.000000001", "inverted.delta_seconds": "18446744073.709551614",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, skew := range []string{"keep", "clamp"} {
				r := newRig(t, only+"skew: "+skew, system(t, "n", nil))
				td := ptrace.NewTraces()
				span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
				span.SetStartTimestamp(tt.start)
				span.SetEndTimestamp(tt.end)
				span.Attributes().PutStr("a", "b")
				require.NoError(t, r.traces.ConsumeTraces(t.Context(), td))
				require.Equal(t, tt.start, span.StartTimestamp())
				if skew == "keep" || len(tt.want) == 1 {
					require.Equal(t, tt.end, span.EndTimestamp())
					require.Equal(t, attrs{"a": "b"}, span.Attributes().AsRaw())
					continue
				}
				require.Equal(t, tt.start, span.EndTimestamp())
				require.Equal(t, tt.want, span.Attributes().AsRaw())
				metadatatest.AssertEqualProcessorRunIDEnricherClampedSpans(t, r.tel, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
			}
		})
	}
}

func TestRedact(t *testing.T) {
	const token = "hf_aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3f"
	r := newRig(t, only+"redact: {patterns: [huggingface]}\nattributes: {token: fixed}", system(t, "n", nil))
	require.Equal(t, attrs{"token": "[REDACTED]", "prompt": "[REDACTED]", "a": "x [REDACTED]"}, r.resource(t, attrs{"prompt": "p", "a": "x " + token}))

	md := pmetric.NewMetrics()
	point := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
	point.Attributes().PutStr("text", "t")
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), md))
	require.Equal(t, attrs{"text": "[REDACTED]"}, point.Attributes().AsRaw())

	ld := plog.NewLogs()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.Body().SetStr(token)
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), ld))
	require.Equal(t, "[REDACTED]", record.Body().Str())

	rule := func(name string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("rule", name))}
	}
	// Prompt and token of the traces, text of the point, and the token that every resource is stamped with.
	metadatatest.AssertEqualProcessorRunIDEnricherRedactedValues(t, r.tel, []metricdata.DataPoint[int64]{rule("key", 5), rule("huggingface", 2)}, metricdatatest.IgnoreTimestamp())

	off := attrs{"prompt": "p", "a": token}
	require.Equal(t, off, newRig(t, only, system(t, "n", nil)).resource(t, off), "off by default")
}

func TestConfigRefused(t *testing.T) {
	tests := []struct{ yaml, want string }{
		{"mode: agent", `mode: "agent" must be one of sidecar, node, gateway`},
		{"run_id: {generate: yes_please}", `run_id.generate: "yes_please" must be one of never, per_collector`},
		{"run_id: {replace: old}", `run_id.replace: "old" must be one of never, generated, always`},
		{"run_id: {from: [wandb]}", `run_id.from: "wandb" is no source: must be env:NAME`},
		{"run_id: {from: ['env:WANDB_API_KEY']}", `run_id.from: "env:WANDB_API_KEY": a variable with KEY in its name is not read`},
		{"{mode: node, run_id: {static: x}}", `run_id.static: "x" needs mode sidecar: a node takes the telemetry of many runs`},
		{"{mode: gateway, run_id: {generate: per_collector}}", `run_id.generate: "per_collector" needs mode sidecar`},
		{"instance_id: pid", `instance_id: "pid" must be one of keep, unique`},
		{"names: newer", `names: "newer" must be one of keep, both, new, old`},
		{"skew: fix", `skew: "fix" must be one of keep, clamp`},
		{"attributes: {a: [1]}", `attributes: a: [1] must be text, a number or a boolean`},
		{"overwrite: ['']", `overwrite: "" is no attribute key`},
		{"delete: ['']", `delete: "" is no attribute key`},
		{"wandb: {rules: [{match: {a: b}}]}", `wandb.rules[0]: has no target`},
		{"redact: {patterns: [openay]}", `redact: patterns: "openay" is no ready pattern`},
		{"redact: {action: hash}", `hash_key: action hash needs one of at least 16 bytes`},
		{"replace: generated", `invalid keys: replace`},
	}
	for _, tt := range tests {
		t.Run(tt.yaml, func(t *testing.T) {
			_, err := config(t, tt.yaml, resource.System{})
			require.ErrorContains(t, err, tt.want)
		})
	}
	var many strings.Builder
	for i := range maxStamped {
		fmt.Fprintf(&many, "k%d: v\n  ", i)
	}
	_, err := config(t, "attributes:\n  "+many.String(), resource.System{})
	require.ErrorContains(t, err, "attributes and overwrite: 256 keys, there can be 128")
}

// The examples of the pages are configs.
func TestDocumentedExamples(t *testing.T) {
	for page, want := range map[string]int{"README.md": 1, "../../docs/enrich.md": 3} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
		require.Len(t, blocks, want, page)
		for _, block := range blocks {
			yaml := strings.TrimPrefix(block[1], "processors:\n  run_id_enricher:\n")
			_, err = config(t, strings.ReplaceAll("\n"+yaml, "\n    ", "\n"), resource.System{})
			require.NoError(t, err, block[1])
		}
	}
}

// Whatever resources say, in a processor that was told to replace nothing they go on saying it.
func FuzzWhatSendersSayStays(f *testing.F) {
	keys := append(semconv.Registry(), "service.name", "service.instance.id", "process.pid", "wandb.run.id", "nemo.run.id.original", "", "x")
	f.Add([]byte("\x00\x01a\x02\x03"), "text")
	f.Add([]byte{36, 0, 42, 0, 50, 1, 98, 2}, "")
	f.Add([]byte{0xff, 0xff, 0xfe, 3, 36, 4}, "0123456789ab")
	r := newRig(f, "names: both\nattributes: {x: y}", system(f, "node-a", plusEnv(slurm, "WANDB_ENTITY", "e")))
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		in := attrs{}
		for i := 0; i+1 < len(data); i += 2 {
			key := keys[int(data[i])%len(keys)]
			in[key] = [...]any{text, int64(data[i]), true, 1.5, []any{text}, attrs{"a": text}}[data[i+1]%6]
		}
		out := r.resource(t, in)
		for key, value := range in {
			if value == "" && (key == "nemo.run.id" || strings.HasSuffix(key, ".uuid") || strings.HasPrefix(key, "wandb.")) {
				continue // An empty id or target is none.
			}
			require.Equal(t, value, out[key], key)
		}
	})
}
