// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/testbed"
)

// telemetry is what requests hold.
type telemetry struct {
	traces  ptrace.Traces
	metrics pmetric.Metrics
	logs    plog.Logs
}

func captured(t *testing.T, c testbed.Capture) telemetry {
	t.Helper()
	d := telemetry{ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()}
	var traces ptrace.Unmarshaler = &ptrace.ProtoUnmarshaler{}
	var metrics pmetric.Unmarshaler = &pmetric.ProtoUnmarshaler{}
	var logs plog.Unmarshaler = &plog.ProtoUnmarshaler{}
	if c.JSON {
		traces, metrics, logs = &ptrace.JSONUnmarshaler{}, &pmetric.JSONUnmarshaler{}, &plog.JSONUnmarshaler{}
	}
	var err error
	switch c.Signal {
	case "traces":
		d.traces, err = traces.UnmarshalTraces(c.Body)
	case "metrics":
		d.metrics, err = metrics.UnmarshalMetrics(c.Body)
	case "logs":
		d.logs, err = logs.UnmarshalLogs(c.Body)
	}
	require.NoError(t, err, c.Name)
	return d
}

// add encodes all of it.
func (d telemetry) add(c *chunk, l layout) {
	for _, rs := range d.traces.ResourceSpans().All() {
		l.addSpans(c, rs)
	}
	for _, rm := range d.metrics.ResourceMetrics().All() {
		l.addMetrics(c, rm)
	}
	for _, rl := range d.logs.ResourceLogs().All() {
		l.addLogs(c, rl)
	}
}

// encoded is the lines that a layout makes of it, and the faults that were counted.
func (d telemetry) encoded(l layout) (string, faults) {
	c := new(chunk)
	d.add(c, l)
	return string(c.buf), c.faults
}

func full() telemetry { return telemetry{fullTraces(), fullMetrics(), fullLogs()} }

