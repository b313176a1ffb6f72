// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/lenscol/lenscol/sdk/rank"
)

// The resource as it arrives.
func TestResource(t *testing.T) {
	cleanEnv(t)
	t.Setenv("SLURM_JOB_ID", "12345")
	t.Setenv("SLURM_CLUSTER_NAME", "cluster-a")
	t.Setenv("LOCAL_RANK", "3")
	t.Setenv("WANDB_RUN_ID", "k3xq9a2b")
	s := newSink(t)
	cfg := to(s, ProtocolGRPC)
	cfg.User, cfg.WandbEntity, cfg.WandbProject, cfg.DeploymentEnvironment = "ada", "team", "llm", "prod"
	h := setUp(t, cfg, WithRank(3, 4))
	one(t.Context(), h, "one")
	require.NoError(t, h.Shutdown(t.Context()))
	want := map[string]any{
		"service.name":           "nemo",
		"service.instance.id":    "12345-rank3",
		"nemo.run.id":            "12345",
		"nemo.user.id":           "ada",
		"wandb.entity":           "team",
		"wandb.project":          "llm",
		"wandb.run.id":           "k3xq9a2b",
		"deployment.environment": "prod",
		"nv.dl.rank":             int64(3),
		"nv.dl.world_size":       int64(4),
		"nv.dl.local_rank":       int64(3),
		"nv.dl.job.uuid":         "be34ba0f-41ed-5d53-84c1-e3f3dd25bfd7",
		"nv.dl.run.uuid":         "1a280c0a-71d2-54bd-bd00-fa82efd94290",
		"slurm.job.id":           "12345",
		"slurm.cluster.name":     "cluster-a",
		"slurm.restart_count":    int64(0),
		"process.pid":            int64(os.Getpid()),
		"telemetry.sdk.language": "go",
	}
	for signal, got := range map[string]map[string]any{
		"traces":  resourceOf(s.spans[0].Resource),
		"metrics": resourceOf(s.metrics[0].Resource),
		"logs":    resourceOf(s.logs[0].Resource),
	} {
		for key, value := range want {
			require.Equal(t, value, got[key], "%s %s", signal, key)
		}
		require.NotContains(t, got, "service.version", "not that of this module")
		require.NotEmpty(t, got["host.name"])
	}
	require.Empty(t, s.spans[0].SchemaUrl)
}

// Who wins, from the weakest: defaults, detected, OTEL_RESOURCE_ATTRIBUTES, the Config, the caller.
func TestResourceLayers(t *testing.T) {
	for _, c := range []struct {
		name string
		env  string
		set  func(*Config)
		opts []Option
		key  string
		want string
	}{
		{name: "default", opts: []Option{WithResourceDefaults(attribute.String("team", "a"))}, key: "team", want: "a"},
		{name: "detected over default", opts: []Option{WithResourceDefaults(attribute.String("slurm.job.id", "1"))}, key: "slurm.job.id", want: "12345"},
		{name: "environment over detected", env: "slurm.job.id=7", key: "slurm.job.id", want: "7"},
		{name: "environment over default", env: "team=b", opts: []Option{WithResourceDefaults(attribute.String("team", "a"))}, key: "team", want: "b"},
		{name: "environment over the default name", env: "service.name=gateway", key: "service.name", want: "gateway"},
		{name: "Config over environment", env: "service.name=gateway,nemo.user.id=bob",
			set: func(c *Config) { c.ServiceName = "trainer" }, key: "service.name", want: "trainer"},
		{name: "Config over environment, user", env: "nemo.user.id=bob", set: func(c *Config) { c.User = "ada" }, key: "nemo.user.id", want: "ada"},
		{name: "caller over Config", set: func(c *Config) { c.User = "ada" },
			opts: []Option{WithResource(attribute.String("nemo.user.id", "eve"))}, key: "nemo.user.id", want: "eve"},
		{name: "caller over detected", opts: []Option{WithResource(attribute.String("host.name", "h"))}, key: "host.name", want: "h"},
		{name: "caller over rank", opts: []Option{WithRank(1, 2), WithResource(attribute.Int("nv.dl.rank", 0))}, key: "nv.dl.rank", want: "0"},
		{name: "caller's version", opts: []Option{WithResource(attribute.String("service.version", "1.2"))}, key: "service.version", want: "1.2"},
		{name: "instance id of the environment", env: "service.instance.id=x", opts: []Option{WithRank(1, 2)}, key: "service.instance.id", want: "x"},
		{name: "instance id of the caller", opts: []Option{WithRank(1, 2), WithResource(attribute.String("service.instance.id", "y"))},
			key: "service.instance.id", want: "y"},
		{name: "instance id of a rank", opts: []Option{WithRank(1, 2)}, key: "service.instance.id", want: "12345-rank1"},
		{name: "instance id without a rank", key: "service.instance.id", want: ""},
		{name: "instance id of a process that inherits its rank", env: "nv.dl.rank=1,nv.dl.world_size=2",
			key: "service.instance.id", want: fmt.Sprintf("12345-%d-rank1", os.Getpid())},
		{name: "an attribute that cannot be read costs no other", env: "nonsense,team=a", key: "team", want: "a"},
		{name: "the process is none of its ancestors", env: "process.pid=1", key: "process.pid", want: strconv.Itoa(os.Getpid())},
		{name: "caller's process", env: "process.pid=1", opts: []Option{WithResource(attribute.Int("process.pid", 2))}, key: "process.pid", want: "2"},
		{name: "caller's rank by its old name over an inherited one", env: "nv.dl.rank=1,nv.dl.world_size=4",
			opts: []Option{WithResource(attribute.Int("dl.rank", 3))}, key: "nv.dl.rank", want: "3"},
		{name: "caller's run id that is a number", opts: []Option{WithResource(attribute.Int("nemo.run.id", 7))}, key: "nemo.run.id", want: "7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			t.Setenv("SLURM_JOB_ID", "12345")
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", c.env)
			cfg := to(newSink(t), ProtocolGRPC)
			if c.set != nil {
				c.set(&cfg)
			}
			h := setUp(t, cfg, c.opts...)
			got, ok := h.resource.Set().Value(attribute.Key(c.key))
			require.Equal(t, c.want != "", ok)
			if ok {
				require.Equal(t, c.want, got.String())
			}
		})
	}
}

