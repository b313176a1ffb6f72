// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rpc // import "github.com/lenscol/lenscol/sdk/broadcast/rpc"

import (
	"context"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"
)

// Client is the transport of the ranks that are not the source.
type Client struct {
	member broadcast.Member
	conn   grpc.ClientConnInterface
	round  atomic.Uint64
}

var _ lens.Transport = (*Client)(nil)

// NewClient makes the transport of a rank that is not the source, over a connection to the source's server. The
// connection stays the caller's; its backoff (grpc.WithConnectParams) bounds how soon a source that comes late is found.
func NewClient(member broadcast.Member, conn grpc.ClientConnInterface) (*Client, error) {
	if err := member.Validate(); err != nil {
		return nil, fmt.Errorf("broadcast over gRPC: %w", err)
	}
	return &Client{member: member, conn: conn}, nil
}

// Rank is the rank of this process.
func (c *Client) Rank() int { return c.member.Rank }

// Broadcast takes what the source hands on; data is not used. This process must not be the source.
func (c *Client) Broadcast(ctx context.Context, source int, _ []byte) ([]byte, error) {
	request := exchange.NewRequest(c.member, c.round.Add(1)-1, source)
	if err := c.member.ValidateSource(source); err != nil {
		return nil, err
	}
	if source == c.member.Rank {
		return nil, fmt.Errorf("over gRPC: rank %d is a client and cannot be the source: it needs NewServer", source)
	}
	data, err := exchange.Retry(ctx, func() ([]byte, error) { return c.fetch(ctx, request) })
	if err != nil {
		return nil, fmt.Errorf("over gRPC: %w", err)
	}
	return data, nil
}

// fetch asks the source once. It waits for a connection.
func (c *Client) fetch(ctx context.Context, request exchange.Request) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx) // frees the stream
	defer cancel()
	stream, err := c.conn.NewStream(ctx, &service.Streams[0], "/"+serviceName+"/"+fetchName,
		grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(lens.MaxBroadcast+16)) // 16: tag and length
	if err != nil {
		return nil, final(err)
	}
	typed := fetchClient{ClientStream: stream}
	// What is wrong is said by Recv, also where the stream ends before all is sent.
	_ = typed.Send(&bytesValue{Value: request.Encode()})
	message, err := typed.Recv()
	if err != nil {
		return nil, final(err)
	}
	// The source counts on being told. That it heard is not needed here, but wait for it: to leave is to cancel.
	if err := typed.CloseSend(); err == nil {
		_, _ = typed.Recv()
	}
	return message.GetValue(), nil
}

// final marks the codes that asking again does not change.
func final(err error) error {
	switch status.Code(err) {
	case codes.FailedPrecondition, codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated:
		return exchange.Final(err)
	case codes.Unimplemented:
		return exchange.Final(fmt.Errorf("the server has no such service, its transport must be registered there: %w", err))
	}
	return err
}
