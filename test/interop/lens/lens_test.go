// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package lens holds the built binary against what sends to it: NVIDIA NeMo Lens from PyPI, on OpenTelemetry's SDK for Python.
//
// A test starts a collector and a script of scripts/, which is one rank, or several. What the collector must have is what
// the SDK itself says of the spans that ended, see scripts/witness.py, and what the test says of them by hand.
package lens // import "github.com/lenscol/lenscol/test/interop/lens"

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/internal/testbed"
)

// patience bounds every wait: far beyond what a busy machine needs.
const patience = 5 * time.Minute

// python is a Python that has NeMo Lens.
var python = os.Getenv("LENSCOL_LENS_PYTHON")

func TestMain(m *testing.M) {
	if python == "" {
		fmt.Fprintln(os.Stderr, "LENSCOL_LENS_PYTHON names no Python that has NeMo Lens: run make interop")
		os.Exit(1)
	}
	found, err := exec.Command(python, "scripts/versions.py").CombinedOutput()
	fmt.Printf("found %s", found)
	if err != nil {
		fmt.Fprintln(os.Stderr, python, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// process is a script that runs.
type process struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	witness string // file of scripts/witness.py
	stdout  string // file
	stderr  string // file

	t     *testing.T
	ended chan struct{} // closed when the process has
	err   error         // of its end, once it has
}

// launch starts a script, with its arguments, in an environment in which every rank exports all it has to c. It and its children end
// with the test.
func launch(t *testing.T, c *testbed.Collector, env []string, script ...string) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{
		t: t, ended: make(chan struct{}),
		witness: filepath.Join(dir, "witness"), stdout: filepath.Join(dir, "stdout"), stderr: filepath.Join(dir, "stderr"),
	}
	p.cmd = exec.Command(python, append([]string{"scripts/" + script[0]}, script[1:]...)...)
	p.cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "WITNESS="+p.witness,
		"NEMO_LENS_ENABLED=true", "NEMO_LENS_LOGS_ENABLED=true", "NEMO_LENS_SPAN_GROUPS=per_step", "NEMO_LENS_EXPORT_STRATEGY=all_ranks",
		"NEMO_LENS_RUN_ID=interop", "OTEL_SERVICE_NAME=megatron")
	p.cmd.Env = append(append(p.cmd.Env, grpc(c)...), env...)
	stdout, err := os.Create(p.stdout)
	require.NoError(t, err)
	defer stdout.Close()
	stderr, err := os.Create(p.stderr)
	require.NoError(t, err)
	defer stderr.Close()
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	p.cmd.SysProcAttr = testbed.DieWithParent()
	p.cmd.SysProcAttr.Setpgid = true
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // Its children too; nobody is there any more as a rule.
		<-p.ended
		if t.Failed() {
			out, said := p.read(p.stdout), p.read(p.stderr)
			t.Logf("%v said:\n%s\n%s", script, out[max(0, len(out)-4<<10):], said[max(0, len(said)-16<<10):])
		}
	})
	return p
}

// grpc has all signals go to c over gRPC, which is Lens's default.
func grpc(c *testbed.Collector) []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.GRPC, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}
}

// http has traces and metrics go over HTTP. Lens sends logs over gRPC whatever the protocol is.
func http(c *testbed.Collector) []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.HTTP, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://" + c.GRPC}
}

// run runs a script to its end, which must be a good one.
func run(t *testing.T, c *testbed.Collector, env []string, script ...string) *process {
	t.Helper()
	p := launch(t, c, env, script...)
	p.wait()
	require.NoError(t, p.err, "%v", script)
	return p
}

// wait waits until the process has ended, in whatever way.
func (p *process) wait() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		require.FailNow(p.t, "it does not end", "%v", p.cmd.Args)
	}
}

// until waits until one of its files has a text.
func (p *process) until(file, text string) {
	p.t.Helper()
	eventually(p.t, func() bool {
		select {
		case <-p.ended:
			require.Contains(p.t, p.read(file), text, "%v has ended", p.cmd.Args)
		default:
		}
		return strings.Contains(p.read(file), text)
	}, "%v says %q", p.cmd.Args, text)
}

func (p *process) read(file string) string {
	p.t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(p.t, err)
	return string(text)
}

func eventually(t *testing.T, condition func() bool, what string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(t, "waited in vain", append([]any{what}, args...)...)
		}
	}
}
