// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

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
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/lenscol/lenscol/configs"
)

// The tests of this file run the whole distribution: the binary that LENSCOL_BIN names, or one that they build. They are
// left out with -short.

var buildBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("LENSCOL_BIN"); path != "" {
		_, err := os.Stat(path) // So that go test sees a new binary, and does not answer from its cache.
		return path, err
	}
	dir, err := os.MkdirTemp("", "lenscol-test-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	path := filepath.Join(dir, "lenscol")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "github.com/lenscol/lenscol/cmd/lenscol")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// builtIn is the folder of a binary that was built here, for TestMain to remove.
var builtIn string

func binary(t *testing.T) string {
	if testing.Short() {
		t.Skip("runs the whole binary")
	}
	path, err := buildBinary()
	require.NoError(t, err)
	return path
}

// process is a lenscol that was started in a folder of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *syncBuffer
}

// startBinary runs lenscol and returns once it says that it listens. The test's end stops it and wants exit code 0.
func startBinary(t *testing.T, dir string, env []string, args ...string) *process {
	p := &process{t: t, cmd: exec.Command(binary(t), args...), stderr: &syncBuffer{}}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = p.stderr
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { p.stop() })
	p.waitFor("OTLP on ", 1)
	return p
}

func (p *process) waitFor(text string, times int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Count(p.stderr.String(), text) >= times }, waitLimit, pollEvery, "%q in:\n%s", text, p.stderr)
}

// stop ends the process as a scheduler would.
func (p *process) stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	err := p.cmd.Wait()
	require.NoError(p.t, err, "%s", p.stderr)
}

// runBinary runs a command of lenscol to its end.
func runBinary(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	var out, errOut bytes.Buffer
	cmd := exec.Command(binary(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// freePorts are variables that give an embedded config ports of its own.
func freePorts(t *testing.T) []string {
	return []string{
		fmt.Sprintf("LENSCOL_GRPC_PORT=%d", freePort(t)), fmt.Sprintf("LENSCOL_HTTP_PORT=%d", freePort(t)), fmt.Sprintf("LENSCOL_METRICS_PORT=%d", freePort(t)),
	}
}

// readLines returns the lines of a type in a file of the archive; every line must be JSON.
func readLines(t *testing.T, path, lineType string) []map[string]any {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var lines []map[string]any
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line map[string]any
		require.NoError(t, json.Unmarshal(scanner.Bytes(), &line), scanner.Text())
		if line["type"] == lineType {
			lines = append(lines, line)
		}
	}
	require.NoError(t, scanner.Err())
	return lines
}

func TestBinaryWithoutArguments(t *testing.T) {
	dir, env := t.TempDir(), freePorts(t)
	port := func(i int) string { _, n, _ := strings.Cut(env[i], "="); return n }
	p := startBinary(t, dir, env)
	require.Contains(t, p.stderr.String(), fmt.Sprintf("OTLP on 127.0.0.1:%s (gRPC) and 127.0.0.1:%s (HTTP); writing lens-data/{traces,metrics,logs}.jsonl; "+
		"config lenscol:archive (lenscol configs show archive)\n", port(0), port(1)))

	stdout, stderr, code := runBinary(t, env, "demo", "--run-id", "r")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "sent and acknowledged: 288 spans, 35 metric points, 6 log records")
	p.stop()
	require.Len(t, readLines(t, filepath.Join(dir, "lens-data", "traces.jsonl"), "span"), 288)
	require.Len(t, readLines(t, filepath.Join(dir, "lens-data", "metrics.jsonl"), "metric"), 35)
	require.Len(t, readLines(t, filepath.Join(dir, "lens-data", "logs.jsonl"), "log"), 6)
}

func TestBinarySetAloneKeepsTheDefaultConfig(t *testing.T) {
	p := startBinary(t, t.TempDir(), freePorts(t), "--set", "service.telemetry.logs.level=fatal")
	require.Equal(t, 1, strings.Count(p.stderr.String(), "\n"), p.stderr.String()) // The start line is all.
	require.Contains(t, p.stderr.String(), "config lenscol:archive")
}

func TestBinaryTwoInstancesWithPortsAuto(t *testing.T) {
	var endpoints []string
	for range 2 {
		dir := t.TempDir()
		p := startBinary(t, dir, nil, "--ports", "auto", "--port-file", "ports.env")
		file := filepath.Join(dir, "ports.env")
		require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, waitLimit, pollEvery)
		// As a job script would read it.
		out, err := exec.Command("sh", "-euc", `. "$1" && echo "$OTEL_EXPORTER_OTLP_ENDPOINT $OTEL_EXPORTER_OTLP_PROTOCOL $LENSCOL_GRPC_PORT $LENSCOL_HTTP_PORT $LENSCOL_METRICS_PORT"`, "sh", file).Output()
		require.NoError(t, err)
		words := strings.Fields(string(out))
		require.Len(t, words, 5)
		require.Equal(t, "http://127.0.0.1:"+words[2], words[0])
		require.Equal(t, "grpc", words[1])
		_, stderr, code := runBinary(t, nil, "demo", "--endpoint", "http://127.0.0.1:"+words[3])
		require.Zero(t, code, stderr)
		endpoints = append(endpoints, words[0])
		defer func() {
			p.stop()
			require.NoFileExists(t, file)
		}()
	}
	require.NotEqual(t, endpoints[0], endpoints[1])
}

