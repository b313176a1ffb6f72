// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const hf = "hf_aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3f"

// dirty has a secret by key and one by pattern, in itself, in a list and in a map in a list.
func dirty(m pcommon.Map) {
	_ = m.FromRaw(map[string]any{
		"prompt": "say it", "keep": "plain", "tokens": int64(7), "command": "run " + hf,
		"list": []any{hf, int64(1), map[string]any{"password": "p", "deep": hf}},
		"text": []any{"a", int64(2), map[string]any{"x": "b"}}, "key": []byte("raw"),
	})
}

var clean = map[string]any{
	"prompt": Redacted, "keep": "plain", "tokens": int64(7), "command": "run " + Redacted,
	"list": []any{Redacted, int64(1), map[string]any{"password": Redacted, "deep": Redacted}},
	"text": []any{Redacted, int64(2), map[string]any{"x": Redacted}}, "key": Redacted,
}

// 5 texts under keys and 3 that are found, in each of the maps that dirty fills
func requireCounts(t *testing.T, maps, texts int64, counts Counts) {
	require.Equal(t, []int64{5 * maps, 0, 3*maps + texts}, []int64(counts))
}

func TestEveryPlaceOfASpan(t *testing.T) {
	rs := ptrace.NewResourceSpans()
	ss := rs.ScopeSpans().AppendEmpty()
	span := ss.Spans().AppendEmpty()
	event, link := span.Events().AppendEmpty(), span.Links().AppendEmpty()
	places := map[string]pcommon.Map{
		"resource": rs.Resource().Attributes(), "scope": ss.Scope().Attributes(), "span": span.Attributes(), "event": event.Attributes(), "link": link.Attributes(),
	}
	for _, m := range places {
		dirty(m)
	}
	span.SetName("get " + hf)
	span.Status().SetMessage("no " + hf)
	event.SetName(hf)
	ss.Scope().SetName("scope " + hf)
	ss.Scope().SetVersion(hf)
	span.TraceState().FromRaw("a=" + hf + ",b=1")
	link.TraceState().FromRaw("a=" + hf)

	r := redactor(t, "huggingface")
	counts := r.NewCounts()
	r.Spans(rs, counts)
	for place, m := range places {
		require.Equal(t, clean, m.AsRaw(), place)
	}
	require.Equal(t, "get "+Redacted, span.Name())
	require.Equal(t, "no "+Redacted, span.Status().Message())
	require.Equal(t, Redacted, event.Name())
	require.Equal(t, "scope "+Redacted, ss.Scope().Name())
	require.Equal(t, Redacted, ss.Scope().Version())
	require.Equal(t, "a="+Redacted+",b=1", span.TraceState().AsRaw())
	require.Equal(t, "a="+Redacted, link.TraceState().AsRaw())
	requireCounts(t, 5, 7, counts)

	again := r.NewCounts()
	r.Spans(rs, again)
	require.Equal(t, r.NewCounts(), again, "what is redacted is not redacted again")
}

func TestEveryPlaceOfAMetric(t *testing.T) {
	rm := pmetric.NewResourceMetrics()
	sm := rm.ScopeMetrics().AppendEmpty()
	places := map[string]pcommon.Map{"resource": rm.Resource().Attributes(), "scope": sm.Scope().Attributes()}
	sm.Scope().SetName(hf)
	m := sm.Metrics().AppendEmpty()
	m.SetName("m." + hf)
	m.SetDescription("of " + hf)
	places["metadata"] = m.Metadata()
	gauge := m.SetEmptyGauge().DataPoints().AppendEmpty()
	places["gauge"], places["exemplar"] = gauge.Attributes(), gauge.Exemplars().AppendEmpty().FilteredAttributes()
	places["sum"] = sm.Metrics().AppendEmpty().SetEmptySum().DataPoints().AppendEmpty().Attributes()
	places["histogram"] = sm.Metrics().AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty().Attributes()
	places["exponential histogram"] = sm.Metrics().AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Attributes()
	places["summary"] = sm.Metrics().AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty().Attributes()
	sm.Metrics().AppendEmpty() // of no type
	for _, m := range places {
		dirty(m)
	}
	r := redactor(t, "huggingface")
	counts := r.NewCounts()
	r.Metrics(rm, counts)
	for place, m := range places {
		require.Equal(t, clean, m.AsRaw(), place)
	}
	require.Equal(t, []string{Redacted, "m." + Redacted, "of " + Redacted}, []string{sm.Scope().Name(), m.Name(), m.Description()})
	requireCounts(t, int64(len(places)), 3, counts)
}

func TestEveryPlaceOfALogRecord(t *testing.T) {
	rl := plog.NewResourceLogs()
	sl := rl.ScopeLogs().AppendEmpty()
	mapBody, textBody := sl.LogRecords().AppendEmpty(), sl.LogRecords().AppendEmpty()
	places := map[string]pcommon.Map{
		"resource": rl.Resource().Attributes(), "scope": sl.Scope().Attributes(), "record": mapBody.Attributes(), "body": mapBody.Body().SetEmptyMap(),
	}
	for _, m := range places {
		dirty(m)
	}
	textBody.Body().SetStr("log " + hf)
	textBody.SetEventName("on " + hf)
	textBody.SetSeverityText(hf)
	sl.Scope().SetName(hf)
	r := redactor(t, "huggingface")
	counts := r.NewCounts()
	r.Logs(rl, counts)
	for place, m := range places {
		require.Equal(t, clean, m.AsRaw(), place)
	}
	require.Equal(t, "log "+Redacted, textBody.Body().Str())
	require.Equal(t, []string{"on " + Redacted, Redacted, Redacted}, []string{textBody.EventName(), textBody.SeverityText(), sl.Scope().Name()})
	requireCounts(t, 4, 4, counts)
}

// What lies too deep to be looked at does not go on; what is at the limit does.
func TestDepthIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		depth int
		cut   int64
	}{{"at the limit", maxDepth, 0}, {"below it", maxDepth + 1, 1}, {"far below it", 10_000, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			m := pcommon.NewMap()
			list := m.PutEmptySlice("list") // depth 2
			for range tt.depth - 2 {
				list = list.AppendEmpty().SetEmptySlice()
			}
			list.AppendEmpty().SetStr(hf)
			r := redactor(t, "huggingface")
			counts := r.NewCounts()
			r.Map(m, counts)
			require.Equal(t, tt.cut, counts[byDepth])
			require.Equal(t, 1-tt.cut, counts[2])
			v, _ := m.Get("list")
			for v.Type() == pcommon.ValueTypeSlice {
				v = v.Slice().At(0)
			}
			require.Equal(t, Redacted, v.Str())
		})
	}
}

func TestNothingToRedactCostsNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has pools forget what they hold")
	}
	r := redactor(t, Ready()...)
	rs := ptrace.NewResourceSpans()
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("megatron.train.iteration")
	require.NoError(t, span.Attributes().FromRaw(map[string]any{
		"megatron.iteration": 5, "note": strings.Repeat("all is well ", 100), "list": []any{"a", map[string]any{"b": "c"}}, "wandb": "wandb/run-1 user@host",
	}))
	counts := r.NewCounts()
	require.Zero(t, testing.AllocsPerRun(100, func() { r.Spans(rs, counts) }))
}
