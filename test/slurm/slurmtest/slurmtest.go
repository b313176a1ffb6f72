// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package slurmtest starts a real SLURM of four nodes for tests, and reads what jobs in it have sent.
package slurmtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

const script = "../slurm/slurm.sh" // from the folder of a test beside it

// Cluster is a SLURM that runs.
type Cluster struct {
	t    *testing.T
	conf string
	Work string // folder of job scripts and of what they print
}

// Start starts one, which ends with the test; the test is skipped where that needs what is not there.
func Start(t *testing.T) *Cluster {
	if os.Getuid() != 0 {
		t.Skip("starts SLURM, which needs root")
	}
	for _, tool := range []string{"slurmctld", "slurmdbd", "munged", "mariadbd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs Debian's slurm-wlm, slurmdbd, munge and mariadb-server: " + err.Error())
		}
	}
	base, err := os.MkdirTemp("", "lenscol-slurm-") // Short, and open to munge and MariaDB: sockets lie in it.
	require.NoError(t, err)
	require.NoError(t, os.Chmod(base, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	dir := filepath.Join(base, "s")
	t.Cleanup(func() {
		out, err := exec.Command(script, "stop", dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	out, err := exec.CommandContext(t.Context(), script, "start", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return &Cluster{t, filepath.Join(dir, "slurm.conf"), base}
}

// Run runs a command of SLURM, with variables beside those of the test, and fails the test where it fails.
func (c *Cluster) Run(env []string, name string, args ...string) (stdout, stderr string) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Env = append(append(os.Environ(), "SLURM_CONF="+c.conf), env...)
	cmd.Dir = c.Work
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	require.NoError(c.t, cmd.Run(), "%s %s: %s", name, args, &errOut)
	return out.String(), errOut.String()
}

// Submit submits a job script of bash and returns the job's id.
func (c *Cluster) Submit(env []string, script string, flags ...string) (job string) {
	path := filepath.Join(c.Work, "job.sh")
	require.NoError(c.t, os.WriteFile(path, []byte("#!/bin/bash\n"+script), 0o700))
	out, _ := c.Run(env, "sbatch", append(append([]string{"--parsable"}, flags...), path)...)
	return strings.TrimSpace(out)
}

// InState waits until the accounting says so of all rows of a job's allocations.
func (c *Cluster) InState(job, state string) {
	c.t.Helper()
	var out string
	require.Eventually(c.t, func() bool {
		out, _ = c.Run(nil, "sacct", "-n", "-P", "-X", "-j", job, "-o", "State")
		states := strings.Fields(out)
		for _, s := range states {
			if s != state {
				return false
			}
		}
		return len(states) > 0
	}, 5*time.Minute, 200*time.Millisecond, "job %s is %s", job, &out)
}

// Archived are the spans of the files, by name.
func Archived(t *testing.T, files ...string) map[string][]map[string]any {
	out, err := exec.CommandContext(t.Context(), testbed.Binary(t), append([]string{"jsonl", "cat"}, files...)...).Output()
	require.NoError(t, err)
	spans := map[string][]map[string]any{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var span map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &span))
		if name, ok := span["name"].(string); ok {
			spans[name] = append(spans[name], span)
		}
	}
	require.NoError(t, lines.Err())
	return spans
}
