// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/lenstest"
)

// TestMain is the program where a test started this binary as one of its servers.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-parent") {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func newTelemetry(t *testing.T) *lenstest.Telemetry {
	require.NoError(t, lens.DefaultRegistry().Register(lens.GymGroups(), true))
	t.Cleanup(lens.DefaultRegistry().Clear)
	return lenstest.New(t, lenstest.Options{})
}

// begin runs a server of the program and returns its URL; it ends with the test.
func begin(t *testing.T, s settings, h http.Handler) string {
	ctx, stop := context.WithCancel(t.Context())
	out, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, s, h, strings.NewReader(""), stdout) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return strings.TrimSpace(strings.TrimPrefix(line, listening))
}

func TestRolloutsAreOneTraceEach(t *testing.T) {
	tel := newTelemetry(t)
	const n = 64
	s := settings{listen: "127.0.0.1:0", rollouts: n, inFlight: n, gather: n, timeout: time.Minute}
	s.target = begin(t, s, newEnvironment(s, tel.Meter()))
	gateway := newGateway(s)
	s.target = begin(t, s, gateway)
	got, err := newDriver(s, tel.Meter()).run(t.Context())
	require.NoError(t, err)
	require.Equal(t, result{Rollouts: n, OK: n, InFlight: n, Reward: 0.5}, got)

	// Each span is the parent of the next.
	const perTrace = 7
	require.Eventually(t, func() bool { return len(tel.Spans()) == n*perTrace }, time.Minute, time.Millisecond, "servers end their spans after the answer")
	below := map[string]lenstest.Span{}
	for _, span := range tel.Spans() {
		if span.ParentID != "" {
			below[span.ParentID] = span
		}
	}
	rollouts := tel.SpansNamed("gym.rollout")
	require.Len(t, rollouts, n)
	for _, root := range rollouts {
		names := []string{root.Name}
		for span, ok := below[root.SpanID]; ok; span, ok = below[span.SpanID] {
			require.Equal(t, root.TraceID, span.TraceID)
			names = append(names, span.Name)
		}
		require.Equal(t, []string{"gym.rollout", "HTTP POST", "POST /run", "gym.agent.responses", "HTTP POST", "POST /verify", "gym.verify"}, names)
	}
	require.Equal(t, float64(n), tel.Point("gym.rollout.completed_total").Value)
	require.EqualValues(t, n, tel.Point("gym.verify.duration_ms").Count)
}

func TestRolloutThatFails(t *testing.T) {
	tel := newTelemetry(t)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	s := settings{rollouts: 3, inFlight: 1, target: server.URL, timeout: time.Minute}
	got, err := newDriver(s, tel.Meter()).run(t.Context())
	require.ErrorContains(t, err, "rollout 0: "+server.URL+"/run: 404 Not Found")
	require.Zero(t, got.OK)
	require.Len(t, tel.SpansNamed("gym.rollout"), 3)
	require.Equal(t, "dropped", tel.Point("gym.rollout.completed_total").Attributes["nemo.gym.rollout.outcome"])
}

// With the console exporter, servers write more than a pipe holds; it comes out with the driver's.
func TestLinesOfServers(t *testing.T) {
	for name, value := range map[string]string{"NEMO_LENS_ENABLED": "true", "NEMO_LENS_EXPORTER": "console", "NEMO_LENS_SPAN_GROUPS": "all"} {
		t.Setenv(name, value)
	}
	const n = 200
	s := settings{rollouts: n, inFlight: n, timeout: time.Minute}
	var lines bytes.Buffer
	url, stop, err := start(t.Context(), s, "environment", "", &lines)
	require.NoError(t, err)
	client := newClient(s)
	for id := range n {
		_, err := ask(t.Context(), client, url+"/verify", question{ID: id})
		require.NoError(t, err)
	}
	client.CloseIdleConnections()
	require.NoError(t, stop())
	require.Equal(t, n, strings.Count(lines.String(), `{"name": "gym.verify", `))
	require.Greater(t, lines.Len(), 64<<10)
	require.NotContains(t, lines.String(), listening)
}

func TestFlagsThatAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-n=0":                   "must be above 0",
		"-n=2 -gather=3":         "must be at most -n",
		"-role=driver":           "needs -target",
		"-role=judge":            `"judge" is none of`,
		"-role=gateway -target=": "needs -target",
	} {
		require.ErrorContains(t, run(t.Context(), strings.Fields(args), nil, new(bytes.Buffer)), want, args)
	}
}
