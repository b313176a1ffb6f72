// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package advice says what of a valid config loses telemetry, pays for it twice, or takes it from anybody.
package advice // import "github.com/lenscol/lenscol/internal/advice"

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// Of returns a line for everything that the effective config allows and nobody wants, with the key and the remedy, in the order of
// the pipelines. Secrets may be redacted in it.
func Of(effective *confmap.Conf) (lines []string) {
	c := config{effective.ToStringMap()}
	for _, kind := range []string{"receivers", "processors", "exporters", "connectors", "extensions"} {
		lines = append(lines, nanoseconds(kind, c.root[kind])...)
	}
	pipelines := section(section(c.root, "service"), "pipelines")
	for _, id := range slices.Sorted(maps.Keys(pipelines)) {
		p := pipeline{id: id, signal: kindOf(id)}
		body, _ := pipelines[id].(map[string]any)
		p.receivers, p.processors, p.exporters = list(body, "receivers"), list(body, "processors"), list(body, "exporters")
		for _, receiver := range p.receivers {
			lines = append(lines, c.listener(receiver)...)
		}
		lines = append(lines, c.memoryLimiter(p)...)
		lines = append(lines, c.batch(p)...)
		for _, exporter := range p.exporters {
			lines = append(lines, c.backend(p, exporter)...)
		}
	}
	said := map[string]bool{} // A receiver or an exporter of several pipelines.
	return slices.DeleteFunc(lines, func(line string) bool {
		again := said[line]
		said[line] = true
		return again
	})
}

var inNanoseconds = regexp.MustCompile(`^[1-9][0-9]*ns$`)

// nanoseconds looks for durations that somebody wrote without a unit.
func nanoseconds(key string, value any) (lines []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			lines = append(lines, nanoseconds(key+"."+name, v[name])...)
		}
	case []any:
		for i, item := range v {
			lines = append(lines, nanoseconds(fmt.Sprintf("%s[%d]", key, i), item)...)
		}
	default: // a time.Duration, or a text
		if text := fmt.Sprint(v); inNanoseconds.MatchString(text) {
			lines = append(lines, fmt.Sprintf("%s: is %s: a number without a unit is nanoseconds: write %s for seconds", key, text, strings.TrimSuffix(text, "ns")+"s"))
		}
	}
	return lines
}

type config struct{ root map[string]any }

type pipeline struct {
	id, signal                       string
	receivers, processors, exporters []string
}

// listener looks for OTLP that other machines can send without a token or a certificate.
func (c config) listener(id string) (lines []string) {
	if kindOf(id) != "otlp" {
		return nil
	}
	protocols := section(section(section(c.root, "receivers"), id), "protocols")
	for _, protocol := range []string{"grpc", "http"} {
		server := section(protocols, protocol)
		endpoint, _ := server["endpoint"].(string)
		clients, _ := section(server, "tls")["client_ca_file"].(string)
		if endpoint == "" || server["auth"] != nil || clients != "" || server["transport"] == "unix" || loopback(endpoint) {
			continue
		}
		lines = append(lines, fmt.Sprintf("receivers.%s.protocols.%s: whoever reaches %s can send, for any run: listen on 127.0.0.1, or set auth and tls, as lenscol configs show gateway does", id, protocol, endpoint))
	}
	return lines
}

