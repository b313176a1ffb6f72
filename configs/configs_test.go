// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package configs_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"

	"github.com/lenscol/lenscol/configs"
	"github.com/lenscol/lenscol/confmap/lenscolprovider"
)

// An expansion of a variable, with its default or without one, or of a part.
var (
	variable = regexp.MustCompile(`\$\{env:([A-Z_]+)(?:(:-)([^}]*))?\}`)
	part     = regexp.MustCompile(`\$\{lenscol:(parts/[a-z_-]+)\}`)
)

// whole is the text of a config and of all parts that it names.
func whole(t *testing.T, name string) string {
	text, err := configs.Read(name)
	require.NoError(t, err)
	all := string(text)
	for _, match := range part.FindAllStringSubmatch(all, -1) {
		all += whole(t, match[1])
	}
	return all
}

func TestNames(t *testing.T) {
	require.Contains(t, configs.Names(), configs.Default)
	require.True(t, slices.IsSorted(configs.Names()))
}

func TestReadUnknown(t *testing.T) {
	_, err := configs.Read("nothing")
	require.EqualError(t, err, fmt.Sprintf("no embedded config %q, there are: %s", "nothing", strings.Join(configs.Names(), ", ")))
}

func TestSummary(t *testing.T) {
	require.Equal(t, "what it is for", configs.Summary([]byte("# what it is for\n# more\nreceivers:\n")))
	require.Empty(t, configs.Summary(nil))
}

// Every embedded config keeps the rules of the house, as it stands and with its variables set.
func TestEveryConfig(t *testing.T) {
	for _, name := range configs.Names() {
		t.Run(name, func(t *testing.T) {
			text, err := configs.Read(name)
			require.NoError(t, err)
			require.NotEmpty(t, configs.Summary(text))
			require.NotContains(t, string(text), "\t")

			conf := resolve(t, name)
			requireReceiveLimits(t, conf)
			requireLoopback(t, "receivers", conf.Get("receivers"))
			requireLoopback(t, "exporters.prometheus", conf.Get("exporters::prometheus"))
			requireLoopback(t, "extensions", conf.Get("extensions"))
			requireLoopback(t, "service", conf.Get("service"))
			requireMemoryLimiterFirst(t, conf)

			head, _, _ := strings.Cut(string(text), "\n\n")
			all := whole(t, name)
			for _, match := range variable.FindAllStringSubmatch(all, -1) {
				if match[2] == "" { // a secret, or an address that nobody can guess
					require.Contains(t, head, "#   "+match[1]+" ")
					continue
				}
				require.Regexp(t, match[1]+` +`+regexp.QuoteMeta(match[3])+` `, head, "the head comment lists the variable with its default")
				if strings.HasPrefix(match[1], "LENSCOL_") {
					require.Contains(t, page(t), "`"+match[1]+"`", "docs/cli.md lists the variable")
				}
			}
			require.Equal(t, strings.Count(all, "${"), len(variable.FindAllString(all, -1))+len(part.FindAllString(all, -1)))
		})
	}
}

func page(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join("..", "docs", "cli.md"))
	require.NoError(t, err)
	return string(text)
}

// Every part is a part of something, and has a word about it.
func TestEveryPart(t *testing.T) {
	used := ""
	for _, name := range configs.Names() {
		used += whole(t, name)
	}
	files, err := filepath.Glob("parts/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.ToSlash(file), ".yaml")
		require.Contains(t, used, "${lenscol:"+name+"}")
		require.NotContains(t, configs.Names(), name)
		text, err := configs.Read(name)
		require.NoError(t, err)
		require.NotEmpty(t, configs.Summary(text))
	}
}

