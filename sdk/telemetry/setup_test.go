// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/log"
	logglobal "go.opentelemetry.io/otel/log/global"
	"go.opentelemetry.io/otel/propagation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	lens "github.com/lenscol/lenscol/sdk"
)

// far is a deadline that no test reaches unless something hangs.
const far = 5 * time.Minute

// cleanEnv hides what the machine's environment says of jobs, ranks and OpenTelemetry.
func cleanEnv(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		for _, prefix := range []string{"SLURM", "OTEL_", "NEMO_", "WANDB_", "K8S_", "KUBERNETES_", "TORCHELASTIC_",
			"RANK", "WORLD_SIZE", "LOCAL_RANK"} {
			if strings.HasPrefix(name, prefix) {
				t.Setenv(name, "")
			}
		}
	}
}

// to is a configuration that exports all signals by protocol to s.
func to(s *sink, protocol string) Config {
	cfg := Default()
	cfg.Enabled, cfg.LogsEnabled = true, true
	cfg.SpanGroups = "step"
	for _, signal := range signals {
		t := signal.of(&cfg)
		t.Protocol = protocol
		t.Endpoint = "http://" + s.grpc
		if protocol != ProtocolGRPC {
			t.Endpoint = "http://" + s.http + "/" + signal.path
		}
	}
	return cfg
}

// setUp is Setup for a test, which may do it several times.
func setUp(t *testing.T, cfg Config, opts ...Option) *Handle {
	t.Helper()
	h, err := Setup(t.Context(), cfg, append(opts, WithReinit())...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Shutdown(context.Background()) })
	return h
}

// one makes one span, point and record of each signal.
func one(ctx context.Context, h *Handle, name string) {
	_, span := h.Tracer().Start(ctx, name)
	span.End()
	counter, _ := h.Meter().Int64Counter(name)
	counter.Add(ctx, 1)
	var record log.Record
	record.SetBody(log.StringValue(name))
	h.Logger().Emit(ctx, record)
}

