// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package configs_test

import (
	"fmt"
	"net"
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

// variables are those that an embedded config may read, for the list in docs/cli.md to be whole.
var variables = []string{"LENSCOL_HOST", "LENSCOL_GRPC_PORT", "LENSCOL_HTTP_PORT", "LENSCOL_METRICS_PORT", "LENSCOL_HEALTH_PORT", "LENSCOL_PROMETHEUS_PORT", "LENSCOL_DATA_DIR"}

var variable = regexp.MustCompile(`\$\{env:([A-Z_]+):-([^}]*)\}`)

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
			requireLoopback(t, "extensions", conf.Get("extensions"))
			requireLoopback(t, "service", conf.Get("service"))
			requireMemoryLimiterFirst(t, conf)

			head, _, _ := strings.Cut(string(text), "\n\n")
			for _, match := range variable.FindAllStringSubmatch(string(text), -1) {
				require.Contains(t, variables, match[1])
				require.Regexp(t, match[1]+` +`+regexp.QuoteMeta(match[2])+` `, head, "the head comment lists the variable with its default")
			}
			require.Equal(t, strings.Count(string(text), "${"), len(variable.FindAllString(string(text), -1)), "every variable has a default")
		})
	}
}

func TestVariablesMoveEveryListener(t *testing.T) {
	t.Setenv("LENSCOL_HOST", "127.0.0.2")
	t.Setenv("LENSCOL_GRPC_PORT", "14317")
	t.Setenv("LENSCOL_HTTP_PORT", "14318")
	t.Setenv("LENSCOL_METRICS_PORT", "18888")
	t.Setenv("LENSCOL_HEALTH_PORT", "23133")
	t.Setenv("LENSCOL_PROMETHEUS_PORT", "18889")
	t.Setenv("LENSCOL_DATA_DIR", "/elsewhere")
	for _, name := range configs.Names() {
		t.Run(name, func(t *testing.T) {
			conf := resolve(t, name).ToStringMap()
			health := conf["extensions"].(map[string]any)["lens_health"].(map[string]any)
			require.Equal(t, "127.0.0.1:23133", health["endpoint"], "health stays on loopback, for it has no token")
			delete(health, "endpoint")
			all := fmt.Sprint(conf)
			for _, fixed := range []string{"127.0.0.1", ":4317", ":13133", ":4318", "port:8888", ":8889", "lens-data"} {
				require.NotContains(t, all, fixed)
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
			"http": {"endpoint", "max_request_body_size", "read_header_timeout", "write_timeout", "idle_timeout"},
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
