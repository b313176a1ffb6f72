// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package otlphttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRetryAfter: the transport waits for as long as it is asked to, or not at all.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, header string
		status       int
		deadline     time.Duration // of the export, 0: none
		waits        time.Duration
		err          string
	}{
		{"none", "", 503, 0, 0, ""},
		{"seconds", "7", 429, 0, 7 * time.Second, ""},
		{"a date", "Sun, 29 Nov 2026 12:00:30 GMT", 503, 0, 30 * time.Second, ""},
		{"a date that is past", "Sun, 29 Nov 2026 11:00:00 GMT", 503, 0, 0, ""},
		{"no number", "soon", 503, 0, 0, ""},
		{"within the deadline", "7", 502, 8 * time.Second, 7 * time.Second, ""},
		{"beyond the deadline", "9", 502, 8 * time.Second, 0, "502 Bad Gateway: the server asks to wait 9s, longer than an export may take"},
		{"beyond all", "61", 504, 0, 0, "504 Gateway Timeout: the server asks to wait 1m1s, longer than an export may take"},
		{"an error that is final", "7", 400, 0, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			if tt.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, now.Add(tt.deadline))
				defer cancel()
			}
			var waited time.Duration
			transport := &transport{now: func() time.Time { return now }, wait: func(_ context.Context, d time.Duration) error { waited = d; return nil }}
			resp := &http.Response{
				StatusCode: tt.status, Status: fmt.Sprint(tt.status, " ", http.StatusText(tt.status)), Header: http.Header{"Retry-After": {tt.header}},
			}
			err := transport.retryAfter(ctx, resp)
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tt.waits, waited)
		})
	}
}

// TestServersThatAskForTooMuch are not asked again.
func TestServersThatAskForTooMuch(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	eachEncoding(t, func(t *testing.T, json bool) {
		for _, e := range exporters(t, target{url: s.URL, json: json, retry: true}) {
			_, _, before := s.last()
			require.ErrorContains(t, e.export(t.Context()), "the server asks to wait 1h0m0s")
			_, _, after := s.last()
			require.Equal(t, before+1, after, e.signal)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	require.NoError(t, wait(t.Context(), 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, wait(ctx, time.Hour), context.Canceled)
}

// A server that is not who it should be is not asked again.
func TestCertificatesOfStrangersAreFinal(t *testing.T) {
	s := &server{}
	s.Server = httptest.NewUnstartedServer(s.keep(t, nil))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	known := x509.NewCertPool()
	known.AddCert(s.Certificate())
	eachEncoding(t, func(t *testing.T, json bool) {
		for _, e := range exporters(t, target{url: s.URL, json: json, config: &tls.Config{RootCAs: known}}) {
			require.NoError(t, e.export(t.Context()))
		}
		for _, e := range exporters(t, target{url: s.URL, json: json, retry: true}) {
			require.ErrorContains(t, e.export(t.Context()), "unknown authority")
		}
	})
}
