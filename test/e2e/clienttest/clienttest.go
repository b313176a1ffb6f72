// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package clienttest holds what programs with an OpenTelemetry SDK send against what the collector archives of it.
package clienttest // import "github.com/lenscol/lenscol/test/e2e/clienttest"

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/e2e/oracle"
)

const patience = 5 * time.Minute // for a client, far beyond what a busy machine needs

// Test runs a client once with each compression, none and gzip, as that command: with the URL to send to and the compression behind its
// arguments. What it sends over HTTP is in the archive item for item: between the two stands a proxy, which passes on what comes as it
// comes, and keeps a copy for the oracle.
//
// At its end the client prints a JSON object of what it knows to have sent: spans, the ids of all, and values, the attributes of the one
// with the name job. Each request must be of that content type, and in chunks where that is asked for.
func Test(t *testing.T, contentType string, chunked bool, name string, args ...string) {
	for _, compression := range []string{"none", "gzip"} {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			collector := testbed.Start(t, testbed.Options{
				Args: []string{"--config", "lenscol:archive"}, Env: []string{"LENSCOL_HOST=127.0.0.1", "LENSCOL_HEALTH_PORT=" + testbed.FreePort(t)}})
			wire := newWire(t, collector.HTTP)
			printed := run(t, name, append(args[:len(args):len(args)], wire.url, compression)...)
			wire.close()
			collector.Stop()

			want := wire.items(t, contentType, strings.TrimPrefix(compression, "none"), chunked)
			for _, signal := range []string{"traces", "metrics", "logs"} {
				got, err := oracle.ReadFile(filepath.Join(collector.Dir, "lens-data", signal+".jsonl"))
				require.NoError(t, err)
				require.NotEmpty(t, got)
				require.NoError(t, oracle.SameInAnyOrder(want[signal], got), signal)
				if signal == "traces" {
					requirePrinted(t, printed, got)
				}
				t.Logf("%d items of %s", len(got), signal)
			}
		})
	}
}

func run(t *testing.T, name string, args ...string) (printed []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("%s does not end within %s", name, patience))
	defer cancel()
	client := exec.CommandContext(ctx, name, args...)
	client.SysProcAttr = testbed.DieWithParent()
	var stderr bytes.Buffer
	client.Stderr = &stderr
	printed, err := client.Output()
	require.NoError(t, err, "%v %s", context.Cause(ctx), &stderr)
	require.Empty(t, stderr.String())
	return printed
}

// requirePrinted holds what the client says that it has sent against what arrived.
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
	jobs := 0
	for _, id := range ids.List {
		require.Contains(t, arrived, id.Text)
		if name, _ := arrived[id.Text].Get("name"); name.Text == "job" {
			jobs++
			want, _ := said.Get("values")
			got, _ := arrived[id.Text].Get("attributes")
			for _, v := range []oracle.Value{want, got} { // An SDK may keep them in a hash map.
				slices.SortFunc(v.Members, func(a, b oracle.Member) int { return strings.Compare(a.Key, b.Key) })
			}
			require.Equal(t, want.String(), got.String())
		}
	}
	require.Equal(t, 1, jobs, "spans with the name job")
}

// wire is a proxy in front of a collector.
type wire struct {
	url   string
	close func() // waits for the requests that are under way

	mu       sync.Mutex
	requests []request
}

type request struct {
	signal, contentType, encoding string
	chunked                       bool
	body                          *bytes.Buffer
}

func newWire(t *testing.T, collector string) *wire {
	w := &wire{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: collector})
	transport := &http.Transport{DisableCompression: true}
	proxy.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		seen := request{path.Base(r.URL.Path), r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"), r.ContentLength < 0, &bytes.Buffer{}}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, seen.body), r.Body}
		proxy.ServeHTTP(rw, r)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.requests = append(w.requests, seen)
	}))
	w.url = server.URL
	w.close = func() {
		server.Close()
		transport.CloseIdleConnections()
	}
	t.Cleanup(w.close)
	return w
}

// items are what must be in the archive, by signal.
func (w *wire) items(t *testing.T, contentType, encoding string, chunked bool) map[string][]oracle.Item {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	items := map[string][]oracle.Item{}
	for _, r := range w.requests {
		require.Equal(t, request{r.signal, contentType, encoding, r.chunked, r.body}, r)
		require.True(t, r.chunked || !chunked, "%s come in one piece", r.signal)
		var body io.Reader = r.body
		if encoding == "gzip" {
			var err error
			body, err = gzip.NewReader(body)
			require.NoError(t, err)
		}
		message, err := io.ReadAll(body)
		require.NoError(t, err)
		sent, err := oracle.From(r.signal, contentType == testbed.JSON, message)
		require.NoError(t, err, "%q", message)
		items[r.signal] = append(items[r.signal], sent.Expect()...)
	}
	return items
}