// What waits for a backend is bounded, in bytes, and senders wait with it; what waits on disk survives a power cut, and is sent however
// long that takes.
func TestEveryQueue(t *testing.T) {
	for _, name := range configs.Names() {
		t.Run(name, func(t *testing.T) {
			conf := resolve(t, name)
			for id, section := range conf.ToStringMap()["exporters"].(map[string]any) {
				exporter, _ := section.(map[string]any)
				kind, _, _ := strings.Cut(id, "/")
				if kind == "prometheus_remote_write" { // Its queue counts requests, and refuses where it is full.
					require.Greater(t, exporter["remote_write_queue"].(map[string]any)["queue_size"], 1_000_000, "memory_limiter refuses before it")
					require.Equal(t, "0s", exporter["retry_on_failure"].(map[string]any)["max_elapsed_time"])
				}
				queue, ok := exporter["sending_queue"].(map[string]any)
				if !ok || queue["enabled"] == false {
					continue
				}
				require.Equal(t, true, queue["block_on_overflow"], id)
				if kind != "weave" { // It has these as its defaults.
					require.Equal(t, "bytes", queue["sizer"], id)
					require.NotZero(t, queue["queue_size"], id)
					retry, _ := exporter["retry_on_failure"].(map[string]any)
					require.Equal(t, true, retry["enabled"], id)
					require.Equal(t, "0s", retry["max_elapsed_time"], id)
				}
				if kind != "weave" && kind != "jsonl" { // A batch of jsonl is a write.
					batch := queue["batch"].(map[string]any)
					if name == "daemonset" { // To another lenscol.
						requireUnsplit(t, batch)
					} else {
						require.Equal(t, "bytes", batch["sizer"], "%s: as spans of prompts a batch would be larger than what a backend takes, and lost", id)
						require.Less(t, batch["max_size"], 4<<20, id) // What gRPC servers take by default.
						require.Less(t, batch["min_size"], batch["max_size"], id)
					}
				}
				if queue["storage"] == nil {
					continue
				}
				require.Equal(t, "file_storage", queue["storage"], id)
				require.Contains(t, conf.Get("service::extensions"), "file_storage")
				storage := conf.ToStringMap()["extensions"].(map[string]any)["file_storage"].(map[string]any)
				require.Equal(t, true, storage["fsync"])
				require.Equal(t, true, storage["recreate"])
				if size := queue["queue_size"]; size != nil {
					require.Greater(t, storage["max_size"], size)
				}
			}
		})
	}
}

// A batch to another lenscol is hardly larger than a request that was taken here, whatever its spans hold: the other takes as much. None is split.
func requireUnsplit(t *testing.T, batch map[string]any) {
	require.Equal(t, "bytes", batch["sizer"])
	require.Less(t, batch["min_size"], 1<<20)
	require.Nil(t, batch["max_size"])
}

// Between tiers all is compressed with zstd, and Prometheus gets rank, run and host as labels.
func TestEveryTierAndLabel(t *testing.T) {
	for _, name := range configs.Names() {
		t.Run(name, func(t *testing.T) {
			conf := resolve(t, name)
			for id, section := range conf.ToStringMap()["exporters"].(map[string]any) {
				exporter, _ := section.(map[string]any)
				switch kind, _, _ := strings.Cut(id, "/"); {
				case id == "otlp_grpc/refinery": // Not ours, and it knows gzip.
				case kind == "otlp_grpc":
					require.Equal(t, "zstd", exporter["compression"], id)
				case kind == "load_balancing":
					require.Equal(t, "zstd", conf.Get("exporters::"+id+"::protocol::otlp::compression"))
					requireUnsplit(t, conf.Get("exporters::"+id+"::protocol::otlp::sending_queue::batch").(map[string]any))
				case kind == "kafka":
					require.Equal(t, "zstd", conf.Get("exporters::"+id+"::producer::compression"))
				case strings.HasPrefix(kind, "prometheus"):
					for pipeline, section := range conf.Get("service::pipelines").(map[string]any) {
						p := section.(map[string]any)
						if slices.Contains(p["exporters"].([]any), any(id)) {
							require.Contains(t, p["processors"], "transform/labels", pipeline)
							require.Equal(t, "unique", conf.Get("processors::run_id_enricher::instance_id"), "N ranks are N series")
						}
					}
				}
			}
		})
	}
}

