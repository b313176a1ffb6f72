// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap/zapcore"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/metadatatest"
	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

// newWhole starts the exporter as a pipeline has it, with its queue, on the clock of the machine.
func newWhole(t *testing.T, host component.Host, fake *weavetest.Server, change ...func(*Config)) (exporter.Traces, *bench) {
	t.Helper()
	b := &bench{fake: fake, tel: componenttest.NewTelemetry()}
	t.Cleanup(func() { require.NoError(t, b.tel.Shutdown(context.Background())) })
	cfg := validConfig()
	cfg.BaseURL = fake.URL
	cfg.RetryConfig.InitialInterval = 10 * time.Millisecond
	cfg.RetryConfig.MaxInterval = 20 * time.Millisecond
	for _, f := range change {
		f(cfg)
	}
	require.NoError(t, cfg.Validate())
	e, err := NewFactory().CreateTraces(t.Context(), b.settings(), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host))
	return e, b
}

func settled(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 5*time.Millisecond)
}

// A batch goes by way of the queue; while the backend is down it waits, and arrives afterwards.
func TestQueueWaitsForTheBackend(t *testing.T) {
	fake := weavetest.New(t, weavetest.Options{})
	fake.Script(weavetest.Answer{Cut: true, Times: 4}, weavetest.Answer{Status: 503, Times: 4})
	e, b := newWhole(t, componenttest.NewNopHost(), fake)
	for i := range 5 {
		require.NoError(t, e.ConsumeTraces(t.Context(), spans(10*i, 10)))
	}
	settled(t, func() bool { return len(fake.Calls(project)) == 50 })
	require.NoError(t, e.Shutdown(t.Context()))
	require.Equal(t, map[string]int64{"sent_spans": 50}, b.counters(t))
	require.Zero(t, fake.Stats().Resent)
}

// The shutdown sends what is in the queue, once, and counts what it cannot send.
func TestShutdownDrains(t *testing.T) {
	slow := func(cfg *Config) {
		cfg.QueueConfig.Get().Batch.Get().FlushTimeout = time.Hour
		cfg.RetryConfig.InitialInterval, cfg.RetryConfig.MaxInterval = time.Hour, time.Hour
	}
	t.Run("sends", func(t *testing.T) {
		fake := weavetest.New(t, weavetest.Options{})
		e, b := newWhole(t, componenttest.NewNopHost(), fake, slow)
		require.NoError(t, e.ConsumeTraces(t.Context(), spans(0, 10)))
		require.NoError(t, e.Shutdown(t.Context()))
		requireDelivered(t, fake, project, upTo(10)...)
		require.Equal(t, map[string]int64{"sent_spans": 10}, b.counters(t))
	})
	t.Run("tries once more", func(t *testing.T) {
		fake := weavetest.New(t, weavetest.Options{})
		fake.Script(weavetest.Answer{Status: 503, Times: 1})
		e, b := newWhole(t, componenttest.NewNopHost(), fake, slow, func(cfg *Config) { cfg.QueueConfig.Get().Batch.Get().MinSize = 1 })
		require.NoError(t, e.ConsumeTraces(t.Context(), spans(0, 10)))
		settled(t, func() bool { return len(fake.Requests()) == 1 })
		require.NoError(t, e.Shutdown(t.Context()))
		require.Equal(t, map[string]int64{"sent_spans": 10}, b.counters(t))
	})
	t.Run("tries once more what fails meanwhile", func(t *testing.T) {
		fake := weavetest.New(t, weavetest.Options{})
		var stopping chan struct{}
		arrived := make(chan struct{})
		fake.Script(weavetest.Answer{Status: 503, Times: 1, When: func(weavetest.Request) bool {
			close(arrived)
			<-stopping
			return true
		}})
		e, b := newWhole(t, componenttest.NewNopHost(), fake, slow, func(cfg *Config) { cfg.QueueConfig.Get().Batch.Get().MinSize = 1 })
		stopping = e.(*traces).e.stopping
		require.NoError(t, e.ConsumeTraces(t.Context(), spans(0, 10)))
		<-arrived
		require.NoError(t, e.Shutdown(t.Context()))
		require.Equal(t, map[string]int64{"sent_spans": 10}, b.counters(t))
	})
	t.Run("counts", func(t *testing.T) {
		fake := weavetest.New(t, weavetest.Options{})
		fake.Script(weavetest.Answer{Status: 503})
		e, b := newWhole(t, componenttest.NewNopHost(), fake, slow, func(cfg *Config) { cfg.QueueConfig.Get().Batch.Get().MinSize = 1 })
		for i := range 3 {
			require.NoError(t, e.ConsumeTraces(t.Context(), spans(10*i, 10)))
		}
		settled(t, func() bool { return len(fake.Requests()) >= 1 })
		require.NoError(t, e.Shutdown(t.Context()))
		require.Equal(t, map[string]int64{"dropped_spans:shutdown": 30}, b.counters(t))
		require.NotEmpty(t, b.logged(zapcore.ErrorLevel))
	})
	t.Run("does not hang", func(t *testing.T) {
		fake := weavetest.New(t, weavetest.Options{})
		fake.Script(weavetest.Answer{Hang: true})
		e, b := newWhole(t, componenttest.NewNopHost(), fake, slow, func(cfg *Config) { cfg.ClientConfig.Timeout = 200 * time.Millisecond })
		for i := range 30 {
			require.NoError(t, e.ConsumeTraces(t.Context(), spans(10*i, 10)))
		}
		require.NoError(t, e.Shutdown(t.Context()))
		require.Equal(t, map[string]int64{"dropped_spans:shutdown": 300}, b.counters(t))
	})
}

