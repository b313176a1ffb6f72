// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // what otlp_grpc sends by default
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// sink takes traces by OTLP over gRPC and, as Weave does, over HTTP, acknowledges all and counts the spans. It decodes nothing.
type sink struct {
	grpc, http string       // addresses
	spans      atomic.Int64 // of all requests
	bytes      atomic.Int64 // of bodies over HTTP, as they came
	stop       func()
}

func startSink() (*sink, error) {
	overGRPC, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	overHTTP, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{grpc: overGRPC.Addr().String(), http: overHTTP.Addr().String()}
	g := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(64<<20), grpc.UnknownServiceHandler(s.export))
	h := &http.Server{Handler: http.HandlerFunc(s.post)}
	s.stop = func() { g.Stop(); _ = h.Close() }
	go func() { _ = g.Serve(overGRPC) }()
	go func() { _ = h.Serve(overHTTP) }()
	return s, nil
}

func (s *sink) export(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if err := s.count(request); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return stream.SendMsg(&[]byte{})
}

func (s *sink) post(w http.ResponseWriter, r *http.Request) {
	n := &counted{r: r.Body}
	var from io.Reader = n
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(n)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		from = z
	}
	request, err := io.ReadAll(from)
	if err == nil {
		err = s.count(request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.bytes.Add(n.n)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// count adds the spans of an ExportTraceServiceRequest.
func (s *sink) count(request []byte) error {
	return fields(request, 0, len(request), func(_ protowire.Number, from, to int) error {
		return eachSpan(request, from, to, func(int, int) error { s.spans.Add(1); return nil })
	})
}

type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
