// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/lenscol/lenscol/internal/sharing"
	"github.com/lenscol/lenscol/processor/rankfilter/internal/metadata"
	"github.com/lenscol/lenscol/processor/rankfilter/internal/metadatatest"
)

func config(t testing.TB, yaml string) *Config {
	raw, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := raw.AsConf()
	require.NoError(t, err)
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

// A variable that is set and empty is one that is not set, as in NeMo Lens: neither rank 0 nor a rate of 0.
func TestEmptyVariables(t *testing.T) {
	for _, name := range []string{"STRATEGY", "EXPORT_RANK", "RATE"} {
		t.Setenv(name, "")
	}
	r, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"yaml:{strategy: '${env:STRATEGY:-sampled}', export_rank: '${env:EXPORT_RANK:-3}', rate: '${env:RATE:-0.5}'}"},
		ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory(), envprovider.NewFactory()},
		DefaultScheme:     "yaml",
	})
	require.NoError(t, err)
	conf, err := r.Resolve(t.Context())
	require.NoError(t, err)
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.Equal(t, NewFactory().CreateDefaultConfig(), cfg)
}

// rig is a filter of each signal with its sinks and its telemetry.
type rig struct {
	tel     *componenttest.Telemetry
	traces  processor.Traces
	metrics processor.Metrics
	logs    processor.Logs
	spans   consumertest.TracesSink
	points  consumertest.MetricsSink
	records consumertest.LogsSink
}

func newRig(t testing.TB, yaml string) *rig {
	r := &rig{tel: componenttest.NewTelemetry()}
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = r.tel.NewTelemetrySettings()
	cfg := config(t, yaml)
	var err error
	r.traces, err = NewFactory().CreateTraces(t.Context(), set, cfg, &r.spans)
	require.NoError(t, err)
	r.metrics, err = NewFactory().CreateMetrics(t.Context(), set, cfg, &r.points)
	require.NoError(t, err)
	r.logs, err = NewFactory().CreateLogs(t.Context(), set, cfg, &r.records)
	require.NoError(t, err)
	return r
}

// names of the spans that went on, in order, as rank:name.
func (r *rig) names() []string {
	var out []string
	for _, td := range r.spans.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			rank, ok := rs.Resource().Attributes().Get("dl.rank")
			if !ok {
				rank = pcommon.NewValueEmpty()
			}
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					out = append(out, rank.AsString()+":"+s.Name())
				}
			}
		}
	}
	return out
}

func point(n int64, strategy, reason string) metricdata.DataPoint[int64] {
	return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("strategy", strategy), attribute.String("reason", reason))}
}

var ignore = metricdatatest.IgnoreTimestamp()

func identify(r pcommon.Resource, rank, world int) {
	r.Attributes().PutStr("service.name", "megatron")
	r.Attributes().PutInt("dl.rank", int64(rank))
	r.Attributes().PutInt("dl.world_size", int64(world))
}

// world is a batch with one resource a rank, each with the named spans; "!" in front of a name gives error status.
func world(size int, names ...string) ptrace.Traces {
	td := ptrace.NewTraces()
	for rank := range size {
		rs := td.ResourceSpans().AppendEmpty()
		rs.SetSchemaUrl("schema")
		identify(rs.Resource(), rank, size)
		for i, name := range names {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(fmt.Sprint("scope", i))
			s := ss.Spans().AppendEmpty()
			if strings.HasPrefix(name, "!") {
				s.Status().SetCode(ptrace.StatusCodeError)
			}
			s.SetName(strings.TrimPrefix(name, "!"))
		}
	}
	return td
}

// without takes a resource attribute out of a batch; "" takes all.
func without(key string, td ptrace.Traces) ptrace.Traces {
	for _, rs := range td.ResourceSpans().All() {
		rs.Resource().Attributes().RemoveIf(func(k string, _ pcommon.Value) bool { return key == "" || k == key })
	}
	return td
}

