// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package deploy

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/sdk/instruments"
)

// simulated is a run that sends every metric that NeMo Lens, Megatron, NeMo RL and NeMo Gym have: two ranks train, and roll out in two servers.
type simulated struct {
	id     string
	began  time.Time
	ticks  int64
	lives  int64  // before this one
	silent string // the instance that sends nothing
}

// restart ends all processes and starts them again: others of the same name, that count from zero.
func (s *simulated) restart() {
	s.began, s.ticks, s.lives = time.Now(), 0, s.lives+1
}

// process is one of a run.
type process struct {
	service, instance string
	rank, pid         int64
	groups            []string
}

var processes = []process{
	{"megatron", "rank0", 0, 10, []string{instruments.GroupTraining, instruments.GroupInference}},
	{"megatron", "rank1", 1, 11, []string{instruments.GroupTraining}},
	{"nemo-rl", "rl", 0, 12, []string{instruments.GroupRL}},
	{"nemo-gym/math", "gym-math", 0, 13, []string{instruments.GroupGym}},
	{"nemo-gym/code", "gym-code", 0, 14, []string{instruments.GroupGym}},
}

// varied are attributes of points that dashboards tell apart, by the key of the metric.
var varied = map[string]struct {
	key    string
	values []string
}{
	"token_usage":        {"gen_ai.token.type", []string{"input", "output"}},
	"efficiency_seconds": {"category", []string{"generation", "policy_update", "checkpoint"}},
	"setup_duration":     {"rl.setup.phase", []string{"ray_init", "workers"}},
	"rollout_completed":  {"outcome", []string{"scored", "dropped"}},
	"http_retry":         {"reason", []string{"timeout", "status"}},
}

// tick sends one export of each process, every counter higher than before.
func (s *simulated) tick(t *testing.T, c *testbed.Client) {
	t.Helper()
	s.ticks++
	for _, p := range processes {
		if p.instance == s.silent {
			continue
		}
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		require.NoError(t, rm.Resource().Attributes().FromRaw(map[string]any{
			"service.name": p.service, "service.instance.id": s.id + "-" + p.instance, "process.pid": p.pid + 100*s.lives,
			"nemo.run.id": s.id, "dl.rank": p.rank, "dl.world_size": 2, "host.name": fmt.Sprintf("node-%d", p.rank),
		}))
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		for _, group := range p.groups {
			for _, spec := range instruments.Families()[group] {
				s.fill(metrics.AppendEmpty(), spec)
			}
		}
		body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
		require.NoError(t, err)
		require.NoError(t, c.GRPC(t.Context(), "metrics", body, false))
	}
}

// oneSpan is a request with a span.
func oneSpan(t *testing.T) []byte {
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("step")
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{1})
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	require.NoError(t, err)
	return body
}

// oneRecord is a request with a log record.
func oneRecord(t *testing.T) []byte {
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("step")
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	require.NoError(t, err)
	return body
}

func (s *simulated) fill(m pmetric.Metric, spec instruments.Spec) {
	m.SetName(spec.Name)
	m.SetUnit(spec.Unit)
	values := varied[spec.Key].values
	if values == nil {
		values = []string{""}
	}
	var points pmetric.NumberDataPointSlice
	switch spec.Kind {
	case instruments.Histogram:
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, value := range values {
			p := h.DataPoints().AppendEmpty()
			s.stamp(p, spec.Key, value)
			p.ExplicitBounds().FromRaw([]float64{100, 1000, 10000})
			n := uint64(s.ticks)
			p.BucketCounts().FromRaw([]uint64{n, 2 * n, n, 0})
			p.SetCount(4 * n)
			p.SetSum(1500 * float64(n))
		}
		return
	case instruments.Counter, instruments.UpDownCounter:
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		sum.SetIsMonotonic(spec.Kind == instruments.Counter)
		points = sum.DataPoints()
	default:
		points = m.SetEmptyGauge().DataPoints()
	}
	for _, value := range values {
		p := points.AppendEmpty()
		s.stamp(p, spec.Key, value)
		p.SetDoubleValue(float64(s.ticks))
	}
}

func (s *simulated) stamp(p interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
	Attributes() pcommon.Map
}, key, value string) {
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(s.began))
	p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	if value != "" {
		p.Attributes().PutStr(varied[key].key, value)
	}
}
