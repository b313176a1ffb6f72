// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
	"github.com/lenscol/lenscol/internal/testbed"
)

// weaveOverlay makes retries short, so that a test does not wait for them.
const weaveOverlay = `
exporters:
  weave:
    retry_on_failure: {initial_interval: 20ms, max_interval: 200ms}
    sending_queue: {batch: {flush_timeout: 100ms, min_size: 512}}
`

// TestWeaveBooksClose has the shipped config send to a Weave that is down at first, then fails one request in ten, cannot take one span in 512,
// and answers 403 for one of three projects: what arrives and what is counted as lost is what was sent, to the span.
//
// LENSCOL_WEAVE_DOWN is how long it is down, 2s without it.
func TestWeaveBooksClose(t *testing.T) {
	down := 2 * time.Second
	if text := os.Getenv("LENSCOL_WEAVE_DOWN"); text != "" {
		var err error
		down, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	weave := weavetest.NewHandler(weavetest.Options{})
	defer weave.Close()
	poisoned := func(r weavetest.Request, among uint64) bool {
		return slices.ContainsFunc(r.SpanIDs, func(id string) bool {
			n, err := strconv.ParseUint(id, 16, 64)
			return err == nil && n%1024 == among
		})
	}
	weave.Script(
		weavetest.Answer{Status: 403, Project: "acme/closed"},
		weavetest.Answer{Status: 400, When: func(r weavetest.Request) bool { return poisoned(r, 300) }},
		weavetest.Answer{Status: 500, When: func(r weavetest.Request) bool { return poisoned(r, 812) || random.IntN(10) == 0 }},
	)
	address := "127.0.0.1:" + testbed.FreePort(t)
	collector, counters := startWeave(t, "http://"+address, weaveOverlay)
	client := collector.Client()

	const batches, size = 24, 512
	began := time.Now()
	for i := range batches {
		if i == batches/2 {
			time.Sleep(down - time.Since(began)) // The outage itself.
			serve(t, address, weave)
		}
		td := ptrace.NewTraces()
		for k, project := range []string{"open", "closed", "other"} {
			addWeaveSpans(td, project, uint64(i*3+k)*size+1, size)
		}
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(t, err)
		require.NoError(t, client.GRPC(t.Context(), "traces", body, true))
	}

	const sent = 3 * batches * size
	require.Eventually(t, func() bool { return counters().sum() == sent }, 2*time.Minute, 50*time.Millisecond, "counted: %v of %d", counters(), sent)
	all := counters()
	t.Logf("down %s, %d spans sent: %v; %d requests, %d of them refused", down, sent, all, weave.Stats().Requests, weave.Stats().Refused)
	delivered := len(weave.Calls("acme/open")) + len(weave.Calls("acme/other"))
	require.Equal(t, delivered, all["sent_spans"])
	require.Equal(t, batches*size, all[`dropped_spans{reason="forbidden"}`])
	poison := 0
	for n := range uint64(sent) {
		if n++; (n%1024 == 300 || n%1024 == 812) && (n-1)/size%3 != 1 {
			poison++
		}
	}
	require.Equal(t, poison, all[`dropped_spans{reason="refused"}`])
	require.Empty(t, weave.Calls("acme/closed"))
	require.Zero(t, weave.Stats().Merged)
	collector.Stop()
}

// TestWeaveSpanAlone sends with the shipped config as it is: a span alone does not wait for others, and one that is larger than what a call may
// have is cut, and says so.
func TestWeaveSpanAlone(t *testing.T) {
	fake := weavetest.New(t, weavetest.Options{})
	collector, counters := startWeave(t, fake.URL, "{}")
	client := collector.Client()
	prompt := strings.Repeat("a long prompt, ", 6<<20/15)
	for i, prompt := range []string{"short", prompt} {
		td := ptrace.NewTraces()
		addWeaveSpans(td, "llm", uint64(i+1), 1).At(0).Attributes().PutStr("input.value", prompt)
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(t, err)
		sent := time.Now()
		require.NoError(t, client.GRPC(t.Context(), "traces", body, true))
		require.Eventually(t, func() bool { return len(fake.Calls("acme/llm")) == i+1 }, time.Minute, time.Millisecond)
		t.Logf("a span of %d bytes was a call after %s", len(body), time.Since(sent))
	}
	require.Eventually(t, func() bool { return counters().sum() == 2 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, weaveCounters{"sent_spans": 2, `rewritten_values{reason="truncated"}`: 1, "retry_after": 0}, counters())
	call := fake.Calls("acme/llm")[1]
	require.Empty(t, call.Blanked)
	said, ok := call.Inputs["input.value"].(string)
	require.True(t, ok)
	require.True(t, strings.HasPrefix(prompt, said))
	require.Greater(t, len(said), 1<<20)
	had, _ := call.Dump["attributes"].(map[string]any)["lenscol"].(map[string]any)["truncated"].(map[string]any)["input"].(map[string]any)
	require.EqualValues(t, len(prompt), had["value"])
	collector.Stop()
}

// TestWeaveQueueFull sends more than the queue of the shipped config holds, here a small one, to a Weave that is down: senders wait, and are not refused,
// since the archive would have twice what they send again. A collector that ends does not wait for those that wait for ever.
func TestWeaveQueueFull(t *testing.T) {
	weave := weavetest.NewHandler(weavetest.Options{})
	defer weave.Close()
	address := "127.0.0.1:" + testbed.FreePort(t)
	const batches, size = 40, 50
	collector, _ := startWeave(t, "http://"+address, `
exporters:
  weave:
    timeout: 2s
    retry_on_failure: {initial_interval: 20ms, max_interval: 200ms}
    sending_queue: {queue_size: 20000, batch: {flush_timeout: 100ms, min_size: 100}}
`)
	send := func(first int) (answers chan error) {
		answers = make(chan error, batches)
		for i := range batches {
			td := ptrace.NewTraces()
			addWeaveSpans(td, "llm", uint64((first+i)*size+1), size)
			body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
			require.NoError(t, err)
			client := collector.Client()
			t.Cleanup(client.Close)
			go func() { answers <- client.GRPC(t.Context(), "traces", body, true) }()
		}
		return answers
	}
	answers := send(0)
	for len(answers) < 3 { // The others wait.
		time.Sleep(10 * time.Millisecond)
	}
	serve(t, address, weave)
	for range batches {
		require.NoError(t, <-answers)
	}
	require.Eventually(t, func() bool { return len(weave.Calls("acme/llm")) == batches*size }, time.Minute, 10*time.Millisecond)

	weave.Script(weavetest.Answer{Hang: true})
	send(batches)
	require.Eventually(t, func() bool { return weave.Stats().Requests > 0 }, time.Minute, 10*time.Millisecond)
	collector.Stop()
}

// TestWeaveSIGKILL kills the shipped config while batches wait on disk for a Weave that is down, twice, and while the rest is being sent: every span that was
// acknowledged is a call in the end, and one call alone.
func TestWeaveSIGKILL(t *testing.T) {
	weave := weavetest.NewHandler(weavetest.Options{})
	defer weave.Close()
	var requests int
	var killed atomic.Bool
	weave.Script(weavetest.Answer{Hang: true, When: func(weavetest.Request) bool { requests++; return requests > 3 && !killed.Load() }})
	address := "127.0.0.1:" + testbed.FreePort(t)
	collector, _ := startWeave(t, "http://"+address, weaveOverlay)
	const batches, size = 20, 200
	acknowledged := map[string]bool{}
	send := func(round int) {
		client := collector.Client()
		defer client.Close()
		for i := range batches {
			td := ptrace.NewTraces()
			spans := addWeaveSpans(td, "llm", uint64((round*batches+i)*size+1), size)
			body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
			require.NoError(t, err)
			require.NoError(t, client.GRPC(t.Context(), "traces", body, true))
			for _, span := range spans.All() {
				acknowledged[span.SpanID().String()] = true
			}
		}
	}
	for round := range 2 {
		send(round)
		collector.Kill()
		collector.Start()
	}
	serve(t, address, weave)
	require.Eventually(t, func() bool { return weave.Stats().Requests > 3 }, time.Minute, time.Millisecond)
	collector.Kill()
	killed.Store(true)
	collector.Start()
	send(2)
	require.Eventually(t, func() bool { return len(weave.Calls("acme/llm")) == len(acknowledged) }, time.Minute, 10*time.Millisecond,
		"%d calls of %d spans", len(weave.Calls("acme/llm")), len(acknowledged))
	for _, call := range weave.Calls("acme/llm") {
		require.True(t, acknowledged[call.ID], call.ID)
	}
	require.Zero(t, weave.Stats().Merged)
	t.Logf("%d spans acknowledged, of which %d came twice", len(acknowledged), weave.Stats().Resent)
	collector.Stop()
}

// serve has a Weave listen at an address until the test ends.
func serve(t *testing.T, address string, weave http.Handler) {
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &http.Server{Handler: weave}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// startWeave starts the shipped config, with more of it, in front of a Weave, and returns its counters: the exporter's, by name and reason.
func startWeave(t *testing.T, url, more string) (*testbed.Collector, func() weaveCounters) {
	overlay := filepath.Join(t.TempDir(), "overlay.yaml")
	require.NoError(t, os.WriteFile(overlay, []byte(more), 0o600))
	metrics := testbed.FreePort(t)
	collector := testbed.Start(t, testbed.Options{
		Args: []string{"--config", "lenscol:weave", "--config", overlay},
		Env:  append(weaveEnv(url), "LENSCOL_METRICS_PORT="+metrics),
	})
	return collector, func() weaveCounters {
		counters := weaveCounters{}
		const prefix = "otelcol_exporter_weave_"
		for _, line := range scrape(t, "http://127.0.0.1:"+metrics+"/metrics", prefix) {
			match := regexp.MustCompile(`^` + prefix + `(\w+)(?:\{(?:.*(reason="\w+"))?.*\})? (\S+)$`).FindStringSubmatch(line)
			require.NotNil(t, match, line)
			value, err := strconv.ParseFloat(match[3], 64)
			require.NoError(t, err)
			if match[2] != "" {
				match[1] += "{" + match[2] + "}"
			}
			counters[match[1]] += int(value)
		}
		return counters
	}
}

func weaveEnv(url string) []string {
	return []string{"WANDB_API_KEY=" + weavetest.Key, "WANDB_ENTITY=acme", "WANDB_PROJECT=llm", "WF_TRACE_SERVER_URL=" + url}
}

type weaveCounters map[string]int

// sum is how many spans are counted, as sent or as lost.
func (c weaveCounters) sum() (n int) {
	for name, value := range c {
		if strings.Contains(name, "_spans") {
			n += value
		}
	}
	return n
}

func addWeaveSpans(td ptrace.Traces, project string, first uint64, n int) ptrace.SpanSlice {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "trainer")
	rs.Resource().Attributes().PutStr("wandb.project", project)
	all := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range uint64(n) {
		span := all.AppendEmpty()
		span.SetName("step")
		var id pcommon.SpanID
		binary.BigEndian.PutUint64(id[:], first+i)
		span.SetSpanID(id)
		span.SetTraceID(pcommon.TraceID{7})
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		span.SetEndTimestamp(span.StartTimestamp() + 1000)
		span.Attributes().PutInt("dl.iteration", int64(first+i))
	}
	return all
}

// TestWeavePage does what docs/weave.md shows: its settings are valid, and its commands send spans to Weave.
func TestWeavePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/weave.md")
	require.NoError(t, err)
	fake := weavetest.New(t, weavetest.Options{})
	bin := t.TempDir()
	require.NoError(t, os.Symlink(testbed.Binary(t), filepath.Join(bin, "lenscol")))
	http := testbed.FreePort(t)
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "WF_TRACE_SERVER_URL="+fake.URL,
		"LENSCOL_GRPC_PORT="+testbed.FreePort(t), "LENSCOL_HTTP_PORT="+http, "LENSCOL_METRICS_PORT="+testbed.FreePort(t))

	var script strings.Builder
	yamls := 0
	for _, block := range regexp.MustCompile("(?s)```(sh|yaml)\n(.*?)```\n").FindAllSubmatch(page, -1) {
		if string(block[1]) == "sh" {
			script.Write(block[2])
			continue
		}
		yamls++
		settings := filepath.Join(t.TempDir(), "settings.yaml")
		require.NoError(t, os.WriteFile(settings, block[2], 0o600))
		validate := exec.Command(filepath.Join(bin, "lenscol"), "validate", "--config", "lenscol:archive", "--config", settings, "--set", "service.pipelines.traces.exporters=[weave]")
		validate.Env = append(env, weaveEnv("https://trace.wandb.ai")...)
		said, err := validate.CombinedOutput()
		require.NoError(t, err, "%s\n%s", block[2], said)
	}
	require.Positive(t, yamls)

	var said strings.Builder
	shell := exec.Command("sh", "-ec", script.String())
	shell.Dir, shell.Env = t.TempDir(), env
	shell.Stdout, shell.Stderr = &said, io.Discard
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, shell.Start())
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = syscall.Kill(-shell.Process.Pid, syscall.SIGTERM)
			_ = shell.Wait() // The shell ends by the signal, the collector by itself.
		}
	}
	defer end()
	send := func() error {
		demo := exec.Command(filepath.Join(bin, "lenscol"), "demo", "--endpoint", "http://127.0.0.1:"+http, "--steps", "2")
		out, err := demo.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	require.Eventually(t, func() bool { return send() == nil }, time.Minute, 100*time.Millisecond)
	require.Eventually(t, func() bool { return len(fake.Calls("acme/llm")) > 0 }, time.Minute, 10*time.Millisecond)
	end()
	require.Contains(t, said.String(), "export   ok", "what the doctor says")
}
