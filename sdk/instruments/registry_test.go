// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestRegisterRefuses(t *testing.T) {
	one := []Spec{{Key: "k", Name: "n"}}
	tests := []struct {
		name, group string
		specs       []Spec
		want        string
	}{
		{"no group", "", one, "its name is empty"},
		{"no series", "g", nil, "it has no series"},
		{"no key", "g", []Spec{{Name: "n"}}, "has no key"},
		{"no name", "g", []Spec{{Key: "k"}}, "has no name"},
		{"kind", "g", []Spec{{Key: "k", Name: "n", Kind: "summary"}}, `kind "summary", must be gauge, histogram, counter or up_down_counter`},
		{"key twice", "g", []Spec{{Key: "k", Name: "n"}, {Key: "k", Name: "m"}}, `the key "k" stands twice`},
		{"taken", GroupRL, one, `"rl": it is registered already`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.ErrorContains(t, NewRegistry(NewNames).Register(tt.group, tt.specs, false), tt.want)
		})
	}
	require.ErrorContains(t, NewRegistry(NewNames).Unregister("g"), `"g": it is not registered`)
}

func TestOverrideReplacesTheGroupAsAWhole(t *testing.T) {
	c := newCollector(t)
	logged(t)
	registry := NewRegistry(NewNames)
	registry.Record(t.Context(), c, GroupRL, Values{"reward_mean": 1})
	require.NoError(t, registry.Register(GroupRL, []Spec{{Key: "reward_mean", Name: "my.reward"}}, true))
	registry.Record(t.Context(), c, GroupRL, Values{"reward_mean": 2, "entropy": 3})
	require.Equal(t, []string{"my.reward", "rl.reward.mean"}, c.names())
	require.EqualValues(t, 1, registry.Skipped(), "its entropy is gone")
	require.Len(t, registry.Groups()[GroupRL], 1)
	require.NoError(t, registry.Unregister(GroupRL))
	require.NotContains(t, registry.Groups(), GroupRL)
}

func TestRecordNeverFails(t *testing.T) {
	log := logged(t)
	c := newCollector(t)
	registry := NewRegistry(NewNames)
	for range 3 {
		registry.Record(t.Context(), c, "nobody", Values{"a": 1, "b": 2})
		registry.Record(t.Context(), c, GroupRL, Values{"reward": 1})
		registry.Record(t.Context(), c, GroupRL, Values{"entropy": "high"})
		registry.Record(t.Context(), c, GroupRL, nil)
		registry.Record(t.Context(), nil, GroupRL, Values{"entropy": 1})
	}
	require.Empty(t, c.names())
	require.EqualValues(t, 12, registry.Skipped())
	for _, want := range []string{
		`"metric group is not registered" group=nobody`,
		`"metric key is not of its group" group=rl key=reward`,
		`"metric value is no number" metric=rl.entropy type=string unit="" group=rl key=entropy`,
	} {
		require.Equal(t, 1, strings.Count(log.String(), want), log)
	}
	require.Equal(t, 3, strings.Count(log.String(), "level=WARN"), log)

	// A group that is declared now and vanishes again is told of again.
	require.NoError(t, registry.Register("nobody", []Spec{{Key: "a", Name: "a"}}, false))
	require.NoError(t, registry.Unregister("nobody"))
	registry.Record(t.Context(), c, "nobody", Values{"a": 1})
	require.Equal(t, 2, strings.Count(log.String(), "metric group is not registered"), log)
}

func TestWarningsHaveAnEnd(t *testing.T) {
	log := logged(t)
	c := newCollector(t)
	registry := NewRegistry(NewNames)
	for i := range 10 * maxReported {
		registry.Record(t.Context(), c, GroupRL, Values{fmt.Sprint("prompt", i): 1})
	}
	require.Equal(t, maxReported, strings.Count(log.String(), "level=WARN"))
	require.EqualValues(t, 10*maxReported, registry.Skipped())
}

func TestSeriesThatTheMeterRefuses(t *testing.T) {
	log := logged(t)
	c := newCollector(t)
	registry := NewRegistry(NewNames)
	require.NoError(t, registry.Register("g", []Spec{
		{Key: "bad", Name: "no name, this", Kind: Counter},
		{Key: "falling", Name: "falling", Kind: Histogram, Bounds: []float64{2, 1}},
		{Key: "good", Name: "good"},
	}, false))
	registry.Record(t.Context(), c, "g", Values{"bad": 1, "falling": 1, "good": 2})
	require.Equal(t, 2.0, value[float64](t, c.metrics()["good"]))
	require.NotContains(t, c.metrics(), "no name, this")
	require.Contains(t, log.String(), `"metric cannot be made" metric="no name, this"`)
}