func TestTraces(t *testing.T) {
	spans := []string{"step", "!backward", "a.checkpoint.save"}
	tests := []struct {
		name          string
		yaml          string
		in            ptrace.Traces
		want          []string
		kept, dropped []metricdata.DataPoint[int64]
	}{
		{
			name: "all", yaml: "{strategy: all_ranks}", in: world(2, "step"), want: []string{"0:step", "1:step"},
			kept: []metricdata.DataPoint[int64]{point(2, "all_ranks", "rank")},
		},
		{
			name: "the last of four", yaml: "{}", in: world(4, "step"), want: []string{"3:step"},
			kept: []metricdata.DataPoint[int64]{point(1, "single_rank", "rank")}, dropped: []metricdata.DataPoint[int64]{point(3, "single_rank", "rank")},
		},
		{
			name: "the first two of four", yaml: "{strategy: ranks, ranks: 0-1}", in: world(4, "step"), want: []string{"0:step", "1:step"},
			kept: []metricdata.DataPoint[int64]{point(2, "ranks", "rank")}, dropped: []metricdata.DataPoint[int64]{point(2, "ranks", "rank")},
		},
		{
			name: "first and last", yaml: "{strategy: ranks, ranks: '0,-1'}", in: world(4, "step"), want: []string{"0:step", "3:step"},
			kept: []metricdata.DataPoint[int64]{point(2, "ranks", "rank")}, dropped: []metricdata.DataPoint[int64]{point(2, "ranks", "rank")},
		},
		{
			name: "errors of all ranks", yaml: "{keep_errors: true}", in: world(2, spans...), want: []string{"0:backward", "1:step", "1:backward", "1:a.checkpoint.save"},
			kept:    []metricdata.DataPoint[int64]{point(1, "single_rank", "error"), point(3, "single_rank", "rank")},
			dropped: []metricdata.DataPoint[int64]{point(2, "single_rank", "rank")},
		},
		{
			name: "names and errors of all ranks", yaml: "{keep_errors: true, keep_names: ['*checkpoint*']}", in: world(2, spans...),
			want:    []string{"0:backward", "0:a.checkpoint.save", "1:step", "1:backward", "1:a.checkpoint.save"},
			kept:    []metricdata.DataPoint[int64]{point(1, "single_rank", "error"), point(1, "single_rank", "name"), point(3, "single_rank", "rank")},
			dropped: []metricdata.DataPoint[int64]{point(1, "single_rank", "rank")},
		},
		{
			name: "a rank without a world size", yaml: "{}", in: without("dl.world_size", world(1, "step")), want: []string{"0:step"},
			kept: []metricdata.DataPoint[int64]{point(1, "single_rank", "no_world_size")},
		},
		{
			name: "no rank, dropped", yaml: "{missing: drop}", in: without("dl.rank", world(1, "step")),
			dropped: []metricdata.DataPoint[int64]{point(1, "single_rank", "no_rank")},
		},
		{
			name: "a resource without attributes", yaml: "{}", in: without("", world(1, "step")), want: []string{":step"},
			kept: []metricdata.DataPoint[int64]{point(1, "single_rank", "no_rank")},
		},
		{
			name: "span groups", yaml: "{strategy: all_ranks, span_groups: step, keep_errors: true}",
			in:      world(1, "megatron.train.iteration", "megatron.checkpoint.save", "!megatron.evaluate", "mine"),
			want:    []string{"0:megatron.train.iteration", "0:megatron.evaluate", "0:mine"},
			kept:    []metricdata.DataPoint[int64]{point(2, "all_ranks", "rank"), point(1, "all_ranks", "error")},
			dropped: []metricdata.DataPoint[int64]{point(1, "all_ranks", "span_group")},
		},
		{
			name: "HTTP spans of a service that is no Gym's", yaml: "{strategy: all_ranks, span_groups: per_step}",
			in: world(1, "POST /v1/chat/completions", "gym.startup"), want: []string{"0:POST /v1/chat/completions"},
			kept: []metricdata.DataPoint[int64]{point(1, "all_ranks", "rank")}, dropped: []metricdata.DataPoint[int64]{point(1, "all_ranks", "span_group")},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.yaml)
			require.NoError(t, r.traces.ConsumeTraces(t.Context(), tt.in))
			require.Equal(t, tt.want, r.names())
			if tt.kept != nil {
				metadatatest.AssertEqualProcessorRankFilterKeptSpans(t, r.tel, tt.kept, ignore)
			}
			if tt.dropped != nil {
				metadatatest.AssertEqualProcessorRankFilterDroppedSpans(t, r.tel, tt.dropped, ignore)
			}
		})
	}
}

