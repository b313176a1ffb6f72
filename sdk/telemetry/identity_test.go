// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"os"
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
				require.Equal(t, c.want, got.Emit())
			}
		})
	}
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
			for _, segment := range []string{"nemo.run.id=run%2C7%3D%C3%BC", "nv.dl.rank=1", "nv.dl.world_size=2", "own=true", "host.name="} {
				require.Contains(t, published, segment)
			}
			for _, key := range []string{"service.name=", "service.instance.id=", "process.pid=", "telemetry.sdk.", "list=", "bad"} {
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

	t.Run("changed meanwhile", func(t *testing.T) {
		cleanEnv(t)
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "")
		h := setUp(t, to(newSink(t), ProtocolGRPC), WithPublishedResource())
		require.NoError(t, os.Setenv("OTEL_RESOURCE_ATTRIBUTES", "theirs=1"))
		require.NoError(t, h.Shutdown(t.Context()))
		require.Equal(t, "theirs=1", os.Getenv("OTEL_RESOURCE_ATTRIBUTES"))
	})
}
