// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/pipeline"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lenscol/lenscol/telemetry"
)

// startHealth starts the extension alone, on a free port unless change says otherwise, and returns it and what it logs.
func startHealth(t *testing.T, change func(*Config)) (*health, *observer.ObservedLogs) {
	t.Helper()
	h, logs, err := tryHealth(t, change)
	require.NoError(t, err)
	return h, logs
}

func tryHealth(t *testing.T, change func(*Config)) (*health, *observer.ObservedLogs, error) {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoint = "127.0.0.1:0"
	if change != nil {
		change(cfg)
	}
	require.NoError(t, confmap.Validate(cfg))
	core, logs := observer.New(zap.InfoLevel)
	set := testSettings()
	set.Logger = zap.New(core)
	h := newHealth(set, cfg)
	err := h.Start(t.Context(), componenttest.NewNopHost())
	t.Cleanup(func() { require.NoError(t, h.Shutdown(context.Background())) })
	return h, logs, err
}

// get asks a path of an extension and returns the answer's code and body.
func get(t *testing.T, h *health, path string) (int, string) {
	t.Helper()
	resp, err := client.Get(h.server.url + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, strings.TrimSpace(string(body))
}

// A probe that restarts what is not live must not hit a collector that drains.
func TestLiveWhileDraining(t *testing.T) {
	h, _ := startHealth(t, nil)
	requireCodes := func(live, ready, health int) {
		t.Helper()
		for path, want := range map[string]int{"/live": live, "/ready": ready, "/health": health, "/": ready} {
			code, body := get(t, h, path)
			require.Equal(t, want, code, "%s: %s", path, body)
		}
	}
	requireCodes(200, 503, 503)
	require.Equal(t, Starting, h.Health(t.Context()).Status)
	require.NoError(t, h.Ready())
	requireCodes(200, 200, 503)
	require.Equal(t, fromNone, h.Health(t.Context()).Source)
	require.NoError(t, h.NotReady())
	requireCodes(200, 503, 503)
	require.Equal(t, Stopping, h.Health(t.Context()).Status)
	require.NoError(t, h.Shutdown(t.Context()))
	_, err := client.Get(h.server.url + "/live")
	require.Error(t, err)
}

func TestAnswersAsHealthCheck(t *testing.T) {
	h, _ := startHealth(t, nil)
	_, body := get(t, h, "/")
	require.JSONEq(t, `{"status":"Server not available"}`, body)
	require.NoError(t, h.Ready())
	_, body = get(t, h, "/")
	var answer struct{ Status, UpSince, Uptime string }
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	require.Equal(t, "Server available", answer.Status)
	_, err := time.ParseDuration(answer.Uptime)
	require.NoError(t, err)

	code, _ := get(t, h, "/nothing")
	require.Equal(t, 404, code)
	resp, err := client.Post(h.server.url+"/health", "text/plain", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 404, resp.StatusCode, "nothing is changed here")
}

// With a token, probes go on as before: they learn one bit, and Kubernetes cannot give them a secret.
func TestTokenAndProbes(t *testing.T) {
	h, _ := startHealth(t, func(c *Config) { c.Token = testToken })
	require.NoError(t, h.Ready())
	for path, want := range map[string]int{"/live": 200, "/ready": 200, "/": 200, "/health": 401, "/api/pipelines": 401} {
		code, body := get(t, h, path)
		require.Equal(t, want, code, path)
		require.NotContains(t, body, testToken)
	}
}

func TestBusyEndpoint(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	file := filepath.Join(t.TempDir(), "health.env")
	onBusy := func(c *Config) { c.Endpoint, c.PortFile = busy.Addr().String(), file }

	h, logs := startHealth(t, onBusy)
	require.NotContains(t, h.server.url, busy.Addr().String())
	require.Equal(t, 1, logs.FilterLevelExact(zap.WarnLevel).FilterMessageSnippet("in use").Len())
	code, _ := get(t, h, "/live")
	require.Equal(t, 200, code)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("export LENSCOL_HEALTH_ENDPOINT=%s\nexport LENSCOL_HEALTH_PORT=%s\n", h.server.url, h.server.url[strings.LastIndexByte(h.server.url, ':')+1:]), string(text))
	require.Contains(t, Serving(), h.server.url)
	require.NoError(t, h.Shutdown(t.Context()))
	require.NoFileExists(t, file)
	require.NotContains(t, Serving(), h.server.url)

	_, _, err = tryHealth(t, func(c *Config) { onBusy(c); c.Required = true })
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}

