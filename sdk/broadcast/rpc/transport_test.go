// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/ranktest"
)

func TestMain(m *testing.M) { ranktest.Main(m, open) }

// open makes the transport of a process.
func open(spec ranktest.Spec) (lens.Transport, func(), error) {
	if spec.Rank == spec.Source {
		transport, err := NewServer(spec.Member)
		if err != nil {
			return nil, nil, err
		}
		listener, err := net.Listen("tcp", spec.Where)
		if err != nil {
			return nil, nil, err
		}
		server := grpc.NewServer()
		transport.Register(server)
		go func() { _ = server.Serve(listener) }()
		return transport, server.GracefulStop, nil
	}
	conn, err := dial(spec.Where)
	if err != nil {
		return nil, nil, err
	}
	transport, err := NewClient(spec.Member, conn)
	return transport, func() { conn.Close() }, err
}

func dial(address string) (*grpc.ClientConn, error) {
	const often = 20 * time.Millisecond
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: often, Multiplier: 1, MaxDelay: often}}))
}

func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func TestFourProcesses(t *testing.T) { ranktest.Run(t, freeAddress) }

func member(rank, n int) broadcast.Member {
	return broadcast.Member{Job: "job 7", Rank: rank, WorldSize: n}
}

// source serves rank 0 of n, and returns a connection to it.
func source(t *testing.T, n int) (*Server, *grpc.ClientConn) {
	transport, err := NewServer(member(0, n))
	require.NoError(t, err)
	return transport, serve(t, transport.Register)
}

func serve(t *testing.T, register func(grpc.ServiceRegistrar)) *grpc.ClientConn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	register(server)
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(listener) })
	conn, err := dial(listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		done.Wait()
	})
	return conn
}

func client(t *testing.T, rank, n int, conn grpc.ClientConnInterface) *Client {
	transport, err := NewClient(member(rank, n), conn)
	require.NoError(t, err)
	return transport
}

func TestManyRanks(t *testing.T) {
	const n = 200
	server, conn := source(t, n)
	ranks := []lens.Transport{server}
	for rank := 1; rank < n; rank++ {
		ranks = append(ranks, client(t, rank, n, conn))
	}
	for round := range 3 {
		ranktest.Together(t, round+1, 0, ranks...)
	}
	require.Zero(t, server.waiting)
	require.Empty(t, server.open, "nothing is kept")
}

// Errors that asking again does not change are told at once: the context does not end.
func TestRefusals(t *testing.T) {
	server, conn := source(t, 2)
	_, err := lens.Broadcast(t.Context(), client(t, 1, 3, conn), 0)
	require.ErrorContains(t, err, "another world size")
	_, err = lens.Broadcast(t.Context(), client(t, 0, 2, conn), 1)
	require.ErrorContains(t, err, "another rank is the source")
	_, err = lens.Broadcast(t.Context(), client(t, 1, 2, conn), 1)
	require.ErrorContains(t, err, "rank 1 is a client and cannot be the source: it needs NewServer")
	_, err = lens.Broadcast(t.Context(), client(t, 1, 2, conn), 2)
	require.ErrorContains(t, err, "source 2: must be a rank, 0 to 1")
	_, err = lens.Broadcast(t.Context(), server, 1)
	require.ErrorContains(t, err, "rank 0 serves, so it must be the source, not rank 1")
	_, err = lens.Broadcast(t.Context(), client(t, 1, 2, conn), 0)
	require.ErrorContains(t, err, "past this broadcast", "the server's has been counted")
	_, err = server.Broadcast(t.Context(), 0, make([]byte, lens.MaxBroadcast+1))
	require.ErrorContains(t, err, "must be at most 262144")
	_, err = lens.Broadcast(t.Context(), client(t, 1, 2, serve(t, func(grpc.ServiceRegistrar) {})), 0)
	require.ErrorContains(t, err, "its transport must be registered there")
	_, err = NewServer(broadcast.Member{})
	require.ErrorContains(t, err, "job is empty")
	_, err = NewClient(broadcast.Member{}, conn)
	require.ErrorContains(t, err, "job is empty")
}

