// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package tcp // import "github.com/lenscol/lenscol/sdk/broadcast/tcp"

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"
)

const (
	// conversationLimit bounds a conversation, so that one who says nothing does not hold its place.
	conversationLimit = 5 * time.Second
	// maxConversations bounds how many are held at once; the others wait in the kernel's queue.
	maxConversations = 128
	// received is the byte by which a rank says that it has the data.
	received = 1
	// acceptPause is how long is waited after an accept that failed, as it does while file descriptors are short.
	acceptPause = 50 * time.Millisecond
)

// serve answers until all ranks have data or ctx ends. What it starts has ended when it returns.
func (t *Transport) serve(ctx context.Context, has exchange.Request, data []byte) error {
	if err := exchange.CheckSize(data); err != nil || t.config.WorldSize == 1 {
		return err
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	address := listenAddress(t.config, func(host string) ([]net.IPAddr, error) { return net.DefaultResolver.LookupIPAddr(ctx, host) })
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("over TCP as the source at %s: %w", address, err)
	}
	s := source{has: has, data: data, roll: exchange.NewRoll(t.config.WorldSize, t.config.Rank)}
	serving, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { s.accept(serving, listener) })
	err = s.roll.Wait(ctx)
	stop()
	listener.Close()
	done.Wait()
	if err != nil {
		return fmt.Errorf("over TCP as the source at %s: %w", address, err)
	}
	return nil
}

// listenAddress is where the source listens: see [Config].
func listenAddress(config Config, lookUp func(host string) ([]net.IPAddr, error)) string {
	if config.Listen != "" {
		return config.Listen
	}
	host, port, _ := net.SplitHostPort(config.Address)
	if host == "localhost" || net.ParseIP(host) != nil {
		return config.Address
	}
	if addresses, err := lookUp(host); err == nil && len(addresses) > 0 && addresses[0].IP.IsLoopback() {
		return net.JoinHostPort("", port)
	}
	return config.Address
}

// source is the one side of the conversations of a broadcast.
type source struct {
	has  exchange.Request
	data []byte
	roll *exchange.Roll
}

// accept holds conversations until ctx ends and listener is closed.
func (s *source) accept(ctx context.Context, listener net.Listener) {
	var done sync.WaitGroup
	defer done.Wait()
	places := make(chan struct{}, maxConversations)
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil {
			pause(ctx)
			continue
		}
		select {
		case places <- struct{}{}:
			done.Go(func() {
				s.converse(ctx, conn)
				<-places
			})
		case <-ctx.Done():
			conn.Close()
			return
		}
	}
}

// converse answers one request. Whatever comes: it reads 61 bytes, writes one answer and ends within conversationLimit.
func (s *source) converse(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, conversationLimit)
	defer cancel()
	defer bound(ctx, conn)()
	var request [exchange.RequestSize]byte
	if _, err := io.ReadFull(conn, request[:]); err != nil {
		return
	}
	asked, err := exchange.Parse(request[:])
	if err != nil {
		return
	}
	verdict := s.has.Judge(asked)
	if verdict != exchange.Here {
		_, _ = conn.Write(exchange.EncodeAnswer(verdict, nil))
		return
	}
	if _, err := conn.Write(exchange.EncodeAnswer(verdict, s.data)); err != nil {
		return
	}
	// Written is not received: the kernel takes it also for one that has died.
	var said [1]byte
	if _, err := io.ReadFull(conn, said[:]); err == nil && said[0] == received {
		s.roll.Served(int(asked.Rank))
	}
}

// bound ends what is going on on conn when ctx ends; the function that it returns must be called.
func bound(ctx context.Context, conn net.Conn) (release func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

func pause(ctx context.Context) {
	timer := time.NewTimer(acceptPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
