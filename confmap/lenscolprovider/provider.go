// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package lenscolprovider serves the embedded configs as config URIs: `--config lenscol:archive`.
package lenscolprovider // import "github.com/lenscol/lenscol/confmap/lenscolprovider"

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/lenscol/lenscol/configs"
)

const schemeName = "lenscol"

type provider struct{}

var _ confmap.Provider = provider{}

// NewFactory returns a factory for the provider of the `lenscol:` scheme.
//
// A URI is `lenscol:NAME`, NAME being one of [configs.Names]; any other name is an error that lists them.
func NewFactory() confmap.ProviderFactory {
	return confmap.NewProviderFactory(func(confmap.ProviderSettings) confmap.Provider { return provider{} })
}

func (provider) Retrieve(_ context.Context, uri string, _ confmap.WatcherFunc) (*confmap.Retrieved, error) {
	name, ok := strings.CutPrefix(uri, schemeName+":")
	if !ok {
		return nil, fmt.Errorf("%q is not a %s: URI", uri, schemeName)
	}
	value, err := read(name)
	if err != nil {
		return nil, err
	}
	return confmap.NewRetrieved(value)
}

// read returns a config, or a part, with its parts in their places. A resolver expands references after it has joined its sources: a second
// config that sets one key of a part would then replace all of it.
func read(name string) (any, error) {
	text, err := configs.Read(name)
	if err != nil {
		return nil, err
	}
	retrieved, err := confmap.NewRetrievedFromYAML(text)
	if err != nil {
		return nil, err
	}
	value, err := retrieved.AsRaw()
	if err != nil {
		return nil, err
	}
	return withParts(value)
}

// withParts replaces what is ${lenscol:NAME} by what that is, in value and in the maps below it.
func withParts(value any) (_ any, err error) {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			if v[key], err = withParts(v[key]); err != nil {
				return nil, err
			}
		}
	case string:
		if name, ok := strings.CutPrefix(v, "${"+schemeName+":"); ok {
			return read(strings.TrimSuffix(name, "}"))
		}
	}
	return value, nil
}

func (provider) Scheme() string { return schemeName }

func (provider) Shutdown(context.Context) error { return nil }
