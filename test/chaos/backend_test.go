// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

package chaos

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/lenscol/lenscol/internal/testbed"
)

// steady are senders of some thousand spans a second, for cases that last.
var steady = []sender{{spans: 50, text: 50, pause: 50 * time.Millisecond}, {spans: 5, http: true, pause: 20 * time.Millisecond}}

// backendDown takes the backend away and gives it back, with a restart in between.
func backendDown(c *chaos) {
	backend := c.newSink(takeAll)
	backend.serveHTTP()
	collector := c.toHoneycomb(backend, testbed.Options{})
	collector.Start()
	l := c.start(collector, steady...)
	c.answers(l, 50)
	backend.close()
	c.pass(forms(2*time.Second, 5*time.Minute), "down")
	collector.Stop()
	collector.Start()
	c.pass(forms(2*time.Second, 5*time.Minute), "still down, restarted")
	backend.serveHTTP()
	c.answers(l, 50)
	c.stop(l)
	c.delivered()
	collector.Stop()
}

// pass lets time pass, and says where the case is.
func (c *chaos) pass(d time.Duration, what string) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		c.progress("%s for %s more", what, time.Until(end).Round(time.Second))
		time.Sleep(min(time.Until(end), 15*time.Second)) // What lasts is the case.
	}
}

// toTempo is lenscol:tempo, the queue in memory before a backend over gRPC, with the sink as Tempo. counter reads one of its own metrics.
func (c *chaos) toTempo(s *sink, settings ...string) (collector *testbed.Collector, counter func(string) int) {
	port := testbed.FreePort(c)
	collector = c.embedded("tempo", testbed.Options{Env: []string{"LENSCOL_TEMPO=" + s.address, "LENSCOL_METRICS_PORT=" + port}}, settings...)
	return collector, func(name string) int { return c.counter(port, name) }
}

// counter is the sum of a metric of the collector over all its attributes.
func (c *chaos) counter(port, name string) (sum int) {
	c.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Get("http://127.0.0.1:" + port + "/metrics")
	require.NoError(c, err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok && (rest[0] == '{' || rest[0] == ' ') {
			value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
			require.NoError(c, err)
			sum += int(value)
		}
	}
	require.NoError(c, lines.Err())
	return sum
}

// backendSlow has a small queue before a backend that is slower than the senders, and at times slower than the exporter waits.
func backendSlow(c *chaos) {
	backend := c.newSink(func(n int64) answer {
		if n%10 == 0 {
			return answer{delay: 1500 * time.Millisecond}
		}
		return answer{delay: 100 * time.Millisecond}
	})
	backend.serveGRPC(nil)
	collector, _ := c.toTempo(backend, "exporters.otlp_grpc.timeout=1s", "exporters.otlp_grpc.sending_queue.queue_size=262144")
	collector.Start()
	l := c.start(collector, mixed...)
	c.pass(forms(5*time.Second, 5*time.Minute), "slow")
	c.stop(l)
	c.delivered()
	collector.Stop()
}

// refusingGRPC refuses every second request in all ways that a sender has to repeat, some of them after it took the data; and one in ten for good.
func refusingGRPC(c *chaos) {
	again := []answer{
		{code: codes.Unavailable}, {code: codes.Unavailable, retryAfter: 100 * time.Millisecond}, {code: codes.ResourceExhausted, retryAfter: 100 * time.Millisecond},
		{code: codes.Unavailable, took: true}, {code: codes.Aborted}, {code: codes.DeadlineExceeded},
	}
	backend := c.newSink(func(n int64) answer {
		switch {
		case n%10 == 9:
			return answer{code: codes.InvalidArgument, forGood: true}
		case n%2 == 0:
			return again[n/2%int64(len(again))]
		}
		return answer{}
	})
	backend.serveGRPC(nil)
	collector, counter := c.toTempo(backend)
	refusing(c, backend, collector, counter)
}

