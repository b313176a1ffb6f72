// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/metadata"
	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

const project = "acme/llm"

// bench is an exporter in front of a fake Weave, with a clock that waiting moves on.
type bench struct {
	*weaveExporter
	fake *weavetest.Server
	tel  *componenttest.Telemetry
	logs *observer.ObservedLogs

	mu    sync.Mutex
	clock time.Time
	waits []time.Duration
	tick  func() // in each wait, before it is over
}

func newBench(t *testing.T, opts weavetest.Options, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{fake: weavetest.New(t, opts), tel: componenttest.NewTelemetry(), clock: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	cfg := validConfig()
	cfg.BaseURL = b.fake.URL
	for _, f := range change {
		f(cfg)
	}
	require.NoError(t, cfg.Validate())
	var err error
	b.weaveExporter, err = newWeaveExporter(b.settings(), cfg)
	require.NoError(t, err)
	b.now, b.after = b.time, b.wait
	require.NoError(t, b.start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, b.shutdown(context.Background()))
		require.NoError(t, b.tel.Shutdown(context.Background()))
	})
	return b
}

func (b *bench) settings() exporter.Settings {
	set := exportertest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type) // It names the storage of a persistent queue.
	set.TelemetrySettings = b.tel.NewTelemetrySettings()
	core, logs := observer.New(zapcore.InfoLevel)
	set.Logger, b.logs = zap.New(core), logs
	return set
}

func (b *bench) time() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clock
}

// wait passes at once.
func (b *bench) wait(d time.Duration) <-chan time.Time {
	if b.tick != nil {
		b.tick()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(d)
	b.waits = append(b.waits, d)
	over := make(chan time.Time, 1)
	over <- b.clock
	return over
}

// send delivers a batch as from the queue.
func (b *bench) send(t *testing.T, td ptrace.Traces) error {
	t.Helper()
	return b.deliver(t.Context(), td, true)
}

// counters are the exporter's counters that are not 0, by name and, behind a colon, reason.
func (b *bench) counters(t *testing.T) map[string]int64 { return countersOf(t, b.tel) }

func countersOf(t *testing.T, tel *componenttest.Telemetry) map[string]int64 {
	t.Helper()
	counters := map[string]int64{}
	for _, name := range []string{"sent_spans", "rejected_spans", "dropped_spans", "rewritten_values"} {
		m, err := tel.GetMetric("otelcol_exporter_weave_" + name)
		if err != nil {
			continue // It counted nothing.
		}
		for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
			key := name
			if reason, ok := point.Attributes.Value("reason"); ok {
				key += ":" + reason.AsString()
			}
			counters[key] += point.Value
		}
	}
	return counters
}

// logged are the messages of a level or above, with their fields.
func (b *bench) logged(level zapcore.Level) []observer.LoggedEntry {
	return slices.DeleteFunc(b.logs.All(), func(e observer.LoggedEntry) bool { return e.Level < level })
}

// spans are n spans of one trace, with the ids first+1, first+2 and so on.
func spans(first, n int) ptrace.Traces {
	td := ptrace.NewTraces()
	addSpans(td, "", first, n)
	return td
}

// addSpans adds spans of a project, "entity/project", or of the config's.
func addSpans(td ptrace.Traces, entityProject string, first, n int) ptrace.SpanSlice {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "trainer")
	if entityProject != "" {
		rs.Resource().Attributes().PutStr("wandb.entity", entityProject[:4])
		rs.Resource().Attributes().PutStr("wandb.project", entityProject[5:])
	}
	all := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		span := all.AppendEmpty()
		span.SetName("step")
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(spanID(first + i))
		span.SetStartTimestamp(pcommon.Timestamp(1_764_400_000_000_000_000 + i))
		span.SetEndTimestamp(span.StartTimestamp() + 1000)
		span.Attributes().PutInt("n", int64(first+i))
	}
	return all
}

func spanID(n int) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	return id
}

// holds tells whether a request holds a span.
func holds(n int) func(weavetest.Request) bool {
	id := spanID(n).String()
	return func(r weavetest.Request) bool { return slices.Contains(r.SpanIDs, id) }
}

// requireDelivered requires that the calls of a project are exactly the spans first to first+n-1.
func requireDelivered(t *testing.T, fake *weavetest.Server, project string, numbers ...int) {
	t.Helper()
	var want, got []string
	for _, n := range numbers {
		want = append(want, spanID(n).String())
	}
	for _, call := range fake.Calls(project) {
		got = append(got, call.ID)
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}

// upTo are the numbers 0 to n-1, without some.
func upTo(n int, without ...int) (numbers []int) {
	for i := range n {
		if !slices.Contains(without, i) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}
