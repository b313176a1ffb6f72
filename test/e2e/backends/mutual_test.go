// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package backends

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A gateway that demands client certificates takes what comes with one, and token, and nothing else. Certificates of both sides, and the authority
// of the clients', are replaced on disk while all of it runs.
func TestMutualTLS(t *testing.T) {
	servers, clients, newClients := newAuthority(t), newAuthority(t), newAuthority(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(secret), 0o600))
	gatewayCert := newFiles(t, servers.server("localhost", inAnHour()))
	trusted := filepath.Join(t.TempDir(), "clients.crt")
	copyFile(t, clients.file, trusted)

	var demand []string
	for _, protocol := range []string{"grpc", "http"} {
		key := "receivers.otlp.protocols." + protocol + ".tls."
		demand = append(demand, "--set", key+"client_ca_file="+trusted, "--set", key+"client_ca_file_reload=true", "--set", key+"reload_interval=100ms")
	}
	gateway := start(t, "gateway", "", demand, []string{"LENSCOL_TLS_CERT=" + gatewayCert.cert, "LENSCOL_TLS_KEY=" + gatewayCert.key, "LENSCOL_TOKEN_FILE=" + token})
	address := "localhost" + gateway.GRPC[strings.LastIndexByte(gateway.GRPC, ':'):]
	agent := func(args ...string) *collector {
		return start(t, "daemonset", "", append([]string{"--set", "exporters.otlp_grpc.tls.ca_file=" + servers.file}, args...),
			[]string{"LENSCOL_BACKEND=" + address, "LENSCOL_BACKEND_TOKEN_FILE=" + token})
	}
	with := func(f files) []string {
		return []string{"--set", "exporters.otlp_grpc.tls.cert_file=" + f.cert, "--set", "exporters.otlp_grpc.tls.key_file=" + f.key, "--set", "exporters.otlp_grpc.tls.reload_interval=100ms"}
	}
	archivedSpans := func(n int) {
		t.Helper()
		eventually(t, func() bool { return countSpans(t, filepath.Join(gateway.Dir, "lens-data", "traces.jsonl")) == n }, "%d spans at the gateway", n)
	}

	without := agent()
	sendAll(t, without.Collector)
	without.says(t, "it demands a client certificate: tls.cert_file and tls.key_file")
	stranger := agent(with(newFiles(t, newClients.client()))...)
	sendAll(t, stranger.Collector)
	stranger.says(t, "it refuses the client certificate")
	agentCert := newFiles(t, clients.client())
	friend := agent(with(agentCert)...)
	sendAll(t, friend.Collector)
	archivedSpans(1)

	// The gateway shows its new certificate without a restart.
	renewed := servers.server("localhost", inAnHour())
	gatewayCert.renew(t, renewed)
	eventually(t, func() bool {
		serial, err := serialOf(address, servers, clients.client())
		return err == nil && serial == renewed.Leaf.SerialNumber.String()
	}, "the renewed certificate of the gateway")

	// The agent shows its own, when it connects anew to a gateway that trusts no old one any more; the stranger's is then good.
	copyFile(t, newClients.file, trusted)
	agentCert.renew(t, newClients.client())
	archivedSpans(2) // Of the stranger, which goes on trying.
	gateway.Stop()
	gateway.Start()
	_, err := serialOf(address, servers, clients.client())
	require.Error(t, err, "an old certificate")
	sendAll(t, friend.Collector)
	archivedSpans(3)

	for _, c := range []*collector{without, stranger, friend, gateway} {
		c.Stop()
		c.requireNoSecret(t)
	}
	require.Equal(t, 3, countSpans(t, filepath.Join(gateway.Dir, "lens-data", "traces.jsonl")))
}

// serialOf connects and returns the serial number of the certificate that it is shown, after the other side has taken the client's.
func serialOf(address string, of *authority, client tls.Certificate) (string, error) {
	pool := x509.NewCertPool()
	pool.AddCert(of.cert)
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{client}, NextProtos: []string{"h2"}})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err != nil { // HTTP/2 begins with the server's settings.
		return "", err
	}
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, 0o600))
}

func countSpans(t *testing.T, path string) (n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var item struct{ Type string }
		if json.Unmarshal([]byte(line), &item) == nil && item.Type == "span" { // The last line may be being written.
			n++
		}
	}
	return n
}