// refusingHTTP does the same over HTTP, before a queue on disk.
func refusingHTTP(c *chaos) {
	again := []answer{
		{status: 503}, {status: 503, retryAfter: time.Second}, {status: 429}, {status: 429, retryAfter: time.Second}, {status: 503, took: true}, {status: 502}, {status: 504},
	}
	backend := c.newSink(func(n int64) answer {
		switch {
		case n%10 == 9:
			return answer{status: 400, forGood: true}
		case n%2 == 0:
			return again[n/2%int64(len(again))]
		}
		return answer{}
	})
	backend.serveHTTP()
	port := testbed.FreePort(c)
	collector := c.toHoneycomb(backend, testbed.Options{Env: []string{"LENSCOL_METRICS_PORT=" + port}})
	refusing(c, backend, collector, func(name string) int { return c.counter(port, name) })
}

func refusing(c *chaos, backend *sink, collector *testbed.Collector, counter func(string) int) {
	collector.Start()
	l := c.start(collector, mixed...)
	enough := forms[int64](100, 3000)
	c.eventually(func() bool {
		c.progress("%d of %d requests", backend.requests.Load(), enough)
		return backend.requests.Load() >= enough
	}, func() string { return fmt.Sprintf("%d of %d requests", backend.requests.Load(), enough) })
	c.stop(l)
	c.eventually(func() bool {
		c.book.drop(counter("otelcol_exporter_send_failed_spans"))
		return c.book.balance(0).closed()
	}, func() string { return c.book.balance(0).String() })
	require.NotZero(c, c.book.balance(0).counted)
	require.NotZero(c, c.book.balance(0).duplicates)
	collector.Stop()
}

// flappingTLS has a gateway go in and out: not there, closing connections in the middle of the handshake, silent in it, with a stranger's certificate.
func flappingTLS(c *chaos) {
	own, authority := certificate(c)
	stranger, _ := certificate(c)
	token := filepath.Join(c.TempDir(), "token")
	require.NoError(c, os.WriteFile(token, []byte("a-token-of-some-length"), 0o600))
	backend := c.newSink(takeAll)
	_, port, err := net.SplitHostPort(backend.address)
	require.NoError(c, err)
	collector := c.embedded("daemonset", testbed.Options{Env: []string{
		"LENSCOL_BACKEND=localhost:" + port, "LENSCOL_BACKEND_TOKEN_FILE=" + token, "SSL_CERT_FILE=" + authority,
	}})
	backend.serveGRPC(own)
	collector.Start()
	l := c.start(collector, mixed...)
	for round := range forms(8, 200) {
		taken := backend.requests.Load()
		c.eventually(func() bool { return backend.requests.Load() > taken }, func() string { return "nothing arrives in round " + fmt.Sprint(round) })
		backend.close()
		switch round % 4 {
		case 1:
			backend.serveBroken(0)
		case 2:
			backend.serveBroken(500 * time.Millisecond)
		case 3:
			backend.serveGRPC(stranger)
		}
		time.Sleep(300 * time.Millisecond) // For how long it is so.
		if round%4 > 0 {
			backend.close()
		}
		backend.serveGRPC(own)
		c.progress("%d rounds", round+1)
	}
	c.stop(l)
	c.delivered()
	collector.Stop()
}

// serveBroken accepts connections and closes them in the middle of the handshake, at once or after a silence.
func (s *sink) serveBroken(silence time.Duration) {
	listener, ended := s.listen(), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 16)) // The beginning of the client's hello.
			time.Sleep(silence)
			_ = conn.Close()
		}
	}()
	s.close = func() {
		_ = listener.Close()
		<-ended
	}
}

// certificate makes one for localhost that is its own authority, and the file of that.
func certificate(c *chaos) (pair *tls.Certificate, authority string) {
	c.Helper()
	cert, key := testbed.Certificate(c, c.TempDir(), "localhost")
	made, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(c, err)
	return &made, cert
}