func TestPortFileThatCannotBe(t *testing.T) {
	_, _, err := tryHealth(t, func(c *Config) { c.PortFile = filepath.Join(t.TempDir(), "missing", "file") })
	require.ErrorContains(t, err, "port_file: ")
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "health.sock")
	onSocket := func(c *Config) { c.Endpoint = "unix:" + path }
	ask := func(h *health) int {
		transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(h.server.url, "unix:"))
		}}
		resp, err := (&http.Client{Transport: transport}).Get("http://whatever/live")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	h, _ := startHealth(t, onSocket)
	require.Equal(t, "unix:"+path, h.server.url)
	require.Equal(t, 200, ask(h))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	second, logs := startHealth(t, onSocket)
	require.Equal(t, fmt.Sprintf("unix:%s.%d", path, os.Getpid()), second.server.url, "the first one goes on")
	require.Equal(t, 1, logs.FilterLevelExact(zap.WarnLevel).Len())
	require.Equal(t, 200, ask(second))
	require.Equal(t, 200, ask(h))
	require.NoError(t, h.Shutdown(t.Context()))
	require.NoFileExists(t, path)

	// What a killed process leaves.
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	third, _ := startHealth(t, onSocket)
	require.Equal(t, "unix:"+path, third.server.url)
	require.Equal(t, 200, ask(third))

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	_, _, err = tryHealth(t, func(c *Config) { c.Endpoint = "unix:" + file })
	require.ErrorContains(t, err, "is not a socket")
	require.FileExists(t, file)
}

func TestReadyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ready")
	require.NoError(t, os.WriteFile(file, []byte("of an earlier life"), 0o600))
	h, _ := startHealth(t, func(c *Config) { c.ReadyFile = file })
	require.NoFileExists(t, file)
	require.NoError(t, h.Ready())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintln(os.Getpid()), string(text))
	require.NoError(t, h.NotReady())
	require.NoFileExists(t, file)
}

func TestSystemdIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	h, _ := startHealth(t, func(c *Config) { c.SDNotify = true })
	require.NoError(t, h.Ready())
	said := make([]byte, 1000)
	require.NoError(t, socket.SetReadDeadline(time.Now().Add(patience)))
	n, err := socket.Read(said)
	require.NoError(t, err)
	require.Contains(t, strings.Split(string(said[:n]), "\n"), "READY=1")

	require.NoError(t, os.Remove(path))
	other, logs := startHealth(t, func(c *Config) { c.SDNotify = true })
	require.NoError(t, other.Ready(), "it ends nothing")
	require.Equal(t, 1, logs.FilterLevelExact(zap.ErrorLevel).Len())
}

// A component's own word counts, and its error's text stays in the log.
func TestComponentStatusEvents(t *testing.T) {
	h, _ := startHealth(t, nil)
	require.NoError(t, h.NotifyConfigSnapshot(t.Context(), extensioncapabilities.NewConfigSnapshot(confmap.NewFromStringMap(map[string]any{
		"exporters":  map[string]any{"jsonl": map[string]any{"path": "secret"}, "jsonl/b": nil},
		"connectors": map[string]any{"forward": nil},
		"service": map[string]any{"extensions": []any{"lens_health"}, "pipelines": map[string]any{
			"traces":   map[string]any{"receivers": []any{"otlp"}, "processors": []any{"memory_limiter"}, "exporters": []any{"jsonl", "forward"}},
			"traces/b": map[string]any{"receivers": []any{"forward"}, "exporters": []any{"jsonl/b"}},
		}},
	}), nil)))
	report := func(event *componentstatus.Event, id string, kind component.Kind, pipelines ...pipeline.ID) Report {
		h.ComponentStatusChanged(componentstatus.NewInstanceID(component.MustNewIDWithName(strings.Split(id, "/")[0], strings.TrimPrefix(strings.TrimPrefix(id, "jsonl"), "/")), kind, pipelines...), event)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.source, h.lookErr = fromInside, nil
		return h.report(h.now())
	}
	require.NoError(t, h.Ready())
	traces, second := pipeline.NewID(pipeline.SignalTraces), pipeline.NewIDWithName(pipeline.SignalTraces, "b")

	r := report(componentstatus.NewEvent(componentstatus.StatusOK), "jsonl", component.KindExporter, traces)
	require.Equal(t, Healthy, r.Status)
	require.Equal(t, kindConnector, r.Pipelines[0].Components[3].Kind)

	r = report(componentstatus.NewRecoverableErrorEvent(errors.New("secret")), "jsonl", component.KindExporter, traces)
	require.Equal(t, Unhealthy, r.Status)
	require.Equal(t, Unhealthy, r.Pipelines[0].Status)
	require.Equal(t, Healthy, r.Pipelines[1].Status)
	require.Equal(t, "reports_error", r.Pipelines[0].Components[2].Reasons[0].Code)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	requireSchema(t, "health", text)

	h.mu.Lock()
	h.fullDisks = 1
	h.mu.Unlock()
	r = report(componentstatus.NewRecoverableErrorEvent(errors.New("full")), "jsonl", component.KindExporter, traces)
	require.Equal(t, "disk_full", r.Pipelines[0].Components[2].Reasons[1].Code)

	r = report(componentstatus.NewEvent(componentstatus.StatusOK), "jsonl", component.KindExporter, traces)
	require.Equal(t, Healthy, r.Status)
	r = report(componentstatus.NewPermanentErrorEvent(errors.New("x")), "jsonl/b", component.KindExporter, second)
	require.Equal(t, Unhealthy, r.Pipelines[1].Status)
	require.Equal(t, Healthy, r.Pipelines[0].Status)
	r = report(componentstatus.NewEvent(componentstatus.StatusStopped), "jsonl/b", component.KindExporter, second)
	require.Equal(t, Healthy, r.Status, "a component that is gone after a reload is forgotten")
}

