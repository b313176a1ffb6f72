// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

package chaos

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// toHoneycomb is lenscol:honeycomb, the queue on disk before a backend over HTTP, with the sink as Honeycomb.
func (c *chaos) toHoneycomb(s *sink, opts testbed.Options, settings ...string) *testbed.Collector {
	opts.Env = append(opts.Env, "HONEYCOMB_ENDPOINT=http://"+s.address)
	return c.embedded("honeycomb", opts, settings...)
}

// sigkillQueue kills a collector at random moments, also while it starts, while its backend holds requests that it will never answer.
func sigkillQueue(c *chaos) {
	backend := c.newSink(func(n int64) answer {
		return answer{delay: time.Duration(n%3) * 20 * time.Millisecond, took: true, status: []int{0, 0, 503}[n%3]}
	})
	backend.serveHTTP()
	killed(c, forms(20, 200), c.toHoneycomb(backend, testbed.Options{Listens: []string{}}))
}

// killCompaction does so while file_storage compacts its database, at each start and whenever it has become small.
func killCompaction(c *chaos) {
	backend := c.newSink(func(n int64) answer {
		if n/20%2 == 0 { // It fills up and is drained, again and again.
			return answer{status: 503}
		}
		return answer{}
	})
	backend.serveHTTP()
	killed(c, forms(20, 200), c.toHoneycomb(backend, testbed.Options{Listens: []string{}},
		"extensions.file_storage.compaction={on_start: true, on_rebound: true, directory: lens-queue, cleanup_on_start: true, check_interval: 100ms, rebound_needed_threshold_mib: 0, rebound_trigger_threshold_mib: 64}"))
}

func killed(c *chaos, kills int, collector *testbed.Collector) {
	seed := rand.Uint64()
	c.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	collector.Start()
	l := c.start(collector, mixed...)
	var launched time.Time
	database := filepath.Join(collector.Dir, "lens-queue", "exporter_otlp_http_honeycomb_traces")
	for kill := range kills {
		moment := 500 * time.Millisecond
		if kill%2 == 0 {
			c.answers(l, 1+random.Int64N(40))
		} else { // At its start, as soon as it writes to the queue.
			c.eventually(func() bool { return modified(c, database).After(launched) }, func() string { return "the queue is not opened" })
			moment = 20 * time.Millisecond
		}
		time.Sleep(time.Duration(random.Int64N(int64(moment)))) // The moment.
		collector.Kill()
		launched = modified(c, database)
		collector.Start()
		c.progress("%d of %d kills", kill+1, kills)
	}
	c.answers(l, 50)
	c.stop(l)
	c.delivered()
	collector.Stop()
}

// modified is when a file was last written to, and the zero time if it is not there.
func modified(c *chaos, path string) time.Time {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}
	}
	require.NoError(c, err)
	return info.ModTime()
}

// killRotation kills a collector in the moment in which a new file of a compressed archive appears.
func killRotation(c *chaos) {
	collector := c.embedded("archive", testbed.Options{}, "exporters.jsonl.rotation.max_bytes=20kB", "exporters.jsonl.compression=zstd", "exporters.jsonl.flush_interval=5ms")
	collector.Start()
	l := c.start(collector, mixed...)
	folder := filepath.Join(collector.Dir, "lens-data")
	for kill := range forms(20, 200) {
		c.answers(l, 5)
		before := files(c, folder)
		c.eventually(func() bool { return files(c, folder) > before }, func() string { return fmt.Sprintf("no file is ended, there are %d", before) })
		collector.Kill()
		collector.Start()
		c.progress("%d kills", kill+1)
	}
	c.answers(l, 50)
	c.stop(l)
	collector.Stop()
	c.archived(folder)
}

func files(c *chaos, folder string) int {
	entries, err := os.ReadDir(folder)
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(c, err)
	}
	return len(entries)
}

// sigterm ends a collector that has data in memory, while its backend does not answer: /live is 200 until the end, and what was acknowledged is
// sent before it.
func sigterm(c *chaos) {
	for range forms(2, 50) {
		release := make(chan struct{})
		backend := c.newSink(takeAll)
		backend.serveGRPC(nil)
		health := testbed.FreePort(c)
		collector := c.embedded("tempo", testbed.Options{Env: []string{"LENSCOL_TEMPO=" + backend.address, "LENSCOL_HEALTH_PORT=" + health}})
		collector.Start()
		l := c.start(collector, mixed...)
		c.answers(l, 50)
		backend.answers(func(int64) answer { return answer{wait: release} })
		c.answers(l, 50)
		watch := c.watchLive(health, release)
		collector.Stop()
		<-watch
		l.gone.Store(true)
		c.stop(l)
		backend.close()
	}
}

