// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lenscol/lenscol/extension/lenshealth"
	"github.com/lenscol/lenscol/internal/portfile"
)

// portsFlag is the value of --ports: `auto`, `NAME=PORT`, or several of them, comma between.
type portsFlag struct {
	auto  bool           // a free port for every name that is not in fixed
	fixed map[string]int // by name: grpc, http, metrics
}

var _ pflag.Value = (*portsFlag)(nil)

func (p *portsFlag) given() bool { return p.auto || len(p.fixed) > 0 }

// Set takes one value of the flag. A name is checked later, against the variables that the config reads.
func (p *portsFlag) Set(value string) error {
	for item := range strings.SplitSeq(value, ",") {
		if item == "auto" {
			p.auto = true
			continue
		}
		name, number, _ := strings.Cut(item, "=")
		port, err := strconv.Atoi(number)
		if err != nil || port < 1 || port > 65535 {
			return fmt.Errorf("%q is neither auto nor NAME=PORT with a port from 1 to 65535, as in grpc=14317", item)
		}
		if p.fixed == nil {
			p.fixed = map[string]int{}
		}
		p.fixed[name] = port
	}
	return nil
}

func (p *portsFlag) String() string {
	var items []string
	if p.auto {
		items = append(items, "auto")
	}
	for _, name := range sortedKeys(p.fixed) {
		items = append(items, fmt.Sprintf("%s=%d", name, p.fixed[name]))
	}
	return strings.Join(items, ",")
}

func (*portsFlag) Type() string { return "ports" }

// export sets the variable LENSCOL_<NAME>_PORT of every name that the flag gives a port, read being the names whose variables the
// config reads. Free ports stay occupied until release is called, so that two agents that start together never pick the same.
func (p *portsFlag) export(read map[string]int) (release func(), err error) {
	known := sortedKeys(read)
	if len(known) == 0 {
		return nil, errors.New("--ports: this config reads no variable LENSCOL_<NAME>_PORT, so its ports cannot be moved this way; " +
			"write its listeners as ${env:LENSCOL_HOST:-127.0.0.1}:${env:LENSCOL_GRPC_PORT:-4317}, as `lenscol configs show archive` has them")
	}
	for _, name := range sortedKeys(p.fixed) {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--ports %s=%d: this config does not read %s; it reads the ports %s",
				name, p.fixed[name], portVariable(name), strings.Join(known, ", "))
		}
	}
	ports := maps.Clone(p.fixed)
	if ports == nil {
		ports = map[string]int{}
	}
	var held []net.Listener
	release = func() {
		for _, l := range held {
			_ = l.Close()
		}
	}
	for _, name := range known {
		if _, fixed := ports[name]; fixed || !p.auto {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(listenHost(), "0"))
		if err != nil {
			release()
			return nil, fmt.Errorf("--ports auto: find a free port for %s: %w", name, err)
		}
		held = append(held, l)
		ports[name] = l.Addr().(*net.TCPAddr).Port
	}
	for name, port := range ports {
		if err := os.Setenv(portVariable(name), strconv.Itoa(port)); err != nil {
			release()
			return nil, fmt.Errorf("set %s: %w", portVariable(name), err)
		}
	}
	return release, nil
}

// listenHost is the address that the embedded configs bind. They need an IPv6 address in brackets; here it is without.
func listenHost() string {
	host := cmp.Or(os.Getenv("LENSCOL_HOST"), "127.0.0.1")
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// portFileText is what a job script sources to send its telemetry here: shell exports, quoted where needed.
func portFileText(snap *snapshot) (string, error) {
	var otlp *listener
	for _, l := range otlpListeners(snap.effective) {
		if l.port() != "" && (otlp == nil || otlp.protocol != "grpc" && l.protocol == "grpc") {
			otlp = &l
		}
	}
	if otlp == nil {
		return "", errors.New("the config has no otlp receiver with a TCP port in a pipeline")
	}
	protocol := map[string]string{"grpc": "grpc", "http": "http/protobuf"}[otlp.protocol]
	text := portfile.Export("OTEL_EXPORTER_OTLP_ENDPOINT", otlp.url()) + portfile.Export("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
	ports := snap.ports()
	if served := lenshealth.Serving(); len(served) > 0 {
		text += portfile.Export(healthVariable, served[0])
		if u, err := url.Parse(served[0]); err == nil && u.Port() != "" {
			ports["health"], _ = strconv.Atoi(u.Port()) // It is another than the config's where that was in use.
		}
	}
	for _, name := range sortedKeys(ports) {
		text += portfile.Export(portVariable(name), ports[name])
	}
	return text, nil
}

// writePortFile writes --port-file, where it was given, for the collector that listens now. A script that waits for the file never sees half of it:
// it is written beside its place and renamed.
func (a *agent) writePortFile(snap *snapshot) error {
	if a.portFile == "" {
		return nil
	}
	text, err := portFileText(snap)
	if err == nil {
		err = portfile.Write(a.portFile, text)
	}
	if err != nil {
		return fmt.Errorf("--port-file %s: %w", a.portFile, err)
	}
	a.portFileWritten = text
	return nil
}

// removeStalePortFile removes what an earlier lenscol left when it was killed: a script that waits for the file must not read ports
// that nobody listens on.
func (a *agent) removeStalePortFile() error {
	if a.portFile == "" {
		return nil
	}
	if info, err := os.Lstat(a.portFile); err == nil && info.IsDir() {
		return fmt.Errorf("--port-file %s: is a folder, it must be a file to write", a.portFile)
	}
	if err := os.Remove(a.portFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--port-file %s: %w", a.portFile, err)
	}
	return nil
}

// removePortFile removes the file at exit, unless another process has written its own there since.
func (a *agent) removePortFile() {
	portfile.RemoveIf(a.portFile, a.portFileWritten)
}
