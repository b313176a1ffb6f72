// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"strings"
)

// row is a pair: what lenscol does, and what somebody without it would have a stock collector do instead.
type row struct {
	work        string
	traffic     func() traffic
	ours, stock setup
	archive     bool           // spans are written to a file named traces.*
	copies      int            // of each span that reach the sink
	kept        func(int) bool // whether the spans of request n are; nil: all
	targets     map[metric]float64
}

// setup is the part of a config that differs.
type setup struct {
	middleware string // of the receiver
	extensions []part
	processors []part // behind memory_limiter
	exporters  []part
}

type part struct{ name, settings string }

// DIR is the collector's folder, GRPC and HTTP are the sink's addresses.
var (
	jsonl     = part{"jsonl", "{path: DIR/traces.jsonl}"}
	jsonlZstd = part{"jsonl", "{path: DIR/traces.jsonl, compression: zstd}"}
	file      = part{"file", "{path: DIR/traces.json}"}
	fileZstd  = part{"file", "{path: DIR/traces.json, compression: zstd}"}
	nop       = part{"nop", "{}"}
	gate      = part{"rank_gate", "{strategy: single_rank}"} // the last rank
	jaeger    = part{"otlp_grpc/jaeger", otlpSettings}
	tempo     = part{"otlp_grpc/tempo", otlpSettings}
)

// otlpSettings differ from the defaults by a queue that has senders wait, where the default refuses them.
const otlpSettings = "{endpoint: GRPC, tls: {insecure: true}, sending_queue: {block_on_overflow: true}, compression: none}"

// filter keeps the last rank, as NeMo Lens's documentation has it done.
func filter(world int) part {
	return part{"filter", fmt.Sprintf(`{error_mode: ignore, traces: {resource: ['attributes["dl.rank"] != %d']}}`, world-1)}
}

func lastRank(world int) func(int) bool { return func(n int) bool { return n%world == world-1 } }

// enriched are ten attributes of a job, as fixed values of either.
var enriched = [][2]string{
	{"deployment.environment.name", "production"}, {"cluster", "selene"}, {"team", "nemo"}, {"cost.center", "4711"}, {"experiment", "llama-70b"},
	{"wandb.entity", "acme"}, {"wandb.project", "llm"}, {"wandb.run.id", "3f2a9c1d"}, {"slurm.job.user", "alice"}, {"slurm.job.account", "research"},
}

func enricher() part {
	var list []string
	for _, kv := range enriched {
		list = append(list, fmt.Sprintf("%s: %q", kv[0], kv[1]))
	}
	return part{"run_id_enricher", "{mode: gateway, attributes: {" + strings.Join(list, ", ") + "}}"}
}

func inserts(attributes [][2]string) part {
	var list []string
	for _, kv := range attributes {
		list = append(list, fmt.Sprintf("{key: %s, value: %q, action: insert}", kv[0], kv[1]))
	}
	return part{"resource", "{attributes: [" + strings.Join(list, ", ") + "]}"}
}

func ranks(n int, t func(int) traffic) func() traffic { return func() traffic { return t(n) } }

var rows = []row{
	{
		work: "archive-plain", traffic: ranks(1000, job), archive: true,
		ours:    setup{exporters: []part{jsonl}},
		stock:   setup{exporters: []part{file}},
		targets: map[metric]float64{cpuPerMillion: 0.50},
	},
	{
		work: "archive-zstd", traffic: ranks(1000, job), archive: true,
		ours:    setup{exporters: []part{jsonlZstd}},
		stock:   setup{exporters: []part{fileZstd}},
		targets: map[metric]float64{cpuPerMillion: 0.65, bytesPerSpan: 1},
	},
	{
		work: "gate-1of8-archive", traffic: ranks(8, megatron), archive: true, kept: lastRank(8),
		ours:    setup{middleware: gate.name, extensions: []part{gate}, exporters: []part{jsonl}},
		stock:   setup{processors: []part{filter(8)}, exporters: []part{file}},
		targets: map[metric]float64{cpuPerMillion: 0.30},
	},
	{
		work: "gate-1of1000-nop", traffic: ranks(1000, megatron), kept: lastRank(1000),
		ours:    setup{middleware: gate.name, extensions: []part{gate}, exporters: []part{nop}},
		stock:   setup{processors: []part{filter(1000)}, exporters: []part{nop}},
		targets: map[metric]float64{cpuPerMillion: 0.22},
	},
	{
		work: "enrich-nop", traffic: ranks(1000, job),
		ours:    setup{processors: []part{enricher()}, exporters: []part{nop}},
		stock:   setup{processors: []part{inserts(enriched)}, exporters: []part{nop}},
		targets: map[metric]float64{cpuPerMillion: 1},
	},
	{
		work: "weave-gzip", traffic: ranks(1000, job), copies: 1,
		ours: setup{exporters: []part{{"weave", "{api_key: " + wandbKey + ", entity: acme, project: llm, base_url: \"http://HTTP\"}"}}},
		stock: setup{
			processors: []part{inserts([][2]string{{"wandb.entity", "acme"}, {"wandb.project", "llm"}})},
			exporters: []part{{"otlp_http/weave", "{traces_endpoint: \"http://HTTP/otel/v1/traces\", headers: {wandb-api-key: " + wandbKey +
				"}, compression: gzip, sending_queue: {block_on_overflow: true}}"}},
		},
		targets: map[metric]float64{cpuPerMillion: 1.30},
	},
	{
		work: "fanout", traffic: ranks(1000, job), archive: true, copies: 2,
		ours:    setup{exporters: []part{jsonl, jaeger, tempo}},
		stock:   setup{exporters: []part{file, jaeger, tempo}},
		targets: map[metric]float64{cpuPerMillion: 0.75},
	},
}

const wandbKey = `"0000000000000000000000000000000000000000"`

// start is what both binaries are started with where only that is measured.
var start = setup{exporters: []part{nop}}

// config is the whole of a setup's config, for a collector that sends to a sink.
func (s setup) config(c *collector, to *sink) string {
	names := func(parts []part, first ...string) string {
		for _, p := range parts {
			first = append(first, p.name)
		}
		return strings.Join(first, ", ")
	}
	section := func(parts []part) (text string) {
		for _, p := range parts {
			text += "  " + p.name + ": " + p.settings + "\n"
		}
		return text
	}
	middlewares := ""
	if s.middleware != "" {
		middlewares = ", middlewares: [{id: " + s.middleware + "}]"
	}
	text := `
receivers: {otlp: {protocols: {grpc: {endpoint: "` + c.endpoint + `", max_recv_msg_size_mib: 8` + middlewares + `}}}}
processors:
  memory_limiter: {check_interval: 1s, limit_percentage: 25, spike_limit_percentage: 5}
` + section(s.processors) + `
exporters:
` + section(s.exporters) + `
extensions:
` + section(s.extensions) + `
service:
  extensions: [` + names(s.extensions) + `]
  telemetry:
    logs: {level: warn}
    metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: ` + port(c.metrics) + `}}}}]}
  pipelines: {traces: {receivers: [otlp], processors: [` + names(s.processors, "memory_limiter") + `], exporters: [` + names(s.exporters) + `]}}
`
	replace := []string{"DIR", c.dir}
	if to != nil {
		replace = append(replace, "GRPC", to.grpc, "HTTP", to.http)
	}
	return strings.NewReplacer(replace...).Replace(text)
}
