// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/otlpjsonfilereceiver"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
	"github.com/lenscol/lenscol/internal/testbed"
)

// text is pdata's own OTLP/JSON of it, which holds all that it is but the bits of a NaN.
func (d telemetry) text(t *testing.T) (traces, metrics, logs string) {
	t.Helper()
	a, err := (&ptrace.JSONMarshaler{}).MarshalTraces(d.traces)
	require.NoError(t, err)
	b, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(d.metrics)
	require.NoError(t, err)
	c, err := (&plog.JSONMarshaler{}).MarshalLogs(d.logs)
	require.NoError(t, err)
	return string(a), string(b), string(c)
}

func requireSame(t *testing.T, want, got telemetry) {
	t.Helper()
	wantTraces, wantMetrics, wantLogs := want.text(t)
	traces, metrics, logs := got.text(t)
	require.Equal(t, wantTraces, traces)
	require.Equal(t, wantMetrics, metrics)
	require.Equal(t, wantLogs, logs)
}

// withRecords leaves out what has no record in it, and so no line.
func (d telemetry) withRecords() telemetry {
	d.traces.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool { return ss.Spans().Len() == 0 })
		return rs.ScopeSpans().Len() == 0
	})
	for _, rm := range d.metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Type() == pmetric.MetricTypeEmpty })
		}
	}
	return d
}

// decoded is what pdata reads from lines.
func decoded(t *testing.T, text string) telemetry {
	t.Helper()
	d := telemetry{ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()}
	for line := range strings.Lines(text) {
		data := []byte(line)
		switch {
		case strings.HasPrefix(line, `{"resourceSpans":`):
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(data)
			require.NoError(t, err, "%s", line)
			td.ResourceSpans().MoveAndAppendTo(d.traces.ResourceSpans())
		case strings.HasPrefix(line, `{"resourceMetrics":`):
			md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(data)
			require.NoError(t, err, "%s", line)
			md.ResourceMetrics().MoveAndAppendTo(d.metrics.ResourceMetrics())
		default:
			ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(data)
			require.NoError(t, err, "%s", line)
			ld.ResourceLogs().MoveAndAppendTo(d.logs.ResourceLogs())
		}
	}
	return d
}

// TestOTLPJSONIsPdatasOwn holds the encoder against pdata's marshaler, for every field that OTLP has.
func TestOTLPJSONIsPdatasOwn(t *testing.T) {
	d := full().withRecords()
	d.metrics.ResourceMetrics().At(0).SetSchemaUrl("https://example.com/resource")
	scope := d.metrics.ResourceMetrics().At(0).ScopeMetrics().At(0)
	scope.SetSchemaUrl("https://example.com/scope")
	for _, m := range scope.Metrics().All() { // What full leaves out.
		noValue := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
		switch m.Type() {
		case pmetric.MetricTypeHistogram:
			m.Histogram().DataPoints().At(0).SetFlags(noValue)
		case pmetric.MetricTypeExponentialHistogram:
			p := m.ExponentialHistogram().DataPoints().At(0)
			p.SetSum(0)
			p.SetMin(-1.5)
			p.SetMax(math.Inf(1))
			p.SetFlags(noValue)
			p.Exemplars().AppendEmpty().SetIntValue(math.MinInt64)
		case pmetric.MetricTypeSummary:
			m.Summary().DataPoints().At(0).SetFlags(noValue)
		}
	}
	text, faults := d.encoded(otlpJSON{})
	require.False(t, faults.any())
	golden(t, "otlp.jsonl", []byte(text))
	requireSame(t, d, decoded(t, text))

	d.traces.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool { return rs.Resource().Attributes().Len() == 0 })
	traces, metrics, logs := d.text(t)
	text, _ = d.encoded(otlpJSON{})
	got := strings.Split(text, "\n")
	require.JSONEq(t, traces, got[0])
	require.JSONEq(t, metrics, got[1])
	require.JSONEq(t, logs, got[2])
}

// TestStockReceiverTellsFilesApart holds lines of one resource against each other: the stock receiver takes two files that begin with the
// same 1,000 bytes for one.
func TestStockReceiverTellsFilesApart(t *testing.T) {
	lines := func(n byte) []string {
		d := telemetry{ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()}
		rs, rm, rl := d.traces.ResourceSpans().AppendEmpty(), d.metrics.ResourceMetrics().AppendEmpty(), d.logs.ResourceLogs().AppendEmpty()
		for _, res := range []pcommon.Resource{rs.Resource(), rm.Resource(), rl.Resource()} {
			res.Attributes().PutStr("process.command_args", strings.Repeat("--option=value ", 100))
		}
		rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetSpanID(pcommon.SpanID{n})
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("megatron.training.loss")
		m.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(pcommon.Timestamp(n))
		rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetTimestamp(pcommon.Timestamp(n))
		text, _ := d.encoded(otlpJSON{})
		return strings.Split(strings.TrimSpace(text), "\n")
	}
	first, second := lines(1), lines(2)
	require.Len(t, first, 3)
	for i := range first {
		require.NotEqual(t, first[i][:1000], second[i][:1000])
	}
}