// What a persistent queue cannot send before the shutdown is sent after the next start.
func TestPersistentQueueKeepsWhatIsLeft(t *testing.T) {
	storage := component.MustNewID("file_storage")
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory = t.TempDir()
	withStorage := func() component.Host {
		ext, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
		require.NoError(t, err)
		require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
		t.Cleanup(func() { require.NoError(t, ext.Shutdown(context.Background())) })
		return extensions{storage: ext}
	}
	persistent := func(cfg *Config) { cfg.QueueConfig.Get().StorageID = &storage }

	fake := weavetest.New(t, weavetest.Options{})
	fake.Script(weavetest.Answer{Status: 503, Project: "acme/two"})
	host := withStorage()
	e, b := newWhole(t, host, fake, persistent)
	td := ptrace.NewTraces()
	addSpans(td, "acme/one", 0, 5)
	addSpans(td, "acme/two", 5, 5)
	require.NoError(t, e.ConsumeTraces(t.Context(), td))
	settled(t, func() bool { return len(fake.Requests()) >= 3 })
	require.NoError(t, e.Shutdown(t.Context()))
	require.Equal(t, map[string]int64{"sent_spans": 5}, b.counters(t), "the others are not lost")
	requireDelivered(t, fake, "acme/one", upTo(5)...)
	require.Empty(t, fake.Calls("acme/two"))
	require.NoError(t, host.GetExtensions()[storage].Shutdown(t.Context()))

	up := weavetest.New(t, weavetest.Options{})
	e, b = newWhole(t, withStorage(), up, persistent)
	settled(t, func() bool { return len(up.Calls("acme/two")) == 5 })
	require.NoError(t, e.Shutdown(t.Context()))
	requireDelivered(t, up, "acme/two", 5, 6, 7, 8, 9)
	require.Equal(t, map[string]int64{"sent_spans": 10}, b.counters(t))
}

type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

// A batch that is larger than the queue, and a span that is larger than every limit, are sent all the same.
func TestNothingIsLostInTheHelper(t *testing.T) {
	fake := weavetest.New(t, weavetest.Options{})
	e, b := newWhole(t, componenttest.NewNopHost(), fake, func(cfg *Config) {
		cfg.QueueConfig.Get().QueueSize = 1 << 20
		cfg.QueueConfig.Get().Batch.Get().MinSize = 2
	})
	td := ptrace.NewTraces()
	all := addSpans(td, "", 0, 3)
	for i := range all.Len() {
		all.At(i).Attributes().PutStr("prompt", strings.Repeat("x", 3<<20))
	}
	require.NoError(t, e.ConsumeTraces(t.Context(), td))
	requireDelivered(t, fake, project, 0, 1, 2)
	require.NoError(t, e.ConsumeTraces(t.Context(), spans(3, 3)))
	require.NoError(t, e.Shutdown(t.Context()))
	requireDelivered(t, fake, project, upTo(6)...)
	counters := b.counters(t)
	require.Equal(t, int64(6), counters["sent_spans"])
	require.Positive(t, counters["rewritten_values:truncated"])
	require.Zero(t, fake.Stats().Blanked)
}

