// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments

import (
	"bytes"
	"log/slog"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// collector is a meter and what was recorded on it.
type collector struct {
	metric.Meter
	t      testing.TB
	reader *sdkmetric.ManualReader
}

func newCollector(t testing.TB) collector {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(t.Context())) })
	return collector{provider.Meter("test"), t, reader}
}

func (c collector) metrics() map[string]metricdata.Metrics {
	var got metricdata.ResourceMetrics
	require.NoError(c.t, c.reader.Collect(c.t.Context(), &got))
	out := map[string]metricdata.Metrics{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			out[m.Name] = m
		}
	}
	return out
}

func (c collector) names() []string {
	var names []string
	for name := range c.metrics() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// logged are the lines that are logged during the test.
func logged(t testing.TB) *bytes.Buffer {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}

func value[N int64 | float64](t testing.TB, m metricdata.Metrics) N {
	switch data := m.Data.(type) {
	case metricdata.Gauge[N]:
		require.Len(t, data.DataPoints, 1)
		return data.DataPoints[0].Value
	case metricdata.Sum[N]:
		require.Len(t, data.DataPoints, 1)
		return data.DataPoints[0].Value
	}
	t.Fatalf("%s is a %T", m.Name, m.Data)
	return 0
}

func TestImportsTheAPIOnly(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "go.opentelemetry.io/otel/metric\n")
	for dep := range strings.FieldsSeq(string(out)) {
		for _, banned := range []string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "google.golang.org/"} {
			require.NotContains(t, dep, banned)
		}
	}
}

// Each field of a family is the series of its name, once.
func TestFamiliesHoldTheirSeries(t *testing.T) {
	c := newCollector(t)
	i, rl, gym, training := NewInference(c, NewNames), NewRL(c, NewNames), NewGym(c, NewNames), NewTraining(c, NewNames)
	fields := map[string][]*Instrument{
		GroupInference: {i.RequestDuration, i.TokenUsage},
		GroupRL: {rl.RewardMean, rl.KLDivergence, rl.PolicyLoss, rl.ValueLoss, rl.Entropy, rl.ResponseLengthMean, rl.GradNorm, rl.LearningRate,
			rl.TokensPerSecond, rl.GenerationDuration, rl.RolloutDuration, rl.EfficiencySeconds, rl.EfficiencyPercent, rl.SetupDuration,
			rl.PromptTokens, rl.GenerationTokens, rl.GenerationsOK, rl.GenerationsFailed, rl.PromptLengthMean, rl.GenerationLengthMean,
			rl.HostMemoryUsed, rl.HostMemoryTotal},
		GroupGym: {gym.ServerRequestDuration, gym.RolloutDuration, gym.VerifyDuration, gym.VerifySuccessRate, gym.ActiveServers,
			gym.RolloutsCompleted, gym.QueueWait, gym.ActiveSandboxes, gym.SandboxStartup, gym.SandboxExec, gym.SandboxCreateRetries,
			gym.ModelCallDuration, gym.ModelTimeToFirstByte, gym.HTTPTimeouts, gym.HTTPRetries, gym.ConnectionPoolWait, gym.ConnectionPoolConnects},
		GroupTraining: {training.StepDuration, training.Loss, training.ThroughputTFLOPS, training.GradNorm, training.LearningRate,
			training.TokensPerSecond, training.MemoryAllocated, training.SkippedIters, training.TokensProcessed},
	}
	for name, specs := range Families() {
		var want, got []string
		for _, spec := range specs {
			require.NoError(t, spec.validate())
			want = append(want, spec.Name)
		}
		for _, i := range fields[name] {
			require.NotNil(t, i, name)
			got = append(got, i.spec.Name)
		}
		require.Equal(t, want, got, name)
	}
}

