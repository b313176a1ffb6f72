// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/testbed"
)

// A page in a browser may send three types of content to any address without asking. What is one of them is refused, and a browser that asks whether
// it may send another is not told so.
func TestPagesCannotSend(t *testing.T) {
	collector := testbed.Start(t, testbed.Options{})
	ask := func(method, contentType string, header http.Header) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+collector.HTTP+"/v1/traces", strings.NewReader(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}]}]}]}`))
		require.NoError(t, err)
		request.Header = header
		request.Header.Set("Origin", "http://evil.example")
		if contentType != "" {
			request.Header.Set("Content-Type", contentType)
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response
	}
	for _, contentType := range []string{"text/plain", "text/plain; application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=application/json", ""} {
		require.Equal(t, http.StatusUnsupportedMediaType, ask(http.MethodPost, contentType, http.Header{}).StatusCode, contentType)
	}
	response := ask(http.MethodOptions, "", http.Header{"Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"content-type"}})
	for name := range response.Header {
		require.NotContains(t, strings.ToLower(name), "access-control")
	}
	require.Equal(t, http.StatusOK, ask(http.MethodPost, "application/json", http.Header{}).StatusCode, "the request itself is good")
}

// What senders write cannot begin a line of the log, nor reach the terminal that shows it.
func TestLogLinesAreOurs(t *testing.T) {
	collector := testbed.Start(t, testbed.Options{Config: `
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}, http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}}}}
processors: {rank_filter: , run_id_enricher: {mode: sidecar}}
exporters: {jsonl: {path: "out/{run}.jsonl"}}
service:
  telemetry: {metrics: {level: none}, logs: {level: debug}}
  pipelines: {traces: {receivers: [otlp], processors: [run_id_enricher, rank_filter], exporters: [jsonl]}}
`, Env: []string{"NEMO_LENS_RUN_ID=mine"}})
	const evil = "evil\r\n2026-01-01T00:00:00.000Z\terror\tforged\x1b[2J\x07\u0085\u2028"
	client := collector.Client()
	for _, attribute := range []*commonpb.KeyValue{integer("dl.rank", 3), text("dl.rank", evil), text("nemo.run.id", evil), text("host.name", evil)} {
		message := traces([]*commonpb.KeyValue{text("service.name", evil), attribute}, &tracepb.Span{Name: evil})
		body, err := proto.Marshal(message)
		require.NoError(t, err)
		require.NoError(t, client.GRPC(t.Context(), "traces", body, false))
	}
	collector.Stop()
	ours := regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z?\S*\t|lenscol )[\t -~…]*$`)
	for line := range strings.Lines(collector.Stderr()) {
		require.Regexp(t, ours, strings.TrimSuffix(line, "\n"))
	}
	require.NotRegexp(t, `(?m)^2026-01-01`, collector.Stderr())
	require.Contains(t, collector.Stderr(), `evil\r\n`, "it is logged at all")
}

// What is written is closed to other users of the machine, even where the umask would let them in.
func TestFilesAreNotForOthers(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "lenscol")
	require.NoError(t, os.WriteFile(open, []byte("#!/bin/sh\numask 0\nexec '"+testbed.Binary(t)+"' \"$@\"\n"), 0o700))
	collector := testbed.Start(t, testbed.Options{Binary: open, Args: []string{"--config", "lenscol:weave"},
		Env: []string{"WF_TRACE_SERVER_URL=http://127.0.0.1:9", "WANDB_API_KEY=" + strings.Repeat("0", 40), "WANDB_ENTITY=acme", "WANDB_PROJECT=llm", "LENSCOL_HEALTH_PORT=" + testbed.FreePort(t)}})
	body, err := proto.Marshal(traces(nil, &tracepb.Span{Name: "step"}))
	require.NoError(t, err)
	require.NoError(t, collector.Client().GRPC(t.Context(), "traces", body, false))
	written := func() (n int) {
		require.NoError(t, filepath.WalkDir(collector.Dir, func(path string, entry fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := entry.Info()
			require.NoError(t, err)
			if path != collector.Dir {
				require.Zero(t, info.Mode().Perm()&0o027, fmt.Sprintf("%s is %s", path, info.Mode()))
				n++
			}
			return nil
		}))
		return n
	}
	require.Eventually(t, func() bool {
		archived, _ := os.Stat(filepath.Join(collector.Dir, "lens-data", "traces.jsonl"))
		queued, _ := filepath.Glob(filepath.Join(collector.Dir, "lens-queue", "*"))
		return archived != nil && archived.Size() > 0 && len(queued) > 0
	}, time.Minute, 50*time.Millisecond, "an archive and a queue")
	require.GreaterOrEqual(t, written(), 4)
}
