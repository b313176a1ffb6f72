// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience bounds every wait: far beyond what a busy machine needs.
const patience = 2 * time.Minute

// collector is a process of either binary, in a folder of its own.
type collector struct {
	dir      string
	endpoint string        // OTLP over gRPC
	metrics  string        // its own metrics, for Prometheus
	ready    time.Duration // from its start until it accepts

	cmd   *exec.Cmd
	log   bytes.Buffer
	ended chan error
	err   error           // what it ended with
	alive context.Context // ends with the process
}

// startCollector starts a binary with what config makes of the collector's folder and addresses, and waits until it listens.
func startCollector(binary string, config func(*collector) (args, env []string, err error)) (_ *collector, err error) {
	c := &collector{endpoint: freeAddress(), metrics: freeAddress(), ended: make(chan error, 1)}
	if c.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	args, env, err := config(c)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	c.cmd = exec.Command(binary, args...)
	c.cmd.Dir = c.dir
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	begin := time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	alive, cancel := context.WithCancelCause(context.Background())
	c.alive = alive
	go func() {
		err := c.cmd.Wait()
		cancel(fmt.Errorf("%s ended: %v", binary, err))
		c.ended <- err
	}()
	for {
		conn, err := net.DialTimeout("tcp", c.endpoint, time.Second)
		if err == nil {
			c.ready = time.Since(begin)
			return c, conn.Close()
		}
		if alive.Err() != nil || time.Since(begin) > patience {
			return nil, errors.Join(fmt.Errorf("%s does not listen: %w", binary, err), c.stop())
		}
		time.Sleep(time.Millisecond)
	}
}

// stop ends the process by SIGTERM. Its folder stays until remove.
func (c *collector) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case c.err = <-c.ended:
	case <-time.After(patience):
		c.kill()
		c.err = errors.New("it did not end on SIGTERM")
	}
	if c.err != nil {
		return fmt.Errorf("%w\n%s", c.err, c.logTail())
	}
	return nil
}

func (c *collector) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

func (c *collector) logTail() []byte { return c.log.Bytes()[max(0, c.log.Len()-4096):] }

func (c *collector) remove() { _ = os.RemoveAll(c.dir) }

// cpu is the user and system time of the process (proc(5): fields 14 and 15 of stat, in ticks of 10 ms).
func (c *collector) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var ticks int
	for _, text := range strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[11:13] {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// peak is the largest resident memory of the process, in MiB.
func (c *collector) peak() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	if !found {
		return 0, errors.New("the kernel does not say VmHWM")
	}
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return kb / 1024, err
}

// writeConfig writes a config file into the folder and returns the arguments that name it.
func (c *collector) writeConfig(text string) ([]string, error) {
	path := filepath.Join(c.dir, "config.yaml")
	return []string{"--config", "file:" + path}, os.WriteFile(path, []byte(text), 0o600)
}

func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
