// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

package chaos

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/lenscol/lenscol/internal/testbed"
)

// archiving starts lenscol:archive with senders that work on while others do harm.
func archiving(c *chaos) (collector *testbed.Collector, l *load) {
	collector = c.embedded("archive", testbed.Options{})
	collector.Start()
	return collector, c.start(collector, steady...)
}

// served demands that senders are still served, and ends the case.
func served(c *chaos, collector *testbed.Collector, l *load) {
	c.Helper()
	c.answers(l, 50)
	c.stop(l)
	collector.RequireRunning()
	collector.Stop()
	c.archived(filepath.Join(collector.Dir, "lens-data"))
}

// idleConnections opens 10,000 connections that say nothing; senders that come later are served, and the end is not held up.
func idleConnections(c *chaos) {
	const connections = 10_000
	var limit syscall.Rlimit
	require.NoError(c, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Max < connections+1000 {
		c.Skipf("a process may have %d files open here, which is fewer than the connections", limit.Max)
	}
	collector, l := archiving(c)
	var held []net.Conn
	defer func() {
		for _, conn := range held {
			_ = conn.Close()
		}
	}()
	for i := range connections {
		conn, err := net.Dial("tcp", []string{collector.GRPC, collector.HTTP}[i%2])
		require.NoError(c, err, "connection %d", i)
		held = append(held, conn)
	}
	c.answers(l, 50)
	c.pass(forms(0, 10*time.Minute), "connections are held")
	c.answers(c.start(collector, sender{spans: 5, limit: 50}, sender{spans: 5, http: true, limit: 50}), 100)
	c.Logf("peak %d MiB", c.residentMiB(collector, "VmHWM"))
	served(c, collector, l)
}

// slowHeaders opens connections that send a byte of a header now and then: over HTTP they are closed, and all the while others are served. So are they beside
// bodies that never end and gRPC connections that never begin, which do not hold up the end either.
func slowHeaders(c *chaos) {
	collector, l := archiving(c)
	dial := func(address, beginning string) net.Conn {
		conn, err := net.Dial("tcp", address)
		require.NoError(c, err)
		c.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, beginning)
		require.NoError(c, err)
		return conn
	}
	var drips []net.Conn
	for range 300 {
		drips = append(drips, dial(collector.HTTP, "POST /v1/traces HTTP/1.1\r\nHost: x\r\nX-Slow: "))
		dial(collector.GRPC, "PRI * HTTP/2.0\r\n")
		dial(collector.HTTP, "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 1000\r\n\r\n\x0a")
	}
	closed := 0
	c.eventually(func() bool {
		closed = 0
		for _, conn := range drips {
			if _, err := conn.Write([]byte("x")); err != nil {
				closed++
			}
		}
		time.Sleep(200 * time.Millisecond) // The drip.
		return closed == len(drips)
	}, func() string { return fmt.Sprintf("%d of %d connections are closed", closed, len(drips)) })
	served(c, collector, l)
}

// bombSize is what a bomb becomes: 64 times what a request may have.
const bombSize = 512 << 20

// zipBombs sends small requests that decompress to much, in every encoding of both protocols: they are refused for good, and never held in memory.
func zipBombs(c *chaos) {
	collector, l := archiving(c)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	before := c.residentMiB(collector, "VmHWM")
	writers := map[string]func(io.Writer) (io.WriteCloser, error){
		"gzip":            func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"zstd":            func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
		"zlib":            func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil },
		"deflate":         func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil },
		"lz4":             func(w io.Writer) (io.WriteCloser, error) { return lz4.NewWriter(w), nil },
		"x-snappy-framed": func(w io.Writer) (io.WriteCloser, error) { return snappy.NewBufferedWriter(w), nil },
	}
	bombs := map[string][]byte{
		"snappy": snappy.Encode(nil, make([]byte, bombSize)),
		// A length of 4 GiB, and nothing.
		"snappy ": append(binary.AppendUvarint(nil, 1<<32-1), 0),
		// A frame with a window of 1 GiB and one block of zeros that says 128 KiB in 4 bytes, 1,024 times.
		"zstd ": windowBomb(),
	}
	for encoding, newWriter := range writers {
		var b bytes.Buffer
		w, err := newWriter(&b)
		require.NoError(c, err)
		for range bombSize >> 20 {
			_, err := w.Write(make([]byte, 1<<20))
			require.NoError(c, err)
		}
		require.NoError(c, w.Close())
		bombs[encoding] = b.Bytes()
	}
	for name, bomb := range bombs {
		for range forms(4, 100) {
			request, err := http.NewRequestWithContext(c.Context(), http.MethodPost, "http://"+collector.HTTP+"/v1/traces", bytes.NewReader(bomb))
			require.NoError(c, err)
			request.Header.Set("Content-Type", testbed.Protobuf)
			request.Header.Set("Content-Encoding", strings.TrimSpace(name))
			response, err := client.Do(request)
			if err != nil { // It was refused before all of it was sent.
				require.NotErrorIs(c, err, context.DeadlineExceeded, name)
				continue
			}
			require.NoError(c, response.Body.Close())
			require.Contains(c, []int{400, 413}, response.StatusCode, name)
		}
		c.Logf("HTTP %s: %d bytes, peak %d MiB", name, len(bomb), c.residentMiB(collector, "VmHWM"))
	}

	overGRPC := http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}, Timeout: patience}
	defer overGRPC.CloseIdleConnections()
	overGRPC.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	bombs["snappy"] = bombs["x-snappy-framed"] // What gRPC calls snappy.
	for _, name := range []string{"gzip", "zstd", "zstd ", "snappy"} {
		for range forms(4, 100) {
			code := sendBomb(c, overGRPC, collector.GRPC, strings.TrimSpace(name), bombs[name])
			require.Contains(c, []string{strconv.Itoa(int(codes.ResourceExhausted)), strconv.Itoa(int(codes.Internal))}, code, name)
		}
		c.Logf("gRPC %s: %d bytes, peak %d MiB", name, len(bombs[name]), c.residentMiB(collector, "VmHWM"))
	}
	require.Less(c, c.residentMiB(collector, "VmHWM"), before+256)
	served(c, collector, l)
}

