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

	"github.com/lenscol/lenscol/internal/testbed"
)

// followed are the blocks of docs/deploy.md by their heading, one each, and what follows them word by word.
var followed = map[string]func(t *testing.T, commands string){
	"SLURM":                  followSLURM,
	"systemd":                followSystemd,
	"Docker":                 followDocker,
	"Kubernetes":             followKubernetes,
	"Grafana and Prometheus": followPrometheus,
}

// Every block of docs/deploy.md does what the page says. A block that nothing follows is an error.
func TestDocs(t *testing.T) {
	page := readPage(t)
	blocks := map[string]string{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		for i, block := range regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
			require.Zero(t, i, "one block below %q: two are not told apart here", heading)
			require.Contains(t, followed, heading, "nothing follows this block:\n%s", block[1])
			blocks[heading] = block[1]
		}
	}
	require.NotContains(t, page, "\n~~~")
	require.Equal(t, 2*len(blocks), strings.Count(page, "\n```"), "a block that was not found")
	for heading, follow := range followed {
		require.NotEmpty(t, blocks[heading], "no block below %q", heading)
		t.Run(heading, func(t *testing.T) {
			t.Parallel()
			follow(t, blocks[heading])
		})
	}
}

func readPage(t *testing.T) string {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy.md"))
	require.NoError(t, err)
	return string(page)
}

// checkout is a copy of what git knows of this one, for commands that write into it.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, filepath.Join("..", ".."), "sh", "-euc", `git ls-files -z | xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh | tar --null -T - -c | tar -xC "$0"`, dir)
	return dir
}

// replaced replaces a text that must be there.
func replaced(t *testing.T, text string, oldnew ...string) string {
	t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		require.Contains(t, text, oldnew[i])
	}
	return strings.NewReplacer(oldnew...).Replace(text)
}

func followSLURM(t *testing.T, commands string) {
	s := newTemplates(t)
	commands = replaced(t, commands, "/shared/lenscol/slurm", s.dir, "/shared/lenscol/bin/lenscol", testbed.Binary(t))
	// What the reader has done before: the copy of the template, changed for these nodes, and a program.
	job := replaced(t, read(t, "slurm", "train.sbatch"), "--ntasks-per-node=8", "--ntasks-per-node=2")
	require.NoError(t, os.WriteFile(filepath.Join(s.Work, "train.sbatch"), []byte(job), 0o600))
	program := "import os, subprocess\nsubprocess.run([os.environ['LENSCOL'], 'exec', '--name', 'page', '--', 'true'], check=True)\n"
	require.NoError(t, os.WriteFile(filepath.Join(s.Work, "train.py"), []byte(program), 0o600))
	bin := t.TempDir()
	require.NoError(t, os.Symlink(need(t, "python3", "Debian's python3"), filepath.Join(bin, "python")))

	out, _ := s.Run([]string{"PATH=" + bin + ":" + os.Getenv("PATH")}, "bash", "-euc", commands+"\necho train $job")
	ids := regexp.MustCompile(`^Submitted batch job (\d+)\ntrain (\d+)\n$`).FindStringSubmatch(out)
	require.NotNil(t, ids, out)
	s.InState(ids[1], "COMPLETED")
	s.InState(ids[2], "COMPLETED")
	require.Contains(t, s.read("reckon-"+ids[1]+".log"), "job "+ids[2]+"  train  COMPLETED  1 attempt\n")
	require.Len(t, s.traces(ids[2])["page"], 4, "one of each rank")
}

func followPrometheus(t *testing.T, commands string) {
	need(t, "promtool", "Debian's prometheus")
	require.Contains(t, run(t, filepath.Join("..", ".."), "sh", "-euc", commands), "SUCCESS")
}

// Every file of deploy/ that docs/deploy.md names is there, and no folder of it is left out.
func TestDocsNames(t *testing.T) {
	page := readPage(t)
	for _, path := range regexp.MustCompile(`\bdeploy/[\w./-]*\w`).FindAllString(page, -1) {
		_, err := os.Stat(filepath.Join("..", "..", path))
		require.NoError(t, err, "docs/deploy.md names it")
	}
	for _, dir := range []string{"slurm", "systemd", "docker", "kubernetes/overlays"} {
		entries, err := os.ReadDir(deployed(t, dir))
		require.NoError(t, err)
		for _, entry := range entries {
			if name := entry.Name(); !strings.HasPrefix(name, ".") && name != "Dockerfile.dockerignore" && name != "lenscol.yaml" && name != "prometheus.yml" {
				require.Contains(t, page, name, dir)
			}
		}
	}
}

// The commands that make secrets give every key that a pod asks for.
func TestDocsSecrets(t *testing.T) {
	made := map[string]bool{}
	for _, line := range strings.Split(readPage(t), "\n") {
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