func TestAnotherJobIsAskedAgain(t *testing.T) {
	_, conn := source(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tries := 0
	other, err := NewClient(broadcast.Member{Job: "job 8", Rank: 1, WorldSize: 2}, counting{conn, func() {
		if tries++; tries == 3 {
			cancel()
		}
	}})
	require.NoError(t, err)
	_, err = lens.Broadcast(ctx, other, 0)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "a source of another job answers")
}

// counting calls before before each stream.
type counting struct {
	*grpc.ClientConn
	before func()
}

func (c counting) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c.before()
	return c.ClientConn.NewStream(ctx, desc, method, opts...)
}

// ask sends bytes to a source.
func ask(t *testing.T, ctx context.Context, conn *grpc.ClientConn, data []byte) *fetchClient {
	stream, err := conn.NewStream(ctx, &service.Streams[0], "/"+serviceName+"/"+fetchName)
	require.NoError(t, err)
	typed := &fetchClient{ClientStream: stream}
	require.NoError(t, typed.Send(&bytesValue{Value: data}))
	return typed
}

func TestStrangersAtTheSource(t *testing.T) {
	server, conn := source(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, bad := range [][]byte{nil, []byte("GET / HTTP/1.1"), make([]byte, 1<<20)} {
		_, err := ask(t, ctx, conn, bad).Recv()
		require.Equal(t, codes.InvalidArgument, status.Code(err))
	}

	// More than a job has ranks do not wait.
	good := exchange.NewRequest(member(1, 2), 0, 0).Encode()
	waiting, leave := context.WithCancel(ctx)
	for range 64 + 2*2 {
		ask(t, waiting, conn, good)
	}
	require.Eventually(t, func() bool { return server.waits() == 64+2*2 }, time.Minute, time.Millisecond)
	_, err := ask(t, ctx, conn, good).Recv()
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	leave()
	require.Eventually(t, func() bool { return server.waits() == 0 }, time.Minute, time.Millisecond)

	// Who leaves without a word has not been served, who half-closes has.
	var done sync.WaitGroup
	var failed error
	done.Go(func() { _, failed = lens.Broadcast(ctx, server, 0) })
	rude, leave := context.WithCancel(ctx)
	_, err = ask(t, rude, conn, good).Recv()
	require.NoError(t, err)
	leave()
	chatty := ask(t, ctx, conn, good)
	_, err = chatty.Recv()
	require.NoError(t, err)
	require.NoError(t, chatty.Send(&bytesValue{}))
	_, err = chatty.Recv()
	require.Equal(t, codes.Aborted, status.Code(err))
	server.mu.Lock()
	require.Error(t, server.open[0].roll.Missing())
	server.mu.Unlock()
	carrier, err := lens.Broadcast(ctx, client(t, 1, 2, conn), 0)
	require.NoError(t, err)
	require.Empty(t, carrier)
	done.Wait()
	require.NoError(t, failed)
}

func (s *Server) waits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

func TestEndedContext(t *testing.T) {
	server, conn := source(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, rank := range []lens.Transport{server, client(t, 1, 2, conn)} {
		_, err := lens.Broadcast(ctx, rank, 0)
		require.ErrorIs(t, err, context.Canceled)
	}
}

// A source whose server stops while a rank waits is asked again, until the context ends.
func TestServerStops(t *testing.T) {
	transport, err := NewServer(member(0, 2))
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	transport.Register(server)
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(listener) })
	conn, err := dial(listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var failed error
	var rank sync.WaitGroup
	rank.Go(func() { _, failed = lens.Broadcast(ctx, client(t, 1, 2, conn), 0) })
	require.Eventually(t, func() bool { return transport.waits() == 1 }, time.Minute, time.Millisecond)
	server.Stop()
	done.Wait()
	cancel()
	rank.Wait()
	require.ErrorIs(t, failed, context.Canceled)
}