// The environment has texts alone: what ranks send as integers is one again in the processes that they start.
func TestInheritedIntegers(t *testing.T) {
	cleanEnv(t)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "nv.dl.rank=+1,nv.dl.world_size=4,slurm.nnodes=2,slurm.ntasks=x,slurm.job.id=0012,app.code=007,"+
		"nv.dl.training.target.train_tokens=9007199254740993")
	h := setUp(t, to(newSink(t), ProtocolGRPC))
	for key, want := range map[string]attribute.Value{
		"nv.dl.rank": attribute.IntValue(1), "nv.dl.world_size": attribute.IntValue(4), "slurm.nnodes": attribute.IntValue(2),
		"nv.dl.training.target.train_tokens": attribute.Int64Value(1<<53 + 1),
		"slurm.ntasks":                       attribute.StringValue("x"), "slurm.job.id": attribute.StringValue("0012"), "app.code": attribute.StringValue("007"),
	} {
		got, _ := h.resource.Set().Value(attribute.Key(key))
		require.Equal(t, want, got, key)
	}
}

// A folder of W&B's holds the run before this one for as long as this one has not begun.
func TestRunOfWandbIsOfVariablesOnly(t *testing.T) {
	cleanEnv(t)
	folder := t.TempDir()
	files := filepath.Join(folder, "wandb", "run-20261129_173700-k3xq9a2b", "files")
	require.NoError(t, os.MkdirAll(files, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(files, "wandb-metadata.json"), []byte(`{"entity":"team","project":"llm"}`), 0o600))
	require.NoError(t, os.Symlink(filepath.Base(filepath.Dir(files)), filepath.Join(folder, "wandb", "latest-run")))
	t.Setenv("WANDB_DIR", folder)
	t.Setenv("WANDB_PROJECT", "llm2")
	h := setUp(t, to(newSink(t), ProtocolGRPC))
	require.False(t, h.resource.Set().HasValue("wandb.run.id"))
	require.False(t, h.resource.Set().HasValue("wandb.entity"))
	project, _ := h.resource.Set().Value("wandb.project")
	require.Equal(t, "llm2", project.AsString())
}