// watchLive asks for /live until nobody answers, and releases the backend when ten answers came after the collector was told to end.
func (c *chaos) watchLive(health string, release chan struct{}) (done chan struct{}) {
	get := func(path string) (int, error) {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
		response, err := client.Get("http://" + net.JoinHostPort("127.0.0.1", health) + path)
		if err != nil {
			return 0, err
		}
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode, response.Body.Close()
	}
	done = make(chan struct{})
	go func() {
		defer close(done)
		draining := 0
		defer func() {
			if draining < 10 {
				c.Errorf("/live answered %d times while it drained", draining)
				close(release)
			}
		}()
		for {
			live, err := get("/live")
			if err != nil {
				return
			}
			if live != 200 {
				c.Errorf("/live is %d", live)
			}
			if ready, err := get("/ready"); err == nil && ready == 503 {
				if draining++; draining == 10 {
					close(release)
				}
			}
		}
	}()
	return done
}

// sigtermBackendDown ends and starts a collector whose backend is away: what waits on disk goes on.
func sigtermBackendDown(c *chaos) {
	backend := c.newSink(takeAll)
	collector := c.toHoneycomb(backend, testbed.Options{})
	for range forms(3, 50) {
		collector.Start()
		l := c.start(collector, mixed...)
		c.answers(l, 50)
		collector.Stop()
		l.gone.Store(true)
		c.stop(l)
	}
	backend.serveHTTP()
	collector.Start()
	c.delivered()
	collector.Stop()
}

// corruptQueue destroys the database of a queue in several ways while the collector is down. What was in it may be gone, if that is said and the database is
// set aside; the collector starts, and takes and delivers what comes.
func corruptQueue(c *chaos) {
	for name, corrupt := range map[string]func(*os.File, int64) error{
		"truncated to half":    func(f *os.File, size int64) error { return f.Truncate(size / 2) },
		"truncated to a page":  func(f *os.File, _ int64) error { return f.Truncate(4096) },
		"empty":                func(f *os.File, _ int64) error { return f.Truncate(0) },
		"zeroed meta pages":    func(f *os.File, _ int64) error { return zero(f, 0, 8192) },
		"zeroed pages":         func(f *os.File, size int64) error { return zero(f, 8192, size-8192) },
		"zeroed second half":   func(f *os.File, size int64) error { return zero(f, size/2/4096*4096, size/2) },
		"garbage":              func(f *os.File, size int64) error { return garbage(f, 8192, size-8192) },
		"garbage all over":     func(f *os.File, size int64) error { return garbage(f, 0, size) },
		"every 16th page gone": func(f *os.File, size int64) error { return holes(f, size, 16) },
	} {
		first := c.book.sent()
		backend := c.newSink(takeAll)
		collector := c.toHoneycomb(backend, testbed.Options{})
		collector.Start()
		c.finish(c.start(collector, sender{spans: 50, text: 200, limit: 40}, sender{spans: 5, http: true, limit: 40}))
		collector.Stop()

		path := filepath.Join(collector.Dir, "lens-queue", "exporter_otlp_http_honeycomb_traces")
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(c, err)
		info, err := f.Stat()
		require.NoError(c, err)
		require.NoError(c, corrupt(f, info.Size()))
		require.NoError(c, f.Close())
		end := c.book.sent()

		backend.serveHTTP()
		said := len(collector.Stderr())
		collector.Start()
		c.finish(c.start(collector, sender{spans: 50, text: 200, limit: 40}))
		collector.Stop()
		if c.book.balance(0).lost > 0 {
			require.Contains(c, collector.Stderr()[said:], "is torn and was set aside", name)
			aside, err := filepath.Glob(path + ".*.backup")
			require.NoError(c, err)
			require.Len(c, aside, 1, name)
		}
		c.Log(name, c.book.balance(0))
		c.book.excuse(first, end)
		backend.close()
	}
}

func zero(f *os.File, from, n int64) error {
	_, err := f.WriteAt(make([]byte, n), from)
	return err
}

func garbage(f *os.File, from, n int64) error {
	random := make([]byte, n)
	generator := rand.NewChaCha8([32]byte{1})
	_, _ = generator.Read(random) // Never fails.
	_, err := f.WriteAt(random, from)
	return err
}

func holes(f *os.File, size, every int64) error {
	for page := every; page*4096 < size; page += every {
		if err := zero(f, page*4096, 4096); err != nil {
			return err
		}
	}
	return nil
}
