// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package sdk tests the examples of the Go SDK against the binary: what they send is in the archive.
package sdk // import "github.com/lenscol/lenscol/test/sdk"

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/internal/testbed"
)

// line is a line of the archive, as docs/format.md has it.
type line struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	TraceID  string `json:"trace_id"`
	SpanID   string `json:"span_id"`
	ParentID string `json:"parent_id"`
	Kind     string `json:"kind"`
	Status   string `json:"status"`
	Events   []struct {
		Name       string         `json:"name"`
		Attributes map[string]any `json:"attributes"`
	} `json:"events"`
	Links []struct {
		SpanID string `json:"span_id"`
	} `json:"links"`
	Attributes map[string]any `json:"attributes"`
	Body       any            `json:"body"`
	Value      float64        `json:"value"`
	Count      float64        `json:"count"`
	Flags      uint32         `json:"flags"`
	Run        string         `json:"run"`
	Rank       *int           `json:"rank"`
	Service    string         `json:"service"`
}

// archive is what a collector has written; it must have stopped.
func archive(t *testing.T, c *testbed.Collector, signal string) (lines []line) {
	t.Helper()
	file, err := os.Open(filepath.Join(c.Dir, "lens-data", signal+".jsonl"))
	require.NoError(t, err)
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var l line
		require.NoError(t, json.Unmarshal(scanner.Bytes(), &l), scanner.Text())
		if l.Type != "resource" && l.Type != "scope" {
			lines = append(lines, l)
		}
	}
	require.NoError(t, scanner.Err())
	return lines
}

func named(lines []line, name string) (found []line) {
	for _, l := range lines {
		if l.Name == name {
			found = append(found, l)
		}
	}
	return found
}

