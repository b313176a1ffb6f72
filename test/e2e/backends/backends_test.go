// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package backends sends over TLS: the shipped configs to strict stand-ins of the paid backends, and agents to gateways. The certificates are
// the tests' own, good ones and bad.
package backends

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/configs/backendtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret   = "s3cr3t-k3y-of-the-team"
	patience = 2 * time.Minute // bounds every wait: far beyond what a busy machine needs
)

// backend is one of the four, and its config.
type backend struct {
	config    string
	rules     backendtest.Rules
	exporters []string
	env       []string // beside its address
	address   string   // the variable for it; without it, endpoints of its signals are set
}

var backends = []backend{
	{"honeycomb", backendtest.Honeycomb(secret, "", "lens-metrics"), []string{"otlp_http/honeycomb", "otlp_http/honeycomb_metrics"}, []string{"HONEYCOMB_API_KEY=" + secret}, "HONEYCOMB_ENDPOINT"},
	{"grafana-cloud", backendtest.GrafanaCloud("123456", secret), []string{"otlp_http"}, []string{"GRAFANA_CLOUD_INSTANCE_ID=123456", "GRAFANA_CLOUD_API_KEY=" + secret}, "GRAFANA_CLOUD_OTLP_ENDPOINT"},
	{"datadog", backendtest.Datadog(secret, "acme"), []string{"otlp_http"}, []string{"DD_API_KEY=" + secret, "DD_OTLP_SOURCE=acme"}, ""},
	{"newrelic", backendtest.NewRelic(secret), []string{"otlp_http"}, []string{"NEW_RELIC_LICENSE_KEY=" + secret}, "NEW_RELIC_ENDPOINT"},
}

// Each backend is reached with the authority that it is of, by its config or by the environment. With another one it is not, which status says, with
// the key of the config that mends it; what was sent meanwhile waits.
func TestAuthorities(t *testing.T) {
	good, other := newAuthority(t), newAuthority(t)
	for _, b := range backends {
		t.Run(b.config, func(t *testing.T) {
			t.Parallel()
			b.rules.TLS = newRenewable(good.server("localhost", inAnHour())).config()
			intake := backendtest.New(t, b.rules)
			dir := t.TempDir()
			wrong := b.start(t, dir, intake, other.file)
			sendAll(t, wrong.Collector)
			wrong.says(t, "its certificate is of an authority that is not trusted here: tls.ca_file, or SSL_CERT_FILE")
			require.Contains(t, wrong.Stderr(), "certificate signed by unknown authority")
			wrong.Stop()
			wrong.requireNoSecret(t)
			spans, points, bodies := intake.Took()
			require.Empty(t, append(append(spans, points...), bodies...))

			right := b.start(t, dir, intake, good.file)
			requireTook(t, intake, 1)
			right.Stop()
			byEnvironment := b.start(t, dir, intake, "", "SSL_CERT_FILE="+good.file)
			sendAll(t, byEnvironment.Collector)
			requireTook(t, intake, 2)
			byEnvironment.Stop()
			require.Empty(t, intake.Refused())
			byEnvironment.requireNoSecret(t)
		})
	}
}

// A backend whose certificate is bad gets nothing, and status says what is wrong with it. As soon as it has a good one, it gets what has waited.
func TestBadCertificates(t *testing.T) {
	good := newAuthority(t)
	for _, tt := range []struct{ name, host, says string }{
		{"expired", "localhost", "its certificate has expired, or a clock is wrong"},
		{"another host", "backend.test", "its certificate is for another name: endpoint, or tls.server_name_override"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := backends[0]
			until := inAnHour()
			if tt.name == "expired" {
				until = time.Now().Add(-time.Minute)
			}
			cert := newRenewable(good.server(tt.host, until))
			b.rules.TLS = cert.config()
			intake := backendtest.New(t, b.rules)
			c := b.start(t, t.TempDir(), intake, good.file)
			sendAll(t, c.Collector)
			c.says(t, tt.says)
			spans, _, _ := intake.Took()
			require.Empty(t, spans)
			renewed := good.server("localhost", inAnHour())
			cert.Store(&renewed)
			requireTook(t, intake, 1)
			c.Stop()
		})
	}
}

// A backend that refuses the key, and repeats it in its answer, does not bring it into the log.
func TestRefusedKey(t *testing.T) {
	good := newAuthority(t)
	for _, b := range backends {
		t.Run(b.config, func(t *testing.T) {
			t.Parallel()
			b.rules.Accepts = func(_ string, header http.Header, _ any) error { return refusal(header) }
			b.rules.TLS = newRenewable(good.server("localhost", inAnHour())).config()
			intake := backendtest.New(t, b.rules)
			c := b.start(t, t.TempDir(), intake, good.file)
			sendAll(t, c.Collector)
			eventually(t, func() bool { return len(intake.Refused()) >= 3 }, "three refused requests")
			c.Stop()
			require.Contains(t, c.Stderr(), "HTTP Status Code 400")
			c.requireNoSecret(t)
		})
	}
}

// refusal is an error that has all that the sender sent, as of a backend that is not careful.
type refusal http.Header

