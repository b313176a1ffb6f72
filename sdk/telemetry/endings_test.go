// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	lens "github.com/lenscol/lenscol/sdk"
)

// deadEndpoint is a port that nobody listens on.
func deadEndpoint(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// silentEndpoint takes connections and never says a word.
func silentEndpoint(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	over := make(chan struct{})
	go func() {
		defer close(over)
		var open []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			open = append(open, conn)
		}
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-over
	})
	return listener.Addr().String()
}

func toEndpoint(host, protocol string) Config { return to(&sink{grpc: host, http: host}, protocol) }

var sending = []string{ProtocolGRPC, ProtocolHTTP, ProtocolJSON}

// A dead endpoint costs what the exporter's own timeout allows, and never the program.
func TestDeadEndpoint(t *testing.T) {
	for _, protocol := range sending {
		t.Run(protocol, func(t *testing.T) {
			cleanEnv(t)
			cfg := toEndpoint(deadEndpoint(t), protocol)
			for _, signal := range signals {
				signal.of(&cfg).Timeout = 200 * time.Millisecond
			}
			running := goleak.IgnoreCurrent()
			h := setUp(t, cfg)
			one(t.Context(), h, "one")
			ctx, cancel := context.WithTimeout(t.Context(), far)
			defer cancel()
			require.ErrorContains(t, h.ForceFlush(ctx), "flush traces: ")
			one(t.Context(), h, "two")
			_, open := h.Tracer().Start(ctx, "open")
			defer open.End()
			err := h.Shutdown(ctx)
			require.NoError(t, ctx.Err(), "long before the deadline")
			for _, signal := range []string{"traces", "metrics", "logs"} {
				require.ErrorContains(t, err, "shut down "+signal+": ")
			}
			require.NoError(t, goleak.Find(running))
		})
	}
}

// A slow endpoint costs what the context allows; nothing goes on after it.
func TestSlowEndpoint(t *testing.T) {
	for _, protocol := range sending {
		t.Run(protocol, func(t *testing.T) {
			cleanEnv(t)
			cfg := toEndpoint(silentEndpoint(t), protocol)
			running := goleak.IgnoreCurrent()
			h := setUp(t, cfg)
			short := func() context.Context {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				t.Cleanup(cancel)
				return ctx
			}
			for _, end := range []func(context.Context) error{h.ForceFlush, h.Shutdown} {
				one(t.Context(), h, "one")
				err := end(short())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				for _, signal := range []string{"traces", "metrics", "logs"} {
					require.ErrorContains(t, err, signal+": ")
				}
			}
			require.Error(t, h.Shutdown(t.Context()), "the second call says the same")
			require.NoError(t, goleak.Find(running))
		})
	}
}

