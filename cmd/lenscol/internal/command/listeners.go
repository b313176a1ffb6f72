// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
)

// startLine says in one line where the collector listens and where it writes, as the effective config has it: every
// otlp receiver and every jsonl exporter in a pipeline. implicit adds which config that is, for those who gave none.
func startLine(info component.BuildInfo, effective *confmap.Conf, implicit bool) string {
	var addresses []string
	for _, l := range otlpListeners(effective) {
		addresses = append(addresses, fmt.Sprintf("%s (%s)", l.endpoint, map[string]string{"grpc": "gRPC", "http": "HTTP"}[l.protocol]))
	}
	parts := []string{"no OTLP receiver"}
	if len(addresses) > 0 {
		parts[0] = "OTLP on " + enumerate(addresses)
	}
	if files := jsonlFiles(effective); len(files) > 0 {
		parts = append(parts, "writing "+enumerate(files))
	}
	if implicit {
		name := strings.TrimPrefix(defaultURI, "lenscol:")
		parts = append(parts, fmt.Sprintf("config %s (lenscol configs show %s)", defaultURI, name))
	}
	return fmt.Sprintf("%s %s: %s", info.Command, info.Version, strings.Join(parts, "; "))
}

// enumerate joins as English does: a, b and c.
func enumerate(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " and " + items[last]
}

// listener is an address that a receiver binds.
type listener struct {
	endpoint string // host:port, or the path of a unix socket
	protocol string // grpc, http
	tls      bool
}

// port is empty for a unix socket, and for a port that the kernel picks.
func (l listener) port() string {
	_, port, err := net.SplitHostPort(l.endpoint)
	if err != nil || port == "0" {
		return ""
	}
	return port
}

// url is where a sender on this host reaches the listener.
func (l listener) url() string {
	host, port, _ := net.SplitHostPort(l.endpoint)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if l.tls {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// otlpListeners returns the listeners of all otlp receivers in pipelines, gRPC before HTTP.
func otlpListeners(effective *confmap.Conf) []listener {
	var listeners []listener
	for _, id := range inPipelines(effective, "receivers", "otlp") {
		for _, protocol := range []string{"grpc", "http"} {
			key := "receivers::" + id + "::protocols::" + protocol
			endpoint, ok := effective.Get(key + "::endpoint").(string)
			if !ok {
				continue
			}
			listeners = append(listeners, listener{endpoint: endpoint, protocol: protocol, tls: effective.Get(key+"::tls") != nil})
		}
	}
	return listeners
}

// jsonlFiles returns the paths that the jsonl exporters write, as the config spells them, with the signals in braces: lens-data/{traces,logs}.jsonl.
func jsonlFiles(effective *confmap.Conf) []string {
	var files []string
	for _, id := range inPipelines(effective, "exporters", "jsonl") {
		path, ok := effective.Get("exporters::" + id + "::path").(string)
		if !ok {
			continue
		}
		signals := strings.Join(signalsOf(effective, id), ",")
		if strings.Contains(signals, ",") {
			signals = "{" + signals + "}"
		}
		files = append(files, strings.ReplaceAll(path, "{signal}", signals))
	}
	return files
}

// inPipelines returns the ids of the components of a type that stand in a pipeline, sorted. kind is receivers or exporters.
func inPipelines(effective *confmap.Conf, kind, componentType string) []string {
	var ids []string
	for _, members := range pipelineMembers(effective, kind) {
		for _, id := range members {
			if name, _, _ := strings.Cut(id, "/"); name == componentType && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// signalsOf returns the signals of the pipelines that an exporter stands in: traces, metrics, logs, in this order.
func signalsOf(effective *confmap.Conf, exporter string) []string {
	var signals []string
	members := pipelineMembers(effective, "exporters")
	for _, signal := range []string{"traces", "metrics", "logs", "profiles"} {
		for pipeline, ids := range members {
			if name, _, _ := strings.Cut(pipeline, "/"); name == signal && slices.Contains(ids, exporter) {
				signals = append(signals, signal)
				break
			}
		}
	}
	return signals
}

// pipelineMembers returns the ids of the receivers or exporters of every pipeline, by the pipeline's id.
func pipelineMembers(effective *confmap.Conf, kind string) map[string][]string {
	pipelines, _ := effective.Get("service::pipelines").(map[string]any)
	members := make(map[string][]string, len(pipelines))
	for id, pipeline := range pipelines {
		section, _ := pipeline.(map[string]any)
		list, _ := section[kind].([]any)
		for _, member := range list {
			members[id] = append(members[id], fmt.Sprint(member))
		}
	}
	return members
}

// explain says of an address in use which key of the config has it and what moves it. Other errors pass.
func (s *snapshot) explain(err error) error {
	var bind *net.OpError
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &bind) || bind.Addr == nil {
		return err
	}
	host, port, splitErr := net.SplitHostPort(bind.Addr.String())
	if splitErr != nil {
		return err // A unix socket: the error has its path.
	}
	number, _ := strconv.Atoi(port)
	other := number + 10000
	if other > 65535 {
		other = number - 10000
	}

	where, remedy := "", "choose another port for it in the config"
	if key := keyOfPort(s.effective, host, port); key != "" {
		where = " (" + key + ")"
		switch {
		case strings.Contains(key, "["):
			remedy = "choose another port there in the config; --set cannot reach into a list"
		case strings.HasSuffix(key, ".port"):
			remedy = fmt.Sprintf("start this one with --set %s=%d", key, other)
		default:
			remedy = fmt.Sprintf("start this one with --set %s=%s", key, net.JoinHostPort(host, strconv.Itoa(other)))
		}
		if strings.HasPrefix(key, "service.telemetry.") {
			remedy += ", or go without the collector's own metrics with --set service.telemetry.metrics.level=none"
		}
	}
	ports := s.ports()
	for _, name := range sortedKeys(ports) {
		if ports[name] == number {
			remedy = fmt.Sprintf("start this one with --ports %s=%d, or --ports auto", name, other)
		}
	}
	return fmt.Errorf("port %s on %s%s is in use, perhaps by another collector: %s: %w", port, host, where, remedy, err)
}

// keyOfPort finds the key whose value binds host:port, in --set's spelling: receivers.otlp.protocols.grpc.endpoint. It is empty
// when there is none.
func keyOfPort(effective *confmap.Conf, host, port string) string {
	// Where listeners stand, likeliest first: an exporter's endpoint is mostly somebody else's listener.
	for _, section := range []string{"receivers", "service::telemetry", "extensions", "connectors", "processors", "exporters"} {
		for _, exact := range []bool{true, false} {
			if key := searchPort(effective.Get(section), strings.ReplaceAll(section, "::", "."), host, port, exact); key != "" {
				return key
			}
		}
	}
	return ""
}

// searchPort walks a section for a value host:port, or for a number port. Without exact a name that may stand for
// the host will do: the config says localhost, the error 127.0.0.1.
func searchPort(value any, key, host, port string, exact bool) string {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			if found := searchPort(v[name], key+"."+name, host, port, exact); found != "" {
				return found
			}
		}
	case []any:
		for i, item := range v {
			if found := searchPort(item, fmt.Sprintf("%s[%d]", key, i), host, port, exact); found != "" {
				return found
			}
		}
	case string:
		h, p, err := net.SplitHostPort(v)
		if err == nil && p == port && (h == host || !exact) {
			return key
		}
	default:
		if strings.HasSuffix(key, ".port") && fmt.Sprint(v) == port {
			return key
		}
	}
	return ""
}
