// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// sender sends a traffic's requests in their order. What it costs is some 10 ns a span and what gRPC takes.
type sender struct {
	traffic traffic
	conns   []*grpc.ClientConn // taken in turn: a rank has its own, where there are as many as ranks
	workers int                // requests in flight
	next    int                // the first request that was not sent
}

// sent is what became of the requests.
type sent struct {
	spans   int           // acknowledged
	refused int           // spans of requests that were answered by an error
	took    time.Duration // from the first request to the last answer
}

func newSender(endpoint string, t traffic, conns, workers int) (*sender, error) {
	s := &sender{traffic: t, workers: workers}
	for range conns {
		conn, err := grpc.NewClient("passthrough:///"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.WaitForReady(true)))
		if err != nil {
			return nil, err
		}
		s.conns = append(s.conns, conn)
	}
	return s, nil
}

func (s *sender) close() {
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

// send sends n requests, as fast as they are acknowledged, or so many spans a second at most where rate is not 0. A request that is
// refused, as by a full queue, is counted; one that cannot be sent is an error.
func (s *sender) send(ctx context.Context, n int, rate float64) (sent, error) {
	begin := time.Now()
	var next, acknowledged, refused atomic.Int64
	due := func(i int) time.Time { return begin } // of the ith request
	if rate > 0 {
		every := time.Duration(float64(s.traffic.count(s.next, s.next+n)) / float64(n) / rate * float64(time.Second))
		due = func(i int) time.Time { return begin.Add(time.Duration(i) * every) }
	}
	group, ctx := errgroup.WithContext(ctx)
	for range s.workers {
		group.Go(func() error {
			own := make([][]spans, len(s.traffic.streams)) // written to, so each worker has its own
			for i, stream := range s.traffic.streams {
				own[i] = make([]spans, len(stream.spans))
			}
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				nth := s.next + i
				resource, kind, variant := s.traffic.request(nth)
				body := &own[kind][variant]
				if body.encoded == nil {
					*body = s.traffic.streams[kind].spans[variant]
					body.encoded = bytes.Clone(body.encoded)
				}
				body.renew(uint64(nth))
				if wait := time.Until(due(i)); wait > 0 {
					time.Sleep(wait)
				}
				var answer []byte
				err := s.conns[nth%len(s.conns)].Invoke(ctx, exportTraces, request(resource, body.encoded), &answer)
				switch {
				case ctx.Err() != nil:
					return context.Cause(ctx)
				case err == nil && whole(answer):
					acknowledged.Add(int64(len(body.places)))
				case err == nil || status.Code(err) == codes.Unavailable || status.Code(err) == codes.ResourceExhausted:
					refused.Add(int64(len(body.places)))
				default:
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	s.next += n
	return sent{int(acknowledged.Load()), int(refused.Load()), time.Since(begin)}, err
}

// whole tells whether an ExportTraceServiceResponse says that all was taken: partial_success is empty or not there.
func whole(answer []byte) bool { return len(answer) == 0 || bytes.Equal(answer, []byte{1<<3 | 2, 0}) }

const exportTraces = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// request is ExportTraceServiceRequest with one ResourceSpans.
func request(resource, scopeSpans []byte) mem.BufferSlice {
	head := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.BytesType), uint64(len(resource)+len(scopeSpans)))
	return mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(resource), mem.SliceBuffer(scopeSpans)}
}

// rawCodec sends and receives bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(mem.BufferSlice); ok {
		return b, nil
	}
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
