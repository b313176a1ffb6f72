// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rpc // import "github.com/lenscol/lenscol/sdk/broadcast/rpc"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"
)

// Server is the transport of the source.
type Server struct {
	member broadcast.Member

	mu      sync.Mutex
	next    uint64            // the broadcast that has not begun
	open    map[uint64]*round // those that are going on
	begun   chan struct{}     // closed, and made anew, when one begins
	waiting int               // ranks that ask for one that has not begun
}

// round is a broadcast.
type round struct {
	data []byte
	roll *exchange.Roll
}

var _ lens.Transport = (*Server)(nil)

// NewServer makes the transport of the source. It is to be registered at a server.
func NewServer(member broadcast.Member) (*Server, error) {
	if err := member.Validate(); err != nil {
		return nil, fmt.Errorf("broadcast over gRPC: %w", err)
	}
	return &Server{member: member, open: map[uint64]*round{}, begun: make(chan struct{})}, nil
}

// Register adds the service to a server that does not serve yet.
func (s *Server) Register(registrar grpc.ServiceRegistrar) { registrar.RegisterService(&service, s) }

// Rank is the rank of this process.
func (s *Server) Rank() int { return s.member.Rank }

// Broadcast hands data to all ranks. This process must be the source.
func (s *Server) Broadcast(ctx context.Context, source int, data []byte) ([]byte, error) {
	r := &round{data, exchange.NewRoll(s.member.WorldSize, s.member.Rank)}
	err := exchange.CheckSize(data)
	if source != s.member.Rank {
		err = fmt.Errorf("rank %d serves, so it must be the source, not rank %d", s.member.Rank, source)
	}
	if err != nil {
		r = nil
	}
	number := s.begin(r)
	defer s.end(number)
	if err == nil {
		err = r.roll.Wait(ctx)
	}
	if err != nil {
		return data, fmt.Errorf("over gRPC as the source: %w", err)
	}
	return data, nil
}

// begin counts a broadcast, and opens it to the other ranks unless r is nil.
func (s *Server) begin(r *round) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := s.next
	if r != nil {
		s.open[number] = r
	}
	s.next++
	close(s.begun)
	s.begun = make(chan struct{})
	return number
}

func (s *Server) end(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, number)
}

// fetch serves one rank.
func (s *Server) fetch(stream *fetchServer) error {
	message, err := stream.Recv()
	if err != nil {
		return err
	}
	asked, err := exchange.Parse(message.GetValue())
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	r, err := s.find(stream.Context(), asked)
	if err != nil {
		return err
	}
	if err := stream.Send(&bytesValue{Value: r.data}); err != nil {
		return err
	}
	// Sent is not received: the end of the client's stream says that it is.
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return status.Error(codes.Aborted, "the rank did not say that it has the data")
	}
	r.roll.Served(int(asked.Rank))
	return nil
}

// find waits for the broadcast that is asked for.
func (s *Server) find(ctx context.Context, asked exchange.Request) (*round, error) {
	// Whether it is asked for at the right time is looked at below.
	has := exchange.NewRequest(s.member, asked.Round, s.member.Rank)
	if verdict := has.Judge(asked); verdict != exchange.Here {
		return nil, statusOf(verdict)
	}
	for {
		r, begun, err := s.lookUp(asked.Round)
		if begun == nil {
			return r, err
		}
		select {
		case <-begun:
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// lookUp finds a broadcast. One that has not begun is waited for, until begun is closed.
func (s *Server) lookUp(number uint64) (r *round, begun <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r := s.open[number]; {
	case r != nil:
		return r, nil, nil
	case number < s.next:
		return nil, nil, statusOf(exchange.Late)
	case s.waiting >= 64+2*s.member.WorldSize: // a rank waits once, and once more where its connection broke
		return nil, nil, status.Error(codes.ResourceExhausted, "more wait than the job has ranks")
	}
	s.waiting++
	return nil, s.begun, nil
}

func statusOf(v exchange.Verdict) error {
	code := codes.FailedPrecondition
	if v == exchange.OtherJob { // it may be over soon
		code = codes.Unavailable
	}
	return status.Error(code, v.Err().Error())
}
