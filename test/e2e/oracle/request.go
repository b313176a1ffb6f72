// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Request is one OTLP export request; the message of one signal is set.
type Request struct {
	Traces  *coltracepb.ExportTraceServiceRequest
	Metrics *colmetricspb.ExportMetricsServiceRequest
	Logs    *collogspb.ExportLogsServiceRequest
}

// From reads a request that is OTLP/JSON, or the protobuf message. signal is traces, metrics or logs.
func From(signal string, isJSON bool, body []byte) (Request, error) {
	if isJSON {
		return FromJSON(signal, body)
	}
	return FromProto(signal, body)
}

// FromProto reads the protobuf message of a request. signal is traces, metrics or logs.
func FromProto(signal string, body []byte) (Request, error) {
	var r Request
	var m proto.Message
	switch signal {
	case "traces":
		r.Traces = &coltracepb.ExportTraceServiceRequest{}
		m = r.Traces
	case "metrics":
		r.Metrics = &colmetricspb.ExportMetricsServiceRequest{}
		m = r.Metrics
	case "logs":
		r.Logs = &collogspb.ExportLogsServiceRequest{}
		m = r.Logs
	default:
		return Request{}, fmt.Errorf("unknown signal %q", signal)
	}
	return r, proto.Unmarshal(body, m)
}