// However the queue is measured.
func TestABatchLargerThanAQueueOfSpans(t *testing.T) {
	fake := weavetest.New(t, weavetest.Options{})
	e, b := newWhole(t, componenttest.NewNopHost(), fake, func(cfg *Config) {
		queue := cfg.QueueConfig.Get()
		queue.Sizer, queue.QueueSize, queue.Batch.Get().MinSize = exporterhelper.RequestSizerTypeItems, 10, 2
	})
	require.NoError(t, e.ConsumeTraces(t.Context(), spans(0, 11)))
	requireDelivered(t, fake, project, upTo(11)...)
	require.NoError(t, e.ConsumeTraces(t.Context(), spans(11, 10)))
	require.NoError(t, e.Shutdown(t.Context()))
	requireDelivered(t, fake, project, upTo(21)...)
	require.Equal(t, map[string]int64{"sent_spans": 21}, b.counters(t))
}

// Without a queue the sender waits, and gets what is its to repeat as an error that it may repeat.
func TestWithoutAQueue(t *testing.T) {
	fake := weavetest.New(t, weavetest.Options{})
	e, b := newWhole(t, componenttest.NewNopHost(), fake, func(cfg *Config) {
		cfg.QueueConfig = configoptional.None[exporterhelper.QueueBatchConfig]()
		cfg.RetryConfig.MaxElapsedTime = 50 * time.Millisecond
	})
	require.NoError(t, e.ConsumeTraces(t.Context(), spans(0, 10)))
	requireDelivered(t, fake, project, upTo(10)...)
	fake.Script(weavetest.Answer{Status: 503})
	require.ErrorContains(t, e.ConsumeTraces(t.Context(), spans(10, 10)), "10 spans were not sent: HTTP status 503")
	require.NoError(t, e.Shutdown(t.Context()))
	require.Equal(t, map[string]int64{"sent_spans": 10}, b.counters(t))
}

// Requirement 29: after a mixed batch every span is in the counters, under their documented names.
func TestRequirement29_Counters(t *testing.T) {
	b := newBench(t, weavetest.Options{})
	b.fake.Script(
		weavetest.Answer{Status: 200, Body: `{"partial_success":{"rejected_spans":2,"error_message":"why"}}`, Project: "acme/two"},
		weavetest.Answer{Status: 403, Project: "acme/six"},
		weavetest.Answer{Status: 429, RetryAfter: "30", Project: project, Times: 1})
	td := ptrace.NewTraces()
	good := addSpans(td, "", 0, 5)
	good.At(0).Attributes().PutDouble("rl.reward", 1)
	good.At(0).Attributes().PutDouble("rl.reward.mean", 1)
	addSpans(td, "acme/two", 5, 5)
	addSpans(td, "acme/six", 10, 5)
	addSpans(td, "", 15, 1).At(0).SetSpanID([8]byte{})
	b.tick = func() { // In the pause.
		metadatatest.AssertEqualExporterWeaveRetryAfter(t, b.tel, []metricdata.DataPoint[float64]{{Value: 30}}, metricdatatest.IgnoreTimestamp())
	}
	require.NoError(t, b.send(t, td))
	b.tick = nil

	none := metricdatatest.IgnoreTimestamp()
	metadatatest.AssertEqualExporterWeaveSentSpans(t, b.tel, []metricdata.DataPoint[int64]{{Value: 5 + 3}}, none)
	metadatatest.AssertEqualExporterWeaveRejectedSpans(t, b.tel, []metricdata.DataPoint[int64]{{Value: 2}}, none)
	metadatatest.AssertEqualExporterWeaveRetryAfter(t, b.tel, []metricdata.DataPoint[float64]{{Value: 0}}, none)
	counters := b.counters(t)
	require.Equal(t, int64(5), counters["dropped_spans:forbidden"])
	require.Equal(t, int64(1), counters["dropped_spans:no_id"])
	require.Equal(t, int64(1), counters["rewritten_values:key_conflict"])
	var all int64
	for name, n := range counters {
		if !strings.HasPrefix(name, "rewritten_values") {
			all += n
		}
	}
	require.EqualValues(t, td.SpanCount(), all, "each span is counted once")
}

