// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package deploy

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// debian13 is the folder of programs that test/debian13.sh has unpacked.
func debian13(t *testing.T) string {
	t.Helper()
	root := os.Getenv("LENSCOL_DEBIAN13")
	if root == "" {
		t.Skip("LENSCOL_DEBIAN13 is not set: make check-deploy sets it, where test/debian13.sh can be run")
	}
	return root
}

// docker is a real daemon with a network of its own, which leads nowhere, and whoever types commands for it.
type docker struct {
	t   *testing.T
	dir string // where the commands are typed
	env []string
	pid string // of the daemon's namespaces
}

func startDocker(t *testing.T) *docker {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("starts dockerd, which needs root")
	}
	root := debian13(t)
	need(t, "dockerd", "Debian's docker.io")
	state, err := os.MkdirTemp("", "docker") // Short, as the path of a socket must be.
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	plugins := fmt.Sprintf(`{"cliPluginsExtraDirs": [%q]}`, filepath.Join(root, "usr/libexec/docker/cli-plugins"))
	require.NoError(t, os.WriteFile(filepath.Join(state, "config.json"), []byte(plugins), 0o600))
	var said safeBuffer
	cmd := exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-euc",
		`ip link set lo up; exec dockerd --data-root "$0/root" --exec-root "$0/exec" --pidfile "$0/pid" --host "unix://$0/sock"`, state)
	cmd.Stdout, cmd.Stderr = &said, &said
	d := &docker{t: t, env: append(os.Environ(), "PATH="+filepath.Join(root, "usr/bin")+":"+os.Getenv("PATH"), "DOCKER_CONFIG="+state, "DOCKER_HOST=unix://"+filepath.Join(state, "sock"))}
	up(t, start(t, cmd), &said, func() bool { return d.command("docker version").Run() == nil })
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
	require.NoError(t, err)
	d.pid = strings.Fields(string(children))[0]
	return d
}

func (d *docker) command(line string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(d.t.Context()), "sh", "-euc", line) // A test's cleanup runs some too.
	cmd.Dir, cmd.Env = d.dir, d.env
	return cmd
}

// do types a command and returns what it printed.
func (d *docker) do(line string) string {
	d.t.Helper()
	cmd := d.command(line)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(d.t, err, "%s\n%s%s", line, out, &stderr)
	return strings.TrimSpace(string(out))
}

// standIn makes an image of busybox, for one that would come from a registry.
func (d *docker) standIn(name string, change []string, files map[string]string) {
	d.t.Helper()
	busybox, err := os.ReadFile(filepath.Join(debian13(d.t), "usr/bin/busybox"))
	require.NoError(d.t, err)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	add := func(name string, text []byte) {
		require.NoError(d.t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}))
		_, err := w.Write(text)
		require.NoError(d.t, err)
	}
	add("bin/busybox", busybox)
	for _, program := range []string{"sh", "install", "cp", "mkdir", "sleep"} {
		require.NoError(d.t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + program, Linkname: "busybox"}))
	}
	for name, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			text = []byte(path)
		}
		add(name, text)
	}
	require.NoError(d.t, w.Close())
	args := "docker import"
	for _, instruction := range append(change, "ENV PATH=/bin") {
		args += " --change '" + instruction + "'"
	}
	cmd := d.command(args + " - " + name)
	cmd.Stdin = &archive
	out, err := cmd.CombinedOutput()
	require.NoError(d.t, err, "%s", out)
}

