// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	_ "go.opentelemetry.io/collector/config/configgrpc" // registers its compressors, as Jaeger and Tempo do
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// sink keeps what a stand-in of a backend took, and why it refused what it did not take.
type sink struct {
	mu      sync.Mutex
	spans   []string       // names, in the order of arrival
	ids     map[string]int // span ids, and how often each came
	points  []string       // names of metrics, one a point
	bodies  []string       // of log records
	refused []string
}

func (s *sink) take(telemetry any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch x := telemetry.(type) {
	case ptrace.Traces:
		if s.ids == nil {
			s.ids = map[string]int{}
		}
		for _, rs := range x.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					s.spans = append(s.spans, span.Name())
					s.ids[span.SpanID().String()]++
				}
			}
		}
	case pmetric.Metrics:
		for _, rm := range x.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					s.points = append(s.points, m.Name())
				}
			}
		}
	case plog.Logs:
		for _, rl := range x.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					s.bodies = append(s.bodies, r.Body().AsString())
				}
			}
		}
	}
}

// took is what arrived so far, each sorted.
func (s *sink) took() (spans, points, bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sorted(s.spans), sorted(s.points), sorted(s.bodies)
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// counts says how often each span came.
func (s *sink) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[string]int, len(s.ids))
	for id, n := range s.ids {
		counts[id] = n
	}
	return counts
}

func (s *sink) refuse(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, reason)
}

func (s *sink) requireNoneRefused(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.refused)
}

// intake is a backend that takes OTLP over HTTP, and nothing that its rules forbid.
type intake struct {
	sink
	URL string
}

// rules of a backend: what it says no to, by signal, of a request that is OTLP. telemetry is what the body holds.
type rules func(signal string, header http.Header, telemetry any) error

// newIntake starts a backend with OTLP's paths below prefix, for the signals that it has, and these content encodings.
func newIntake(t *testing.T, prefix string, signals, encodings []string, rules rules) *intake {
	t.Helper()
	in := &intake{}
	mux := http.NewServeMux()
	for _, signal := range signals {
		mux.HandleFunc("POST "+prefix+"/v1/"+signal, func(w http.ResponseWriter, r *http.Request) {
			telemetry, err := in.read(signal, encodings, r)
			if err == nil {
				err = rules(signal, r.Header, telemetry)
			}
			if err != nil {
				in.refuse(signal + ": " + err.Error())
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			in.take(telemetry)
			w.Header().Set("Content-Type", "application/x-protobuf")
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		in.refuse("no such path: " + r.Method + " " + r.URL.Path)
		http.NotFound(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	in.URL = server.URL + prefix
	return in
}

func (in *intake) read(signal string, encodings []string, r *http.Request) (any, error) {
	if got := r.Header.Get("Content-Type"); got != "application/x-protobuf" {
		return nil, fmt.Errorf("content type %q", got)
	}
	encoding := r.Header.Get("Content-Encoding")
	if !slices.Contains(encodings, encoding) {
		return nil, fmt.Errorf("content encoding %q", encoding)
	}
	body, err := decompressed(encoding, r.Body)
	if err != nil {
		return nil, err
	}
	return parse(signal, body)
}

func decompressed(encoding string, body io.Reader) ([]byte, error) {
	switch encoding {
	case "gzip":
		r, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case "zstd":
		r, err := zstd.NewReader(body)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	}
	return io.ReadAll(body)
}

func parse(signal string, body []byte) (any, error) {
	switch signal {
	case "traces":
		return (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(body)
	case "metrics":
		return (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(body)
	default:
		return (&plog.ProtoUnmarshaler{}).UnmarshalLogs(body)
	}
}

// want is an error unless the header has that value.
func want(header http.Header, name, value string) error {
	if got := header.Get(name); got != value {
		return fmt.Errorf("header %s is %q", name, got)
	}
	return nil
}

// grpcSink is a backend that takes traces over gRPC: Jaeger, Tempo, Refinery.
type grpcSink struct {
	ptraceotlp.UnimplementedGRPCServer
	sink
	address string
	headers map[string]string // that each request must have
}

func newGRPCSink(t testing.TB, headers map[string]string) *grpcSink {
	t.Helper()
	s := &grpcSink{headers: headers}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	s.address = listener.Addr().String()
	return s
}

func (s *grpcSink) Export(ctx context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	for name, value := range s.headers {
		if got := md.Get(name); !slices.Equal(got, []string{value}) {
			s.refuse(fmt.Sprintf("header %s is %q", name, got))
			return ptraceotlp.NewExportResponse(), errors.New("a header is missing")
		}
	}
	s.take(req.Traces())
	return ptraceotlp.NewExportResponse(), nil
}
