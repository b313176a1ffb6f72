// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/processor/runidenricher/internal/metadatatest"
)

const unique = only + "mode: gateway\ninstance_id: unique"

func rankZero(more attrs) attrs {
	return plus(attrs{"service.name": "megatron", "service.instance.id": "r-rank0", "nemo.run.id": "r", "dl.rank": int64(0), "host.name": "n1", "process.pid": int64(1)}, more)
}

func TestInstanceIDs(t *testing.T) {
	tests := []struct {
		name     string
		first    attrs // what was there before
		in       attrs
		want     string
		original bool
	}{
		{"alone", rankZero(nil), rankZero(nil), "r-rank0", false},
		{"another process", rankZero(nil), rankZero(attrs{"process.pid": int64(2)}), "r-2-rank0", true},
		{"another process that sends its id as text", rankZero(nil), rankZero(attrs{"process.pid": "2"}), "r-2-rank0", true},
		{"the same process that sends its id as text", rankZero(nil), rankZero(attrs{"process.pid": "1"}), "r-rank0", false},
		{"another process with a role", rankZero(nil), rankZero(attrs{"process.pid": int64(2), "nv.dl.role": "ckpt_worker"}), "r-ckpt_worker-rank0", true},
		{"a process with a role, started anew", rankZero(attrs{"nv.dl.role": "trainer"}), rankZero(attrs{"nv.dl.role": "trainer", "process.pid": int64(2)}), "r-rank0", false},
		{"another Gym server with the same process id", rankZero(attrs{"service.name": "nemo-gym/a"}), rankZero(attrs{"service.name": "nemo-gym/b"}), "r-1-rank0", true},
		{"without a rank", attrs{"service.instance.id": "x", "process.pid": int64(1)}, attrs{"service.instance.id": "x", "process.pid": int64(2)}, "x-2", true},
		{"a rank that sends none", nil, attrs{"nemo.run.id": "r", "nv.dl.rank": "7"}, "r-rank7", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, unique, system(t, "n", nil))
			if tt.first != nil {
				require.Equal(t, tt.first["service.instance.id"], r.resource(t, tt.first)["service.instance.id"], "the first one keeps its own")
			}
			want := plus(tt.in, attrs{"service.instance.id": tt.want})
			if tt.original {
				want["service.instance.id.original"] = tt.in["service.instance.id"]
			}
			for range 2 {
				got := r.resource(t, tt.in)
				delete(got, "nemo.run.id") // The rule for runs may add it.
				delete(want, "nemo.run.id")
				require.Equal(t, want, got)
			}
			if tt.original {
				metadatatest.AssertEqualProcessorRunIDEnricherRenamedInstances(t, r.tel, []metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())
			}
		})
	}
}

func TestInstanceIDsStay(t *testing.T) {
	r := newRig(t, only+"mode: gateway", system(t, "n", nil))
	r.resource(t, rankZero(nil))
	other := rankZero(attrs{"process.pid": int64(2)})
	require.Equal(t, other, r.resource(t, other))
	require.Equal(t, attrs{"x": "y"}, newRig(t, unique, system(t, "n", nil)).resource(t, attrs{"x": "y"}), "what cannot be named gets no name")
}

// Readers find the rank at the end of any instance id.
func TestInstanceIDsKeepTheRank(t *testing.T) {
	r := newRig(t, unique, system(t, "n", nil))
	seen := map[any]bool{}
	for pid := range int64(5) {
		for _, host := range []string{"n1", "n2"} {
			out := r.resource(t, rankZero(attrs{"process.pid": pid, "host.name": host}))
			id := out["service.instance.id"]
			require.False(t, seen[id], "%s is there twice", id)
			seen[id] = true
			delete(out, "dl.rank")
			m := pmetric.NewResourceMetrics().Resource().Attributes()
			require.NoError(t, m.FromRaw(out))
			rank, ok := identity.Rank(m)
			require.True(t, ok && rank == 0, id)
		}
	}
}

func TestSignalsAgreeOnInstanceIDs(t *testing.T) {
	r := newRig(t, unique, system(t, "n", nil))
	r.resource(t, rankZero(nil))
	worker := rankZero(attrs{"process.pid": int64(2)})
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().Resource().Attributes()
	require.NoError(t, m.FromRaw(worker))
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), md))
	require.Equal(t, "r-2-rank0", text(m, "service.instance.id"))
	require.Equal(t, "r-2-rank0", r.resource(t, worker)["service.instance.id"])
}

// However many processes are named by senders, two generations are remembered, and what is forgotten is counted.
func TestInstancesAreBounded(t *testing.T) {
	i := newInstances(100)
	forgotten := 0
	steady := process{instance: "steady"}
	for n := range 10_000 {
		_, f := i.id(process{instance: fmt.Sprint("p", n)}, "r", "-rank0")
		forgotten += f
		id, f := i.id(steady, "r", "-rank0")
		forgotten += f
		require.Equal(t, "steady", id)
		require.LessOrEqual(t, len(i.now.ids)+len(i.old.ids), 200)
		require.LessOrEqual(t, len(i.now.owners)+len(i.old.owners), 200)
	}
	remembered := len(i.now.ids) + len(i.old.ids)
	if _, twice := i.old.ids[steady]; twice {
		remembered--
	}
	require.Equal(t, 10_001, forgotten+remembered)

	r := newRig(t, unique, system(t, "n", nil))
	for n := range 2*maxInstances + 1 {
		r.resource(t, attrs{"service.instance.id": fmt.Sprint(n)})
	}
	metadatatest.AssertEqualProcessorRunIDEnricherForgottenInstances(t, r.tel, []metricdata.DataPoint[int64]{{Value: maxInstances}}, metricdatatest.IgnoreTimestamp())
}

// However long the texts are that a sender names itself with, what is remembered of it is not.
func TestInstancesAreBoundedInBytes(t *testing.T) {
	long := strings.Repeat("x", maxProcess)
	for _, key := range []string{"service.instance.id", "service.name", "host.name", "nv.dl.role", "nemo.run.id"} {
		t.Run(key, func(t *testing.T) {
			r := newRig(t, unique, system(t, "n", nil))
			in := rankZero(attrs{key: long})
			r.resource(t, in)
			in = plus(in, attrs{"process.pid": int64(2)})
			require.Equal(t, in, r.resource(t, in), "it keeps what it sends")
			metadatatest.AssertEqualProcessorRunIDEnricherLongInstances(t, r.tel, []metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())
		})
	}
	i, m := newInstances(maxInstances), pcommon.NewMap()
	require.NoError(t, m.FromRaw(rankZero(attrs{"service.instance.id": long})))
	i.tellApart(m, &tally{})
	require.Empty(t, i.now.ids)
	require.Empty(t, i.now.owners)
}

func TestInstancesConcurrently(t *testing.T) {
	i := newInstances(maxInstances)
	var wg sync.WaitGroup
	ids := make([]string, 64)
	for n := range ids {
		wg.Go(func() { ids[n], _ = i.id(process{instance: "r-rank0", pid: int64(n % 32)}, "r", "-rank0") })
	}
	wg.Wait()
	seen := map[string]int{}
	for _, id := range ids {
		seen[id]++
	}
	require.Len(t, seen, 32)
}
