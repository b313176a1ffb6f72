// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/lenscol/lenscol/internal/testbed"
)

const token = "a-token-that-every-sender-has"

// secrets are files of a site: a certificate, its key, and a token.
type secrets struct {
	cert, key, token string
	pool             *x509.CertPool
}

// newSecrets makes a certificate, its own authority, for these names.
func newSecrets(t *testing.T, names ...string) secrets {
	t.Helper()
	dir := t.TempDir()
	s := secrets{token: filepath.Join(dir, "token"), pool: x509.NewCertPool()}
	s.cert, s.key = testbed.Certificate(t, dir, names...)
	require.NoError(t, os.WriteFile(s.token, []byte(token), 0o600))
	pemCert, err := os.ReadFile(s.cert)
	require.NoError(t, err)
	require.True(t, s.pool.AppendCertsFromPEM(pemCert))
	return s
}

func (s secrets) server() []string {
	return []string{"LENSCOL_TLS_CERT=" + s.cert, "LENSCOL_TLS_KEY=" + s.key, "LENSCOL_TOKEN_FILE=" + s.token, "SSL_CERT_FILE=" + s.cert}
}

// post sends to a gateway over HTTPS, and returns the status of the answer.
func (s secrets) post(t *testing.T, address, server, token string, telemetry any) int {
	t.Helper()
	signal, body := message(t, telemetry)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+"/v1/"+signal, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", testbed.Protobuf)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.pool, ServerName: server}, DisableKeepAlives: true}}
	answer, err := client.Do(req)
	require.NoError(t, err)
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// Node agents send one rank's spans, errors of any rank, and all metrics and logs to a gateway, which takes them with the token alone.
func TestDaemonsetToGateway(t *testing.T) {
	t.Parallel()
	s := newSecrets(t, "localhost")
	gateway := start(t, "gateway", testbed.Options{Env: s.server()})
	backend := "LENSCOL_BACKEND=localhost:" + gateway.GRPC[strings.LastIndexByte(gateway.GRPC, ':')+1:]
	node := start(t, "daemonset", testbed.Options{Env: []string{backend, "LENSCOL_BACKEND_TOKEN_FILE=" + s.token, "SSL_CERT_FILE=" + s.cert}})

	var spans []span
	var resources []attributes
	for n := range int64(4) {
		spans = append(spans, span{name: fmt.Sprint("step of rank ", n), resource: rank(n, 4)})
		resources = append(resources, rank(n, 4))
	}
	spans = append(spans, span{name: "error of rank 3", resource: rank(3, 4), failed: true}, span{name: "of no rank"})
	send(t, node, traces(spans...), gauges("loss", resources...), record("hello", rank(2, 4)))

	folder := filepath.Join(gateway.Dir, "lens-data")
	eventually(t, func() bool {
		return len(archived(t, folder, "traces", "span")) >= 3 && len(archived(t, folder, "metrics", "metric")) >= 4 && len(archived(t, folder, "logs", "log")) >= 1
	}, "telemetry at the gateway")
	require.ElementsMatch(t, []string{"step of rank 0", "error of rank 3", "of no rank"}, names(archived(t, folder, "traces", "span")))

	prompts := sendPrompts(t, node)
	count := func(name string) (n int) {
		for _, of := range names(archived(t, folder, "traces", "span")) {
			if of == name {
				n++
			}
		}
		return n
	}
	eventually(t, func() bool { return count("prompt") == prompts }, "all prompts at the gateway")

	wrong := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(wrong, []byte("another"), 0o600))
	stranger := start(t, "daemonset", testbed.Options{Env: []string{backend, "LENSCOL_BACKEND_TOKEN_FILE=" + wrong, "SSL_CERT_FILE=" + s.cert}})
	send(t, stranger, traces(span{name: "stranger", resource: rank(0, 1)}))
	eventually(t, func() bool { return strings.Contains(stranger.Stderr(), "Unauthenticated") }, "a line that says why")
	require.NotContains(t, stranger.Stderr(), "another")
	for _, token := range []string{"", "another"} {
		require.Equal(t, http.StatusUnauthorized, s.post(t, gateway.HTTP, "localhost", token, traces(span{name: "stranger"})))
	}
	require.Equal(t, http.StatusOK, s.post(t, gateway.HTTP, "localhost", token, traces(span{name: "friend"})))
	clear := gateway.Client()
	defer clear.Close()
	signal, body := message(t, traces(span{name: "stranger"}))
	require.Error(t, clear.HTTP(t.Context(), signal, testbed.Protobuf, body, false), "no clear text")

	node.Stop()
	stranger.Stop()
	gateway.Stop()
	got := names(archived(t, folder, "traces", "span"))
	require.Contains(t, got, "friend")
	require.NotContains(t, got, "stranger")
}

