// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var requeued = filepath.Join("..", "..", "..", "..", "internal", "reckon", "testdata", "requeued.sacct")

// The page shows what the command prints.
func TestReckonPrintsTheAccount(t *testing.T) {
	stdout, err := execute(t, "reckon", "--from", requeued, "--time-zone", "UTC", "--dry-run")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "$ lenscol reckon --from job.sacct --dry-run\n"+stdout+"```\n")

	stdout, err = execute(t, "reckon", "--from", requeued, "--dry-run", "--json")
	require.NoError(t, err)
	var got struct{ Jobs []jobAccount }
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, []jobAccount{{"5", "requeued", "CANCELLED by 0", 2, 209, map[string]float64{"deferred": 121, "queued": 4, "setup": 1, "steps": 83}}}, got.Jobs)
}

func TestBinaryReckon(t *testing.T) {
	source, err := filepath.Abs(requeued)
	require.NoError(t, err)
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"", 2, "needs one of --job ID and --from FILE"},
		{"--job 1 --from x", 2, "needs one of"},
		{"--job 1;2", 1, "must be a job id"},
		{"--from nothing-there", 1, "nothing-there"},
		{"--from " + source + " --layers all", 2, `"all" must be records or job`},
		{"--from " + source + " --time-zone Mars", 2, "Mars"},
		{"--from " + source + " -o out --to xml", 2, "xml"},
		{"--from " + source + " --endpoint 127.0.0.1:1", 2, "is not a URL"},
		{"--from " + source + " --endpoint http://127.0.0.1:1 --protocol smoke", 2, "is not one of grpc, http"},
		{"--from " + source + " --endpoint http://127.0.0.1:1 -o out", 2, "--endpoint and --output both say where the spans go"},
		{"--from " + source + " --endpoint http://127.0.0.1:1 --retry-for 10ms", 1, "127.0.0.1:1"},
		{"--from " + source + " --dry-run --infra-steps train", 0, ""},
	} {
		_, stderr, code := runBinary(t, nil, append([]string{"reckon"}, strings.Fields(c.args)...)...)
		require.Equal(t, c.code, code, "%s: %s", c.args, stderr)
		require.Contains(t, stderr, c.stderr)
	}
}

// The spans arrive where the environment says, and a second run sends the same ones.
func TestBinaryReckonArrives(t *testing.T) {
	source, err := filepath.Abs(requeued)
	require.NoError(t, err)
	dir, ports := t.TempDir(), freePorts(t)
	p := startBinary(t, dir, ports)
	_, port, _ := strings.Cut(ports[0], "=")
	for range 2 {
		_, stderr, code := runBinary(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:" + port}, "reckon", "--from", source)
		require.Zero(t, code, stderr)
		require.Contains(t, stderr, "15 spans sent to http://127.0.0.1:"+port)
	}
	p.stop()
	seen := map[string]int{}
	for _, span := range readLines(t, filepath.Join(dir, "lens-data", "traces.jsonl"), "span") {
		require.Equal(t, "5", span["run"])
		require.Equal(t, "slurm", span["service"])
		seen[span["span_id"].(string)]++
	}
	require.Len(t, seen, 15)
	for id, n := range seen {
		require.Equal(t, 2, n, id)
	}
}

func TestBinaryReckonConsole(t *testing.T) {
	source, err := filepath.Abs(requeued)
	require.NoError(t, err)
	cmd := exec.Command(binary(t), "reckon", "--from", source)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "NEMO_LENS_EXPORTER=console")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	stdout, stderr, code := runBinary(t, nil, "jsonl", "stat", filepath.Join(cmd.Dir, "lens_slurm.jsonl.gz"))
	require.Zero(t, code, stderr)
	require.Regexp(t, `spans\s+15 `, stdout)
}
