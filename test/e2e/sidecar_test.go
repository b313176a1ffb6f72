// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// TestSidecar runs the shipped sidecar config in a job's environment: N ranks are N series in Prometheus, and the archive
// knows the job.
func TestSidecar(t *testing.T) {
	prometheus := testbed.FreePort(t)
	collector := testbed.Start(t, testbed.Options{
		Args: []string{"--config", "lenscol:sidecar"},
		Env:  []string{"LENSCOL_PROMETHEUS_PORT=" + prometheus, "SLURM_JOB_ID=4242", "SLURM_JOB_NAME=llama"},
	})
	demo := exec.Command(testbed.Binary(t), "demo", "--endpoint", "http://"+collector.HTTP, "--run-id", "0a1b2c3d4e5f", "--ranks", "4")
	said, err := demo.CombinedOutput()
	require.NoError(t, err, "%s", said)

	var series []string
	require.Eventually(t, func() bool {
		series = scrape(t, "http://127.0.0.1:"+prometheus+"/metrics", "megatron_training_loss{")
		return len(series) >= 4
	}, time.Minute, 10*time.Millisecond)
	require.Len(t, series, 4)
	instances := map[string]bool{}
	for _, s := range series {
		_, rest, _ := strings.Cut(s, `instance="`)
		instance, _, _ := strings.Cut(rest, `"`)
		instances[instance] = true
	}
	require.Len(t, instances, 4, "%q", series)

	collector.Stop()
	text, err := os.ReadFile(filepath.Join(collector.Dir, "lens-data", "traces.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(text), `"slurm.job.name":"llama"`), "one resource a rank")
	require.Contains(t, string(text), `"run":"4242"`, "the id that each process made up gives way to the job's")
	require.NotContains(t, string(text), `"run":"0a1b2c3d4e5f"`)
	require.Contains(t, string(text), `"nemo.run.id.original":"0a1b2c3d4e5f"`)
}

// scrape returns the lines of a metrics page that begin so.
func scrape(t *testing.T, url, prefix string) (lines []string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return nil // It does not listen yet.
	}
	defer answer.Body.Close()
	scanner := bufio.NewScanner(answer.Body)
	for scanner.Scan() {
		if strings.HasPrefix(scanner.Text(), prefix) {
			lines = append(lines, scanner.Text())
		}
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return lines
}
