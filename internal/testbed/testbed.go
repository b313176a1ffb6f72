// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package testbed runs the collector as users do, as a process of its binary, for tests that need the whole of it.
//
// A [Collector] listens on free loopback ports, works in a folder of its own, and ends with its test. What it wrote to
// stderr is shown when the test fails.
package testbed // import "github.com/lenscol/lenscol/internal/testbed"

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for the collector: far beyond what a busy machine needs.
const patience = time.Minute

// Options say how a collector is started. The zero value starts it as `lenscol` alone, on free ports.
type Options struct {
	// Binary is the collector to start; without it, the one that Binary returns.
	Binary string
	// Config is a YAML text; it is written to config.yaml in the collector's folder and given as --config. It names its ports
	// as the embedded configs do: ${env:LENSCOL_GRPC_PORT}, ${env:LENSCOL_HTTP_PORT}, ${env:LENSCOL_METRICS_PORT}.
	Config string
	// Args are given after --config.
	Args []string
	// Env are variables, NAME=VALUE, beside those of the test.
	Env []string
	// Dir is the working directory; without it, a temporary one of the test.
	Dir string
	// Listens are the addresses that accept once the collector is up; without it, those of OTLP.
	Listens []string
}

// Collector is one process of the binary.
type Collector struct {
	Dir  string // working directory
	GRPC string // address of OTLP over gRPC, host:port
	HTTP string // address of OTLP over HTTP, host:port

	tb      testing.TB
	metrics string
	opts    Options
	cmd     *exec.Cmd
	stderr  *buffer
	exited  chan struct{} // closed when the process has ended
	err     error         // of its end, once exited is closed
}

// Start starts a collector and waits until both OTLP ports, or what the options name, accept. The test fails when it ends before that.
func Start(tb testing.TB, opts Options) *Collector {
	tb.Helper()
	c := New(tb, opts)
	c.Start()
	return c
}

// New prepares a collector without starting it.
func New(tb testing.TB, opts Options) *Collector {
	tb.Helper()
	c := &Collector{Dir: opts.Dir, tb: tb, opts: opts, stderr: &buffer{}}
	if c.Dir == "" {
		c.Dir = tb.TempDir()
	}
	if opts.Config != "" {
		c.WriteConfig(opts.Config)
	}
	ports := freePorts(tb, 3)
	c.GRPC, c.HTTP, c.metrics = ports[0], ports[1], ports[2]
	tb.Cleanup(func() {
		if c.running() {
			c.Kill()
		}
		if tb.Failed() {
			tb.Logf("stderr of the collector in %s:\n%s", c.Dir, c.stderr.tail(16<<10))
		}
	})
	return c
}

// WriteConfig replaces config.yaml; the collector reads it at its start and on Reload.
func (c *Collector) WriteConfig(text string) {
	c.tb.Helper()
	if err := os.WriteFile(c.path("config.yaml"), []byte(text), 0o600); err != nil {
		c.tb.Fatal(err)
	}
}

func (c *Collector) path(name string) string { return filepath.Join(c.Dir, name) }

// Start starts the process, again after it was stopped or killed: in the same folder and on the same ports.
func (c *Collector) Start() {
	c.tb.Helper()
	c.launch()
	deadline := time.Now().Add(patience)
	addresses := c.opts.Listens
	if addresses == nil {
		addresses = []string{c.GRPC, c.HTTP}
	}
	for _, address := range addresses {
		for !accepts(address) {
			select {
			case <-c.exited:
				c.tb.Fatalf("the collector ended before it listened: %v\n%s", c.err, c.stderr.tail(16<<10))
			case <-time.After(10 * time.Millisecond):
			}
			if time.Now().After(deadline) {
				c.tb.Fatalf("the collector does not listen on %s", address)
			}
		}
	}
}

// RunToEnd starts the process, waits until it ends by itself, and returns its exit code and what it wrote to stderr.
func (c *Collector) RunToEnd() (code int, stderr string) {
	c.tb.Helper()
	c.launch()
	c.wait("end by itself")
	return c.cmd.ProcessState.ExitCode(), c.stderr.String()
}

