// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package testbed // import "github.com/lenscol/lenscol/internal/testbed"

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // registers the compressor
	"google.golang.org/grpc/status"
)

// Client sends OTLP requests as bytes that it does not look into, so that a test decides each of them.
type Client struct {
	conn *grpc.ClientConn
	http http.Client
	url  string
}

// Client returns a client with connections of its own; they are closed with the test.
func (c *Collector) Client() *Client {
	c.tb.Helper()
	conn, err := grpc.NewClient("passthrough:///"+c.GRPC,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.6, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		c.tb.Fatal(err)
	}
	client := &Client{conn: conn, http: http.Client{Transport: &http.Transport{}}, url: "http://" + c.HTTP}
	c.tb.Cleanup(client.Close)
	return client
}

// Close closes the client's connections. It may be called twice.
func (c *Client) Close() {
	_ = c.conn.Close() // Only says that it was closed before.
	c.http.CloseIdleConnections()
}

var methods = map[string]string{
	"traces":  "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	"metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
	"logs":    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}

// GRPC sends the protobuf message of a request, with gzip where compress says so. nil means acknowledged in full.
func (c *Client) GRPC(ctx context.Context, signal string, message []byte, compress bool) error {
	opts := []grpc.CallOption{grpc.ForceCodec(bytesCodec{})}
	if compress {
		opts = append(opts, grpc.UseCompressor("gzip"))
	}
	var answer []byte
	if err := c.conn.Invoke(ctx, methods[signal], &message, &answer, opts...); err != nil {
		return err
	}
	return wholeSuccess(answer)
}

// HTTP posts a request's body, of that content type, with gzip where compress says so. nil means acknowledged in full.
func (c *Client) HTTP(ctx context.Context, signal, contentType string, body []byte, compress bool) error {
	if compress {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err != nil {
			return err
		}
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		body = b.Bytes()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/"+signal, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	if compress {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return &HTTPError{resp.StatusCode, string(answer)}
	case contentType == JSON && string(answer) == `{"partialSuccess":{}}`:
		return nil
	}
	return wholeSuccess(answer)
}

// The content types of OTLP over HTTP.
const (
	Protobuf = "application/x-protobuf"
	JSON     = "application/json"
)

// wholeSuccess takes an export response apart as far as it needs: empty, or with an empty partial_success, field 1.
func wholeSuccess(answer []byte) error {
	if len(answer) == 0 || bytes.Equal(answer, []byte{0x0a, 0}) {
		return nil
	}
	return fmt.Errorf("the answer is not a whole success: %q", answer)
}

// HTTPError is an answer other than 200.
type HTTPError struct {
	Code int
	Body string
}

func (e *HTTPError) Error() string { return fmt.Sprintf("status %d: %q", e.Code, e.Body) }

// Retryable tells whether OTLP has a sender repeat a request that was answered so (OTLP 1.10, "Failures"): gRPC's
// Unavailable and its kin, HTTP's 429, 502, 503 and 504, and a connection that broke.
func Retryable(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case *HTTPError:
		return slices.Contains([]int{429, 502, 503, 504}, e.Code)
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.DataLoss:
		return true
	case codes.Unknown: // No gRPC status: the HTTP connection broke.
		_, isStatus := status.FromError(err)
		return !isStatus
	}
	return false
}

// bytesCodec hands messages through as they are.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = bytes.Clone(data)
	return nil
}

func (bytesCodec) Name() string { return "proto" }
