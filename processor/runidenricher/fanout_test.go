// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
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
redact: {keys: [prompt, service.name], patterns: [email]}
`, system(t, "node-a", slurm))
	require.True(t, r.traces.Capabilities().MutatesData)
	for _, c := range testbed.Captures(t) {
		if c.Signal != "traces" || c.JSON {
			continue
		}
		req := ptraceotlp.NewExportRequest()
		require.NoError(t, req.UnmarshalProto(c.Body))
		came, err := req.MarshalProto()
		require.NoError(t, err)

		var one, two consumertest.TracesSink
		r.spans.Reset()
		fanOut := connector.NewTracesRouter(map[pipeline.ID]consumer.Traces{
			pipeline.NewIDWithName(pipeline.SignalTraces, "archive"): &one,
			pipeline.NewIDWithName(pipeline.SignalTraces, "ours"):    r.traces,
			pipeline.NewIDWithName(pipeline.SignalTraces, "wire"):    &two,
		})
		require.NoError(t, fanOut.ConsumeTraces(t.Context(), req.Traces()), c.Name)
		for _, sink := range []*consumertest.TracesSink{&one, &two} {
			got, err := ptraceotlp.NewExportRequestFromTraces(sink.AllTraces()[0]).MarshalProto()
			require.NoError(t, err)
			require.Equal(t, came, got, c.Name)
		}
		changed, err := ptraceotlp.NewExportRequestFromTraces(r.spans.AllTraces()[0]).MarshalProto()
		require.NoError(t, err)
		require.NotEqual(t, came, changed, c.Name)
	}
}