func TestHTTPSpansOfAGymAreItsGroups(t *testing.T) {
	td := world(1, "POST /run", "gym.rollout", "HTTP POST")
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", "nemo-gym/simple_agent")
	r := newRig(t, "{span_groups: 'rollout,http_client'}")
	require.NoError(t, r.traces.ConsumeTraces(t.Context(), td))
	require.Equal(t, []string{"0:gym.rollout", "0:HTTP POST"}, r.names())
}

// A scope without a span that goes on is left out; resource, scope and schema of the others stay.
func TestPickedSpansKeepTheirSurroundings(t *testing.T) {
	r := newRig(t, "{keep_errors: true}")
	require.NoError(t, r.traces.ConsumeTraces(t.Context(), world(2, "step", "!backward")))
	rs := r.spans.AllTraces()[0].ResourceSpans().At(0)
	require.Equal(t, "schema", rs.SchemaUrl())
	rank, _ := rs.Resource().Attributes().Get("dl.rank")
	require.EqualValues(t, 0, rank.Int())
	require.Equal(t, 1, rs.ScopeSpans().Len())
	require.Equal(t, "scope1", rs.ScopeSpans().At(0).Scope().Name())
}

// pointWorld is a batch with one resource a rank, each with five points and a metric without any.
func pointWorld(size int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for rank := range size {
		rm := md.ResourceMetrics().AppendEmpty()
		identify(rm.Resource(), rank, size)
		ms := rm.ScopeMetrics().AppendEmpty().Metrics()
		ms.AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
		ms.AppendEmpty().SetEmptySum().DataPoints().AppendEmpty()
		ms.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty()
		ms.AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
		ms.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty()
		ms.AppendEmpty()
	}
	return md
}

func TestMetrics(t *testing.T) {
	md := pointWorld(2)
	r := newRig(t, "{strategy: all_ranks, metrics: {strategy: single_rank}, keep_errors: true}")
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), md))
	require.Equal(t, 5, r.points.DataPointCount())
	metadatatest.AssertEqualProcessorRankFilterKeptPoints(t, r.tel, []metricdata.DataPoint[int64]{point(5, "single_rank", "rank")}, ignore)
	metadatatest.AssertEqualProcessorRankFilterDroppedPoints(t, r.tel, []metricdata.DataPoint[int64]{point(5, "single_rank", "rank")}, ignore)
}

func logWorld(size int, severities ...plog.SeverityNumber) plog.Logs {
	ld := plog.NewLogs()
	for rank := range size {
		rl := ld.ResourceLogs().AppendEmpty()
		identify(rl.Resource(), rank, size)
		for _, severity := range severities {
			lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			lr.SetSeverityNumber(severity)
		}
	}
	return ld
}

func TestLogs(t *testing.T) {
	r := newRig(t, "{keep_errors: true}")
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), logWorld(2, plog.SeverityNumberInfo, plog.SeverityNumberError, plog.SeverityNumberFatal)))
	require.Equal(t, 5, r.records.LogRecordCount())
	metadatatest.AssertEqualProcessorRankFilterKeptRecords(t, r.tel, []metricdata.DataPoint[int64]{point(2, "single_rank", "error"), point(3, "single_rank", "rank")}, ignore)
	metadatatest.AssertEqualProcessorRankFilterDroppedRecords(t, r.tel, []metricdata.DataPoint[int64]{point(1, "single_rank", "rank")}, ignore)
}

func TestAnEmptiedBatchEndsWithoutAnError(t *testing.T) {
	r := newRig(t, `{strategy: ranks, ranks: "99"}`)
	require.NoError(t, r.traces.ConsumeTraces(t.Context(), world(8, "step")))
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), logWorld(8, plog.SeverityNumberInfo)))
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), pmetric.NewMetrics()))
	require.Empty(t, r.spans.AllTraces())
	require.Empty(t, r.records.AllLogs())
	require.Empty(t, r.points.AllMetrics())
}