func TestBinaryPortInUse(t *testing.T) {
	for i, tt := range []struct{ name, key, flag string }{
		{"gRPC", "receivers.otlp.protocols.grpc.endpoint", "--ports grpc="},
		{"HTTP", "receivers.otlp.protocols.http.endpoint", "--ports http="},
		{"the collector's own metrics", "service.telemetry.metrics.readers[0].pull.exporter.prometheus.port", "--ports metrics="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env, taken := freePorts(t), occupy(t)
			name, _, _ := strings.Cut(env[i], "=")
			env[i] = fmt.Sprintf("%s=%d", name, taken)
			stdout, stderr, code := runBinary(t, env)
			require.Equal(t, 1, code)
			require.Empty(t, stdout)
			want := fmt.Sprintf("lenscol: error: port %d on 127.0.0.1 (%s) is in use, perhaps by another collector: start this one with %s", taken, tt.key, tt.flag)
			require.Equal(t, 1, strings.Count(stderr, want), stderr)
		})
	}
}

func TestBinaryErrorsArePrintedOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"flag", []string{"--confg", "x"}, 2, "lenscol: error: unknown flag: --confg, did you mean --config?\n"},
		{"command", []string{"validat"}, 2, "lenscol: error: unknown command \"validat\", did you mean \"lenscol validate\"? `lenscol --help` lists all commands\n"},
		{"config", []string{"validate", "--config", "lenscol:nothing"}, 1, "lenscol: error: cannot resolve the configuration: " +
			"cannot retrieve the configuration: no embedded config \"nothing\", there are: " + strings.Join(configs.Names(), ", ") + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := runBinary(t, nil, tt.args...)
			require.Equal(t, tt.code, code)
			require.Empty(t, stdout)
			require.Equal(t, tt.want, stderr)
		})
	}
}

func TestBinaryCommands(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"components", []string{"components"}, "name: jsonl"},
		{"providers", []string{"components"}, "scheme: lenscol"},
		{"validate", []string{"validate"}, ""},
		{"print-config", []string{"print-config"}, "endpoint: 127.0.0.1:4317"},
		{"configs", []string{"configs"}, "archive"},
		{"version", []string{"version"}, "core    v0."},
		{"completion", []string{"completion", "bash"}, "lenscol"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := runBinary(t, nil, tt.args...)
			require.Zero(t, code, stderr)
			require.Contains(t, stdout, tt.want)
		})
	}
}

// By name, and shown and given as a file.
func TestBinaryValidatesEveryEmbeddedConfig(t *testing.T) {
	env := []string{ // what has no default
		"WANDB_API_KEY=" + strings.Repeat("0", 40), "HONEYCOMB_API_KEY=k", "DD_API_KEY=k", "NEW_RELIC_LICENSE_KEY=k",
		"GRAFANA_CLOUD_OTLP_ENDPOINT=https://otlp-gateway.grafana.net/otlp", "GRAFANA_CLOUD_INSTANCE_ID=1", "GRAFANA_CLOUD_API_KEY=k",
	}
	list, stderr, code := runBinary(t, nil, "configs")
	require.Zero(t, code, stderr)
	for line := range strings.Lines(list) {
		name := strings.Fields(line)[0]
		t.Run(name, func(t *testing.T) {
			_, stderr, code := runBinary(t, env, "validate", "--config", "lenscol:"+name)
			require.Zero(t, code, stderr)
			require.Empty(t, stderr, "nothing is wrong with our own")
			text, stderr, code := runBinary(t, nil, "configs", "show", name)
			require.Zero(t, code, stderr)
			file := filepath.Join(t.TempDir(), "shown.yaml")
			writeConfig(t, file, text)
			_, stderr, code = runBinary(t, env, "validate", "--config", file)
			require.Zero(t, code, stderr)
		})
	}
}

// What is valid and loses telemetry is told, without secrets, and no reason to fail.
func TestBinaryValidateWarns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	writeConfig(t, file, `
receivers: {otlp: {protocols: {grpc: }}}
processors: {batch: }
exporters: {otlp_http: {endpoint: "https://api.honeycomb.io", headers: {x-honeycomb-team: very-secret}}, debug: }
service: {pipelines: {metrics: {receivers: [otlp], processors: [batch], exporters: [otlp_http, debug]}}}
`)
	stdout, stderr, code := runBinary(t, nil, "validate", "--config", file)
	require.Zero(t, code, stderr)
	require.Empty(t, stdout)
	require.Equal(t, 5, strings.Count(stderr, "lenscol: warning: "), stderr)
	for _, text := range []string{"no memory_limiter", "batch before 2 exporters", "waits in memory", "within 5m0s is lost", "without x-honeycomb-dataset"} {
		require.Contains(t, stderr, text)
	}
	require.NotContains(t, stderr, "very-secret")

	_, stderr, code = runBinary(t, nil, "validate", "--config", file, "--set", "service.pipelines.metrics.exporters=[debug]")
	require.Zero(t, code)
	require.Empty(t, stderr, "nothing leaves the process any more")
}