func TestValues(t *testing.T) {
	type ratio float32
	var nilFloat *float64
	var loop any
	loop = &loop
	tests := []struct {
		name  string
		value any
		want  float64
		state numberState
	}{
		{"float", 0.5, 0.5, isNumber},
		{"float32", float32(0.5), 0.5, isNumber},
		{"named", ratio(0.5), 0.5, isNumber},
		{"int", -3, -3, isNumber},
		{"int8", int8(-3), -3, isNumber},
		{"uint64", uint64(3), 3, isNumber},
		{"pointer", new(0.5), 0.5, isNumber},
		{"pointer to int", new(4), 4, isNumber},
		{"duration in ms", 1500 * time.Microsecond, 1.5, isNumber},
		{"pointer to duration", new(2 * time.Millisecond), 2, isNumber},
		{"nil", nil, 0, isAbsent},
		{"nil pointer", nilFloat, 0, isAbsent},
		{"bool", true, 0, isBad},
		{"text", "1", 0, isBad},
		{"list", []float64{1}, 0, isBad},
		{"function", func() {}, 0, isBad},
		{"pointer to itself", loop, 0, isBad},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, state := toNumber(tt.value, "ms")
			require.Equal(t, tt.state, state)
			require.Equal(t, tt.want, got)
		})
	}
	_, state := toNumber(time.Second, "{token}")
	require.Equal(t, isBad, state, "a duration of a unit that is none of time")
	got, _ := toNumber(time.Second, "s")
	require.Equal(t, 1.0, got)
}

func TestAttributesOfARecord(t *testing.T) {
	c := newCollector(t)
	for _, kind := range []Kind{Gauge, Counter, UpDownCounter, Histogram} {
		registry := NewRegistry(NewNames)
		require.NoError(t, registry.Register("g", []Spec{{Key: "k", Name: string(kind), Kind: kind}}, false))
		for _, site := range []string{"a", "b"} {
			registry.Record(t.Context(), c, "g", Values{"k": 1}, attribute.String("site", site))
		}
	}
	site := func(set attribute.Set) string {
		v, _ := set.Value("site")
		return v.AsString()
	}
	for name, m := range c.metrics() {
		var sites []string
		switch data := m.Data.(type) {
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				sites = append(sites, site(p.Attributes))
			}
		case metricdata.Sum[float64]:
			for _, p := range data.DataPoints {
				sites = append(sites, site(p.Attributes))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				sites = append(sites, site(p.Attributes))
			}
		}
		require.ElementsMatch(t, []string{"a", "b"}, sites, name)
	}
}

// wrapped is a meter that cannot be compared.
type wrapped struct {
	metric.Meter
	_ []int
}

func TestAnyNumberOfMeters(t *testing.T) {
	registry := NewRegistry(NewNames)
	for range 3 * maxMeters {
		c := newCollector(t)
		registry.Record(t.Context(), c.Meter, GroupRL, Values{"entropy": 1})
		require.Equal(t, []string{"rl.entropy"}, c.names())
	}
	require.LessOrEqual(t, len(*(*registry.groups.Load())[GroupRL].meters.Load()), maxMeters)
	c := newCollector(t)
	registry.Record(t.Context(), wrapped{Meter: c.Meter}, GroupRL, Values{"entropy": 1})
	require.Equal(t, []string{"rl.entropy"}, c.names())
	registry.Record(t.Context(), noop.Meter{}, GroupRL, Values{"entropy": 1})
	require.Zero(t, registry.Skipped())
}

func TestRegistryConcurrently(t *testing.T) {
	logged(t)
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	registry := NewRegistry(NewNames)
	const goroutines, records = 16, 100
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for range records {
				registry.Record(t.Context(), meter, GroupRL, Values{"prompt_tokens": 1, "unknown": 1})
				name := fmt.Sprint("group", i)
				if err := registry.Register(name, []Spec{{Key: "k", Name: "n"}}, true); err != nil {
					t.Error(err)
				}
				registry.Record(t.Context(), meter, name, Values{"k": 1})
				registry.Groups()
			}
		})
	}
	wg.Wait()
	c := collector{t: t, reader: reader}
	require.Equal(t, int64(goroutines*records), value[int64](t, c.metrics()["rl.vllm.prompt_tokens"]))
	require.EqualValues(t, goroutines*records, registry.Skipped())
}
