// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/internal/testbed"
)

// The collector's fan-out gives the processor a copy: what others get is byte for byte what came, whatever is changed here.
func TestFanOutOthersGetWhatCame(t *testing.T) {
	r := newRig(t, `
run_id: {replace: always}
names: both
instance_id: unique
skew: clamp
delete: [telemetry.sdk.name]
attributes: {cluster.name: c}
redact: {keys: [prompt, service.name], patterns: [email]}
`, system(t, "node-a", slurm))
	// Each sends a request through a fan-out and returns it, what went to the two others, and what became of it here, as bytes.
	signals := map[string]func(t *testing.T, body []byte) (came, one, two, changed []byte){
		"traces": func(t *testing.T, body []byte) (came, one, two, changed []byte) {
			req := ptraceotlp.NewExportRequest()
			require.NoError(t, req.UnmarshalProto(body))
			came = marshal(t, req)
			var a, b consumertest.TracesSink
			r.spans.Reset()
			fanOut := connector.NewTracesRouter(fan[consumer.Traces](pipeline.SignalTraces, &a, r.traces, &b))
			require.NoError(t, fanOut.ConsumeTraces(t.Context(), req.Traces()))
			bytes := func(sink *consumertest.TracesSink) []byte {
				return marshal(t, ptraceotlp.NewExportRequestFromTraces(sink.AllTraces()[0]))
			}
			return came, bytes(&a), bytes(&b), bytes(&r.spans)
		},
		"metrics": func(t *testing.T, body []byte) (came, one, two, changed []byte) {
			req := pmetricotlp.NewExportRequest()
			require.NoError(t, req.UnmarshalProto(body))
			came = marshal(t, req)
			var a, b consumertest.MetricsSink
			r.points.Reset()
			fanOut := connector.NewMetricsRouter(fan[consumer.Metrics](pipeline.SignalMetrics, &a, r.metrics, &b))
			require.NoError(t, fanOut.ConsumeMetrics(t.Context(), req.Metrics()))
			bytes := func(sink *consumertest.MetricsSink) []byte {
				return marshal(t, pmetricotlp.NewExportRequestFromMetrics(sink.AllMetrics()[0]))
			}
			return came, bytes(&a), bytes(&b), bytes(&r.points)
		},
		"logs": func(t *testing.T, body []byte) (came, one, two, changed []byte) {
			req := plogotlp.NewExportRequest()
			require.NoError(t, req.UnmarshalProto(body))
			came = marshal(t, req)
			var a, b consumertest.LogsSink
			r.records.Reset()
			fanOut := connector.NewLogsRouter(fan[consumer.Logs](pipeline.SignalLogs, &a, r.logs, &b))
			require.NoError(t, fanOut.ConsumeLogs(t.Context(), req.Logs()))
			bytes := func(sink *consumertest.LogsSink) []byte {
				return marshal(t, plogotlp.NewExportRequestFromLogs(sink.AllLogs()[0]))
			}
			return came, bytes(&a), bytes(&b), bytes(&r.records)
		},
	}
	for _, p := range []interface{ Capabilities() consumer.Capabilities }{r.traces, r.metrics, r.logs} {
		require.True(t, p.Capabilities().MutatesData)
	}
	seen := map[string]int{}
	for _, c := range testbed.Captures(t) {
		if c.JSON {
			continue
		}
		seen[c.Signal]++
		came, one, two, changed := signals[c.Signal](t, c.Body)
		require.Equal(t, came, one, c.Name)
		require.Equal(t, came, two, c.Name)
		require.NotEqual(t, came, changed, c.Name)
	}
	require.Len(t, seen, len(signals))
}

// fan is the processor between two others.
func fan[C any](signal pipeline.Signal, one, ours, two C) map[pipeline.ID]C {
	return map[pipeline.ID]C{
		pipeline.NewIDWithName(signal, "archive"): one, pipeline.NewIDWithName(signal, "ours"): ours, pipeline.NewIDWithName(signal, "wire"): two,
	}
}

func marshal(t *testing.T, m interface{ MarshalProto() ([]byte, error) }) []byte {
	body, err := m.MarshalProto()
	require.NoError(t, err)
	return body
}
