// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package deploy

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// installed is where the unit has the program.
const installed = "/usr/local/bin/lenscol"

// systemd reads the unit, alone and with its drop-in, and finds little that it could do to the machine.
func TestSystemdVerify(t *testing.T) {
	analyze := need(t, "systemd-analyze", "Debian's systemd")
	for _, dropIn := range []string{"", "daemonset.conf"} {
		dir := t.TempDir()
		unit := strings.ReplaceAll(read(t, "systemd", "lenscol.service"), installed, testbed.Binary(t))
		path := filepath.Join(dir, "lenscol.service")
		require.NoError(t, os.WriteFile(path, []byte(unit), 0o600))
		if dropIn != "" {
			require.NoError(t, os.Mkdir(path+".d", 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(path+".d", dropIn), []byte(read(t, "systemd", dropIn)), 0o600))
		}
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Empty(t, string(out))
		// 20 is an exposure of 2.0; a service that is not hardened has 9.6.
		t.Log(run(t, dir, analyze, "security", "--no-pager", "--offline=true", "--threshold=20", path))
	}
}

// The command of the unit says to systemd when it is ready, and ends well on SIGTERM.
func TestSystemdNotify(t *testing.T) {
	var command string
	for line := range strings.Lines(read(t, "systemd", "lenscol.service")) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), "ExecStart="+installed+" "); is {
			command = value
		}
	}
	require.NotEmpty(t, command)
	dir, err := os.MkdirTemp("", "notify") // Short, as the path of a socket must be.
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()

	args := strings.Fields(os.Expand(command, func(string) string { return "lenscol:archive" }))
	cmd := exec.CommandContext(t.Context(), testbed.Binary(t), append(args, "--ports", "auto")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "s"))
	require.NoError(t, cmd.Start())
	require.NoError(t, socket.SetReadDeadline(time.Now().Add(time.Minute)))
	message := make([]byte, 4096)
	n, err := socket.Read(message)
	require.NoError(t, err)
	require.Contains(t, strings.Split(string(message[:n]), "\n"), "READY=1")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}
