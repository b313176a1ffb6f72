// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package js sends with opentelemetry-js, a client that shares nothing with the collector: `make e2e E2E=js`.
package js

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/e2e/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the client sends, in chunks, plain or with gzip, is in the archive item for item: between the two stands a proxy, which passes on
// what comes as it comes, and keeps a copy for the oracle.
func TestClient(t *testing.T) {
	for _, compression := range []string{"none", "gzip"} {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			collector := testbed.Start(t, testbed.Options{
				Args: []string{"--config", "lenscol:archive"}, Env: []string{"LENSCOL_HOST=127.0.0.1", "LENSCOL_HEALTH_PORT=" + testbed.FreePort(t)}})
			wire := newWire(t, collector.HTTP)
			printed := run(t, wire.url, compression)
			collector.Stop()

			want := wire.items(t, compression)
			got := map[string][]oracle.Item{}
			for signal, items := range want {
				var err error
				got[signal], err = oracle.ReadFile(filepath.Join(collector.Dir, "lens-data", signal+".jsonl"))
				require.NoError(t, err)
				require.NoError(t, oracle.SameInAnyOrder(items, got[signal]), signal)
			}
			t.Logf("%d spans, %d points, %d records", len(got["traces"]), len(got["metrics"]), len(got["logs"]))
			requirePrinted(t, printed, got["traces"])
			require.GreaterOrEqual(t, len(got["metrics"]), 50)
			require.Len(t, got["logs"], 3)
		})
	}
}

// run runs the client and returns what it prints.
func run(t *testing.T, url, compression string) []byte {
	t.Helper()
	client := os.Getenv("LENSCOL_JS_CLIENT")
	require.NotEmpty(t, client, "LENSCOL_JS_CLIENT names no client: run make e2e E2E=js, or set it to what test/e2e/js/js.sh prints")
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "node", client, url, compression)
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	require.Empty(t, stderr.String())
	return printed
}

// requirePrinted holds what JavaScript says that it has sent against what arrived.
func requirePrinted(t *testing.T, printed []byte, spans []oracle.Item) {
	t.Helper()
	said, err := oracle.Parse(bytes.TrimSpace(printed))
	require.NoError(t, err)
	arrived := map[string]oracle.Value{}
	for _, span := range spans {
		id, _ := span.Line.Get("span_id")
		arrived[id.Text] = span.Line
	}
	ids, _ := said.Get("spans")
	require.Len(t, arrived, len(ids.List))
	for _, id := range ids.List {
		require.Contains(t, arrived, id.Text)
		if name, _ := arrived[id.Text].Get("name"); name.Text == "job" {
			want, _ := said.Get("values")
			got, _ := arrived[id.Text].Get("attributes")
			require.Equal(t, want, got)
		}
	}
}

// wire is a proxy in front of a collector.
type wire struct {
	url string

	mu       sync.Mutex
	requests []request
}

type request struct {
	signal, encoding string
	chunked          bool
	body             *bytes.Buffer
}

func newWire(t *testing.T, collector string) *wire {
	w := &wire{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: collector})
	transport := &http.Transport{DisableCompression: true}
	proxy.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		seen := request{path.Base(r.URL.Path), r.Header.Get("Content-Encoding"), r.ContentLength < 0, &bytes.Buffer{}}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, seen.body), r.Body}
		proxy.ServeHTTP(rw, r)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.requests = append(w.requests, seen)
	}))
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	w.url = server.URL
	return w
}

// items are what must be in the archive, by signal.
func (w *wire) items(t *testing.T, compression string) map[string][]oracle.Item {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	items := map[string][]oracle.Item{}
	for _, r := range w.requests {
		require.True(t, r.chunked, "the body of %s is not chunked", r.signal)
		require.Equal(t, strings.TrimPrefix(compression, "none"), r.encoding)
		var body io.Reader = r.body
		if r.encoding == "gzip" {
			var err error
			body, err = gzip.NewReader(body)
			require.NoError(t, err)
		}
		text, err := io.ReadAll(body)
		require.NoError(t, err)
		sent, err := oracle.FromJSON(r.signal, text)
		require.NoError(t, err, "%s", text)
		items[r.signal] = append(items[r.signal], sent.Expect()...)
	}
	for _, signal := range []string{"traces", "metrics", "logs"} {
		require.NotEmpty(t, items[signal], signal)
	}
	return items
}