func TestBounds(t *testing.T) {
	tests := []struct {
		name        string
		spec        Spec
		first, last float64
		count       int
	}{
		{"milliseconds", Spec{Unit: "ms"}, 5, 3.6e6, 19},
		{"seconds", Spec{Unit: "s"}, 0.005, 3600, 19},
		{"tokens", Spec{Unit: "{token}"}, 1, 67108864, 14},
		{"of its own", Spec{Unit: "s", Bounds: []float64{1, 2}}, 1, 2, 2},
		{"the SDK's own", Spec{Unit: "By"}, 0, 10000, 15},
		{"GenAI conventions", inferenceSpecs()[0], 0.01, 81.92, 14},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCollector(t)
			tt.spec.Key, tt.spec.Name, tt.spec.Kind = "k", "h", Histogram
			build(c, NewNames, []Spec{tt.spec}, nil)["k"].Record(t.Context(), 1)
			data, ok := c.metrics()["h"].Data.(metricdata.Histogram[float64])
			require.True(t, ok)
			bounds := data.DataPoints[0].Bounds
			require.Len(t, bounds, tt.count)
			require.Equal(t, tt.first, bounds[0])
			require.Equal(t, tt.last, bounds[len(bounds)-1])
			require.True(t, slices.IsSorted(bounds))
		})
	}
}

func TestInferenceRecordsARequest(t *testing.T) {
	c := newCollector(t)
	NewInference(c, NewNames).Record(t.Context(), Request{Duration: new(250 * time.Millisecond), InputTokens: new(12), OutputTokens: new(0), Model: "nemotron"},
		attribute.Bool("cached", true))
	got := c.metrics()
	duration := got["gen_ai.server.request.duration"].Data.(metricdata.Histogram[float64]).DataPoints
	require.Len(t, duration, 1)
	require.Equal(t, 0.25, duration[0].Sum)
	base := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "text_completion"), attribute.String("gen_ai.provider.name", "nemo"),
		attribute.String("gen_ai.request.model", "nemotron"), attribute.Bool("cached", true),
	}
	require.Equal(t, attribute.NewSet(base...), duration[0].Attributes)
	sums := map[attribute.Set]float64{}
	for _, point := range got["gen_ai.client.token.usage"].Data.(metricdata.Histogram[float64]).DataPoints {
		sums[point.Attributes] = point.Sum
	}
	require.Equal(t, map[attribute.Set]float64{
		attribute.NewSet(append(base, attribute.String("gen_ai.token.type", "input"))...):  12,
		attribute.NewSet(append(base, attribute.String("gen_ai.token.type", "output"))...): 0,
	}, sums)

	c = newCollector(t)
	NewInference(c, NewNames).Record(t.Context(), Request{OutputTokens: new(3), Provider: "vllm", Operation: "chat"})
	require.Equal(t, []string{"gen_ai.client.token.usage"}, c.names(), "what is nil is not recorded")
	points := c.metrics()["gen_ai.client.token.usage"].Data.(metricdata.Histogram[float64]).DataPoints
	require.Equal(t, attribute.NewSet(attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "vllm"),
		attribute.String("gen_ai.token.type", "output")), points[0].Attributes)
}

func TestRecordKeepsWhatItsKindTakes(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		name    string
		spec    Spec
		values  []float64
		want    float64
		skipped uint64
	}{
		{"a gauge holds the last", Spec{}, []float64{1, 3, 2}, 2, 0},
		{"a gauge shows a loss that diverged", Spec{}, []float64{1, nan}, nan, 0},
		{"a gauge shows infinity", Spec{}, []float64{math.Inf(1)}, math.Inf(1), 0},
		{"a counter adds", Spec{Kind: Counter}, []float64{1, 0.5}, 1.5, 0},
		{"a counter does not fall", Spec{Kind: Counter}, []float64{1, -1, nan, math.Inf(1)}, 1, 3},
		{"an up-down counter falls", Spec{Kind: UpDownCounter}, []float64{1, -3}, -2, 0},
		{"an up-down counter stays finite", Spec{Kind: UpDownCounter}, []float64{1, nan, math.Inf(-1)}, 1, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCollector(t)
			log := logged(t)
			registry := NewRegistry(NewNames)
			tt.spec.Key, tt.spec.Name = "k", "series"
			require.NoError(t, registry.Register("g", []Spec{tt.spec}, false))
			for _, v := range tt.values {
				registry.Record(t.Context(), c, "g", Values{"k": v})
			}
			got := value[float64](t, c.metrics()["series"])
			require.True(t, got == tt.want || math.IsNaN(got) && math.IsNaN(tt.want), "%v", got)
			require.Equal(t, tt.skipped, registry.Skipped())
			require.Equal(t, min(1, int(tt.skipped)), strings.Count(log.String(), "level=WARN"), log)
		})
	}
}