func TestCapturesComeBackFromOTLPJSON(t *testing.T) {
	for _, c := range testbed.Captures(t) {
		t.Run(c.Name, func(t *testing.T) {
			d := captured(t, c)
			text, faults := d.encoded(otlpJSON{})
			require.False(t, faults.any())
			requireSame(t, d, decoded(t, text))
		})
	}
}

// large is more than a line holds: of spans and points of one metric, in two scopes each.
func large() telemetry {
	d := telemetry{benchTraces(), pmetric.NewMetrics(), plog.NewLogs()}
	spans := d.traces.ResourceSpans().At(0).ScopeSpans()
	rm := d.metrics.ResourceMetrics().AppendEmpty()
	rm.SetSchemaUrl("https://example.com/schema")
	rl := d.logs.ResourceLogs().AppendEmpty()
	for scope := range 2 {
		if scope > 0 {
			spans.At(0).CopyTo(spans.AppendEmpty())
			spans.At(1).Scope().SetName("second")
		}
		bench := spans.At(scope).Spans()
		for range 2000 {
			bench.At(0).CopyTo(bench.AppendEmpty())
		}
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(spans.At(scope).Scope().Name())
		m := sm.Metrics().AppendEmpty()
		m.SetName("gpu.power")
		points := m.SetEmptySum().DataPoints()
		m.Sum().SetIsMonotonic(true)
		records := rl.ScopeLogs().AppendEmpty().LogRecords()
		for i := range 6000 {
			points.AppendEmpty().SetIntValue(int64(i))
			points.At(i).Attributes().PutStr("gpu.uuid", strings.Repeat("f", 100))
			records.AppendEmpty().Body().SetStr(strings.Repeat("log ", 40))
		}
	}
	return d
}

// TestLongRequestsGoOnInTheNextLine keeps lines below what the stock receiver reads whole.
func TestLongRequestsGoOnInTheNextLine(t *testing.T) {
	d := large()
	text, _ := d.encoded(otlpJSON{})
	for line := range strings.Lines(text) {
		require.Less(t, len(line), 600<<10)
	}
	got := decoded(t, text)
	require.Greater(t, got.traces.ResourceSpans().Len(), 2)
	require.Greater(t, got.metrics.ResourceMetrics().Len(), 2)
	require.Greater(t, got.logs.ResourceLogs().Len(), 2)
	requireSame(t, joined(d), joined(got))
}

// joined has neighbours that stand below an equal resource and scope below one: what the ends of lines parted.
func joined(d telemetry) telemetry {
	j := telemetry{ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()}
	for _, rs := range d.traces.ResourceSpans().All() {
		to := j.traces.ResourceSpans()
		if to.Len() == 0 || !to.At(to.Len()-1).Resource().Attributes().Equal(rs.Resource().Attributes()) {
			rs.Resource().CopyTo(to.AppendEmpty().Resource())
		}
		scopes := to.At(to.Len() - 1).ScopeSpans()
		for _, ss := range rs.ScopeSpans().All() {
			if scopes.Len() == 0 || scopes.At(scopes.Len()-1).Scope().Name() != ss.Scope().Name() {
				ss.Scope().CopyTo(scopes.AppendEmpty().Scope())
			}
			for _, span := range ss.Spans().All() {
				span.CopyTo(scopes.At(scopes.Len() - 1).Spans().AppendEmpty())
			}
		}
	}
	for _, rm := range d.metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			to := j.metrics.ResourceMetrics()
			if to.Len() == 0 || to.At(to.Len()-1).ScopeMetrics().At(0).Scope().Name() != sm.Scope().Name() {
				scope := to.AppendEmpty().ScopeMetrics().AppendEmpty()
				to.At(to.Len() - 1).SetSchemaUrl(rm.SchemaUrl())
				sm.Scope().CopyTo(scope.Scope())
				scope.Metrics().AppendEmpty().SetName(sm.Metrics().At(0).Name())
				scope.Metrics().At(0).SetEmptySum().SetIsMonotonic(sm.Metrics().At(0).Sum().IsMonotonic())
			}
			for _, p := range sm.Metrics().At(0).Sum().DataPoints().All() {
				p.CopyTo(to.At(to.Len() - 1).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().AppendEmpty())
			}
		}
	}
	records := j.logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, rl := range d.logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				record.CopyTo(records.AppendEmpty())
			}
		}
	}
	return j
}

