// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every file of deploy/ that docs/deploy.md names is there, and no folder of it is left out.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy.md"))
	require.NoError(t, err)
	for _, path := range regexp.MustCompile(`\bdeploy/[\w./-]*\w`).FindAllString(string(page), -1) {
		_, err := os.Stat(filepath.Join("..", "..", path))
		require.NoError(t, err, "docs/deploy.md names it")
	}
	for _, dir := range []string{"slurm", "systemd", "docker", "kubernetes/overlays"} {
		entries, err := os.ReadDir(deployed(t, dir))
		require.NoError(t, err)
		for _, entry := range entries {
			if name := entry.Name(); !strings.HasPrefix(name, ".") && name != "Dockerfile.dockerignore" && name != "lenscol.yaml" && name != "prometheus.yml" {
				require.Contains(t, string(page), name, dir)
			}
		}
	}
}

// The commands of the page for SLURM are those of TestSLURM; those that make secrets give every key that a pod asks for.
func TestDocsSecrets(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy.md"))
	require.NoError(t, err)
	made := map[string]bool{}
	for _, line := range strings.Split(string(page), "\n") {
		secret := regexp.MustCompile(`create secret generic (\S+) (.*)`).FindStringSubmatch(line)
		if secret == nil {
			continue
		}
		for _, key := range regexp.MustCompile(`--from-(?:literal|file)=([\w.-]+)`).FindAllStringSubmatch(secret[2], -1) {
			made[secret[1]+" "+key[1]] = true
		}
	}
	for _, overlay := range overlays {
		for _, o := range render(t, overlay.name) {
			each(map[string]any(o), func(m map[string]any) {
				if ref, is := m["secretKeyRef"].(map[string]any); is {
					require.True(t, made[ref["name"].(string)+" "+ref["key"].(string)], "%v", ref)
				}
				if secret, is := m["secret"].(map[string]any); is {
					items, _ := secret["items"].([]any)
					for _, item := range items {
						key := item.(map[string]any)["key"].(string)
						require.True(t, made[secret["secretName"].(string)+" "+key], "%v", secret)
					}
				}
			})
		}
	}
}

// each calls visit with every map in a value.
func each(value any, visit func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		visit(v)
		for _, inner := range v {
			each(inner, visit)
		}
	case []any:
		for _, inner := range v {
			each(inner, visit)
		}
	}
}
