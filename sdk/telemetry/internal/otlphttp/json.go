// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package otlphttp // import "github.com/lenscol/lenscol/sdk/telemetry/internal/otlphttp"

import (
	"encoding/base64"
	"encoding/hex"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Signal is what an exporter sends.
type Signal struct {
	toJSON   func([]byte) ([]byte, error) // a request, from protobuf
	response func() proto.Message         // an empty one
}

// The signals.
var (
	Traces  = Signal{tracesJSON, func() proto.Message { return &coltracepb.ExportTraceServiceResponse{} }}
	Metrics = Signal{metricsJSON, func() proto.Message { return &colmetricspb.ExportMetricsServiceResponse{} }}
	Logs    = Signal{logsJSON, func() proto.Message { return &collogspb.ExportLogsServiceResponse{} }}
)

// OTLP's JSON is that of protobuf, with enums as integers, and ids in hex where all other bytes are in base64.
var marshal = protojson.MarshalOptions{UseEnumNumbers: true}.Marshal

// responseJSON reads a response to protobuf.
func (s Signal) responseJSON(text []byte) ([]byte, error) {
	response := s.response()
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, response); err != nil {
		return nil, err
	}
	return proto.Marshal(response)
}

// hexed changes ids to the bytes whose base64 is the id's hex.
func hexed(ids ...*[]byte) {
	for _, id := range ids {
		text := hex.AppendEncode(nil, *id)
		// Hex digits are digits of base64, and those of 16 and 8 bytes are whole groups of four.
		*id, _ = base64.StdEncoding.AppendDecode(nil, text)
	}
}

func tracesJSON(body []byte) ([]byte, error) {
	var request coltracepb.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				hexed(&span.TraceId, &span.SpanId, &span.ParentSpanId)
				for _, link := range span.Links {
					hexed(&link.TraceId, &link.SpanId)
				}
			}
		}
	}
	return marshal(&request)
}

func logsJSON(body []byte) ([]byte, error) {
	var request collogspb.ExportLogsServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	for _, resource := range request.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			for _, record := range scope.LogRecords {
				hexed(&record.TraceId, &record.SpanId)
			}
		}
	}
	return marshal(&request)
}

func metricsJSON(body []byte) ([]byte, error) {
	var request colmetricspb.ExportMetricsServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	for _, resource := range request.ResourceMetrics {
		for _, scope := range resource.ScopeMetrics {
			for _, metric := range scope.Metrics {
				for _, exemplar := range exemplars(metric) {
					hexed(&exemplar.TraceId, &exemplar.SpanId)
				}
			}
		}
	}
	return marshal(&request)
}

func exemplars(metric *metricspb.Metric) (all []*metricspb.Exemplar) {
	for _, p := range append(metric.GetGauge().GetDataPoints(), metric.GetSum().GetDataPoints()...) {
		all = append(all, p.Exemplars...)
	}
	for _, p := range metric.GetHistogram().GetDataPoints() {
		all = append(all, p.Exemplars...)
	}
	for _, p := range metric.GetExponentialHistogram().GetDataPoints() {
		all = append(all, p.Exemplars...)
	}
	return all
}
