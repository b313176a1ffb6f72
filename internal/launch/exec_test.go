// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package launch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// child is this program as `lenscol exec`, in an environment of its own.
func child(t *testing.T, environ []string, command ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, command...)
	cmd.Env = append([]string{childVariable + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, environ...)
	return cmd
}

// consoleSpan is a line of NeMo Lens's console exporter.
type consoleSpan struct {
	Name    string
	Context struct {
		TraceID string `json:"trace_id"`
		SpanID  string `json:"span_id"`
	}
	ParentID   *string `json:"parent_id"`
	Status     struct{ Status_code, Description string }
	Attributes map[string]any
	Resource   struct{ Attributes map[string]any }
}

// run runs a command that prints lines, and returns those, its span and its exit code.
func run(t *testing.T, environ []string, command ...string) (lines []string, span consoleSpan, code int) {
	cmd := child(t, append(environ, "NEMO_LENS_EXPORTER=console"), command...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	lines = strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	last := len(lines) - 1
	require.NoError(t, json.Unmarshal([]byte(lines[last]), &span), "%s", out)
	return lines[:last], span, cmd.ProcessState.ExitCode()
}

func TestExec(t *testing.T) {
	noProgram := filepath.Join(t.TempDir(), "no program")
	require.NoError(t, os.WriteFile(noProgram, []byte("text"), 0o600))
	for _, c := range []struct {
		name, command string
		args          []string
		code          int
		status        string
		description   string
		attrs         map[string]any
	}{
		{name: "zero", args: []string{"sh", "-c", "echo out"}, status: "UNSET", attrs: map[string]any{"process.exit.code": 0.0}},
		{name: "seven", args: []string{"sh", "-c", "echo out; exit 7"}, code: 7, status: "ERROR", description: "exit code 7",
			attrs: map[string]any{"process.exit.code": 7.0}},
		{name: "killed", args: []string{"sh", "-c", "echo out; kill -KILL $$"}, code: 137, status: "ERROR", description: "ended by SIGKILL",
			attrs: map[string]any{"process.exit.code": 137.0, "process.exit.signal": "SIGKILL"}},
		{name: "not found", args: []string{"no-such-program-here"}, code: 127, status: "ERROR"},
		{name: "not executable", args: []string{noProgram}, code: 126, status: "ERROR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, span, code := run(t, nil, c.args...)
			require.Equal(t, c.code, code)
			require.Equal(t, filepath.Base(c.args[0]), span.Name)
			require.Equal(t, c.status, span.Status.Status_code)
			if c.description != "" {
				require.Equal(t, c.description, span.Status.Description)
			}
			require.Nil(t, span.ParentID)
			require.Equal(t, "test", span.Resource.Attributes["service.name"])
			require.Equal(t, "r-1", span.Resource.Attributes["nemo.run.id"])
			for key, want := range c.attrs {
				require.Equal(t, want, span.Attributes[key], key)
			}
			if c.attrs != nil {
				require.Equal(t, []string{"out"}, lines)
				require.Greater(t, span.Attributes["process.memory.max_rss"], 1e5, "bytes, not KiB")
				require.Less(t, span.Attributes["process.memory.max_rss"], 1e9)
				require.Contains(t, span.Attributes, "process.cpu.user.seconds")
			}
		})
	}
}

func TestExecHandsTheTraceOn(t *testing.T) {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	lines, span, _ := run(t, []string{"TRACEPARENT=00-" + trace + "-" + parent + "-01", "TRACESTATE=a=b", "BAGGAGE=k=v"},
		"sh", "-c", "echo $TRACEPARENT; echo $TRACESTATE; echo $BAGGAGE")
	require.Equal(t, "0x"+trace, span.Context.TraceID)
	require.Equal(t, "0x"+parent, *span.ParentID)
	require.Equal(t, []string{"00-" + trace + "-" + span.Context.SpanID[2:] + "-01", "a=b", "k=v"}, lines)

	// One that cannot be read is as if there were none, and does not reach the command.
	lines, span, _ = run(t, []string{"TRACEPARENT=rubbish"}, "sh", "-c", "echo $TRACEPARENT")
	require.Nil(t, span.ParentID)
	require.Equal(t, span.Context.TraceID[2:]+"-"+span.Context.SpanID[2:], strings.Join(strings.Split(lines[0], "-")[1:3], "-"))
}

func TestExecHandsSignalsOn(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGINT} {
		cmd := child(t, []string{"NEMO_LENS_EXPORTER=console"}, "sh", "-c",
			fmt.Sprintf("trap 'echo caught; exit 3' %d; echo ready; while :; do sleep 0.05; done", sig))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan())
		require.Equal(t, "ready", lines.Text())
		require.NoError(t, cmd.Process.Signal(sig))
		require.True(t, lines.Scan())
		require.Equal(t, "caught", lines.Text())
		for lines.Scan() {
		}
		_ = cmd.Wait()
		require.Equal(t, 3, cmd.ProcessState.ExitCode(), sig)
	}
}

// The command has the environment as it came, and none of it is mended for the span's sake; a disabled SDK sends nothing.
func TestExecLeavesTheEnvironment(t *testing.T) {
	lines, _, _ := run(t, []string{"OTEL_TRACES_SAMPLER=", "OTEL_RESOURCE_ATTRIBUTES=a=b,,=c"}, "sh", "-c", `echo "${OTEL_TRACES_SAMPLER-unset}"; echo "$OTEL_RESOURCE_ATTRIBUTES"`)
	require.Equal(t, []string{"", "a=b,,=c"}, lines)

	cmd := child(t, []string{"OTEL_SDK_DISABLED=true", "NEMO_LENS_EXPORTER=console"}, "sh", "-c", "echo out; exit 4")
	out, _ := cmd.CombinedOutput()
	require.Equal(t, "out\n", string(out))
	require.Equal(t, 4, cmd.ProcessState.ExitCode())
}

// A collector that is away, and one that takes connections and never answers, change nothing but a line on stderr.
func TestExecWithoutACollector(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	for _, protocol := range []string{"grpc", "http/protobuf", "http/json"} {
		cmd := child(t, []string{"OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol, "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + gone.Addr().String()},
			"sh", "-c", "echo out; exit 5")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, _ := cmd.Output()
		require.Equal(t, "out\n", string(out))
		require.Equal(t, 5, cmd.ProcessState.ExitCode())
		require.Contains(t, stderr.String(), "nobody takes spans at "+gone.Addr().String())
	}

	// A bad setting does not keep the command from running.
	cmd := child(t, []string{"OTEL_EXPORTER_OTLP_PROTOCOL=pigeon"}, "sh", "-c", "echo out; exit 5")
	out, _ := cmd.Output()
	require.Equal(t, "out\n", string(out))
	require.Equal(t, 5, cmd.ProcessState.ExitCode())
}