// The image is built by the Dockerfile as it stands, from a stand-in for Go's image in which `make build` copies the program that is
// built already; and what the build has in its context is enough to compile it. Compose runs it, beside stand-ins for the other images.
func followDocker(t *testing.T, commands string) {
	d := startDocker(t)
	d.dir = checkout(t)
	build := regexp.MustCompile(`FROM (golang:\S+) AS build`).FindStringSubmatch(read(t, "docker", "Dockerfile"))
	require.NotNil(t, build)
	d.standIn(build[1], nil, map[string]string{
		"lenscol": testbed.Binary(t), "etc/ssl/certs/ca-certificates.crt": "none\n",
		"bin/go":   "#!/bin/sh\n[ \"$*\" = 'mod download' ] && [ -s go.sum ] && [ -s sdk/go.sum ]\n",
		"bin/make": "#!/bin/sh\n[ \"$*\" = build ] && mkdir bin && cp /lenscol bin/lenscol\n",
	})
	for _, service := range compose(t, "compose.yaml", secrets...) {
		if !strings.HasPrefix(service.Image, "lenscol:") {
			d.standIn(service.Image, []string{`ENTRYPOINT ["sh", "-c", "trap exit TERM; sleep 600 & wait"]`}, nil)
		}
	}

	started := 0
	for line := range strings.Lines(commands) {
		line = strings.TrimSpace(line)
		if command, _, _ := strings.Cut(line, "#"); strings.HasSuffix(strings.TrimSpace(command), " up") {
			d.up(line)
			started++
			continue
		}
		said := d.do(line + "\npwd")
		d.dir = said[strings.LastIndex(said, "\n")+1:]
		if strings.Contains(line, ".env ") { // Filled in, as the page says.
			info, err := os.Stat(filepath.Join(d.dir, ".env"))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
			require.NoError(t, os.WriteFile(filepath.Join(d.dir, ".env"), []byte(strings.Join(secrets, "\n")), 0o600))
		}
		if strings.HasPrefix(line, "docker build ") {
			d.requireCompiles(replaced(t, line, "-t lenscol:0.1.0", "--target build -t context"))
		}
	}
	require.Equal(t, 2, started)
}

// requireCompiles demands that all packages of the program, and what they embed, are in the build's context, and nothing that git does not know.
func (d *docker) requireCompiles(build string) {
	d.t.Helper()
	context := d.t.TempDir()
	d.do(build + " && docker create --name context context true && docker cp context:/src - | tar -xC " + context)
	list := exec.CommandContext(d.t.Context(), "go", "list", "-deps", "-f", "{{with .DepsErrors}}{{.}}{{end}}", "./cmd/lenscol")
	list.Dir = filepath.Join(context, "src")
	out, err := list.CombinedOutput()
	require.NoError(d.t, err, "%s", out)
	require.Empty(d.t, strings.TrimSpace(string(out)))
	require.NoDirExists(d.t, filepath.Join(list.Dir, ".git"))
}

// up starts a project in the foreground. Once its collector is healthy a run is sent to it; it ends by Control-C, and has written the run.
func (d *docker) up(line string) {
	t := d.t
	t.Helper()
	var said safeBuffer
	cmd := d.command("exec " + line)
	cmd.Stdout, cmd.Stderr = &said, &said
	ended := start(t, cmd)
	var id string
	require.Eventually(t, func() bool {
		id = d.do("docker ps --quiet --filter ancestor=lenscol:0.1.0 --filter health=healthy")
		select {
		case <-ended:
			return true
		default:
			return id != ""
		}
	}, 2*time.Minute, 200*time.Millisecond, "no healthy lenscol: %s", &said)
	require.NotEmpty(t, id, "%s", &said)
	// From the machine, by the port that is published; a container's own network would not show that.
	d.do("nsenter --net --target " + d.pid + " '" + testbed.Binary(t) + "' demo --ranks 1 --steps 1")
	var containers []struct {
		Config     struct{ User string }
		HostConfig struct{ ReadonlyRootfs bool }
	}
	require.NoError(t, json.Unmarshal([]byte(d.do("docker inspect "+id)), &containers))
	require.True(t, containers[0].HostConfig.ReadonlyRootfs)
	require.Equal(t, final(t)["USER"][0], containers[0].Config.User)

	// docker hands it on to its plugin, which takes a second one, its own, as a demand to kill.
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		require.Fail(t, "docker compose does not end", "%s", &said)
	}
	require.Equal(t, "0 false", d.do("docker inspect --format '{{.State.ExitCode}} {{.State.OOMKilled}}' "+id), "%s", &said)
	require.Contains(t, d.do("docker logs "+id+" 2>&1"), "Shutdown complete")
	archive := d.command("docker cp " + id + ":/var/lib/lenscol/data -")
	out, err := archive.Output()
	require.NoError(t, err)
	written := map[string]int64{}
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.Equal(t, 65532, header.Uid, header.Name)
		written[header.Name] = header.Size
	}
	require.Positive(t, written["data/traces.jsonl"], "%v", written)
	d.do(replaced(t, line, " up", " down --volumes --timeout 1"))
}
