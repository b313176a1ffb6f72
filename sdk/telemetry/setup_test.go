// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
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
	"github.com/lenscol/lenscol/sdk/rank"
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
			require.Zero(t, h.LeakedSpans())
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

// What setup does, in its order: run id, strategy, providers, groups.
func TestRunID(t *testing.T) {
	for _, c := range []struct {
		name    string
		env     map[string]string
		run     string
		opts    []Option
		want    string
		warning string
	}{
		{name: "config", run: "run-7", env: map[string]string{"SLURM_JOB_ID": "42", "OTEL_RESOURCE_ATTRIBUTES": "nemo.run.id=published"}, want: "run-7"},
		{name: "caller's resource", run: "run-7", opts: []Option{WithResource(attribute.String("nemo.run.id", "mine"))}, want: "mine"},
		{name: "published by a launcher", env: map[string]string{"SLURM_JOB_ID": "42", "OTEL_RESOURCE_ATTRIBUTES": "nemo.run.id=a%2Cb"}, want: "a,b"},
		{name: "SLURM", env: map[string]string{"SLURM_JOB_ID": "42", "TORCHELASTIC_RUN_ID": "elastic"}, want: "42"},
		{name: "torchelastic", env: map[string]string{"TORCHELASTIC_RUN_ID": "elastic"}, want: "elastic"},
		{name: "generated", want: ""},
		{name: "generated, several ranks", opts: []Option{WithRank(0, 2)}, want: "", warning: "set NEMO_LENS_RUN_ID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			lines := logged(t)
			cfg := to(newSink(t), ProtocolGRPC)
			cfg.RunID = c.run
			cfg.ExportStrategy = rank.NameAllRanks
			h := setUp(t, cfg, c.opts...)
			if c.want == "" {
				require.Regexp(t, `^[0-9a-f]{12}$`, h.RunID())
			} else {
				require.Equal(t, c.want, h.RunID())
			}
			got, _ := h.resource.Set().Value("nemo.run.id")
			require.Equal(t, h.RunID(), got.AsString(), "the resource says the same")
			require.Equal(t, c.warning != "", strings.Contains(lines.String(), "set NEMO_LENS_RUN_ID"))
		})
	}
}

