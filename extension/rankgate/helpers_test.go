// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc/mem"

	"github.com/lenscol/lenscol/extension/rankgate/internal/metadata"
	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/processor/rankfilter"
)

func conf(t testing.TB, yaml string) *confmap.Conf {
	raw, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	c, err := raw.AsConf()
	require.NoError(t, err)
	return c
}

func newTestGate(t testing.TB, yaml string) (*gate, *componenttest.Telemetry) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf(t, yaml).Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	tel := componenttest.NewTelemetry()
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	g, err := newGate(set, cfg)
	require.NoError(t, err)
	return g, tel
}

// decode has pdata decode a request and encodes it again, so that what is not decoded does not count.
func decode(signal ranks.Signal, request []byte) ([]byte, error) {
	switch signal {
	case ranks.Traces:
		r := ptraceotlp.NewExportRequest()
		if err := r.UnmarshalProto(request); err != nil {
			return nil, err
		}
		return r.MarshalProto()
	case ranks.Metrics:
		r := pmetricotlp.NewExportRequest()
		if err := r.UnmarshalProto(request); err != nil {
			return nil, err
		}
		return r.MarshalProto()
	default:
		r := plogotlp.NewExportRequest()
		if err := r.UnmarshalProto(request); err != nil {
			return nil, err
		}
		return r.MarshalProto()
	}
}

// reference is rank_filter behind the decoder.
type reference struct {
	tel     *componenttest.Telemetry
	consume [ranks.Signals]func(t testing.TB, request []byte) []byte // what goes on, encoded
}

func newReference(t testing.TB, yaml string) *reference {
	r := &reference{tel: componenttest.NewTelemetry()}
	factory := rankfilter.NewFactory()
	set := processortest.NewNopSettings(factory.Type())
	set.TelemetrySettings = r.tel.NewTelemetrySettings()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, conf(t, yaml).Unmarshal(cfg))

	var spans consumertest.TracesSink
	traces, err := factory.CreateTraces(context.Background(), set, cfg, &spans)
	require.NoError(t, err)
	r.consume[ranks.Traces] = func(t testing.TB, request []byte) []byte {
		spans.Reset()
		in := ptraceotlp.NewExportRequest()
		require.NoError(t, in.UnmarshalProto(request))
		require.NoError(t, traces.ConsumeTraces(context.Background(), in.Traces()))
		out := ptrace.NewTraces()
		for _, td := range spans.AllTraces() {
			out = td
		}
		b, err := ptraceotlp.NewExportRequestFromTraces(out).MarshalProto()
		require.NoError(t, err)
		return b
	}
	var points consumertest.MetricsSink
	metrics, err := factory.CreateMetrics(context.Background(), set, cfg, &points)
	require.NoError(t, err)
	r.consume[ranks.Metrics] = func(t testing.TB, request []byte) []byte {
		points.Reset()
		in := pmetricotlp.NewExportRequest()
		require.NoError(t, in.UnmarshalProto(request))
		require.NoError(t, metrics.ConsumeMetrics(context.Background(), in.Metrics()))
		out := pmetric.NewMetrics()
		for _, md := range points.AllMetrics() {
			out = md
		}
		b, err := pmetricotlp.NewExportRequestFromMetrics(out).MarshalProto()
		require.NoError(t, err)
		return b
	}
	var records consumertest.LogsSink
	logs, err := factory.CreateLogs(context.Background(), set, cfg, &records)
	require.NoError(t, err)
	r.consume[ranks.Logs] = func(t testing.TB, request []byte) []byte {
		records.Reset()
		in := plogotlp.NewExportRequest()
		require.NoError(t, in.UnmarshalProto(request))
		require.NoError(t, logs.ConsumeLogs(context.Background(), in.Logs()))
		out := plog.NewLogs()
		for _, ld := range records.AllLogs() {
			out = ld
		}
		b, err := plogotlp.NewExportRequestFromLogs(out).MarshalProto()
		require.NoError(t, err)
		return b
	}
	return r
}

// counts are the sums of a component's metrics by name, without the component's prefix, and attributes.
func counts(t testing.TB, tel *componenttest.Telemetry) map[string]int64 {
	out := map[string]int64{}
	var rm metricdata.ResourceMetrics
	require.NoError(t, tel.Reader.Collect(context.Background(), &rm))
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			name, ok := strings.CutPrefix(m.Name, "otelcol_extension_rank_gate_")
			if !ok {
				if name, ok = strings.CutPrefix(m.Name, "otelcol_processor_rank_filter_"); !ok {
					continue
				}
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				out[name+" "+p.Attributes.Encoded(attribute.DefaultEncoder())] += p.Value
			}
		}
	}
	return out
}

// each calls f with every field of a message.
func each(message []byte, f func(field int32, whole, content []byte)) {
	for in := (fields{rest: message}); in.next(); {
		f(in.number, in.whole, in.content)
	}
}

// pieces is a request as it comes from a connection.
func pieces(request []byte) mem.BufferSlice {
	half := len(request) / 2
	return mem.BufferSlice{mem.SliceBuffer(request[:half]), mem.SliceBuffer(request[half:])}
}

