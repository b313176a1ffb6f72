// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// system is a recorded environment: its variables, its files, its host name.
func system(t *testing.T, env, files map[string]string) System {
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return System{
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Hostname:  func() (string, error) { return "node-a", nil },
		Root:      root,
	}
}

var slurmSingle = map[string]string{
	"SLURM_JOB_ID": "12345", "SLURM_JOB_NAME": "pretrain", "SLURM_NODELIST": "node[01-04]", "SLURM_JOB_NUM_NODES": "4", "SLURM_NNODES": "4",
	"SLURM_NTASKS": "32", "SLURM_JOB_PARTITION": "gpu", "SLURM_PARTITION": "gpu", "SLURM_CLUSTER_NAME": "cluster-a", "SLURM_JOB_USER": "alice",
	"SLURM_JOB_ACCOUNT": "llm", "SLURM_JOB_QOS": "high", "SLURMD_NODENAME": "node01", "SLURM_RESTART_COUNT": "0",
	"SLURM_JOB_RESERVATION": "maint", "SLURM_SEGMENT": "16",
}

func with(base map[string]string, more ...string) map[string]string {
	env := maps.Clone(base)
	if env == nil {
		env = map[string]string{}
	}
	for i := 0; i < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return env
}

// The environments as they are recorded on such systems, and what each detection makes of them.
func TestRecordedEnvironments(t *testing.T) {
	pod := map[string]string{
		"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "pretrain-0-x7k2p", "K8S_POD_UID": "2b1f0a52-5b5e-4c41-9f4e-0d1f6f7d2f10",
		"K8S_NODE_NAME": "gpu-07", "K8S_CONTAINER_NAME": "main",
	}
	torchrun := map[string]string{
		"RANK": "3", "WORLD_SIZE": "16", "LOCAL_RANK": "3", "TORCHELASTIC_RUN_ID": "abc", "TORCHELASTIC_RESTART_COUNT": "0",
	}
	tests := []struct {
		name       string
		env, files map[string]string
		runID      string // "value source"
		want       map[string]string
		refused    []string
	}{
		{
			name: "bare",
			want: map[string]string{"host.name": "node-a"},
		},
		{
			name: "slurm single", env: slurmSingle, runID: "12345 env:SLURM_JOB_ID",
			want: map[string]string{
				"host.name": "node-a", "slurm.job.id": "12345", "slurm.job.id.raw": "12345", "slurm.array.job_id": "12345", "slurm.array.task_id": "0",
				"slurm.array.count": "1", "slurm.restart_count": "0", "slurm.job.name": "pretrain", "slurm.job.user": "alice",
				"slurm.job.account": "llm", "slurm.job.qos": "high", "slurm.cluster.name": "cluster-a", "slurm.partition": "gpu",
				"slurm.nnodes": "4", "slurm.ntasks": "32", "slurm.head_node.name": "node01",
				"slurm.job.reservation": "maint", "slurm.segment": "16",
				"nv.dl.job.uuid": "be34ba0f-41ed-5d53-84c1-e3f3dd25bfd7", "nv.dl.run.uuid": "1a280c0a-71d2-54bd-bd00-fa82efd94290",
			},
		},
		{
			name: "slurm array task", runID: "123456 env:SLURM_JOB_ID",
			env: map[string]string{"SLURM_JOB_ID": "123456", "SLURM_ARRAY_JOB_ID": "123450", "SLURM_ARRAY_TASK_ID": "6", "SLURM_ARRAY_TASK_COUNT": "8", "SLURM_RESTART_COUNT": "2"},
			want: map[string]string{
				"host.name": "node-a", "slurm.job.id": "123450_6", "slurm.job.id.raw": "123456", "slurm.array.job_id": "123450", "slurm.array.task_id": "6",
				"slurm.array.count": "8", "slurm.restart_count": "2",
				"nv.dl.job.uuid": UUID5("nemo.lens.job/nocluster/123450"), "nv.dl.run.uuid": UUID5("nemo.lens.run/nocluster/123450"),
			},
		},
		{
			name: "slurm requeued", runID: "12345 env:SLURM_JOB_ID",
			env: map[string]string{"SLURM_JOB_ID": "12345", "SLURM_CLUSTER_NAME": "cluster-a", "SLURM_RESTART_COUNT": "3", "TORCHELASTIC_RESTART_COUNT": "1"},
			want: map[string]string{
				"host.name": "node-a", "slurm.job.id": "12345", "slurm.job.id.raw": "12345", "slurm.array.job_id": "12345", "slurm.array.task_id": "0",
				"slurm.array.count": "1", "slurm.restart_count": "3", "slurm.cluster.name": "cluster-a",
				"nv.dl.job.uuid": "be34ba0f-41ed-5d53-84c1-e3f3dd25bfd7", "nv.dl.run.uuid": UUID5("nemo.lens.run/cluster-a/12345/sr3/te1"),
			},
		},
		{
			name: "slurm heterogeneous, second part", runID: "700 env:SLURM_HET_JOB_ID",
			env: map[string]string{"SLURM_JOB_ID": "701", "SLURM_HET_JOB_ID": "700", "SLURM_HET_SIZE": "2", "SLURM_CLUSTER_NAME": "cluster-a"},
			want: map[string]string{
				"host.name": "node-a", "slurm.job.id": "700", "slurm.job.id.raw": "701", "slurm.array.job_id": "700", "slurm.array.task_id": "0",
				"slurm.array.count": "1", "slurm.restart_count": "0", "slurm.cluster.name": "cluster-a",
				"nv.dl.job.uuid": UUID5("nemo.lens.job/cluster-a/700"), "nv.dl.run.uuid": UUID5("nemo.lens.run/cluster-a/700/sr0"),
			},
		},
		{
			name: "slurm step of the second part, old variable names", runID: "700 env:SLURM_JOB_ID_HET_GROUP_0",
			env: map[string]string{
				"SLURM_JOBID": "701", "SLURM_JOB_ID_HET_GROUP_0": "700", "SLURM_STEPID": "0", "SLURMD_NODENAME": "node02",
				"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1",
			},
			want: map[string]string{
				"host.name": "node-a", "slurm.job.id": "700", "slurm.job.id.raw": "701", "slurm.array.job_id": "700", "slurm.array.task_id": "0",
				"slurm.array.count": "1", "slurm.restart_count": "0", "slurm.ntasks": "8",
				"nv.dl.rank": "5", "nv.dl.world_size": "8", "nv.dl.local_rank": "1",
				"nv.dl.job.uuid": UUID5("nemo.lens.job/nocluster/700"), "nv.dl.run.uuid": UUID5("nemo.lens.run/nocluster/700/sr0"),
			},
		},
		{
			name: "kubernetes pod", env: with(pod, "K8S_NAMESPACE", "train"),
			want: map[string]string{
				"host.name": "node-a", "k8s.namespace.name": "train", "k8s.pod.name": "pretrain-0-x7k2p", "k8s.node.name": "gpu-07", "k8s.container.name": "main",
				"k8s.pod.uid": "2b1f0a52-5b5e-4c41-9f4e-0d1f6f7d2f10",
			},
		},
		{
			name: "kubernetes indexed job", env: with(pod, "JOB_COMPLETION_INDEX", "0"), runID: "pretrain file:/etc/podinfo/labels",
			files: map[string]string{
				"var/run/secrets/kubernetes.io/serviceaccount/namespace": "train\n",
				"etc/podinfo/labels":        "-> ..data/labels",
				"etc/podinfo/..data/labels": "app=\"x\"\nbatch.kubernetes.io/job-completion-index=\"0\"\nbatch.kubernetes.io/job-name=\"pretrain\"\n",
			},
			want: map[string]string{
				"host.name": "node-a", "k8s.namespace.name": "train", "k8s.pod.name": "pretrain-0-x7k2p", "k8s.node.name": "gpu-07", "k8s.container.name": "main",
				"k8s.pod.uid": "2b1f0a52-5b5e-4c41-9f4e-0d1f6f7d2f10", "k8s.job.name": "pretrain",
				"nv.dl.run.uuid": UUID5("nemo.lens.run/local/pretrain/te0"),
			},
		},
		{
			name: "torchrun", env: torchrun, runID: "abc env:TORCHELASTIC_RUN_ID",
			want: map[string]string{
				"host.name": "node-a", "nv.dl.rank": "3", "nv.dl.world_size": "16", "nv.dl.local_rank": "3", "nv.dl.run.uuid": "1f7fbf31-9cd2-5d2b-a5f7-705f3076e62c",
			},
		},
		{
			name: "torchrun without a run id", env: with(torchrun, "TORCHELASTIC_RUN_ID", "none"),
			want: map[string]string{"host.name": "node-a", "nv.dl.rank": "3", "nv.dl.world_size": "16", "nv.dl.local_rank": "3"},
		},
		{
			name: "a run id of the user's, and gpus", runID: "run-7f3a env:NEMO_LENS_RUN_ID",
			env: with(slurmSingle, "NEMO_LENS_RUN_ID", " run-7f3a ", "CUDA_VISIBLE_DEVICES", "0,1, 2"),
			files: map[string]string{
				"proc/driver/nvidia/version":                       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2026\nGCC version: 12.2.0\n",
				"proc/driver/nvidia/gpus/0000:07:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 100\n",
				"proc/driver/nvidia/gpus/0000:08:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 101\n",
			},
			want: map[string]string{
				"host.name": "node-a", "slurm.job.id": "12345", "slurm.job.id.raw": "12345", "slurm.array.job_id": "12345", "slurm.array.task_id": "0",
				"slurm.array.count": "1", "slurm.restart_count": "0", "slurm.job.name": "pretrain", "slurm.job.user": "alice",
				"slurm.job.account": "llm", "slurm.job.qos": "high", "slurm.job.reservation": "maint", "slurm.segment": "16", "slurm.cluster.name": "cluster-a", "slurm.partition": "gpu",
				"slurm.nnodes": "4", "slurm.ntasks": "32", "slurm.head_node.name": "node01",
				"nv.dl.job.uuid": "be34ba0f-41ed-5d53-84c1-e3f3dd25bfd7", "nv.dl.run.uuid": "1a280c0a-71d2-54bd-bd00-fa82efd94290",
				"host.gpu.count": "3", "nv.gpu.model": "NVIDIA H100 80GB HBM3", "nv.gpu.driver_version": "535.129.03",
			},
		},
		{
			name: "hostile values",
			env: map[string]string{
				"NEMO_LENS_RUN_ID": "run\nid", "SLURM_JOB_ID": "1; rm -rf /", "SLURM_JOBID": "1", "SLURM_JOB_NAME": strings.Repeat("x", 1025),
				"SLURM_JOB_USER": "a\xff", "SLURM_NTASKS": "-3", "SLURM_NNODES": "99999999999999999999", "CUDA_VISIBLE_DEVICES": ",,", "RANK": "three",
				"KUBERNETES_SERVICE_HOST": "x",
			},
			files: map[string]string{
				"secret":             "batch.kubernetes.io/job-name=\"stolen\"\n",
				"etc/podinfo/labels": "-> ../../secret",
			},
			runID: "1 env:SLURM_JOBID",
			want: map[string]string{
				"host.name": "node-a", "slurm.job.id": "1", "slurm.job.id.raw": "1; rm -rf /", "slurm.array.job_id": "1", "slurm.array.task_id": "0",
				"slurm.array.count": "1", "slurm.restart_count": "0",
				"nv.dl.job.uuid": UUID5("nemo.lens.job/nocluster/1"), "nv.dl.run.uuid": UUID5("nemo.lens.run/nocluster/1/sr0"),
			},
			refused: []string{
				"env:CUDA_VISIBLE_DEVICES: no list of devices", "env:NEMO_LENS_RUN_ID: has control characters", "env:RANK: no whole number",
				"env:SLURM_JOB_ID: no job id", "env:SLURM_JOB_NAME: longer than 1024 bytes", "env:SLURM_JOB_USER: not UTF-8",
				"env:SLURM_NNODES: no whole number", "env:SLURM_NTASKS: no whole number",
				"file:/etc/podinfo/labels: path escapes from parent",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := New(system(t, tt.env, tt.files))
			run, ok := d.RunID(DefaultRunID...)
			if got := strings.TrimSpace(run.Text() + " " + run.Source); got != tt.runID || ok != (tt.runID != "") {
				t.Errorf("run id %q, %v, want %q", got, ok, tt.runID)
			}
			got := map[string]string{}
			for _, a := range slices.Concat(d.Host(), d.SLURM(), d.Kubernetes(), d.GPU(), d.Torch(), d.IDs(run.Text())) {
				if _, twice := got[a.Key]; twice {
					t.Errorf("%s is there twice", a.Key)
				}
				if a.Source == "" {
					t.Errorf("%s has no source", a.Key)
				}
				got[a.Key] = a.Text()
			}
			if !maps.Equal(got, tt.want) {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
			refused := slices.Sorted(slices.Values(d.Refused()))
			if !slices.Equal(refused, tt.refused) {
				t.Errorf("refused %q\nwant    %q", refused, tt.refused)
			}
		})
	}
}

func TestSLURMOld(t *testing.T) {
	got := map[string]string{}
	for _, a := range New(system(t, with(slurmSingle, "SLURM_ARRAY_JOB_ID", "12340", "SLURM_ARRAY_TASK_ID", "5"), nil)).SLURMOld() {
		got[a.Key] = a.Value.(string) // all of them are texts
	}
	want := map[string]string{
		"slurm.job.id": "12345", "slurm.job.name": "pretrain", "slurm.nodelist": "node[01-04]", "slurm.nnodes": "4", "slurm.ntasks": "32",
		"slurm.partition": "gpu", "slurm.cluster.name": "cluster-a",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := New(system(t, nil, nil)).SLURMOld(); got != nil {
		t.Errorf("outside of SLURM: %v", got)
	}
}

func TestSLURMJobIDs(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"none", nil, nil},
		{"single", slurmSingle, []string{"12345"}},
		{"array task", map[string]string{"SLURM_JOB_ID": "123456", "SLURM_ARRAY_JOB_ID": "123450", "SLURM_ARRAY_TASK_ID": "6"}, []string{"123456", "123450_6"}},
		{"heterogeneous", map[string]string{"SLURM_JOB_ID": "701", "SLURM_HET_JOB_ID": "700", "SLURM_HET_SIZE": "3"}, []string{"700", "701", "702"}},
		{"a size that cannot be", map[string]string{"SLURM_JOB_ID": "1", "SLURM_HET_SIZE": "-1"}, []string{"1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := New(system(t, tt.env, nil)).SLURMJobIDs(); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if n := len(New(system(t, map[string]string{"SLURM_JOB_ID": "1", "SLURM_HET_SIZE": "4000000000"}, nil)).SLURMJobIDs()); n != maxHetSize {
		t.Errorf("%d ids", n)
	}
}

func TestRunIDSources(t *testing.T) {
	big := strings.Repeat("x", maxFile+1)
	files := map[string]string{
		"job/id": "from-file\nsecond line\n", "job/inside": "-> id", "job/big": big, "outside": "stolen", "job/link": "-> ../outside", "job/folder/x": "",
	}
	tests := []struct{ source, want, refused string }{
		{"env:MY_RUN", "mine", ""},
		{"env:ABSENT", "", ""},
		{"file:/job/id", "from-file", ""},
		{"file:/job/inside", "from-file", ""},
		{"file:/job/absent", "", ""},
		{"file:/absent/id", "", ""},
		{"file:/job/big", "", "file:/job/big: larger than 65536 bytes"},
		{"file:/job/link", "", "file:/job/link: path escapes from parent"},
		{"file:/job/folder", "", "file:/job/folder: no regular file"},
		{"file:job/id", "", ""},
		{"env:MY_TOKEN", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.source, func(t *testing.T) {
			d := New(system(t, map[string]string{"MY_RUN": "mine", "MY_TOKEN": "t"}, files))
			got, ok := d.RunID(tt.source)
			if got.Text() != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q, %v", got.Text(), ok)
			}
			if refused := strings.Join(d.Refused(), "; "); refused != tt.refused {
				t.Errorf("refused %q, want %q", refused, tt.refused)
			}
		})
	}
}

func TestCheckSource(t *testing.T) {
	for _, good := range append(slices.Clone(DefaultRunID), "file:/etc/run", "env:X") {
		if err := CheckSource(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "slurm:", "env:", "file:relative", "wandb", "env:WANDB_API_KEY", "env:hf_token", "env:AWS_SECRET_ACCESS_ID"} {
		if CheckSource(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestWandb(t *testing.T) {
	files := map[string]string{
		"scratch/wandb/latest-run": "-> run-20261129_173700-k3xq9a2b",
		"scratch/wandb/run-20261129_173700-k3xq9a2b/files/wandb-metadata.json": `{"os":"Linux","entity":"acme","project":"llm","email":"a@example.com"}`,
		"evil/wandb/latest-run":                          "-> ../../scratch/wandb/run-20261129_173700-k3xq9a2b",
		"broken/wandb/latest-run":                        "-> run-1-x",
		"broken/wandb/run-1-x/files/wandb-metadata.json": "{",
	}
	tests := []struct {
		name string
		env  map[string]string
		want string
	}{
		{"nothing", nil, ""},
		{"variables", map[string]string{"WANDB_ENTITY": "e", "WANDB_PROJECT": "p", "WANDB_RUN_ID": "r", "WANDB_API_KEY": "secret"}, "e p r"},
		{"run folder", map[string]string{"WANDB_DIR": "/scratch", "WANDB_RUN_ID": "k3xq9a2b"}, "k3xq9a2b acme llm"},
		{"variables first", map[string]string{"WANDB_DIR": "/scratch", "WANDB_PROJECT": "p", "WANDB_RUN_ID": "k3xq9a2b"}, "p k3xq9a2b acme"},
		{"the run before this one", map[string]string{"WANDB_DIR": "/scratch", "WANDB_RUN_ID": "another1"}, "another1"},
		{"a run of no known id", map[string]string{"WANDB_DIR": "/scratch", "WANDB_ENTITY": "e"}, "e"},
		{"no folder", map[string]string{"WANDB_DIR": "/none", "WANDB_RUN_ID": "r"}, "r"},
		{"a folder that links out of itself", map[string]string{"WANDB_DIR": "/evil", "WANDB_RUN_ID": "k3xq9a2b"}, "k3xq9a2b"},
		{"a broken file", map[string]string{"WANDB_DIR": "/broken", "WANDB_RUN_ID": "x"}, "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var values []string
			for _, a := range New(system(t, tt.env, files)).Wandb() {
				values = append(values, a.Text())
			}
			if got := strings.Join(values, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestHostnameFails(t *testing.T) {
	d := New(System{Hostname: func() (string, error) { return "", errors.New("no name") }})
	if got := d.Host(); got != nil {
		t.Errorf("got %v", got)
	}
	if got := fmt.Sprint(d.Refused()); got != "[hostname: no name]" {
		t.Errorf("refused %s", got)
	}
}

func TestIsGenerated(t *testing.T) {
	for range 100 {
		if id := NewRunID(); len(id) != 12 || (strings.ContainsAny(id, "abcdef") && !IsGenerated(id)) {
			t.Errorf("%s", id)
		}
	}
	for _, id := range []string{"", "123456789012", "abcdefabcdeg", "ABCDEFABCDEF", "abcdefabcde", "abcdefabcdef0", "run-7f3a-abc"} {
		if IsGenerated(id) {
			t.Errorf("%s counts as generated", id)
		}
	}
}

func TestVisibleDevices(t *testing.T) {
	for list, want := range map[string]int64{"": 0, " ": 0, "0": 1, "0,1,2,3": 4, "-1": 0, "0,-1,2": 1, "GPU-1b2c,GPU-2b": 2} {
		if n, ok := visibleDevices(list); !ok || n != want {
			t.Errorf("%q: %d, %v", list, n, ok)
		}
	}
}