// The vectors of NeMo Lens 0.2 strategies.
func TestRanksThatExport(t *testing.T) {
	for _, c := range []struct {
		name  string
		world int
		set   func(*Config)
		opts  func(rank int) []Option
		env   func(rank int) map[string]string
		want  []int
	}{
		{name: "the last rank, by default", world: 4, want: []int{3}},
		{name: "one rank", world: 4, set: func(c *Config) { c.ExportRank = 2 }, want: []int{2}},
		{name: "all ranks", world: 4, set: func(c *Config) { c.ExportStrategy = rank.NameAllRanks }, want: []int{0, 1, 2, 3}},
		{name: "sampled", world: 8, set: func(c *Config) { c.ExportStrategy, c.ExportSampleRate = rank.NameSampled, 0.25 }, want: []int{3, 4, 5, 6}},
		{name: "first of each node, by LOCAL_RANK", world: 4, set: func(c *Config) { c.ExportStrategy = rank.NameFirstRankPerNode },
			env: func(rank int) map[string]string { return map[string]string{"LOCAL_RANK": strconv.Itoa(rank % 2)} }, want: []int{0, 2}},
		{name: "first of each node, by the option", world: 4, set: func(c *Config) { c.ExportStrategy = rank.NameFirstRankPerNode },
			opts: func(rank int) []Option { return []Option{WithLocalRank(rank % 2)} }, want: []int{0, 2}},
		{name: "first of each node, where no local rank is known", world: 2, set: func(c *Config) { c.ExportStrategy = rank.NameFirstRankPerNode }, want: []int{0, 1}},
		{name: "the caller's strategy", world: 4, opts: func(int) []Option {
			return []Option{WithExportStrategy(rank.Func(func(id rank.Identity) bool { return id.Rank == 1 }))}
		}, want: []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSink(t)
			var got []int
			for n := range c.world {
				t.Run(strconv.Itoa(n), func(t *testing.T) {
					cleanEnv(t)
					cfg := to(s, ProtocolGRPC)
					if c.set != nil {
						c.set(&cfg)
					}
					if c.env != nil {
						for name, value := range c.env(n) {
							t.Setenv(name, value)
						}
					}
					opts := []Option{WithRank(n, c.world)}
					if c.opts != nil {
						opts = append(opts, c.opts(n)...)
					}
					if setUp(t, cfg, opts...).IsExporting() {
						got = append(got, n)
					}
				})
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestWhereTheRankComesFrom(t *testing.T) {
	for _, c := range []struct {
		name   string
		env    map[string]string
		opts   []Option
		rank   string // as rank/world/local
		export bool   // with single_rank, the last one
		log    string
	}{
		{name: "nowhere", rank: "-", export: true, log: "level=WARN msg=\"this process has no rank"},
		{name: "nowhere, with an instance id", opts: []Option{WithResource(attribute.String("service.instance.id", "server-1"))},
			rank: "-", export: true, log: "level=DEBUG msg=\"this process has no rank"},
		{name: "a launcher's variables do not count", env: map[string]string{"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, rank: "-", export: true},
		{name: "unless they shall", env: map[string]string{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"},
			opts: []Option{WithRankFromEnv()}, rank: "1/2/1", export: true},
		{name: "srun", env: map[string]string{"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"},
			opts: []Option{WithRankFromEnv()}, rank: "0/2/0"},
		{name: "the option goes first", env: map[string]string{"RANK": "1", "WORLD_SIZE": "2"},
			opts: []Option{WithRankFromEnv(), WithRank(0, 2)}, rank: "0/2/-1"},
		{name: "the caller's resource", opts: []Option{WithResource(attribute.Int("nv.dl.rank", 1), attribute.Int("nv.dl.world_size", 4))}, rank: "1/4/-1"},
		{name: "old names", opts: []Option{WithResource(attribute.Int("dl.rank", 3), attribute.Int("dl.world_size", 4))}, rank: "3/4/-1", export: true},
		{name: "inherited", env: map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "nv.dl.rank=1,nv.dl.world_size=4,nv.dl.local_rank=1"}, rank: "1/4/1"},
		{name: "the end of an instance id", env: map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=run-rank7"},
			rank: "7/-1/-1", export: true, log: "the world size is not known"},
		{name: "no number", env: map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "nv.dl.rank=x"}, rank: "-", export: true},
		{name: "the caller's strategy without a rank", opts: []Option{WithExportStrategy(rank.Func(func(id rank.Identity) bool {
			return id != rank.Identity{Rank: 0, WorldSize: 1, LocalRank: 0}
		}))}, rank: "-", export: false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			lines := logged(t)
			h := setUp(t, to(newSink(t), ProtocolGRPC), c.opts...)
			got := "-"
			if h.isRank {
				got = fmt.Sprintf("%d/%d/%d", h.rank.Rank, h.rank.WorldSize, h.rank.LocalRank)
			}
			require.Equal(t, c.rank, got)
			require.Equal(t, c.export, h.IsExporting())
			require.Contains(t, lines.String(), c.log)
		})
	}
}

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

// A failure in the middle stops what was started before it.
func TestSetupStopsWhatItStarted(t *testing.T) {
	cleanEnv(t)
	s := newSink(t)
	running := goleak.IgnoreCurrent()
	t.Setenv("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "soon")
	cfg := to(s, ProtocolGRPC)
	cfg.Logs = Target{Protocol: ProtocolJSON, Endpoint: "http://" + s.http}
	_, err := Setup(t.Context(), cfg, WithReinit(), WithPublishedResource())
	require.ErrorContains(t, err, "set up telemetry: logs: OTEL_EXPORTER_OTLP_LOGS_TIMEOUT: ")
	require.NoError(t, goleak.Find(running))
	require.Empty(t, os.Getenv("OTEL_RESOURCE_ATTRIBUTES"))
	require.Empty(t, lens.EnabledGroups())
}

// Every protocol brings every signal, and headers, to the endpoint.
func TestProtocols(t *testing.T) {
	for _, protocol := range []string{ProtocolGRPC, ProtocolHTTP, ProtocolJSON} {
		t.Run(protocol, func(t *testing.T) {
			cleanEnv(t)
			s := newSink(t)
			cfg := to(s, protocol)
			for _, signal := range signals {
				signal.of(&cfg).Headers = map[string]Secret{"X-Team": "lens", "X-Key": "a,b=c d"}
			}
			h := setUp(t, cfg)
			one(t.Context(), h, "one")
			require.NoError(t, h.Shutdown(t.Context()))
			require.Equal(t, "lens", s.headers.Get("x-team"))
			require.Equal(t, "a,b=c d", s.headers.Get("x-key"))
			if protocol == ProtocolJSON {
				require.Len(t, s.json, 3)
				slices.Sort(s.paths)
				require.Equal(t, []string{"/v1/logs", "/v1/metrics", "/v1/traces"}, s.paths)
				return
			}
			require.Equal(t, [][]string{{"one"}, {"one"}, {"one"}}, [][]string{s.spanNames(), s.metricNames(), s.logBodies()})
		})
	}

	t.Run("gRPC to host:port", func(t *testing.T) {
		cleanEnv(t)
		t.Setenv("OTEL_EXPORTER_OTLP_INSECURE", "true")
		s := newSink(t)
		cfg := to(s, ProtocolGRPC)
		cfg.Traces.Endpoint, cfg.Metrics.Endpoint, cfg.Logs.Endpoint = s.grpc, s.grpc, s.grpc
		h := setUp(t, cfg)
		one(t.Context(), h, "one")
		require.NoError(t, h.Shutdown(t.Context()))
		require.Equal(t, [][]string{{"one"}, {"one"}, {"one"}}, [][]string{s.spanNames(), s.metricNames(), s.logBodies()})
	})

	t.Run("none", func(t *testing.T) {
		cleanEnv(t)
		s := newSink(t)
		cfg := to(s, ProtocolGRPC)
		cfg.Metrics, cfg.Logs = Target{Protocol: ProtocolNone}, Target{Protocol: ProtocolNone}
		h := setUp(t, cfg)
		one(t.Context(), h, "one")
		require.NoError(t, h.Shutdown(t.Context()))
		require.Equal(t, [][]string{{"one"}, {}, {}}, [][]string{s.spanNames(), s.metricNames(), s.logBodies()})
	})

	for _, c := range []struct {
		name string
		set  func(*Config)
	}{
		{"console, by the protocol", func(c *Config) {
			console := Target{Protocol: ProtocolConsole}
			c.Traces, c.Metrics, c.Logs = console, console, console
		}},
		{"console, by the exporter", func(c *Config) { c.Exporter = ExporterConsole }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			s := newSink(t)
			cfg := to(s, ProtocolHTTP)
			c.set(&cfg)
			var out lockedBuffer
			h := setUp(t, cfg, WithOutput(&out))
			one(t.Context(), h, "one")
			require.NoError(t, h.Shutdown(t.Context()))
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			require.Len(t, lines, 3)
			slices.Sort(lines)
			require.True(t, strings.HasPrefix(lines[0], `{"body": "one", "severity_number": `), lines[0])
			require.True(t, strings.HasPrefix(lines[1], `{"name": "one", "context": {"trace_id": "0x`), lines[1])
			require.True(t, strings.HasPrefix(lines[2], `{"resource_metrics": [{"resource": {"attributes": {`), lines[2])
			require.Zero(t, s.requests())
		})
	}
}

// The direct forms of the backends, from variables to the request. Their hosts stand for themselves; the sink has no TLS.
func TestDirectToBackends(t *testing.T) {
	for _, c := range []struct {
		name    string
		env     map[string]string
		paths   []string
		headers map[string]string
	}{
		{"Weave", map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL":         "http/protobuf",
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":  "http://HOST/otel/v1/traces",
			"OTEL_EXPORTER_OTLP_TRACES_HEADERS":   "wandb-api-key=hunter2",
			"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "none",
		}, []string{"/otel/v1/traces"}, map[string]string{"wandb-api-key": "hunter2", "content-type": "application/x-protobuf"}},
		{"Weave, by the variable for all", map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://HOST/otel",
			"OTEL_EXPORTER_OTLP_HEADERS":  "wandb-api-key=hunter2",
			"NEMO_LENS_METRICS_ENABLED":   "false",
		}, []string{"/otel/v1/traces"}, map[string]string{"wandb-api-key": "hunter2"}},
		{"Weave, self-managed", map[string]string{
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://HOST/traces/otel/v1/traces",
			"OTEL_EXPORTER_OTLP_HEADERS":         "wandb-api-key=hunter2",
			"NEMO_LENS_METRICS_ENABLED":          "false",
		}, []string{"/traces/otel/v1/traces"}, map[string]string{"wandb-api-key": "hunter2"}},
		{"Honeycomb", map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL":        "http/protobuf",
			"OTEL_EXPORTER_OTLP_ENDPOINT":        "http://HOST",
			"OTEL_EXPORTER_OTLP_HEADERS":         "x-honeycomb-team=hunter2",
			"OTEL_EXPORTER_OTLP_METRICS_HEADERS": "x-honeycomb-team=hunter2,x-honeycomb-dataset=metrics",
			"NEMO_LENS_LOGS_ENABLED":             "true",
		}, []string{"/v1/logs", "/v1/metrics", "/v1/traces"}, map[string]string{"x-honeycomb-team": "hunter2"}},
		{"credentials in the endpoint", map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://api:hunter2@HOST",
			"NEMO_LENS_METRICS_ENABLED":   "false",
		}, []string{"/v1/traces"}, map[string]string{"authorization": "Basic YXBpOmh1bnRlcjI="}},
		{"credentials in the endpoint, JSON", map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://api:hunter2@HOST/base/",
			"NEMO_LENS_METRICS_ENABLED":   "false",
		}, []string{"/base/v1/traces"}, map[string]string{"authorization": "Basic YXBpOmh1bnRlcjI=", "content-type": "application/json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			s := newSink(t)
			t.Setenv("NEMO_LENS_ENABLED", "true")
			for name, value := range c.env {
				t.Setenv(name, strings.ReplaceAll(value, "HOST", s.http))
			}
			cfg, err := FromEnv(Source{})
			require.NoError(t, err)
			h := setUp(t, cfg)
			one(t.Context(), h, "one")
			require.NoError(t, h.Shutdown(t.Context()))
			slices.Sort(s.paths)
			require.Equal(t, c.paths, s.paths)
			for name, value := range c.headers {
				require.Equal(t, value, s.headers.Get(name), name)
			}
		})
	}
}

