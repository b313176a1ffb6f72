// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/extension/lenshealth"
)

// A fixed report: one pipeline that works, one whose backend is down, and ids as a config could have them.
func testReport(status lenshealth.Status) lenshealth.Report {
	at := func(seconds int) time.Time {
		return time.Date(2026, 11, 29, 16, 24, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
	}
	success := at(28)
	return lenshealth.Report{
		Schema: 1, Status: status, Since: at(38), Ready: true, Time: at(52), Started: at(-34), Version: "0.1.0",
		Pipelines: []lenshealth.PipelineHealth{
			{ID: "logs", Status: lenshealth.Healthy, Components: []lenshealth.ComponentHealth{
				{Kind: "receiver", ID: "otlp", Status: lenshealth.Healthy, Since: at(-34), LastSuccess: &success},
				{Kind: "exporter", ID: "jsonl", Status: lenshealth.Healthy, Since: at(-34)},
			}},
			{ID: "traces/backend", Status: status, Components: []lenshealth.ComponentHealth{
				{Kind: "exporter", ID: "otlp_http/a", Status: status, Since: at(38), LastSuccess: &success, Queue: &lenshealth.Queue{Size: 3, Capacity: 1000}, Reasons: []lenshealth.Reason{
					{Code: "sends_fail", Text: "no send has succeeded since 16:24:28Z: connection\x1b[2J refused"}, {Code: "queue_fills", Text: "it fills"},
				}},
			}},
		},
		Extensions: []lenshealth.ComponentHealth{{Kind: "extension", ID: "lens_health", Status: lenshealth.Healthy, Since: at(-34)}},
	}
}

// serveHealth serves a report under /health and ready under /ready, to those who have the token where there is one.
func serveHealth(t *testing.T, report func() lenshealth.Report, token string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		now := report()
		ok, answer := now.Ready, any(map[string]bool{"ready": now.Ready})
		if r.URL.Path == "/health" {
			ok, answer = now.Status.OK(), now
		}
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func fixed(status lenshealth.Status) func() lenshealth.Report {
	return func() lenshealth.Report { return testReport(status) }
}

func TestStatus(t *testing.T) {
	stdout, err := execute(t, "status", "--endpoint", serveHealth(t, fixed(lenshealth.Unhealthy), ""))
	require.EqualError(t, err, "it is unhealthy; exporter otlp_http/a of traces/backend: no send has succeeded since 16:24:28Z: connection[2J refused; "+
		"exporter otlp_http/a of traces/backend: it fills")
	code, printed := exitCodeOf(err)
	require.Equal(t, 1, code)
	require.True(t, printed)
	requireGolden(t, "status.txt", stdout)

	stdout, err = execute(t, "status", "--json", "--endpoint", serveHealth(t, fixed(lenshealth.Degraded), ""))
	require.NoError(t, err, "it works")
	var report lenshealth.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
	require.Equal(t, testReport(lenshealth.Degraded).Pipelines[1].ID, report.Pipelines[1].ID)
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestStatusThatCannotBeAsked(t *testing.T) {
	closed := "http://127.0.0.1:" + strconv.Itoa(freePort(t))
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	newer := serveHealth(t, func() lenshealth.Report { return lenshealth.Report{Schema: 2, Status: lenshealth.Healthy} }, "")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"nobody listens":     {[]string{"--endpoint", closed}, "connection refused"},
		"something else":     {[]string{"--endpoint", other.URL}, "answers 404 Not Found, as no lens_health does"},
		"a later schema":     {[]string{"--endpoint", newer}, "answers with schema 2, and this lenscol knows 1"},
		"no token":           {[]string{"--endpoint", serveHealth(t, fixed(lenshealth.Healthy), "0123456789abcdef")}, "wants a token: set LENSCOL_HEALTH_TOKEN, or give --token-file"},
		"not an address":     {[]string{"--endpoint", "ftp://x"}, `"ftp://x" is not where lens_health can be reached`},
		"two addresses":      {[]string{"--endpoint", closed, "--port-file", "x"}, "both say where to ask"},
		"no port file":       {[]string{"--port-file", filepath.Join(t.TempDir(), "missing")}, "no such file"},
		"an older port file": {[]string{"--port-file", "testdata/configs.txt"}, "does not say LENSCOL_HEALTH_ENDPOINT"},
		"no token file":      {[]string{"--token-file", filepath.Join(t.TempDir(), "missing")}, "--token-file: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, append([]string{"status"}, tt.args...)...)
			require.ErrorContains(t, err, tt.want)
			code, _ := exitCodeOf(err)
			require.Equal(t, 2, code)
		})
	}
}

// Where to ask, and by what token: flags go before variables, and these before the default.
func TestHealthIsFound(t *testing.T) {
	const token = "0123456789abcdef"
	url := serveHealth(t, fixed(lenshealth.Healthy), token)
	_, port, err := net.SplitHostPort(url[len("http://"):])
	require.NoError(t, err)
	dir := t.TempDir()
	portFile, tokenFile := filepath.Join(dir, "env"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(portFile, []byte("export OTHER=1\nexport LENSCOL_HEALTH_ENDPOINT="+url+"\n"), 0o600))
	require.NoError(t, os.WriteFile(tokenFile, []byte(token+"\n"), 0o600))
	wrong := "http://127.0.0.1:" + strconv.Itoa(freePort(t))
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
	}{
		"flags":             {map[string]string{healthVariable: wrong, "LENSCOL_HEALTH_TOKEN": "wrong"}, []string{"--endpoint", url, "--token-file", tokenFile}},
		"without scheme":    {map[string]string{"LENSCOL_HEALTH_TOKEN": token}, []string{"--endpoint", url[len("http://"):]}},
		"port file":         {map[string]string{healthVariable: wrong, "LENSCOL_HEALTH_TOKEN": token}, []string{"--port-file", portFile}},
		"variables":         {map[string]string{healthVariable: url, "LENSCOL_HEALTH_PORT": "1", "LENSCOL_HEALTH_TOKEN": token}, nil},
		"port":              {map[string]string{"LENSCOL_HEALTH_PORT": port, "LENSCOL_HEALTH_TOKEN": token}, nil},
		"token file's name": {map[string]string{healthVariable: url, "LENSCOL_HEALTH_TOKEN_FILE": tokenFile, "LENSCOL_HEALTH_TOKEN": "wrong"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{healthVariable, "LENSCOL_HEALTH_PORT", "LENSCOL_HEALTH_TOKEN", "LENSCOL_HEALTH_TOKEN_FILE"} {
				t.Setenv(variable, tt.env[variable])
			}
			_, err := execute(t, append([]string{"status"}, tt.args...)...)
			require.NoError(t, err)
		})
	}
}

func TestHealthOverUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "it's a.sock")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"ready":true}`)) })}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	_, err = execute(t, "wait", "--endpoint", "unix:"+path)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "env")
	require.NoError(t, os.WriteFile(file, []byte("export "+healthVariable+`='unix:`+filepath.Dir(path)+`/it'\''s a.sock'`+"\n"), 0o600))
	_, err = execute(t, "wait", "--port-file", file)
	require.NoError(t, err)
}

func TestWait(t *testing.T) {
	var asked atomic.Int32
	becomes := func(status lenshealth.Status) func() lenshealth.Report {
		asked.Store(0)
		return func() lenshealth.Report {
			r := testReport(lenshealth.Starting)
			r.Ready = false
			if asked.Add(1) > 2 {
				r.Ready, r.Status = true, status
			}
			return r
		}
	}
	_, err := execute(t, "wait", "--endpoint", serveHealth(t, becomes(lenshealth.Unhealthy), ""))
	require.NoError(t, err, "it is ready, and that is what is waited for")
	require.EqualValues(t, 3, asked.Load())
	_, err = execute(t, "wait", "--for", "healthy", "--endpoint", serveHealth(t, becomes(lenshealth.Degraded), ""))
	require.NoError(t, err)

	// A timeout that is long enough to ask once on any machine, and no longer.
	for _, tt := range []struct {
		what, url, want string
	}{
		{"healthy", serveHealth(t, fixed(lenshealth.Unhealthy), ""), "wait: not healthy after 2s: it is unhealthy; exporter otlp_http/a of traces/backend: no send has succeeded"},
		{"ready", serveHealth(t, func() lenshealth.Report { return lenshealth.Report{} }, ""), "wait: not ready after 2s: not all pipelines have started"},
		{"ready", "http://127.0.0.1:" + strconv.Itoa(freePort(t)), "connection refused"},
	} {
		_, err = execute(t, "wait", "--timeout", "2s", "--for", tt.what, "--endpoint", tt.url)
		require.ErrorContains(t, err, tt.want)
		code, _ := exitCodeOf(err)
		require.Equal(t, 1, code)
	}
}

func TestWaitGivesUpWhereWaitingDoesNotHelp(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer other.Close()
	for name, args := range map[string][]string{
		"--for \"lunch\" is neither ready nor healthy":  {"--for", "lunch"},
		"--timeout 0s must be above 0":                  {"--timeout", "0s"},
		"wants a token":                                 {"--endpoint", serveHealth(t, fixed(lenshealth.Healthy), "0123456789abcdef")},
		"is not lens_health's":                          {"--endpoint", other.URL},
		"invalid argument \"x\" for \"--timeout\" flag": {"--timeout", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, append([]string{"wait"}, args...)...)
			require.ErrorContains(t, err, name)
			code, _ := exitCodeOf(err)
			require.Equal(t, 2, code)
		})
	}
}
