// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjson

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
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
	exporter, err := newSpans(t.Context(), s.target(""), fastRetry.traces())
	require.NoError(t, err)
	require.ErrorContains(t, exporter.ExportSpans(t.Context(), someSpans()), "the server asks to wait 1h0m0s")
	_, _, n := s.last()
	require.Equal(t, 1, n)
	require.NoError(t, exporter.Shutdown(t.Context()))
}

func TestWaitEndsWithItsContext(t *testing.T) {
	require.NoError(t, wait(t.Context(), 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, wait(ctx, time.Hour), context.Canceled)
}

func TestCertificates(t *testing.T) {
	s := &server{}
	s.Server = httptest.NewUnstartedServer(s.keep(t, nil))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	folder := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	certificate := write("cert.pem", "CERTIFICATE", s.Certificate().Raw)
	der, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)

	untrusted := exporters(t, s.target(""))
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate)
	unknown := exporters(t, s.target(""))
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificate)
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", write("key.pem", "PRIVATE KEY", der))
	for i, e := range exporters(t, s.target("")) {
		require.NoError(t, e.export(t.Context()))
		require.Error(t, unknown[i].export(t.Context()), "without a certificate of the client")
		err := untrusted[i].export(t.Context())
		require.ErrorContains(t, err, "unknown authority")
		var failed *url.Error
		require.ErrorAs(t, err, &failed)
		require.False(t, failed.Temporary(), "it is retried")
	}
}

func TestEnvironment(t *testing.T) {
	folder := t.TempDir()
	empty := filepath.Join(folder, "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	const timeout, certificate = "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_CERTIFICATE"
	const clientCertificate, clientKey = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY"
	for _, tt := range []struct {
		name string
		env  map[string]string
		err  string
	}{
		{"no timeout", map[string]string{timeout: "0"}, timeout + `: "0" must be milliseconds above 0`},
		{"a unit", map[string]string{timeout: "10s"}, timeout + `: "10s" must be milliseconds above 0`},
		{"too long", map[string]string{timeout: "9223372036854775807"}, timeout + `: "9223372036854775807" must be milliseconds above 0`},
		{"the signal's own", map[string]string{timeout: "5", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "x"}, `OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "x"`},
		{"no file", map[string]string{certificate: filepath.Join(folder, "none")}, certificate + ": open "},
		{"no certificate", map[string]string{certificate: empty}, certificate + ": " + empty + " holds no certificate in PEM"},
		{"no key", map[string]string{clientCertificate: empty}, clientCertificate + " is set without " + clientKey},
		{"no certificate of the key", map[string]string{clientKey: empty}, clientKey + " is set without " + clientCertificate},
		{"no pair", map[string]string{clientKey: empty, clientCertificate: empty}, clientCertificate + ", " + clientKey + ": "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for key, value := range tt.env {
				t.Setenv(key, value)
			}
			_, err := NewSpans(t.Context(), Target{Endpoint: "http://127.0.0.1:1"})
			require.ErrorContains(t, err, tt.err)
		})
	}
	t.Setenv(timeout, " 1500 ")
	got, err := timeoutFromEnv("LOGS")
	require.NoError(t, err)
	require.Equal(t, 1500*time.Millisecond, got)
}
