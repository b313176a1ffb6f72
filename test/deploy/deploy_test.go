// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package deploy tests everything in deploy/ against what is to read it: SLURM, systemd, schemas of Compose and Kubernetes, Prometheus.
package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deployed is the path of a file or folder below deploy/.
func deployed(t *testing.T, elem ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", "deploy"}, elem...)...))
	require.NoError(t, err)
	return path
}

// read is the text of a file below deploy/.
func read(t *testing.T, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(deployed(t, elem...))
	require.NoError(t, err)
	return string(text)
}

// run runs a command in a folder, and fails the test with what it wrote to stderr where it fails.
func run(t *testing.T, dir, name string, args ...string) (stdout string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	require.NoError(t, cmd.Run(), "%s %s: %s%s", name, args, &out, &stderr)
	return out.String()
}

// tool is the path of a program of the module in tools/, that has versions of its own, built below build/.
func tool(t *testing.T, pkg string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "build", "deploy", filepath.Base(pkg)))
	require.NoError(t, err)
	run(t, "tools", "go", "build", "-o", path, pkg)
	return path
}

// need skips the test where a program is missing, and says what has it.
func need(t *testing.T, program, packages string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("needs %s: %s", packages, err)
	}
	return path
}

// start starts a program that ends with the test at the latest, in a group of its own. The channel is closed when it has ended.
func start(t *testing.T, cmd *exec.Cmd) (ended chan struct{}) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	ended = make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	return ended
}

// up waits until a program that was started is up. The test is skipped where it ends before: this machine cannot have it.
func up(t *testing.T, ended chan struct{}, said fmt.Stringer, isUp func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !isUp(); time.Sleep(100 * time.Millisecond) {
		select {
		case <-ended:
			t.Skip("this machine cannot run it: ", said)
		default:
			require.True(t, time.Now().Before(deadline), "it does not come up: %s", said)
		}
	}
}

// safeBuffer keeps what a program writes while a test reads it.
type safeBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