// Requirement 29: the probe says what is wrong, sends no span, and stops nothing.
func TestRequirement29_Probe(t *testing.T) {
	for _, tt := range []struct {
		answer weavetest.Answer
		want   string
		level  zapcore.Level
	}{
		{weavetest.Answer{Status: 401}, "check api_key", zapcore.ErrorLevel},
		{weavetest.Answer{Status: 403}, "check entity and project", zapcore.ErrorLevel},
		{weavetest.Answer{Status: 404}, "check base_url or host", zapcore.ErrorLevel},
		{weavetest.Answer{Status: 503}, "does not answer", zapcore.ErrorLevel},
		{weavetest.Answer{Status: 400}, "Weave takes spans", zapcore.InfoLevel},
		{weavetest.Answer{Status: 200}, "Weave takes spans", zapcore.InfoLevel},
	} {
		fake := weavetest.New(t, weavetest.Options{})
		fake.Script(tt.answer)
		e, b := newWhole(t, componenttest.NewNopHost(), fake, func(cfg *Config) { cfg.Probe = true })
		require.Len(t, fake.Requests(), 1)
		require.Zero(t, fake.Requests()[0].Spans)
		require.Equal(t, 1, b.logs.FilterLevelExact(tt.level).FilterMessageSnippet(tt.want).Len(), tt.want)
		require.NoError(t, e.Shutdown(t.Context()))
	}
}

// The last time of a span's start to its sending is bounded by the batch, which a span alone does not fill.
func TestASpanAloneIsSent(t *testing.T) {
	fake := weavetest.New(t, weavetest.Options{})
	e, _ := newWhole(t, componenttest.NewNopHost(), fake)
	require.NoError(t, e.ConsumeTraces(t.Context(), spans(0, 1)))
	settled(t, func() bool { return len(fake.Calls(project)) == 1 })
	require.NoError(t, e.Shutdown(t.Context()))
}

// Requirement 1: each mode has its path; the Agents view reads the run from a header alone.
func TestRequirement01_PathOfEachMode(t *testing.T) {
	for mode, path := range map[string]string{"calls": weavetest.CallsPath, "agents": weavetest.AgentsPath} {
		b := newBench(t, weavetest.Options{}, func(cfg *Config) { cfg.Mode, cfg.Run.ID, cfg.Host, cfg.BaseURL = mode, "3f9k2q", cfg.BaseURL, "" })
		require.NoError(t, b.send(t, spans(0, 3)))
		require.Len(t, b.fake.Requests(), 1)
		request := b.fake.Requests()[0]
		require.Equal(t, "/traces"+path, request.Path)
		require.Equal(t, 200, request.Status)
		if mode == "agents" {
			require.Equal(t, "acme/llm/3f9k2q", request.Header.Get("wb_run_id"))
			require.Len(t, b.fake.AgentSpans(project), 3)
		} else {
			require.Empty(t, request.Header.Get("wb_run_id"))
			require.Equal(t, "3f9k2q", b.fake.Calls(project)[0].RunID)
		}
	}
}

// The books close while many senders meet a backend that fails in every way.
func TestBooksClose(t *testing.T) {
	fake := weavetest.New(t, weavetest.Options{})
	every := func(n int) func(weavetest.Request) bool {
		i := 0
		return func(weavetest.Request) bool { i++; return i%n == 0 }
	}
	large := every(17)
	fake.Script(
		weavetest.Answer{Status: 403, Project: "acme/two"},
		weavetest.Answer{Status: 400, When: holds(1234)},
		weavetest.Answer{Status: 500, When: every(10)},
		weavetest.Answer{Status: 503, RetryAfter: "0.01", When: every(13)},
		weavetest.Answer{Status: 413, When: func(r weavetest.Request) bool { return r.Spans > 1 && large(r) }},
		weavetest.Answer{Cut: true, When: every(19)},
		weavetest.Answer{Cut: true, Stored: true, When: every(23)},
	)
	e, b := newWhole(t, componenttest.NewNopHost(), fake, func(cfg *Config) {
		cfg.QueueConfig.Get().Batch.Get().FlushTimeout = 5 * time.Millisecond
		cfg.QueueConfig.Get().Batch.Get().MinSize = 100
	})
	const senders, batches, size = 8, 20, 30
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for i := range batches {
				td := ptrace.NewTraces()
				addSpans(td, "acme/one", (s*batches+i)*size, size/2)
				addSpans(td, "acme/two", (s*batches+i)*size+size/2, size/2)
				require.NoError(t, e.ConsumeTraces(t.Context(), td))
			}
		})
	}
	all.Wait()
	const sent = senders * batches * size
	counted := func() (n int64) {
		for _, v := range b.counters(t) {
			n += v
		}
		return n
	}
	settled(t, func() bool { return counted() == sent })
	require.NoError(t, e.Shutdown(t.Context()))
	counters := b.counters(t)
	require.EqualValues(t, sent, counted())
	require.EqualValues(t, sent/2, counters["dropped_spans:forbidden"])
	require.EqualValues(t, len(fake.Calls("acme/one")), counters["sent_spans"])
	require.Zero(t, counters["dropped_spans:shutdown"])
}
