// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package deploy

import (
	"encoding/json"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/prometheustest"
)

// startPrometheus starts one that scrapes a collector's own metrics and those of its jobs as deploy/docker/prometheus.yml says, every second.
func startPrometheus(t *testing.T, own, jobs string) *prometheustest.Prometheus {
	t.Helper()
	alerts, err := filepath.Abs(deployed(t, "grafana", "alerts.yaml"))
	require.NoError(t, err)
	config := strings.NewReplacer("lenscol:8889", jobs, "lenscol:8888", own, "15s", "1s", "alerts.yaml", alerts).Replace(read(t, "docker", "prometheus.yml"))
	require.Contains(t, config, "evaluation_interval: 1s")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	need(t, "promtool", "Debian's prometheus")
	run(t, dir, "promtool", "check", "config", "prometheus.yml")
	return prometheustest.Start(t, config, "--query.lookback-delta=10s") // What is silent for five minutes, is here for ten seconds.
}

// deaf is a backend for OTLP over gRPC that never answers.
func deaf(t *testing.T) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

// observed is a collector with the run of a while behind it and with a backend that answers nothing, and the Prometheus that has scraped it.
type observed struct {
	*prometheustest.Prometheus
	collector *testbed.Collector
	client    *testbed.Client
	run       simulated
}

func observe(t *testing.T) *observed {
	own, jobs := testbed.FreePort(t), testbed.FreePort(t)
	collector := testbed.Start(t, testbed.Options{
		Args: []string{"--config", "lenscol:prometheus", "--config", "lenscol:jaeger",
			"--set", "exporters.otlp_grpc.sending_queue={queue_size: 1, sizer: requests, num_consumers: 1}",
			"--set", "exporters.weave={api_key: " + strings.Repeat("f", 40) + ", base_url: http://127.0.0.1:1}", // It drops all, for want of a project.
			"--set", "service.pipelines.traces.exporters=[otlp_grpc, jsonl, weave]",
			"--set", "exporters.otlp_grpc.retry_on_failure.enabled=false", "--set", "exporters.otlp_grpc.timeout=2s", "--set", "exporters.otlp_grpc.compression=none"},
		Env: []string{"LENSCOL_JAEGER=" + deaf(t), "LENSCOL_METRICS_PORT=" + own, "LENSCOL_PROMETHEUS_PORT=" + jobs,
			"LENSCOL_HEALTH_PORT=" + testbed.FreePort(t), "WANDB_ENTITY=", "WANDB_PROJECT="},
	})
	o := &observed{startPrometheus(t, "127.0.0.1:"+own, "127.0.0.1:"+jobs), collector, collector.Client(), simulated{id: "run-1", began: time.Now()}}
	for range 6 {
		o.tick(t)
	}
	return o
}

// has ticks until a query has data.
func (o *observed) has(t *testing.T, query, of string) {
	t.Helper()
	for range 30 {
		if len(o.Query(query)) > 0 {
			return
		}
		o.tick(t)
	}
	t.Fatalf("%s has no data: %s", of, query)
}

// tick sends what the run measures, and spans that fill the queue until they are refused, which is to be seen; then Prometheus scrapes.
func (o *observed) tick(t *testing.T) {
	o.run.tick(t, o.client)
	require.NoError(t, o.client.GRPC(t.Context(), "logs", oneRecord(t), false))
	for range 3 {
		_ = o.client.GRPC(t.Context(), "traces", oneSpan(t), false)
	}
	time.Sleep(time.Second)
}

// alerts are the rules that raise them: the states of those of its alerts that are pending or firing, by name. Every rule must be in good health.
func (o *observed) alerts(t *testing.T) map[string]string {
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Type, State, Health, LastError string }
		}
	}
	o.Get("/api/v1/rules", nil, &data)
	states := map[string]string{}
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			require.Contains(t, []string{"ok", "unknown"}, rule.Health, "%s: %s", rule.Name, rule.LastError) // unknown: not yet evaluated
			if rule.Type == "alerting" {
				states[rule.Name] = rule.State
			}
		}
	}
	return states
}

// raised ticks until an alert is pending or firing.
func (o *observed) raised(t *testing.T, name string) {
	t.Helper()
	for range 60 {
		switch state := o.alerts(t)[name]; state {
		case "pending", "firing":
			return
		}
		o.tick(t)
	}
	t.Fatalf("%s is not raised: %v", name, o.alerts(t))
}