func loopback(endpoint string) bool {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		host = endpoint // Without a port it does not start, which is another matter.
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func (c config) memoryLimiter(p pipeline) []string {
	at := slices.IndexFunc(p.processors, func(id string) bool { return kindOf(id) == "memory_limiter" })
	fed := slices.ContainsFunc(p.receivers, func(id string) bool { return section(c.root, "connectors")[id] == nil })
	switch {
	case at < 0 && fed && !allOf(p.exporters, "nop", "debug"):
		return []string{fmt.Sprintf("service.pipelines.%s.processors: no memory_limiter: under load the process is killed for its memory, with all that it holds; put one first", p.id)}
	case at > 0:
		return []string{fmt.Sprintf("service.pipelines.%s.processors: memory_limiter is not the first: what stands before it has taken the memory already", p.id)}
	}
	return nil
}

func (c config) batch(p pipeline) []string {
	for _, id := range p.processors {
		if kindOf(id) == "batch" && len(p.exporters) > 1 {
			return []string{fmt.Sprintf("service.pipelines.%s.processors: %s before %d exporters acknowledges what it still holds in memory: take sending_queue.batch of each exporter instead", p.id, id, len(p.exporters))}
		}
	}
	return nil
}

// paid are backends that bill for what they take, by the end of their host name.
var paid = map[string]string{
	"honeycomb.io": "Honeycomb", "wandb.ai": "Weave", "grafana.net": "Grafana Cloud", "datadoghq.com": "Datadog", "datadoghq.eu": "Datadog", "ddog-gov.com": "Datadog",
	"nr-data.net": "New Relic",
}

func (c config) backend(p pipeline, id string) (lines []string) {
	exporter := section(section(c.root, "exporters"), id)
	name := backendOf(kindOf(id), exporter)
	if name == "" {
		return nil
	}
	key := "exporters." + id
	queue := section(exporter, "sending_queue")
	if queue["storage"] == nil {
		lines = append(lines, key+".sending_queue: what waits for "+name+" waits in memory, and a restart loses it: name a storage extension, such as file_storage, as storage")
	}
	switch retry := section(exporter, "retry_on_failure"); {
	case retry["enabled"] == false:
		lines = append(lines, key+".retry_on_failure: a request that "+name+" does not take at once is lost: set enabled")
	case retry["max_elapsed_time"] != nil && fmt.Sprint(retry["max_elapsed_time"]) != "0s": // a time.Duration, or a text
		lines = append(lines, fmt.Sprintf("%s.retry_on_failure: what %s does not take within %v is lost, wherever it waits: max_elapsed_time: 0s tries without an end, and the queue bounds what waits",
			key, name, retry["max_elapsed_time"]))
	}
	if name == "Weave" && p.signal != "traces" {
		lines = append(lines, fmt.Sprintf("service.pipelines.%s.exporters: %s: Weave takes traces alone, it refuses %s", p.id, id, p.signal))
	}
	if name == "Honeycomb" && p.signal == "metrics" && !hasHeader(exporter, "x-honeycomb-dataset") {
		lines = append(lines, key+".headers: metrics go to Honeycomb without x-honeycomb-dataset, and it refuses them")
	}
	return lines
}

// backendOf names a paid backend, "" for any other.
func backendOf(kind string, exporter map[string]any) string {
	switch kind {
	case "weave":
		return "Weave"
	case "otlp_http", "otlphttp", "otlp_grpc", "otlp":
	default:
		return ""
	}
	for _, key := range []string{"endpoint", "traces_endpoint", "metrics_endpoint", "logs_endpoint"} {
		endpoint, _ := exporter[key].(string)
		if !strings.Contains(endpoint, "://") {
			endpoint = "//" + endpoint
		}
		u, err := url.Parse(endpoint)
		if err != nil {
			continue
		}
		for end, name := range paid {
			if host := u.Hostname(); host == end || strings.HasSuffix(host, "."+end) {
				return name
			}
		}
	}
	for header, name := range map[string]string{"x-honeycomb-team": "Honeycomb", "wandb-api-key": "Weave", "dd-api-key": "Datadog"} {
		if hasHeader(exporter, header) {
			return name
		}
	}
	return ""
}

// hasHeader reports whether an exporter sends a header. Effective configs hold a map, or a list of names and values.
func hasHeader(exporter map[string]any, name string) bool {
	switch headers := exporter["headers"].(type) {
	case map[string]any:
		for key := range headers {
			if strings.EqualFold(key, name) {
				return true
			}
		}
	case []any:
		for _, item := range headers {
			if pair, ok := item.(map[string]any); ok && strings.EqualFold(fmt.Sprint(pair["name"]), name) {
				return true
			}
		}
	}
	return false
}

func section(m map[string]any, key string) map[string]any {
	s, _ := m[key].(map[string]any)
	return s
}

func list(m map[string]any, key string) (ids []string) {
	items, _ := m[key].([]any)
	for _, item := range items {
		ids = append(ids, fmt.Sprint(item))
	}
	return ids
}

func kindOf(id string) string {
	kind, _, _ := strings.Cut(id, "/")
	return kind
}

func allOf(ids []string, kinds ...string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(kinds, kindOf(id)) })
}