func (r refusal) Error() string {
	var text strings.Builder
	_ = http.Header(r).Write(&text) // It cannot fail.
	return text.String()
}

// collector is one with health, its log at debug.
type collector struct {
	*testbed.Collector
	health, metrics string // addresses
}

// start starts a collector on free ports, with an embedded config.
func start(t *testing.T, config, dir string, args, env []string) *collector {
	t.Helper()
	c := &collector{health: testbed.FreePort(t), metrics: testbed.FreePort(t)}
	c.Collector = testbed.Start(t, testbed.Options{
		Dir:  dir,
		Args: append([]string{"--config", "lenscol:" + config, "--set", "service.telemetry.logs.level=debug"}, args...),
		Env:  append([]string{"LENSCOL_HOST=127.0.0.1", "LENSCOL_HEALTH_PORT=" + c.health, "LENSCOL_METRICS_PORT=" + c.metrics}, env...),
	})
	return c
}

// start starts the backend's config on a folder, with an authority by config where it is given.
func (b backend) start(t *testing.T, dir string, intake *backendtest.Intake, ca string, env ...string) *collector {
	t.Helper()
	u, err := url.Parse(intake.URL)
	require.NoError(t, err)
	u.Host = "localhost:" + u.Port()
	var args []string
	if b.address != "" {
		env = append(env, b.address+"="+u.String())
	} else {
		for _, signal := range backendtest.AllSignals {
			args = append(args, "--set", "exporters.otlp_http."+signal+"_endpoint="+u.String()+"/v1/"+signal)
		}
	}
	if ca != "" {
		for _, exporter := range b.exporters {
			args = append(args, "--set", "exporters."+exporter+".tls.ca_file="+ca)
		}
	}
	return start(t, b.config, dir, args, append(env, b.env...))
}

// page is what it answers at an address of its own, "" while it does not answer.
func page(address string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	answer, err := client.Get("http://127.0.0.1:" + address)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body) // A part of it is as good.
	return string(text)
}

// says waits for a text on the page of its health.
func (c *collector) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(page(c.health+"/health"), text) }, "health says %q", text)
	for _, address := range []string{c.health + "/health", c.metrics + "/metrics"} {
		requireNoSecret(t, page(address))
	}
}

func (c *collector) requireNoSecret(t *testing.T) {
	t.Helper()
	require.Contains(t, c.Stderr(), "\tdebug\t", "all of the log")
	requireNoSecret(t, c.Stderr())
}

func requireNoSecret(t *testing.T, text string) {
	t.Helper()
	require.NotEmpty(t, text)
	for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte("123456:" + secret)), url.QueryEscape(secret)} {
		require.NotContains(t, text, form)
	}
}

// sendAll has one item of each signal acknowledged.
func sendAll(t *testing.T, collector *testbed.Collector) {
	t.Helper()
	client := collector.Client()
	defer client.Close()
	for signal, body := range one(t) {
		require.NoError(t, client.GRPC(t.Context(), signal, body, true), signal)
	}
}

// one is the span "step", the delta "steps" and the record "hello" of rank 0, as requests by signal.
func one(t *testing.T) map[string][]byte {
	t.Helper()
	rank := func(r pcommon.Resource) {
		require.NoError(t, r.Attributes().FromRaw(map[string]any{"service.name": "megatron", "dl.rank": 0, "dl.world_size": 1, "nemo.run.id": "run-1"}))
	}
	now := pcommon.NewTimestampFromTime(time.Now())
	td := ptrace.NewTraces()
	rank(td.ResourceSpans().AppendEmpty().Resource())
	span := td.ResourceSpans().At(0).ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("step")
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{1})
	span.SetStartTimestamp(now)
	span.SetEndTimestamp(now)
	md := pmetric.NewMetrics()
	rank(md.ResourceMetrics().AppendEmpty().Resource())
	metric := md.ResourceMetrics().At(0).ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("steps")
	sum := metric.SetEmptySum()
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	point := sum.DataPoints().AppendEmpty()
	point.SetTimestamp(now)
	point.SetIntValue(1)
	ld := plog.NewLogs()
	rank(ld.ResourceLogs().AppendEmpty().Resource())
	ld.ResourceLogs().At(0).ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("hello")

	spans, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	metrics, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	logs, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	return map[string][]byte{"traces": spans, "metrics": metrics, "logs": logs}
}

// requireTook waits until a backend has each item n times.
func requireTook(t *testing.T, intake *backendtest.Intake, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		spans, points, bodies := intake.Took()
		return len(spans) >= n && len(points) >= n && len(bodies) >= n
	}, patience, 20*time.Millisecond, "%d of each signal", n)
	want := func(name string) []string { return strings.Fields(strings.Repeat(name+" ", n)) }
	spans, points, bodies := intake.Took()
	require.Equal(t, [][]string{want("step"), want("steps"), want("hello")}, [][]string{spans, points, bodies})
}

// eventually waits for what a collector does.
func eventually(t *testing.T, condition func() bool, what string, args ...any) {
	t.Helper()
	require.Eventually(t, condition, patience, 50*time.Millisecond, append([]any{what}, args...)...)
}