// What the next consumer refuses comes again, and counts when it is accepted. What ends here is refused by nobody.
func TestRefusedBatchesCountNothing(t *testing.T) {
	refusal := errors.New("refused")
	next := consumertest.NewErr(refusal)
	tel := componenttest.NewTelemetry()
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	cfg := config(t, "{span_groups: step}")
	spans, err := NewFactory().CreateTraces(t.Context(), set, cfg, next)
	require.NoError(t, err)
	points, err := NewFactory().CreateMetrics(t.Context(), set, cfg, next)
	require.NoError(t, err)
	records, err := NewFactory().CreateLogs(t.Context(), set, cfg, next)
	require.NoError(t, err)
	td := world(2, "megatron.train.iteration", "mine")
	td.ResourceSpans().At(1).Resource().Attributes().PutInt("nv.dl.rank", 1)
	td.ResourceSpans().At(0).Resource().Attributes().PutInt("nv.dl.rank", 1)
	for range 3 {
		require.ErrorIs(t, spans.ConsumeTraces(t.Context(), td), refusal)
		require.ErrorIs(t, points.ConsumeMetrics(t.Context(), pointWorld(2)), refusal)
		require.ErrorIs(t, records.ConsumeLogs(t.Context(), logWorld(2, plog.SeverityNumberInfo)), refusal)
	}
	require.Empty(t, ownMetrics(t, tel))

	onlyDropped := world(2, "step")
	onlyDropped.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		rank, _ := rs.Resource().Attributes().Get("dl.rank")
		return rank.Int() == 1
	})
	require.NoError(t, spans.ConsumeTraces(t.Context(), onlyDropped))
	require.Equal(t, []string{"otelcol_processor_rank_filter_dropped_spans"}, ownMetrics(t, tel))

	r := newRig(t, "{span_groups: step}")
	require.NoError(t, r.traces.ConsumeTraces(t.Context(), td))
	require.Equal(t, []string{
		"otelcol_processor_rank_filter_disagreements", "otelcol_processor_rank_filter_kept_spans", "otelcol_processor_rank_filter_unknown_span_names",
	}, ownMetrics(t, r.tel))
}

