// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package tcp is a transport of lens.Broadcast: the source listens at an address that all ranks know, and the others come there.
//
//	transport, err := tcp.FromEnv(29517) // at MASTER_ADDR, where rank 0 is the source
//	carrier, err := lens.Broadcast(ctx, transport, 0)
//
// The source listens while it broadcasts, and no longer. Whoever reaches the port and knows the job's name can read
// the trace context and stand in for a rank: it belongs into the network of the job, as torch's rendezvous does. The
// transport rpc is for elsewhere.
//
// A conversation: the rank sends a request (60 bytes), the source answers (13 bytes, then the data), the rank says with a
// byte that it has it. The formats are in broadcast/internal/exchange.
package tcp // import "github.com/lenscol/lenscol/sdk/broadcast/tcp"

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"
)

// Config is where a transport stands.
type Config struct {
	broadcast.Member
	// Address is host:port of the source, as the other ranks reach it.
	Address string
	// Listen is host:port where the source listens. Empty: at Address, and on all interfaces where the host's name leads the
	// host itself to a loopback address, as Debian sets it up, though it is none elsewhere.
	Listen string
}

// Transport is one for [lens.Broadcast].
type Transport struct {
	config Config
	round  atomic.Uint64
	turn   chan struct{} // held by the source while it listens
}

var _ lens.Transport = (*Transport)(nil)

// New makes a transport. It opens nothing.
func New(config Config) (*Transport, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("broadcast over TCP: %w", err)
	}
	return &Transport{config: config, turn: make(chan struct{}, 1)}, nil
}

// FromEnv makes a transport whose source is at MASTER_ADDR, with port: not MASTER_PORT, where torch listens.
func FromEnv(port int) (*Transport, error) {
	host := os.Getenv("MASTER_ADDR")
	if host == "" {
		return nil, errors.New("broadcast over TCP: MASTER_ADDR is not set: it must be the host of the source")
	}
	member, err := broadcast.FromEnv()
	if err != nil {
		return nil, fmt.Errorf("broadcast over TCP: %w", err)
	}
	return New(Config{Member: member, Address: net.JoinHostPort(host, strconv.Itoa(port))})
}

// Validate reports the first field that cannot be.
func (c Config) Validate() error {
	if err := c.Member.Validate(); err != nil {
		return err
	}
	if host, err := splitAddress(c.Address); err != nil {
		return fmt.Errorf("address %q: %w", c.Address, err)
	} else if host == "" {
		return fmt.Errorf("address %q: must name a host, which other ranks can reach", c.Address)
	}
	if c.Listen != "" {
		if _, err := splitAddress(c.Listen); err != nil {
			return fmt.Errorf("listen %q: %w", c.Listen, err)
		}
	}
	return nil
}

func splitAddress(address string) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", errors.New("must be host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("the port must be 1 to 65535")
	}
	return host, nil
}

// Rank is the rank of this process.
func (t *Transport) Rank() int { return t.config.Rank }

// Broadcast hands data of rank source, which must be the one at the address, to all ranks.
func (t *Transport) Broadcast(ctx context.Context, source int, data []byte) ([]byte, error) {
	request := exchange.NewRequest(t.config.Member, t.round.Add(1)-1, source)
	if err := t.config.ValidateSource(source); err != nil {
		return data, err
	}
	if t.config.Rank == source {
		return data, t.serve(ctx, request, data)
	}
	data, err := exchange.Retry(ctx, func() ([]byte, error) { return t.fetch(ctx, request) })
	if err != nil {
		return nil, fmt.Errorf("over TCP from %s: %w", t.config.Address, err)
	}
	return data, nil
}

// fetch asks the source once.
func (t *Transport) fetch(ctx context.Context, request exchange.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, conversationLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.config.Address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer bound(ctx, conn)()
	if _, err := conn.Write(request.Encode()); err != nil {
		return nil, err
	}
	data, err := exchange.ReadAnswer(conn)
	if err == nil {
		_, err = conn.Write([]byte{received})
	}
	return data, err
}
