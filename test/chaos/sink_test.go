// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

package chaos

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	_ "go.opentelemetry.io/collector/config/configgrpc" // registers its compressors, as Jaeger and Tempo do
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lenscol/lenscol/internal/testbed"
)

// answer is what a sink does with one request. The zero answer takes it.
type answer struct {
	wait       <-chan struct{} // until it is closed, or the caller hangs up
	delay      time.Duration
	status     int        // HTTP's, where it is refused
	code       codes.Code // gRPC's, where it is refused
	retryAfter time.Duration
	took       bool // it is kept, although it is refused
	forGood    bool // the sender must not send it again; of what was kept before, it is taken instead
}

// sink is a backend of OTLP traces. It reads span ids alone, with no code of the collector's, and can be closed and served again.
type sink struct {
	c        *chaos
	address  string
	requests atomic.Int64
	answer   atomic.Pointer[func(n int64) answer]
	close    func()
}

// newSink makes a sink, which does not listen yet.
func (c *chaos) newSink(answers func(n int64) answer) *sink {
	s := &sink{c: c, address: "127.0.0.1:" + testbed.FreePort(c), close: func() {}}
	s.answers(answers)
	c.Cleanup(func() { s.close() })
	return s
}

func (s *sink) answers(f func(n int64) answer) { s.answer.Store(&f) }

func takeAll(int64) answer { return answer{} }

func (s *sink) listen() net.Listener {
	var listener net.Listener
	var err error
	s.c.eventually(func() bool { listener, err = net.Listen("tcp", s.address); return err == nil }, func() string { return fmt.Sprint(err) })
	return listener
}

// serveGRPC listens until close; with a certificate, over TLS.
func (s *sink) serveGRPC(certificate *tls.Certificate) {
	opts := []grpc.ServerOption{grpc.ForceServerCodec(bytesCodec{}), grpc.MaxRecvMsgSize(64 << 20)}
	if certificate != nil {
		opts = append(opts, grpc.Creds(credentials.NewServerTLSFromCert(certificate)))
	}
	server, listener, ended := grpc.NewServer(opts...), s.listen(), make(chan struct{})
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "opentelemetry.proto.collector.trace.v1.TraceService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: s.export}},
	}, s)
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // Says that it was stopped.
	}()
	s.close = func() {
		server.Stop()
		<-ended
	}
}

func (s *sink) export(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var body []byte
	if err := decode(&body); err != nil {
		return nil, err
	}
	a := s.take(ctx, body)
	if a.code == codes.OK {
		return &[]byte{}, nil
	}
	refusal := status.New(a.code, "chaos")
	if a.retryAfter > 0 {
		refusal, _ = refusal.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(a.retryAfter)})
	}
	return nil, refusal.Err()
}

// serveHTTP listens until close.
func (s *sink) serveHTTP() {
	listener, ended := s.listen(), make(chan struct{})
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reader, err := decompressed(r.Header.Get("Content-Encoding"), r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer reader.Close()
		body, err := io.ReadAll(reader)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a := s.take(r.Context(), body)
		if a.retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(a.retryAfter.Seconds())))
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
	})}
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // Says that it was closed.
	}()
	s.close = func() {
		_ = server.Close()
		<-ended
	}
}

// take does with a request what the answers say, and books its spans before the answer goes out.
func (s *sink) take(ctx context.Context, body []byte) answer {
	a := (*s.answer.Load())(s.requests.Add(1))
	if a.wait != nil {
		select {
		case <-a.wait:
		case <-ctx.Done():
			return answer{status: http.StatusServiceUnavailable, code: codes.Unavailable}
		}
	}
	if a.delay > 0 {
		time.Sleep(a.delay) // How slow it is.
	}
	ids, err := spanIDs(body, 1, 2, 2)
	if err != nil {
		s.c.Errorf("the sink got a request that is not OTLP: %v", err)
	}
	if a.forGood && s.c.book.has(ids) {
		a = answer{}
	}
	if a.took || a.status == 0 && a.code == codes.OK {
		s.c.book.deliver(ids)
	}
	return a
}

// spanIDs walks down the fields of a message: ExportTraceServiceRequest.resource_spans = 1, ResourceSpans.scope_spans = 2,
// ScopeSpans.spans = 2; then Span.span_id = 2. It does not descend into values.
func spanIDs(message []byte, path ...protowire.Number) (ids [][]byte, err error) {
	want := protowire.Number(2)
	if len(path) > 0 {
		want = path[0]
	}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return ids, protowire.ParseError(n)
		}
		message = message[n:]
		if number != want || kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return ids, protowire.ParseError(n)
			}
			message = message[n:]
			continue
		}
		field, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return ids, protowire.ParseError(n)
		}
		message = message[n:]
		if len(path) == 0 {
			return [][]byte{field}, nil
		}
		below, err := spanIDs(field, path[1:]...)
		if err != nil {
			return ids, err
		}
		ids = append(ids, below...)
	}
	return ids, nil
}

// bytesCodec hands messages through as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func decompressed(encoding string, body io.Reader) (io.ReadCloser, error) {
	switch encoding {
	case "gzip", ".gz":
		return gzip.NewReader(body)
	case "zstd", ".zst":
		r, err := zstd.NewReader(body)
		if err != nil {
			return nil, err
		}
		return r.IOReadCloser(), nil
	}
	return io.NopCloser(body), nil
}

// archived books the spans of an archive's files, each of which must hold nothing but whole lines. It is read once, at the end.
func (c *chaos) archived(folder string) {
	c.Helper()
	require.NoError(c, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(d.Name(), ".jsonl") || strings.HasSuffix(path, ".lock") {
			return err
		}
		return c.readFile(path)
	}))
}

func (c *chaos) readFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return err
	}
	r, err := decompressed(filepath.Ext(path), f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer r.Close()
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: line %d, %d bytes without an end: %w", path, number, len(line), err)
		}
		var record struct {
			Type   string
			SpanID string `json:"span_id"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			return fmt.Errorf("%s: line %d: %w", path, number, err)
		}
		if record.Type == "span" {
			id, err := hex.DecodeString(record.SpanID)
			if err != nil {
				return fmt.Errorf("%s: line %d: %w", path, number, err)
			}
			c.book.deliver([][]byte{id})
		}
	}
}