// sift is what the gate makes of a request that is then accepted.
func sift(g *gate, signal ranks.Signal, request []byte) (kept []byte) {
	g.sift(signal, pieces(request), func(b []byte, o outcome) {
		kept = append(kept, b...)
		g.settle(context.Background(), o, true)
	})
	return kept
}

func identify(r pcommon.Resource, rank, world int) {
	r.Attributes().PutStr("service.name", "megatron")
	r.Attributes().PutInt("dl.rank", int64(rank))
	r.Attributes().PutInt("dl.world_size", int64(world))
}

// request is a request of each signal with one resource for each rank of the world, and in it a healthy item, one with
// an error and one that is a checkpoint's.
func request(t testing.TB, signal ranks.Signal, world int) []byte {
	var b []byte
	var err error
	switch signal {
	case ranks.Traces:
		td := ptrace.NewTraces()
		for rank := range world {
			rs := td.ResourceSpans().AppendEmpty()
			rs.SetSchemaUrl("https://opentelemetry.io/schemas/1.29.0")
			identify(rs.Resource(), rank, world)
			for i, name := range []string{"step", "backward", "a.checkpoint.save"} {
				ss := rs.ScopeSpans().AppendEmpty()
				ss.Scope().SetName("nemo.lens")
				s := ss.Spans().AppendEmpty()
				s.SetName(name)
				s.SetTraceID(pcommon.TraceID{1, byte(rank)})
				s.SetSpanID(pcommon.SpanID{2, byte(i)})
				s.SetFlags(0x301)
				s.Attributes().PutEmptyMap("map").PutEmptySlice("list").AppendEmpty().SetDouble(1.5)
				s.Events().AppendEmpty().SetName("event")
				s.Links().AppendEmpty().SetTraceID(pcommon.TraceID{3})
				if i == 1 {
					s.Status().SetCode(ptrace.StatusCodeError)
				}
			}
		}
		b, err = ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	case ranks.Metrics:
		md := pmetric.NewMetrics()
		for rank := range world {
			rm := md.ResourceMetrics().AppendEmpty()
			identify(rm.Resource(), rank, world)
			ms := rm.ScopeMetrics().AppendEmpty().Metrics()
			gauge := ms.AppendEmpty().SetEmptyGauge().DataPoints()
			gauge.AppendEmpty().SetIntValue(-1)
			gauge.AppendEmpty().Exemplars().AppendEmpty().SetDoubleValue(2)
			sum := ms.AppendEmpty().SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.DataPoints().AppendEmpty().SetDoubleValue(2)
			histogram := ms.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty()
			histogram.BucketCounts().FromRaw([]uint64{1, 2})
			histogram.ExplicitBounds().FromRaw([]float64{1})
			exponential := ms.AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
			exponential.Positive().BucketCounts().FromRaw([]uint64{1, 300})
			ms.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty().QuantileValues().AppendEmpty().SetQuantile(.5)
		}
		b, err = pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	default:
		ld := plog.NewLogs()
		for rank := range world {
			rl := ld.ResourceLogs().AppendEmpty()
			identify(rl.Resource(), rank, world)
			for _, severity := range []plog.SeverityNumber{plog.SeverityNumberInfo, plog.SeverityNumberError, plog.SeverityNumberFatal} {
				lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
				lr.SetSeverityNumber(severity)
				lr.Body().SetStr("text")
				lr.SetTraceID(pcommon.TraceID{1})
			}
		}
		b, err = plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	}
	require.NoError(t, err)
	return b
}

// capture is a request that a real program sent.
type capture struct {
	name   string
	signal ranks.Signal
	json   bool
	body   []byte
}

func captures(t testing.TB) []capture {
	var out []capture
	root := filepath.Join("..", "..", "testdata", "captures")
	require.NoError(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		ext := filepath.Ext(path)
		base := strings.TrimSuffix(filepath.Base(path), ext)
		for signal, name := range signalNames {
			if !strings.HasSuffix(base, "-"+name) || ext != ".pb" && ext != ".json" {
				continue
			}
			body, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(root, path)
			out = append(out, capture{rel, ranks.Signal(signal), ext == ".json", body})
		}
		return nil
	}))
	require.Greater(t, len(out), 100)
	return out
}

var signalNames = [ranks.Signals]string{"traces", "metrics", "logs"}

// rules are configs that between them use every strategy and every setting.
var rules = []string{
	"{strategy: all_ranks}",
	"{}",
	"{strategy: single_rank, export_rank: 1, missing: drop}",
	"{strategy: sampled, rate: 0.25, at_least_one: true}",
	"{strategy: first_rank_per_node, ranks_per_node: 2}",
	"{strategy: ranks, ranks: '0,-1', keep_errors: true}",
	"{strategy: per_group, group: {per: [pp], sizes: {pp: 2}}, keep_names: ['*checkpoint*', '*step']}",
	"{strategy: ranks, ranks: '999', missing: drop, keep_errors: true, keep_names: ['*e*']}",
	"{strategy: ranks, ranks: '999', missing: drop}",
	"{metrics: {strategy: all_ranks}, world_size: 4, overrides: [{service: 'mega*', strategy: ranks, ranks: '0-3/2'}, {run: '?*', strategy: all_ranks}]}",
}

// ruleNames are the strategies that rules use, to be compared with all there are.
func ruleNames() string { return fmt.Sprint(rules) }
