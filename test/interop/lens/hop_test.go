// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package lens

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// TestHop has a rollout of an aiohttp client and a FastAPI server as one trace over two processes, and what failed in the server on both
// sides.
func TestHop(t *testing.T) {
	t.Parallel()
	c := testbed.Start(t, testbed.Options{})
	server, client := hop(t, c)
	c.Stop()

	got := spans(t, c)
	requireSame(t, append(server.made(), client.made()...), got)
	rollout := one(t, got, "gym.rollout")
	var posts, served []span
	for _, s := range got {
		require.Equal(t, rollout.TraceID, s.TraceID, s.Name)
		switch s.Kind {
		case "client":
			require.Equal(t, rollout.SpanID, s.ParentID)
			posts = append(posts, s)
		case "server":
			require.Equal(t, "nemo-gym/verifier", s.Resource["service.name"])
			served = append(served, s)
		}
	}
	require.Len(t, posts, 2)
	require.Len(t, served, 2)
	for _, s := range served {
		require.Equal(t, "POST /run/{task}", s.Name)
		i := slices.IndexFunc(posts, func(post span) bool { return post.SpanID == s.ParentID })
		require.GreaterOrEqual(t, i, 0, "the server's span has the client's for a parent")
		verify := named(got, "gym.verify")
		v := verify[slices.IndexFunc(verify, func(v span) bool { return v.ParentID == s.SpanID })]
		failed := v.Attributes["task"] == "broken"
		require.Equal(t, []bool{failed, failed, failed}, []bool{v.Status == "ERROR", s.Status == "ERROR", posts[i].Status == "ERROR"})
		if failed {
			require.Equal(t, "RuntimeError", v.Events[0].Attributes["exception.type"])
		}
	}
	metrics := map[string]bool{}
	for _, l := range archived(t, c, "metrics") {
		metrics[l.Service+" "+l.Name] = true
	}
	require.Subset(t, metrics, map[string]bool{"nemo-gym/verifier gym.verify.duration_ms": true, "nemo-gym/verifier gym.verify.success_rate": true})
}

func TestHopInJaeger(t *testing.T) {
	t.Parallel()
	jaeger, c := startJaeger(t)
	server, client := hop(t, c)
	requireInJaeger(t, jaeger, "nemo-gym/verifier", server.made())
	requireInJaeger(t, jaeger, "nemo-gym/agent", client.made())
	require.Len(t, jaeger.Find("nemo-gym/agent", nil), 1, "one trace")
}

// hop runs a server and a client to their ends.
func hop(t *testing.T, c *testbed.Collector) (server, client *process) {
	t.Helper()
	server = launch(t, c, []string{"OTEL_SERVICE_NAME=nemo-gym/verifier"}, "hop.py")
	server.until(server.stdout, "\n")
	port := strings.TrimSpace(server.read(server.stdout))
	client = run(t, c, []string{"OTEL_SERVICE_NAME=nemo-gym/agent"}, "hop.py", "http://127.0.0.1:"+port)
	require.NoError(t, server.cmd.Process.Signal(syscall.SIGINT))
	server.wait()
	return server, client
}