func TestIntegers(t *testing.T) {
	for _, kind := range []Kind{Gauge, Counter, UpDownCounter} {
		t.Run(string(kind), func(t *testing.T) {
			c := newCollector(t)
			logged(t)
			registry := NewRegistry(NewNames)
			require.NoError(t, registry.Register("g", []Spec{{Key: "k", Name: "series", Kind: kind, Integer: true}}, false))
			for _, v := range []any{7, 1.5, math.NaN(), math.Inf(1), 1e300, uint64(math.MaxUint64)} {
				registry.Record(t.Context(), c, "g", Values{"k": v})
			}
			require.Equal(t, int64(7), value[int64](t, c.metrics()["series"]))
			require.EqualValues(t, 5, registry.Skipped())
		})
	}
}

func TestSkippedIterationsSendNothingBeforeTheFirst(t *testing.T) {
	c := newCollector(t)
	training := NewTraining(c, OldNames)
	training.SkippedIters.Record(t.Context(), 0)
	require.Empty(t, c.names())
	training.SkippedIters.Record(t.Context(), 2)
	require.Equal(t, int64(2), value[int64](t, c.metrics()["megatron.training.skipped_iters"]))
}

func TestGaugesStayBetweenCollections(t *testing.T) {
	c := newCollector(t)
	NewTraining(c, NewNames).Loss.Record(t.Context(), 2.5)
	for range 2 { // Lens's vanish until they are set again
		require.Equal(t, 2.5, value[float64](t, c.metrics()["megatron.training.loss"]))
	}
}

func TestInstrumentThatIsNilDoesNothing(t *testing.T) {
	var i *Instrument
	i.Record(t.Context(), 1)
	i.RecordDuration(t.Context(), time.Second)
	require.False(t, i.Enabled(t.Context()))
	require.False(t, Inference{}.RequestDuration.Enabled(t.Context()))
	Inference{}.Record(t.Context(), Request{Duration: new(time.Second)})
	NewRL(nil, BothNames).RewardMean.Record(t.Context(), 1)
}

func TestRecordDurationWantsAUnitOfTime(t *testing.T) {
	c := newCollector(t)
	logged(t)
	before := Default().Skipped()
	rl := NewRL(c, NewNames)
	rl.SetupDuration.RecordDuration(t.Context(), 1500*time.Millisecond)
	rl.RolloutDuration.RecordDuration(t.Context(), 1500*time.Microsecond)
	rl.RewardMean.RecordDuration(t.Context(), time.Second)
	got := c.metrics()
	require.Equal(t, 1.5, value[float64](t, got["rl.setup.duration"]))
	require.Equal(t, 1.5, got["rl.rollout.duration_ms"].Data.(metricdata.Histogram[float64]).DataPoints[0].Sum)
	require.NotContains(t, got, "rl.reward.mean")
	require.Equal(t, before+1, Default().Skipped())
}

func TestNothingIsAllocatedWhileNobodyCollects(t *testing.T) {
	training := NewTraining(noop.Meter{}, BothNames)
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		training.Loss.Record(ctx, 1)
		training.Loss.Record(ctx, 1, attribute.Int("stage", 1))
		training.StepDuration.RecordDuration(ctx, time.Second)
	}))
}

func BenchmarkRecord(b *testing.B) {
	attr := attribute.String("gym.server.name", "math")
	for _, bb := range []struct {
		name  string
		meter metric.Meter
	}{{"disabled", noop.Meter{}}, {"enabled", newCollector(b)}} {
		gym := NewGym(bb.meter, NewNames)
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				gym.RolloutDuration.Record(b.Context(), 12)
			}
		})
		b.Run(bb.name+"/attribute", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				gym.RolloutDuration.Record(b.Context(), 12, attr)
			}
		})
		b.Run(bb.name+"/keyed", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Default().Record(b.Context(), bb.meter, GroupGym, Values{"rollout_duration_ms": 12.0})
			}
		})
	}
}
