// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The exit codes of the two commands that NeMo Lens has are its own.
func TestBinaryLaunchExitCodes(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	console := []string{"NEMO_LENS_EXPORTER=console"}
	away := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + gone.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_TIMEOUT=300"}
	for _, c := range []struct {
		name, args string
		env        []string
		code       int
		stderr     string
	}{
		{"no stage", "set-slurm-resource-attrs", nil, 2, `--stage "": must be sbatch or task`},
		{"another stage", "set-slurm-resource-attrs --stage step", nil, 2, "must be sbatch or task"},
		{"an image in the batch script", "set-slurm-resource-attrs --stage sbatch --container-image x", nil, 2, "needs --stage task"},
		{"stage", "set-slurm-resource-attrs --stage task --container-image x", nil, 0, ""},
		{"no span", "emit-spans --service s", console, 2, "--span is missing"},
		{"bad field", "emit-spans --service s --span a,1,2 --span b,x,2", console, 1, "decimal epoch seconds"},
		{"circle", "emit-spans --service s --span a,1,2,b --span b,1,2,a", console, 1, "is below it"},
		{"spans", "emit-spans --service s --span a,1,2", console, 0, "SECONDS"},
		{"dry run", "emit-spans --service s --span a,1,2 --dry-run", away, 0, "SECONDS"},
		{"nobody takes them", "emit-spans --service s --span a,1,2", away, 2, "emit spans"},
		{"nobody takes them, gRPC", "emit-spans --service s --span a,1,2", append(away[:1:1], "OTEL_EXPORTER_OTLP_TIMEOUT=300"), 2,
			"emit spans: nobody takes spans at " + gone.Addr().String()},
		{"bad setting", "emit-spans --service s --span a,1,2", []string{"NEMO_LENS_EXPORTER=pigeon"}, 2, "NEMO_LENS_EXPORTER"},
		{"no command", "exec --name x", console, 2, "the command is missing"},
		{"its own flags", "exec sh -c true --name x", console, 0, ""},
		{"not found", "exec -- no-such-program-here", console, 127, ""},
		{"unknown flag", "exec --nmae x -- true", console, 2, "--name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := runBinary(t, c.env, strings.Fields(c.args)...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stderr, c.stderr)
			if c.code != 0 && !strings.HasPrefix(c.args, "exec") {
				require.Empty(t, stdout, "nothing is emitted")
			}
		})
	}
}

// A collector that is away is a line on stderr, and no more.
func TestBinaryExecWithoutCollector(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	for _, protocol := range []string{"grpc", "grpc", "grpc", "http/protobuf", "http/json"} {
		env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + gone.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol}
		_, stderr, code := runBinary(t, env, "exec", "--", "sh", "-c", "exit 3")
		require.Equal(t, 3, code)
		require.Regexp(t, `^lenscol exec: the span was not sent: nobody takes spans at [^\n]*\n$`, stderr)
	}
}

// What launch scripts send arrives in a lenscol that runs, over every protocol.
func TestBinaryLaunchSpansArrive(t *testing.T) {
	dir, ports := t.TempDir(), freePorts(t)
	p := startBinary(t, dir, ports)
	port := func(i int) string { _, n, _ := strings.Cut(ports[i], "="); return n }
	for _, protocol := range []string{"grpc", "http/protobuf", "http/json"} {
		endpoint := "http://127.0.0.1:" + port(1)
		if protocol == "grpc" {
			endpoint = "http://127.0.0.1:" + port(0)
		}
		env := []string{"OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol, "OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "SLURM_JOB_ID=77"}
		_, stderr, code := runBinary(t, env, "emit-spans", "--service", "launcher "+protocol, "--span", "pull,1700000001,1700000009,setup",
			"--span", "setup,1700000000,1700000012.5", "--attr", "site=a", "--events", "pull,cached,1700000002", "--status", "setup,error,no GPU")
		require.Zero(t, code, stderr)
		require.Equal(t, 3, strings.Count(stderr, "\n"), stderr)
		_, stderr, code = runBinary(t, env, "exec", "--service", "launcher "+protocol, "--name", "sleepless", "--", "sh", "-c", "exit 9")
		require.Equal(t, 9, code)
		require.Empty(t, stderr)
	}
	p.stop()

	spans := map[string]map[string]any{}
	for _, span := range readLines(t, filepath.Join(dir, "lens-data", "traces.jsonl"), "span") {
		spans[span["service"].(string)+" "+span["name"].(string)] = span
	}
	require.Len(t, spans, 9)
	for _, protocol := range []string{"grpc", "http/protobuf", "http/json"} {
		setup, pull, run := spans["launcher "+protocol+" setup"], spans["launcher "+protocol+" pull"], spans["launcher "+protocol+" sleepless"]
		require.Equal(t, "77", setup["run"])
		require.Equal(t, "ERROR", setup["status"])
		require.Equal(t, "no GPU", setup["status_message"])
		require.EqualValues(t, 12_500_000_000, setup["duration_ns"])
		require.Equal(t, setup["span_id"], pull["parent_id"])
		require.Equal(t, setup["trace_id"], pull["trace_id"])
		require.Equal(t, map[string]any{"site": "a"}, pull["attributes"])
		require.Len(t, pull["events"], 1)
		require.Equal(t, "ERROR", run["status"])
		require.EqualValues(t, 9, run["attributes"].(map[string]any)["process.exit.code"])
	}
}

func TestEmitSpansJSON(t *testing.T) {
	stdout, err := execute(t, "emit-spans", "--dry-run", "--json", "--span", "pull,1700000001,1700000009,setup", "--span", "setup,1700000000,1700000012.5")
	require.NoError(t, err)
	require.JSONEq(t, `{"spans":[{"name":"setup","start":"2023-11-14T22:13:20Z","seconds":12.5},
		{"name":"pull","parent":"setup","start":"2023-11-14T22:13:21Z","seconds":8}]}`, stdout)
}
