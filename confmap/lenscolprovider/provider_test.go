// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenscolprovider

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"

	"github.com/lenscol/lenscol/configs"
)

func TestRetrieve(t *testing.T) {
	provider := NewFactory().Create(confmap.ProviderSettings{})
	require.Equal(t, "lenscol", provider.Scheme())
	for _, name := range configs.Names() {
		retrieved, err := provider.Retrieve(t.Context(), "lenscol:"+name, nil)
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		require.True(t, conf.IsSet("service::pipelines"))
	}
	require.NoError(t, provider.Shutdown(t.Context()))
}

// A key of a part is set without the loss of the others; the variables stand for what they stood for.
func TestPartsAreJoined(t *testing.T) {
	t.Setenv("LENSCOL_DATA_DIR", "/archives")
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"lenscol:gateway", "yaml:exporters::jsonl::compression: zstd", "yaml:receivers::otlp::protocols::grpc::tls::client_ca_file: ca.crt"},
		ProviderFactories: []confmap.ProviderFactory{NewFactory(), yamlprovider.NewFactory(), envprovider.NewFactory()},
	})
	require.NoError(t, err)
	conf, err := resolver.Resolve(t.Context())
	require.NoError(t, err)
	for key, want := range map[string]any{
		"exporters::jsonl::compression":                         "zstd",
		"exporters::jsonl::path":                                "/archives/{signal}.jsonl",
		"receivers::otlp::protocols::grpc::tls::client_ca_file": "ca.crt",
		"receivers::otlp::protocols::grpc::tls::cert_file":      "/etc/lenscol/tls/tls.crt",
		"receivers::otlp::protocols::http::tls::cert_file":      "/etc/lenscol/tls/tls.crt",
	} {
		require.Equal(t, want, conf.Get(key), key)
	}
	require.NoError(t, resolver.Shutdown(t.Context()))
}

func TestRetrieveErrors(t *testing.T) {
	for _, tt := range []struct{ name, uri, want string }{
		{"unknown name", "lenscol:nothing", `no embedded config "nothing", there are: ` + strings.Join(configs.Names(), ", ")},
		{"no name", "lenscol:", `no embedded config ""`},
		{"another folder", "lenscol:../configs/archive", "no embedded config"},
		{"another scheme", "file:archive", `"file:archive" is not a lenscol: URI`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewFactory().Create(confmap.ProviderSettings{}).Retrieve(t.Context(), tt.uri, nil)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
