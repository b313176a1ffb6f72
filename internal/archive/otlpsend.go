// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/pipeline"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// Sender sends a batch once.
type Sender interface {
	// Send returns how many records the receiver took but rejected for good, and its reason. An error that is a [*RetryError] may
	// be gone at the next try, one that is a [*SizeError] with fewer records, any other stays.
	Send(ctx context.Context, b jsonlreader.Batch) (rejected int64, reason string, err error)
	Close() error
}

// RetryError is of a request that may be tried again (OTLP 1.10, "Failures" of gRPC and of HTTP).
type RetryError struct {
	Err   error
	After time.Duration // what the receiver asks to wait, 0 where it does not
}

func (e *RetryError) Error() string { return e.Err.Error() }
func (e *RetryError) Unwrap() error { return e.Err }

// SizeError is of a request that is larger than the receiver takes.
type SizeError struct{ Err error }

func (e *SizeError) Error() string { return e.Err.Error() }
func (e *SizeError) Unwrap() error { return e.Err }

// sendTimeout bounds one try.
const sendTimeout = 30 * time.Second

var signalPath = regexp.MustCompile(`/v1/(traces|metrics|logs)/?$`)

// ParseEndpoint reads the base URL of an OTLP receiver. A path of one signal at its end is taken off.
func ParseEndpoint(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--endpoint: %q is not a URL like http://127.0.0.1:4318", endpoint)
	}
	u.Path = strings.TrimRight(signalPath.ReplaceAllString(u.Path, ""), "/")
	return u, nil
}

// NewSender returns a sender over "grpc" or "http"; "" is grpc for port 4317, else http. The headers go with every request.
func NewSender(endpoint *url.URL, protocol string, headers map[string]string) (Sender, error) {
	if protocol == "" {
		protocol = "http"
		if endpoint.Port() == "4317" {
			protocol = "grpc"
		}
	}
	switch protocol {
	case "http":
		transport := http.DefaultTransport.(*http.Transport).Clone()
		return &httpSender{base: endpoint, headers: headers, client: &http.Client{Transport: transport}}, nil
	case "grpc":
		host := endpoint.Host
		creds := insecure.NewCredentials()
		if endpoint.Scheme == "https" {
			creds = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
			if endpoint.Port() == "" {
				host = net.JoinHostPort(endpoint.Hostname(), "443")
			}
		}
		conn, err := grpc.NewClient(host, grpc.WithTransportCredentials(creds))
		if err != nil {
			return nil, fmt.Errorf("--endpoint %s: %w", endpoint.Redacted(), err)
		}
		return &grpcSender{
			conn: conn, headers: metadata.New(headers),
			traces: ptraceotlp.NewGRPCClient(conn), metrics: pmetricotlp.NewGRPCClient(conn), logs: plogotlp.NewGRPCClient(conn),
		}, nil
	default:
		return nil, fmt.Errorf("--protocol: %q is not one of grpc, http", protocol)
	}
}

type httpSender struct {
	base    *url.URL
	headers map[string]string
	client  *http.Client
}

func (s *httpSender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

func (s *httpSender) Send(ctx context.Context, b jsonlreader.Batch) (int64, string, error) {
	switch b.Signal {
	case pipeline.SignalTraces:
		answer := ptraceotlp.NewExportResponse()
		err := s.post(ctx, "/v1/traces", ptraceotlp.NewExportRequestFromTraces(b.Traces), answer)
		return answer.PartialSuccess().RejectedSpans(), answer.PartialSuccess().ErrorMessage(), err
	case pipeline.SignalMetrics:
		answer := pmetricotlp.NewExportResponse()
		err := s.post(ctx, "/v1/metrics", pmetricotlp.NewExportRequestFromMetrics(b.Metrics), answer)
		return answer.PartialSuccess().RejectedDataPoints(), answer.PartialSuccess().ErrorMessage(), err
	default:
		answer := plogotlp.NewExportResponse()
		err := s.post(ctx, "/v1/logs", plogotlp.NewExportRequestFromLogs(b.Logs), answer)
		return answer.PartialSuccess().RejectedLogRecords(), answer.PartialSuccess().ErrorMessage(), err
	}
}

func (s *httpSender) post(ctx context.Context, path string, request interface{ MarshalProto() ([]byte, error) }, answer interface{ UnmarshalProto([]byte) error }) error {
	body, err := request.MarshalProto()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	for k, v := range s.headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := s.client.Do(req)
	if err != nil {
		return &RetryError{Err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return &RetryError{Err: err}
	}
	if resp.StatusCode/100 == 2 {
		_ = answer.UnmarshalProto(text) // What is not OTLP rejects nothing.
		return nil
	}
	err = fmt.Errorf("%s answers %s", path, resp.Status)
	if utf8Text := strings.TrimSpace(strings.ToValidUTF8(string(text), "")); len(utf8Text) > 0 {
		err = fmt.Errorf("%w: %s", err, clip([]byte(utf8Text)))
	}
	switch {
	case resp.StatusCode == http.StatusRequestEntityTooLarge, bytes.Contains(text, []byte("request body too large")): // As the collector's receiver says it.
		return &SizeError{err}
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &RetryError{Err: err, After: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	default:
		return err
	}
}

// retryAfter reads the header: seconds or a date (RFC 9110, 10.2.3).
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

type grpcSender struct {
	conn    *grpc.ClientConn
	headers metadata.MD
	traces  ptraceotlp.GRPCClient
	metrics pmetricotlp.GRPCClient
	logs    plogotlp.GRPCClient
}

func (s *grpcSender) Close() error { return s.conn.Close() }

func (s *grpcSender) Send(ctx context.Context, b jsonlreader.Batch) (int64, string, error) {
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, s.headers), sendTimeout)
	defer cancel()
	switch b.Signal {
	case pipeline.SignalTraces:
		answer, err := s.traces.Export(ctx, ptraceotlp.NewExportRequestFromTraces(b.Traces))
		if err != nil {
			return 0, "", grpcError(err)
		}
		return answer.PartialSuccess().RejectedSpans(), answer.PartialSuccess().ErrorMessage(), nil
	case pipeline.SignalMetrics:
		answer, err := s.metrics.Export(ctx, pmetricotlp.NewExportRequestFromMetrics(b.Metrics))
		if err != nil {
			return 0, "", grpcError(err)
		}
		return answer.PartialSuccess().RejectedDataPoints(), answer.PartialSuccess().ErrorMessage(), nil
	default:
		answer, err := s.logs.Export(ctx, plogotlp.NewExportRequestFromLogs(b.Logs))
		if err != nil {
			return 0, "", grpcError(err)
		}
		return answer.PartialSuccess().RejectedLogRecords(), answer.PartialSuccess().ErrorMessage(), nil
	}
}

// grpcError tells which codes may be tried again; of ResourceExhausted only with the receiver's word for it.
func grpcError(err error) error {
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	var after time.Duration
	said := false
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			said, after = true, info.GetRetryDelay().AsDuration()
		}
	}
	named := errors.New(st.Code().String() + ": " + st.Message())
	switch st.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return &RetryError{Err: named, After: after}
	case codes.ResourceExhausted:
		if said {
			return &RetryError{Err: named, After: after}
		}
		return &SizeError{named} // gRPC's own word for a message beyond its bound.
	}
	return named
}