// windowBomb is a zstd frame (RFC 8878) that wants a window of 1 GiB, and has blocks of one repeated byte.
func windowBomb() []byte {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, (30 - 10) << 3}
	for range 1024 {
		header := uint32(128<<10)<<3 | 1<<1 // RLE, not the last
		frame = append(frame, byte(header), byte(header>>8), byte(header>>16), 0)
	}
	return append(frame, 1, 0, 0) // An empty last block.
}

// sendBomb sends a compressed message over gRPC, by the letter of its protocol over HTTP/2, and returns the status.
func sendBomb(c *chaos, client http.Client, address, encoding string, bomb []byte) (code string) {
	c.Helper()
	message := append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(bomb))), bomb...)
	request, err := http.NewRequestWithContext(c.Context(), http.MethodPost, "http://"+address+"/opentelemetry.proto.collector.trace.v1.TraceService/Export", bytes.NewReader(message))
	require.NoError(c, err)
	request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "Grpc-Encoding": {encoding}}
	response, err := client.Do(request)
	require.NoError(c, err)
	_, _ = io.Copy(io.Discard, response.Body) // The trailers come after it.
	require.NoError(c, response.Body.Close())
	if code = response.Trailer.Get("Grpc-Status"); code == "" {
		code = response.Header.Get("Grpc-Status")
	}
	return code
}

// deepNesting sends values that are nested as deep as requests of 8 MiB can have them, and deeper ones that are refused by their size. None ends the process, and what
// is beside them in time is archived.
func deepNesting(c *chaos) {
	collector, l := archiving(c)
	client := collector.Client()
	const depth = 700_000
	for name, send := range map[string]func(context.Context) error{
		"protobuf over gRPC":       func(ctx context.Context) error { return client.GRPC(ctx, "traces", nested(depth), false) },
		"protobuf over gRPC, gzip": func(ctx context.Context) error { return client.GRPC(ctx, "traces", nested(depth), true) },
		"protobuf over HTTP": func(ctx context.Context) error {
			return client.HTTP(ctx, "traces", testbed.Protobuf, nested(depth), false)
		},
		"protobuf, twice as deep": func(ctx context.Context) error { return client.GRPC(ctx, "traces", nested(2*depth), false) },
		"protobuf, twice as deep, HTTP": func(ctx context.Context) error {
			return client.HTTP(ctx, "traces", testbed.Protobuf, nested(2*depth), true)
		},
		"JSON values": func(ctx context.Context) error {
			return client.HTTP(ctx, "traces", testbed.JSON, inValue(`{"arrayValue":{"values":[`, `]}}`, 290_000), false)
		},
		"JSON values, 700,000 deep": func(ctx context.Context) error {
			return client.HTTP(ctx, "traces", testbed.JSON, inValue(`{"arrayValue":{"values":[`, `]}}`, depth), true)
		},
		"JSON lists in a field that is not known": func(ctx context.Context) error {
			return client.HTTP(ctx, "traces", testbed.JSON, []byte(`{"x":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`), false)
		},
		"JSON objects in a field that is not known": func(ctx context.Context) error {
			return client.HTTP(ctx, "traces", testbed.JSON, []byte(`{"x":`+strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)+`}`), false)
		},
	} {
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		err := send(ctx)
		cancel()
		c.Logf("%s: %.200v; peak %d MiB", name, err, c.residentMiB(collector, "VmHWM"))
		collector.RequireRunning()
		require.NotErrorIs(c, err, context.DeadlineExceeded, name)
		require.False(c, testbed.Retryable(err), "%s: %v", name, err)
	}
	served(c, collector, l)
}

// nested is a request with one resource that has lists in lists. Built from the inside, written from the end: AnyValue.array_value = 5,
// ArrayValue.values = 1.
func nested(depth int) []byte {
	b := make([]byte, 12*depth+100)
	at := len(b)
	prepend := func(tag byte) {
		length := binary.AppendUvarint([]byte{tag}, uint64(len(b)-at))
		at -= len(length)
		copy(b[at:], length)
	}
	for range depth {
		prepend(0x0a)
		prepend(0x2a)
	}
	prepend(0x12) // KeyValue.value
	prepend(0x0a) // Resource.attributes
	prepend(0x0a) // ResourceSpans.resource
	prepend(0x0a) // ExportTraceServiceRequest.resource_spans
	return b[at:]
}

func inValue(open, end string, depth int) []byte {
	return []byte(`{"resourceSpans":[{"resource":{"attributes":[{"key":"k","value":` + strings.Repeat(open, depth) + strings.Repeat(end, depth) + `}]}}]}`)
}
