// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/lenscol/lenscol/internal/runview"
	"github.com/lenscol/lenscol/processor/runidenricher/internal/metadata"
	"github.com/lenscol/lenscol/sdk/rank"
)

// Whoever looks at the runs sees what leaves the processor, with the run that it got there.
func TestWhatLeavesIsSeen(t *testing.T) {
	model, leave := runview.Join()
	defer leave()
	r := newRig(t, "run_id: {static: "+t.Name()+"}\nhost: true", system(t, "node-a", nil))
	require.NoError(t, r.traces.ConsumeTraces(t.Context(), unnamed(2, 10)))

	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutInt("dl.rank", 1)
	rm.Resource().Attributes().PutStr("service.name", "megatron")
	rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), md))

	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rm.Resource().CopyTo(rl.Resource())
	rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), ld))

	run, ok := model.Run(t.Name(), 0, rank.Unknown)
	require.True(t, ok)
	require.Equal(t, []int{0, 1}, run.Rows.Rank)
	require.Equal(t, []int64{10, 10}, run.Rows.Spans)
	require.Equal(t, []int64{0, 1}, run.Rows.Points)
	require.Equal(t, []int64{0, 1}, run.Rows.Records)
	require.Equal(t, []int64{9, 9}, run.Rows.Step)
	require.Equal(t, []string{"node-a"}, run.Hosts)
}

// unnamed is what ranks send that leave it to the collector to name the run.
func unnamed(ranks, spans int) (td ptrace.Traces) {
	td = job(ranks, spans)
	for i := range td.ResourceSpans().Len() {
		td.ResourceSpans().At(i).Resource().Attributes().RemoveIf(func(key string, _ pcommon.Value) bool {
			return key == "nemo.run.id" || key == "slurm.job.id" || key == "host.name"
		})
	}
	return td
}

// What those behind the processor refuse comes again, and is seen then.
func TestRefusedIsNotSeen(t *testing.T) {
	model, leave := runview.Join()
	defer leave()
	cfg, err := config(t, "mode: sidecar\nrun_id: {static: "+t.Name()+"}", system(t, "node-a", nil))
	require.NoError(t, err)
	set := processortest.NewNopSettings(metadata.Type)
	refusing, err := NewFactory().CreateTraces(t.Context(), set, cfg, consumertest.NewErr(errors.New("no")))
	require.NoError(t, err)
	require.Error(t, refusing.ConsumeTraces(t.Context(), unnamed(1, 1)))
	_, ok := model.Run(t.Name(), 0, rank.Unknown)
	require.False(t, ok)
}

// Who sees a resource before the processor does can ask it which run that will be of, from its start to its end.
func TestCompleter(t *testing.T) {
	complete := func() string {
		attrs := pcommon.NewMap()
		attrs.PutInt("dl.rank", 3)
		runview.Complete(attrs)
		return text(attrs, "nemo.run.id")
	}
	runview.SetCompleter(func(pcommon.Map) {})() // Other tests leave theirs.
	require.Empty(t, complete())
	cfg, err := config(t, "run_id: {static: of the collector}", system(t, "node-a", nil))
	require.NoError(t, err)
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, p.(component.Component).Start(t.Context(), componenttest.NewNopHost()))
	require.Equal(t, "of the collector", complete())
	require.NoError(t, p.Shutdown(t.Context()))
	require.Empty(t, complete())
}

// Where nobody looks, looking costs nothing.
func TestUnwatchedAllocatesNothing(t *testing.T) {
	next := watchTraces(consumertest.NewNop())
	td := job(1, 10)
	require.Nil(t, runview.Current())
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = next.ConsumeTraces(t.Context(), td) }))
}
