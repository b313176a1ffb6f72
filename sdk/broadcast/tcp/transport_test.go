// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/ranktest"
)

func TestMain(m *testing.M) {
	ranktest.Main(m, func(spec ranktest.Spec) (lens.Transport, func(), error) {
		transport, err := New(Config{Member: spec.Member, Address: spec.Where})
		return transport, func() {}, err
	})
}

func TestFourProcesses(t *testing.T) { ranktest.Run(t, freeAddress) }

// freeAddress is one where nobody listens.
func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

const job = "job 7"

// world is a job of n ranks at an address.
func world(t *testing.T, n int, address string) (out []lens.Transport) {
	for rank := range n {
		transport, err := New(Config{Member: broadcast.Member{Job: job, Rank: rank, WorldSize: n}, Address: address})
		require.NoError(t, err)
		out = append(out, transport)
	}
	return out
}

// More ranks than conversations are held at once, and several broadcasts.
func TestManyRanks(t *testing.T) {
	ranks := world(t, 2*maxConversations+1, freeAddress(t))
	for n := range 3 {
		ranktest.Together(t, n+1, 0, ranks...)
	}
}

func TestOneRankListensNowhere(t *testing.T) {
	ranks := world(t, 1, "192.0.2.1:1") // which is no address of this machine
	ranktest.Together(t, 1, 0, ranks...)
}

// Whoever else comes to the port, all ranks get the context, and nobody counts who did not say so.
func TestStrangersAtTheSource(t *testing.T) {
	address := freeAddress(t)
	ranks := world(t, 3, address)
	good := func(rank int) []byte {
		return exchange.NewRequest(broadcast.Member{Job: job, Rank: rank, WorldSize: 3}, 0, 0).Encode()
	}
	strangers := map[string]struct {
		send   []byte
		answer string // beginning with
	}{
		"says nothing":                 {nil, ""},
		"says half a request":          {good(1)[:30], ""},
		"says something else":          {bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 4096), ""},
		"asks for another job":         {exchange.NewRequest(broadcast.Member{Job: "other", Rank: 1, WorldSize: 3}, 0, 0).Encode(), string(exchange.EncodeAnswer(exchange.OtherJob, nil))},
		"is beyond the world":          {exchange.NewRequest(broadcast.Member{Job: job, Rank: 1<<31 - 1, WorldSize: 3}, 0, 0).Encode(), string(exchange.EncodeAnswer(exchange.OtherWorld, nil))},
		"asks for a later broadcast":   {exchange.NewRequest(broadcast.Member{Job: job, Rank: 1, WorldSize: 3}, 9, 0).Encode(), string(exchange.EncodeAnswer(exchange.Early, nil))},
		"asks and does not confirm":    {good(1), string(exchange.EncodeAnswer(exchange.Here, nil)[:9])},
		"asks and confirms wrongly":    {append(good(1), 'x'), string(exchange.EncodeAnswer(exchange.Here, nil)[:9])},
		"confirms before it was asked": {[]byte{received}, ""},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var source sync.WaitGroup
	var failed error
	source.Go(func() {
		_, failed = lens.Broadcast(lens.Extract(ctx, map[string]string{"traceparent": ranktest.Traceparent(1)}), ranks[0], 0)
	})
	var conns []net.Conn
	for range maxConversations / 16 {
		for name, c := range strangers {
			conn := dial(t, ctx, address)
			conns = append(conns, conn)
			_, _ = conn.Write(c.send)
			if c.answer != "" {
				got := make([]byte, len(c.answer))
				_, err := io.ReadFull(conn, got)
				require.NoError(t, err, name)
				require.Equal(t, c.answer, string(got), name)
			}
		}
	}
	for _, rank := range ranks[1:] {
		carrier, err := lens.Broadcast(ctx, rank, 0)
		require.NoError(t, err)
		require.Equal(t, ranktest.Traceparent(1), carrier["traceparent"])
	}
	source.Wait()
	require.NoError(t, failed)
	for _, conn := range conns {
		conn.Close()
	}
}

// dial connects as soon as somebody listens.
func dial(t *testing.T, ctx context.Context, address string) net.Conn {
	conn, err := exchange.Retry(ctx, func() (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) })
	require.NoError(t, err)
	return conn
}

