// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// BenchmarkConnections is what an idle connection holds at a gRPC server, by read_buffer_size (configs/parts/otlp-wide.yaml): with TLS a
// buffer of that size, without none.
func BenchmarkConnections(b *testing.B) {
	signed := httptest.NewTLSServer(nil)
	defer signed.Close()
	secure := credentials.NewTLS(&tls.Config{Certificates: signed.TLS.Certificates, NextProtos: []string{"h2"}})
	trusting := credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}) // Of the test's own server.
	for name, both := range map[string][2]credentials.TransportCredentials{
		"plain": {insecure.NewCredentials(), insecure.NewCredentials()},
		"TLS":   {secure, trusting},
	} {
		for _, size := range []int{512 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				server := grpc.NewServer(grpc.Creds(both[0]), grpc.ReadBufferSize(size), grpc.ForceServerCodecV2(rawCodec{}),
					grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return stream.SendMsg(&[]byte{}) }))
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(b, err)
				go func() { _ = server.Serve(listener) }()
				defer server.Stop()
				before := live()
				for range b.N {
					conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(both[1]), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
					require.NoError(b, err)
					defer conn.Close()
					var answer []byte
					require.NoError(b, conn.Invoke(context.Background(), exportTraces, &[]byte{}, &answer))
				}
				b.ReportMetric(float64(live()-before)/float64(b.N)/1024, "KiB/connection")
			})
		}
	}
}

// live is the bytes of the heap that are in use, of servers and clients.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