// holding puts attributes and bodies wherever OTLP has one.
func holding(put func(pcommon.Map)) telemetry {
	d := telemetry{ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()}
	rs := d.traces.ResourceSpans().AppendEmpty()
	put(rs.Resource().Attributes())
	ss := rs.ScopeSpans().AppendEmpty()
	put(ss.Scope().Attributes())
	span := ss.Spans().AppendEmpty()
	put(span.Attributes())
	put(span.Events().AppendEmpty().Attributes())
	put(span.Links().AppendEmpty().Attributes())

	rm := d.metrics.ResourceMetrics().AppendEmpty()
	put(rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	put(sm.Scope().Attributes())
	gauge := sm.Metrics().AppendEmpty()
	put(gauge.Metadata())
	number := gauge.SetEmptyGauge().DataPoints().AppendEmpty()
	put(number.Attributes())
	put(number.Exemplars().AppendEmpty().FilteredAttributes())
	put(sm.Metrics().AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty().Attributes())
	put(sm.Metrics().AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Attributes())
	put(sm.Metrics().AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty().Attributes())

	rl := d.logs.ResourceLogs().AppendEmpty()
	put(rl.Resource().Attributes())
	sl := rl.ScopeLogs().AppendEmpty()
	put(sl.Scope().Attributes())
	record := sl.LogRecords().AppendEmpty()
	put(record.Attributes())
	put(record.Body().SetEmptyMap())
	return d
}

// TestEveryLayoutSurvivesHostileValues sends what would crash or fool a naive encoder, everywhere at once.
func TestEveryLayoutSurvivesHostileValues(t *testing.T) {
	deep := func(depth int) func(pcommon.Map) {
		return func(m pcommon.Map) {
			v := m.PutEmpty("deep")
			for i := range depth {
				if i%2 == 0 {
					v = v.SetEmptySlice().AppendEmpty()
				} else {
					v = v.SetEmptyMap().PutEmpty("k")
				}
			}
			v.SetStr("bottom")
		}
	}
	// otlp_json writes all that stands in holding; console has no attributes of scopes but those of metrics, and no metadata.
	const otlpPlaces, consolePlaces = 17, 14
	for _, l := range []struct {
		name   string
		layout layout
		places int
	}{{"console", console{}, consolePlaces}, {"otlp_json", otlpJSON{}, otlpPlaces}} {
		for _, tt := range []struct {
			name          string
			put           func(pcommon.Map)
			cut, repaired int // in each place
			key           string
			want          string
		}{
			{"depth 64 is whole", deep(63), 0, 0, "", "bottom"},
			{"depth 10,000", deep(10_000), 1, 0, "k", "[cut: nested deeper than 64]"},
			{"not UTF-8", func(m pcommon.Map) { m.PutStr("bad\xff", "x\xfe\xfd") }, 0, 2, "bad\xff", "x\uFFFD\uFFFD"},
			{"line ends", func(m pcommon.Map) { m.PutStr("k", "a\nb\r\u0085c\u2028\u2029\x00\x7f") }, 0, 0, "", "a\nb\r\u0085c\u2028\u2029\x00\x7f"},
		} {
			t.Run(l.name+" "+tt.name, func(t *testing.T) {
				text, faults := holding(tt.put).encoded(l.layout)
				require.Equal(t, tt.cut*l.places, faults.cut)
				require.Equal(t, tt.repaired*l.places, faults.repaired)
				require.Equal(t, tt.key, faults.key)
				found := 0
				for line := range strings.Lines(text) {
					require.True(t, strings.HasSuffix(line, "}\n"))
					require.NotContains(t, line, "\u0085")
					require.NotContains(t, line, "\u2028")
					var object map[string]any
					require.NoError(t, json.Unmarshal([]byte(line), &object), "%s", line)
					found += count(object, tt.want)
				}
				require.Equal(t, l.places, found)
			})
		}
		t.Run(l.name+" depth 700,000", func(t *testing.T) {
			d := telemetry{ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()}
			deep(700_000)(d.traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes())
			text, faults := d.encoded(l.layout)
			require.Equal(t, 1, faults.cut)
			require.Less(t, len(text), 10_000)
			require.True(t, json.Valid([]byte(text)))
		})
	}
}

// count tells how often a text stands in an object.
func count(v any, text string) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			n += count(member, text)
		}
	case []any:
		for _, item := range v {
			n += count(item, text)
		}
	case string:
		if v == text {
			n++
		}
	}
	return n
}

// TestNoLinesWithoutRecords holds for every layout.
func TestNoLinesWithoutRecords(t *testing.T) {
	d := telemetry{ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()}
	d.traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	d.metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge()
	d.logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	for _, l := range []layout{&compact{}, console{}, otlpJSON{}} {
		c := new(chunk)
		d.add(c, l)
		require.Empty(t, c.buf)
		require.Empty(t, c.parts)
	}
}

// TestLayoutOption is what a config's layout leads to.
func TestLayoutOption(t *testing.T) {
	for name, want := range map[Layout]layout{LayoutCompact: &compact{}, LayoutConsole: console{}, LayoutOTLPJSON: otlpJSON{}} {
		cfg := createDefaultConfig().(*Config)
		cfg.Layout = name
		require.NoError(t, cfg.Validate())
		require.IsType(t, want, cfg.newLayout())
	}
}

// TestLayoutsAllocateNothingOnceWarm but what is rare: exemplars' ids as integers, and trace states.
func TestLayoutsAllocateNothingOnceWarm(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d := telemetry{benchTraces(), pmetric.NewMetrics(), plog.NewLogs()}
	for _, l := range []layout{console{}, otlpJSON{}} {
		c := new(chunk)
		encode := func() {
			c.buf, c.parts = c.buf[:0], c.parts[:0]
			d.add(c, l)
		}
		encode()
		require.Zero(t, testing.AllocsPerRun(10, encode))
	}
}
