// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package backendtest has strict stand-ins of backends: each takes OTLP as its backend does, keeps what came, and says no to all else.
package backendtest // import "github.com/lenscol/lenscol/test/configs/backendtest"

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
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

// AllSignals are OTLP's, as its paths name them.
var AllSignals = []string{"traces", "metrics", "logs"}

// Sink keeps what a stand-in of a backend took, and why it refused what it did not take.
type Sink struct {
	mu      sync.Mutex
	spans   []string       // names, in the order of arrival
	ids     map[string]int // span ids, and how often each came
	points  []string       // names of metrics, one a point
	bodies  []string       // of log records
	refused []string
}

func (s *Sink) take(telemetry any) {
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

// Took is what arrived so far, each sorted.
func (s *Sink) Took() (spans, points, bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sorted(s.spans), sorted(s.points), sorted(s.bodies)
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// Counts says how often each span came.
func (s *Sink) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[string]int, len(s.ids))
	for id, n := range s.ids {
		counts[id] = n
	}
	return counts
}

func (s *Sink) refuse(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, reason)
}

// Refused are the reasons for which it did not take something.
func (s *Sink) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// Intake is a backend that takes OTLP over HTTP, and nothing that its rules forbid.
type Intake struct {
	Sink
	URL string
}

// Rules of a backend.
type Rules struct {
	Prefix    string   // of OTLP's paths
	Encodings []string // of content, "" for none
	// Accepts says no to a request that is OTLP. telemetry is what the body holds.
	Accepts func(signal string, header http.Header, telemetry any) error
	TLS     *tls.Config // without it, it speaks clear text
}

// New starts a backend.
func New(t testing.TB, rules Rules) *Intake {
	t.Helper()
	in := &Intake{}
	mux := http.NewServeMux()
	for _, signal := range AllSignals {
		mux.HandleFunc("POST "+rules.Prefix+"/v1/"+signal, func(w http.ResponseWriter, r *http.Request) {
			telemetry, err := in.read(signal, rules.Encodings, r)
			if err == nil && rules.Accepts != nil {
				err = rules.Accepts(signal, r.Header, telemetry)
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
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail
	if server.TLS = rules.TLS; server.TLS != nil {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	in.URL = server.URL + rules.Prefix
	return in
}

func (in *Intake) read(signal string, encodings []string, r *http.Request) (any, error) {
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

// GRPC is a backend that takes traces over gRPC: Jaeger, Tempo, Refinery.
type GRPC struct {
	ptraceotlp.UnimplementedGRPCServer
	Sink
	Address string
	headers map[string]string // that each request must have
}

// NewGRPC starts one in clear text that demands these headers.
func NewGRPC(t testing.TB, headers map[string]string) *GRPC {
	t.Helper()
	s := &GRPC{headers: headers}
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
	s.Address = listener.Addr().String()
	return s
}

func (s *GRPC) Export(ctx context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
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
