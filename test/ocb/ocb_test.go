// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package ocb tests that our components work in a collector that somebody else builds.
package ocb // import "github.com/lenscol/lenscol/test/ocb"

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/lenscol/lenscol/internal/testbed"
)

const ours = "github.com/lenscol/lenscol"

// TestStockBuild holds what `make ocb` builds of builder-config.yaml: ocb's own main with all components.
func TestStockBuild(t *testing.T) {
	bin := os.Getenv("OCB_BIN")
	require.NotEmpty(t, bin, "OCB_BIN names the collector that make ocb builds")
	requireArchives(t, bin)
}

// TestForeignBuild walks docs/ocb.md as a stranger would: a module outside this tree, a few upstream
// components, and the lines that the page shows.
func TestForeignBuild(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)

	config := parse(t, `
dist: {module: example.com/stranger, name: stranger}
exporters: [{gomod: go.opentelemetry.io/collector/exporter/nopexporter v0.158.0}]
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.64.0
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v1.64.0
`)
	work := t.TempDir()
	config["dist"].(map[string]any)["output_path"] = filepath.Join(work, "out")
	for _, block := range documented(t, root) {
		for section, entries := range block {
			several, ok := entries.([]any)
			if !ok { // telemetry: one factory
				config[section] = entries
				continue
			}
			list, _ := config[section].([]any)
			for _, entry := range several {
				if line, ok := entry.(string); ok {
					module, path, _ := strings.Cut(line, " => ")
					entry = module + " => " + strconv.Quote(strings.Replace(path, "/path/to/lenscol", root, 1))
				}
				if !slices.ContainsFunc(list, func(have any) bool { return fmt.Sprint(have) == fmt.Sprint(entry) }) {
					list = append(list, entry)
				}
			}
			config[section] = list
		}
	}
	written, err := json.Marshal(config) // JSON is YAML
	require.NoError(t, err)
	configFile := filepath.Join(work, "builder-config.yaml")
	require.NoError(t, os.WriteFile(configFile, written, 0o600))

	tmp := filepath.Join(work, "tmp") // ocb leaves folders in it
	require.NoError(t, os.Mkdir(tmp, 0o700))
	ocb := exec.Command("go", "tool", "-modfile=internal/tools/go.mod", "builder", "--config", configFile)
	ocb.Dir = root
	ocb.Env = append(os.Environ(), "CGO_ENABLED=0", "TMPDIR="+tmp)
	out, err := ocb.CombinedOutput()
	require.NoError(t, err, "%s", out)

	bin := filepath.Join(work, "out", "stranger")
	out, err = exec.Command(bin, "components").Output()
	require.NoError(t, err)
	listed := slices.DeleteFunc(components(t, root), func(c string) bool { return strings.HasPrefix(c, "telemetry ") }) // The command leaves it out.
	require.Len(t, regexp.MustCompile(`(?m)module: `+ours+` `).FindAll(out, -1), len(listed),
		"every component of ours is in the build:\n%s", out)
	requireArchives(t, bin)
}

// TestDocumentedComponents holds docs/ocb.md to builder-config.yaml: it shows each component of ours.
func TestDocumentedComponents(t *testing.T) {
	root := "../.."
	var shown []string
	for _, block := range documented(t, root) {
		shown = append(shown, imports(block)...)
	}
	slices.Sort(shown)
	require.Equal(t, components(t, root), slices.Compact(shown))
}

// components are our components in builder-config.yaml as "section import path", sorted.
func components(t *testing.T, root string) []string {
	written, err := os.ReadFile(filepath.Join(root, "builder-config.yaml"))
	require.NoError(t, err)
	list := imports(parse(t, string(written)))
	require.NotEmpty(t, list)
	return list
}

func imports(builderConfig map[string]any) []string {
	var list []string
	for section, entries := range builderConfig {
		several, ok := entries.([]any)
		if !ok { // telemetry: one factory
			several = []any{entries}
		}
		for _, entry := range several {
			if entry, ok := entry.(map[string]any); ok {
				if path, _ := entry["import"].(string); strings.HasPrefix(path, ours+"/") {
					list = append(list, section+" "+path)
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// documented are the yaml blocks of docs/ocb.md.
func documented(t *testing.T, root string) []map[string]any {
	page, err := os.ReadFile(filepath.Join(root, "docs", "ocb.md"))
	require.NoError(t, err)
	var blocks []map[string]any
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
		blocks = append(blocks, parse(t, string(block[1])))
	}
	require.NotEmpty(t, blocks)
	return blocks
}

func parse(t *testing.T, yaml string) map[string]any {
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	raw, err := retrieved.AsRaw()
	require.NoError(t, err)
	return raw.(map[string]any)
}

// requireArchives starts a collector with a jsonl exporter at its defaults, sends it one span, and finds
// it in the file once the collector has stopped. Its health is read from inside.
func requireArchives(t *testing.T, bin string) {
	health := testbed.FreePort(t)
	collector := testbed.Start(t, testbed.Options{Binary: bin, Env: []string{"LENSCOL_HEALTH_PORT=" + health}, Config: `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}
exporters: {jsonl: }
extensions: {lens_health: {endpoint: "127.0.0.1:${env:LENSCOL_HEALTH_PORT}"}}
service:
  extensions: [lens_health]
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [jsonl]}}
`})
	require.NoError(t, collector.Client().HTTP(t.Context(), "traces", testbed.JSON, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[
		{"name":"from afar","traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708",
		"startTimeUnixNano":"1000","endTimeUnixNano":"3500"}]}]}]}`), false))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://127.0.0.1:" + health + "/health")
	require.NoError(t, err)
	defer answer.Body.Close()
	var report struct{ Status, Source string }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&report))
	require.Equal(t, "inside", report.Source)
	require.Equal(t, "healthy", report.Status)
	collector.Stop()

	lines, err := os.ReadFile(filepath.Join(collector.Dir, "lens-data", "traces.jsonl"))
	require.NoError(t, err)
	var spans []map[string]any
	for line := range strings.Lines(string(lines)) {
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &object), line)
		if object["type"] == "span" {
			spans = append(spans, object)
		}
	}
	require.Len(t, spans, 1, "%s", lines)
	require.Equal(t, "from afar", spans[0]["name"])
	require.Equal(t, "0102030405060708090a0b0c0d0e0f10", spans[0]["trace_id"])
	require.InDelta(t, 2500, spans[0]["duration_ns"], 0)
}
