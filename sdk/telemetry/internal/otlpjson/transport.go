// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjson // import "github.com/lenscol/lenscol/sdk/telemetry/internal/otlpjson"

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// maxResponse is how many bytes of a response are read (OTLP 1.10, OTLP/HTTP response).
	maxResponse = 4 << 20
	// maxErrorText is how many bytes of an error response's body go into the error.
	maxErrorText = 1 << 10
	// maxRetryAfter is the longest that a request waits when the server asks for it; the exporters retry for no longer.
	maxRetryAfter = time.Minute
)

// transport is the round tripper of an exporter for http/protobuf.
type transport struct {
	signal  signal
	base    *http.Transport
	timeout time.Duration // of one request
	secrets []string
	now     func() time.Time
	wait    func(context.Context, time.Duration) error

	stopping atomic.Bool
	open     context.Context // ends with shutdown
	close    context.CancelCauseFunc
}

var errShutdown = errors.New("the exporter is shut down")

func newTransport(s signal, headers map[string]string) (*transport, error) {
	timeout, err := timeoutFromEnv(s.variable)
	if err != nil {
		return nil, err
	}
	config, err := tlsFromEnv(s.variable)
	if err != nil {
		return nil, err
	}
	t := &transport{signal: s, timeout: timeout, now: time.Now, wait: wait}
	t.base = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
	}
	for _, value := range headers {
		if value != "" {
			t.secrets = append(t.secrets, value)
		}
	}
	t.open, t.close = context.WithCancelCause(context.Background())
	return t, nil
}

// client follows no redirect: the headers are for the endpoint alone. Its timeout is the transport's.
func (t *transport) client() *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// untilShutdown is a context that ends with ctx and with the exporter, so that a shutdown does not wait for retries.
func (t *transport) untilShutdown(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.open, func() { cancel(errShutdown) })
	return ctx, func() { stop(); cancel(nil) }
}

// shutdown runs the exporter's own; once ctx is over, it ends the exports that that waits for. It may be called again.
func (t *transport) shutdown(ctx context.Context, exporter func(context.Context) error) error {
	if t.stopping.Swap(true) {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { t.close(errShutdown) })
	defer stop()
	defer t.base.CloseIdleConnections()
	defer t.close(errShutdown)
	return exporter(ctx)
}

// RoundTrip sends a request of protobuf as JSON, and returns the response as if it had come as protobuf.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := t.body(req)
	if err != nil {
		return nil, fmt.Errorf("encode %s as JSON: %w", strings.ToLower(t.signal.variable), err)
	}
	ctx, cancel := context.WithTimeout(req.Context(), t.timeout)
	defer cancel()
	out := req.Clone(ctx)
	out.Header.Set("Content-Type", "application/json")
	out.ContentLength = int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, _ = out.GetBody()

	resp, err := t.base.RoundTrip(out)
	if err != nil {
		return nil, retryable(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, retryable(err)
	}
	if len(text) > maxResponse {
		return nil, fmt.Errorf("the response is larger than %d bytes", maxResponse)
	}
	if resp.StatusCode/100 == 2 {
		text = t.success(resp, text)
	} else {
		text = t.failure(text)
		if err := t.retryAfter(req.Context(), resp); err != nil {
			return nil, err
		}
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return resp, nil
}

// body is the request's as JSON, compressed where that was.
func (t *transport) body(req *http.Request) ([]byte, error) {
	defer req.Body.Close()
	compressed := req.Header.Get("Content-Encoding") == "gzip"
	var in io.Reader = req.Body
	if compressed {
		zr, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = zr
	}
	protobuf, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	text, err := t.signal.toJSON(protobuf)
	if err != nil || !compressed {
		return text, err
	}
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	if _, err := zw.Write(text); err != nil {
		return nil, err
	}
	err = zw.Close()
	return out.Bytes(), err
}

// success is a response in protobuf; what is no JSON of OTLP tells nothing.
func (t *transport) success(resp *http.Response, text []byte) []byte {
	protobuf, err := t.signal.responseJSON(text)
	if err != nil {
		return nil
	}
	resp.Header.Set("Content-Type", "application/x-protobuf")
	return protobuf
}

// failure is what the exporter's error may quote: short, and without the secrets that a server may send back.
func (t *transport) failure(text []byte) []byte {
	out := string(text)
	for _, secret := range t.secrets {
		out = strings.ReplaceAll(out, secret, "[REDACTED]")
	}
	if len(out) > maxErrorText {
		out = out[:maxErrorText] + "…"
	}
	return []byte(strings.ToValidUTF8(out, "\uFFFD"))
}

// retryAfter waits for as long as the server asks before a retry; the exporters for http/protobuf take its seconds for
// nanoseconds. It is an error, which is not retried, to be asked for longer than ctx or the exporter gives.
func (t *transport) retryAfter(ctx context.Context, resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return nil
	}
	text := resp.Header.Get("Retry-After")
	resp.Header.Del("Retry-After")
	var delay time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		delay = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		delay = at.Sub(t.now())
	}
	if delay <= 0 {
		return nil
	}
	deadline, bounded := ctx.Deadline()
	if delay > maxRetryAfter || bounded && t.now().Add(delay).After(deadline) {
		return fmt.Errorf("%s: the server asks to wait %v, longer than an export may take", resp.Status, delay)
	}
	return t.wait(ctx, delay)
}

func wait(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retryable marks an error of the connection, so that the exporter tries again: a collector may start later than what sends
// to it. A server that is not who it should be is final.
func retryable(err error) error {
	if cert := (*tls.CertificateVerificationError)(nil); errors.As(err, &cert) {
		return err
	}
	return temporary{err}
}

type temporary struct{ error }

func (temporary) Temporary() bool { return true }
func (t temporary) Unwrap() error { return t.error }