// Two gateways: the spans of a trace come to both, one of them decides, and it keeps traces with an error whole. Ranks pass.
func TestTailSampling(t *testing.T) {
	t.Parallel()
	const peers = "gateways.test"
	s := newSecrets(t, peers)
	port := testbed.FreePort(t)
	var gateways []*testbed.Collector
	var http []string
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		address := host + ":" + testbed.FreePort(t)
		gateways = append(gateways, start(t, "tail-sampling", testbed.Options{
			// In the place of a name server. The certificate is for the shared name, as in a cluster.
			Args: []string{"--config", "yaml:exporters::load_balancing::resolver: {dns: null, static: {hostnames: ['127.0.0.1:" + port + "', '127.0.0.2:" + port + "']}}",
				"--set", "processors.tail_sampling.decision_wait=2s"},
			Env: append(s.server(), "LENSCOL_HOST="+host, "LENSCOL_PEERS="+peers, "LENSCOL_PEER_PORT="+port, "LENSCOL_KEEP_PERCENT=0",
				"LENSCOL_HTTP_PORT="+address[len(host)+1:]),
			Listens: []string{address, host + ":" + port},
		}))
		http = append(http, address)
	}

	const requests = 40
	var halves [2][]span
	for i := range requests {
		for half := range halves {
			halves[half] = append(halves[half], span{
				name: fmt.Sprintf("request %d/%d", i, half), trace: 1<<40 + uint64(i), resource: attributes{"service.name": "nemo-gym/math", "dl.rank": 0, "dl.world_size": 1},
				failed: i%4 == 0 && half == 1,
			})
		}
	}
	for half := range halves {
		halves[half] = append(halves[half], span{name: fmt.Sprint("step ", half), resource: rank(int64(half), 2)})
		require.Equal(t, 200, s.post(t, http[half], peers, token, traces(halves[half]...)))
	}

	decided := func() (all []string, perGateway [2]map[string]int) {
		for i, gateway := range gateways {
			perGateway[i] = map[string]int{}
			for _, line := range archived(t, filepath.Join(gateway.Dir, "lens-data"), "traces", "span") {
				all = append(all, line["name"].(string))
				perGateway[i][line["trace_id"].(string)]++
			}
		}
		return all, perGateway
	}
	const kept = requests/4*2 + 2
	eventually(t, func() bool { all, _ := decided(); return len(all) >= kept }, "%d spans", kept)
	for _, gateway := range gateways {
		gateway.Stop() // What is undecided is decided.
	}
	all, perGateway := decided()
	var expected []string
	for i := 0; i < requests; i += 4 {
		expected = append(expected, fmt.Sprintf("request %d/0", i), fmt.Sprintf("request %d/1", i))
	}
	require.ElementsMatch(t, append(expected, "step 0", "step 1"), all)
	for i, traces := range perGateway {
		require.Greater(t, len(traces), 1, "gateway %d has its share", i)
		for trace, n := range traces {
			if _, elsewhere := perGateway[1-i][trace]; elsewhere {
				require.Fail(t, "a trace at both gateways", "%s: %d spans", trace, n)
			}
		}
	}
}

// What agents wrote into Kafka, which was not there at their start, is archived by a gateway that is killed while it reads.
func TestKafka(t *testing.T) {
	t.Parallel()
	port := testbed.FreePort(t)
	brokers := "LENSCOL_KAFKA_BROKERS=127.0.0.1:" + port
	agent := start(t, "kafka-agent", testbed.Options{Env: []string{brokers}})
	client := agent.Client()
	defer client.Close()
	signal, body := message(t, traces(span{name: "early", resource: rank(0, 2)}))
	impatient, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	require.Error(t, client.GRPC(impatient, signal, body, false), "while Kafka is away, the sender keeps it")

	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	cluster, err := kfake.NewCluster(kfake.Ports(number), kfake.SeedTopics(4, "lens-traces", "lens-metrics", "lens-logs"))
	require.NoError(t, err)
	defer cluster.Close()
	send(t, agent, traces(span{name: "step 0", resource: rank(0, 2)}), gauges("loss", rank(0, 2), rank(1, 2)), record("hello", rank(1, 2)))

	health := testbed.FreePort(t)
	gateway := start(t, "kafka-gateway", testbed.Options{
		Env: []string{brokers, "LENSCOL_HEALTH_PORT=" + health}, Listens: []string{"127.0.0.1:" + health}})
	folder := filepath.Join(gateway.Dir, "lens-data")
	seen := func() int {
		distinct := map[string]bool{}
		for _, name := range names(archived(t, folder, "traces", "span")) {
			if name != "early" { // It may have been on its way to Kafka.
				distinct[name] = true
			}
		}
		return len(distinct)
	}
	eventually(t, func() bool {
		return seen() == 1 && len(archived(t, folder, "metrics", "metric")) == 2 && len(archived(t, folder, "logs", "log")) == 1
	}, "what was written before")

	const batches = 100
	for i := 1; i < batches; i++ {
		send(t, agent, traces(span{name: fmt.Sprint("step ", i), resource: rank(0, 2)}))
		if i == batches/2 {
			gateway.Kill()
		}
	}
	agent.Stop()
	gateway.Start()
	eventually(t, func() bool { return seen() == batches }, "all that was written")
	gateway.Stop()
}