func TestVariablesMoveEveryListener(t *testing.T) {
	for key, value := range map[string]string{
		"LENSCOL_HOST": "127.0.0.2", "LENSCOL_GRPC_PORT": "24317", "LENSCOL_HTTP_PORT": "24318", "LENSCOL_METRICS_PORT": "28888", "LENSCOL_HEALTH_PORT": "23133",
		"LENSCOL_PROMETHEUS_PORT": "28889", "LENSCOL_PEER_PORT": "24319", "LENSCOL_DATA_DIR": "/elsewhere", "LENSCOL_QUEUE_DIR": "/elsewhere/queue",
	} {
		t.Setenv(key, value)
	}
	for _, name := range configs.Names() {
		t.Run(name, func(t *testing.T) {
			conf := resolve(t, name)
			all := fmt.Sprint(conf.ToStringMap())
			require.Contains(t, all, "lens_health:map[endpoint:127.0.0.1:23133]", "health stays on loopback, for it has no token")
			for _, fixed := range []string{":4317 ", ":4318 ", ":13133", ":8888", ":8889", "lens-data", "lens-queue"} {
				require.NotContains(t, strings.ReplaceAll(all, "lenscol-gateway:4317", ""), fixed)
			}
			for id, section := range conf.ToStringMap()["receivers"].(map[string]any) {
				if kind, _, _ := strings.Cut(id, "/"); kind == "otlp" {
					require.NotContains(t, fmt.Sprint(section), "127.0.0.1")
				}
			}
		})
	}
}

func resolve(t *testing.T, name string) *confmap.Conf {
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"lenscol:" + name},
		ProviderFactories: []confmap.ProviderFactory{lenscolprovider.NewFactory(), envprovider.NewFactory()},
	})
	require.NoError(t, err)
	conf, err := resolver.Resolve(t.Context())
	require.NoError(t, err)
	for range 3 { // Parts of parts: ToStringMap takes the values out of one level of expansion.
		conf = confmap.NewFromStringMap(conf.ToStringMap())
	}
	return conf
}

// requireLoopback walks a section for addresses that are bound: `endpoint`, and `host` of a metrics reader. All are loopback, or have TLS.
func requireLoopback(t *testing.T, key string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			requireLoopback(t, key+"."+name, item)
			if v["tls"] != nil {
				continue
			}
			switch name {
			case "endpoint":
				host, _, err := net.SplitHostPort(fmt.Sprint(item))
				require.NoError(t, err, key)
				require.True(t, net.ParseIP(host).IsLoopback(), "%s.endpoint: %v is not loopback and has no TLS", key, item)
			case "host":
				require.True(t, net.ParseIP(fmt.Sprint(item)).IsLoopback(), "%s.host: %v is not loopback", key, item)
			}
		}
	case []any:
		for _, item := range v {
			requireLoopback(t, key, item)
		}
	}
}

func requireReceiveLimits(t *testing.T, conf *confmap.Conf) {
	receivers, _ := conf.Get("receivers").(map[string]any)
	for id, section := range receivers {
		if kind, _, _ := strings.Cut(id, "/"); kind != "otlp" {
			continue
		}
		protocols := section.(map[string]any)["protocols"].(map[string]any)
		for protocol, keys := range map[string][]string{
			"grpc": {"endpoint", "max_recv_msg_size_mib", "max_concurrent_streams"},
			"http": {"endpoint", "max_request_body_size", "read_header_timeout", "read_timeout", "write_timeout", "idle_timeout"},
		} {
			limits, used := protocols[protocol].(map[string]any)
			if !used {
				continue
			}
			for _, key := range keys {
				require.NotEmpty(t, limits[key], "receivers.%s.protocols.%s.%s", id, protocol, key)
			}
		}
	}
}

func requireMemoryLimiterFirst(t *testing.T, conf *confmap.Conf) {
	pipelines := conf.Get("service::pipelines").(map[string]any)
	require.NotEmpty(t, pipelines)
	for id, section := range pipelines {
		processors, _ := section.(map[string]any)["processors"].([]any)
		require.NotEmpty(t, processors, id)
		require.Equal(t, "memory_limiter", processors[0], id)
		for _, processor := range processors {
			kind, _, _ := strings.Cut(fmt.Sprint(processor), "/")
			require.NotEqual(t, "batch", kind, "%s: batching stands in each exporter's sending_queue", id)
		}
	}
}