// What a child process inherits, and that it is set back.
func TestPublishedResource(t *testing.T) {
	const inherited = "team=a%2cb,empty=,slurm.job.id=7"
	for _, c := range []struct {
		name string
		set  func(*Config)
		env  string
	}{
		{name: "exporting", env: inherited},
		{name: "rank that does not export", env: inherited, set: func(c *Config) { c.ExportRank = 0 }},
		{name: "nothing inherited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			require.NoError(t, os.Unsetenv("OTEL_RESOURCE_ATTRIBUTES"))
			if c.env != "" {
				t.Setenv("OTEL_RESOURCE_ATTRIBUTES", c.env)
			}
			cfg := to(newSink(t), ProtocolGRPC)
			cfg.RunID = "run,7=ü"
			if c.set != nil {
				c.set(&cfg)
			}
			h := setUp(t, cfg, WithRank(1, 2), WithPublishedResource(),
				WithResource(attribute.Bool("own", true), attribute.StringSlice("list", []string{"a"}), attribute.String("bad=key", "x")))
			published := os.Getenv("OTEL_RESOURCE_ATTRIBUTES")
			require.True(t, strings.HasPrefix(published, c.env), "what was there stays byte for byte: %s", published)
			for _, segment := range []string{"nemo.run.id=run%2C7%3D%C3%BC", "nv.dl.rank=1", "nv.dl.world_size=2", "own=true"} {
				require.Contains(t, published, segment)
			}
			for _, key := range []string{"service.name=", "service.instance.id=", "process.pid=", "host.name=", "telemetry.sdk.", "list=", "bad"} {
				require.NotContains(t, published, key)
			}

			child := setUp(t, to(newSink(t), ProtocolGRPC)) // the same process, as its child
			require.Equal(t, "run,7=ü", child.RunID())
			require.Equal(t, rank.Identity{Rank: 1, WorldSize: 2, LocalRank: -1}, child.rank)
			require.NoError(t, child.Shutdown(t.Context()))

			require.NoError(t, h.Shutdown(t.Context()))
			now, is := os.LookupEnv("OTEL_RESOURCE_ATTRIBUTES")
			require.Equal(t, c.env, now)
			require.Equal(t, c.env != "", is)
		})
	}

	t.Run("of an ancestor", func(t *testing.T) {
		cleanEnv(t)
		const ancestor = "a=1, host.name=node-a,host.gpu.count=8,process.pid=1,b=2"
		t.Setenv("SLURM_JOB_ID", "42")
		t.Setenv("SLURM_TOPOLOGY_ADDR", "s1.node-a")
		t.Setenv("SLURM_TOPOLOGY_ADDR_PATTERN", "switch.node")
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", ancestor)
		h := setUp(t, to(newSink(t), ProtocolGRPC), WithPublishedResource())
		published := os.Getenv("OTEL_RESOURCE_ATTRIBUTES")
		require.True(t, strings.HasPrefix(published, "a=1,b=2,"), published)
		for _, key := range []string{"host.", "process.", "slurm.topology."} {
			require.NotContains(t, published, key, "a child may be on another machine")
		}
		require.NoError(t, h.Shutdown(t.Context()))
		require.Equal(t, ancestor, os.Getenv("OTEL_RESOURCE_ATTRIBUTES"))
	})
	t.Run("changed meanwhile", func(t *testing.T) {
		cleanEnv(t)
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "")
		h := setUp(t, to(newSink(t), ProtocolGRPC), WithPublishedResource())
		require.NoError(t, os.Setenv("OTEL_RESOURCE_ATTRIBUTES", "theirs=1"))
		require.NoError(t, h.Shutdown(t.Context()))
		require.Equal(t, "theirs=1", os.Getenv("OTEL_RESOURCE_ATTRIBUTES"))
	})
}

// What setup does, in its order: run id, strategy, providers, groups.
func TestRunID(t *testing.T) {
	for _, c := range []struct {
		name    string
		env     map[string]string
		run     string
		opts    []Option
		want    string
		warning string
	}{
		{name: "config", run: "run-7", env: map[string]string{"SLURM_JOB_ID": "42", "OTEL_RESOURCE_ATTRIBUTES": "nemo.run.id=published"}, want: "run-7"},
		{name: "caller's resource", run: "run-7", opts: []Option{WithResource(attribute.String("nemo.run.id", "mine"))}, want: "mine"},
		{name: "published by a launcher", env: map[string]string{"SLURM_JOB_ID": "42", "OTEL_RESOURCE_ATTRIBUTES": "nemo.run.id=a%2Cb"}, want: "a,b"},
		{name: "SLURM", env: map[string]string{"SLURM_JOB_ID": "42", "TORCHELASTIC_RUN_ID": "elastic"}, want: "42"},
		{name: "torchelastic", env: map[string]string{"TORCHELASTIC_RUN_ID": "elastic"}, want: "elastic"},
		{name: "generated", want: ""},
		{name: "generated, several ranks", opts: []Option{WithRank(0, 2)}, want: "", warning: "set NEMO_LENS_RUN_ID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			lines := logged(t)
			cfg := to(newSink(t), ProtocolGRPC)
			cfg.RunID = c.run
			cfg.ExportStrategy = rank.NameAllRanks
			h := setUp(t, cfg, c.opts...)
			if c.want == "" {
				require.Regexp(t, `^[0-9a-f]{12}$`, h.RunID())
			} else {
				require.Equal(t, c.want, h.RunID())
			}
			got, _ := h.resource.Set().Value("nemo.run.id")
			require.Equal(t, h.RunID(), got.AsString(), "the resource says the same")
			require.Equal(t, c.warning != "", strings.Contains(lines.String(), "set NEMO_LENS_RUN_ID"))
		})
	}
}