// ownMetrics are the names of the filter's metrics that have counted something, sorted.
func ownMetrics(t testing.TB, tel *componenttest.Telemetry) (names []string) {
	var rm metricdata.ResourceMetrics
	require.NoError(t, tel.Reader.Collect(t.Context(), &rm))
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			if strings.HasPrefix(m.Name, "otelcol_processor_rank_filter_") {
				names = append(names, m.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func TestDisagreementIsCounted(t *testing.T) {
	td := world(2, "step")
	td.ResourceSpans().At(0).Resource().Attributes().PutInt("nv.dl.rank", 1)
	r := newRig(t, "{}")
	require.NoError(t, r.traces.ConsumeTraces(t.Context(), td))
	require.Equal(t, 2, r.spans.SpanCount(), "the new name wins: both are rank 1")
	metadatatest.AssertEqualProcessorRankFilterDisagreements(t, r.tel, []metricdata.DataPoint[int64]{{Value: 1}}, ignore)
}

// Whether pdata lets resources be shared or not, whether the batch is read-only or not: the batch that comes in stays as
// it is, and what goes on is the same.
func TestInputIsNeverChanged(t *testing.T) {
	for _, yaml := range []string{"{}", "{strategy: all_ranks}", "{strategy: ranks, ranks: '0-2/2'}", "{keep_errors: true}", "{strategy: all_ranks, span_groups: step}"} {
		var first []string
		for _, sharing := range []bool{true, false} {
			for _, readOnly := range []bool{true, false} {
				t.Run(fmt.Sprint(yaml, " sharing ", sharing, " read-only ", readOnly), func(t *testing.T) {
					pool(t, !sharing)
					in, logs := world(4, "step", "!backward"), logWorld(4, plog.SeverityNumberInfo, plog.SeverityNumberError)
					if readOnly {
						in.MarkReadOnly()
						logs.MarkReadOnly()
					}
					r := newRig(t, yaml)
					require.NoError(t, r.traces.ConsumeTraces(t.Context(), in))
					require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
					require.Equal(t, readOnly, in.IsReadOnly())
					wantIn, wantLogs := world(4, "step", "!backward"), logWorld(4, plog.SeverityNumberInfo, plog.SeverityNumberError)
					if readOnly {
						wantIn.MarkReadOnly()
						wantLogs.MarkReadOnly()
					}
					require.Equal(t, wantIn, in)
					require.Equal(t, wantLogs, logs)
					for _, out := range r.spans.AllTraces() {
						require.Equal(t, readOnly, out.IsReadOnly())
					}
					if first == nil {
						first = r.names()
					}
					require.Equal(t, first, r.names())
					require.NotEmpty(t, first)
				})
			}
		}
	}
}

// pool sets pdata's gate for the time of a test.
func pool(t testing.TB, on bool) {
	const gate = "pdata.useProtoPooling"
	was := !sharing.Allowed()
	require.NoError(t, featuregate.GlobalRegistry().Set(gate, on))
	t.Cleanup(func() { require.NoError(t, featuregate.GlobalRegistry().Set(gate, was)) })
}

// Where pdata takes the elements of a batch back, which is known only once the command line has been read, what goes on
// outlives the batch that came in.
func TestKeptDataOutlivesAPooledBatch(t *testing.T) {
	for _, yaml := range []string{"{}", "{keep_errors: true}", "{strategy: ranks, ranks: '0-2/2'}"} {
		t.Run(yaml, func(t *testing.T) {
			pool(t, true)
			in, logs, points := world(4, "step", "!backward"), logWorld(4, plog.SeverityNumberInfo, plog.SeverityNumberError), pointWorld(4)
			pref.MarkPipelineOwnedTraces(in)
			pref.MarkPipelineOwnedLogs(logs)
			pref.MarkPipelineOwnedMetrics(points)
			r := newRig(t, yaml)
			require.NoError(t, r.traces.ConsumeTraces(t.Context(), in))
			require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
			require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), points))
			wantSpans, wantLogs, wantPoints := ptrace.NewTraces(), plog.NewLogs(), pmetric.NewMetrics()
			r.spans.AllTraces()[0].CopyTo(wantSpans)
			r.records.AllLogs()[0].CopyTo(wantLogs)
			r.points.AllMetrics()[0].CopyTo(wantPoints)
			require.NotZero(t, wantSpans.SpanCount())

			pref.UnrefTraces(in)
			pref.UnrefLogs(logs)
			pref.UnrefMetrics(points)
			require.True(t, pref.EqualTraces(wantSpans, r.spans.AllTraces()[0]))
			require.True(t, pref.EqualLogs(wantLogs, r.records.AllLogs()[0]))
			require.True(t, pref.EqualMetrics(wantPoints, r.points.AllMetrics()[0]))
		})
	}
}

func TestCapabilities(t *testing.T) {
	r := newRig(t, "{}")
	require.False(t, r.traces.Capabilities().MutatesData)
	require.False(t, r.metrics.Capabilities().MutatesData)
	require.False(t, r.logs.Capabilities().MutatesData)
}

func TestTenThousandResources(t *testing.T) {
	r := newRig(t, "{strategy: ranks, ranks: 0-9999/100}")
	require.NoError(t, r.traces.ConsumeTraces(t.Context(), world(10000, "step")))
	require.Equal(t, 100, r.spans.SpanCount())
}

func TestConsumeContract(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(NewFactory().CreateDefaultConfig()))
	td := world(1)
	td.ResourceSpans().AppendEmpty() // a resource without attributes and spans
	r := newRig(t, "{}")
	require.NoError(t, r.traces.ConsumeTraces(t.Context(), td))
}

// Every error stands once, below the keys that the user wrote.
func TestErrorsNameTheKey(t *testing.T) {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	cfg.Ranks.Rule.Strategy, cfg.Ranks.Rule.Rate = "sampled", 1.5
	require.EqualError(t, confmap.Validate(cfg), "rate: 1.5 is outside [0, 1]")
}
