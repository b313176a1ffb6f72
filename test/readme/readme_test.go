// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package readme tests that the README's commands do what it says.
package readme // import "github.com/lenscol/lenscol/test/readme"

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const repository = "https://github.com/lenscol/lenscol"

// block is a ```sh block of the README, and the ```text block after it, which is what it prints.
type block struct{ commands, prints string }

// TestCommands runs every sh block of the README in order, word for word: the first in a terminal of its own, where the collector goes on
// running, the others in a second one, in the clone. Only two things differ from what a reader does: the clone comes from
// the commit that is checked out here, and the ports are free ones.
func TestCommands(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	blocks := readBlocks(t, filepath.Join(root, "README.md"))
	require.Greater(t, len(blocks), 1)

	ports := freePorts(t, 3)
	env := []string{
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=url." + root + ".insteadOf", "GIT_CONFIG_VALUE_0=" + repository,
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
		"LENSCOL_GRPC_PORT=" + ports[0], "LENSCOL_HTTP_PORT=" + ports[1], "LENSCOL_METRICS_PORT=" + ports[2],
	}
	for _, variable := range os.Environ() { // This may run below make: its variables are not a reader's.
		if !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS") && !strings.HasPrefix(variable, "GIT_") &&
			!strings.HasPrefix(variable, "LENSCOL_") && !strings.HasPrefix(variable, "ARGS=") {
			env = append(env, variable)
		}
	}
	work := t.TempDir()

	terminal := &output{}
	collector := exec.Command("sh", "-ec", blocks[0].commands)
	collector.Dir, collector.Env = work, env
	collector.Stdout, collector.Stderr = terminal, terminal
	collector.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, collector.Start())
	ended := make(chan struct{})
	go func() {
		_ = collector.Wait() // make reports the interrupt below as an error.
		close(ended)
	}()
	interrupt := func() { // Control-C in that terminal.
		_ = syscall.Kill(-collector.Process.Pid, syscall.SIGINT)
		<-ended
	}
	defer interrupt()

	prints := strings.NewReplacer(":4317", ":"+ports[0], ":4318", ":"+ports[1]).Replace(blocks[0].prints)
	require.NotEmpty(t, prints)
	for deadline := time.Now().Add(20 * time.Minute); !strings.Contains(terminal.String(), prints); {
		select {
		case <-ended:
			require.Fail(t, "the first block ended", terminal.String())
		case <-time.After(100 * time.Millisecond):
			require.True(t, time.Now().Before(deadline), "no line %q in:\n%s", prints, terminal)
		}
	}

	for _, b := range blocks[1:] {
		command := exec.Command("sh", "-ec", b.commands)
		command.Dir, command.Env = filepath.Join(work, "lenscol"), env
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s\n%s", b.commands, said)
		if b.prints != "" {
			require.Equal(t, b.prints, string(said), b.commands)
		}
	}
	interrupt()
	require.Contains(t, terminal.String(), "Shutdown complete")
}

func readBlocks(t *testing.T, file string) []block {
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	var blocks []block
	for _, match := range regexp.MustCompile("(?s)```(sh|text)\n(.*?)```\n").FindAllSubmatch(page, -1) {
		if text := string(match[2]); string(match[1]) == "sh" {
			blocks = append(blocks, block{commands: text})
		} else {
			require.NotEmpty(t, blocks)
			require.Empty(t, blocks[len(blocks)-1].prints, "one text block after an sh block")
			blocks[len(blocks)-1].prints = text
		}
	}
	return blocks
}

func freePorts(t *testing.T, n int) []string {
	var ports []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		ports = append(ports, port)
	}
	return ports
}

// output is what a terminal shows.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