// A server that sends the key back in its error must not make us print it.
func TestNoSecretInErrors(t *testing.T) {
	for _, protocol := range []string{ProtocolHTTP, ProtocolJSON} {
		t.Run(protocol, func(t *testing.T) {
			cleanEnv(t)
			s := newSink(t)
			s.answer = func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, "no such key: "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+", "+r.Header.Get("X-Key"), http.StatusUnauthorized)
			}
			var mu sync.Mutex
			handled := []string{}
			before := otel.GetErrorHandler()
			otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
				mu.Lock()
				defer mu.Unlock()
				handled = append(handled, err.Error())
			}))
			t.Cleanup(func() { otel.SetErrorHandler(before) })
			cfg := to(s, protocol)
			for _, signal := range signals {
				signal.of(&cfg).Headers = map[string]Secret{"authorization": "Bearer hunter2", "x-key": "hunter3"}
			}
			h := setUp(t, cfg)
			one(t.Context(), h, "one")
			err := errors.Join(h.ForceFlush(t.Context()), h.Shutdown(t.Context()))
			mu.Lock()
			defer mu.Unlock()
			text := err.Error() + strings.Join(handled, "\n") + fmt.Sprintf("%#v", err)
			require.Contains(t, text, "flush traces: ")
			require.Contains(t, text, "401")
			require.Contains(t, text, "[REDACTED]")
			require.NotContains(t, text, "hunter")
		})
	}
}