// A context that is over exports nothing, waits for nothing and leaves nothing.
func TestShutdownWithoutTime(t *testing.T) {
	cleanEnv(t)
	cfg := toEndpoint(silentEndpoint(t), ProtocolGRPC)
	running := goleak.IgnoreCurrent()
	h := setUp(t, cfg, WithGroupsFile(t.TempDir()+"/groups"))
	one(t.Context(), h, "one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, h.Shutdown(ctx), context.Canceled)
	require.Empty(t, lens.EnabledGroups())
	require.NoError(t, goleak.Find(running))
}

// Open spans that are ended at once all find a place in a queue that is smaller than they are many.
func TestMoreOpenSpansThanTheQueueHolds(t *testing.T) {
	for _, size := range []string{"64", "1"} {
		t.Run(size, func(t *testing.T) {
			cleanEnv(t)
			t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", size)
			s := newSink(t)
			h := setUp(t, to(s, ProtocolGRPC))
			for range 300 {
				h.Tracer().Start(t.Context(), "open")
			}
			ctx, cancel := context.WithTimeout(t.Context(), far)
			defer cancel()
			require.NoError(t, h.Shutdown(ctx))
			require.Len(t, s.spanNames(), 300)
		})
	}
}

// Spans that find no place in the queue are lost, and said to be.
func TestQueueThatIsFull(t *testing.T) {
	const n = 2000
	for _, c := range []struct {
		name, queue, protocol string
		opts                  []Option
		want                  int // spans; -1 is less than all
	}{
		{name: "room for all", want: n},
		{name: "room for one", queue: "1", want: -1},
		{name: "spans that are not to be exported", queue: "1", opts: []Option{WithSampler(recordOnly{})}},
		{name: "an exporter of the caller's", queue: "1", opts: []Option{WithSpanExporter(tracetest.NewInMemoryExporter())}},
		{name: "no exporter", queue: "1", protocol: ProtocolNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", c.queue)
			lines := logged(t)
			s := newSink(t)
			cfg := to(s, ProtocolGRPC)
			cfg.Traces.Protocol = cmp.Or(c.protocol, ProtocolGRPC)
			h := setUp(t, cfg, c.opts...)
			for range n {
				_, span := h.Tracer().Start(t.Context(), "one")
				span.End()
			}
			ctx, cancel := context.WithTimeout(t.Context(), far)
			defer cancel()
			require.NoError(t, h.Shutdown(ctx))
			arrived := len(s.spanNames())
			if c.want < 0 {
				require.Less(t, arrived, n)
				require.Contains(t, lines.String(), "lost="+strconv.Itoa(n-arrived))
				return
			}
			require.Equal(t, c.want, arrived)
			require.NotContains(t, lines.String(), "OTEL_BSP_MAX_QUEUE_SIZE")
		})
	}
}

// recordOnly is a sampler of spans that processors see and exporters do not.
type recordOnly struct{ sdktrace.Sampler }

func (recordOnly) ShouldSample(sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly}
}

func (recordOnly) Description() string { return "recordOnly" }

// An endpoint that is down does not take the time of the others.
func TestOneSignalFails(t *testing.T) {
	cleanEnv(t)
	s := newSink(t)
	cfg := to(s, ProtocolGRPC)
	cfg.Traces.Endpoint = "http://" + silentEndpoint(t)
	h := setUp(t, cfg)
	one(t.Context(), h, "one")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.EqualError(t, h.Shutdown(ctx), "shut down traces: context deadline exceeded")
	require.Equal(t, []string{"one"}, s.metricNames())
	require.Equal(t, []string{"one"}, s.logBodies())
}

// An exporter that does not know of contexts cannot hold the program.
func TestExporterThatHangs(t *testing.T) {
	cleanEnv(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	h := setUp(t, to(newSink(t), ProtocolGRPC), WithSpanExporter(hangingExporter{release}))
	one(t.Context(), h, "one")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, h.ForceFlush(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, h.Shutdown(ctx), context.DeadlineExceeded)
}

type hangingExporter struct{ release chan struct{} }

func (e hangingExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	<-e.release
	return nil
}

func (e hangingExporter) Shutdown(context.Context) error {
	<-e.release
	return nil
}

// All callers of a shutdown see its end, while spans go on starting.
func TestConcurrentShutdown(t *testing.T) {
	cleanEnv(t)
	s := newSink(t)
	h := setUp(t, to(s, ProtocolGRPC), WithRank(0, 1))
	one(t.Context(), h, "one")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				one(t.Context(), h, "busy-"+strconv.Itoa(i))
			}
		})
		all.Go(func() {
			_ = h.ForceFlush(t.Context()) // may meet the shutdown
			if err := h.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Contains(t, s.spanNames(), "one")

	// One who has less time than the first does not wait for it.
	release := make(chan struct{})
	h = setUp(t, to(s, ProtocolGRPC), WithSpanExporter(hangingExporter{release}))
	one(t.Context(), h, "one")
	first := make(chan error)
	go func() { first <- h.Shutdown(t.Context()) }()
	require.Eventually(t, h.stopping.Load, far, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, h.Shutdown(ctx), "wait for the shutdown of telemetry: context canceled")
	close(release)
	require.NoError(t, <-first)
}
