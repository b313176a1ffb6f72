// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dustin/go-humanize"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// spanServer takes spans over OTLP/HTTP and counts them; before may refuse a request.
func spanServer(t *testing.T, before func(w http.ResponseWriter, r *http.Request) bool) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var spans atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil && !before(w, r) {
			return
		}
		body, err := io.ReadAll(r.Body)
		request := ptraceotlp.NewExportRequest()
		if err == nil {
			err = request.UnmarshalProto(body)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		spans.Add(int64(request.Traces().SpanCount()))
	}))
	t.Cleanup(server.Close)
	return server, &spans
}

func TestJSONLReplaySendsOnceAndGoesOn(t *testing.T) {
	folder := archiveFolder(t, map[string]string{"traces.jsonl": archiveLine("a", 1, 0) + archiveLine("b", 2, 1)})
	var token atomic.Value
	server, spans := spanServer(t, func(_ http.ResponseWriter, r *http.Request) bool {
		token.Store(r.Header.Get("Authorization"))
		return true
	})
	replay := func(args ...string) string {
		stdout, stderr, err := jsonl(t, append([]string{"replay", "--endpoint", server.URL, "--header", "Authorization=Bearer x=y", folder}, args...)...)
		require.NoError(t, err)
		require.Empty(t, stderr)
		return strings.ReplaceAll(stdout, server.URL, "URL")
	}
	require.Equal(t, "2 records sent to URL in 1 request\n", replay())
	require.Equal(t, "Bearer x=y", token.Load())
	require.Equal(t, "0 records sent to URL in 0 requests; 2 records had been sent before\n", replay())
	require.Equal(t, "1 record sent to URL in 1 request\n", replay("--rank", "1"), "another filter has its own progress")
	require.Equal(t, "2 records sent to URL in 1 request\n", replay("--restart"))
	require.Equal(t, "2 records sent to URL in 1 request\n", replay("--state", filepath.Join(t.TempDir(), "state.json")))
	require.EqualValues(t, 7, spans.Load())

	// The progress is no file of the archive, and holds no secret.
	stdout, _, err := jsonl(t, "cat", folder)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(stdout, "\n"))
	states, err := filepath.Glob(filepath.Join(folder, ".lenscol-replay-*.json"))
	require.NoError(t, err)
	require.Len(t, states, 2)
	text, err := os.ReadFile(states[0])
	require.NoError(t, err)
	require.NotContains(t, string(text), "Bearer")
}

func TestJSONLReplayIsStoppedByASignal(t *testing.T) {
	const n = 30_000
	var lines strings.Builder
	for i := range n {
		lines.WriteString(archiveLine("a", int64(i+1), 0))
	}
	folder := archiveFolder(t, map[string]string{"traces.jsonl": lines.String()})
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGINT)
	defer signal.Stop(arrived)
	var requests atomic.Int64
	server, spans := spanServer(t, func(http.ResponseWriter, *http.Request) bool {
		if requests.Add(1) == 2 { // The signal comes while the second request is in flight.
			if syscall.Kill(os.Getpid(), syscall.SIGINT) != nil {
				return false
			}
			<-arrived
		}
		return true
	})
	_, _, err := jsonl(t, "replay", "--endpoint", server.URL, folder)
	require.EqualError(t, err, "stopped by a signal; the same command goes on from here")
	first := spans.Load()
	require.GreaterOrEqual(t, first, int64(2000), "the request in flight is finished")
	require.Less(t, first, int64(n))
	stdout, _, err := jsonl(t, "replay", "--endpoint", server.URL, folder)
	require.NoError(t, err)
	require.Contains(t, stdout, humanize.Comma(first)+" records had been sent before")
	require.EqualValues(t, n, spans.Load(), "nothing twice, nothing lost")
}

func TestJSONLReplaySaysWhatTheReceiverSays(t *testing.T) {
	folder := archiveFolder(t, map[string]string{"traces.jsonl": archiveLine("a", 1, 0)})
	refuses, _ := spanServer(t, func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return false
	})
	rejects := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := ptraceotlp.NewExportResponse()
		answer.PartialSuccess().SetRejectedSpans(1)
		answer.PartialSuccess().SetErrorMessage("too old")
		body, _ := answer.MarshalProto()
		_, _ = w.Write(body)
	}))
	defer rejects.Close()
	for _, tt := range []struct{ name, args, want string }{
		{"refused", "--endpoint " + refuses.URL, filepath.Join(folder, "traces.jsonl") + ", lines 1 to 1: the receiver refuses them for good: /v1/traces answers 401 Unauthorized"},
		{"rejected in part", "--endpoint " + rejects.URL, rejects.URL + " rejected 1 record: too old"},
		{"no endpoint", "", `required flag(s) "endpoint" not set`},
		{"no URL", "--endpoint localhost:4317", `--endpoint: "localhost:4317" is not a URL like http://127.0.0.1:4318`},
		{"no protocol", "--endpoint http://x --protocol udp", `--protocol: "udp" is not one of grpc, http`},
		{"no speed", "--endpoint http://x --speed fast", `--speed: "fast" is neither max nor a number above 0, like 1 or 60`},
		{"no header", "--endpoint http://x --header secret", "--header: is not KEY=VALUE"},
		{"no rate", "--endpoint http://x --rate -1", "--rate -1, --retry-for 5m0s: neither may be negative"},
		{"no number as a rate", "--endpoint http://x --rate NaN", "--rate NaN, --retry-for 5m0s: neither may be negative"},
		{"an end that moves", "--endpoint http://x --until 2h", `--until: "2h" moves on with the clock, and what it leaves out now would never be sent; write a time like 2026-11-29T16:24:28Z`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := jsonl(t, append([]string{"replay", folder}, strings.Fields(tt.args)...)...)
			require.EqualError(t, err, tt.want)
		})
	}
}