// A look is for all who ask: that one of them has gone says nothing about the collector.
func TestWhoHasGoneMakesNothingUnknown(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "otelcol_process_uptime 1\n")
	}))
	t.Cleanup(page.Close)
	h := newHealth(testSettings(), createDefaultConfig().(*Config))
	h.looker.inside = func() *telemetry.Source { return nil }
	h.looker.scrape = page.URL
	require.NoError(t, h.Ready())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, Healthy, h.Health(gone).Status)
}

func TestSinceIsWhenItBecameSo(t *testing.T) {
	now := epoch
	h := newHealth(testSettings(), createDefaultConfig().(*Config))
	h.source, h.now = fromInside, func() time.Time { return now }
	report := func(after time.Duration) Report {
		now = now.Add(after)
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.report(now)
	}
	require.Equal(t, epoch, report(0).Since)
	require.Equal(t, epoch, report(time.Minute).Since)
	require.NoError(t, h.Ready())
	require.Equal(t, epoch.Add(2*time.Minute), report(time.Minute).Since)
	require.Equal(t, epoch.Add(2*time.Minute), report(time.Hour).Since)
}

// A client that says nothing, or too much, is not waited for.
func TestServerHasLimits(t *testing.T) {
	h, _ := startHealth(t, nil)
	require.Positive(t, h.server.http.ReadHeaderTimeout)
	require.Positive(t, h.server.http.ReadTimeout)
	require.Positive(t, h.server.http.WriteTimeout)
	require.Positive(t, h.server.http.IdleTimeout)

	conn, err := net.Dial("tcp", strings.TrimPrefix(h.server.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /live HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("x", 64<<10))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, 431, resp.StatusCode)
}

// testPart is a part as another file of this package would add it.
type testPart struct{ ended chan struct{} }

func (p testPart) Mount(m *Mux, v View) {
	m.Page(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<p>the page") }))
	m.Handle("GET /api/events", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		fmt.Fprintf(w, "data: %s\n\n", v.Health(r.Context()).Status)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(p.ended)
	}))
}

func (testPart) Shutdown(context.Context) error { return nil }

func TestParts(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoint, cfg.Token = "127.0.0.1:0", testToken
	h, part := newHealth(testSettings(), cfg), testPart{make(chan struct{})}
	h.parts = []Part{part}
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))

	do := func(path, accept, token string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.server.url+path, nil)
		require.NoError(t, err)
		req.Header.Set("Accept", accept)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	body, err := io.ReadAll(do("/", "text/html,*/*", "").Body)
	require.NoError(t, err)
	require.Equal(t, "<p>the page", string(body), "browsers get the page, for it holds no data")
	require.Equal(t, 503, do("/", "*/*", "").StatusCode, "others what health_check says")
	require.Equal(t, 401, do("/api/events", "*/*", "").StatusCode)

	stream := do("/api/events", "text/event-stream", testToken)
	line, err := bufio.NewReader(stream.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "data: starting\n", line)
	require.NoError(t, h.Shutdown(t.Context()))
	<-part.ended
}
