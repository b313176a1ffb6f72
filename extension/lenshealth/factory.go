// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/lenscol/lenscol/extension/lenshealth/internal/metadata"
)

// DefaultEndpoint is where it listens unless the config says otherwise: the port of the collector's old health_check.
const DefaultEndpoint = "127.0.0.1:13133"

// NewFactory makes the factory of lens_health.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func createDefaultConfig() component.Config {
	return &Config{Endpoint: DefaultEndpoint, Window: 10 * time.Second}
}

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	return newHealth(set, cfg.(*Config)), nil
}
