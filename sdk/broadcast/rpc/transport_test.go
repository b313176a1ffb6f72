// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/ranktest"
)

func TestMain(m *testing.M) { ranktest.Main(m, open) }

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
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond}}))
}

func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func TestFourProcesses(t *testing.T) { ranktest.Run(t, freeAddress) }
