// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/otelcol"
)

// variablesConfig takes its ports from the variables, as every embedded config does.
var variablesConfig = "yaml:" + strings.NewReplacer("http:", "grpc:", "127.0.0.1:1", "${env:LENSCOL_HOST:-127.0.0.1}:${env:LENSCOL_GRPC_PORT:-4317}").Replace(httpConfig(1))

// keepVariables has the variables that --ports sets unset at the test's end.
func keepVariables(t *testing.T, names ...string) {
	for _, name := range names {
		t.Setenv(portVariable(name), "")
		require.NoError(t, os.Unsetenv(portVariable(name)))
	}
}

func TestPortsFlag(t *testing.T) {
	for _, tt := range []struct{ value, want, err string }{
		{"auto", "auto", ""},
		{"grpc=14317", "grpc=14317", ""},
		{"http=2,grpc=1", "grpc=1,http=2", ""},
		{"auto,metrics=65535", "auto,metrics=65535", ""},
		{"grpc", "", `"grpc" is neither auto nor NAME=PORT`},
		{"grpc=0", "", `"grpc=0" is neither auto nor NAME=PORT with a port from 1 to 65535, as in grpc=14317`},
		{"grpc=65536", "", `"grpc=65536"`},
		{"4317", "", `"4317"`},
		{"", "", `""`},
	} {
		t.Run(tt.value, func(t *testing.T) {
			var p portsFlag
			err := p.Set(tt.value)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, p.String())
		})
	}
}

func TestPortsAutoNeverPicksAPortTwice(t *testing.T) {
	names := map[string]int{"grpc": 0, "http": 0, "metrics": 0}
	keepVariables(t, sortedKeys(names)...)
	seen := map[string]bool{}
	for range 20 { // Agents that start together: none has released its ports yet.
		release, err := (&portsFlag{auto: true}).export(names)
		require.NoError(t, err)
		defer release()
		for name := range names {
			port := os.Getenv(portVariable(name))
			require.False(t, seen[port], "port %s picked twice", port)
			seen[port] = true
		}
	}
}

func TestPortsAutoLeavesWhatIsNamed(t *testing.T) {
	keepVariables(t, "grpc", "http")
	release, err := (&portsFlag{auto: true, fixed: map[string]int{"http": 14318}}).export(map[string]int{"grpc": 4317, "http": 4318})
	require.NoError(t, err)
	release()
	require.Equal(t, "14318", os.Getenv("LENSCOL_HTTP_PORT"))
	require.NotContains(t, []string{"", "4317"}, os.Getenv("LENSCOL_GRPC_PORT"))
}

func TestPortsThatTheConfigDoesNotRead(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		a := newTestAgent(t, testSettings(), "yaml:"+httpConfig(1))
		a.ports.auto = true
		require.ErrorContains(t, a.run(t.Context()), "--ports: this config reads no variable LENSCOL_<NAME>_PORT")
	})
	t.Run("another", func(t *testing.T) {
		a := newTestAgent(t, testSettings(), variablesConfig)
		require.NoError(t, a.ports.Set("http=14318"))
		require.EqualError(t, a.run(t.Context()), "--ports http=14318: this config does not read LENSCOL_HTTP_PORT; it reads the ports grpc")
	})
}

func TestPortsAutoPicksAnewWhenAnotherProcessWasFaster(t *testing.T) {
	keepVariables(t, "grpc")
	set := testSettings()
	factories := set.Factories
	var calls atomic.Int32
	var stolen net.Listener
	set.Factories = func() (otelcol.Factories, error) {
		if calls.Add(1) == 3 { // Twice the config is read; now the collector starts, on a port that was released.
			l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("LENSCOL_GRPC_PORT"))
			if err != nil {
				return otelcol.Factories{}, err
			}
			stolen = l
		}
		return factories()
	}
	a := newTestAgent(t, set, variablesConfig)
	a.ports.auto = true
	a.start()
	defer stolen.Close()
	require.NotContains(t, a.stderr.String(), stolen.Addr().String())
	require.Contains(t, a.stderr.String(), "127.0.0.1:"+os.Getenv("LENSCOL_GRPC_PORT"))
}

// The configs want an IPv6 address in brackets, as in [::1]:4317; what puts a port behind it does not.
func TestHostIsIPv6(t *testing.T) {
	for host, want := range map[string]string{"": "127.0.0.1", "[::1]": "::1", "::1": "::1", "node7": "node7"} {
		t.Setenv("LENSCOL_HOST", host)
		require.Equal(t, want, listenHost())
	}
	t.Setenv("LENSCOL_HOST", "[::1]")
	t.Setenv("LENSCOL_HTTP_PORT", "14318")
	require.Equal(t, "http://[::1]:14318", demoEndpoint())
}

func TestPortFileIsAFolder(t *testing.T) {
	folder := t.TempDir()
	a := newTestAgent(t, testSettings(), variablesConfig)
	a.portFile = folder
	require.EqualError(t, a.run(t.Context()), "--port-file "+folder+": is a folder, it must be a file to write")
	require.DirExists(t, folder)
}

