// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// secureSink takes traces by TLS, over HTTP at web and gRPC at rpc, from clients that have a certificate. It has one of its own, which
// is in the files, and which clients may have too.
type secureSink struct {
	*sink
	web, rpc         string // host:port
	certificate, key string // files
}

func newSecureSink(t *testing.T) *secureSink {
	s := &secureSink{sink: newSink(t)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	s.web = server.Listener.Addr().String()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.rpc = listener.Addr().String()
	secure := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: server.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert,
	})))
	coltrace.RegisterTraceServiceServer(secure, traceService{s: s.sink})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = secure.Serve(listener) // its error is that it was stopped
	}()
	t.Cleanup(func() {
		secure.Stop()
		<-served
	})

	folder := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	s.certificate = write("cert.pem", "CERTIFICATE", server.Certificate().Raw)
	der, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	s.key = write("key.pem", "PRIVATE KEY", der)
	return s
}

// https, and host:port, with the certificates that the variables name.
func TestTLS(t *testing.T) {
	s := newSecureSink(t)
	came := func() int { return len(s.allSpans()) + len(s.json) }
	for _, c := range []struct{ protocol, endpoint string }{
		{ProtocolHTTP, "https://" + s.web + "/otel/v1/traces"},
		{ProtocolJSON, "https://" + s.web + "/otel/v1/traces"},
		{ProtocolGRPC, "https://" + s.rpc},
		{ProtocolGRPC, s.rpc},
	} {
		t.Run(c.protocol+" "+c.endpoint, func(t *testing.T) {
			send := func(timeout time.Duration, env map[string]string) error {
				cleanEnv(t)
				for _, key := range []string{"", "CLIENT_"} {
					t.Setenv("OTEL_EXPORTER_OTLP_"+key+"CERTIFICATE", env[key+"CERTIFICATE"])
				}
				t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", env["CLIENT_KEY"])
				cfg := to(s.sink, c.protocol)
				cfg.MetricsEnabled, cfg.LogsEnabled = false, false
				cfg.Traces.Endpoint, cfg.Traces.Timeout = c.endpoint, timeout
				h := setUp(t, cfg)
				one(t.Context(), h, "one")
				ctx, cancel := context.WithTimeout(t.Context(), far)
				defer cancel()
				return h.Shutdown(ctx)
			}
			stranger := far // of HTTP it is final; gRPC tries until its time is over
			if c.protocol == ProtocolGRPC {
				stranger = 2 * time.Second
			}
			before := came()
			require.NoError(t, send(far, map[string]string{"CERTIFICATE": s.certificate, "CLIENT_CERTIFICATE": s.certificate, "CLIENT_KEY": s.key}))
			require.Equal(t, before+1, came())
			require.ErrorContains(t, send(stranger, nil), "certificate signed by unknown authority")
			require.Error(t, send(time.Second, map[string]string{"CERTIFICATE": s.certificate}), "without a certificate of the client")
			require.Equal(t, before+1, came())
		})
	}
}

// What there is for https does not count for http.
func TestNoTLS(t *testing.T) {
	for _, protocol := range sending {
		t.Run(protocol, func(t *testing.T) {
			cleanEnv(t)
			secure := newSecureSink(t)
			t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", secure.certificate)
			t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/none")
			s := newSink(t)
			h := setUp(t, to(s, protocol))
			one(t.Context(), h, "one")
			require.NoError(t, h.Shutdown(t.Context()))
			require.Equal(t, 3, len(s.allSpans())+len(s.metricNames())+len(s.logBodies())+len(s.json))
		})
	}
}

func TestTLSErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	const certificate, ownCertificate = "OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"
	const clientCertificate, clientKey = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY"
	for _, c := range []struct {
		name string
		env  map[string]string
		err  string
	}{
		{"no file", map[string]string{certificate: "/none"}, certificate + ": open /none: "},
		{"no certificate", map[string]string{certificate: empty}, certificate + ": " + empty + " holds no certificate in PEM"},
		{"the signal's own", map[string]string{certificate: "/none", ownCertificate: empty}, ownCertificate + ": " + empty},
		{"no key", map[string]string{clientCertificate: empty}, clientCertificate + " is set without " + clientKey},
		{"no certificate of the key", map[string]string{clientKey: empty}, clientKey + " is set without " + clientCertificate},
		{"no pair", map[string]string{clientKey: empty, clientCertificate: empty}, clientCertificate + ", " + clientKey + ": "},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, protocol := range sending {
				cleanEnv(t)
				for name, value := range c.env {
					t.Setenv(name, value)
				}
				cfg := to(newSink(t), protocol)
				cfg.Traces.Endpoint = "https://127.0.0.1:1"
				_, err := Setup(t.Context(), cfg, WithReinit())
				require.ErrorContains(t, err, "set up telemetry: traces: "+c.err)
			}
		})
	}
}
