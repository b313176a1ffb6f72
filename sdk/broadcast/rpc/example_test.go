// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/rpc"
)

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	// Rank 0, at a server that the job has anyway.
	source, err := rpc.NewServer(broadcast.Member{Job: "job 7, attempt 1", Rank: 0, WorldSize: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer()
	source.Register(server)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	sent := make(chan error)
	go func() {
		ctx := lens.Extract(ctx, map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"})
		_, err := lens.Broadcast(ctx, source, 0)
		sent <- err
	}()

	// Rank 1.
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	transport, err := rpc.NewClient(broadcast.Member{Job: "job 7, attempt 1", Rank: 1, WorldSize: 2}, conn)
	if err != nil {
		fmt.Println(err)
		return
	}
	carrier, err := lens.Broadcast(ctx, transport, 0)
	fmt.Println(carrier["traceparent"], err, <-sent)
	server.GracefulStop()
	fmt.Println(<-served)
	// Output:
	// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03 <nil> <nil>
	// <nil>
}