// example builds an example, and is its process before it starts, in an environment that sends all it has to c.
func example(t *testing.T, c *testbed.Collector, name string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := examples()
	require.NoError(t, err)
	cmd := exec.Command(filepath.Join(dir, name), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"),
		"NEMO_LENS_ENABLED=true", "NEMO_LENS_LOGS_ENABLED=true", "NEMO_LENS_SPAN_GROUPS=per_step", "NEMO_LENS_EXPORT_STRATEGY=all_ranks",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://"+c.GRPC)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// examples is the folder of all, built once.
var examples = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("../../build/examples")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", dir+"/", "./examples/...")
	cmd.Dir = "../../sdk"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the examples: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	return out
}

func TestTrainer(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf", "http/json"} {
		t.Run(protocol, func(t *testing.T) {
			c := testbed.Start(t, testbed.Options{})
			env := []string{"RANK=3", "WORLD_SIZE=8", "NEMO_LENS_RUN_ID=trainer-run", "OTEL_SERVICE_NAME=megatron", "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol}
			if protocol != "grpc" {
				env = append(env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+c.HTTP)
			}
			run(t, example(t, c, "trainer", env, "-steps=20", "-step-time=1ms"))
			c.Stop()

			spans, points, records := archive(t, c, "traces"), archive(t, c, "metrics"), archive(t, c, "logs")
			for _, l := range append(append(spans, points...), records...) {
				require.Equal(t, "trainer-run", l.Run, l.Name)
				require.Equal(t, 3, *l.Rank, l.Name)
				require.Equal(t, "megatron", l.Service, l.Name)
			}
			for name, want := range map[string]int{
				"nv.dl.training.startup": 1, "nv.dl.training.iter_block": 2, "nv.dl.training.iteration": 20,
				"nv.dl.training.iteration.forward_backward": 20, "nv.dl.training.iteration.optimizer_step": 20,
				"nv.mlm.train.log": 4, "nv.dl.training.checkpoint.save": 2, "nv.dl.training.evaluate": 2,
			} {
				require.Len(t, named(spans, name), want, name)
			}
			startup, pass := named(spans, "nv.dl.training.startup")[0], named(spans, "nv.dl.training.iter_block")[0]
			require.Equal(t, startup.SpanID, pass.Links[0].SpanID)
			require.EqualValues(t, 0x103, startup.Flags, "sampled, a random trace id, and no remote parent")
			require.Equal(t, 81920.0, last(t, points, "nv.dl.training.tokens.processed").Value)
			require.Equal(t, 20.0, last(t, points, "megatron.training.step_duration_ms").Count)
			require.InDelta(t, 7.36, last(t, points, "megatron.training.loss").Value, 0.01)
			require.Len(t, records, 7)
			require.Equal(t, "training starts", records[0].Body)
			require.Equal(t, startup.SpanID, records[0].SpanID)
		})
	}
}

func last(t *testing.T, points []line, name string) line {
	t.Helper()
	found := named(points, name)
	require.NotEmpty(t, found, name)
	return found[len(found)-1]
}

// TestTrainerThatIsStopped ends a run as Slurm does; the spans that are open are in the archive, marked.
func TestTrainerThatIsStopped(t *testing.T) {
	c := testbed.Start(t, testbed.Options{})
	cmd := example(t, c, "trainer", []string{"RANK=0", "WORLD_SIZE=1"}, "-steps=1000000", "-save-every=1000000", "-step-time=10ms")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	scanner := bufio.NewScanner(stderr)
	for scanner.Scan() {
		if strings.Contains(scanner.Text(), "step=10 ") {
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		}
	}
	require.NoError(t, cmd.Wait())
	c.Stop()

	spans := archive(t, c, "traces")
	open := spans[len(spans)-1]
	require.Equal(t, "nv.dl.training.iter_block", open.Name, "the outermost is ended last")
	require.Equal(t, true, open.Attributes["nemo.span.truncated"])
	require.Empty(t, open.Status)
	require.Equal(t, "nemo.span.truncated", open.Events[0].Name)
	require.Equal(t, "still open at telemetry shutdown", open.Events[0].Attributes["nemo.span.truncated.reason"])
	ended := map[string]bool{}
	for _, span := range spans {
		if span.Attributes["nemo.span.truncated"] == true {
			require.False(t, ended[span.ParentID], "%s is ended after what it is in", span.Name)
			ended[span.SpanID] = true
		}
	}
	require.True(t, ended[open.SpanID])
	require.GreaterOrEqual(t, len(named(spans, "nv.dl.training.iteration")), 10)
	records := archive(t, c, "logs")
	require.Equal(t, "stopped, the step that runs is given up", records[len(records)-1].Body)
}

// summary is what the program rollouts prints.
type summary struct {
	OK       int `json:"ok"`
	InFlight int `json:"in_flight"`
}

func readSummary(t *testing.T, out []byte) (s summary) {
	t.Helper()
	require.NoError(t, json.Unmarshal(out, &s), "%s", out)
	return s
}

// TestRollouts has 16,384 rollouts in flight: the environment answers nobody before all are there.
func TestRollouts(t *testing.T) {
	const n = 16384
	c := testbed.Start(t, testbed.Options{})
	out := run(t, example(t, c, "rollouts", []string{"NEMO_LENS_SPAN_GROUPS=all"},
		fmt.Sprint("-n=", n), fmt.Sprint("-in-flight=", n), fmt.Sprint("-gather=", n), "-timeout=5m"))
	said := readSummary(t, out)
	require.Equal(t, n, said.OK)
	require.Equal(t, n, said.InFlight)
	c.Stop()

	spans := archive(t, c, "traces")
	byParent := make(map[string]line, len(spans))
	for _, span := range spans {
		byParent[span.TraceID+span.ParentID] = span
	}
	want := []string{
		"nemo-gym/driver gym.rollout", "nemo-gym/driver HTTP POST",
		"nemo-gym/gateway POST /run", "nemo-gym/gateway gym.agent.responses", "nemo-gym/gateway HTTP POST",
		"nemo-gym/environment POST /verify", "nemo-gym/environment gym.verify",
	}
	require.Len(t, spans, n*len(want))
	rollouts := named(spans, "gym.rollout")
	require.Len(t, rollouts, n)
	traces, runs := map[string]bool{}, map[string]bool{}
	for _, span := range rollouts {
		traces[span.TraceID] = true
		var got []string
		for next, ok := byParent[span.TraceID+span.ParentID]; ok; next, ok = byParent[next.TraceID+next.SpanID] {
			got = append(got, next.Service+" "+next.Name)
			runs[next.Run] = true
		}
		require.Equal(t, want, got, span.TraceID)
	}
	require.Len(t, traces, n)
	require.Len(t, runs, 1, "all processes share the driver's run id")
	points := archive(t, c, "metrics")
	require.Equal(t, float64(n), last(t, points, "gym.rollout.completed_total").Value)
	require.Equal(t, float64(n), last(t, points, "gym.verify.duration_ms").Count)
}

func TestLauncher(t *testing.T) {
	const ranks = 4
	c := testbed.Start(t, testbed.Options{})
	run(t, example(t, c, "launcher", []string{"OTEL_SERVICE_NAME=megatron"}, fmt.Sprint("-n=", ranks), "--", "trainer", "-steps=4", "-step-time=1ms"))
	c.Stop()

	spans := archive(t, c, "traces")
	root := named(spans, "nv.nvrx.ftl.run")
	require.Len(t, root, 1)
	require.Equal(t, "nvrx.ft_launcher", root[0].Service)
	require.NotEmpty(t, root[0].Run)
	for _, signal := range []string{"traces", "metrics", "logs"} {
		for _, l := range archive(t, c, signal) {
			require.Equal(t, root[0].Run, l.Run, l.Name)
		}
	}
	launches := map[string]line{}
	for _, l := range named(spans, "nv.nvrx.ftl.worker_launch") {
		require.Equal(t, root[0].SpanID, l.ParentID)
		launches[l.SpanID] = l
	}
	require.Len(t, launches, ranks)
	seen := map[int]bool{}
	for _, l := range named(spans, "nv.dl.training.startup") {
		launch, ok := launches[l.ParentID]
		require.True(t, ok, "it is below a launch")
		require.Equal(t, launch.TraceID, l.TraceID)
		require.Equal(t, launch.Attributes["nv.nvrx.ftl.group.rank"], float64(*l.Rank))
		require.Equal(t, "megatron", l.Service)
		seen[*l.Rank] = true
	}
	require.Len(t, seen, ranks)
	require.Len(t, named(spans, "nv.dl.training.iteration"), 4*ranks)
}

// TestDocs runs what docs/sdk.md says about the examples.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/sdk.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Examples\n")
	_, block, _ := strings.Cut(section, "\n```sh\n")
	script, _, found := strings.Cut(block, "\n```\n")
	require.True(t, found)

	c := testbed.Start(t, testbed.Options{})
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+c.GRPC)
	require.Equal(t, 1024, readSummary(t, run(t, cmd)).OK)
	c.Stop()
	spans := archive(t, c, "traces")
	require.Len(t, named(spans, "nv.dl.training.iteration"), 4*20)
	require.Len(t, named(spans, "gym.verify"), 1024)
}