var (
	metricName = regexp.MustCompile(`\b(?:megatron|nv_dl|rl|gym|gen_ai|otelcol|lenscol)[a-z_:]*_[a-z_]+`)
	labels     = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	variables  = strings.NewReplacer("$__rate_interval", "1m", "$service", ".*", "$run", ".*", "$rank", ".*", "$instance", ".*")
)

// Every query of every dashboard has data, and every alert can be raised, in a Prometheus that has scraped lenscol. Dashboards are valid by
// Grafana's schema.
func TestGrafana(t *testing.T) {
	o := observe(t)
	files, err := filepath.Glob(deployed(t, "grafana", "dashboards", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	check := tool(t, "./dashboard")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			run(t, ".", check, file)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var dashboard struct {
				Panels []struct {
					Title   string
					Targets []struct{ Expr string }
				}
				Templating struct {
					List []struct{ Type, Query string }
				}
			}
			require.NoError(t, json.Unmarshal(text, &dashboard))
			queries := 0
			for _, panel := range dashboard.Panels {
				for _, target := range panel.Targets {
					queries++
					o.has(t, variables.Replace(target.Expr), panel.Title)
				}
			}
			t.Logf("%d queries have data", queries)
			for _, variable := range dashboard.Templating.List {
				if variable.Type == "query" {
					of := labels.FindStringSubmatch(variable.Query)
					require.NotNil(t, of, variable.Query)
					o.has(t, "count by ("+of[2]+") ("+variables.Replace(of[1])+") > 0", variable.Query)
				}
			}
		})
	}

	t.Run("names in alerts", func(t *testing.T) {
		for _, line := range strings.Split(read(t, "grafana", "alerts.yaml"), "\n") {
			if strings.Contains(line, "=~") || strings.Contains(line, "#") {
				continue
			}
			for _, name := range metricName.FindAllString(line, -1) {
				o.has(t, `{__name__="`+name+`"}`, "an alert")
			}
		}
	})

	t.Run("alerts", func(t *testing.T) {
		o.raised(t, "LensIterationsSkipped")
		o.raised(t, "LenscolLosesData")
		o.raised(t, "LenscolWeaveLosesSpans")
		o.raised(t, "LenscolQueueFills")
		require.Equal(t, "inactive", o.alerts(t)["LensRankSilent"])
		require.Equal(t, "inactive", o.alerts(t)["LensRunRestarted"])
		require.Equal(t, "inactive", o.alerts(t)["LenscolRestarted"])
		o.run.silent = "rank1"
		o.raised(t, "LensRankSilent")
		o.run.silent = ""
		o.run.restart()
		o.raised(t, "LensRunRestarted")
		o.collector.Stop()
		o.collector.Start()
		o.raised(t, "LenscolRestarted")
		o.collector.Stop()
		for range 30 {
			if o.alerts(t)["LenscolDown"] != "inactive" {
				return
			}
			time.Sleep(time.Second)
		}
		t.Fatal("LenscolDown is not raised")
	})
}

// Grafana finds the dashboards and the data sources where compose.yaml has them.
func TestGrafanaProvisioning(t *testing.T) {
	services := compose(t, "compose.yaml", secrets...)
	var sources struct{ Datasources []struct{ URL string } }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "grafana", "provisioning", "datasources", "lens.yaml")), &sources))
	require.Len(t, sources.Datasources, 2)
	for _, source := range sources.Datasources {
		u, err := url.Parse(source.URL)
		require.NoError(t, err)
		require.Contains(t, services, u.Hostname())
	}
	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "grafana", "provisioning", "dashboards", "lens.yaml")), &providers))
	mounted := map[string]string{}
	for _, volume := range services["grafana"].Volumes {
		mounted[volume.Target] = volume.Source
	}
	require.Equal(t, deployed(t, "grafana", "dashboards"), mounted[providers.Providers[0].Options.Path])
}

// promtool tells when each alert fires, and when not, over hours that nobody has to wait for.
func TestAlertRules(t *testing.T) {
	promtool := need(t, "promtool", "Debian's prometheus")
	dir := t.TempDir()
	tests, err := os.ReadFile(filepath.Join("testdata", "alerts_test.yaml"))
	require.NoError(t, err)
	rules := read(t, "grafana", "alerts.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "alerts.yaml"), []byte(rules), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "test.yaml"), tests, 0o600))
	run(t, dir, promtool, "check", "rules", "alerts.yaml")
	t.Log(run(t, dir, promtool, "test", "rules", "test.yaml"))
	for _, name := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		require.Contains(t, string(tests), "alertname: "+name[1]+", exp_alerts: []", "when it does not fire")
		require.Contains(t, string(tests), "alertname: "+name[1]+"\n", "when it fires")
	}
}
