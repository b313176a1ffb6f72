// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package browser tests the page of lens_health as people see it: in Chromium, served by the built binary, of ranks that send
// to it over the wire. LENSCOL_CHROMIUM is the browser, LENSCOL_AXE axe.min.js of axe-core; browser.sh gets both.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/internal/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait: far beyond what a busy machine needs, and beyond the minute after which a rank is silent.
const patience = 3 * time.Minute

const token = "a-token-of-the-page-1"

// config is a collector whose page is served on ${env:LENSCOL_METRICS_PORT}. rank_gate, where it is asked for, drops all ranks but the last.
func config(gate bool, settings string) string {
	receiver, extensions, more := "", "lens_health", ""
	if gate {
		receiver = "\n        middlewares: [{id: rank_gate}]"
		extensions += ", rank_gate"
		more = "\n  rank_gate: {strategy: single_rank}"
	}
	return `
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:${env:LENSCOL_GRPC_PORT}
        max_recv_msg_size_mib: 64` + receiver + `
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}
processors:
  run_id_enricher:
exporters:
  debug:
  otlp_http/down:
    endpoint: http://127.0.0.1:1
    retry_on_failure: {initial_interval: 100ms}
extensions:
  lens_health: {endpoint: "127.0.0.1:${env:LENSCOL_METRICS_PORT}"` + settings + `}` + more + `
service:
  extensions: [` + extensions + `]
  telemetry:
    metrics: {level: none}
  pipelines:
    traces: {receivers: [otlp], processors: [run_id_enricher], exporters: [debug]}
    traces/far: {receivers: [otlp], processors: [run_id_enricher], exporters: [otlp_http/down]}
`
}

// start starts a collector and returns the address of its page.
func start(t testing.TB, gate bool, settings string) (*testbed.Collector, string) {
	t.Helper()
	port := testbed.FreePort(t)
	c := testbed.Start(t, testbed.Options{Config: config(gate, settings), Env: []string{"LENSCOL_METRICS_PORT=" + port}})
	return c, "http://127.0.0.1:" + port + "/"
}

// tab is a tab of a browser of its own.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	errors []string // what the browser complained of: exceptions, refused by the policy
}

func newTab(t testing.TB) *tab {
	t.Helper()
	chromium := os.Getenv("LENSCOL_CHROMIUM")
	require.NotEmpty(t, chromium, "LENSCOL_CHROMIUM names no browser: run make test-browser")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.Flag("enable-precise-memory-info", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	b := &tab{t: t}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocator, chromedp.WithListener(b.listen))
	b.ctx = ctx
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		closeTab()
		stop()
	})
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900))) // The browser lives as long as the context of its first step.
	_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	return b
}

func (b *tab) listen(event any) {
	var text string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceNetwork { // /health answers 503 and /api/… 401 where they should.
			return
		}
		text = e.Entry.Text
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = append(b.errors, text)
}

// noErrors fails the test where the browser complained.
func (b *tab) noErrors() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.errors)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// open loads the page and waits until it shows what it shows first.
func (b *tab) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
	b.until(`!document.getElementById("shell").hidden || !document.getElementById("login").hidden`)
}

// eval evaluates an expression, a promise too, and gives its value.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, expression)
	return value
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !eval[bool](b, "Boolean("+expression+")"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("never so: %s\nThe page says:\n%s", expression, b.text("body"))
		}
	}
}

// text is what an element shows.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`document.querySelector(%q).innerText`, selector))
}

// untilText waits until an element shows a text.
func (b *tab) untilText(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%s)`, selector, quote(text)))
}

func (b *tab) colours(scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(b.t, err)
}

// quote writes a text as JavaScript does.
func quote(text string) string {
	data, _ := json.Marshal(text) // It is a string.
	return string(data)
}

// screen writes what is shown to build/screens, which is not committed.
func (b *tab) screen(name string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	folder := filepath.Join("..", "..", "build", "screens")
	require.NoError(b.t, os.MkdirAll(folder, 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644))
}
