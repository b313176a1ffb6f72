// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// sink takes OTLP by gRPC and by HTTP, and keeps it as it came.
type sink struct {
	grpc, http string // host:port

	mu      sync.Mutex
	paths   []string
	headers http.Header // of the last request
	json    []map[string]any
	spans   []*tracepb.ResourceSpans
	metrics []*metricspb.ResourceMetrics
	logs    []*logspb.ResourceLogs

	refusal func(headers http.Header) string // in place of taking what comes
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	coltrace.RegisterTraceServiceServer(server, traceService{s: s})
	colmetrics.RegisterMetricsServiceServer(server, metricsService{s: s})
	collogs.RegisterLogsServiceServer(server, logsService{s: s})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // its error is that it was stopped
	}()
	s.grpc = listener.Addr().String()

	web := httptest.NewServer(http.HandlerFunc(s.serve))
	s.http = web.Listener.Addr().String()
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		server.Stop()
		<-served
	})
	return s
}

func (s *sink) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.paths = append(s.paths, r.URL.Path)
	s.headers = r.Header.Clone()
	s.mu.Unlock()
	if s.refusal != nil {
		http.Error(w, s.refusal(r.Header), http.StatusUnauthorized)
		return
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		zr, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = zr
	}
	data, err := io.ReadAll(body)
	if err == nil {
		err = s.take(r.URL.Path, r.Header.Get("Content-Type"), data)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (s *sink) take(path, contentType string, data []byte) error {
	if contentType == "application/json" {
		var object map[string]any
		err := json.Unmarshal(data, &object)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.json = append(s.json, object)
		return err
	}
	switch {
	case strings.HasSuffix(path, "/v1/traces"):
		var r coltrace.ExportTraceServiceRequest
		err := proto.Unmarshal(data, &r)
		s.addSpans(r.ResourceSpans)
		return err
	case strings.HasSuffix(path, "/v1/metrics"):
		var r colmetrics.ExportMetricsServiceRequest
		err := proto.Unmarshal(data, &r)
		s.addMetrics(r.ResourceMetrics)
		return err
	}
	var r collogs.ExportLogsServiceRequest
	err := proto.Unmarshal(data, &r)
	s.addLogs(r.ResourceLogs)
	return err
}

func (s *sink) addSpans(list []*tracepb.ResourceSpans) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = append(s.spans, list...)
}

func (s *sink) addMetrics(list []*metricspb.ResourceMetrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics = append(s.metrics, list...)
}

func (s *sink) addLogs(list []*logspb.ResourceLogs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = append(s.logs, list...)
}

// metadata keeps the headers of a call, and is the error of one that is refused.
func (s *sink) metadata(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = http.Header{}
	for key, values := range md {
		for _, value := range values {
			s.headers.Add(key, value)
		}
	}
	if s.refusal != nil {
		return status.Error(codes.Unauthenticated, s.refusal(s.headers))
	}
	return nil
}

type traceService struct {
	coltrace.UnimplementedTraceServiceServer
	s *sink
}

func (t traceService) Export(ctx context.Context, r *coltrace.ExportTraceServiceRequest) (*coltrace.ExportTraceServiceResponse, error) {
	if err := t.s.metadata(ctx); err != nil {
		return nil, err
	}
	t.s.addSpans(r.ResourceSpans)
	return &coltrace.ExportTraceServiceResponse{}, nil
}

type metricsService struct {
	colmetrics.UnimplementedMetricsServiceServer
	s *sink
}

func (m metricsService) Export(ctx context.Context, r *colmetrics.ExportMetricsServiceRequest) (*colmetrics.ExportMetricsServiceResponse, error) {
	if err := m.s.metadata(ctx); err != nil {
		return nil, err
	}
	m.s.addMetrics(r.ResourceMetrics)
	return &colmetrics.ExportMetricsServiceResponse{}, nil
}

type logsService struct {
	collogs.UnimplementedLogsServiceServer
	s *sink
}

func (l logsService) Export(ctx context.Context, r *collogs.ExportLogsServiceRequest) (*collogs.ExportLogsServiceResponse, error) {
	if err := l.s.metadata(ctx); err != nil {
		return nil, err
	}
	l.s.addLogs(r.ResourceLogs)
	return &collogs.ExportLogsServiceResponse{}, nil
}

// spanNames are the names of all spans that came, sorted.
func (s *sink) spanNames() []string {
	names := []string{}
	for _, span := range s.allSpans() {
		names = append(names, span.Name)
	}
	slices.Sort(names)
	return names
}

func (s *sink) allSpans() (spans []*tracepb.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.spans {
		for _, scope := range r.ScopeSpans {
			spans = append(spans, scope.Spans...)
		}
	}
	return spans
}

func (s *sink) span(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	spans := slices.DeleteFunc(s.allSpans(), func(span *tracepb.Span) bool { return span.Name != name })
	require.Len(t, spans, 1, "spans named %s", name)
	return spans[0]
}

// metricNames are the names of all metrics that came, each once, sorted.
func (s *sink) metricNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	for _, r := range s.metrics {
		for _, scope := range r.ScopeMetrics {
			for _, m := range scope.Metrics {
				names = append(names, m.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *sink) logBodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	bodies := []string{}
	for _, r := range s.logs {
		for _, scope := range r.ScopeLogs {
			for _, record := range scope.LogRecords {
				bodies = append(bodies, record.Body.GetStringValue())
			}
		}
	}
	slices.Sort(bodies)
	return bodies
}

// requests is how many exports came, of all signals.
func (s *sink) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.paths) + len(s.spans) + len(s.metrics) + len(s.logs)
}

// attributes are those of a resource or span as plain values.
func attributes(list []*commonpb.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_IntValue:
			out[kv.Key] = v.IntValue
		case *commonpb.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *commonpb.AnyValue_BoolValue:
			out[kv.Key] = v.BoolValue
		default:
			out[kv.Key] = v
		}
	}
	return out
}

func resourceOf(r *resourcepb.Resource) map[string]any { return attributes(r.Attributes) }
