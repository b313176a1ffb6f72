// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	lens "github.com/lenscol/lenscol/sdk"
)

// childVariable names the program that this binary runs in place of the tests.
const childVariable = "LENS_TEST_CHILD"

func runChild(name string) {
	cfg, err := FromEnv(Source{})
	if err != nil {
		panic(err)
	}
	h, err := Setup(context.Background(), cfg, WithRank(0, 1))
	if err != nil {
		panic(err)
	}
	children[name](h)
}

// children are programs with telemetry, by how they end.
var children = map[string]func(*Handle){
	"SIGTERM": func(h *Handle) {
		stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer cancel()
		defer shutdown(h, DefaultTimeout)
		one(stop, h, "done")
		_, open := lens.Start(stop, "open")
		defer open.End() // before the shutdown: it is not open then
		_, leaked := lens.Start(stop, "leaked")
		_ = leaked
		fmt.Println("ready")
		<-stop.Done()
	},
	"SIGTERM, not handled": func(h *Handle) {
		flushed(h)
		fmt.Println("ready")
		select {}
	},
	"panic": func(h *Handle) {
		defer shutdown(h, DefaultTimeout)
		ctx, leaked := lens.Start(context.Background(), "leaked")
		_ = leaked
		func() (err error) {
			_, span := lens.Start(ctx, "panicked")
			defer span.Finish(&err)
			panic("no such checkpoint")
		}()
	},
	"panic elsewhere": func(h *Handle) {
		defer shutdown(h, DefaultTimeout)
		flushed(h)
		go panic("no such checkpoint")
		select {}
	},
	"os.Exit": func(h *Handle) {
		flushed(h)
		os.Exit(3)
	},
	"return": func(h *Handle) { flushed(h) },
	"shutdown, bounded": func(h *Handle) {
		one(context.Background(), h, "done")
		shutdown(h, 300*time.Millisecond)
	},
	"shutdown, without a deadline": func(h *Handle) {
		one(context.Background(), h, "done")
		fmt.Println(h.Shutdown(context.Background()))
	},
}

// flushed leaves one span exported, one ended and one open.
func flushed(h *Handle) {
	one(context.Background(), h, "flushed")
	if err := h.ForceFlush(context.Background()); err != nil {
		panic(err)
	}
	one(context.Background(), h, "ended")
	h.Tracer().Start(context.Background(), "open")
}

func shutdown(h *Handle, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	fmt.Println(h.Shutdown(ctx))
}

// What arrives from a process, and how it ends, by the way it ends.
func TestEndsOfAProcess(t *testing.T) {
	none := []string{}
	for _, c := range []struct {
		child    string
		protocol string
		endpoint func(*testing.T) string // nil: a sink
		signal   os.Signal
		exit     string
		out      string
		spans    []string
		others   []string // metrics and logs
	}{
		{child: "SIGTERM", signal: syscall.SIGTERM, out: "<nil>", spans: []string{"done", "leaked", "open"}, others: []string{"done"}},
		{child: "SIGTERM, not handled", signal: syscall.SIGTERM, exit: "signal: terminated", spans: []string{"flushed"}, others: []string{"flushed"}},
		{child: "panic", exit: "exit status 2", out: "<nil>", spans: []string{"leaked", "panicked"}, others: none},
		{child: "panic elsewhere", exit: "exit status 2", spans: []string{"flushed"}, others: []string{"flushed"}},
		{child: "os.Exit", exit: "exit status 3", spans: []string{"flushed"}, others: []string{"flushed"}},
		{child: "return", spans: []string{"flushed"}, others: []string{"flushed"}},
		{child: "shutdown, bounded", endpoint: silentEndpoint, out: "shut down traces: context deadline exceeded"},
		{child: "shutdown, bounded", endpoint: silentEndpoint, protocol: ProtocolHTTP, out: "shut down traces: context deadline exceeded"},
		{child: "shutdown, bounded", endpoint: deadEndpoint, out: "shut down traces: "},
		{child: "shutdown, bounded", endpoint: deadEndpoint, protocol: ProtocolHTTP, out: "shut down traces: "},
		{child: "shutdown, without a deadline", endpoint: silentEndpoint, out: "shut down logs: context deadline exceeded"},
	} {
		t.Run(c.child+" "+c.protocol, func(t *testing.T) {
			t.Parallel()
			var s *sink
			var endpoint string
			if c.endpoint == nil {
				s = newSink(t)
				endpoint = s.grpc
			} else {
				endpoint = c.endpoint(t)
			}
			exit, out := endOf(t, c.child, endpoint, c.protocol, c.signal)
			require.Equal(t, c.exit, exit, out)
			require.Contains(t, out, c.out)
			if s == nil {
				return
			}
			require.Equal(t, c.spans, s.spanNames())
			require.Equal(t, [][]string{c.others, c.others}, [][]string{s.metricNames(), s.logBodies()})
			for _, span := range s.allSpans() {
				truncated := attributes(span.Attributes)["nemo.span.truncated"]
				require.Equal(t, span.Name == "leaked", truncated == true, span.Name)
			}
			if c.child == "panic" {
				span := s.span(t, "panicked")
				require.Equal(t, tracepb.Status_STATUS_CODE_ERROR, span.Status.Code)
				require.Equal(t, "no such checkpoint", attributes(span.Events[0].Attributes)["exception.message"])
				require.Contains(t, out, "panic: no such checkpoint")
			}
		})
	}
}

// endOf runs a child to its end: how it ended, and what it said. A child that does not end fails the test, far later.
func endOf(t *testing.T, child, endpoint, protocol string, sig os.Signal) (exit, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), far)
	defer cancel()
	if protocol == "" {
		protocol = ProtocolGRPC
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = []string{
		childVariable + "=" + child,
		"NEMO_LENS_ENABLED=1", "NEMO_LENS_LOGS_ENABLED=1", "NEMO_LENS_RUN_ID=run",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol,
		// What is not flushed is not sent before the process ends.
		"OTEL_BSP_SCHEDULE_DELAY=3600000", "OTEL_BLRP_SCHEDULE_DELAY=3600000", "OTEL_METRIC_EXPORT_INTERVAL=3600000",
	}
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var all bytes.Buffer
	cmd.Stderr = &all
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(stdout)
	if sig != nil {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
		require.NoError(t, cmd.Process.Signal(sig))
	}
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	if err := cmd.Wait(); err != nil {
		exit = err.Error()
	}
	require.NoError(t, ctx.Err(), "it ended by itself")
	return exit, string(rest) + all.String()
}