// What main.go repeats of builder-config.yaml has not drifted from it.
func TestBinaryIsWhatBuilderConfigSays(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "builder-config.yaml"))
	require.NoError(t, err)
	var config struct {
		Dist struct {
			Version string `yaml:"version"`
		} `yaml:"dist"`
		Providers []struct {
			Module string `yaml:"gomod"`
		} `yaml:"providers"`
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	stdout, stderr, code := runBinary(t, nil, "version", "--json")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, fmt.Sprintf(`"version":%q`, config.Dist.Version))

	stdout, stderr, code = runBinary(t, nil, "components")
	require.Zero(t, code, stderr)
	_, providers, _ := strings.Cut(stdout, "\nproviders:")
	require.NotEmpty(t, config.Providers)
	for _, provider := range config.Providers {
		require.Contains(t, providers, "module: "+provider.Module+"\n")
	}
	require.Equal(t, len(config.Providers), strings.Count(providers, "scheme: "))
}

// Every span that was acknowledged while the config changed back and forth stands in the files, and a bad config changes nothing.
func TestBinaryReloadsUnderLoadAndLosesNothing(t *testing.T) {
	const reloads = 10
	dir, env := t.TempDir(), freePorts(t)
	_, port, _ := strings.Cut(env[1], "=")
	text, _, _ := runBinary(t, nil, "configs", "show", "archive")
	quiet := strings.Replace(text, "  telemetry:\n", "  telemetry:\n    logs: {level: error}\n", 1)
	backend := strings.Replace(quiet, "exporters: [jsonl]", "exporters: [jsonl, nop]", 1)
	backend = strings.Replace(backend, "exporters:\n", "exporters:\n  nop:\n", 1)
	backend = strings.Replace(backend, "  jsonl:\n", "  jsonl:\n    sending_queue: {block_on_overflow: true}\n", 1)
	file := filepath.Join(dir, "config.yaml")
	writeConfig(t, file, quiet)
	p := startBinary(t, dir, env, "--config", file)

	stop := make(chan struct{})
	var senders sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[string]bool{} // span ids
	for rank := range 4 {
		senders.Go(func() {
			run := demoRun{id: fmt.Sprintf("run-%d", rank), ranks: 1, steps: 1 << 30}.start(time.Now(), demoStep)[0]
			s := &otlpSender{base: "http://127.0.0.1:" + port}
			for step := 0; ; step++ {
				select {
				case <-stop:
					return
				default:
				}
				batch := run.batch(step)
				if err := sendUntilAcknowledged(t, s, batch, stop); err != nil {
					return
				}
				mu.Lock()
				for _, span := range allSpans([]demoBatch{batch}) {
					acknowledged[span.SpanID().String()] = true
				}
				mu.Unlock()
			}
		})
	}
	sent := func() int { mu.Lock(); defer mu.Unlock(); return len(acknowledged) }
	moreIsAcknowledged := func() {
		t.Helper()
		before := sent()
		require.Eventually(t, func() bool { return sent() > before+20 }, waitLimit, pollEvery, "%s", p.stderr)
	}
	moreIsAcknowledged()
	for i := range reloads {
		writeConfig(t, file, []string{backend, quiet}[i%2])
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
		p.waitFor("OTLP on ", 2+i)
		moreIsAcknowledged()

		writeConfig(t, file, "receivers: [")
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
		p.waitFor("reload: the new config is refused, the one that ran before runs on: ", 1+i)
		moreIsAcknowledged()
	}
	close(stop)
	senders.Wait()
	p.stop()

	written := map[string]bool{}
	for _, line := range readLines(t, filepath.Join(dir, "lens-data", "traces.jsonl"), "span") {
		written[line["span_id"].(string)] = true
	}
	for id := range acknowledged {
		require.True(t, written[id], "span %s was acknowledged and is not in the file", id)
	}
	t.Logf("%d spans acknowledged over %d reloads", len(acknowledged), reloads)
}

// sendUntilAcknowledged repeats a batch while nobody listens, as an SDK does.
func sendUntilAcknowledged(t *testing.T, s *otlpSender, batch demoBatch, stop <-chan struct{}) error {
	for {
		err := s.send(t.Context(), batch)
		if err == nil {
			return nil
		}
		select {
		case <-stop:
			return err
		default:
		}
	}
}
