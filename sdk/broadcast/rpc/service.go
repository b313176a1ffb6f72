// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package rpc is a transport of lens.Broadcast over gRPC: the source serves beside whatever else its server serves, and all
// ranks use the TLS and the credentials that the program has set up.
//
//	// at the source
//	transport, err := rpc.NewServer(member)
//	transport.Register(grpcServer)
//
//	// at the other ranks
//	transport, err := rpc.NewClient(member, conn)
//
//	// at all of them
//	carrier, err := lens.Broadcast(ctx, transport, 0)
//
// The service is lenscol.broadcast.v1.Broadcast with the one method
//
//	rpc Fetch(stream google.protobuf.BytesValue) returns (stream google.protobuf.BytesValue);
//
// The rank sends a request (60 bytes, broadcast/internal/exchange) and the source, once it is at that broadcast, the data. The
// rank half-closes when it has it. What a rank cannot get is an error by gRPC's codes.
package rpc // import "github.com/lenscol/lenscol/sdk/broadcast/rpc"

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	serviceName = "lenscol.broadcast.v1.Broadcast"
	fetchName   = "Fetch"
)

type (
	bytesValue  = wrapperspb.BytesValue
	fetchServer = grpc.GenericServerStream[bytesValue, bytesValue]
	fetchClient = grpc.GenericClientStream[bytesValue, bytesValue]
)

// service is what protoc would write.
var service = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: fetchName,
		Handler: func(server any, stream grpc.ServerStream) error {
			return server.(*Server).fetch(&fetchServer{ServerStream: stream})
		},
		ServerStreams: true,
		ClientStreams: true,
	}},
}
