// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlphttp is the HTTP client of OpenTelemetry's exporters for http/protobuf. Data model, retries with backoff, partial
// success and compression are theirs; this is below them:
//
//   - A connection that is refused or breaks is tried again, since a collector may start later than what sends to it.
//   - Retry-After is read as seconds or a date (RFC 9110, 10.2.3).
//   - No redirect is followed: the headers are for the endpoint alone.
//   - http/json, which the exporters do not have: each request is translated to JSON and each response back
//     (OTLP 1.10, OTLP/HTTP, JSON Protobuf encoding).
//
// Requests end with their contexts and have no timeout of their own.
package otlphttp // import "github.com/lenscol/lenscol/sdk/telemetry/internal/otlphttp"

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
	"time"
)

const (
	// maxResponse is how many bytes of a response are read (OTLP 1.10, OTLP/HTTP response).
	maxResponse = 4 << 20
	// maxRetryAfter is the longest that a request waits when the server asks for it; the exporters retry for no longer.
	maxRetryAfter = time.Minute
)

// Protobuf is a client for http/protobuf. config may be nil.
func Protobuf(config *tls.Config) *http.Client { return client(config, nil) }

// JSON is a client for http/json. config may be nil.
func JSON(s Signal, config *tls.Config) *http.Client { return client(config, &s) }

func client(config *tls.Config, json *Signal) *http.Client {
	return &http.Client{
		Transport: &transport{
			base: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				ForceAttemptHTTP2:   true,
				TLSClientConfig:     config,
				TLSHandshakeTimeout: 10 * time.Second,
				IdleConnTimeout:     90 * time.Second,
			},
			json: json,
			now:  time.Now,
			wait: wait,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// transport is the round tripper of an exporter for http/protobuf.
type transport struct {
	base *http.Transport
	json *Signal // translates, unless it is nil
	now  func() time.Time
	wait func(context.Context, time.Duration) error
}

// CloseIdleConnections is asked for by [http.Client.CloseIdleConnections].
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// RoundTrip sends a request of protobuf, and returns the response as one of protobuf.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req
	if t.json != nil {
		var err error
		if out, err = t.json.request(req); err != nil {
			return nil, fmt.Errorf("encode as JSON: %w", err)
		}
	}
	resp, err := t.base.RoundTrip(out)
	if err != nil {
		return nil, retryable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, retryable(err)
	}
	if len(body) > maxResponse {
		return nil, fmt.Errorf("the response is larger than %d bytes", maxResponse)
	}
	if resp.StatusCode/100 != 2 {
		if err := t.retryAfter(req.Context(), resp); err != nil {
			return nil, err
		}
	} else if t.json != nil {
		body = t.json.success(resp, body)
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// request is req as JSON, compressed where that was.
func (s Signal) request(req *http.Request) (*http.Request, error) {
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
	body, err := s.toJSON(protobuf)
	if err != nil {
		return nil, err
	}
	if compressed {
		var zipped bytes.Buffer
		zw := gzip.NewWriter(&zipped)
		_, err := zw.Write(body)
		if err = errors.Join(err, zw.Close()); err != nil {
			return nil, err
		}
		body = zipped.Bytes()
	}
	out := req.Clone(req.Context())
	out.Header.Set("Content-Type", "application/json")
	out.ContentLength = int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, err = out.GetBody()
	return out, err
}

// success is the body of a response in protobuf; what is no JSON of OTLP tells nothing.
func (s Signal) success(resp *http.Response, text []byte) []byte {
	protobuf, err := s.responseJSON(text)
	if err != nil {
		return nil
	}
	resp.Header.Set("Content-Type", "application/x-protobuf")
	return protobuf
}

// retryAfter waits for as long as the server asks before a retry; the exporters take its seconds for nanoseconds. It is an
// error, which is not retried, to be asked for longer than ctx or the exporter gives.
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

// retryable marks an error of the connection, so that the exporter tries again. A server that is not who it should be is
// final.
func retryable(err error) error {
	if cert := (*tls.CertificateVerificationError)(nil); errors.As(err, &cert) {
		return err
	}
	return temporary{err}
}

type temporary struct{ error }

func (temporary) Temporary() bool { return true }
func (t temporary) Unwrap() error { return t.error }