func TestPortFile(t *testing.T) {
	keepVariables(t, "grpc")
	file := filepath.Join(t.TempDir(), "ports.env")
	require.NoError(t, os.WriteFile(file, []byte("export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 # of a lenscol that was killed\n"), 0o600))

	a := newTestAgent(t, testSettings(), variablesConfig)
	a.ports.auto, a.portFile = true, file
	ctx, stop := context.WithCancel(t.Context())
	go func() { a.done <- a.run(ctx) }()
	a.waitFor("OTLP on", 1)
	port := os.Getenv("LENSCOL_GRPC_PORT")
	want := "export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:" + port + "\nexport OTEL_EXPORTER_OTLP_PROTOCOL=grpc\nexport LENSCOL_GRPC_PORT=" + port + "\n"
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		return err == nil && string(text) == want
	}, waitLimit, pollEvery)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm())

	stop()
	require.NoError(t, <-a.done)
	require.NoFileExists(t, file)
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestPortFileOfAnotherProcessStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.env")
	a := newTestAgent(t, testSettings(), "yaml:"+httpConfig(freePort(t)))
	a.portFile = file
	ctx, stop := context.WithCancel(t.Context())
	go func() { a.done <- a.run(ctx) }()
	require.Eventually(t, func() bool {
		_, err := os.Stat(file)
		return err == nil
	}, waitLimit, pollEvery)
	require.NoError(t, os.WriteFile(file, []byte("another's"), 0o600))
	stop()
	require.NoError(t, <-a.done)
	require.FileExists(t, file)
}

func TestPortFileThatCannotBeWrittenStopsTheStart(t *testing.T) {
	a := newTestAgent(t, testSettings(), "yaml:"+httpConfig(freePort(t)))
	a.portFile = filepath.Join(t.TempDir(), "missing", "ports.env")
	require.ErrorContains(t, a.run(t.Context()), "--port-file "+a.portFile)
}

func TestPortFileThatCannotFollowAReloadEndsNothing(t *testing.T) {
	dir := t.TempDir()
	file, port := filepath.Join(dir, "config.yaml"), freePort(t)
	writeConfig(t, file, httpConfig(port))
	a := newTestAgent(t, testSettings(), file)
	a.portFile = filepath.Join(dir, "ports.env")
	a.start()
	writeConfig(t, file, strings.Replace(httpConfig(1), `"127.0.0.1:1"`, filepath.Join(dir, "otlp.sock")+", transport: unix", 1))
	a.reload()
	a.waitFor("reload: --port-file "+a.portFile+": the config has no otlp receiver with a TCP port in a pipeline", 1)
	writeConfig(t, file, httpConfig(port))
	a.reload()
	a.waitFor(fmt.Sprintf("OTLP on 127.0.0.1:%d", port), 2)
	requireServes(t, port)
}

func TestPortFileText(t *testing.T) {
	config := func(receivers string) string {
		return "yaml:\nreceivers: {" + receivers + "}\nexporters: {nop: {}}\n" +
			"service: {telemetry: {metrics: {level: none}}, pipelines: {traces: {receivers: [otlp], exporters: [nop]}}}"
	}
	for _, tt := range []struct{ name, receivers, want, err string }{
		{
			"gRPC goes first", `otlp: {protocols: {http: {endpoint: "127.0.0.1:2"}, grpc: {endpoint: "127.0.0.1:1"}}}`,
			"export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1\nexport OTEL_EXPORTER_OTLP_PROTOCOL=grpc\n", "",
		},
		{
			"HTTP alone", `otlp: {protocols: {http: {endpoint: "127.0.0.1:2"}}}`,
			"export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:2\nexport OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n", "",
		},
		{
			"every address", `otlp: {protocols: {grpc: {endpoint: "0.0.0.0:1"}}}`,
			"export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1\nexport OTEL_EXPORTER_OTLP_PROTOCOL=grpc\n", "",
		},
		{
			"IPv6 is quoted", `otlp: {protocols: {grpc: {endpoint: "[::1]:1"}}}`,
			"export OTEL_EXPORTER_OTLP_ENDPOINT='http://[::1]:1'\nexport OTEL_EXPORTER_OTLP_PROTOCOL=grpc\n", "",
		},
		{
			"TLS", `otlp: {protocols: {grpc: {endpoint: "127.0.0.1:1", tls: {cert_file: c, key_file: k}}}}`,
			"export OTEL_EXPORTER_OTLP_ENDPOINT=https://127.0.0.1:1\nexport OTEL_EXPORTER_OTLP_PROTOCOL=grpc\n", "",
		},
		{"unix socket", `otlp: {protocols: {grpc: {endpoint: /tmp/otlp.sock, transport: unix}}}`, "", "no otlp receiver with a TCP port"},
		{"a port that the kernel picks", `otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}}}`, "", "no otlp receiver with a TCP port"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := portFileText(readTestSnapshot(t, config(tt.receivers)))
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, text)
		})
	}
}

func TestPortsFixed(t *testing.T) {
	keepVariables(t, "grpc")
	port := freePort(t)
	a := newTestAgent(t, testSettings(), variablesConfig)
	require.NoError(t, a.ports.Set("grpc="+strconv.Itoa(port)))
	a.start()
	require.Contains(t, a.stderr.String(), fmt.Sprintf("OTLP on 127.0.0.1:%d (gRPC)", port))
}

func TestPortsFixedInUseIsNotRetried(t *testing.T) {
	keepVariables(t, "grpc")
	a := newTestAgent(t, testSettings(), variablesConfig)
	require.NoError(t, a.ports.Set("grpc="+strconv.Itoa(occupy(t))))
	require.ErrorIs(t, a.run(t.Context()), syscall.EADDRINUSE)
}
