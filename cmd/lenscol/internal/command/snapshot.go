// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/otelcol"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/internal/advice"
)

// snapshot is a config as it was read at one moment. A collector that runs from one never reads the files again, so
// that nothing which happens to them can harm it.
type snapshot struct {
	mu        sync.Mutex                    // for Retrieve; what a snapshot holds is settled once it was read
	retrieved map[string]*confmap.Retrieved // by URI, `${env:NAME:-default}` and its like included
	effective *confmap.Conf                 // what it comes to: defaults filled in, secrets redacted
}

// readSnapshot reads the config of set's URIs through set's providers, expands it and validates it. Beside an error the snapshot is what was read
// until then.
func readSnapshot(ctx context.Context, set otelcol.CollectorSettings, logger *zap.Logger) (*snapshot, error) {
	snap := &snapshot{retrieved: map[string]*confmap.Retrieved{}, effective: confmap.New()}
	factories, err := set.Factories()
	if err != nil {
		return snap, fmt.Errorf("make the component factories: %w", err)
	}
	providerSet := snap.serve(set).ConfigProviderSettings
	providerSet.ResolverSettings.ProviderSettings.Logger = logger
	providerSet.ResolverSettings.ConverterSettings.Logger = logger
	provider, err := otelcol.NewConfigProvider(providerSet)
	if err != nil {
		return snap, err
	}
	defer func() { _ = provider.Shutdown(ctx) }() // Nothing was watched, so nothing is to release.
	cfg, err := provider.Get(ctx, factories)
	if err != nil {
		return snap, snap.nameFile(set.ConfigProviderSettings.ResolverSettings.URIs, advice.Explain(err))
	}
	if err := confmap.Validate(cfg); err != nil {
		return snap, err
	}
	if err := snap.effective.Marshal(cfg); err != nil {
		return snap, fmt.Errorf("marshal the config: %w", err)
	}
	return snap, nil
}

// nameFile says of an error about a file that is no config which of the files it is.
func (s *snapshot) nameFile(uris []string, err error) error {
	for _, uri := range uris {
		retrieved, ok := s.retrieved["file:"+strings.TrimPrefix(uri, "file:")]
		if !ok {
			continue
		}
		if _, notConfig := retrieved.AsConf(); notConfig != nil {
			return fmt.Errorf("%s: %w", uri, notConfig)
		}
	}
	return err
}

// unsetVariables says which variables the config takes without a default, and are not set or empty.
func (s *snapshot) unsetVariables() (lines []string) {
	for _, uri := range sortedKeys(s.retrieved) {
		name, isEnv := strings.CutPrefix(uri, "env:")
		if isEnv && !strings.Contains(name, ":-") && os.Getenv(name) == "" {
			lines = append(lines, fmt.Sprintf("${env:%s}: the variable is not set, and the config has no default for it: there is nothing in its place", name))
		}
	}
	return lines
}

// serve returns set with providers that answer from s, and ask the real one only for what s has not seen yet.
func (s *snapshot) serve(set otelcol.CollectorSettings) otelcol.CollectorSettings {
	resolver := &set.ConfigProviderSettings.ResolverSettings
	factories := make([]confmap.ProviderFactory, len(resolver.ProviderFactories))
	for i, real := range resolver.ProviderFactories {
		factories[i] = confmap.NewProviderFactory(func(ps confmap.ProviderSettings) confmap.Provider {
			return snapshotProvider{Provider: real.Create(ps), snapshot: s}
		})
	}
	resolver.ProviderFactories = factories
	return set
}

func (s *snapshot) equal(other *snapshot) bool {
	return maps.EqualFunc(s.retrieved, other.retrieved, func(a, b *confmap.Retrieved) bool {
		rawA, errA := a.AsRaw()
		rawB, errB := b.AsRaw()
		return errA == nil && errB == nil && reflect.DeepEqual(rawA, rawB)
	})
}

// ports returns the ports that the config takes from variables LENSCOL_<NAME>_PORT, by lower-case name: grpc, http, metrics.
func (s *snapshot) ports() map[string]int {
	ports := map[string]int{}
	for uri, retrieved := range s.retrieved {
		variable, isEnv := strings.CutPrefix(uri, "env:")
		if !isEnv {
			continue
		}
		variable, _, _ = strings.Cut(variable, ":-")
		name, isPort := portOfVariable(variable)
		if !isPort {
			continue
		}
		ports[name] = 0
		if raw, err := retrieved.AsRaw(); err == nil {
			ports[name], _ = strconv.Atoi(fmt.Sprint(raw))
		}
	}
	return ports
}

// portOfVariable is the inverse of [portVariable].
func portOfVariable(variable string) (name string, ok bool) {
	name, ok = strings.CutPrefix(variable, "LENSCOL_")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, "_PORT")
	return strings.ToLower(name), ok && name != ""
}

func portVariable(name string) string { return "LENSCOL_" + strings.ToUpper(name) + "_PORT" }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// snapshotProvider keeps what its provider retrieves and answers with it ever after.
//
// No provider of lenscol watches its source, so a Retrieved has nothing to close and may be handed out again. A
// provider that watches could not be served from a snapshot: the notice is dropped, and SIGHUP is the way to reload.
type snapshotProvider struct {
	confmap.Provider
	snapshot *snapshot
}

func (p snapshotProvider) Retrieve(ctx context.Context, uri string, _ confmap.WatcherFunc) (*confmap.Retrieved, error) {
	p.snapshot.mu.Lock()
	defer p.snapshot.mu.Unlock()
	if known, ok := p.snapshot.retrieved[uri]; ok {
		return known, nil
	}
	retrieved, err := p.Provider.Retrieve(ctx, uri, func(*confmap.ChangeEvent) {})
	if err == nil {
		p.snapshot.retrieved[uri] = retrieved
	}
	return retrieved, err
}
