// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

package chaos

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// overload has senders that offer several times what the backend takes, which at first is nothing, and a queue that has no bound but memory_limiter's: it
// refuses, retryably, and counts each span that it refuses.
func overload(c *chaos) {
	slower := make(chan struct{})
	backend := c.newSink(func(int64) answer { return answer{wait: slower, delay: 100 * time.Millisecond} })
	backend.serveGRPC(nil)
	const limit = 160
	collector, counter := c.toTempo(backend, "exporters.otlp_grpc.sending_queue.queue_size=1099511627776",
		"processors.memory_limiter={check_interval: 50ms, limit_mib: 160, spike_limit_mib: 40}")
	collector.Start()
	heavy := sender{spans: 500, text: 1000}
	l := c.start(collector, heavy, heavy, heavy, heavy)
	c.eventually(func() bool {
		c.progress("%d spans refused", c.refusedSoFar())
		return c.refusedSoFar() >= forms(50, 5000)*heavy.spans
	}, func() string { return fmt.Sprintf("%d spans were refused", c.refusedSoFar()) })
	close(slower)
	c.stop(l) // Fails where a refusal was for good.
	c.delivered()
	require.Equal(c, c.refusedSoFar(), counter("otelcol_receiver_refused_spans")+counter("otelcol_receiver_failed_spans"), "what senders were refused and what is counted")
	peak := c.residentMiB(collector, "VmHWM")
	c.Logf("%d spans refused, peak of the process %d MiB at a limit of %d MiB", c.refusedSoFar(), peak, limit)
	require.Less(c, peak, 3*limit)
	collector.Stop()
}

// stalledSoak has a backend that takes connections and requests, and never answers, behind a queue on disk: neither memory nor goroutines grow with
// time. Goroutines are counted in what the Go runtime says on SIGQUIT, which ends the process as a kill does.
func stalledSoak(c *chaos) {
	never := make(chan struct{})
	defer close(never)
	backend := c.newSink(func(int64) answer { return answer{wait: never} })
	backend.serveHTTP()
	collector := c.toHoneycomb(backend, testbed.Options{}, "exporters.otlp_http/honeycomb.timeout=2s")
	soak := func(d time.Duration) (goroutines, peak int) {
		collector.Start()
		l := c.start(collector, steady...)
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(500 * time.Millisecond) { // How long it lasts.
			resident := c.residentMiB(collector, "RssAnon")
			peak = max(peak, resident)
			if left := time.Until(end); int(left.Seconds())%20 == 0 {
				c.progress("%d MiB resident, peak %d, for %s more", resident, peak, left.Round(time.Second))
			}
		}
		before := len(collector.Stderr())
		require.NoError(c, syscall.Kill(collector.Pid(), syscall.SIGQUIT))
		c.eventually(func() bool { return syscall.Kill(collector.Pid(), 0) != nil }, func() string { return "it does not end on SIGQUIT" })
		collector.Kill() // Which is over, and waits for that.
		goroutines = strings.Count(collector.Stderr()[before:], "\ngoroutine ")
		collector.Start()
		c.stop(l)
		collector.Stop()
		return goroutines, peak
	}
	total := forms(24*time.Second, 30*time.Minute)
	goroutines, peak := soak(total / 4)
	laterGoroutines, laterPeak := soak(total * 3 / 4)
	c.Logf("%d goroutines and %d MiB after %s, %d and %d MiB after %s", goroutines, peak, total/4, laterGoroutines, laterPeak, total*3/4)
	require.NotZero(c, goroutines)
	require.LessOrEqual(c, laterGoroutines, goroutines+20)
	require.LessOrEqual(c, laterPeak, peak*5/4+forms(100, 30)) // It takes a while until the heap has its size.
	backend.answers(takeAll)
	collector.Start()
	c.delivered()
	collector.Stop()
}
