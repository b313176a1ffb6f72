// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Command lenscol is the OpenTelemetry Collector of distributed model training.
//
// What it is made of stands in components.go, which ocb writes from builder-config.yaml; what its command line does
// stands in internal/command, apart from the components, so that its tests need not link them.
package main

import (
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/httpprovider"
	"go.opentelemetry.io/collector/confmap/provider/httpsprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/otelcol"

	"github.com/lenscol/lenscol/cmd/lenscol/internal/command"
	"github.com/lenscol/lenscol/confmap/lenscolprovider"
	"github.com/lenscol/lenscol/internal/heapfloor"
)

// Set by the build: -ldflags "-X main.version=… -X main.commit=…".
var (
	version = "0.1.0" // dist.version of builder-config.yaml
	commit  = ""
)

func main() {
	heapfloor.Keep()
	set := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{
			Command:     "lenscol",
			Description: "The OpenTelemetry Collector of distributed model training",
			Version:     version,
		},
		Factories: components,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{
				envprovider.NewFactory(),
				fileprovider.NewFactory(),
				yamlprovider.NewFactory(),
				httpprovider.NewFactory(),
				httpsprovider.NewFactory(),
				lenscolprovider.NewFactory(),
			},
			DefaultScheme: "env",
		}},
		// What `lenscol components` says of each provider, as the main.go that ocb writes has it.
		ProviderModules: map[string]string{
			"env":     "go.opentelemetry.io/collector/confmap/provider/envprovider v1.64.0",
			"file":    "go.opentelemetry.io/collector/confmap/provider/fileprovider v1.64.0",
			"yaml":    "go.opentelemetry.io/collector/confmap/provider/yamlprovider v1.64.0",
			"http":    "go.opentelemetry.io/collector/confmap/provider/httpprovider v1.64.0",
			"https":   "go.opentelemetry.io/collector/confmap/provider/httpsprovider v1.64.0",
			"lenscol": "github.com/lenscol/lenscol v0.0.0",
		},
	}
	os.Exit(command.Main(set, commit))
}