// A rank is not led astray by what else may stand at the address.
func TestStrangersAtTheAddress(t *testing.T) {
	for _, c := range []struct {
		name, says, want string
		final            bool
	}{
		{"another protocol", "SSH-2.0-OpenSSH_9.9 and some more\r\n", "something else answers", false},
		{"a source of another job", string(exchange.EncodeAnswer(exchange.OtherJob, nil)), "a source of another job", false},
		{"a source that is not there yet", string(exchange.EncodeAnswer(exchange.Early, nil)), "not there yet", false},
		{"one that ends at once", "", "EOF", false},
		{"a source that is past it", string(exchange.EncodeAnswer(exchange.Late, nil)), "past this broadcast", true},
		{"a source of another world", string(exchange.EncodeAnswer(exchange.OtherWorld, nil)), "another world size", true},
		{"a flood", string(exchange.EncodeAnswer(exchange.Here, nil)[:9]) + "\xff\xff\xff\xff" + strings.Repeat("x", 1<<16), "at most 262144 are taken", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var done sync.WaitGroup
			done.Go(func() {
				for n := 0; ; n++ {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					if n == 2 { // it was asked again
						cancel()
					}
					_, _ = io.ReadFull(conn, make([]byte, exchange.RequestSize))
					_, _ = io.WriteString(conn, c.says)
					conn.Close()
				}
			})
			_, err = lens.Broadcast(ctx, world(t, 2, listener.Addr().String())[1], 0)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, listener.Addr().String())
			require.Equal(t, c.final, ctx.Err() == nil, "asked again until the context ended, unless it was final")
			listener.Close()
			done.Wait()
		})
	}
}

func TestPortIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	address := listener.Addr().String()
	_, err = lens.Broadcast(t.Context(), world(t, 2, address)[0], 0)
	require.ErrorContains(t, err, "over TCP as the source at "+address)
	require.ErrorContains(t, err, "address already in use")
}

func TestNoSuchSource(t *testing.T) {
	rank := world(t, 2, freeAddress(t))[1]
	for _, source := range []int{-1, 2} {
		_, err := lens.Broadcast(t.Context(), rank, source)
		require.ErrorContains(t, err, "must be a rank, 0 to 1")
	}
}

func TestMoreThanMayBeSent(t *testing.T) {
	_, err := world(t, 2, freeAddress(t))[0].Broadcast(t.Context(), 0, make([]byte, lens.MaxBroadcast+1))
	require.ErrorContains(t, err, "must be at most 262144")
}

func TestEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, rank := range world(t, 2, freeAddress(t)) {
		_, err := lens.Broadcast(ctx, rank, 0)
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestFromEnv(t *testing.T) {
	t.Setenv("MASTER_ADDR", "")
	_, err := FromEnv(29517)
	require.ErrorContains(t, err, "MASTER_ADDR is not set")
	t.Setenv("MASTER_ADDR", "::1")
	t.Setenv("RANK", "x")
	t.Setenv("SLURM_PROCID", "")
	_, err = FromEnv(29517)
	require.ErrorContains(t, err, "set RANK and WORLD_SIZE")
	for name, value := range map[string]string{"RANK": "1", "WORLD_SIZE": "2", "NEMO_LENS_RUN_ID": "mine"} {
		t.Setenv(name, value)
	}
	transport, err := FromEnv(29517)
	require.NoError(t, err)
	require.Equal(t, 1, transport.Rank())
	require.Equal(t, "[::1]:29517", transport.config.Address)
	_, err = FromEnv(0)
	require.ErrorContains(t, err, `address "[::1]:0": the port must be 1 to 65535`)
}

func TestConfigIsRefused(t *testing.T) {
	member := broadcast.Member{Job: job, WorldSize: 2}
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Address: "h:1"}, "job is empty"},
		{Config{Member: member}, `address "": must be host:port`},
		{Config{Member: member, Address: "h"}, `address "h": must be host:port`},
		{Config{Member: member, Address: ":1"}, `address ":1": must name a host`},
		{Config{Member: member, Address: "h:70000"}, "the port must be 1 to 65535"},
		{Config{Member: member, Address: "h:1", Listen: "h"}, `listen "h": must be host:port`},
	} {
		_, err := New(c.config)
		require.ErrorContains(t, err, c.want)
	}
}

func TestListenAddress(t *testing.T) {
	hosts := map[string]string{"node-0": "10.0.0.1", "debian-0": "127.0.1.1"}
	lookUp := func(host string) ([]net.IPAddr, error) {
		if ip, ok := hosts[host]; ok {
			return []net.IPAddr{{IP: net.ParseIP(ip)}}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	for _, c := range []struct{ address, listen, want string }{
		{"10.0.0.1:1", "", "10.0.0.1:1"},
		{"[fd00::1]:1", "", "[fd00::1]:1"},
		{"127.0.0.1:1", "", "127.0.0.1:1"},
		{"localhost:1", "", "localhost:1"},
		{"node-0:1", "", "node-0:1"},
		{"debian-0:1", "", ":1"},
		{"nowhere:1", "", "nowhere:1"},
		{"debian-0:1", "10.0.0.1:2", "10.0.0.1:2"},
	} {
		require.Equal(t, c.want, listenAddress(Config{Address: c.address, Listen: c.listen}, lookUp))
	}
}