func (c *Collector) launch() {
	c.tb.Helper()
	if c.running() {
		c.tb.Fatal("the collector runs already")
	}
	var args []string
	if c.opts.Config != "" {
		args = append(args, "--config", c.path("config.yaml"))
	}
	binary := c.opts.Binary
	if binary == "" {
		binary = Binary(c.tb)
	}
	c.cmd = exec.Command(binary, append(args, c.opts.Args...)...)
	c.cmd.Dir = c.Dir
	c.cmd.Env = append(os.Environ(),
		"LENSCOL_GRPC_PORT="+port(c.GRPC), "LENSCOL_HTTP_PORT="+port(c.HTTP), "LENSCOL_METRICS_PORT="+port(c.metrics))
	c.cmd.Env = append(c.cmd.Env, c.opts.Env...)
	c.cmd.Stderr = c.stderr
	c.cmd.SysProcAttr = DieWithParent()
	if err := c.cmd.Start(); err != nil {
		c.tb.Fatal(err)
	}
	cmd, exited := c.cmd, make(chan struct{})
	c.exited = exited
	go func() {
		c.err = cmd.Wait()
		close(exited)
	}()
}

func (c *Collector) running() bool {
	if c.exited == nil {
		return false
	}
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// Stop ends the process as an operator does, by SIGTERM, and fails the test unless it ends cleanly.
func (c *Collector) Stop() {
	c.tb.Helper()
	c.Terminate()
	c.RequireStopped()
}

// Terminate sends SIGTERM. It returns at once.
func (c *Collector) Terminate() {
	c.tb.Helper()
	c.signal(syscall.SIGTERM)
}

// RequireStopped waits until the process has ended after Terminate, and fails the test unless it ends cleanly.
func (c *Collector) RequireStopped() {
	c.tb.Helper()
	c.wait("stop on SIGTERM")
	if c.err != nil {
		c.tb.Fatalf("the collector stopped with %v", c.err)
	}
}

// Kill ends the process by SIGKILL, which it cannot notice.
func (c *Collector) Kill() {
	c.tb.Helper()
	c.signal(syscall.SIGKILL)
	c.wait("end on SIGKILL")
}

// Reload makes the process read its config again, by SIGHUP. It returns at once.
func (c *Collector) Reload() {
	c.tb.Helper()
	c.signal(syscall.SIGHUP)
}

// RequireRunning fails the test when the process has ended.
func (c *Collector) RequireRunning() {
	c.tb.Helper()
	if !c.running() {
		c.tb.Fatalf("the collector has ended: %v", c.err)
	}
}

// Pid is the id of the process.
func (c *Collector) Pid() int { return c.cmd.Process.Pid }

// Stderr is what the collector has written to stderr so far, in all its lives.
func (c *Collector) Stderr() string { return c.stderr.String() }

func (c *Collector) signal(s syscall.Signal) {
	c.tb.Helper()
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.tb.Fatal(err)
	}
}

func (c *Collector) wait(what string) {
	c.tb.Helper()
	select {
	case <-c.exited:
	case <-time.After(patience):
		_ = c.cmd.Process.Kill()
		c.tb.Fatalf("the collector did not %s within %s", what, patience)
	}
}

func accepts(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// FreePort is a port that nobody listens on, for what a config opens besides OTLP.
func FreePort(tb testing.TB) string {
	tb.Helper()
	_, port, _ := net.SplitHostPort(freePorts(tb, 1)[0])
	return port
}

// handedOut are the addresses that freePorts has returned.
var handedOut sync.Map

// freePorts returns addresses on loopback that nothing listens on. They lie below the range from which the kernel takes
// the ports of outgoing connections, so a restarted collector finds its port free.
func freePorts(tb testing.TB, n int) []string {
	tb.Helper()
	const first, last, tries = 10000, 32000, 1000
	var addresses []string
	for range tries {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first)))
		if err != nil {
			continue
		}
		if _, before := handedOut.LoadOrStore(l.Addr().String(), true); before {
			_ = l.Close() // Another test may be about to listen there.
			continue
		}
		defer l.Close() // Held until all are found, so that they differ.
		if addresses = append(addresses, l.Addr().String()); len(addresses) == n {
			return addresses
		}
	}
	tb.Fatal("no free ports on loopback")
	return nil
}

// buffer collects what a process writes while a test reads it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) tail(n int) string {
	s := b.String()
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}