func TestSamplers(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		set  func(*Config)
		opts []Option
		want []string
	}{
		{name: "default", want: []string{"one"}},
		{name: "OTEL_TRACES_SAMPLER", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, want: []string{}},
		{name: "OTEL_TRACES_SAMPLER_ARG", env: map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, want: []string{}},
		{name: "sampler_enabled goes before it", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_off"},
			set: func(c *Config) { c.SamplerEnabled = true }, want: []string{"one"}},
		{name: "sampler_enabled at a rate that leaves rank 0 out",
			set: func(c *Config) { c.SamplerEnabled, c.ExportSampleRate, c.ExportRank = true, 0.25, 0 }, want: []string{}},
		{name: "the option goes before all", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_on"},
			set: func(c *Config) { c.SamplerEnabled = true }, opts: []Option{WithSampler(sdktrace.NeverSample())}, want: []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cleanEnv(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			s := newSink(t)
			cfg := to(s, ProtocolGRPC)
			if c.set != nil {
				c.set(&cfg)
			}
			h := setUp(t, cfg, append(c.opts, WithRank(0, 1))...)
			one(t.Context(), h, "one")
			require.NoError(t, h.Shutdown(t.Context()))
			require.Equal(t, c.want, s.spanNames())
		})
	}
	require.Equal(t, "RankAwareSampler(rank=3, rate=0.25)", RankAwareSampler(3, 0.25).Description())
	require.Contains(t, ParentBasedRankAwareSampler(3, 0.25).Description(), "ParentBased{root:RankAwareSampler(rank=3, rate=0.25)")
}

// OTEL_BSP_* hold: a queue of one span loses the others.
func TestBatchVariables(t *testing.T) {
	cleanEnv(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
	s := newSink(t)
	h := setUp(t, to(s, ProtocolGRPC))
	one(t.Context(), h, "a")
	one(t.Context(), h, "b")
	require.Eventually(t, func() bool { return slices.Equal(s.spanNames(), []string{"a", "b"}) }, time.Minute, time.Millisecond,
		"a full batch of two goes at once")
	require.NoError(t, h.Shutdown(t.Context()))
}

// OTEL_METRIC_EXPORT_INTERVAL is the Config's.
func TestMetricInterval(t *testing.T) {
	cleanEnv(t)
	s := newSink(t)
	cfg := to(s, ProtocolGRPC)
	cfg.MetricExportInterval = time.Millisecond
	h := setUp(t, cfg)
	one(t.Context(), h, "one")
	require.Eventually(t, func() bool { return len(s.metricNames()) > 0 }, time.Minute, time.Millisecond)
}