// The vectors of NeMo Lens 0.2 strategies.
func TestRanksThatExport(t *testing.T) {
	for _, c := range []struct {
		name  string
		world int
		set   func(*Config)
		opts  func(rank int) []Option
		env   func(rank int) map[string]string
		want  []int
	}{
		{name: "the last rank, by default", world: 4, want: []int{3}},
		{name: "one rank", world: 4, set: func(c *Config) { c.ExportRank = 2 }, want: []int{2}},
		{name: "all ranks", world: 4, set: func(c *Config) { c.ExportStrategy = rank.NameAllRanks }, want: []int{0, 1, 2, 3}},
		{name: "sampled", world: 8, set: func(c *Config) { c.ExportStrategy, c.ExportSampleRate = rank.NameSampled, 0.25 }, want: []int{3, 4, 5, 6}},
		{name: "first of each node, by LOCAL_RANK", world: 4, set: func(c *Config) { c.ExportStrategy = rank.NameFirstRankPerNode },
			env: func(rank int) map[string]string { return map[string]string{"LOCAL_RANK": strconv.Itoa(rank % 2)} }, want: []int{0, 2}},
		{name: "first of each node, by the option", world: 4, set: func(c *Config) { c.ExportStrategy = rank.NameFirstRankPerNode },
			opts: func(rank int) []Option { return []Option{WithLocalRank(rank % 2)} }, want: []int{0, 2}},
		{name: "first of each node, where no local rank is known", world: 2, set: func(c *Config) { c.ExportStrategy = rank.NameFirstRankPerNode }, want: []int{0, 1}},
		{name: "the caller's strategy", world: 4, opts: func(int) []Option {
			return []Option{WithExportStrategy(rank.Func(func(id rank.Identity) bool { return id.Rank == 1 }))}
		}, want: []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSink(t)
			var got []int
			for n := range c.world {
				t.Run(strconv.Itoa(n), func(t *testing.T) {
					cleanEnv(t)
					cfg := to(s, ProtocolGRPC)
					if c.set != nil {
						c.set(&cfg)
					}
					if c.env != nil {
						for name, value := range c.env(n) {
							t.Setenv(name, value)
						}
					}
					opts := []Option{WithRank(n, c.world)}
					if c.opts != nil {
						opts = append(opts, c.opts(n)...)
					}
					if setUp(t, cfg, opts...).IsExporting() {
						got = append(got, n)
					}
				})
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestWhereTheRankComesFrom(t *testing.T) {
	for _, c := range []struct {
		name   string
		env    map[string]string
		opts   []Option
		rank   string // as rank/world/local
		export bool   // with single_rank, the last one
		log    string
	}{
		{name: "nowhere", rank: "-", export: true, log: "level=WARN msg=\"this process has no rank"},
		{name: "nowhere, with an instance id", opts: []Option{WithResource(attribute.String("service.instance.id", "server-1"))},
			rank: "-", export: true, log: "level=DEBUG msg=\"this process has no rank"},
		{name: "a launcher's variables do not count", env: map[string]string{"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, rank: "-", export: true},
		{name: "unless they shall", env: map[string]string{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"},
			opts: []Option{WithRankFromEnv()}, rank: "1/2/1", export: true},
		{name: "srun", env: map[string]string{"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"},
			opts: []Option{WithRankFromEnv()}, rank: "0/2/0"},
		{name: "the option goes first", env: map[string]string{"RANK": "1", "WORLD_SIZE": "2"},
			opts: []Option{WithRankFromEnv(), WithRank(0, 2)}, rank: "0/2/-1"},
		{name: "the caller's resource", opts: []Option{WithResource(attribute.Int("nv.dl.rank", 1), attribute.Int("nv.dl.world_size", 4))}, rank: "1/4/-1"},
		{name: "old names", opts: []Option{WithResource(attribute.Int("dl.rank", 3), attribute.Int("dl.world_size", 4))}, rank: "3/4/-1", export: true},
		{name: "inherited", env: map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "nv.dl.rank=1,nv.dl.world_size=4,nv.dl.local_rank=1"}, rank: "1/4/1"},
		{name: "the end of an instance id", env: map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=run-rank7"},
			rank: "7/-1/-1", export: true, log: "the world size is not known"},
		{name: "no number", env: map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "nv.dl.rank=x"}, rank: "-", export: true},
		{name: "the caller's strategy without a rank", opts: []Option{WithExportStrategy(rank.Func(func(id rank.Identity) bool {
			return id != rank.Identity{Rank: 0, WorldSize: 1, LocalRank: 0}
		}))}, rank: "-", export: false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			lines := logged(t)
			h := setUp(t, to(newSink(t), ProtocolGRPC), c.opts...)
			got := "-"
			if h.isRank {
				got = fmt.Sprintf("%d/%d/%d", h.rank.Rank, h.rank.WorldSize, h.rank.LocalRank)
			}
			require.Equal(t, c.rank, got)
			require.Equal(t, c.export, h.IsExporting())
			require.Contains(t, lines.String(), c.log)
		})
	}
}
