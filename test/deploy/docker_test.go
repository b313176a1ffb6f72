// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package deploy

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// secrets are what a filled-in .env has.
var secrets = []string{"WANDB_API_KEY=0123456789012345678901234567890123456789", "WANDB_ENTITY=acme", "WANDB_PROJECT=llm",
	"HONEYCOMB_API_KEY=k3y", "GRAFANA_PASSWORD=p4ss"}

type composeService struct {
	Image       string
	Command     []string
	Environment map[string]string
	Ports       []struct {
		HostIP string `json:"host_ip"`
	}
	Volumes  []struct{ Type, Source, Target string }
	ReadOnly bool `json:"read_only"`
	User     string
}

// compose resolves a Compose file as docker compose does, by the library that it is made of, which holds it against the schema.
func compose(t *testing.T, file string, env ...string) map[string]composeService {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), tool(t, "./compose"), file)
	cmd.Dir, cmd.Env, cmd.Stderr = deployed(t, "docker"), append(os.Environ(), env...), &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s: %s", file, &stderr)
	var project struct{ Services map[string]composeService }
	require.NoError(t, json.Unmarshal(out, &project), "%s", out)
	return project.Services
}

// Each Compose file is valid, pins its images, opens ports to this machine alone, mounts what is there, and has a config that lenscol takes.
func TestCompose(t *testing.T) {
	files, err := filepath.Glob(deployed(t, "docker", "compose*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	pinned := regexp.MustCompile(`:v?\d+\.\d+\.\d+$`)
	base := final(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			services := compose(t, file, secrets...)
			for name, service := range services {
				require.Regexp(t, pinned, service.Image, name)
				for _, port := range service.Ports {
					require.Equal(t, "127.0.0.1", port.HostIP, name)
				}
				for _, volume := range service.Volumes {
					if volume.Type == "bind" && filepath.Base(volume.Source) != "data" {
						_, err := os.Stat(volume.Source)
						require.NoError(t, err, name)
					}
				}
			}
			lenscol := services["lenscol"]
			require.True(t, lenscol.ReadOnly)
			require.Equal(t, base["USER"][0], lenscol.User)
			cmd := exec.CommandContext(t.Context(), testbed.Binary(t), append([]string{"validate"}, lenscol.Command...)...)
			cmd.Env = base["ENV"]
			for name, value := range lenscol.Environment {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)

			chosen := compose(t, file, append(secrets, "LENSCOL_CONFIG=/etc/mine.yaml")...)
			require.Equal(t, []string{"--config", "/etc/mine.yaml"}, chosen["lenscol"].Command[:2])
		})
	}
}

// A Compose file that needs a secret says so when it is missing.
func TestComposeWithoutSecrets(t *testing.T) {
	for _, file := range []string{"compose.yaml", "compose.weave.yaml", "compose.honeycomb.yaml"} {
		cmd := exec.CommandContext(t.Context(), tool(t, "./compose"), file)
		cmd.Dir = deployed(t, "docker")
		out, err := cmd.CombinedOutput()
		require.Error(t, err, file)
		require.Contains(t, string(out), "see .env.example")
	}
	example := read(t, "docker", ".env.example")
	for _, secret := range secrets {
		name, _, _ := strings.Cut(secret, "=")
		require.Contains(t, example, "\n"+name+"=\n")
	}
}

func TestDockerfile(t *testing.T) {
	hadolint := os.Getenv("LENSCOL_HADOLINT")
	if hadolint == "" {
		t.Skip("LENSCOL_HADOLINT is not set")
	}
	run(t, deployed(t, "docker"), hadolint, "Dockerfile")
}

// final are the instructions of the Dockerfile's last stage, by their first word.
func final(t *testing.T) map[string][]string {
	stage := map[string][]string{}
	for line := range strings.Lines(read(t, "docker", "Dockerfile")) {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "FROM":
			stage = map[string][]string{word: {rest}}
		case "ENV":
			stage[word] = strings.Fields(rest)
		default:
			stage[word] = append(stage[word], rest)
		}
	}
	return stage
}

// The image's files, and nothing else, are enough: the program starts in them, as the image's user, on a root that is read-only, answers its own
// health check, and writes to its state alone.
func TestImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounts the image's files, which needs root")
	}
	stage := final(t)
	require.Equal(t, []string{"scratch"}, stage["FROM"])
	require.NotContains(t, stage, "RUN")
	binary, err := elf.Open(testbed.Binary(t))
	require.NoError(t, err)
	defer binary.Close()
	libraries, err := binary.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries, "scratch has no libraries")
	for _, program := range binary.Progs {
		require.NotEqual(t, elf.PT_INTERP, program.Type, "scratch has no loader")
	}

	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	state := stage["WORKDIR"][0]
	for _, dir := range []string{"/usr/local/bin", "/proc", state} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	run(t, root, "cp", testbed.Binary(t), filepath.Join(root, "usr/local/bin/lenscol"))
	script := filepath.Join(t.TempDir(), "start.sh")
	require.NoError(t, os.WriteFile(script, []byte(inImage), 0o700))
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", script)
	var command, check []string
	require.NoError(t, json.Unmarshal([]byte(stage["CMD"][0]), &command))
	_, healthcheck, _ := strings.Cut(stage["HEALTHCHECK"][0], "CMD ")
	require.NoError(t, json.Unmarshal([]byte(healthcheck), &check))
	cmd.Env = append(stage["ENV"], "ROOT="+root, "STATE="+state, "OWNER="+stage["USER"][0],
		"COMMAND="+strings.Join(command, " "), "CHECK="+strings.Join(check, " "))
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "unshare failed: Operation not permitted") {
		t.Skip("this machine gives no namespaces: ", string(out))
	}
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "read-only root: refused\n")
	require.Contains(t, string(out), state+"/data/traces.jsonl")
}

const inImage = `#!/bin/bash
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ip link set lo up
mount --bind "$ROOT" "$ROOT" && mount -o remount,ro,bind "$ROOT"
mount -t tmpfs -o "mode=750,uid=${OWNER%:*},gid=${OWNER#*:}" tmpfs "$ROOT$STATE"
mount -t proc proc "$ROOT/proc"
image=(chroot --userspec="$OWNER" --groups= "$ROOT" /usr/local/bin/lenscol)
touch "$ROOT/x" 2>/dev/null || echo 'read-only root: refused'
"${image[@]}" $COMMAND &
pid=$!
until "${image[@]}" ${CHECK#lenscol }; do kill -0 $pid; sleep 0.2; done
"${image[@]}" demo --ranks 1 --steps 1
kill $pid
wait $pid
ls "$ROOT$STATE"/data/*
`
