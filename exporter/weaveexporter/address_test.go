// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Requirement 1: whatever form of address is given, exactly one path of traces stands in the end, or validation says the right URL.
func TestRequirement01_AddressHasOnePath(t *testing.T) {
	for _, tt := range []struct{ name, base, host, want string }{
		{"cloud", "https://trace.wandb.ai", "", "https://trace.wandb.ai"},
		{"cloud with a slash", "https://trace.wandb.ai/", "", "https://trace.wandb.ai"},
		{"cloud, whole", "https://trace.wandb.ai/otel/v1/traces", "", "https://trace.wandb.ai"},
		{"cloud, whole with a slash", "https://trace.wandb.ai/otel/v1/traces/", "", "https://trace.wandb.ai"},
		{"cloud, agents", "https://trace.wandb.ai/agents/otel/v1/traces", "", "https://trace.wandb.ai"},
		{"cloud, as otlp_http wants it", "https://trace.wandb.ai/otel", "", "https://trace.wandb.ai"},
		{"dedicated", "https://acme.wandb.io/traces", "", "https://acme.wandb.io/traces"},
		{"dedicated without /traces", "https://acme.wandb.io", "", "https://acme.wandb.io/traces"},
		{"dedicated, whole", "https://acme.wandb.io/traces/otel/v1/traces", "", "https://acme.wandb.io/traces"},
		{"dedicated, agents", "https://acme.wandb.io/traces/agents/otel/v1/traces/", "", "https://acme.wandb.io/traces"},
		{"self-managed", "http://wandb.corp:8080/traces/", "", "http://wandb.corp:8080/traces"},
		{"behind a proxy", "https://gateway.corp/wandb/traces", "", "https://gateway.corp/wandb/traces"},
		{"local", "http://127.0.0.1:4711", "", "http://127.0.0.1:4711"},
		{"host", "", "acme.wandb.io", "https://acme.wandb.io/traces"},
		{"host with a scheme", "", "https://acme.wandb.io", "https://acme.wandb.io/traces"},
		{"host with /traces", "", "acme.wandb.io/traces", "https://acme.wandb.io/traces"},
		{"host with a slash", "", "acme.wandb.io/", "https://acme.wandb.io/traces"},
		{"host with a port", "", "http://wandb.corp:8080", "http://wandb.corp:8080/traces"},
		{"host, whole", "", "https://wandb.corp/traces/otel/v1/traces", "https://wandb.corp/traces"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := validConfig()
			cfg.BaseURL, cfg.Host = tt.base, tt.host
			require.NoError(t, cfg.Validate())
			base, err := cfg.baseURL()
			require.NoError(t, err)
			require.Equal(t, tt.want, base)
			require.Equal(t, tt.want+"/otel/v1/traces", base+callsPath)
		})
	}
}

func TestRequirement01_BadAddressIsRefusedWithTheRightOne(t *testing.T) {
	for _, tt := range []struct{ name, base, host, want string }{
		{"doubled", "https://trace.wandb.ai/otel/v1/traces/otel/v1/traces", "", "base_url: https://trace.wandb.ai/otel/v1/traces/otel/v1/traces holds more than what stands before /otel/v1/traces: use https://trace.wandb.ai"},
		{"doubled end", "https://trace.wandb.ai/otel/v1/traces/v1/traces", "", "use https://trace.wandb.ai"},
		{"doubled dedicated", "https://acme.wandb.io/traces/otel/v1/traces/v1/traces", "", "use https://acme.wandb.io/traces"},
		{"doubled prefix", "https://acme.wandb.io/traces/traces", "", "use https://acme.wandb.io/traces"},
		{"metrics", "https://trace.wandb.ai/otel/v1/metrics", "", "use https://trace.wandb.ai"},
		{"logs", "https://acme.wandb.io/traces/v1/logs", "", "use https://acme.wandb.io/traces"},
		{"without otel", "https://trace.wandb.ai/v1/traces", "", "use https://trace.wandb.ai"},
		{"cloud with /traces", "https://trace.wandb.ai/traces", "", "trace.wandb.ai has nothing at /traces: use https://trace.wandb.ai"},
		{"obsolete host", "https://api.wandb.ai/otel/v1/traces", "", "base_url: api.wandb.ai does not take traces: use https://trace.wandb.ai"},
		{"another obsolete host", "https://traces.wandb.ai", "", "use https://trace.wandb.ai"},
		{"the site", "https://wandb.ai", "", "use https://trace.wandb.ai"},
		{"unknown path", "https://wandb.corp/api", "", "base_url: Weave has nothing at /api: use what stands before /otel/v1/traces, such as https://wandb.corp or, for a dedicated instance, https://wandb.corp/traces"},
		{"no TLS", "http://trace.wandb.ai", "", "base_url: http://trace.wandb.ai would send the key in the clear: use https://trace.wandb.ai"},
		{"no TLS, dedicated", "", "http://acme.wandb.io", "host: http://acme.wandb.io would send the key in the clear: use https://acme.wandb.io"},
		{"no scheme", "trace.wandb.ai", "", `base_url: "trace.wandb.ai" is no http or https URL`},
		{"gRPC", "grpc://trace.wandb.ai:4317", "", "is no http or https URL"},
		{"query", "https://trace.wandb.ai?key=s3cr3t", "", "base_url: https://trace.wandb.ai holds more than a host and a path"},
		{"password", "https://api:s3cr3t@trace.wandb.ai", "", "base_url: https://trace.wandb.ai holds more than a host and a path"},
		{"password in what is no URL", "ftp://api:s3cr3t@trace.wandb.ai", "", `base_url: "…@trace.wandb.ai" is no http or https URL`},
		{"both", "https://trace.wandb.ai", "acme.wandb.io", "host: cannot stand beside base_url"},
		{"neither", "", "", "base_url: is empty"},
		{"host is the cloud", "", "trace.wandb.ai", "host: trace.wandb.ai is the cloud"},
		{"host is obsolete", "", "api.wandb.ai", "host: api.wandb.ai does not take traces: use https://trace.wandb.ai"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := validConfig()
			cfg.BaseURL, cfg.Host = tt.base, tt.host
			err := cfg.Validate()
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "s3cr3t")
		})
	}
}