// logged is what is logged from now on.
func logged(t *testing.T) *lockedBuffer {
	t.Helper()
	b := &lockedBuffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	return b
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// The rows of NeMo Lens's setup_telemetry and its handle. Where the generations differ, the newest, and where lenscol's own rule
// is another one, that.
func TestLikeNeMoLens(t *testing.T) {
	t.Run("second call while enabled", func(t *testing.T) {
		cleanEnv(t)
		isSetUp.Store(false)
		s := newSink(t)
		first, err := Setup(t.Context(), to(s, ProtocolGRPC))
		require.NoError(t, err)
		second, err := Setup(t.Context(), to(s, ProtocolGRPC))
		require.ErrorIs(t, err, ErrAlreadySetUp)
		require.EqualError(t, err, "set up telemetry: telemetry is set up already in this process")
		require.False(t, second.IsExporting())
		require.NoError(t, second.Shutdown(t.Context()))
		require.True(t, lens.Group("step").Enabled(), "the first goes on")
		disabled, err := Setup(t.Context(), Default())
		require.NoError(t, err, "a disabled one is no second")
		require.NoError(t, disabled.Shutdown(t.Context()))
		require.NoError(t, first.Shutdown(t.Context()))
		_, err = Setup(t.Context(), to(s, ProtocolGRPC))
		require.ErrorIs(t, err, ErrAlreadySetUp, "after the shutdown too")
		third, err := Setup(t.Context(), to(s, ProtocolGRPC), WithReinit())
		require.NoError(t, err)
		require.NoError(t, third.Shutdown(t.Context()))
	})

	t.Run("an error leaves the process as it was", func(t *testing.T) {
		cleanEnv(t)
		isSetUp.Store(false)
		cfg := to(newSink(t), ProtocolGRPC)
		cfg.Exporter = "zipkin"
		h, err := Setup(t.Context(), cfg)
		require.EqualError(t, err, `set up telemetry: exporter: unknown exporter type "zipkin", must be otlp or console`)
		one(t.Context(), h, "nothing")
		require.NoError(t, h.Shutdown(t.Context()))
		cfg.Exporter = ExporterOTLP
		h, err = Setup(t.Context(), cfg)
		require.NoError(t, err)
		require.NoError(t, h.Shutdown(t.Context()))
	})

	for _, c := range []struct {
		name string
		cfg  func(*Config)
		opts []Option
	}{
		{"disabled", func(c *Config) { c.Enabled = false }, nil},
		{"disabled, and not valid", func(c *Config) { *c = Config{} }, nil},
		{"enabled, rank not exporting", func(*Config) {}, []Option{WithRank(0, 2)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			s := newSink(t)
			running := goleak.IgnoreCurrent()
			cfg := to(s, ProtocolGRPC)
			c.cfg(&cfg)
			tracers, meters, loggers, propagator := otel.GetTracerProvider(), otel.GetMeterProvider(), logglobal.GetLoggerProvider(), otel.GetTextMapPropagator()
			h := setUp(t, cfg, append(c.opts, WithGroupsFile(t.TempDir()+"/groups"))...)
			require.False(t, h.IsExporting())
			require.False(t, lens.Group("step").Enabled(), "no groups")
			one(t.Context(), h, "nothing")
			_, span := h.TracerProvider().Tracer("mine").Start(t.Context(), "nothing")
			require.False(t, span.IsRecording())
			h.RegisterSpanProcessor(tracetest.NewSpanRecorder())
			require.Zero(t, h.LeakedSpans()+h.UntrackedSpans())
			require.NoError(t, h.ForceFlush(t.Context()))
			require.Equal(t, []any{tracers, meters, loggers, propagator},
				[]any{otel.GetTracerProvider(), otel.GetMeterProvider(), logglobal.GetLoggerProvider(), otel.GetTextMapPropagator()})
			require.NoError(t, goleak.Find(running), "no goroutine while it is set up")
			require.NoError(t, h.Shutdown(t.Context()))
			require.Zero(t, s.requests())
		})
	}

	t.Run("exporting", func(t *testing.T) {
		cleanEnv(t)
		s := newSink(t)
		before := otel.GetTracerProvider()
		h := setUp(t, to(s, ProtocolGRPC), WithRank(1, 2))
		require.True(t, h.IsExporting())
		require.True(t, lens.Group("step").Enabled())
		require.Equal(t, []string{"step"}, lens.EnabledGroups())
		require.ElementsMatch(t, []string{"traceparent", "tracestate", "baggage"}, otel.GetTextMapPropagator().Fields())

		ctx, span := lens.Start(t.Context(), "global")
		carrier := propagation.MapCarrier{}
		otel.GetTextMapPropagator().Inject(ctx, carrier)
		require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-03$`, carrier["traceparent"], "sampled and random")
		span.End()
		one(t.Context(), h, "own")
		counter, err := otel.Meter(lens.ScopeName).Int64Counter("global.count")
		require.NoError(t, err)
		counter.Add(t.Context(), 1)
		require.NoError(t, h.ForceFlush(t.Context()))

		require.Equal(t, []string{"global", "own"}, s.spanNames())
		require.Equal(t, []string{"global.count", "own"}, s.metricNames())
		require.Equal(t, []string{"own"}, s.logBodies())
		require.EqualValues(t, 3, s.span(t, "own").Flags&0xff)
		scope := s.spans[0].ScopeSpans[0].Scope
		require.Equal(t, []string{"nemo.lens", ""}, []string{scope.Name, scope.Version}, "the scope has no version")

		require.NoError(t, h.Shutdown(t.Context()))
		require.Empty(t, lens.EnabledGroups())
		require.Equal(t, before, otel.GetTracerProvider(), "it was set back")
	})

	t.Run("globals of somebody else stay", func(t *testing.T) {
		cleanEnv(t)
		before := otel.GetTracerProvider()
		t.Cleanup(func() { otel.SetTracerProvider(before) })
		h := setUp(t, to(newSink(t), ProtocolGRPC))
		theirs := sdktrace.NewTracerProvider()
		otel.SetTracerProvider(theirs)
		require.NoError(t, h.Shutdown(t.Context()))
		require.Equal(t, theirs, otel.GetTracerProvider())
	})

	t.Run("shutdown", func(t *testing.T) {
		cleanEnv(t)
		s := newSink(t)
		h := setUp(t, to(s, ProtocolGRPC))
		one(t.Context(), h, "last")
		_, outer := h.Tracer().Start(t.Context(), "outer")
		_, inner := h.Tracer().Start(t.Context(), "inner")
		require.NoError(t, h.Shutdown(context.Background()), "5 s where there is no deadline")
		require.Equal(t, []string{"inner", "last", "outer"}, s.spanNames())
		require.Equal(t, []string{"last"}, s.metricNames())
		require.Equal(t, []string{"last"}, s.logBodies(), "logs are flushed, as Lens does not")
		require.EqualValues(t, 2, h.LeakedSpans())
		require.Zero(t, h.UntrackedSpans())
		require.LessOrEqual(t, s.span(t, "inner").EndTimeUnixNano, s.span(t, "outer").EndTimeUnixNano, "innermost first")
		for _, name := range []string{"inner", "outer"} {
			span := s.span(t, name)
			require.Equal(t, true, attributes(span.Attributes)["nemo.span.truncated"])
			require.Equal(t, "nemo.span.truncated", span.Events[0].Name)
			require.Equal(t, map[string]any{"nemo.span.truncated.reason": "still open at telemetry shutdown"}, attributes(span.Events[0].Attributes))
			require.Equal(t, tracepb.Status_STATUS_CODE_UNSET, span.Status.GetCode())
		}
		require.NoError(t, h.Shutdown(t.Context()), "idempotent")
		require.NoError(t, h.ForceFlush(t.Context()))
		require.Len(t, s.allSpans(), 3)
		inner.End()
		outer.End()
		_, late := lens.Start(t.Context(), "late")
		require.False(t, late.IsRecording())
	})

	t.Run("injection", func(t *testing.T) {
		cleanEnv(t)
		cfg := to(newSink(t), ProtocolGRPC)
		spans, reader, logs := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader(), &recordedLogs{}
		recorder := tracetest.NewSpanRecorder()
		h := setUp(t, cfg, WithSpanExporter(spans), WithMetricReader(reader), WithLogProcessor(logs), WithSpanProcessor(recorder))
		one(t.Context(), h, "mine")
		later := tracetest.NewSpanRecorder()
		h.RegisterSpanProcessor(later)
		one(t.Context(), h, "later")
		require.NoError(t, h.ForceFlush(t.Context()))
		require.Equal(t, []string{"mine", "later"}, []string{spans.GetSpans()[0].Name, spans.GetSpans()[1].Name})
		require.Len(t, recorder.Ended(), 2)
		require.Len(t, later.Ended(), 1)
		require.Equal(t, 2, logs.count())
		var metrics metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &metrics))
		require.Len(t, metrics.ScopeMetrics[0].Metrics, 2)
	})

	t.Run("signals that are off", func(t *testing.T) {
		cleanEnv(t)
		s := newSink(t)
		cfg := to(s, ProtocolGRPC)
		cfg.TracesEnabled, cfg.LogsEnabled = false, false
		before := otel.GetTracerProvider()
		h := setUp(t, cfg, WithSpanExporter(tracetest.NewInMemoryExporter()))
		require.Equal(t, before, otel.GetTracerProvider())
		one(t.Context(), h, "one")
		require.NoError(t, h.ForceFlush(t.Context()))
		require.Empty(t, s.spanNames())
		require.Empty(t, s.logBodies())
		require.Equal(t, []string{"one"}, s.metricNames())
	})

	t.Run("exporter failure", func(t *testing.T) {
		cleanEnv(t)
		s := newSink(t)
		h := setUp(t, to(s, ProtocolGRPC), WithSpanExporter(badExporter{}))
		one(t.Context(), h, "one")
		err := h.ForceFlush(t.Context())
		require.EqualError(t, err, "flush traces: the exporter panicked: bad")
		require.Equal(t, []string{"one"}, s.metricNames(), "the other signals do not suffer")
		require.Equal(t, []string{"one"}, s.logBodies())
		one(t.Context(), h, "goes on")
	})
}

type recordedLogs struct {
	mu sync.Mutex
	n  int
}

func (r *recordedLogs) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }
func (r *recordedLogs) OnEmit(context.Context, *sdklog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return nil
}
func (r *recordedLogs) Shutdown(context.Context) error   { return nil }
func (r *recordedLogs) ForceFlush(context.Context) error { return nil }
func (r *recordedLogs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

type badExporter struct{}

func (badExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { panic("bad") }
func (badExporter) Shutdown(context.Context) error                             { return nil }

func TestSetupErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		set  func(*Config)
		opts []Option
		want string
	}{
		{name: "rank", opts: []Option{WithRank(4, 4)}, want: "set up telemetry: rank 4 of 4: must be from 0 to the world size - 1, and that below 2^31"},
		{name: "negative rank", opts: []Option{WithRank(-1, 4)}, want: "set up telemetry: rank -1 of 4: must be from 0 to the world size - 1, and that below 2^31"},
		{name: "large world", opts: []Option{WithRank(0, 1<<31)},
			want: "set up telemetry: rank 0 of 2147483648: must be from 0 to the world size - 1, and that below 2^31"},
		{name: "export rank", set: func(c *Config) { c.ExportRank = 9 }, opts: []Option{WithRank(0, 4)},
			want: `set up telemetry: export_strategy: "single_rank": export_rank: 9 is not below the world size 4`},
		{name: "local rank", env: map[string]string{"LOCAL_RANK": "first"}, opts: []Option{WithRank(0, 4)},
			want: `set up telemetry: LOCAL_RANK: "first" is not an integer from 0 on`},
		{name: "queue of spans", env: map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": " -1 "}, // the SDK panics
			want: `set up telemetry: OTEL_BSP_MAX_QUEUE_SIZE: "-1" must be 1 to 1048576`},
		{name: "batch of spans", env: map[string]string{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "0"},
			want: `set up telemetry: OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "0" must be 1 to 1048576`},
		{name: "queue of logs", env: map[string]string{"OTEL_BLRP_MAX_QUEUE_SIZE": "99999999999999999999"},
			want: `set up telemetry: OTEL_BLRP_MAX_QUEUE_SIZE: "99999999999999999999" must be 1 to 1048576`},
		{name: "delay of spans", env: map[string]string{"OTEL_BSP_SCHEDULE_DELAY": "0"}, // the SDK's timer never rests
			want: `set up telemetry: OTEL_BSP_SCHEDULE_DELAY: "0" must be 1 to 9223372036854`},
		{name: "delay of spans that overflows", env: map[string]string{"OTEL_BSP_SCHEDULE_DELAY": "9223372036855"},
			want: `set up telemetry: OTEL_BSP_SCHEDULE_DELAY: "9223372036855" must be 1 to 9223372036854`},
		{name: "several fields", set: func(c *Config) { c.ServiceName, c.Traces.Protocol = "", "" },
			want: "set up telemetry: service_name: it is empty, must be the name of the service\n" +
				`traces.protocol: unknown protocol "", must be grpc, http/protobuf, http/json, console or none`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			cfg := to(newSink(t), ProtocolGRPC)
			if c.set != nil {
				c.set(&cfg)
			}
			h, err := Setup(t.Context(), cfg, append(c.opts, WithReinit())...)
			require.EqualError(t, err, c.want)
			require.NotNil(t, h)
		})
	}
}

// What is 10 seconds to OpenTelemetry's SDK for Python is 10 milliseconds here, as the specification has it: nothing would arrive.
func TestTimeoutThatIsMeantInSeconds(t *testing.T) {
	for value, warns := range map[string]bool{"10": true, "99": true, "100": false, "10000": false, "": false} {
		t.Run(value, func(t *testing.T) {
			cleanEnv(t)
			t.Setenv("NEMO_LENS_ENABLED", "true")
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+newSink(t).grpc)
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", value)
			cfg, err := FromEnv(Source{})
			require.NoError(t, err)
			lines := logged(t)
			setUp(t, cfg)
			require.Equal(t, warns, strings.Contains(lines.String(), "timeout="+value+"ms"), lines)
			require.Equal(t, warns, strings.Count(lines.String(), "OTEL_EXPORTER_OTLP_TIMEOUT") == 1, "once, for all signals")
		})
	}
}

// A failure in the middle stops what was started before it.
func TestSetupStopsWhatItStarted(t *testing.T) {
	cleanEnv(t)
	s := newSink(t)
	running := goleak.IgnoreCurrent()
	t.Setenv("OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE", "/none")
	cfg := to(s, ProtocolHTTP)
	cfg.Logs = Target{Protocol: ProtocolJSON, Endpoint: "https://" + s.http}
	_, err := Setup(t.Context(), cfg, WithReinit(), WithPublishedResource())
	require.ErrorContains(t, err, "set up telemetry: logs: OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE: open /none: ")
	require.NoError(t, goleak.Find(running))
	require.Empty(t, os.Getenv("OTEL_RESOURCE_ATTRIBUTES"))
	require.Empty(t, lens.EnabledGroups())
}