// TestStockReceiverReadsOTLPJSON reads the exporter's files with contrib's otlp_json_file receiver, in its default configuration.
func TestStockReceiverReadsOTLPJSON(t *testing.T) {
	t.Run("every field and every capture", func(t *testing.T) {
		requests := []telemetry{full().withRecords()}
		for _, c := range testbed.Captures(t) {
			requests = append(requests, captured(t, c))
		}
		sent := gathered(requests)
		requireSame(t, sent, throughStockReceiver(t, requests, sent))
	})
	t.Run("requests of several lines", func(t *testing.T) {
		requests := []telemetry{large()}
		sent := gathered(requests)
		requireSame(t, joined(sent), joined(throughStockReceiver(t, requests, sent)))
	})
}

// gathered is a copy of all requests in one.
func gathered(requests []telemetry) telemetry {
	all := telemetry{ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()}
	for _, d := range requests {
		for _, rs := range d.traces.ResourceSpans().All() {
			rs.CopyTo(all.traces.ResourceSpans().AppendEmpty())
		}
		for _, rm := range d.metrics.ResourceMetrics().All() {
			rm.CopyTo(all.metrics.ResourceMetrics().AppendEmpty())
		}
		for _, rl := range d.logs.ResourceLogs().All() {
			rl.CopyTo(all.logs.ResourceLogs().AppendEmpty())
		}
	}
	return all
}

func throughStockReceiver(t *testing.T, requests []telemetry, sent telemetry) telemetry {
	t.Helper()
	folder := t.TempDir()
	cfg := testConfig(folder)
	cfg.Layout = LayoutOTLPJSON
	set := exportertest.NewNopSettings(metadata.Type)
	traces, err := NewFactory().CreateTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	metrics, err := NewFactory().CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	logs, err := NewFactory().CreateLogs(t.Context(), set, cfg)
	require.NoError(t, err)
	for _, e := range []component.Component{traces, metrics, logs} {
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	}
	for _, d := range requests {
		require.NoError(t, traces.ConsumeTraces(t.Context(), d.traces))
		require.NoError(t, metrics.ConsumeMetrics(t.Context(), d.metrics))
		require.NoError(t, logs.ConsumeLogs(t.Context(), d.logs))
	}
	for _, e := range []component.Component{traces, metrics, logs} {
		require.NoError(t, e.Shutdown(context.Background()))
	}

	var gotTraces consumertest.TracesSink
	var gotMetrics consumertest.MetricsSink
	var gotLogs consumertest.LogsSink
	factory := otlpjsonfilereceiver.NewFactory()
	receive := func(signal string) component.Config {
		cfg := factory.CreateDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(map[string]any{
			"include":           []string{filepath.Join(folder, signal+".jsonl")},
			"start_at":          "beginning",
			"include_file_name": false, // It would be put among the attributes.
			"poll_interval":     "10ms",
		}).Unmarshal(cfg))
		return cfg
	}
	rset := receivertest.NewNopSettings(factory.Type())
	fromTraces, err := factory.CreateTraces(t.Context(), rset, receive("traces"), &gotTraces)
	require.NoError(t, err)
	fromMetrics, err := factory.CreateMetrics(t.Context(), rset, receive("metrics"), &gotMetrics)
	require.NoError(t, err)
	fromLogs, err := factory.CreateLogs(t.Context(), rset, receive("logs"), &gotLogs)
	require.NoError(t, err)
	for _, r := range []component.Component{fromTraces, fromMetrics, fromLogs} {
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	}

	require.Eventually(t, func() bool {
		return gotTraces.SpanCount() >= sent.traces.SpanCount() && gotMetrics.DataPointCount() >= sent.metrics.DataPointCount() &&
			gotLogs.LogRecordCount() >= sent.logs.LogRecordCount()
	}, 30*time.Second, 10*time.Millisecond)
	var got []telemetry
	for _, td := range gotTraces.AllTraces() {
		got = append(got, telemetry{td, pmetric.NewMetrics(), plog.NewLogs()})
	}
	for _, md := range gotMetrics.AllMetrics() {
		got = append(got, telemetry{ptrace.NewTraces(), md, plog.NewLogs()})
	}
	for _, ld := range gotLogs.AllLogs() {
		got = append(got, telemetry{ptrace.NewTraces(), pmetric.NewMetrics(), ld})
	}
	return gathered(got)
}
